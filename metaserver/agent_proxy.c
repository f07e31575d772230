/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/leases and /v1/workers: asked of the agents when somebody looks, and not kept here. */
#include "agent_proxy.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "metaserver/json.h"

enum { LOOK_S = 5, REVOKE_S = 35 /* agents answer within 30 */ };

struct kedge_held *held_new(struct call *c, bool leases)
{
    struct kedge_held *h = calloc(1, sizeof *h);
    if (h == NULL) {
        rest_problem(c, REST_ASKS, "out of memory: try again");
        return NULL;
    }
    h->s = c->s;
    h->token = c->request->token;
    h->q.leases = leases;
    if (c->caller.kind == KEDGE_CALLER_TOKEN)
        snprintf(h->ask.token, sizeof h->ask.token, "%s", c->caller.token->name);
    h->q.node = h->ask.node;
    h->q.id = h->item;
    kedge_text_init(&h->out, HELD_PAGE_BYTES);
    kedge_text_init(&h->list.why, HELD_PAGE_BYTES);
    return h;
}

void held_free(struct kedge_held *h)
{
    kedge_ask_end(h->s, &h->ask);
    kedge_text_fini(&h->out);
    kedge_text_fini(&h->list.why);
    free(h);
}

void held_wait(struct call *c, struct kedge_held *h)
{
    LIST_INSERT_HEAD(&c->s->held, h, link);
    c->answer->status = KEDGE_SERVICE_LATER;
}

bool held_split(const char *text, char node[KEDGE_STORE_ID_BYTES], char *rest, size_t size)
{
    const char *colon = strchr(text, ':');
    const size_t length = colon == NULL ? 0 : (size_t)(colon - text);
    if (colon == NULL || length >= KEDGE_STORE_ID_BYTES || strlen(colon + 1) >= size)
        return false;
    memcpy(node, text, length);
    node[length] = '\0';
    memcpy(rest, colon + 1, strlen(colon));
    return kedge_json_is_id(node);
}

/* ---- a question ----------------------------------------------------------------------------- */

static void add_text(struct kedge_text *t, const char *name, const char *value)
{
    if (value[0] == '\0')
        return;
    kedge_text_printf(t, ",\"%s\":", name);
    kedge_text_json(t, value);
}

int held_ask(struct kedge_held *h, uint64_t now)
{
    const bool revoke = h->q.what == HELD_REVOKE;
    struct kedge_text t;
    kedge_text_init(&t, sizeof h->ask.members - 1);
    kedge_text_printf(&t, "\"method\":\"%s\",\"resource\":\"%s\"", revoke ? "DELETE" : "GET",
                      h->q.leases ? "leases" : "workers");
    add_text(&t, "item", h->item);
    add_text(&t, "worker", h->worker);
    add_text(&t, "tenant", h->list.tenant);
    add_text(&t, "cursor", h->list.cursor);
    if (h->q.what == HELD_LIST)
        kedge_text_printf(&t, ",\"limit\":%" PRIu64, h->q.limit);
    if (h->force)
        kedge_text_printf(&t, ",\"force\":true");
    int status = t.error;
    if (status == 0) {
        memcpy(h->ask.members, t.data, t.length + 1);
        h->ask.change = revoke;
        h->ask.due_ns = now + (uint64_t)(revoke ? REVOKE_S : LOOK_S) * KEDGE_NS_PER_S;
        status = kedge_ask(h->s, &h->ask);
    }
    kedge_text_fini(&t);
    return status;
}

/* ---- why there is no answer ----------------------------------------------------------------- */

static enum rest_problem why_not_asked(const struct kedge_held *h, int status,
                                       char out[HELD_WHY_BYTES])
{
    struct kedge_meta_view view = {.state = KEDGE_META_FREE};
    (void)kedge_meta_show(h->s->meta, h->ask.node, 0, &view);
    if (status == -EAGAIN && h->ask.change) {
        snprintf(out, HELD_WHY_BYTES,
                 "at most %d revocations may be open, and %d of one token: try again soon",
                 KEDGE_CHANGES_MAX, KEDGE_CHANGES_OF_TOKEN);
        return REST_ASKS;
    }
    if (status == -EAGAIN) {
        snprintf(out, HELD_WHY_BYTES,
                 "at most %d questions may be open, %d to one node and %d of one token: try again "
                 "soon",
                 KEDGE_ASKS_MAX, KEDGE_ASKS_OF_NODE, KEDGE_ASKS_OF_TOKEN);
        return REST_ASKS;
    }
    if (status != -ENOTCONN) {
        snprintf(out, HELD_WHY_BYTES, "the question cannot be put: try again");
        return REST_ASKS;
    }
    if (view.state == KEDGE_META_LIVE)
        snprintf(out, HELD_WHY_BYTES,
                 "the agent of node %s follows another metaserver, or none at this moment: ask "
                 "that one, or again soon",
                 h->ask.node);
    else
        snprintf(out, HELD_WHY_BYTES,
                 "node %s is not registered here now: its agent does not run, or does not reach "
                 "this metaserver",
                 h->ask.node);
    return REST_UNREACHABLE;
}

