/* SPDX-License-Identifier: Apache-2.0 */
#include "writes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "rest_private.h"
#include "writes_queue.h"

#define ANSWER_BYTES          (64 << 10) /* of one that comes later */
#define REGISTRATION_WAITS_NS (3 * BASE_NS_PER_S)
#define HEAR_NS               (1 * BASE_NS_PER_S) /* that is waited for what others did first */

enum { TRIES_MAX = 8 };

/* ---- the one that is first */

static void note_done(struct meta_store_job *job)
{
    struct meta_write *w = (struct meta_write *)job;
    BASE_ASSERT(w->state == META_WRITE_UNDER_WAY);
    w->state = META_WRITE_DONE;
}

/* The first one, with those behind it that are under way too. */
static void submit_first(struct meta_service *s)
{
    struct meta_write *w = s->writes.first;
    BASE_ASSERT(w->state == META_WRITE_UNDER_WAY && s->writes.under_way > 0);
    w->job.done = note_done;
    s->writes.began_ns = s->at;
    meta_world_submit(s->world, &w->job);
}

static void begin_first(struct meta_service *s)
{
    s->writes.first->state = META_WRITE_UNDER_WAY;
    s->writes.under_way = 1;
}

/* ---- who asks */

void meta_write_init(struct meta_write *w, const struct meta_write_kind *kind, const struct call *c)
{
    w->kind = kind;
    w->has_client = true;
    w->token = c->request->token;
    w->resource = c->kind;
    w->due_ns = UINT64_MAX;
    memcpy(w->id, c->id, sizeof w->id);
    memcpy(w->who, c->who, sizeof w->who);
    if (c->caller.kind == META_CALLER_NODE)
        snprintf(w->node, sizeof w->node, "%s", c->caller.node);
    if (c->caller.kind != META_CALLER_TOKEN)
        return;
    snprintf(w->shown, sizeof w->shown, "%s", c->caller.token->name);
    w->shown_revision = c->caller.token->revision;
}

/* Whether the token that its client has shown is what it was; else the answer has been given. */
static bool is_let_in(struct call *c, const struct meta_write *w)
{
    if (w->shown[0] == '\0')
        return true;
    const struct meta_resource *token = meta_resources_find(c->s->resources, META_TOKEN, w->shown);
    if (token != NULL && token->revision == w->shown_revision &&
        !meta_token_is_over(&token->token, c->wall_ms))
        return true;
    snprintf(c->answer->authenticate, sizeof c->answer->authenticate,
             "Bearer realm=\"kedge\", error=\"invalid_token\"");
    meta_rest_problem(c, REST_NO_VALID_TOKEN,
                      "the token was deleted or changed, or has expired, before it was its turn");
    return false;
}

/* Clients that have hung up count: what they asked for is with the store, or may be before anybody
 * looks. */
static uint32_t count_of_token(const struct meta_writes *q, const struct meta_write *like)
{
    uint32_t n = 0;
    for (const struct meta_write *w = q->first; w != NULL && like->shown[0] != '\0'; w = w->next)
        n += strcmp(w->shown, like->shown) == 0;
    for (const struct meta_write *w = q->first; w != NULL && like->node[0] != '\0'; w = w->next)
        n += strcmp(w->node, like->node) == 0;
    return n;
}

/* Whether one more registration would have its turn before its agent gives it up (CALL_MS of
 * agent/control/bounds.h): what is done for who has gone keeps the next one waiting. */
static bool has_time(const struct meta_writes *q)
{
    return q->registrations < META_REGISTRATIONS_MAX &&
           q->registrations * q->pace.each_ns < REGISTRATION_WAITS_NS;
}

/* A registration that finds no room is told to come again: when the others have, if it is not its
 * own token's that are too many. */
static void put_off(struct call *c, bool room)
{
    struct meta_writes *q = &c->s->writes;
    char detail[96];
    snprintf(detail, sizeof detail, "%" PRIu32 " registrations%s wait: come again in time",
             q->registrations, room ? ", too many of them of this token," : "");
    meta_rest_problem(c, REST_STORM, detail);
    c->answer->retry_after_s = room ? 1 : meta_pace_put_off(&q->pace, q->registrations, c->now);
    c->s->count.put_off++;
}

/* Workers may ask for names as fast as they can, on each of many nodes: what operators and nodes
 * want never waits for more than so many of them. */
