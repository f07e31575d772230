/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/nodes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "ctl/commands.h"
#include "ctl/fetch.h"
#include "ctl/format.h"
#include "ctl/json.h"
#include "ctl/resources.h"
#include "ctl/print_table.h"
#include "ctl/rows.h"

enum {
    MAX_PAGES = 100000,
    CURSOR_BYTES = 256,
    OUTPUT_BYTES = 1 << 28,
    CELL_BYTES = CTL_AMOUNT_BYTES
};

int ctl_nodes_fetch(const struct ctl_options *o, struct ctl_nodes *out, struct base_errbuf *err)
{
    struct ctl_nodes nodes = {.node = NULL};
    char path[4096], next[CURSOR_BYTES], encoded[3 * CURSOR_BYTES], label[2048] = "";
    if (o->label != NULL) {
        snprintf(label, sizeof label, "&label=");
        if (ctl_percent_encode(o->label, label + strlen(label), sizeof label - strlen(label)) != 0)
            return base_err(err, -EINVAL, "--label is too long");
    }
    snprintf(path, sizeof path, "/v1/nodes?limit=1000%s", label);
    int status = 0;
    for (unsigned page = 0; page < MAX_PAGES; page++) {
        struct http_result result;
        status = ctl_fetch_server(o, path, &result, err);
        if (status != 0)
            break;
        status = ctl_decode_nodes(result.body, result.body_length, &nodes, next, sizeof next, err);
        http_result_fini(&result);
        if (status != 0 || next[0] == '\0')
            break;
        (void)ctl_percent_encode(next, encoded, sizeof encoded); /* it always fits */
        snprintf(path, sizeof path, "/v1/nodes?limit=1000%s&cursor=%s", label, encoded);
    }
    if (status == 0)
        *out = nodes;
    else
        ctl_nodes_fini(&nodes);
    return status;
}

