/* SPDX-License-Identifier: Apache-2.0 */
/* PUT /v1/nodes/{id}. With a reader it is answered when the queue pair for it is ready; until then
 * nothing of the node is changed, so that what is refused or given up leaves everything as it was.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "metaserver/json.h"
#include "rest_private.h"

#define ANSWER_MAX 4096 /* bytes of one that comes later */

/* A registration that waits for its queue pair. */
struct pending {
    struct kedge_reader_ask ask;
    struct kedge_service *s;
    void *token;
    struct kedge_meta_registration registration;
};

static struct pending *pending_of(const struct kedge_reader_ask *ask)
{
    return (struct pending *)((char *)ask - offsetof(struct pending, ask));
}

/* ---- what is said --------------------------------------------------------------------------- */

static void write_endpoint(struct kedge_text *out, const struct kedge_service_endpoint *e,
                           const struct kedge_reader_ask *ready)
{
    char gid[KEDGE_GID_TEXT];
    kedge_text_printf(out, "\"endpoint\":{\"gid\":\"%s\"", kedge_gid_format(e->gid, gid));
    if (e->lid != 0)
        kedge_text_printf(out, ",\"lid\":%u", e->lid);
    if (e->dct_number != 0)
        kedge_text_printf(out, ",\"dct_number\":%" PRIu32 ",\"dc_key\":\"%016" PRIx64 "\"",
                          e->dct_number, e->dc_key);
    if (ready != NULL)
        kedge_text_printf(
            out, ",\"rc\":{\"qpn\":%" PRIu32 ",\"psn\":%" PRIu32 ",\"mtu\":%u,\"reads\":%u}",
            ready->qpn, ready->psn, 128u << ready->mtu, ready->reads);
    kedge_text_printf(out, "},");
}

static void write_registered(struct call *c, uint32_t incarnation,
                             const struct kedge_reader_ask *ready)
{
    const struct kedge_service_endpoint *e = &c->s->endpoint;
    const struct kedge_table_desc *table = kedge_meta_table(c->s->meta);
    uint64_t lease_ms = c->s->node_lease_ns / KEDGE_NS_PER_MS;
    kedge_text_printf(c->body,
                      "{\"id\":\"%s\",\"incarnation\":%" PRIu32 ",\"node_lease_ms\":%" PRIu64
                      ",\"metaserver\":{\"generation\":\"%016" PRIx64 "\",",
                      c->id, incarnation, lease_ms, table->generation);
    write_endpoint(c->body, e, ready);
    kedge_text_printf(c->body,
                      "\"table\":{\"addr\":\"%016" PRIx64 "\",\"rkey\":%" PRIu32
                      ",\"log2_slots\":%" PRIu32 ",\"seed\":\"%016" PRIx64
                      "\",\"generation\":\"%016" PRIx64 "\",\"version\":%u}}}\n",
                      e->table_addr, e->table_rkey, table->log2_slots, table->seed,
                      table->generation, (unsigned)table->version);
}

static void refuse_registration(struct call *c, int status,
                                const struct kedge_meta_verdict *verdict,
                                const struct kedge_errbuf *err)
{
    char detail[160], field[32] = "";
    if (verdict->endpoint != UINT32_MAX)
        snprintf(field, sizeof field, "endpoints[%" PRIu32 "]", verdict->endpoint);
    switch (status) {
    case -ESTALE:
        rest_stale(c, verdict->known_incarnation);
        return;
    case -EEXIST:
        snprintf(detail, sizeof detail, "it is of node %s: remove that one, or let it expire",
                 verdict->owner);
        rest_problem_of(c, REST_TAKEN, field, detail);
        return;
    case -ENOSPC:
        rest_problem_of(c, REST_FULL, field,
                        "raise max_endpoints in the metaserver's configuration");
        return;
    default:
        rest_problem(c, REST_STORE, err->text);
    }
}

/* Registers; ready: what the node reads through, or NULL. 0, or the answer says why not. */
static int register_node(struct call *c, const struct kedge_meta_registration *r,
                         const struct kedge_reader_ask *ready)
{
    struct kedge_meta_verdict verdict;
    struct kedge_errbuf err;
    int status = kedge_service_register(c->s, r, c->now, &verdict, &err);
    if (status != 0) {
        refuse_registration(c, status, &verdict, &err);
        return status;
    }
    c->answer->status = verdict.created ? 201 : 200;
    write_registered(c, r->incarnation, ready);
    return 0;
}

/* ---- later ---------------------------------------------------------------------------------- */

static bool is_wanted(const struct kedge_reader_ask *ask)
{
    const struct pending *p = pending_of(ask);
    return p->s->gone == NULL || !p->s->gone(p->token);
}

