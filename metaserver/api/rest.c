/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes in the REST interface. schema/openapi.yaml describes it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "metaserver/directory_reach.h"
#include "metaserver/json.h"
#include "metaserver/table_responders.h"
#include "reach_json.h"
#include "rest_private.h"

/* ---- nodes */

static uint64_t in_ms(uint64_t ns)
{
    return ns / BASE_NS_PER_MS;
}

/* What meta_directory_renew() says of an agent that is not the node's. */
static void refuse_agent(struct call *c, int status, uint32_t known)
{
    if (status == -ESTALE) {
        c->s->count.stale++;
        meta_rest_stale(c, known);
    } else if (status == -EUNATCH) {
        meta_rest_problem(c, REST_REGISTER_AGAIN,
                          "PUT the node: this metaserver does not hold its endpoints");
    } else {
        meta_rest_problem(c, REST_NO_NODE, NULL);
    }
}

static void write_broken(const struct meta_responders *r, const char *id, struct base_text *out)
{
    uint32_t at = 0, qpn = meta_responders_broken_of(r, id, &at);
    if (qpn == 0)
        return;
    base_json_array(out, "broken_qpns");
    for (; qpn != 0; qpn = meta_responders_broken_of(r, id, &at))
        base_json_u64(out, NULL, qpn);
    base_json_array_end(out);
}

/* What an agent that chooses among metaservers wants to know; what is as usual is not said. */
void meta_rest_write_standing(struct call *c)
{
    const struct meta_service *s = c->s;
    if (meta_service_is_behind(s, c->now))
        base_json_bool(c->body, "behind", true);
    if (meta_service_is_read_only(s))
        base_json_bool(c->body, "read_only", true);
    if (s->hearing.names_anew > 0)
        base_json_u64(c->body, "names_anew", s->hearing.names_anew);
    if (s->names != NULL)
        base_json_u64(c->body, "names_version", REST_NAMES_VERSION);
    if (s->store_id[0] != '\0')
        base_json_string(c->body, "store", s->store_id);
    if (s->zone != NULL && s->zone[0] != '\0')
        base_json_string(c->body, "zone", s->zone);
}

void meta_rest_renew_node(struct call *c)
{
    struct meta_violation violation;
    uint32_t incarnation, known = 0;
    if (!meta_rest_has_json(c))
        return;
    if (meta_json_renewal(c->request->body, c->request->body_bytes, &incarnation, &violation) !=
        0) {
        meta_rest_malformed(c, violation.field, violation.detail);
        return;
    }
    int status = meta_directory_renew(c->s->directory, c->id, incarnation, c->now, &known);
    if (status != 0) {
        refuse_agent(c, status, known);
        return;
    }
    c->s->count.renewals++;
    base_json_object(c->body, NULL);
    base_json_u64(c->body, "expires_in_ms", in_ms(c->s->node_lease_ns));
    base_json_hex64(c->body, "generation", meta_directory_table(c->s->directory)->generation);
    if (c->s->endpoint.dct_number != 0)
        base_json_u64(c->body, "dct_number", c->s->endpoint.dct_number);
    if (c->s->responders != NULL)
        write_broken(c->s->responders, c->id, c->body);
    meta_rest_write_standing(c);
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}

void meta_rest_put_applied(struct call *c)
{
    struct meta_report report;
    struct meta_violation violation;
    uint32_t incarnation, known = 0;
    if (!meta_rest_has_json(c))
        return;
    if (meta_json_report(c->request->body, c->request->body_bytes, &incarnation, &report,
                         &violation) != 0) {
        meta_rest_malformed(c, violation.field, violation.detail);
        return;
    }
    int status = meta_directory_report(c->s->directory, c->id, incarnation, &report, &known);
    if (status != 0)
        refuse_agent(c, status, known);
    else
        c->answer->status = 204;
}

