/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes of a simulated agent: each is stepped by an event as long as it has something to do,
 * and then sleeps as agent/daemon/lane_thread.c lets it: until a doorbell, a completion, a command,
 * or what is due next. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lane.h"
#include "agent/lane_stats.h"
#include "agent_looks.h"
#include "agent_process.h"
#include "base/clock.h"
#include "lane_looks.h"
#include "ledger.h"
#include "os.h"
#include "os_calls.h"
#include "random.h"
#include "transfers.h"

enum {
    STEP_LEAST_NS = 300, /* what a pass takes */
    STEP_MOST_NS = 3000,
    EMPTY_NS = 100,       /* what one takes that finds nothing */
    WAKE_MOST_NS = 8000,  /* until a thread runs that was woken */
    PASSES_MOST = 1000000 /* without rest: what there is to do takes a few */
};
static const uint64_t SLEEP_MOST_NS = BASE_NS_PER_S;

struct play_lane {
    struct play_lane *next;
    struct play_agent *agent;
    const struct world_lane *of;
    struct play_event step;
    struct play_post news;
    bool waits;     /* it goes on at `step`, or sooner if it is woken */
    bool completed; /* its channel can be read */
    struct polling polling;
    uint64_t mr_reads; /* that it had posted when somebody waited for one */
    uint32_t passes;   /* since it last slept */
    uint64_t read_ns;  /* what its thread has read of the clock before it stood still; 0: not yet */
    uint32_t rung;     /* sessions whose doorbells were, in: */
    bool *bells;
    struct play_lane_looks *looks;
};

static void set_step(struct play_lane *l, uint64_t least, uint64_t most)
{
    play_event_after(&l->step, play_random_between(&l->agent->random, least, most));
}

static void wake_lane(struct play_lane *l)
{
    if (!l->waits)
        return;
    l->waits = false;
    set_step(l, STEP_LEAST_NS, WAKE_MOST_NS);
}

static void on_bell(void *user, uint32_t session)
{
    struct play_lane *l = user;
    l->rung += !l->bells[session];
    l->bells[session] = true;
    wake_lane(l);
}

/* What the thread's epoll tells. */
static void hear_descriptors(struct play_lane *l)
{
    if (l->completed)
        fab_chan_drain(l->of->chan);
    l->completed = false;
    for (uint32_t i = 0; l->rung > 0; i++) {
        if (!l->bells[i])
            continue;
        l->bells[i] = false;
        l->rung--;
        lane_doorbell(l->of->lane, i);
    }
}

static void sleep_lane(struct play_lane *l, uint64_t now_ns)
{
    uint64_t due_ns = lane_prepare_sleep(l->of->lane, now_ns);
    if (due_ns == 0) {
        set_step(l, STEP_LEAST_NS, STEP_MOST_NS);
        return;
    }
    if (due_ns < now_ns + STEP_LEAST_NS) /* it takes so long to find that nothing is left to do */
        due_ns = now_ns + STEP_LEAST_NS;
    l->waits = true;
    l->passes = 0;
    play_event_at(&l->step,
                  play_host_due(l->agent->host,
                                due_ns < now_ns + SLEEP_MOST_NS ? due_ns : now_ns + SLEEP_MOST_NS));
    if (l->rung > 0 || l->completed)
        wake_lane(l);
}

/* Somebody waits for a moment at which it is in the middle of something, or has just asked for the
 * record of a region. */
static void tell_of_work(struct play_lane *l)
{
    struct play_agent *a = l->agent;
    struct lane_stats now;
    if (a->at_work == NULL)
        return;
    lane_stats(l->of->lane, &now);
    const bool reads = now.mr_reads != l->mr_reads;
    l->mr_reads = now.mr_reads;
    if ((a->at_read && !reads) || now.inflight < a->at_inflight)
        return;
    play_event_after(a->at_work, a->at_work_ns);
    a->at_work = NULL;
}

void play_agent_stand_still(struct play_agent *a, uint64_t until_ns)
{
    play_process_pause(a->process, until_ns);
    for (struct play_lane *l = a->lanes; l != NULL; l = l->next)
        if (!l->waits && play_random_happens(&a->random, 800000))
            l->read_ns = play_host_now_ns(a->host);
}

/* A lane that never sleeps does nothing but say so. */
static void look_at_rest(struct play_lane *l)
{
    if (++l->passes == PASSES_MOST)
        play_violation(l->agent->process->name, "its lane does not rest: %d passes without a sleep",
                       PASSES_MOST);
}

static void look_at_bounds(struct play_lane *l)
{
    struct play_agent *a = l->agent;
    play_lane_look(l->looks, l->of->lane,
                   a->ready ? play_agent_looks_tenants(a->looks) : UINT32_MAX, a->process->name);
    if (a->ready)
        play_agent_look_at_device(a->looks, a->agent, a->process->name);
}

/* A thread that has nothing to do looks again and again, until something comes. The last of these
 * looks is made here, and the time of all goes by. */
static void poll_on(struct play_lane *l)
{
    uint32_t more = 1;
    if (l->polling.mode == POLLING_ADAPTIVE)
        more += l->polling.max_retry - l->polling.empty;
    l->polling.empty += more - 1;
    l->waits = true;
    play_event_after(&l->step, (uint64_t)more * EMPTY_NS);
}

