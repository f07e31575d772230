/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of leases and workers: of one node, or of all, which are asked one after the other in the
 * order of their ids. A page of all ends early when that takes long, and its cursor says where. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "metaserver/json.h"
#include "agent_proxy.h"

enum {
    ASK_ITEMS = 500,  /* of one question: so many fit into an answer */
    ASKED_MAX = 32,   /* questions for one page */
    PASSED_MAX = 256, /* nodes that are not registered now, likewise */
    PAGE_S = 2,       /* no further node is asked after that */
};

/* ---- going on ------------------------------------------------------------------------------- */

static bool is_full(const struct kedge_held *h, uint64_t now)
{
    return h->list.count >= h->list.limit || h->list.asked >= ASKED_MAX ||
           h->list.passed >= PASSED_MAX || h->list.unreachable >= HELD_UNREACHABLE_MAX ||
           now - h->list.begun_ns >= PAGE_S * KEDGE_NS_PER_S;
}

/* One of all does not answer: it is named, and the next one is asked. */
static void pass_over(struct kedge_held *h, int status)
{
    char why[HELD_WHY_BYTES];
    (void)held_why(h, status, why);
    kedge_text_printf(&h->list.why,
                      "%s{\"node\":\"%s\",\"why\":", h->list.unreachable++ > 0 ? "," : "",
                      h->ask.node);
    kedge_text_json(&h->list.why, why);
    kedge_text_printf(&h->list.why, "}");
    h->list.cursor[0] = '\0';
}

/* The next node that is registered now. */
static bool go_to_next(struct kedge_held *h, uint64_t now)
{
    struct kedge_meta_view view;
    while (kedge_meta_after(h->s->meta, h->ask.node, now, &view) == 0) {
        memcpy(h->ask.node, view.id, sizeof h->ask.node);
        if (view.state == KEDGE_META_LIVE)
            return true;
        if (++h->list.passed >= PASSED_MAX)
            break;
    }
    return false;
}

/* Whether there is any after the present one. */
static bool has_next(const struct kedge_held *h, uint64_t now)
{
    struct kedge_meta_view view;
    return kedge_meta_after(h->s->meta, h->ask.node, now, &view) == 0;
}

static int ask_page(struct kedge_held *h, uint64_t now)
{
    const uint64_t left = h->list.limit - h->list.count;
    h->q.limit = left < ASK_ITEMS ? left : ASK_ITEMS;
    const int status = held_ask(h, now);
    h->list.asked += status == 0;
    return status == 0 ? -EINPROGRESS : status;
}

/* The present node is at its end, or was passed over. 0, or as ask_page(). */
static int ask_next(struct kedge_held *h, uint64_t now)
{
    while (!is_full(h, now) && go_to_next(h, now)) {
        const int status = ask_page(h, now);
        if (status != -ENOTCONN)
            return status;
        pass_over(h, status);
    }
    if (has_next(h, now))
        snprintf(h->list.next, sizeof h->list.next, "%s", h->ask.node);
    return 0;
}

static int ask_present(struct kedge_held *h, uint64_t now)
{
    const int status = ask_page(h, now);
    if (status != -ENOTCONN || !h->list.all)
        return status;
    pass_over(h, status);
    return ask_next(h, now);
}

int held_list_step(struct kedge_held *h, uint64_t now)
{
    const bool good = h->ask.state == KEDGE_ASK_ANSWERED && h->sensible && h->answer.status < 400;
    if (!good && (!h->list.all || h->ask.state == KEDGE_ASK_STOPPED))
        return -EIO;
    if (!good) {
        pass_over(h, 0);
    } else {
        h->list.count += h->answer.count;
        memcpy(h->list.cursor, h->answer.next, sizeof h->list.cursor);
    }
    if (h->list.cursor[0] == '\0')
        return h->list.all ? ask_next(h, now) : 0;
    if (is_full(h, now)) {
        snprintf(h->list.next, sizeof h->list.next, "%s:%s", h->ask.node, h->list.cursor);
        return 0;
    }
    return ask_present(h, now);
}

