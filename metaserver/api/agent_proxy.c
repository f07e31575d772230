/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/leases, /v1/workers and /v1/nodes/{id}/status: asked of the agents when somebody looks, and
 * not kept here. */
#include "agent_proxy.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "metaserver/json.h"

enum { LOOK_S = 5, REVOKE_S = 35 /* agents answer within 30 */ };

struct meta_proxy *meta_proxy_new(struct call *c, bool leases)
{
    struct meta_proxy *h = calloc(1, sizeof *h);
    struct meta_violation why;
    if (h == NULL) {
        meta_rest_problem(c, REST_ASKS, "out of memory: try again");
        return NULL;
    }
    h->s = c->s;
    h->token = c->request->token;
    h->q.leases = leases;
    if (c->caller.kind == META_CALLER_TOKEN)
        snprintf(h->query.token, sizeof h->query.token, "%s", c->caller.token->name);
    h->query.operators =
        meta_access_decide(&c->caller, false, META_NEED_OPERATOR, META_AGENT_NO, "", &why) == 0;
    h->q.node = h->query.node;
    h->q.id = h->item;
    base_text_init(&h->out, PROXY_PAGE_BYTES);
    base_text_init(&h->list.why, PROXY_PAGE_BYTES);
    return h;
}

void meta_proxy_free(struct meta_proxy *h)
{
    meta_query_close(h->s, &h->query);
    base_text_fini(&h->out);
    base_text_fini(&h->list.why);
    free(h);
}

void meta_proxy_wait(struct call *c, struct meta_proxy *h)
{
    LIST_INSERT_HEAD(&c->s->proxies, h, link);
    c->answer->status = META_SERVICE_LATER;
}

bool meta_proxy_split(const char *text, char node[META_STORE_ID_BYTES], char *rest, size_t size)
{
    const char *colon = strchr(text, ':');
    const size_t length = colon == NULL ? 0 : (size_t)(colon - text);
    if (colon == NULL || length >= META_STORE_ID_BYTES || strlen(colon + 1) >= size)
        return false;
    memcpy(node, text, length);
    node[length] = '\0';
    memcpy(rest, colon + 1, strlen(colon));
    return meta_json_is_id(node);
}

/* ---- a query */

static void add_text(struct base_text *t, const char *name, const char *value)
{
    if (value[0] == '\0')
        return;
    base_json_string(t, name, value);
}

int meta_proxy_send_query(struct meta_proxy *h, uint64_t now)
{
    const bool revoke = h->q.what == PROXY_REVOKE;
    struct base_text t;
    base_text_init(&t, sizeof h->query.members - 1);
    base_json_string(&t, "method", revoke ? "DELETE" : "GET");
    base_json_string(&t, "resource",
                     h->q.what == PROXY_STATUS ? "status"
                     : h->q.leases             ? "leases"
                                               : "workers");
    add_text(&t, "item", h->item);
    add_text(&t, "worker", h->worker);
    add_text(&t, "tenant", h->list.tenant);
    add_text(&t, "cursor", h->list.cursor);
    if (h->q.what == PROXY_LIST)
        base_json_u64(&t, "limit", h->q.limit);
    if (h->force)
        base_json_bool(&t, "force", true);
    int status = t.error;
    if (status == 0) {
        memcpy(h->query.members, t.data, t.length + 1);
        h->query.change = h->query.held = revoke; /* until it is in the trail */
        h->query.due_ns = revoke ? UINT64_MAX : now + (uint64_t)LOOK_S * BASE_NS_PER_S;
        status = meta_query_open(h->s, &h->query);
    }
    base_text_fini(&t);
    return status;
}

/* ---- why there is no answer */

