/* SPDX-License-Identifier: Apache-2.0 */
#include "common_store.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "process.h"
#include "random.h"
#include "trace.h"

enum {
    USUAL_US = 3000,   /* that a way takes at most, when nothing is wrong */
    TIMEOUT_MS = 5000, /* of a transaction */
    PROGRESS_MS = 1000,
    LEASE_MS = 10000,
    COMPACTED_PERCENT = 30, /* of those who come back have missed too much */
    MISSED_PPM = 5000,      /* of what is done others cannot be told any more, */
    REMOVED_PPM = 300000    /* and of nodes that are removed, which nothing says but that */
};

struct member {
    struct meta_store *store; /* NULL: it has none open */
    bool lives;               /* a process of it does */
    struct play_event lease;  /* it is over; not set: it is */
    struct play_common_road road;
    struct play_common_link *link; /* of its process, which hears; NULL: there is none */
};

static struct {
    struct meta_store_hub *hub;
    struct base_prng random;
    struct member member[COMMON_MEMBERS];
    struct meta_store *kept; /* as it was once; NULL: nobody has kept it */
} all;

static bool happens(uint32_t percent)
{
    return base_prng_below(&all.random, 100) < percent;
}

static uint64_t draw_way(const struct member *m)
{
    return base_prng_below(&all.random, USUAL_US * BASE_NS_PER_US) +
           (m->road.slow_ns > 0 ? base_prng_below(&all.random, m->road.slow_ns) : 0);
}

/* ---- the store */

static void on_lease_over(void *user)
{
    struct member *m = user;
    struct play_process *before = play_process_enter(NULL);
    if (m->lives) {
        meta_store_hub_lapse(m->store, true);
    } else {
        meta_store_close(m->store);
        m->store = NULL;
    }
    play_process_leave(before);
    play_trace("store", "the lease of metaserver %u is over", (unsigned)(m - all.member));
}

static void renew_lease(struct member *m)
{
    struct play_process *before = play_process_enter(NULL);
    const bool was_over = !play_event_is_set(&m->lease);
    meta_store_hub_lapse(m->store, false);
    if (was_over && happens(COMPACTED_PERCENT))
        meta_store_hub_compact(m->store);
    play_event_after(&m->lease, LEASE_MS * BASE_NS_PER_MS);
    play_process_leave(before);
}

void play_common_begin(uint64_t seed)
{
    memset(&all, 0, sizeof all);
    all.hub = meta_store_hub_new();
    BASE_ASSERT(all.hub != NULL);
    all.random = play_random_of(seed, "common store", 0);
    for (uint32_t i = 0; i < COMMON_MEMBERS; i++)
        all.member[i].lease = (struct play_event){.happen = on_lease_over, .user = &all.member[i]};
}

void play_common_end(void)
{
    for (uint32_t i = 0; i < COMMON_MEMBERS; i++) {
        play_event_cancel(&all.member[i].lease);
        meta_store_close(all.member[i].store);
    }
    meta_store_close(all.kept);
    meta_store_hub_free(all.hub);
    memset(&all, 0, sizeof all);
}

/* One who is slow to hear, or has just reconnected, finds it compacted away. */
static void compact_some(const struct member *but, const struct meta_store_job *job)
{
    const uint32_t ppm = job->txn.remove_count > 0 ? REMOVED_PPM : MISSED_PPM;
    for (uint32_t i = 0; i < COMMON_MEMBERS; i++)
        if (&all.member[i] != but && all.member[i].link != NULL &&
            play_random_happens(&all.random, ppm))
            play_common_compact(i);
}

/* Something is there to be heard. */
static void wake_all(void)
{
    for (uint32_t i = 0; i < COMMON_MEMBERS; i++) {
        const struct member *m = &all.member[i];
        if (m->link != NULL)
            play_event_after(&m->link->hear, draw_way(m));
    }
}

void play_common_set_road(uint32_t number, const struct play_common_road *road)
{
    all.member[number].road = *road;
}

const struct play_common_road *play_common_road(uint32_t number)
{
    return &all.member[number].road;
}

bool play_common_lives(uint32_t number)
{
    return play_event_is_set(&all.member[number].lease);
}

void play_common_compact(uint32_t number)
{
    if (all.member[number].store != NULL)
        meta_store_hub_compact(all.member[number].store);
}

/* ---- a moment that is kept, and comes back */

