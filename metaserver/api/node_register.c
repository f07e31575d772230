/* SPDX-License-Identifier: Apache-2.0 */
/* PUT /v1/nodes/{id}. With an initiator it is answered when the responder for it is ready; until
 * then nothing of the node is changed, so that what is refused or given up leaves everything as it
 * was.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "metaserver/json.h"
#include "rest_private.h"

#define ANSWER_MAX 4096 /* bytes of one that comes later */

/* A registration that waits for its queue pair. */
struct pending {
    struct meta_responder_request request;
    struct meta_service *s;
    void *token;
    struct meta_registration registration;
};

static struct pending *pending_of(const struct meta_responder_request *request)
{
    return (struct pending *)((char *)request - offsetof(struct pending, request));
}

/* ---- what is said --------------------------------------------------------------------------- */

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
    base_json_hex64(c->body, "generation", table->generation);
    write_endpoint(c->body, e, ready);
    base_json_object(c->body, "table");
    base_json_hex64(c->body, "addr", e->table_addr);
    base_json_u64(c->body, "rkey", e->table_rkey);
    base_json_u64(c->body, "log2_slots", table->log2_slots);
    base_json_hex64(c->body, "seed", table->seed);
    base_json_hex64(c->body, "generation", table->generation);
    base_json_u64(c->body, "version", table->version);
    base_json_object_end(c->body);
    base_json_object_end(c->body);
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}

static void refuse_registration(struct call *c, int status, const struct meta_verdict *verdict,
                                const struct base_errbuf *err)
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
    case -ENOSPC:
        meta_rest_problem_of(c, REST_FULL, field,
                             "raise max_endpoints in the metaserver's configuration");
        return;
    default:
        meta_rest_problem(c, REST_STORE, err->text);
    }
}

/* Registers; ready: what the node reads through, or NULL. 0, or the answer says why not. */
static int register_node(struct call *c, const struct meta_registration *r,
                         const struct meta_responder_request *ready)
{
    struct meta_verdict verdict;
    struct base_errbuf err;
    int status = meta_service_register(c->s, r, c->now, &verdict, &err);
    if (status != 0) {
        refuse_registration(c, status, &verdict, &err);
        return status;
    }
    c->answer->status = verdict.created ? 201 : 200;
    write_registered(c, r->incarnation, ready);
    return 0;
}

/* ---- later ---------------------------------------------------------------------------------- */

static bool is_wanted(const struct meta_responder_request *request)
{
    const struct pending *p = pending_of(request);
    return p->s->gone == NULL || !p->s->gone(p->token);
}

static void register_later(struct call *c, const struct meta_registration *r,
                           const struct meta_responder_peer *peer)
{
    struct meta_verdict verdict;
    int status = meta_service_check(c->s, r, &verdict);
    if (status != 0) { /* before a queue pair is spent on it */
        refuse_registration(c, status, &verdict, NULL);
        return;
    }
    struct pending *p = calloc(1, sizeof *p);
    if (p == NULL) {
        meta_rest_problem(c, REST_NO_QUEUE_PAIR, "out of memory: try again");
        return;
    }
    *p = (struct pending){.s = c->s,
                          .token = c->request->token,
                          .registration = *r,
                          .request = {.peer = *peer, .wanted = is_wanted}};
    memcpy(p->request.id, r->id, sizeof p->request.id);
    status = meta_responders_request(c->s->responders, &p->request);
    if (status != 0) {
        meta_rest_problem(c, REST_NO_QUEUE_PAIR, p->request.err.text);
        free(p);
        return;
    }
    c->answer->status = META_SERVICE_LATER;
}