static enum meta_rest_problem why_not_asked(const struct meta_proxy *h, int status,
                                            char out[PROXY_WHY_BYTES])
{
    struct meta_node_view view = {.state = META_NODE_FREE};
    (void)meta_directory_show(h->s->directory, h->query.node, 0, &view);
    if (status == -EAGAIN && h->query.change) {
        snprintf(out, PROXY_WHY_BYTES,
                 "at most %d revocations may be open, and %d of one token: try again soon",
                 META_CHANGE_QUERIES_MAX, META_CHANGE_QUERIES_OF_TOKEN);
        return REST_ASKS;
    }
    if (status == -EAGAIN) {
        snprintf(out, PROXY_WHY_BYTES,
                 "at most %d questions may be open, %d to one node and %d of one token, %d to one "
                 "node: try again soon",
                 META_QUERIES_MAX, META_QUERIES_OF_NODE, META_QUERIES_OF_TOKEN,
                 META_QUERIES_OF_TOKEN_AT_NODE);
        return REST_ASKS;
    }
    if (status != -ENOTCONN) {
        snprintf(out, PROXY_WHY_BYTES, "the question cannot be put: try again");
        return REST_ASKS;
    }
    if (view.state == META_NODE_LIVE)
        snprintf(out, PROXY_WHY_BYTES,
                 "the agent of node %s does not listen to this metaserver at this moment: ask "
                 "again soon, or another one",
                 h->query.node);
    else if (view.state == META_NODE_WAITING)
        snprintf(out, PROXY_WHY_BYTES,
                 "the agent of node %s has not registered here since this metaserver began, or "
                 "lost sight of it: ask again soon, or another one",
                 h->query.node);
    else
        snprintf(out, PROXY_WHY_BYTES,
                 "node %s is not registered here now: its agent does not run, or does not reach "
                 "this metaserver",
                 h->query.node);
    return REST_UNREACHABLE;
}

/* An agent has said that it cannot. */
static enum meta_rest_problem why_refused(const struct meta_proxy *h, char out[PROXY_WHY_BYTES])
{
    const struct proxy_answer *a = &h->answer;
    snprintf(out, PROXY_WHY_BYTES, "node %s: %s", h->query.node, a->detail);
    if (h->q.what == PROXY_STATUS && a->status == 400) { /* there is nothing to get wrong in it */
        snprintf(out, PROXY_WHY_BYTES,
                 "the agent of node %s is older than this question: update it, or ask there: "
                 "rdmactl agent status on its host",
                 h->query.node);
        return REST_UNREACHABLE;
    }
    if (h->q.what == PROXY_STATUS && a->status == 413) {
        snprintf(out, PROXY_WHY_BYTES,
                 "the status of node %s is too large to be passed on: ask there: rdmactl agent "
                 "status on its host",
                 h->query.node);
        return REST_UNREACHABLE;
    }
    switch (a->status) {
    case 400:
        return REST_MALFORMED;
    case 404:
        return h->item[0] != '\0' && h->q.leases ? REST_NO_LEASE : REST_NO_WORKER;
    case 409:
        return REST_BUSY;
    case 429:
        return REST_ASKS;
    case 503:
        return REST_UNREACHABLE;
    case 507:
        return REST_FULL;
    default:
        snprintf(out, PROXY_WHY_BYTES, "node %s answers %d: %s", h->query.node, a->status,
                 a->detail);
        return REST_SENSELESS;
    }
}

enum meta_rest_problem meta_proxy_why(const struct meta_proxy *h, int status,
                                      char out[PROXY_WHY_BYTES])
{
    const char *also =
        h->q.what == PROXY_REVOKE ? "; whether it has revoked anything is not known" : "";
    switch (h->query.state) {
    case META_QUERY_NONE:
    case META_QUERY_OPEN:
        break;
    case META_QUERY_LOST:
        snprintf(out, PROXY_WHY_BYTES, "the agent of node %s went before it answered: ask again%s",
                 h->query.node, also);
        return REST_UNREACHABLE;
    case META_QUERY_LATE:
        snprintf(out, PROXY_WHY_BYTES,
                 "the agent of node %s has not answered within %d s: see whether it runs%s",
                 h->query.node, h->q.what == PROXY_REVOKE ? REVOKE_S : LOOK_S, also);
        return REST_LATE;
    case META_QUERY_STOPPED:
        snprintf(out, PROXY_WHY_BYTES, "this metaserver stops: ask again%s", also);
        return REST_UNREACHABLE;
    case META_QUERY_ANSWERED:
        if (h->sensible)
            return why_refused(h, out);
        snprintf(out, PROXY_WHY_BYTES,
                 "node %s: %s %s: are its agent and this metaserver of one "
                 "version?",
                 h->query.node, h->violation.field, h->violation.detail);
        return REST_SENSELESS;
    }
    return why_not_asked(h, status, out);
}