void meta_rest_put_reach(struct call *c)
{
    struct meta_reach_peer peers[META_REACH_PEERS];
    struct meta_reach_claims said;
    struct meta_reach_unreached unreached;
    struct meta_violation violation;
    uint32_t incarnation, known = 0;
    uint16_t pool;
    if (!meta_rest_has_json(c))
        return;
    if (meta_reach_json_decode(c->request->body, c->request->body_bytes, &incarnation, &pool, &said,
                               &violation) != 0) {
        meta_rest_malformed(c, violation.field, violation.detail);
        return;
    }
    int status = meta_directory_reach(c->s->directory, c->id, incarnation, &said, c->now, &known);
    if (status != 0) {
        refuse_agent(c, status, known);
        return;
    }
    const uint32_t count = meta_directory_reach_peers(c->s->directory, c->id, pool, peers);
    const bool is = meta_directory_is_unreached(c->s->directory, c->id, c->now, &unreached);
    meta_reach_json_answer(c->body, peers, count, is ? &unreached : NULL);
}

/* What the agent has said, beside what there is. */
static void write_report(struct call *c, const struct meta_report *r)
{
    if (!r->reported)
        return;
    base_json_object(c->body, "applied");
    base_json_u64(c->body, "revision", r->revision);
    base_json_u64(c->body, "seen", r->seen);
    base_json_bool(c->body, "behind", r->revision != meta_resources_revision(c->s->resources));
    if (r->sessions != UINT32_MAX)
        base_json_u64(c->body, "sessions", r->sessions);
    base_json_string(c->body, "why", r->why);
    base_json_object_end(c->body);
}

static void write_node(struct call *c, const struct meta_node_view *v)
{
    struct base_text *out = c->body;
    /* What is lapsed here is expired for everybody else. */
    bool expired = v->state == META_NODE_LAPSED || v->state == META_NODE_EXPIRED;
    bool absent = v->state == META_NODE_FREE;
    char gid[BASE_GID_TEXT];
    base_json_object(out, NULL);
    base_json_string(out, "id", v->id);
    if (!absent)
        base_json_u64(out, "incarnation", v->incarnation);
    base_json_string(out, "state",
                     absent    ? "absent"
                     : expired ? "expired"
                               : meta_node_state_name(v->state));
    base_json_u64(out, "expires_in_ms", in_ms(v->expires_in_ns));
    base_json_array(out, "endpoints");
    for (uint32_t i = 0; i < v->endpoint_count; i++) {
        bool dc = v->endpoint[i].flags & SCHEMA_RECORD_DC,
             rc = v->endpoint[i].flags & SCHEMA_RECORD_RC;
        base_json_object(out, NULL);
        base_json_string(out, "gid", base_gid_format(v->endpoint[i].gid, gid));
        base_json_u64(out, "pool", v->endpoint[i].pool);
        if (dc || rc) {
            base_json_array(out, "transports");
            if (dc)
                base_json_string(out, NULL, "dc");
            if (rc)
                base_json_string(out, NULL, "rc");
            base_json_array_end(out);
            base_json_u64(out, "mtu", v->endpoint[i].mtu);
        }
        base_json_object_end(out);
    }
    base_json_array_end(out);
    resource_write(out, resource_table(RESOURCE_NODE),
                   meta_resources_node_spec(c->s->resources, v->id));
    write_report(c, &v->report);
    meta_reach_json_write(out, c->s->directory, &v->reach);
    base_json_object_end(out);
}

/* One of which operators have set something, and that is not registered. */
static void view_absent(const char *id, struct meta_node_view *out)
{
    *out = (struct meta_node_view){.state = META_NODE_FREE};
    snprintf(out->id, sizeof out->id, "%s", id);
}

void meta_rest_get_node(struct call *c)
{
    struct meta_node_view view;
    if (meta_directory_show(c->s->directory, c->id, c->now, &view) != 0) {
        if (meta_resources_find(c->s->resources, META_NODE, c->id) == NULL) {
            meta_rest_problem(c, REST_NO_NODE, NULL);
            return;
        }
        view_absent(c->id, &view);
    }
    write_node(c, &view);
    base_text_append(c->body, "\n", 1);
}

