/* SPDX-License-Identifier: Apache-2.0 */
#include "worker_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "ledger.h"
#include "liar.h"
#include "operators_wish.h"
#include "os.h"
#include "random.h"
#include "schema/reason.h"
#include "trace.h"
#include "transfers.h"
#include "worker_state.h"

enum {
    BURST_PPM = 100000,
    PARTS_BURST_PPM = 400000, /* where bursts are in parts */
    ABANDON_PPM = 5000,
    ABANDONED_S = 10,
    CALLED_BURST_PPM = 500000, /* when it is called */
    CALLED_WITHDRAW_PPM = 350000,
    REST_MOST_S = 12, /* until it lends memory again that it has had back */
    SLOW_MS = 60,     /* so long none takes that succeeds when nothing goes wrong */
    RETRY_MS = 500,
    BATCH_PPM = 200000, /* of bursts there is a batch in their place, where there are some */
    MAIL_PPM = 400000,  /* of turns it does something with messages, where there are some */
    NAME_PPM = 300000   /* of turns it does something with names */
};

static bool happens(struct play_worker *w, uint32_t ppm)
{
    return play_random_happens(&w->random, ppm);
}

/* ---- its session */

void play_worker_note_arenas(struct play_worker *w)
{
    for (uint32_t i = 0; i < CLIENT_MAX_ARENAS; i++) {
        const struct client_arena *a = &w->session->arenas[i];
        if (a->addr == NULL || w->arena[i] != NULL)
            continue;
        w->arena[i] = a->addr;
        play_ledger_arena(w->process, w->session->ro, a->addr, a->bytes);
    }
}

static void drop_target(struct target *t)
{
    if (t->slot == NULL)
        return;
    play_slot_give(t->slot);
    t->slot = NULL;
}

/* Of what is out nobody hears any more, nor looks what a batch did that was cancelled. */
static void drop_requests(struct play_worker *w)
{
    if (w->busy != NULL && w->busy->slot != NULL && w->batch.cancelled)
        w->busy->slot->lost = true;
    w->batch.cancelled = false;
    for (; w->done < w->posted; w->done++) {
        w->count.dropped++;
        if (w->request[w->done].kind != REQUEST_READ)
            w->busy->slot->lost = true;
    }
    w->posted = w->done = 0;
    w->busy = NULL;
}

/* What the ledger has of its session: that is over, by its own will or another's. */
static void forget_session(struct play_worker *w)
{
    drop_requests(w);
    play_lists_forsake(w);
    play_worker_forsake_mail(w);
    for (uint32_t i = 0; i < TARGETS; i++)
        drop_target(&w->target[i]);
    if (w->region != NULL) {
        play_worker_forsake_names(w);
        play_region_free(w->region);
    }
    w->region = NULL;
    w->batch.batch = NULL; /* which goes with the session */
    for (uint32_t i = 0; i < CLIENT_MAX_ARENAS; i++) {
        if (w->arena[i] != NULL)
            play_ledger_no_arena(w->arena[i]);
        w->arena[i] = NULL;
    }
}

/* libkedge alone writes into its ring, so that its lane is to find there what it has posted. */
static void close_session(struct play_worker *w, const char *why)
{
    if (strstr(why, kedge_reason_str(SCHEMA_REASON_DESCRIPTOR)) != NULL)
        play_violation(w->process->name,
                       "its agent has found in its ring what was never posted: %s", why);
    play_trace(w->process->name, "closes its session: %s", why);
    forget_session(w);
    kedge_close(w->session);
    w->session = NULL;
}

static bool is_zeroed(const uint8_t *bytes, size_t n)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0;
}

static bool take_memory(struct play_worker *w)
{
    void *at[2];
    const size_t bytes[2] = {PLAY_REGION_BYTES, w->settings.buffer_bytes};
    for (int i = 0; i < 2; i++) {
        const int status = kedge_alloc(w->session, bytes[i], &at[i], &w->lkey);
        if (status != 0) {
            close_session(w, kedge_last_error());
            return false;
        }
        play_worker_note_arenas(w);
        if (!is_zeroed(at[i], bytes[i]))
            play_violation(w->process->name, "memory of a new arena has somebody's bytes in it");
    }
    w->memory = at[0];
    w->buffers = at[1];
    return true;
}

