/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/pool_force.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "ctl/nodes.h"
#include "ctl/print_table.h"

enum {
    LABEL_BYTES = 128,
    LOOK_MS = 100,
    SHORTLY_MS = 2000, /* for agents to apply it */
    MADE_MS = 500,     /* after that, to make it or to say why not */
    SAID_NODES = 4,
    WHY_FULL = 220, /* an agent's whole sentence has up to 239 characters */
};

/* ---- which nodes */

/* Whether a list with commas has a word, of `length` characters. */
static bool has_word(const char *list, const char *word, size_t length)
{
    for (const char *at = list; *at != '\0';) {
        const size_t own = strcspn(at, ",");
        if (own == length && memcmp(at, word, own) == 0)
            return true;
        at += own + (at[own] == ',');
    }
    return false;
}

bool ctl_node_is_selected(const struct ctl_node *node, const char *selector)
{
    if (strcmp(selector, "all") == 0)
        return true;
    for (const char *at = selector; *at != '\0';) {
        const size_t length = strcspn(at, ",");
        if (!has_word(node->labels, at, length))
            return false;
        at += length + (at[length] == ',');
    }
    return true;
}

static const char *value_of(const struct ctl_resource *pool, const char *name)
{
    const struct resource_table *kind = resource_table_find("pool");
    for (size_t i = 0; i < kind->fields; i++)
        if (strcmp(kind->field[i].name, name) == 0)
            return pool->value[i];
    return "-";
}

/* One that it does not select, or that is not registered, is not asked. */
static bool is_of_pool(const struct ctl_node *node, const struct ctl_resource *pool)
{
    return strcmp(node->state, "absent") != 0 &&
           ctl_node_is_selected(node, value_of(pool, "nodes"));
}

/* ---- what one node says */

/* An agent says of all its tenants and pools in one sentence: "tenant a: ...; pool b: ...; pool c:
 * ...". What it says of one pool; "": nothing. */
static void find_reason(const char *all, const char *name, char out[CTL_TEXT_BYTES])
{
    char head[CTL_ID_BYTES + 16];
    const char *at = all, *end;
    out[0] = '\0';
    snprintf(head, sizeof head, "pool %.63s: ", name);
    while ((at = strstr(at, head)) != NULL && at != all && (at - all < 2 || at[-2] != ';'))
        at++;
    if (at == NULL)
        return;
    at += strlen(head);
    end = strstr(at, "; pool ");
    snprintf(out, CTL_TEXT_BYTES, "%.*s", (int)(end != NULL ? (size_t)(end - at) : strlen(at)), at);
}

static bool has_endpoint(const struct ctl_node *node, const struct ctl_resource *pool)
{
    uint64_t number;
    if (base_parse_u64(value_of(pool, "number"), 1, UINT16_MAX, &number) != 0)
        return false;
    for (size_t i = 0; i < node->endpoints; i++)
        if (node->endpoint[i].pool == number)
            return true;
    return false;
}

enum ctl_pool_force ctl_pool_force(const struct ctl_node *node, const struct ctl_resource *pool,
                                   char why[CTL_TEXT_BYTES])
{
    why[0] = '\0';
    if (strcmp(node->state, "live") != 0) {
        snprintf(why, CTL_TEXT_BYTES, "the node is %s", node->state);
        return CTL_POOL_UNHEARD;
    }
    if (!node->reported || node->revision < pool->revision) {
        snprintf(why, CTL_TEXT_BYTES, "%s",
                 node->why[0] != '\0' ? node->why : "its agent has not applied the setting");
        return CTL_POOL_LATER;
    }
    const bool held = has_endpoint(node, pool);
    find_reason(node->why, pool->name, why);
    if (why[0] == '\0' && held)
        return CTL_POOL_HELD;
    if (why[0] == '\0' && strlen(node->why) < WHY_FULL)
        return CTL_POOL_APPLIED;
    if (why[0] == '\0')
        snprintf(why, CTL_TEXT_BYTES,
                 "its agent says more than fits here: rdmactl agent status on that host");
    return held ? CTL_POOL_IN_PART : CTL_POOL_REFUSED;
}

/* ---- shown */

static bool is_done(enum ctl_pool_force force)
{
    return force == CTL_POOL_HELD || force == CTL_POOL_APPLIED;
}

static const char *force_text(enum ctl_pool_force force)
{
    static const char *const texts[] = {
        [CTL_POOL_HELD] = "yes",        [CTL_POOL_APPLIED] = "applied",
        [CTL_POOL_IN_PART] = "in part", [CTL_POOL_REFUSED] = "no, or in part",
        [CTL_POOL_LATER] = "not yet",   [CTL_POOL_UNHEARD] = "unknown"};
    return texts[force];
}