/* An agent has said that it cannot. */
static enum rest_problem why_refused(const struct kedge_held *h, char out[HELD_WHY_BYTES])
{
    const struct held_answer *a = &h->answer;
    snprintf(out, HELD_WHY_BYTES, "node %s: %s", h->ask.node, a->detail);
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
        snprintf(out, HELD_WHY_BYTES, "node %s answers %d: %s", h->ask.node, a->status, a->detail);
        return REST_SENSELESS;
    }
}

enum rest_problem held_why(const struct kedge_held *h, int status, char out[HELD_WHY_BYTES])
{
    const char *also =
        h->q.what == HELD_REVOKE ? "; whether it has revoked anything is not known" : "";
    switch (h->ask.state) {
    case KEDGE_ASK_NONE:
    case KEDGE_ASK_OPEN:
        break;
    case KEDGE_ASK_LOST:
        snprintf(out, HELD_WHY_BYTES, "the agent of node %s went before it answered: ask again%s",
                 h->ask.node, also);
        return REST_UNREACHABLE;
    case KEDGE_ASK_LATE:
        snprintf(out, HELD_WHY_BYTES,
                 "the agent of node %s has not answered within %d s: see whether it runs%s",
                 h->ask.node, h->q.what == HELD_REVOKE ? REVOKE_S : LOOK_S, also);
        return REST_LATE;
    case KEDGE_ASK_STOPPED:
        snprintf(out, HELD_WHY_BYTES, "this metaserver stops: ask again%s", also);
        return REST_UNREACHABLE;
    case KEDGE_ASK_ANSWERED:
        if (h->sensible)
            return why_refused(h, out);
        snprintf(out, HELD_WHY_BYTES,
                 "node %s: %s %s: are its agent and this metaserver of one "
                 "version?",
                 h->ask.node, h->fault.field, h->fault.detail);
        return REST_SENSELESS;
    }
    return why_not_asked(h, status, out);
}

void held_refuse(struct call *c, const struct kedge_held *h, int status)
{
    char why[HELD_WHY_BYTES];
    const enum rest_problem problem = held_why(h, status, why);
    rest_problem(c, problem, why);
}

/* ---- one, and revoking ---------------------------------------------------------------------- */

bool held_node_is_known(struct call *c, const char *node)
{
    struct kedge_meta_view view;
    char detail[120];
    if (kedge_meta_show(c->s->meta, node, c->now, &view) == 0)
        return true;
    snprintf(detail, sizeof detail, "there is no node %.63s here: see rdmactl node list", node);
    rest_problem(c, REST_NO_NODE, detail);
    return false;
}

/* Says who and what, before anybody is asked; else the answer has been given. */
static bool is_in_trail(struct call *c, const struct kedge_held *h)
{
    struct kedge_revocation r = {.worker = h->item[0] == '\0', .force = h->force};
    struct kedge_setting_change change;
    struct kedge_errbuf err;
    snprintf(r.id, sizeof r.id, "%s", r.worker ? h->worker : h->item);
    kedge_settings_plan_revocation(c->s->settings, h->ask.node, &r, &change);
    change.time_ms = c->request->wall_ms;
    snprintf(change.who, sizeof change.who, "%s", c->who);
    if (kedge_service_change(c->s, &change, c->now, &err) == 0)
        return true;
    rest_problem(c, REST_STORE, err.text);
    return false;
}

/* Takes h. */
static void ask_one(struct call *c, struct kedge_held *h)
{
    if (held_node_is_known(c, h->ask.node)) {
        const int status = held_ask(h, c->now);
        if (status != 0) {
            held_refuse(c, h, status);
        } else if (h->q.what != HELD_REVOKE || is_in_trail(c, h)) {
            held_wait(c, h);
            return;
        }
    }
    held_free(h);
}