static bool has_room_for_name(struct call *c, const struct meta_write *like)
{
    const struct meta_writes *q = &c->s->writes;
    uint32_t of_node = 0;
    for (const struct meta_write *w = q->first; w != NULL; w = w->next)
        of_node += w->kind->of_names && strcmp(w->id, like->id) == 0;
    if (q->names < META_NAMES_WAITING_MAX && of_node < META_NAMES_WAITING_OF_NODE)
        return true;
    meta_rest_problem(c, REST_NAMES_WAIT, "come again in a moment");
    return false;
}

/* Whether it is accepted; else the answer has been given. */
static bool has_room(struct call *c, const struct meta_write *w)
{
    const struct meta_writes *q = &c->s->writes;
    char detail[96];
    if (q->stopping && !w->kind->must) {
        meta_rest_problem(c, REST_STORE, "this metaserver stops: ask another one");
        return false;
    }
    if (w->kind->of_names && !has_room_for_name(c, w))
        return false;
    const bool room = q->count < META_WRITES_MAX &&
                      (!w->kind->check || q->checks < META_CHECKS_MAX) &&
                      (!w->kind->gathers || has_time(q));
    const uint32_t of_token = room ? count_of_token(q, w) : 0;
    if (room && of_token < META_WRITES_OF_TOKEN)
        return true;
    if (w->kind->gathers) {
        put_off(c, room);
        return false;
    }
    snprintf(detail, sizeof detail, "%" PRIu32 " changes%s wait for its disk: try again",
             room ? of_token : q->count, room ? " of this token" : "");
    meta_rest_problem(c, REST_CROWDED, detail);
    return false;
}

/* What another metaserver has written need not wait for what this one writes of other nodes. */
static bool is_kept(struct call *c, const struct meta_write *w)
{
    if (w->kind->is_kept == NULL || c->s->writes.stopping || !w->kind->is_kept(c, w))
        return false;
    for (const struct meta_write *o = c->s->writes.first; o != NULL; o = o->next)
        if (strcmp(o->id, w->id) == 0)
            return false;
    return true;
}

/* What waited for something else first, as for a queue pair, may have lost its token meanwhile. */
void meta_write_decide(struct call *c, struct meta_write *w)
{
    struct meta_writes *q = &c->s->writes;
    if (is_kept(c, w)) {
        const bool stores = is_let_in(c, w) && w->kind->begin(c, w);
        BASE_ASSERT(!stores);
        w->kind->free(w);
        return;
    }
    if (!has_room(c, w) || (q->first == NULL && !(is_let_in(c, w) && w->kind->begin(c, w)))) {
        w->kind->free(w);
        return;
    }
    meta_writes_append(q, w);
    if (q->first == w) {
        begin_first(c->s);
        submit_first(c->s);
    }
    c->answer->status = META_SERVICE_LATER;
}

void meta_write_add(struct meta_service *s, struct meta_write *w)
{
    meta_writes_append(&s->writes, w);
}

bool meta_write_is_stored(struct call *c, const struct meta_write *w)
{
    const struct meta_store_outcome *out = &w->job.outcome;
    struct base_errbuf why = out->err;
    if (out->status == 0)
        return true;
    if (out->status == -ETIMEDOUT) /* it may have been done, or will be */
        base_err(&why, 0, "%.400s; whether anything was changed is not known", out->err.text);
    meta_service_store_failed(c->s, w->kind->what, w->id, c->now, &why);
    meta_rest_problem(c, REST_STORE, why.text);
    return false;
}

/* ---- going on */

/* An answer that comes later. */
struct later {
    struct call call;
    struct meta_service_answer answer;
    struct base_text body;
};

static void begin_later(struct later *l, struct meta_service *s, const struct meta_write *w,
                        uint64_t now)
{
    *l = (struct later){.answer = META_SERVICE_ANSWER};
    l->call = (struct call){.s = s,
                            .now = now,
                            .wall_ms = meta_service_wall_ms(s, now),
                            .body = &l->body,
                            .answer = &l->answer,
                            .kind = w->resource};
    memcpy(l->call.id, w->id, sizeof w->id);
    memcpy(l->call.who, w->who, sizeof w->who);
    base_text_init(&l->body, ANSWER_BYTES);
}