/* Any that is open: all have the same. */
static struct meta_store *open_one(void)
{
    for (uint32_t i = 0; i < COMMON_MEMBERS; i++)
        if (all.member[i].store != NULL)
            return all.member[i].store;
    return NULL;
}

void play_common_keep(void)
{
    struct base_errbuf err;
    struct meta_store *store = open_one();
    if (store == NULL || all.kept != NULL)
        return;
    all.kept = meta_store_memory(NULL);
    const int status = meta_store_copy(store, all.kept, &err);
    BASE_ASSERT(all.kept != NULL && status == 0);
}

struct meta_store *play_common_put_back(void)
{
    struct meta_store *store = open_one();
    if (store == NULL || all.kept == NULL)
        return NULL;
    meta_store_hub_put_back(all.hub, all.kept);
    meta_store_close(all.kept);
    all.kept = NULL;
    wake_all();
    return store;
}

/* ---- transactions */

static struct member *member_of(const struct play_common_link *l)
{
    return &all.member[l->number];
}

static void commit_first(struct play_common_link *l)
{
    struct meta_store_job *job = STAILQ_FIRST(&l->waiting);
    struct play_process *before = play_process_enter(NULL);
    (void)meta_store_commit(l->store, &job->txn, &job->outcome);
    play_process_leave(before);
    l->done = true;
    if (l->committed != NULL)
        l->committed(l->user, job);
    compact_some(member_of(l), job);
    wake_all();
}

static void on_arrive(void *user)
{
    struct play_common_link *l = user;
    const struct member *m = member_of(l);
    const bool lost = happens(m->road.lost_percent), gets_there = !lost || happens(50);
    if (!m->road.cut_there && gets_there)
        commit_first(l);
    l->refused = lost || m->road.cut_there || m->road.cut_back;
    /* what does not reach it at all may be known not to have been done, which is known sooner */
    play_event_after(&l->answer, !l->refused ? draw_way(m)
                                 : l->done || happens(50)
                                     ? TIMEOUT_MS * BASE_NS_PER_MS
                                     : base_prng_below(&all.random, TIMEOUT_MS * BASE_NS_PER_MS));
}

static void begin_first(struct play_common_link *l)
{
    l->done = l->refused = false;
    if (!STAILQ_EMPTY(&l->waiting))
        play_event_after(&l->arrive, draw_way(member_of(l)));
}

static void on_answer(void *user)
{
    struct play_common_link *l = user;
    play_inbox_put(l->inbox, &l->answered);
}

static void hear_answer(void *user)
{
    struct play_common_link *l = user;
    struct meta_store_job *job = STAILQ_FIRST(&l->waiting);
    STAILQ_REMOVE_HEAD(&l->waiting, link);
    if (l->refused || member_of(l)->road.cut_back) {
        job->outcome = (struct meta_store_outcome){.revision = 0};
        base_err(&job->outcome.err, -ETIMEDOUT, "the store's answer was lost");
        job->outcome.status = -ETIMEDOUT;
    }
    begin_first(l);
    job->done(job);
    l->ran(l->user);
}

void play_common_submit(struct play_common_link *l, struct meta_store_job *job)
{
    const bool idle = STAILQ_EMPTY(&l->waiting);
    meta_store_order_add(&l->order, job);
    STAILQ_INSERT_TAIL(&l->waiting, job, link);
    if (idle)
        begin_first(l);
}

/* ---- what is heard */

static bool is_cut(const struct play_common_link *l)
{
    const struct play_common_road *r = &member_of(l)->road;
    return r->cut_there || r->cut_back;
}

/* One thing, if a stream brings it. */
static bool hear_one(struct play_common_link *l)
{
    struct member *m = member_of(l);
    if (m->road.cut_back || m->road.deaf || (m->road.cut_there && l->number % 2 == 0))
        return false;
    struct play_process *before = play_process_enter(NULL);
    struct meta_store_heard *heard = meta_store_hub_hear(l->store);
    play_process_leave(before);
    if (heard != NULL)
        STAILQ_INSERT_TAIL(&l->heard, heard, link);
    return heard != NULL;
}

/* That it is silent is known after a while. */
static void note_silence(struct play_common_link *l)
{
    if (l->silent_ns == 0)
        l->silent_ns = play_now_ns();
    l->state = play_now_ns() - l->silent_ns > META_STORE_SILENCE_NS ? -ETIMEDOUT : 0;
}