static void register_later(struct call *c, const struct kedge_meta_registration *r,
                           const struct kedge_reader_peer *peer)
{
    struct kedge_meta_verdict verdict;
    int status = kedge_service_check(c->s, r, &verdict);
    if (status != 0) { /* before a queue pair is spent on it */
        refuse_registration(c, status, &verdict, NULL);
        return;
    }
    struct pending *p = calloc(1, sizeof *p);
    if (p == NULL) {
        rest_problem(c, REST_NO_QUEUE_PAIR, "out of memory: try again");
        return;
    }
    *p = (struct pending){.s = c->s,
                          .token = c->request->token,
                          .registration = *r,
                          .ask = {.peer = *peer, .wanted = is_wanted}};
    memcpy(p->ask.id, r->id, sizeof p->ask.id);
    status = kedge_readers_ask(c->s->readers, &p->ask);
    if (status != 0) {
        rest_problem(c, REST_NO_QUEUE_PAIR, p->ask.err.text);
        free(p);
        return;
    }
    c->answer->status = KEDGE_SERVICE_LATER;
}

static void conclude_registration(struct call *c, struct pending *p)
{
    struct kedge_reader_ask *ask = &p->ask;
    uint32_t suppressed;
    if (ask->status == 0) {
        if (register_node(c, &p->registration, ask) == 0)
            kedge_readers_keep(c->s->readers, ask);
        else
            kedge_readers_discard(c->s->readers, ask);
        return;
    }
    if (ask->status != -ECANCELED &&
        kedge_log_allow(&c->s->reader_log, c->now, 10 * KEDGE_NS_PER_S, 10, &suppressed))
        kedge_log(KEDGE_LOG_WARN, "no queue pair for a reader",
                  "node=%s error=\"%s\" suppressed=%u", c->id, ask->err.text, suppressed);
    rest_problem(c, REST_NO_QUEUE_PAIR, ask->err.text);
}

void kedge_service_advance(struct kedge_service *s, uint64_t now)
{
    struct kedge_reader_ask *ask;
    rest_held_advance(s, now);
    while (s->readers != NULL && (ask = kedge_readers_next(s->readers)) != NULL) {
        struct pending *p = pending_of(ask);
        struct kedge_text body;
        struct kedge_service_answer answer = KEDGE_SERVICE_ANSWER;
        struct call c = {.s = s, .now = now, .body = &body, .answer = &answer};
        memcpy(c.id, ask->id, sizeof c.id);
        kedge_text_init(&body, ANSWER_MAX);
        kedge_service_lapse(s, now);
        conclude_registration(&c, p);
        s->count.http[answer.status]++;
        s->answer(p->token, &answer, &body);
        kedge_text_fini(&body);
        free(p);
    }
}

/* Whether the caller may say that these GIDs are the node's; else the answer has been given. */
static bool owns_gids(struct call *c, const struct kedge_meta_registration *r,
                      const struct kedge_reader_peer *reader)
{
    struct kedge_fault fault = {.field = ""};
    char text[KEDGE_GID_TEXT];
    const uint8_t *gid = NULL;
    for (uint32_t i = 0; gid == NULL && i < r->endpoint_count; i++)
        if (!kedge_access_has_gid(&c->caller, r->endpoint[i].gid)) {
            gid = r->endpoint[i].gid;
            snprintf(fault.field, sizeof fault.field, "endpoints[%" PRIu32 "].gid", i);
        }
    if (gid == NULL && reader->qpn != 0 && !kedge_access_has_gid(&c->caller, reader->gid)) {
        gid = reader->gid;
        snprintf(fault.field, sizeof fault.field, "reader.gid");
    }
    if (gid == NULL)
        return true;
    snprintf(fault.detail, sizeof fault.detail,
             "the agent's token does not list the GID %s: add it to its gids",
             kedge_gid_format(gid, text));
    rest_forbidden(c, "agent", &fault);
    return false;
}

/* ---- now ------------------------------------------------------------------------------------ */

/* Whether this life of the node has given some already: then it changes its endpoints alone. */
static bool has_readers(const struct call *c, const struct kedge_meta_registration *r)
{
    struct kedge_meta_verdict verdict = {.known_incarnation = 0};
    return c->s->readers != NULL && kedge_readers_has(c->s->readers, r->id) &&
           kedge_meta_check(c->s->meta, r, &verdict) == 0 &&
           verdict.known_incarnation == r->incarnation;
}

void rest_put_node(struct call *c)
{
    struct kedge_meta_registration r;
    struct kedge_reader_peer reader;
    struct kedge_fault fault;
    if (!rest_has_json(c))
        return;
    if (kedge_json_registration(c->id, c->request->body, c->request->body_bytes, &r, &reader,
                                &fault) != 0) {
        rest_problem_of(c, REST_MALFORMED, fault.field, fault.detail);
    } else if (!owns_gids(c, &r, &reader)) {
        return;
    } else if (reader.qpn == 0 && c->s->endpoint.dct_number == 0 && !has_readers(c, &r)) {
        c->s->count.readerless++;
        rest_problem_of(c, REST_READER, "reader",
                        "this metaserver's device has no DC transport: give the queue pair that "
                        "will read the table");
    } else if (reader.qpn == 0) {
        (void)register_node(c, &r, NULL);
    } else if (c->s->readers == NULL) {
        c->s->count.readerless++;
        rest_problem_of(c, REST_READER, "reader",
                        "this metaserver's device has no RC transport: read the table over DC");
    } else {
        register_later(c, &r, &reader);
    }
}