static bool open_session(struct play_worker *w)
{
    const struct kedge_open_attr attr = {.socket = w->settings.socket, .wait_ms = 2000};
    const int status = kedge_open(&attr, &w->session);
    if (status == -EDQUOT && play_now_ns() > w->settings.calm_ns)
        play_violation(w->process->name, "its tenant has used up less than its quota: %s",
                       kedge_last_error());
    if (status != 0) {
        w->count.refused++;
        w->session = NULL;
        play_process_sleep(RETRY_MS * BASE_NS_PER_MS);
        return false;
    }
    w->count.sessions++;
    play_trace(w->process->name, "has session %u", w->session->session);
    play_worker_note_arenas(w);
    return take_memory(w);
}

/* Whether it goes on. Else it is closed. */
bool play_worker_survives(struct play_worker *w, int status)
{
    if (status >= 0)
        return true;
    if (status == -EHOSTDOWN) {
        play_process_sleep(RETRY_MS * BASE_NS_PER_MS);
        return true;
    }
    close_session(w, kedge_last_error());
    return false;
}

/* ---- what it lends */

static void lend_region(struct play_worker *w)
{
    char token[KEDGE_TOKEN_MAX];
    static const struct {
        int access;
        const char *what;
    } KINDS[] = {
        {0, ""}, {KEDGE_MR_FENCED, ", fenced"}, {KEDGE_MR_LEASE_ONLY, ", by its lease alone"}};
    const uint64_t kind = base_prng_below(&w->random, w->settings.no_lease_only ? 2 : 3);
    const int access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | KINDS[kind].access |
                       (w->settings.no_atomics ? 0 : IBV_ACCESS_REMOTE_ATOMIC);
    w->region =
        play_region_new(w->process->host->number, w->process->name, w->settings.tenant, w->memory);
    w->region->fenced = kind == 1;
    w->region->lease_only = kind == 2;
    int status = kedge_reg_mr(w->session, w->memory, PLAY_REGION_BYTES, access, &w->mr);
    if (status == 0)
        status = kedge_mr_export(w->mr, token, sizeof token);
    if (status != 0) {
        play_trace(w->process->name, "lends nothing: %s", kedge_last_error());
        play_region_free(w->region);
        w->region = NULL;
        (void)play_worker_survives(w, kedge_session_status(w->session));
        return;
    }
    w->count.regions++;
    play_region_lend(w->region, w->session->gid, token);
    play_trace(w->process->name, "lends region %llu%s", (unsigned long long)w->region->id,
               KINDS[kind].what);
}

static void withdraw_region(struct play_worker *w)
{
    int status = -ETIMEDOUT;
    play_region_withdraw(w->region);
    play_worker_forsake_names(w);
    play_trace(w->process->name, "withdraws region %llu", (unsigned long long)w->region->id);
    for (int tries = 0; status == -ETIMEDOUT && tries < 24; tries++) {
        status = kedge_dereg_mr(w->mr);
        if (status == -ETIMEDOUT)
            play_process_sleep(RETRY_MS * BASE_NS_PER_MS);
    }
    if (status != 0) { /* the memory is not its own again: it leaves it alone */
        w->mr = NULL;  /* which is freed, unless it was late; its names are forsaken */
        close_session(w, kedge_last_error());
        return;
    }
    play_trace(w->process->name, "has region %llu back", (unsigned long long)w->region->id);
    play_region_free(w->region);
    w->region = NULL;
    w->count.withdrawn++;
    memset(w->memory, 0, PLAY_REGION_BYTES);
    /* Often at once: the device may give the next registration what this one had. */
    w->lend_ns =
        play_now_ns() +
        (happens(w, 500000) ? 0 : base_prng_below(&w->random, REST_MOST_S * BASE_NS_PER_S));
}

/* ---- what it uses of others */

bool play_worker_is_possible(struct play_worker *w, int status, const char *what)
{
    if (status == 0)
        return true;
    play_trace(w->process->name, "cannot %s: %s", what, kedge_last_error());
    (void)play_worker_survives(w, kedge_session_status(w->session));
    return false;
}

