/* SPDX-License-Identifier: Apache-2.0 */
/* PUT /v1/nodes/{id}. With an initiator it goes on when the responder for it is ready; then, as
 * without one, it is decided when its turn comes, and answered when the store has it. Until then
 * nothing of the node is changed, so that what is refused or given up leaves everything as it was.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "metaserver/json.h"
#include "rest_private.h"

#define ANSWER_MAX 4096 /* bytes of one that comes later */

/* A registration that waits for its queue pair, then for its turn, then for the store. */
struct pending {
    struct meta_write write;
    struct meta_responder_request request; /* for no queue pair: its peer has none */
    bool has_responder;                    /* and it is neither kept nor discarded */
    struct meta_service *s;
    struct meta_registration registration;
    struct meta_verdict verdict;
    struct meta_store_node durable;
    struct meta_store_put put; /* of that */
};

static struct pending *pending_of(const struct meta_responder_request *request)
{
    return (struct pending *)((char *)request - offsetof(struct pending, request));
}

/* ---- what is said */

static void write_endpoint(struct base_text *out, const struct meta_service_endpoint *e,
                           const struct meta_responder_request *ready)
{
    char gid[BASE_GID_TEXT];
    base_json_object(out, "endpoint");
    base_json_string(out, "gid", base_gid_format(e->gid, gid));
    if (e->lid != 0)
        base_json_u64(out, "lid", e->lid);
    if (e->dct_number != 0) {
        base_json_u64(out, "dct_number", e->dct_number);
        base_json_hex64(out, "dc_key", e->dc_key);
    }
    if (ready != NULL) {
        base_json_object(out, "rc");
        base_json_u64(out, "qpn", ready->qpn);
        base_json_u64(out, "psn", ready->psn);
        base_json_u64(out, "mtu", 128u << ready->mtu);
        base_json_u64(out, "reads", ready->reads);
        base_json_object_end(out);
    }
    base_json_object_end(out);
}

/* addr: where the device has it. */
static void write_table(struct base_text *out, const char *what,
                        const struct schema_table_desc *table, uint64_t addr, uint32_t rkey)
{
    base_json_object(out, what);
    base_json_hex64(out, "addr", addr);
    base_json_u64(out, "rkey", rkey);
    base_json_u64(out, "log2_slots", table->log2_slots);
    base_json_hex64(out, "seed", table->seed);
    base_json_hex64(out, "generation", table->generation);
    base_json_u64(out, "version", table->version);
    base_json_object_end(out);
}

static void write_registered(struct call *c, uint32_t incarnation,
                             const struct meta_responder_request *ready)
{
    const struct meta_service_endpoint *e = &c->s->endpoint;
    const struct schema_table_desc *table = meta_directory_table(c->s->directory);
    uint64_t lease_ms = c->s->node_lease_ns / BASE_NS_PER_MS;
    base_json_object(c->body, NULL);
    base_json_string(c->body, "id", c->id);
    base_json_u64(c->body, "incarnation", incarnation);
    base_json_u64(c->body, "node_lease_ms", lease_ms);
    base_json_object(c->body, "metaserver");
    meta_rest_write_standing(c);
    base_json_hex64(c->body, "generation", table->generation);
    write_endpoint(c->body, e, ready);
    write_table(c->body, "table", table, e->table_addr, e->table_rkey);
    if (c->s->names != NULL)
        write_table(c->body, "names", meta_names_table(c->s->names), e->names_addr, e->table_rkey);
    base_json_object_end(c->body);
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}

static void refuse_registration(struct call *c, int status, const struct meta_verdict *verdict)
{
    char detail[160], field[32] = "";
    if (verdict->endpoint != UINT32_MAX)
        snprintf(field, sizeof field, "endpoints[%" PRIu32 "]", verdict->endpoint);
    switch (status) {
    case -ESTALE:
        meta_rest_stale(c, verdict->known_incarnation);
        return;
    case -EEXIST:
        snprintf(detail, sizeof detail, "it is of node %s: remove that one, or let it expire",
                 verdict->owner);
        meta_rest_problem_of(c, REST_TAKEN, field, detail);
        return;
    default:
        BASE_ASSERT(status == -ENOSPC);
        meta_rest_problem_of(c, REST_FULL, field,
                             "raise max_endpoints in the metaserver's configuration");
    }
}

/* ---- with the store */

/* Whether this life of the node has given some already: then it changes its endpoints alone. */
static bool has_responders(const struct call *c, const struct meta_registration *r)
{
    struct meta_verdict verdict = {.known_incarnation = 0};
    return c->s->responders != NULL && meta_responders_has(c->s->responders, r->id) &&
           meta_directory_check(c->s->directory, r, &verdict) == 0 &&
           verdict.known_incarnation == r->incarnation;
}