static void tell_client(struct later *l, const struct meta_write *w)
{
    struct meta_service *s = l->call.s;
    if (w->has_client && l->answer.status != META_SERVICE_LATER) {
        s->count.http[l->answer.status]++;
        s->answer(w->token, &l->answer, &l->body);
    }
    base_text_fini(&l->body);
}

/* Whether its client still is there, and still is who it was; else the answer has been given. */
static bool is_wanted(struct call *c, const struct meta_write *w)
{
    if (!w->has_client)
        return true;
    if (!w->kind->must && c->s->gone != NULL && c->s->gone(w->token)) {
        meta_rest_problem(c, REST_STORE, "nobody waited for it any more");
        return false;
    }
    return is_let_in(c, w);
}

/* Than it was to be, as another metaserver has made it. */
static bool is_found_otherwise(int status)
{
    return status == -ESTALE || status == -EREMCHG || status == -EEXIST;
}

static void note_outcome(struct meta_writes *q, const struct meta_store_outcome *out, uint64_t now)
{
    if (out->status == 0 && !out->unproven) {
        q->did_ns = now;
        q->why.text[0] = '\0';
    } else if (out->status != 0 && !meta_store_is_refusal(out->status)) {
        q->failed_ns = now;
        q->why = out->err;
    }
}

/* Another metaserver was first, and this one is about to hear of it: then it can decide rightly. */
static bool put_back(struct meta_service *s, struct meta_write *w, uint64_t now)
{
    if (!s->hearing.shared || s->writes.stopping || !is_found_otherwise(w->job.outcome.status) ||
        w->tries == TRIES_MAX)
        return false;
    w->state = META_WRITE_WAITING;
    w->tries++;
    w->refused_ns = now;
    w->refused_at = s->hearing.things;
    return true;
}

static bool waits_to_hear(const struct meta_service *s, const struct meta_write *w, uint64_t now)
{
    return w->tries > 0 && w->refused_at == s->hearing.things && now - w->refused_ns < HEAR_NS &&
           !s->writes.stopping;
}

/* Its turn: true: it goes to the store; false: it is over, and gone. before: as
 * meta_writes_remove(). */
static bool begin_write(struct meta_service *s, struct meta_write *w, struct meta_write *before,
                        uint64_t now)
{
    struct later l;
    begin_later(&l, s, w, now);
    if (is_wanted(&l.call, w) && w->kind->begin(&l.call, w)) {
        base_text_fini(&l.body);
        return true;
    }
    meta_writes_remove(&s->writes, w, before);
    tell_client(&l, w);
    w->kind->free(w);
    return false;
}

/* ---- several */

static bool is_registration_alone(const struct meta_write *w)
{
    const struct meta_store_txn *txn = &w->job.txn;
    return w->kind->gathers && txn->put_count == 1 && txn->remove_count == 0 &&
           txn->withdraw_count == 0;
}

static bool shares_endpoint(const struct meta_store_node *a, const struct meta_store_node *b)
{
    for (uint32_t i = 0; i < a->endpoint_count; i++)
        for (uint32_t k = 0; k < b->endpoint_count; k++)
            if (a->endpoint[i].pool == b->endpoint[k].pool &&
                memcmp(a->endpoint[i].gid, b->endpoint[k].gid, sizeof a->endpoint[i].gid) == 0)
                return true;
    return false;
}

/* Whether it has nothing in common with those that are gathered already, and there is room for all
 * of them. */
static bool can_join(struct meta_service *s, const struct meta_write *w,
                     struct meta_directory_room *room)
{
    const struct meta_store_node *node = w->job.txn.puts->node;
    for (uint32_t i = 0; i < s->writes.under_way; i++)
        if (strcmp(s->writes.puts[i].node->id, node->id) == 0 ||
            shares_endpoint(s->writes.puts[i].node, node))
            return false;
    return meta_directory_take_room(s->directory, node, room);
}

/* What a registration may go before, unless it is of the same node: a region's name, which is
 * decided on what is there at its turn, and a check, which changes nothing. */
static bool may_be_passed(const struct meta_write *w)
{
    return w->kind->of_names || w->kind->check;
}

/* Whether one that it would go before, from that one on, is of the same object. */
static bool is_of_passed(const struct meta_write *first, const struct meta_write *w)
{
    for (const struct meta_write *p = first; w->id[0] != '\0' && p != w; p = p->next)
        if (strcmp(p->id, w->id) == 0)
            return true;
    return false;
}