static void conclude_registration(struct call *c, struct pending *p)
{
    struct meta_responder_request *request = &p->request;
    uint32_t suppressed;
    if (request->status == 0) {
        if (register_node(c, &p->registration, request) == 0)
            meta_responders_keep(c->s->responders, request);
        else
            meta_responders_discard(c->s->responders, request);
        return;
    }
    if (request->status != -ECANCELED &&
        base_log_allow(&c->s->reader_log, c->now, 10 * BASE_NS_PER_S, 10, &suppressed))
        meta_world_log(c->s->world, BASE_LOG_WARN, "no queue pair for a reader",
                       "node=%s error=\"%s\" suppressed=%u", c->id, request->err.text, suppressed);
    meta_rest_problem(c, REST_NO_QUEUE_PAIR, request->err.text);
}

void meta_service_advance(struct meta_service *s, uint64_t now)
{
    struct meta_responder_request *request;
    meta_rest_proxy_advance(s, now);
    while (s->responders != NULL && (request = meta_responders_next(s->responders)) != NULL) {
        struct pending *p = pending_of(request);
        struct base_text body;
        struct meta_service_answer answer = META_SERVICE_ANSWER;
        struct call c = {.s = s, .now = now, .body = &body, .answer = &answer};
        memcpy(c.id, request->id, sizeof c.id);
        base_text_init(&body, ANSWER_MAX);
        meta_service_lapse(s, now);
        conclude_registration(&c, p);
        s->count.http[answer.status]++;
        s->answer(p->token, &answer, &body);
        base_text_fini(&body);
        free(p);
    }
}

/* Whether the caller may say that these GIDs are the node's; else the answer has been given. */
static bool owns_gids(struct call *c, const struct meta_registration *r,
                      const struct meta_responder_peer *initiator)
{
    struct meta_violation violation = {.field = ""};
    char text[BASE_GID_TEXT];
    const uint8_t *gid = NULL;
    for (uint32_t i = 0; gid == NULL && i < r->endpoint_count; i++)
        if (!meta_access_has_gid(&c->caller, r->endpoint[i].gid)) {
            gid = r->endpoint[i].gid;
            snprintf(violation.field, sizeof violation.field, "endpoints[%" PRIu32 "].gid", i);
        }
    if (gid == NULL && initiator->qpn != 0 && !meta_access_has_gid(&c->caller, initiator->gid)) {
        gid = initiator->gid;
        snprintf(violation.field, sizeof violation.field, "reader.gid");
    }
    if (gid == NULL)
        return true;
    snprintf(violation.detail, sizeof violation.detail,
             "the agent's token does not list the GID %s: add it to its gids",
             base_gid_format(gid, text));
    meta_rest_forbidden(c, "agent", &violation);
    return false;
}

/* ---- now ------------------------------------------------------------------------------------ */

/* Whether this life of the node has given some already: then it changes its endpoints alone. */
static bool has_responders(const struct call *c, const struct meta_registration *r)
{
    struct meta_verdict verdict = {.known_incarnation = 0};
    return c->s->responders != NULL && meta_responders_has(c->s->responders, r->id) &&
           meta_directory_check(c->s->directory, r, &verdict) == 0 &&
           verdict.known_incarnation == r->incarnation;
}

void meta_rest_put_node(struct call *c)
{
    struct meta_registration r;
    struct meta_responder_peer initiator;
    struct meta_violation violation;
    if (!meta_rest_has_json(c))
        return;
    if (meta_json_registration(c->id, c->request->body, c->request->body_bytes, &r, &initiator,
                               &violation) != 0) {
        meta_rest_problem_of(c, REST_MALFORMED, violation.field, violation.detail);
    } else if (!owns_gids(c, &r, &initiator)) {
        return;
    } else if (initiator.qpn == 0 && c->s->endpoint.dct_number == 0 && !has_responders(c, &r)) {
        c->s->count.readerless++;
        meta_rest_problem_of(
            c, REST_READER, "reader",
            "this metaserver's device has no DC transport: give the queue pair that "
            "will read the table");
    } else if (initiator.qpn == 0) {
        (void)register_node(c, &r, NULL);
    } else if (c->s->responders == NULL) {
        c->s->count.readerless++;
        meta_rest_problem_of(
            c, REST_READER, "reader",
            "this metaserver's device has no RC transport: read the table over DC");
    } else {
        register_later(c, &r, &initiator);
    }
}