static void transports_json(struct base_text *t, const char *names)
{
    base_json_array(t, "transports");
    while (names[0] != '\0') {
        char name[CTL_WORD_BYTES];
        size_t length = strcspn(names, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        base_json_string(t, NULL, name);
        names += length + (names[length] == ',' ? 1 : 0);
    }
    base_json_array_end(t);
}

static void labels_json(struct base_text *t, const char *labels)
{
    base_json_object(t, "labels");
    while (labels[0] != '\0') {
        char key[CTL_WORD_BYTES], value[CTL_WORD_BYTES];
        size_t length = strcspn(labels, ","), equals = strcspn(labels, "=");
        snprintf(key, sizeof key, "%.*s", (int)equals, labels);
        snprintf(value, sizeof value, "%.*s", (int)(length - equals - 1), labels + equals + 1);
        base_json_string(t, NULL, key); /* which the metaserver has said: it may need an escape */
        base_text_append(t, ":", 1);
        base_json_string(t, NULL, value);
        labels += length + (labels[length] == ',' ? 1 : 0);
    }
    base_json_object_end(t);
}

static void settings_json(struct base_text *t, const struct ctl_node *n)
{
    labels_json(t, n->labels);
    base_json_bool(t, "cordoned", n->cordoned);
    base_json_bool(t, "draining", n->draining);
    if (n->says_grace)
        base_json_u64(t, "grace_ms", n->grace_ms);
    if (n->reason[0] != '\0')
        base_json_string(t, "reason", n->reason);
    if (!n->reported)
        return;
    base_json_object(t, "applied");
    base_json_u64(t, "revision", n->revision);
    base_json_u64(t, "seen", n->seen);
    base_json_bool(t, "behind", n->behind);
    if (n->says_sessions)
        base_json_u64(t, "sessions", n->sessions);
    base_json_string(t, "why", n->why);
    base_json_object_end(t);
}

void ctl_node_json(struct base_text *t, const struct ctl_node *node)
{
    base_json_object(t, NULL);
    base_json_string(t, "kind", "node");
    base_json_string(t, "id", node->id);
    if (node->set_revision != 0)
        base_json_u64(t, "revision", node->set_revision);
    if (node->incarnation != 0)
        base_json_u64(t, "incarnation", node->incarnation);
    base_json_string(t, "state", node->state);
    base_json_u64(t, "expires_in_ms", node->expires_in_ms);
    base_json_array(t, "endpoints");
    for (size_t i = 0; i < node->endpoints; i++) {
        const struct ctl_endpoint *e = &node->endpoint[i];
        base_json_object(t, NULL);
        base_json_string(t, "gid", e->gid);
        base_json_u64(t, "pool", e->pool);
        if (e->transports[0] != '\0')
            transports_json(t, e->transports);
        if (e->mtu != 0)
            base_json_u64(t, "mtu", e->mtu);
        base_json_object_end(t);
    }
    base_json_array_end(t);
    settings_json(t, node);
    ctl_fabric_json(t, &node->fabric);
    base_json_object_end(t);
}

static const char *expires_cell(const struct ctl_node *n, char out[CTL_AMOUNT_BYTES])
{
    return n->expires_in_ms == 0 ? "-" : ctl_format_age(n->expires_in_ms, out);
}

/* Whether it takes workers. */
static const char *workers_cell(const struct ctl_node *n, char out[CELL_BYTES])
{
    const char *state = n->draining ? "draining" : "cordoned";
    if (!n->cordoned)
        snprintf(out, CELL_BYTES, "ready");
    else if (n->says_sessions)
        snprintf(out, CELL_BYTES, "%s, %llu left", state, (unsigned long long)n->sessions);
    else
        snprintf(out, CELL_BYTES, "%s", state);
    return out;
}

/* What is in force of the configuration, and why no more. */
static const char *settings_cell(const struct ctl_node *n, char out[CTL_TEXT_BYTES + CELL_BYTES])
{
    if (!n->reported)
        return "-";
    snprintf(out, CTL_TEXT_BYTES + CELL_BYTES, "%llu%s%s%s", (unsigned long long)n->revision,
             n->behind ? ", behind" : "", n->why[0] != '\0' ? ": " : "", n->why);
    return out;
}

static void add_row(struct ctl_rows *rows, const struct ctl_node *n, bool wide)
{
    struct base_text json;
    char incarnation[CELL_BYTES], left[CELL_BYTES], gids[CTL_WORD_BYTES + CELL_BYTES] = "-";
    char has[CELL_BYTES], set[CTL_TEXT_BYTES + CELL_BYTES], fabric[CTL_FABRIC_TEXT];
    const char *labels = n->labels[0] != '\0' ? n->labels : "-";
    snprintf(incarnation, sizeof incarnation, "%llu", (unsigned long long)n->incarnation);
    if (n->incarnation == 0) /* it is absent */
        snprintf(incarnation, sizeof incarnation, "-");
    if (n->endpoints == 1)
        snprintf(gids, sizeof gids, "%s", n->endpoint[0].gid);
    else if (n->endpoints > 1)
        snprintf(gids, sizeof gids, "%s and %zu more", n->endpoint[0].gid, n->endpoints - 1);
    base_text_init(&json, OUTPUT_BYTES);
    ctl_node_json(&json, n);
    ctl_rows_add(rows, n->id, base_text_str(&json),
                 (const char *const[]){
                     n->id, n->state, incarnation, expires_cell(n, left), gids,
                     workers_cell(n, has), ctl_fabric_text(&n->fabric, false, fabric),
                     wide ? labels : settings_cell(n, set), wide ? settings_cell(n, set) : NULL});
    base_text_fini(&json);
}

static int fill_rows(const struct ctl_options *o, struct ctl_rows *rows, struct base_errbuf *err)
{
    const char *const headings[] = {
        "ID",        "STATE",   "INCARNATION", "EXPIRES IN",
        "ENDPOINTS", "WORKERS", "FABRIC",      o->wide ? "LABELS" : "SETTINGS",
        "SETTINGS"};
    struct ctl_nodes nodes;
    const int status = ctl_nodes_fetch(o, &nodes, err);
    if (status != 0)
        return status;
    ctl_rows_head(rows, headings, o->wide ? 9 : 8);
    for (size_t i = 0; i < nodes.count; i++)
        add_row(rows, &nodes.node[i], o->wide);
    ctl_nodes_fini(&nodes);
    return 0;
}

static void say_none(const struct ctl_options *o)
{
    puts(o->label != NULL ? "no node has these labels" : "no node has registered yet");
}

int ctl_node_list(const struct ctl_options *o, struct base_errbuf *err)
{
    static const struct ctl_list list = {.kind = "node",
                                         .plural = "nodes",
                                         .events = "node,liveness",
                                         .fill = fill_rows,
                                         .say_none = say_none};
    return ctl_list_run(o, &list, NULL, err);
}

int ctl_node_print(const struct ctl_node *n, struct base_errbuf *err)
{
    static const char *const headings[] = {"GID", "POOL", "TRANSPORTS", "MTU"};
    struct ctl_table *table;
    char left[CELL_BYTES], set[CTL_TEXT_BYTES + CELL_BYTES], fabric[CTL_FABRIC_TEXT];
    printf("id           %s\nstate        %s\n", n->id, n->state);
    if (n->incarnation != 0)
        printf("incarnation  %llu\n", (unsigned long long)n->incarnation);
    printf("expires in   %s\n", expires_cell(n, left));
    printf("labels       %s\n", n->labels[0] != '\0' ? n->labels : "-");
    printf("workers      %s\n", workers_cell(n, left));
    if (n->says_grace)
        printf("grace        %s\n", ctl_format_duration(n->grace_ms, left));
    if (n->reason[0] != '\0')
        printf("reason       %s\n", n->reason);
    printf("fabric       %s\n", ctl_fabric_text(&n->fabric, true, fabric));
    printf("settings     %s\n\n", settings_cell(n, set));
    int status = ctl_table_new(headings, 4, &table);
    for (size_t i = 0; i < n->endpoints && status == 0; i++) {
        const struct ctl_endpoint *e = &n->endpoint[i];
        char pool[CELL_BYTES], mtu[CELL_BYTES] = "-";
        snprintf(pool, sizeof pool, "%llu", (unsigned long long)e->pool);
        if (e->mtu != 0)
            snprintf(mtu, sizeof mtu, "%llu", (unsigned long long)e->mtu);
        ctl_table_row(table,
                      (const char *const[]){e->gid, pool,
                                            e->transports[0] != '\0' ? e->transports : "-", mtu});
    }
    if (status == 0) {
        status = ctl_table_print(table);
        ctl_table_free(table);
    }
    return status == 0 ? 0 : base_err(err, status, "printing failed: %s", strerror(-status));
}

int ctl_node_path(const char *id, char out[CTL_NODE_PATH_BYTES], struct base_errbuf *err)
{
    char encoded[3 * CTL_ID_BYTES + 1];
    if (id[0] == '\0' || ctl_percent_encode(id, encoded, sizeof encoded) != 0)
        return base_err(err, -EINVAL, "a node's id has 1 to %d characters", CTL_ID_BYTES - 1);
    snprintf(out, CTL_NODE_PATH_BYTES, "/v1/nodes/%s", encoded);
    return 0;
}

/* The revision of what is set of it, so that `apply` can tell whether that has changed since; 0:
 * nothing is. */
static int fetch_revision(const struct ctl_options *o, const char *node_path, uint64_t *out,
                          struct base_errbuf *err)
{
    char path[CTL_NODE_PATH_BYTES + 16];
    struct http_result result;
    struct ctl_resource set;
    snprintf(path, sizeof path, "%s/settings", node_path);
    *out = 0;
    int status = ctl_fetch_server(o, path, &result, err);
    if (status != 0)
        return status == -ENOENT ? 0 : status;
    status = ctl_decode_resource(resource_table_find("node"), result.body, result.body_length, &set,
                                 err);
    http_result_fini(&result);
    if (status != 0)
        return status;
    *out = set.revision;
    ctl_resource_fini(&set);
    return 0;
}

/* Whose a GID is, as logs name it. -ENOENT: nobody's. */
static int find_gid(const struct ctl_options *o, const uint8_t gid[16], char out[CTL_ID_BYTES],
                    struct base_errbuf *err)
{
    struct ctl_nodes nodes;
    uint8_t its[16];
    int status = ctl_nodes_fetch(o, &nodes, err);
    if (status != 0)
        return status;
    out[0] = '\0';
    for (size_t i = 0; i < nodes.count; i++)
        for (size_t k = 0; k < nodes.node[i].endpoints; k++)
            if (base_gid_parse(nodes.node[i].endpoint[k].gid, its) == 0 &&
                memcmp(its, gid, sizeof its) == 0)
                snprintf(out, CTL_ID_BYTES, "%s", nodes.node[i].id);
    ctl_nodes_fini(&nodes);
    return out[0] != '\0'
               ? 0
               : base_err(err, -ENOENT, "no node has the GID %.60s: see rdmactl node list", o->id);
}

int ctl_node_get(const struct ctl_options *o, struct base_errbuf *err)
{
    struct http_result result;
    struct ctl_node node;
    char path[CTL_NODE_PATH_BYTES], id[CTL_ID_BYTES];
    uint8_t gid[16];
    uint64_t revision = 0;
    int status = 0;
    if (snprintf(id, sizeof id, "%s", o->id) >= (int)sizeof id)
        return base_err(err, -EINVAL, "a node's id has 1 to %d characters", CTL_ID_BYTES - 1);
    if (strchr(o->id, ':') != NULL && base_gid_parse(o->id, gid) == 0)
        status = find_gid(o, gid, id, err);
    if (status != 0)
        return status;
    status = ctl_node_path(id, path, err);
    if (status == 0 && o->json) /* first: then what is shown is of this one or of a later one */
        status = fetch_revision(o, path, &revision, err);
    if (status == 0)
        status = ctl_fetch_server(o, path, &result, err);
    if (status == -ENOENT)
        return ctl_no_such("node", o->id, "", err);
    if (status != 0)
        return status;
    status = ctl_decode_node(result.body, result.body_length, &node, err);
    http_result_fini(&result);
    if (status != 0)
        return status;
    if (!o->json)
        return ctl_node_print(&node, err);
    node.set_revision = revision;
    struct base_text t;
    base_text_init(&t, OUTPUT_BYTES);
    ctl_node_json(&t, &node);
    status = t.error != 0 ? t.error : ctl_json_print(base_text_str(&t), err);
    base_text_fini(&t);
    return status;
}