/* Whether it has what it reads the table through; else the answer has been given. */
static bool can_read(struct call *c, const struct pending *p)
{
    if (p->has_responder || c->s->endpoint.dct_number != 0 || has_responders(c, &p->registration))
        return true;
    c->s->count.readerless++;
    meta_rest_problem_of(c, REST_READER, "reader",
                         "this metaserver's device has no DC transport: give the queue pair that "
                         "will read the table");
    return false;
}

/* It is right, and the store has what there is to have. */
static void finish_registration(struct call *c, struct pending *p)
{
    meta_service_registered(c->s, &p->registration, &p->verdict, c->now);
    c->answer->status = p->verdict.created ? 201 : 200;
    write_registered(c, p->registration.incarnation, p->has_responder ? &p->request : NULL);
    if (p->has_responder)
        meta_responders_keep(c->s->responders, &p->request);
    p->has_responder = false;
}

static bool begin_registration(struct call *c, struct meta_write *w)
{
    struct pending *p = (struct pending *)w;
    struct meta_verdict *verdict = &p->verdict;
    if (!can_read(c, p))
        return false;
    const int status = meta_service_check(c->s, &p->registration, verdict);
    if (status != 0) {
        refuse_registration(c, status, verdict);
        return false;
    }
    const bool evicts = verdict->evict.id[0] != '\0';
    if (!verdict->write && !evicts) {
        finish_registration(c, p);
        return false;
    }
    meta_directory_durable(&p->registration, &p->durable);
    p->put = (struct meta_store_put){.node = &p->durable, .is_unknown = verdict->created};
    w->job.txn = (struct meta_store_txn){
        .remove = &verdict->evict, .remove_count = evicts, .puts = &p->put, .put_count = 1};
    return true;
}

static bool is_registration_kept(struct call *c, const struct meta_write *w)
{
    const struct pending *p = (const struct pending *)w;
    struct meta_verdict verdict;
    return meta_directory_check(c->s->directory, &p->registration, &verdict) == 0 &&
           !verdict.write && verdict.evict.id[0] == '\0';
}

/* Another metaserver knows of a later life, or of another owner. Whether this one knows it too by
 * now or not, the store is right. */
static bool is_refused_by_store(struct call *c, struct pending *p)
{
    const int status = p->write.job.outcome.status;
    struct meta_verdict now;
    if (status != -ESTALE && status != -EEXIST)
        return false;
    const int known = meta_service_check(c->s, &p->registration, &now);
    if (known != 0)
        refuse_registration(c, known, &now);
    else
        meta_rest_problem(c, REST_STORE,
                          "another metaserver knows a later life of this node, or another owner of "
                          "an endpoint: ask again");
    return true;
}

/* Leases may have ended meanwhile, its node's too: then its records are put into the table anew,
 * and others that moved there may have left them no room. What a shared store has is known here in
 * any case, as it is elsewhere. */
static void end_registration(struct call *c, struct meta_write *w)
{
    struct pending *p = (struct pending *)w;
    struct meta_verdict now;
    if (is_refused_by_store(c, p) || !meta_write_is_stored(c, w))
        return;
    if (w->job.txn.remove_count > 0)
        meta_directory_forget(c->s->directory, &p->verdict.evict);
    const int status = meta_service_check(c->s, &p->registration, &now);
    if (status == 0) {
        finish_registration(c, p);
        return;
    }
    if (c->s->hearing.shared)
        meta_service_hear_put(c->s, &p->durable, c->now);
    refuse_registration(c, status, &now);
}

static void discard_responder(struct meta_write *w)
{
    struct pending *p = (struct pending *)w;
    if (p->has_responder)
        meta_responders_discard(p->s->responders, &p->request);
    p->has_responder = false;
}

static void free_registration(struct meta_write *w)
{
    discard_responder(w);
    free(w);
}

static const struct meta_write_kind registering = {.what = "registering",
                                                   .gathers = true,
                                                   .begin = begin_registration,
                                                   .is_kept = is_registration_kept,
                                                   .end = end_registration,
                                                   .free = free_registration,
                                                   .abandon = discard_responder};

/* Of a call whose request is there. NULL: no memory, and the answer has been given. */
static struct pending *new_pending(struct call *c, const struct meta_registration *r)
{
    struct pending *p = calloc(1, sizeof *p);
    if (p == NULL) {
        meta_rest_problem(c, REST_CROWDED, "out of memory: try again");
        return NULL;
    }
    meta_write_init(&p->write, &registering, c);
    p->s = c->s;
    p->registration = *r;
    return p;
}

/* ---- with the device */

static bool is_wanted(const struct meta_responder_request *request)
{
    const struct pending *p = pending_of(request);
    return p->s->gone == NULL || !p->s->gone(p->write.token);
}

