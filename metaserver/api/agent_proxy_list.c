/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of leases and workers: of one node, or of all, which are asked one after the other in the
 * order of their ids. A page of all ends early when that takes long, and its cursor says where. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent_proxy.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "metaserver/json.h"

enum {
    QUERY_ITEMS = 500, /* of one query: so many fit into an answer */
    QUERIES_MAX = 32,  /* queries for one page */
    PASSED_MAX = 256,  /* nodes that are not registered now, likewise */
    PAGE_S = 2,        /* no further node is asked after that */
};

/* ---- going on */

static bool is_full(const struct meta_proxy *h, uint64_t now)
{
    return h->list.count >= h->list.limit || h->list.asked >= QUERIES_MAX ||
           h->list.passed >= PASSED_MAX || h->list.unreachable >= PROXY_UNREACHABLE_MAX ||
           now - h->list.begun_ns >= PAGE_S * BASE_NS_PER_S;
}

/* One of all does not answer: it is named, and the next one is asked. */
static void pass_over(struct meta_proxy *h, int status)
{
    char why[PROXY_WHY_BYTES];
    (void)meta_proxy_why(h, status, why);
    base_json_object(&h->list.why, NULL);
    base_json_string(&h->list.why, "node", h->query.node);
    base_json_string(&h->list.why, "why", why);
    base_json_object_end(&h->list.why);
    h->list.cursor[0] = '\0';
}

/* The next node that is registered now. */
static bool go_to_next(struct meta_proxy *h, uint64_t now)
{
    struct meta_node_view view;
    while (meta_directory_after(h->s->directory, h->query.node, now, &view) == 0) {
        memcpy(h->query.node, view.id, sizeof h->query.node);
        if (view.state == META_NODE_LIVE)
            return true;
        if (++h->list.passed >= PASSED_MAX)
            break;
    }
    return false;
}

/* Whether there is any after the present one. */
static bool has_next(const struct meta_proxy *h, uint64_t now)
{
    struct meta_node_view view;
    return meta_directory_after(h->s->directory, h->query.node, now, &view) == 0;
}

static int ask_page(struct meta_proxy *h, uint64_t now)
{
    const uint64_t left = h->list.limit - h->list.count;
    h->q.limit = left < QUERY_ITEMS ? left : QUERY_ITEMS;
    const int status = meta_proxy_send_query(h, now);
    h->list.asked += status == 0;
    return status == 0 ? -EINPROGRESS : status;
}

/* The present node is at its end, or was passed over. 0, or as ask_page(). */
static int ask_next(struct meta_proxy *h, uint64_t now)
{
    while (!is_full(h, now) && go_to_next(h, now)) {
        const int status = ask_page(h, now);
        if (status != -ENOTCONN)
            return status;
        pass_over(h, status);
    }
    if (has_next(h, now))
        snprintf(h->list.next, sizeof h->list.next, "%s", h->query.node);
    return 0;
}

static int ask_present(struct meta_proxy *h, uint64_t now)
{
    const int status = ask_page(h, now);
    if (status != -ENOTCONN || !h->list.all)
        return status;
    pass_over(h, status);
    return ask_next(h, now);
}

int meta_proxy_list_step(struct meta_proxy *h, uint64_t now)
{
    const bool good =
        h->query.state == META_QUERY_ANSWERED && h->sensible && h->answer.status < 400;
    if (!good && (!h->list.all || h->query.state == META_QUERY_STOPPED))
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
        snprintf(h->list.next, sizeof h->list.next, "%s:%s", h->query.node, h->list.cursor);
        return 0;
    }
    return ask_present(h, now);
}

void meta_proxy_list_write(struct call *c, const struct meta_proxy *h)
{
    base_json_object(c->body, NULL);
    base_json_array(c->body, h->q.leases ? "leases" : "workers");
    base_text_append(c->body, base_text_str(&h->out), h->out.length);
    base_json_array_end(c->body);
    if (h->list.all) {
        base_json_array(c->body, "unreachable");
        base_text_append(c->body, base_text_str(&h->list.why), h->list.why.length);
        base_json_array_end(c->body);
    }
    if (h->list.next[0] != '\0')
        meta_rest_next_cursor(c, h->list.next);
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}

/* ---- what is asked for */

/* "NODE:CURSOR", where that node goes on; of all also "NODE", which was the last one. */
static bool take_cursor(struct meta_proxy *h, const char *text)
{
    char node[META_STORE_ID_BYTES];
    if (meta_proxy_split(text, node, h->list.cursor, sizeof h->list.cursor)) {
        if (h->list.cursor[0] == '\0' || (!h->list.all && strcmp(h->query.node, node) != 0))
            return false;
    } else if (h->list.all && meta_json_is_id(text)) {
        memcpy(node, text, strlen(text) + 1);
    } else {
        return false;
    }
    memcpy(h->query.node, node, sizeof h->query.node);
    return true;
}

/* Of which node, or of whose worker. Else the answer has been given. */
static bool read_node(struct call *c, struct meta_proxy *h)
{
    const char *node = c->request->parameter[META_PARAMETER_NODE];
    const char *worker = c->request->parameter[META_PARAMETER_WORKER];
    if (worker != NULL &&
        (!meta_proxy_split(worker, h->query.node, h->worker, sizeof h->worker) ||
         !meta_proxy_is_id(h->worker) || (node != NULL && strcmp(node, h->query.node) != 0))) {
        meta_rest_malformed(
            c, "worker",
            "must be NODE:ID, as rdmactl worker list --node NODE shows it, and of that node");
        return false;
    }
    if (worker == NULL && node != NULL && !meta_json_is_id(node)) {
        meta_rest_malformed(c, "node", "must be a node's id");
        return false;
    }
    h->list.all = node == NULL && worker == NULL;
    if (worker == NULL && node != NULL)
        memcpy(h->query.node, node, strlen(node) + 1);
    return h->list.all || meta_proxy_node_is_known(c, h->query.node);
}

static bool read_list(struct call *c, struct meta_proxy *h)
{
    const char *tenant = c->request->parameter[META_PARAMETER_TENANT];
    char cursor[REST_CURSOR_BYTES];
    h->q.what = PROXY_LIST;
    h->list.begun_ns = c->now;
    if (!meta_rest_read_limit(c, &h->list.limit) || !read_node(c, h) ||
        !meta_rest_read_cursor(c, cursor))
        return false;
    if (cursor[0] != '\0' && !take_cursor(h, cursor)) {
        meta_rest_bad_cursor(c);
        return false;
    }
    if (tenant != NULL && strlen(tenant) >= sizeof h->list.tenant) {
        meta_rest_malformed(c, "tenant", "has at most 63 characters");
        return false;
    }
    snprintf(h->list.tenant, sizeof h->list.tenant, "%s", tenant != NULL ? tenant : "");
    return true;
}

static void list_items(struct call *c, bool leases)
{
    struct meta_proxy *h = meta_proxy_new(c, leases);
    if (h == NULL)
        return;
    if (read_list(c, h)) {
        const bool here = !h->list.all || h->list.cursor[0] != '\0';
        const int status = here ? ask_present(h, c->now) : ask_next(h, c->now);
        if (status == -EINPROGRESS) {
            meta_proxy_wait(c, h);
            return;
        }
        if (status == 0)
            meta_proxy_list_write(c, h);
        else
            meta_proxy_refuse(c, h, status);
    }
    meta_proxy_free(h);
}

void meta_rest_list_leases(struct call *c)
{
    list_items(c, true);
}

void meta_rest_list_workers(struct call *c)
{
    list_items(c, false);
}