static struct target *begin_target(struct play_worker *w, struct target *t)
{
    struct play_slot *slot = play_slot_take(&w->random, w->process->name, w->settings.tenant);
    char token[PLAY_TOKEN];
    if (slot == NULL)
        return NULL;
    t->slot = slot;
    (void)snprintf(token, sizeof token, "%s", slot->region->token);
    const uint64_t id = slot->region->id;
    bool works =
        play_worker_is_possible(w, kedge_import(w->session, token, &t->remote), "import a region");
    if (works)
        works = play_worker_is_possible(w, kedge_vqp_create(w->session, NULL, &t->q),
                                        "make a queue pair");
    if (works && !play_worker_is_possible(w, kedge_connect(t->q, t->remote.gid), "connect")) {
        if (w->session != NULL)
            kedge_vqp_destroy(t->q);
        works = false;
    }
    if (!works) {
        drop_target(t);
        return NULL;
    }
    w->count.connections++;
    play_trace(w->process->name, "uses slot %u of region %llu", slot->number,
               (unsigned long long)id);
    return t;
}

static void end_target(struct target *t)
{
    if (t->slot == NULL)
        return;
    kedge_vqp_destroy(t->q);
    drop_target(t);
}

static struct target *choose_target(struct play_worker *w)
{
    struct target *t = &w->target[base_prng_below(&w->random, TARGETS)];
    if (t->slot != NULL && t->slot->lost)
        end_target(t);
    return t->slot != NULL ? t : begin_target(w, t);
}

/* ---- requests */

/* Half of the workers of clusters with messages sleep in poll(). */
int play_worker_wait(struct play_worker *w)
{
    if (!w->settings.by_descriptor)
        return kedge_wait(w->session, 1000);
    const int fd = kedge_fd(w->session);
    const int status = fd >= 0 ? kedge_arm(w->session) : fd;
    if (status == 0)
        os_channel_sleep(fd, BASE_NS_PER_S);
    return status;
}

/* Until all have completed, or the session is over. */
void play_worker_await(struct play_worker *w)
{
    const uint64_t began_ns = play_now_ns(), until_ns = began_ns + WORKER_HANG_S * BASE_NS_PER_S;
    struct ibv_wc wc[BURST_MOST];
    while (w->done < w->posted) {
        int n = kedge_poll(w->session, BURST_MOST, wc);
        for (int i = 0; i < n; i++)
            if (!play_worker_judge_mail(w, &wc[i]))
                play_worker_judge(w, &wc[i]);
        if (n > 0)
            continue;
        play_worker_hear(w);
        n = n == 0 ? play_worker_wait(w) : n;
        if (!play_worker_survives(w, n))
            return;
        if (play_now_ns() > until_ns) {
            play_violation(w->process->name, "%u requests have not completed in %d s",
                           w->posted - w->done, WORKER_HANG_S);
            close_session(w, "its requests hang");
            return;
        }
    }
    const bool of_liar = w->busy != NULL && play_liar_is(w->busy->slot->region->node);
    if (!w->broken && !of_liar && !play_transfers_may_wait() && began_ns > w->settings.calm_ns &&
        play_now_ns() - began_ns > SLOW_MS * BASE_NS_PER_MS + play_rest_ns(began_ns))
        play_violation(w->process->name,
                       "nothing has gone wrong for long, and a request took %llu ms",
                       (unsigned long long)((play_now_ns() - began_ns) / BASE_NS_PER_MS));
}

/* What was never sent has left the slot as it was, the last request first. */
static void undo_never_sent(struct play_worker *w)
{
    struct play_slot *slot = w->busy->slot;
    for (uint32_t i = w->posted; i > 0; i--) {
        const struct request *r = &w->request[i - 1];
        if (!r->never_sent)
            continue;
        if (r->kind == REQUEST_WRITE)
            memcpy(slot->content + r->at, r->expected, r->bytes);
        else if (r->kind == REQUEST_ADD)
            slot->counter = r->counter;
    }
}

/* A queue pair that is in error serves again once it is connected again; or it goes. */
static void mend_target(struct play_worker *w, struct target *t)
{
    undo_never_sent(w);
    if (t->slot->lost || play_slot_is_gone(t->slot) || happens(w, 500000)) {
        end_target(t);
    } else if (!play_worker_is_possible(w, kedge_connect(t->q, t->remote.gid), "connect again")) {
        if (w->session != NULL)
            end_target(t);
    }
}

/* Of its queue pair it hears nothing any more; but what is out uses its memory for a while. */
void play_worker_abandon(struct play_worker *w, struct target *t)
{
    play_trace(w->process->name, "leaves %u requests behind", w->posted - w->done);
    drop_requests(w);
    end_target(t);
    play_process_sleep(ABANDONED_S * BASE_NS_PER_S);
}