/* Whether it goes to the store behind the last one that is gathered. before: as
 * meta_writes_remove(). */
static bool gather_write(struct meta_service *s, struct meta_write *w, struct meta_write **before,
                         struct meta_write **last, struct meta_directory_room *room)
{
    struct meta_writes *q = &s->writes;
    if (!is_registration_alone(w) || !can_join(s, w, room))
        return false; /* it is decided again when its turn comes */
    w->state = META_WRITE_UNDER_WAY;
    q->puts[q->under_way++] = *w->job.txn.puts;
    meta_writes_move(q, w, *before, *last);
    if (*before == *last)
        *before = w;
    *last = w;
    return true;
}

/* What has come while the former transaction was with the store goes to it with the first one, as
 * far as it has nothing to do with that. What is passed over has its turn next. */
static void gather_writes(struct meta_service *s, uint64_t now)
{
    struct meta_writes *q = &s->writes;
    struct meta_write *last = q->first, *before = last, *next;
    struct meta_directory_room room = {0, 0};
    if (!is_registration_alone(last))
        return;
    q->puts[0] = *last->job.txn.puts;
    if (!meta_directory_take_room(s->directory, q->puts[0].node, &room))
        return;
    for (struct meta_write *w = last->next; w != NULL && q->under_way < META_STORE_PUTS_MAX;
         w = next) {
        next = w->next;
        if (may_be_passed(w)) {
            before = w;
            continue;
        }
        if (!w->kind->gathers || waits_to_hear(s, w, now) || is_of_passed(last->next, w))
            break;
        if (begin_write(s, w, before, now) && !gather_write(s, w, &before, &last, &room))
            break;
    }
    if (q->under_way > 1)
        q->first->job.txn = (struct meta_store_txn){.puts = q->puts, .put_count = q->under_way};
}

/* What became of the i-th of them. False: it was not dealt with. */
static bool take_outcome(struct meta_writes *q, struct meta_write *w, uint32_t i, uint32_t count,
                         const struct meta_store_outcome *all)
{
    w->state = META_WRITE_DONE;
    w->job.outcome = *all;
    if (count == 1 || all->status != 0)
        return true;
    w->job.outcome.status = q->puts[i].status;
    w->job.outcome.err = q->puts[i].err;
    if (i < all->put_count)
        return true;
    w->state = META_WRITE_WAITING;
    return false;
}

/* A transaction that had room for more says how long one takes at most, and not how long. */
static void measure_pace(struct meta_writes *q, uint32_t count, uint32_t dealt, uint64_t now)
{
    const uint64_t took_ns = now - q->began_ns;
    const uint32_t done = count == 1 ? 1 : dealt;
    if (done < count || done == META_STORE_PUTS_MAX || took_ns / done < q->pace.each_ns)
        meta_pace_measure(&q->pace, took_ns, done);
}

/* The store is done with the first ones: each ends, or waits for another try. */
static void end_writes(struct meta_service *s, uint64_t now)
{
    struct meta_writes *q = &s->writes;
    const struct meta_store_outcome all = q->first->job.outcome;
    struct meta_write *before = NULL, *w = q->first, *next;
    const uint32_t count = q->under_way;
    base_latency_record(&s->count.store_took, now - q->began_ns);
    note_outcome(q, &all, now);
    if (w->kind->gathers && all.status == 0)
        measure_pace(q, count, all.put_count, now);
    meta_service_lapse(s, now);
    q->under_way = 0;
    for (uint32_t i = 0; i < count; i++, w = next) {
        struct later l;
        if (!take_outcome(q, w, i, count, &all) || put_back(s, w, now)) {
            before = w;
            next = w->next;
            continue;
        }
        begin_later(&l, s, w, now);
        w->kind->end(&l.call, w);
        next = w->next;
        meta_writes_remove(q, w, before);
        tell_client(&l, w);
        w->kind->free(w);
    }
}

/* The first one waits to hear what others did before it: one that does not, and is of something
 * else, has its turn meanwhile. False: there is none. */