void meta_proxy_refuse(struct call *c, const struct meta_proxy *h, int status)
{
    char why[PROXY_WHY_BYTES];
    const enum meta_rest_problem problem = meta_proxy_why(h, status, why);
    meta_rest_problem(c, problem, why);
}

/* ---- one, and revoking */

bool meta_proxy_node_is_known(struct call *c, const char *node)
{
    struct meta_node_view view;
    char detail[120];
    if (meta_directory_show(c->s->directory, node, c->now, &view) == 0)
        return true;
    snprintf(detail, sizeof detail, "there is no node %.63s here: see rdmactl node list", node);
    meta_rest_problem(c, REST_NO_NODE, detail);
    return false;
}

/* ---- the trail */

/* An entry of a revocation: that it is asked for; or what became of it instead. The proxy stays as
 * long as this. */
struct trail_write {
    struct meta_write base;
    struct meta_proxy *h;
    char failed[META_REVOCATION_FAILED_BYTES];
    struct meta_service_change x;
};

static bool begin_entry(struct call *c, struct meta_write *w)
{
    struct trail_write *t = (struct trail_write *)w;
    const struct meta_proxy *h = t->h;
    struct meta_revocation r = {.worker = h->item[0] == '\0', .force = h->force};
    snprintf(r.id, sizeof r.id, "%s", r.worker ? h->worker : h->item);
    memcpy(r.failed, t->failed, sizeof r.failed);
    meta_resources_plan_revocation(c->s->resources, h->query.node, &r, &t->x.change);
    t->x.change.time_ms = h->wall_ms + (c->now - h->asked_ns) / BASE_NS_PER_MS;
    memcpy(t->x.change.who, h->who, sizeof t->x.change.who);
    if (meta_service_write_change(c->s, &t->x, &w->job.txn) == 0)
        return true;
    meta_rest_problem(c, REST_STORE, "out of memory: try again");
    return false;
}

/* Now its agent may hear of it. */
static void end_asking(struct call *c, struct meta_write *w)
{
    struct trail_write *t = (struct trail_write *)w;
    if (!meta_write_is_stored(c, w))
        return;
    meta_service_changed(c->s, &t->x, &w->job.outcome);
    t->h->trail = PROXY_TRAIL_ASKED;
    if (t->h->query.state == META_QUERY_OPEN)
        meta_query_release(&t->h->query, c->now + (uint64_t)REVOKE_S * BASE_NS_PER_S);
    c->answer->status = META_SERVICE_LATER; /* by the proxy */
}

/* The write answers its client, unless it has come so far that the proxy does. */
static void free_asking(struct meta_write *w)
{
    struct trail_write *t = (struct trail_write *)w;
    if (t->h->trail == PROXY_TRAIL_ASKS) {
        LIST_REMOVE(t->h, link);
        meta_proxy_free(t->h);
    }
    meta_service_change_fini(&t->x);
    free(t);
}

/* The client hears why in any case; that the store failed is in the log. */
static void end_failing(struct call *c, struct meta_write *w)
{
    struct trail_write *t = (struct trail_write *)w;
    if (meta_write_is_stored(c, w))
        meta_service_changed(c->s, &t->x, &w->job.outcome);
}

static void free_failing(struct meta_write *w)
{
    struct trail_write *t = (struct trail_write *)w;
    t->h->trail = PROXY_TRAIL_FAILED;
    meta_service_change_fini(&t->x);
    free(t);
}

/* Says who and what, before anybody is asked: the query is held until that is in the trail. Takes
 * h. */
static void write_asking(struct call *c, struct meta_proxy *h)
{
    static const struct meta_write_kind asking = {
        .what = "revoking", .begin = begin_entry, .end = end_asking, .free = free_asking};
    struct trail_write *t = calloc(1, sizeof *t);
    if (t == NULL) {
        meta_rest_problem(c, REST_ASKS, "out of memory: try again");
        meta_proxy_free(h);
        return;
    }
    meta_write_init(&t->base, &asking, c);
    t->h = h;
    h->trail = PROXY_TRAIL_ASKS;
    h->wall_ms = c->wall_ms;
    h->asked_ns = c->now;
    memcpy(h->who, c->who, sizeof h->who);
    LIST_INSERT_HEAD(&c->s->proxies, h, link);
    meta_write_decide(c, &t->base);
}