/* All that it has posted there is over, or nobody hears of it. */
static void end_burst(struct play_worker *w, struct target *t)
{
    if (w->session != NULL && w->busy != NULL && (w->broken || t->slot->lost))
        mend_target(w, t);
    w->busy = NULL;
    w->posted = w->done = 0;
}

static void do_burst(struct play_worker *w)
{
    struct target *t = choose_target(w);
    if (t == NULL)
        return;
    if (w->settings.batches && happens(w, BATCH_PPM)) {
        play_worker_do_batch(w, t);
        end_burst(w, t);
        return;
    }
    const uint32_t ppm = w->called              ? CALLED_BURST_PPM
                         : w->settings.in_parts ? PARTS_BURST_PPM
                                                : BURST_PPM,
                   n = happens(w, ppm) ? BURST_MOST : 1;
    const int status = play_worker_post(w, t, n);
    if (status < 0 && !play_worker_survives(w, status))
        return;
    if (happens(w, ABANDON_PPM)) {
        play_worker_abandon(w, t);
        return;
    }
    play_worker_await(w);
    end_burst(w, t);
}

/* ---- its life */

static void do_change(struct play_worker *w)
{
    switch (base_prng_below(&w->random, 5)) {
    case 0:
        end_target(&w->target[base_prng_below(&w->random, TARGETS)]);
        break;
    case 1:
    case 2:
        if (w->region != NULL)
            withdraw_region(w);
        break;
    case 3:
        if (happens(w, 200000))
            close_session(w, "it wants another one");
        break;
    default:
        play_process_sleep(
            10 * (w->settings.operation_ns != 0 ? w->settings.operation_ns : w->settings.pause_ns));
    }
}

static void do_turn(struct play_worker *w)
{
    if (w->session == NULL && !open_session(w))
        return;
    struct kedge_mr *lent = w->region != NULL ? w->mr : NULL;
    const enum play_wish wish =
        play_operators_wish(w->session, lent, w->settings.heed_ppm, &w->random);
    if (wish == WISH_CLOSE)
        close_session(w, "an operator wants it to go");
    else if (wish == WISH_WITHDRAW)
        withdraw_region(w);
    if (wish != WISH_NOTHING)
        return;
    if (w->region == NULL && play_now_ns() >= w->lend_ns)
        lend_region(w);
    else if (w->called && w->region != NULL && happens(w, CALLED_WITHDRAW_PPM))
        withdraw_region(w);
    else if (w->settings.names && happens(w, NAME_PPM))
        play_worker_do_name(w);
    else if (w->settings.messages && happens(w, MAIL_PPM))
        play_worker_do_mail(w);
    else if (happens(w, w->settings.change_ppm))
        do_change(w);
    else
        do_burst(w);
}

static void run_worker(void *user)
{
    struct play_worker *w = user;
    while (!w->told_to_stop) {
        do_turn(w);
        if (!w->told_to_stop)
            play_worker_pause(w);
    }
    if (w->session != NULL)
        close_session(w, "it ends");
}

static void on_killed(struct play_process *process, void *user)
{
    (void)process;
    forget_session(user);
}

struct play_worker *play_worker_start(struct play_host *host, const char *name,
                                      const struct play_worker_settings *settings, uint64_t seed)
{
    struct play_worker *w = calloc(1, sizeof *w);
    BASE_ASSERT(w != NULL);
    w->process = play_process_new(host, name, seed, run_worker, w);
    BASE_ASSERT(w->process != NULL);
    w->process->killed = on_killed;
    w->process->spins = true;
    w->process->uid = settings->uid;
    w->settings = *settings;
    w->random = play_random_of(seed, w->process->name, play_now_ns() + 1);
    return w;
}

/* Who has posted too much of late stays away. */
void play_worker_call(struct play_worker *w)
{
    if (!w->pauses || w->credit_ns < 0)
        return;
    w->called = true;
    play_process_wake(w->process);
}

void play_worker_stop(struct play_worker *w)
{
    w->told_to_stop = true;
    play_process_wake(w->process);
}

bool play_worker_has_ended(const struct play_worker *w)
{
    return w->process->ended;
}

void play_worker_kill(struct play_worker *w)
{
    play_process_kill(w->process);
    free(w);
}

const struct play_worker_counts *play_worker_counts(const struct play_worker *w)
{
    return &w->count;
}

struct play_process *play_worker_process(struct play_worker *w)
{
    return w->process;
}