static void get_one(struct call *c, bool leases)
{
    struct kedge_held *h = held_new(c, leases);
    if (h == NULL)
        return;
    h->q.what = HELD_ONE;
    memcpy(h->ask.node, c->id, sizeof h->ask.node);
    memcpy(h->item, c->of_node, sizeof h->item);
    ask_one(c, h);
}

void rest_get_lease(struct call *c)
{
    get_one(c, true);
}

void rest_get_worker(struct call *c)
{
    get_one(c, false);
}

static void revoke_leases(struct call *c, const char *node, const char *lease, const char *worker)
{
    const char *force = c->request->query[KEDGE_QUERY_FORCE];
    if (force != NULL && strcmp(force, "1") != 0 && strcmp(force, "0") != 0) {
        rest_malformed(c, "force", "must be 0 or 1");
        return;
    }
    struct kedge_held *h = held_new(c, true);
    if (h == NULL)
        return;
    h->q.what = HELD_REVOKE;
    h->force = force != NULL && force[0] == '1';
    snprintf(h->ask.node, sizeof h->ask.node, "%s", node);
    snprintf(h->item, sizeof h->item, "%s", lease);
    snprintf(h->worker, sizeof h->worker, "%s", worker);
    ask_one(c, h);
}

void rest_delete_lease(struct call *c)
{
    revoke_leases(c, c->id, c->of_node, "");
}

void rest_delete_leases(struct call *c)
{
    const char *worker = c->request->query[KEDGE_QUERY_WORKER];
    char node[KEDGE_STORE_ID_BYTES], id[KEDGE_HELD_ID_BYTES];
    if (worker == NULL || !held_split(worker, node, id, sizeof id) || !kedge_held_is_id(id))
        rest_malformed(c, "worker",
                       "must say whose, as NODE:ID, as rdmactl worker list --all-nodes shows it");
    else
        revoke_leases(c, node, "", id);
}

/* ---- agents' answers ------------------------------------------------------------------------ */

void rest_put_answer(struct call *c)
{
    if (!rest_has_json_of(c, KEDGE_JSON_MAX_ANSWER_BYTES))
        return;
    struct kedge_ask *ask = kedge_ask_find(c->s, c->id, c->of_node);
    if (ask == NULL) {
        rest_problem(c, REST_NO_QUESTION, "it came too late, or was never asked");
        return;
    }
    struct kedge_held *h = (struct kedge_held *)((char *)ask - offsetof(struct kedge_held, ask));
    const int status = held_json_answer(c->request->body, c->request->body_bytes, &h->q,
                                        h->list.count > 0, &h->out, &h->answer, &h->fault);
    h->sensible = status == 0;
    kedge_ask_answered(c->s, ask, h->sensible);
    if (status != 0)
        rest_malformed(c, h->fault.field, h->fault.detail);
    else
        c->answer->status = 204;
}

static void write_one(struct call *c, const struct kedge_held *h)
{
    c->answer->status = h->answer.status;
    kedge_text_append(c->body, h->out.data, h->out.length);
    kedge_text_printf(c->body, "\n");
}

/* Answers its client. False: it goes on. */
static bool conclude_proxy(struct call *c, struct kedge_held *h)
{
    const bool wanted = h->s->gone == NULL || !h->s->gone(h->token);
    if (h->ask.state == KEDGE_ASK_OPEN && wanted)
        return false;
    if (h->q.what == HELD_LIST && wanted) {
        const int status = held_list_step(h, c->now);
        if (status == -EINPROGRESS)
            return false;
        if (status == 0)
            held_list_write(c, h);
        else
            held_refuse(c, h, status);
    } else if (h->ask.state == KEDGE_ASK_ANSWERED && h->sensible && h->answer.status < 400) {
        write_one(c, h);
    } else {
        held_refuse(c, h, 0);
    }
    return true;
}

void rest_held_advance(struct kedge_service *s, uint64_t now)
{
    kedge_asks_lapse(s, now);
    for (struct kedge_held *h = LIST_FIRST(&s->held), *next; h != NULL; h = next) {
        struct kedge_text body;
        struct kedge_service_answer answer = KEDGE_SERVICE_ANSWER;
        struct call c = {.s = s, .now = now, .body = &body, .answer = &answer};
        next = LIST_NEXT(h, link);
        kedge_text_init(&body, HELD_PAGE_BYTES * 2);
        if (conclude_proxy(&c, h)) {
            LIST_REMOVE(h, link);
            s->count.http[answer.status]++;
            s->answer(h->token, &answer, &body);
            held_free(h);
        }
        kedge_text_fini(&body);
    }
}