/* What was asked for is in the trail, and was not done, or nobody knows: that has an entry too. */
static void write_failing(struct call *c, struct meta_proxy *h)
{
    static const struct meta_write_kind failing = {.what = "revoking",
                                                   .must = true,
                                                   .begin = begin_entry,
                                                   .end = end_failing,
                                                   .free = free_failing};
    char why[PROXY_WHY_BYTES];
    const enum meta_rest_problem problem = meta_proxy_why(h, 0, why);
    const bool withdrawn = h->query.state == META_QUERY_OPEN; /* before the agent heard of it */
    struct trail_write *t = calloc(1, sizeof *t);
    h->trail = PROXY_TRAIL_FAILED;
    if (t == NULL)
        return;
    h->trail = PROXY_TRAIL_FAILS;
    t->base.kind = &failing;
    t->h = h;
    memcpy(t->base.id, h->query.node, sizeof t->base.id);
    snprintf(t->failed, sizeof t->failed, "%s",
             withdrawn ? "client-gone" : meta_rest_problem_name(problem));
    meta_write_add(c->s, &t->base);
}

/* Takes h. */
static void ask_one(struct call *c, struct meta_proxy *h)
{
    if (meta_proxy_node_is_known(c, h->query.node)) {
        const int status = meta_proxy_send_query(h, c->now);
        if (status != 0) {
            meta_proxy_refuse(c, h, status);
        } else if (h->q.what == PROXY_REVOKE) {
            write_asking(c, h);
            return;
        } else {
            meta_proxy_wait(c, h);
            return;
        }
    }
    meta_proxy_free(h);
}

static void get_one(struct call *c, bool leases)
{
    struct meta_proxy *h = meta_proxy_new(c, leases);
    if (h == NULL)
        return;
    h->q.what = PROXY_ONE;
    memcpy(h->query.node, c->id, sizeof h->query.node);
    memcpy(h->item, c->of_node, sizeof h->item);
    ask_one(c, h);
}

void meta_rest_get_lease(struct call *c)
{
    get_one(c, true);
}

void meta_rest_get_worker(struct call *c)
{
    get_one(c, false);
}

void meta_rest_get_agent_status(struct call *c)
{
    struct meta_proxy *h = meta_proxy_new(c, false);
    if (h == NULL)
        return;
    h->q.what = PROXY_STATUS;
    memcpy(h->query.node, c->id, sizeof h->query.node);
    ask_one(c, h);
}

static void revoke_leases(struct call *c, const char *node, const char *lease, const char *worker)
{
    const char *force = c->request->parameter[META_PARAMETER_FORCE];
    if (force != NULL && strcmp(force, "1") != 0 && strcmp(force, "0") != 0) {
        meta_rest_malformed(c, "force", "must be 0 or 1");
        return;
    }
    struct meta_proxy *h = meta_proxy_new(c, true);
    if (h == NULL)
        return;
    h->q.what = PROXY_REVOKE;
    h->force = force != NULL && force[0] == '1';
    snprintf(h->query.node, sizeof h->query.node, "%s", node);
    snprintf(h->item, sizeof h->item, "%s", lease);
    snprintf(h->worker, sizeof h->worker, "%s", worker);
    ask_one(c, h);
}

void meta_rest_delete_lease(struct call *c)
{
    revoke_leases(c, c->id, c->of_node, "");
}

void meta_rest_delete_leases(struct call *c)
{
    const char *worker = c->request->parameter[META_PARAMETER_WORKER];
    char node[META_STORE_ID_BYTES], id[META_PROXY_ID_BYTES];
    if (worker == NULL || !meta_proxy_split(worker, node, id, sizeof id) || !meta_proxy_is_id(id))
        meta_rest_malformed(
            c, "worker", "must say whose, as NODE:ID, as rdmactl worker list --all-nodes shows it");
    else
        revoke_leases(c, node, "", id);
}

/* ---- agents' answers */