static bool let_another_pass(struct meta_service *s, uint64_t now)
{
    struct meta_writes *q = &s->writes;
    for (struct meta_write *before = q->first, *w; (w = before->next) != NULL; before = w) {
        if (waits_to_hear(s, w, now) || is_of_passed(q->first, w))
            continue;
        before->next = w->next;
        if (q->last == w)
            q->last = before;
        w->next = q->first;
        q->first = w;
        return true;
    }
    return false;
}

/* False: the store has it, or it waits. */
static bool advance_first(struct meta_service *s, uint64_t now)
{
    struct meta_write *w = s->writes.first;
    if (w->state == META_WRITE_UNDER_WAY)
        return false;
    if (w->state == META_WRITE_DONE) {
        end_writes(s, now);
        return true;
    }
    if (waits_to_hear(s, w, now))
        return let_another_pass(s, now);
    meta_service_lapse(s, now);
    if (!begin_write(s, w, NULL, now))
        return true;
    begin_first(s);
    gather_writes(s, now);
    submit_first(s);
    return false;
}

/* One whose turn has come has as long from then on, if the store has done others before it. */
static bool is_late(const struct meta_writes *q, const struct meta_write *w, uint64_t now)
{
    if (!w->kind->check || !w->has_client || now < w->due_ns)
        return false;
    return w->state == META_WRITE_WAITING || q->did_ns <= w->came_ns ||
           now - q->began_ns >= w->due_ns - w->came_ns;
}

/* One that waits for its turn has it as soon as the store is known to do what it is given: it
 * changes nothing, so that its place among the others is no matter. */
static void answer_late_check(struct later *l, struct meta_write *w)
{
    const struct meta_writes *q = &l->call.s->writes;
    char detail[96];
    if (q->why.text[0] != '\0' && q->failed_ns > w->came_ns) {
        w->kind->late(&l->call, w, q->why.text);
        return;
    }
    if (w->state == META_WRITE_WAITING && q->did_ns > w->came_ns) {
        w->kind->end(&l->call, w);
        return;
    }
    snprintf(detail, sizeof detail, "the store has not answered for %" PRIu64 " ms",
             (uint64_t)((l->call.now - w->came_ns) / BASE_NS_PER_MS));
    w->kind->late(&l->call, w, detail);
}

/* Whoever asks whether the store can be used hears soon whether it can, however many wait. */
static void answer_late_checks(struct meta_service *s, uint64_t now)
{
    struct meta_write *before = NULL, *next;
    for (struct meta_write *w = s->writes.first; w != NULL; w = next) {
        struct later l;
        next = w->next;
        if (!is_late(&s->writes, w, now)) {
            before = w;
            continue;
        }
        begin_later(&l, s, w, now);
        answer_late_check(&l, w);
        tell_client(&l, w);
        w->has_client = false;
        if (w->state != META_WRITE_WAITING) {
            before = w;
            continue;
        }
        meta_writes_remove(&s->writes, w, before);
        w->kind->free(w);
    }
}

void meta_writes_advance(struct meta_service *s, uint64_t now)
{
    while (s->writes.first != NULL && advance_first(s, now))
        ;
    if (s->writes.checks > 0)
        answer_late_checks(s, now);
}

/* ---- the end */

static void refuse_write(struct meta_service *s, struct meta_write *w, uint64_t now,
                         const char *detail)
{
    struct later l;
    begin_later(&l, s, w, now);
    meta_rest_problem(&l.call, REST_STORE, detail);
    tell_client(&l, w);
    w->has_client = false;
}

void meta_writes_stop(struct meta_service *s, uint64_t now)
{
    struct meta_write *before = NULL, *next;
    s->writes.stopping = true;
    for (struct meta_write *w = s->writes.first; w != NULL; w = next) {
        next = w->next;
        if (w->state != META_WRITE_WAITING || w->kind->must) {
            before = w;
            continue;
        }
        refuse_write(s, w, now, "this metaserver stops, and has changed nothing: ask again");
        meta_writes_remove(&s->writes, w, before);
        w->kind->free(w);
    }
}

void meta_writes_abandon(struct meta_service *s, uint64_t now)
{
    for (struct meta_write *w = s->writes.first; w != NULL; w = w->next) {
        if (w->has_client)
            refuse_write(s, w, now,
                         "this metaserver stops, and its disk has not answered: whether anything "
                         "was changed is not known");
        if (w->kind->abandon != NULL)
            w->kind->abandon(w);
    }
}