/* As lane_thread.c has it. */
static void step_lane(void *user)
{
    struct play_lane *l = user;
    struct play_process *before = play_process_enter(l->agent->process);
    const uint64_t now_ns = l->read_ns != 0 ? l->read_ns : play_host_now_ns(l->agent->host);
    look_at_rest(l);
    l->read_ns = 0;
    l->waits = false;
    hear_descriptors(l);
    lane_set_cpu(l->of->lane, os_sched_getcpu());
    const uint64_t transfers = play_transfers_of(l->of->lane);
    play_transfer(l->of->lane, l->agent->host->number, &l->agent->random);
    const bool worked = lane_step(l->of->lane, now_ns) > 0;
    play_transfers_count(l->of->lane, transfers);
    bool sleeps = polling_sleeps(&l->polling, worked);
    if (!sleeps && !worked && polling_hands_over(&l->polling) && lane_hands_over(l->of->lane)) {
        polling_end(&l->polling);
        sleeps = true;
    }
    if (worked) {
        set_step(l, STEP_LEAST_NS, STEP_MOST_NS);
        tell_of_work(l);
        look_at_bounds(l);
    } else if (sleeps) {
        sleep_lane(l, now_ns);
    } else {
        poll_on(l);
    }
    if (lane_has_events(l->of->lane))
        play_inbox_put(&l->agent->inbox, &l->news);
    play_process_leave(before);
}

static void on_news(void *user)
{
    const struct play_lane *l = user;
    l->of->news(l->of->user);
}

static int start_lane(struct world *w, struct world_lane *of, struct base_errbuf *err)
{
    struct play_agent *a = play_agent_of(w);
    struct play_lane *l = of->of_world = calloc(1, sizeof *l);
    bool *bells = calloc(a->agent->config.max_sessions + LANE_LODGERS, sizeof *bells);
    struct play_lane_looks *looks = play_lane_looks_new(of->lane);
    if (l == NULL || bells == NULL || looks == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    *l = (struct play_lane){.next = a->lanes,
                            .agent = a,
                            .of = of,
                            .polling = of->polling,
                            .step = {.happen = step_lane, .user = l, .owner = &a->process->owner},
                            .news = {.run = on_news, .user = l},
                            .bells = bells,
                            .looks = looks};
    a->lanes = l;
    set_step(l, STEP_LEAST_NS, WAKE_MOST_NS);
    return 0;
}

static void free_lane(struct play_lane *l)
{
    play_event_cancel(&l->step);
    os_bells_leave(l);
    free(l->bells);
    play_lane_looks_free(l->looks);
    free(l);
}

static void stop_lane(struct world *w, struct world_lane *of)
{
    struct play_agent *a = play_agent_of(w);
    struct play_lane **at = &a->lanes, *l = of->of_world;
    if (l == NULL)
        return;
    of->of_world = NULL;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    play_inbox_take_back(&a->inbox, &l->news);
    free_lane(l);
}

void play_agent_forget_lanes(struct play_agent *a)
{
    for (struct play_lane *l = a->lanes, *next; l != NULL; l = next) {
        next = l->next;
        free_lane(l);
    }
    a->lanes = NULL;
}

bool play_agent_lane_ready(struct play_agent *a, int fd)
{
    for (struct play_lane *l = a->lanes; l != NULL; l = l->next) {
        if (l->of->chan->fd != fd)
            continue;
        l->completed = true;
        wake_lane(l);
        return true;
    }
    return false;
}

static void command_lane(struct world *w, struct world_lane *of, const struct lane_command *command)
{
    play_agent_of(w)->effects++;
    if (of->of_world == NULL) {
        (void)lane_command(of->lane, command);
        return;
    }
    while (lane_command(of->lane, command) != 0) {
        wake_lane(of->of_world);
        play_process_sleep(WAKE_MOST_NS);
    }
    wake_lane(of->of_world);
}

static int watch_session(struct world *w, struct world_lane *of, uint32_t session,
                         const struct world_rings *rings)
{
    (void)w;
    os_bell_watch(rings->doorbell, on_bell, of->of_world, session);
    return 0;
}

static void unwatch_session(struct world *w, struct world_lane *of, const struct world_rings *rings)
{
    (void)w, (void)of;
    os_bell_watch(rings->doorbell, NULL, NULL, 0);
}

static uint64_t wake_worker(struct world *w, _Atomic uint32_t *word)
{
    (void)w;
    os_wake_word((const void *)word);
    return 0;
}

static uint64_t tell_no_limit(struct world *w)
{
    (void)w;
    return UINT64_MAX;
}

const struct world_lane_ops PLAY_LANE_OPS = {
    .start = start_lane,
    .stop = stop_lane,
    .command = command_lane,
    .watch = watch_session,
    .unwatch = unwatch_session,
    .wake = wake_worker,
    .channel = play_channel_begin,
    .channel_end = play_channel_end,
    .tell = play_channel_tell,
    .device = agentd_device_do,
    .settle = agentd_device_settle,
    .lock_limit = tell_no_limit,
};