void meta_rest_put_answer(struct call *c)
{
    if (!meta_rest_has_json_of(c, META_JSON_MAX_ANSWER_BYTES))
        return;
    struct meta_query *query = meta_query_find(c->s, c->id, c->of_node);
    if (query == NULL) {
        meta_rest_problem(c, REST_NO_QUESTION, "it came too late, or was never asked");
        return;
    }
    struct meta_proxy *h =
        (struct meta_proxy *)((char *)query - offsetof(struct meta_proxy, query));
    const int status =
        meta_proxy_json_answer(c->request->body, c->request->body_bytes, &h->q, h->list.count > 0,
                               &h->out, &h->answer, &h->violation);
    h->sensible = status == 0;
    meta_query_answered(c->s, query, h->sensible);
    if (status != 0)
        meta_rest_malformed(c, h->violation.field, h->violation.detail);
    else
        c->answer->status = 204;
}

static void write_one(struct call *c, const struct meta_proxy *h)
{
    c->answer->status = h->answer.status;
    base_text_append(c->body, h->out.data, h->out.length);
    base_text_append(c->body, "\n", 1);
}

/* Whether somebody waits for the end of its query: its client; or the trail, in which a revocation
 * that an agent has heard of is not to stand as done when the agent refuses it. */
static bool is_awaited(const struct meta_proxy *h, bool wanted)
{
    return wanted || (h->q.what == PROXY_REVOKE && h->query.sent);
}

/* Answers its client. False: it goes on. */
static bool conclude_proxy(struct call *c, struct meta_proxy *h)
{
    if (h->trail == PROXY_TRAIL_ASKS || h->trail == PROXY_TRAIL_FAILS)
        return false;
    const bool wanted = h->s->gone == NULL || !h->s->gone(h->token);
    if (h->query.state == META_QUERY_OPEN && is_awaited(h, wanted) &&
        h->trail != PROXY_TRAIL_FAILED)
        return false;
    if (h->q.what == PROXY_LIST && wanted) {
        const int status = meta_proxy_list_step(h, c->now);
        if (status == -EINPROGRESS)
            return false;
        if (status == 0)
            meta_proxy_list_write(c, h);
        else
            meta_proxy_refuse(c, h, status);
    } else if (h->query.state == META_QUERY_ANSWERED && h->sensible && h->answer.status < 400) {
        write_one(c, h);
    } else {
        if (h->trail == PROXY_TRAIL_ASKED) {
            h->query.held = true; /* what the agent has not heard of it will not hear of */
            write_failing(c, h);
        }
        if (h->trail == PROXY_TRAIL_FAILS)
            return false;
        meta_proxy_refuse(c, h, 0);
    }
    return true;
}

void meta_rest_proxy_advance(struct meta_service *s, uint64_t now)
{
    meta_queries_expire(s, now);
    for (struct meta_proxy *h = LIST_FIRST(&s->proxies), *next; h != NULL; h = next) {
        struct base_text body;
        struct meta_service_answer answer = META_SERVICE_ANSWER;
        struct call c = {.s = s, .now = now, .body = &body, .answer = &answer};
        next = LIST_NEXT(h, link);
        base_text_init(&body, PROXY_PAGE_BYTES * 2);
        if (conclude_proxy(&c, h)) {
            LIST_REMOVE(h, link);
            s->count.http[answer.status]++;
            s->answer(h->token, &answer, &body);
            meta_proxy_free(h);
        }
        base_text_fini(&body);
    }
}

void meta_rest_proxy_abandon(struct meta_service *s, uint64_t now)
{
    struct meta_proxy *h;
    while ((h = LIST_FIRST(&s->proxies)) != NULL) {
        struct base_text body;
        struct meta_service_answer answer = META_SERVICE_ANSWER;
        struct call c = {.s = s, .now = now, .body = &body, .answer = &answer};
        LIST_REMOVE(h, link);
        if (h->trail == PROXY_TRAIL_ASKS)
            continue; /* its write has answered, and has it */
        base_text_init(&body, PROXY_PAGE_BYTES);
        meta_proxy_refuse(&c, h, 0);
        s->answer(h->token, &answer, &body);
        base_text_fini(&body);
        meta_proxy_free(h);
    }
}