static void on_hear(void *user)
{
    struct play_common_link *l = user;
    struct member *m = member_of(l);
    const bool more = hear_one(l);
    if (!is_cut(l))
        renew_lease(m);
    if (is_cut(l) || m->road.deaf) {
        note_silence(l);
    } else {
        l->silent_ns = 0;
        l->state = !more;
        l->heard_ns = more ? l->heard_ns : play_now_ns();
    }
    play_inbox_put(l->inbox, &l->something);
    play_event_after(&l->hear, more ? draw_way(m) : PROGRESS_MS * BASE_NS_PER_MS);
}

static void tell_something(void *user)
{
    const struct play_common_link *l = user;
    l->ran(l->user);
}

void play_common_take(struct play_common_link *l)
{
    struct meta_store_heard *heard;
    while ((heard = STAILQ_FIRST(&l->heard)) != NULL) {
        STAILQ_REMOVE_HEAD(&l->heard, link);
        meta_store_order_put(&l->order, heard);
    }
}

void play_common_know(struct play_common_link *l)
{
    l->knows_ns = l->heard_ns;
}

void play_common_ask(struct play_common_link *l)
{
    meta_store_hub_compact(l->store);
}

/* ---- its begin and end */

int play_common_open(struct play_common_link *l, uint32_t number, const char *name,
                     struct base_errbuf *err)
{
    struct member *m = &all.member[number];
    play_process_sleep(draw_way(m));
    if (m->road.cut_there || m->road.cut_back) {
        play_process_sleep(TIMEOUT_MS * BASE_NS_PER_MS);
        return base_err(err, -ETIMEDOUT, "the store does not answer");
    }
    struct play_process *before = play_process_enter(NULL);
    play_event_cancel(&m->lease);
    meta_store_close(m->store); /* its former life is over */
    m->store = meta_store_hub_open(all.hub, name);
    play_process_leave(before);
    BASE_ASSERT(m->store != NULL);
    m->lives = true;
    play_event_after(&m->lease, LEASE_MS * BASE_NS_PER_MS);
    l->number = number;
    l->store = m->store;
    l->heard_ns = l->knows_ns = play_now_ns(); /* what it is about to load */
    return 0;
}

void play_common_listen(struct play_common_link *l)
{
    struct play_owner *of = &l->inbox->process->owner;
    l->arrive = (struct play_event){.happen = on_arrive, .user = l};
    l->answer = (struct play_event){.happen = on_answer, .user = l, .owner = of};
    l->hear = (struct play_event){.happen = on_hear, .user = l, .owner = of};
    l->answered = (struct play_post){.run = hear_answer, .user = l};
    l->something = (struct play_post){.run = tell_something, .user = l};
    STAILQ_INIT(&l->waiting);
    STAILQ_INIT(&l->heard);
    member_of(l)->link = l;
    play_event_after(&l->hear, draw_way(member_of(l)));
}

static void drop_heard(struct play_common_link *l)
{
    play_common_take(l);
    for (struct meta_store_heard *h; (h = STAILQ_FIRST(&l->order.heard)) != NULL;) {
        STAILQ_REMOVE_HEAD(&l->order.heard, link);
        meta_store_heard_free(h);
    }
}

static void leave(struct play_common_link *l)
{
    play_event_cancel(&l->arrive);
    play_event_cancel(&l->answer);
    play_event_cancel(&l->hear);
    drop_heard(l);
    member_of(l)->link = NULL;
    member_of(l)->lives = false;
}

void play_common_close(struct play_common_link *l)
{
    struct member *m = member_of(l);
    if (l->store == NULL)
        return;
    if (m->link == l)
        leave(l);
    struct play_process *before = play_process_enter(NULL);
    play_event_cancel(&m->lease);
    meta_store_close(m->store);
    play_process_leave(before);
    m->store = l->store = NULL;
    m->lives = false;
}

void play_common_crash(struct play_common_link *l)
{
    struct member *m = member_of(l);
    if (l->store == NULL)
        return;
    if (m->link == l) {
        if (play_event_is_set(&l->arrive) && !m->road.cut_there && happens(50))
            commit_first(l);
        leave(l);
    }
    m->lives = false;
    l->store = NULL;
    if (play_event_is_set(&m->lease))
        return;
    meta_store_close(m->store);
    m->store = NULL;
}