static int print_nodes(const struct ctl_nodes *nodes, const struct ctl_resource *pool, bool all)
{
    static const char *const headings[] = {"NODE", "IN FORCE", "WHY"};
    struct ctl_table *table;
    int status = ctl_table_new(headings, 3, &table);
    if (status != 0)
        return status;
    for (size_t i = 0; i < nodes->count; i++) {
        char why[CTL_TEXT_BYTES];
        const struct ctl_node *n = &nodes->node[i];
        if (!is_of_pool(n, pool))
            continue;
        const enum ctl_pool_force force = ctl_pool_force(n, pool, why);
        if (all || !is_done(force))
            ctl_table_row(
                table, (const char *const[]){n->id, force_text(force), why[0] != '\0' ? why : "-"});
    }
    status = ctl_table_print(table);
    ctl_table_free(table);
    return status;
}

static size_t count_nodes(const struct ctl_nodes *nodes, const struct ctl_resource *pool,
                          size_t *done)
{
    size_t count = 0;
    *done = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        char why[CTL_TEXT_BYTES];
        if (!is_of_pool(&nodes->node[i], pool))
            continue;
        count++;
        *done += is_done(ctl_pool_force(&nodes->node[i], pool, why));
    }
    return count;
}

int ctl_pool_print(const struct ctl_options *o, const struct ctl_resource *pool,
                   struct base_errbuf *err)
{
    struct ctl_nodes nodes;
    size_t done;
    int status = ctl_nodes_fetch(o, &nodes, err);
    if (status != 0)
        return status;
    const size_t count = count_nodes(&nodes, pool, &done);
    if (count == 0)
        printf("\nno node that is registered has it\n");
    else
        printf("\nin force on %zu of %zu nodes%s\n", done, count,
               done == count && !o->wide ? "" : ":");
    if (count > 0 && (done < count || o->wide))
        status = print_nodes(&nodes, pool, o->wide);
    ctl_nodes_fini(&nodes);
    return status == 0 ? 0 : base_err(err, status, "printing failed: %s", strerror(-status));
}

/* ---- waited for */

/* Whether a node may say something else in a moment; `made`: also one that may be making it. */
static bool is_coming(enum ctl_pool_force force, bool made)
{
    return force == CTL_POOL_LATER || (made && force == CTL_POOL_APPLIED);
}

static bool is_any_coming(const struct ctl_nodes *nodes, const struct ctl_resource *pool, bool made)
{
    for (size_t i = 0; i < nodes->count; i++) {
        char why[CTL_TEXT_BYTES];
        if (is_of_pool(&nodes->node[i], pool) &&
            is_coming(ctl_pool_force(&nodes->node[i], pool, why), made))
            return true;
    }
    return false;
}

static void say_not_in_force(const struct ctl_nodes *nodes, const struct ctl_resource *pool)
{
    size_t said = 0;
    fflush(stdout);
    for (size_t i = 0; i < nodes->count; i++) {
        char why[CTL_TEXT_BYTES];
        if (!is_of_pool(&nodes->node[i], pool))
            continue;
        const enum ctl_pool_force force = ctl_pool_force(&nodes->node[i], pool, why);
        if (is_done(force) || said++ >= SAID_NODES)
            continue;
        fprintf(stderr, "note: pool %s: on node %s it is %s: %s\n", pool->name, nodes->node[i].id,
                force == CTL_POOL_IN_PART   ? "in force in part"
                : force == CTL_POOL_REFUSED ? "not in force, or in part"
                : force == CTL_POOL_LATER   ? "not in force yet"
                                            : "not known to be in force",
                why);
    }
    if (said > SAID_NODES)
        fprintf(stderr, "note: pool %s: and on %zu more nodes: see rdmactl pool get %s\n",
                pool->name, said - SAID_NODES, pool->name);
}

void ctl_pool_settle(const struct ctl_options *o, const struct ctl_resource *pool)
{
    unsigned waited_ms = 0, applied_ms = 0;
    for (;;) {
        struct ctl_nodes nodes;
        struct base_errbuf err;
        if (ctl_nodes_fetch(o, &nodes, &err) != 0)
            return;
        const bool later = is_any_coming(&nodes, pool, false);
        const bool over = waited_ms >= SHORTLY_MS || (!later && applied_ms >= MADE_MS) ||
                          !is_any_coming(&nodes, pool, true);
        if (over)
            say_not_in_force(&nodes, pool);
        ctl_nodes_fini(&nodes);
        if (over)
            return;
        (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
        waited_ms += LOOK_MS;
        applied_ms += later ? 0 : LOOK_MS;
    }
}