static void ask_responder(struct call *c, const struct meta_registration *r,
                          const struct meta_responder_peer *peer)
{
    struct meta_verdict verdict;
    int status = meta_service_check(c->s, r, &verdict);
    if (status != 0) { /* before a queue pair is spent on it */
        refuse_registration(c, status, &verdict);
        return;
    }
    struct pending *p = new_pending(c, r);
    if (p == NULL)
        return;
    p->request = (struct meta_responder_request){.peer = *peer, .wanted = is_wanted};
    memcpy(p->request.id, r->id, sizeof p->request.id);
    status = meta_responders_request(c->s->responders, &p->request);
    if (status != 0) {
        meta_rest_problem(c, REST_NO_QUEUE_PAIR, p->request.err.text);
        free(p);
        return;
    }
    c->answer->status = META_SERVICE_LATER;
}

/* Takes p. */
static void go_on(struct call *c, struct pending *p)
{
    const struct meta_responder_request *request = &p->request;
    uint32_t suppressed;
    if (request->status == 0) {
        p->has_responder = true;
        meta_write_decide(c, &p->write);
        return;
    }
    if (request->status != -ECANCELED &&
        base_log_allow(&c->s->reader_log, c->now, 10 * BASE_NS_PER_S, 10, &suppressed))
        meta_world_log(c->s->world, BASE_LOG_WARN, "no queue pair for a reader",
                       "node=%s error=\"%s\" suppressed=%u", c->id, request->err.text, suppressed);
    meta_rest_problem(c, REST_NO_QUEUE_PAIR, request->err.text);
    free(p);
}

void meta_rest_register_advance(struct meta_service *s, uint64_t now)
{
    struct meta_responder_request *request;
    while (s->responders != NULL && (request = meta_responders_next(s->responders)) != NULL) {
        struct pending *p = pending_of(request);
        void *token = p->write.token;
        struct base_text body;
        struct meta_service_answer answer = META_SERVICE_ANSWER;
        struct call c = {.s = s,
                         .now = now,
                         .wall_ms = meta_service_wall_ms(s, now),
                         .body = &body,
                         .answer = &answer};
        memcpy(c.id, request->id, sizeof c.id);
        base_text_init(&body, ANSWER_MAX);
        meta_service_lapse(s, now);
        go_on(&c, p);
        if (answer.status != META_SERVICE_LATER) {
            s->count.http[answer.status]++;
            s->answer(token, &answer, &body);
        }
        base_text_fini(&body);
    }
}

/* Whether the caller may say that these GIDs are the node's; else the answer has been given. */
static bool owns_gids(struct call *c, const struct meta_registration *r,
                      const struct meta_responder_peer *initiator)
{
    struct meta_violation violation = {.field = ""};
    char text[BASE_GID_TEXT];
    const uint8_t *gid = NULL;
    const char *lacks = NULL;
    for (uint32_t i = 0; lacks == NULL && i < r->endpoint_count; i++) {
        gid = r->endpoint[i].gid;
        lacks = meta_access_lacks_gid(&c->caller, gid);
        snprintf(violation.field, sizeof violation.field, "endpoints[%" PRIu32 "].gid", i);
    }
    if (lacks == NULL && initiator->qpn != 0) {
        gid = initiator->gid;
        lacks = meta_access_lacks_gid(&c->caller, gid);
        snprintf(violation.field, sizeof violation.field, "reader.gid");
    }
    if (lacks == NULL)
        return true;
    snprintf(violation.detail, sizeof violation.detail,
             "the agent's %s does not list the GID %s: %s", lacks, base_gid_format(gid, text),
             strcmp(lacks, "token") == 0 ? "add it to its gids"
                                         : "issue one that has it among its IP addresses");
    meta_rest_forbidden(c, "agent", &violation);
    return false;
}

/* ---- all of it */

static void register_now(struct call *c, const struct meta_registration *r)
{
    struct pending *p = new_pending(c, r);
    if (p != NULL)
        meta_write_decide(c, &p->write);
}

/* In a storm requests are read that were sent long ago: what is done for who has hung up meanwhile,
 * and asks again, keeps the others waiting until they do so too. Where nobody waits it is done: who
 * has closed only the direction in which it sends cannot be told from that. */
static bool is_left(struct call *c)
{
    if (c->s->writes.registrations == 0 || c->s->gone == NULL || !c->s->gone(c->request->token))
        return false;
    c->s->count.left++;
    meta_rest_problem(c, REST_STORE, "nobody waited for it any more");
    return true;
}

void meta_rest_put_node(struct call *c)
{
    struct meta_registration r;
    struct meta_responder_peer initiator;
    struct meta_violation violation;
    if (is_left(c))
        return;
    if (!meta_rest_has_json(c))
        return;
    if (meta_json_registration(c->id, c->request->body, c->request->body_bytes, &r, &initiator,
                               &violation) != 0) {
        meta_rest_problem_of(c, REST_MALFORMED, violation.field, violation.detail);
    } else if (!owns_gids(c, &r, &initiator)) {
        return;
    } else if (initiator.qpn == 0) {
        register_now(c, &r);
    } else if (c->s->responders == NULL) {
        c->s->count.readerless++;
        meta_rest_problem_of(
            c, REST_READER, "reader",
            "this metaserver's device has no RC transport: read the table over DC");
    } else {
        ask_responder(c, &r, &initiator);
    }
}