void held_list_write(struct call *c, const struct kedge_held *h)
{
    kedge_text_printf(c->body, "{\"%s\":[", h->q.leases ? "leases" : "workers");
    kedge_text_append(c->body, kedge_text_str(&h->out), h->out.length);
    kedge_text_printf(c->body, "]");
    if (h->list.all) {
        kedge_text_printf(c->body, ",\"unreachable\":[");
        kedge_text_append(c->body, kedge_text_str(&h->list.why), h->list.why.length);
        kedge_text_printf(c->body, "]");
    }
    if (h->list.next[0] != '\0')
        rest_next_cursor(c, h->list.next);
    kedge_text_printf(c->body, "}\n");
}

/* ---- what is asked for ---------------------------------------------------------------------- */

/* "NODE:CURSOR", where that node goes on; of all also "NODE", which was the last one. */
static bool take_cursor(struct kedge_held *h, const char *text)
{
    char node[KEDGE_STORE_ID_BYTES];
    if (held_split(text, node, h->list.cursor, sizeof h->list.cursor)) {
        if (h->list.cursor[0] == '\0' || (!h->list.all && strcmp(h->ask.node, node) != 0))
            return false;
    } else if (h->list.all && kedge_json_is_id(text)) {
        memcpy(node, text, strlen(text) + 1);
    } else {
        return false;
    }
    memcpy(h->ask.node, node, sizeof h->ask.node);
    return true;
}

/* Of which node, or of whose worker. Else the answer has been given. */
static bool read_node(struct call *c, struct kedge_held *h)
{
    const char *node = c->request->query[KEDGE_QUERY_NODE];
    const char *worker = c->request->query[KEDGE_QUERY_WORKER];
    if (worker != NULL &&
        (!held_split(worker, h->ask.node, h->worker, sizeof h->worker) ||
         !kedge_held_is_id(h->worker) || (node != NULL && strcmp(node, h->ask.node) != 0))) {
        rest_malformed(
            c, "worker",
            "must be NODE:ID, as rdmactl worker list --node NODE shows it, and of that node");
        return false;
    }
    if (worker == NULL && node != NULL && !kedge_json_is_id(node)) {
        rest_malformed(c, "node", "must be a node's id");
        return false;
    }
    h->list.all = node == NULL && worker == NULL;
    if (worker == NULL && node != NULL)
        memcpy(h->ask.node, node, strlen(node) + 1);
    return h->list.all || held_node_is_known(c, h->ask.node);
}

static bool read_list(struct call *c, struct kedge_held *h)
{
    const char *tenant = c->request->query[KEDGE_QUERY_TENANT];
    char cursor[REST_CURSOR_BYTES];
    h->q.what = HELD_LIST;
    h->list.begun_ns = c->now;
    if (!rest_read_limit(c, &h->list.limit) || !read_node(c, h) || !rest_read_cursor(c, cursor))
        return false;
    if (cursor[0] != '\0' && !take_cursor(h, cursor)) {
        rest_bad_cursor(c);
        return false;
    }
    if (tenant != NULL && strlen(tenant) >= sizeof h->list.tenant) {
        rest_malformed(c, "tenant", "has at most 63 characters");
        return false;
    }
    snprintf(h->list.tenant, sizeof h->list.tenant, "%s", tenant != NULL ? tenant : "");
    return true;
}

static void list_items(struct call *c, bool leases)
{
    struct kedge_held *h = held_new(c, leases);
    if (h == NULL)
        return;
    if (read_list(c, h)) {
        const bool here = !h->list.all || h->list.cursor[0] != '\0';
        const int status = here ? ask_present(h, c->now) : ask_next(h, c->now);
        if (status == -EINPROGRESS) {
            held_wait(c, h);
            return;
        }
        if (status == 0)
            held_list_write(c, h);
        else
            held_refuse(c, h, status);
    }
    held_free(h);
}

void rest_list_leases(struct call *c)
{
    list_items(c, true);
}

void rest_list_workers(struct call *c)
{
    list_items(c, false);
}