struct removal {
    struct meta_write base;
    uint64_t incarnation; /* the last one that may go */
    struct meta_store_life life;
};

static bool begin_removal(struct call *c, struct meta_write *w)
{
    struct removal *r = (struct removal *)w;
    struct meta_node_view view;
    if (meta_directory_show(c->s->directory, c->id, c->now, &view) != 0) {
        meta_rest_problem(c, REST_NO_NODE, NULL);
        return false;
    }
    if (view.incarnation > r->incarnation) {
        c->s->count.stale++;
        meta_rest_stale(c, view.incarnation);
        return false;
    }
    r->life = (struct meta_store_life){.incarnation = view.incarnation};
    memcpy(r->life.id, c->id, sizeof r->life.id);
    w->job.txn = (struct meta_store_txn){.remove = &r->life, .remove_count = 1};
    return true;
}

static void end_removal(struct call *c, struct meta_write *w)
{
    if (!meta_write_is_stored(c, w))
        return;
    meta_service_removed(c->s, c->id, c->who, c->now);
    c->answer->status = 204;
}

static void free_removal(struct meta_write *w)
{
    free(w);
}

/* An agent that ends says its own incarnation, so that it does not take away what a later one has
 * registered; an operator means the node, whatever it is. */
void meta_rest_delete_node(struct call *c)
{
    static const struct meta_write_kind removing = {
        .what = "removing", .begin = begin_removal, .end = end_removal, .free = free_removal};
    uint64_t incarnation = UINT32_MAX;
    if (c->request->parameter[META_PARAMETER_INCARNATION] != NULL &&
        base_parse_u64(c->request->parameter[META_PARAMETER_INCARNATION], 1, UINT32_MAX,
                       &incarnation) != 0) {
        meta_rest_malformed(c, "incarnation", "must be a number from 1 to 4294967295");
        return;
    }
    struct removal *r = calloc(1, sizeof *r);
    if (r == NULL) {
        meta_rest_problem(c, REST_CROWDED, "out of memory: try again");
        return;
    }
    meta_write_init(&r->base, &removing, c);
    r->incarnation = incarnation;
    meta_write_decide(c, &r->base);
}

/* The next one that is registered, or of which something is set. */
static int next_known(const struct call *c, const char *after, struct meta_node_view *out)
{
    const struct meta_resource *set = meta_resources_after(c->s->resources, META_NODE, after);
    int status = meta_directory_after(c->s->directory, after, c->now, out);
    if (set == NULL || (status == 0 && strcmp(out->id, set->name) <= 0))
        return status;
    view_absent(set->name, out);
    return 0;
}

static bool has_labels(const struct call *c, const char *id, const struct resource_labels *labels)
{
    return resource_labels_match(&meta_resources_node_spec(c->s->resources, id)->labels, labels);
}

void meta_rest_list_nodes(struct call *c)
{
    const char *label = c->request->parameter[META_PARAMETER_LABEL];
    struct resource_labels labels = {.text = ""};
    struct meta_node_view view;
    struct rest_page page;
    uint64_t n = 0, looks = 0;
    int status = 0;
    if (!meta_rest_read_page(c, &page))
        return;
    if (label != NULL && resource_labels_parse(label, &labels) != 0) {
        meta_rest_malformed(c, "label", "must be KEY=VALUE, or several with commas between them");
        return;
    }
    base_json_object(c->body, NULL);
    base_json_u64(c->body, "revision", meta_resources_revision(c->s->resources));
    meta_rest_write_position(c);
    base_json_array(c->body, "nodes");
    while ((status = next_known(c, page.after, &view)) == 0 && n < page.limit &&
           looks < REST_LOOKS) {
        memcpy(page.after, view.id, sizeof page.after);
        if (!has_labels(c, view.id, &labels)) {
            looks++;
            continue;
        }
        base_text_printf(c->body, n++ == 0 ? "\n" : ",\n");
        write_node(c, &view);
    }
    base_json_array_end(c->body);
    if (status == 0)
        meta_rest_next_cursor(c, page.after);
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}
