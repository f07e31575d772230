/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that steps a lane, and how it sleeps (docs/lane.md#sleeping; RDMAbox): it polls
 * until that was in vain for a while (agent/polling.h), then sets the flags, looks once more, and
 * waits for a doorbell, a completion or a command.
 *
 * Who rings without an end wakes it no more than a few times (doorbells.h). */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent.h"
#include "agent/lane.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/futex.h"
#include "comp_channels.h"
#include "device.h"
#include "doorbells.h"
#include "fabric/placement.h"
#include "lane_thread.h"
#include "loop_world.h"

enum { LINE_BYTES = 64 /* that no other thread's memory shares with the end of this one's */ };
enum { EPOLL_EVERY = 64 /* passes */, EVENTS = 16 /* in a look, which takes the longer */ };
static const uint64_t EPOLL_NS = 50000;     /* or after so long, where passes are long */
static const uint64_t WAKE_LONG_NS = 50000; /* for the wake of one worker */
static const uint64_t FROM_CHANNEL = UINT64_MAX, FROM_CONTROL = UINT64_MAX - 1;

struct lane_thread {
    const struct world_lane *of;
    struct wake news; /* the control thread is to hear of */
    pthread_t thread;
    bool runs;
    int epfd, kick;
    struct doorbells doorbells;
    struct polling polling;
    struct comp_channels *_Atomic channels; /* NULL: nobody has asked for one */
    _Atomic bool stop, asleep;
};

static int watch_fd(const struct lane_thread *t, int fd, uint64_t what)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = what};
    return epoll_ctl(t->epfd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

/* It is heard as long as its rings are there, by one lane at a time: of one that has no worker
 * there is nothing to hear. */
static int watch_session(struct world *w, struct world_lane *l, uint32_t session,
                         const struct world_rings *rings)
{
    (void)w;
    if (rings->lodges == NULL && l->doorbells != NULL)
        agentd_doorbells_mute(l->doorbells, session, false); /* it may be back */
    return 0;
}

static void unwatch_session(struct world *w, struct world_lane *l, const struct world_rings *rings)
{
    (void)w;
    if (rings->lodges == NULL || l->doorbells == NULL)
        return;
    if (rings->lodges == l)
        agentd_doorbells_unwatch(l->doorbells, rings->lodger);
    else
        agentd_doorbells_mute(l->doorbells, rings->session, true);
}

/* What there was to be seen; `useful`: of it, what gives the lane something to do. */
struct seen {
    int all, useful;
};

static struct seen look_at_descriptors(struct lane_thread *t, uint64_t now_ns, int timeout_ms)
{
    struct epoll_event events[EVENTS];
    const int n = epoll_wait(t->epfd, events, EVENTS, timeout_ms);
    struct seen seen = {.all = n > 0 ? n : 0, .useful = n > 0 ? n : 0};
    if (timeout_ms != 0)
        now_ns = base_clock_ns();
    for (int i = 0; i < n; i++) {
        const uint64_t what = events[i].data.u64;
        if (what == FROM_CHANNEL) {
            fab_chan_drain(t->of->chan);
        } else if (what == FROM_CONTROL) {
            continue;
        } else if (lane_doorbell(t->of->lane, (uint32_t)what)) {
            agentd_doorbells_note_true(&t->doorbells, (uint32_t)what);
        } else {
            agentd_doorbells_note_false(&t->doorbells, (uint32_t)what, now_ns);
            seen.useful--;
        }
    }
    agentd_doorbells_hear_again(&t->doorbells, now_ns);
    return seen;
}

/* A command that comes after the last look kicks, since `asleep` is set before it (held to
 * tests/model/doorbell.pml). What has woken it may have been done with before it slept, as a
 * completion that was polled: whether there is work, the next pass says. True: all that there was
 * to be seen at descriptors was. */
static bool sleep_until_work(struct lane_thread *t)
{
    uint64_t now = base_clock_ns();
    struct seen seen = {0};
    atomic_store(&t->asleep, true);
    uint64_t due = lane_prepare_sleep(t->of->lane, now);
    const bool looks = due != 0 && !atomic_load(&t->stop);
    if (looks) {
        const uint64_t heard = doorbells_due(&t->doorbells);
        due = heard < due ? heard : due;
        uint64_t ms = due == UINT64_MAX ? 1000 : due > now ? (due - now + 999999) / 1000000 : 0;
        seen = look_at_descriptors(t, now, ms > 1000 ? 1000 : (int)ms);
    }
    atomic_store(&t->asleep, false);
    if (seen.useful > 0)
        lane_note_wake(t->of->lane);
    lane_set_cpu(t->of->lane, sched_getcpu());
    return looks && seen.all < EVENTS;
}

static void tell_control(const struct lane_thread *t)
{
    if (lane_has_events(t->of->lane))
        agentd_wake_up(&t->news);
}

static void *run_lane(void *arg)
{
    struct lane_thread *t = arg;
    struct lane *lane = t->of->lane;
    uint32_t passes = 0;
    uint64_t looked_ns = 0;
    while (!atomic_load_explicit(&t->stop, memory_order_relaxed)) {
        uint64_t now = base_clock_ns();
        const bool worked = lane_step(lane, now) > 0;
        bool sleeps = polling_sleeps(&t->polling, worked);
        if (!sleeps && !worked && polling_hands_over(&t->polling) && lane_hands_over(lane)) {
            polling_end(&t->polling);
            sleeps = true;
        }
        if (sleeps && sleep_until_work(t))
            looked_ns = now = base_clock_ns();
        const bool looks = ++passes % EPOLL_EVERY == 0 || now - looked_ns > EPOLL_NS;
        if (looks) {
            looked_ns = look_at_descriptors(t, now, 0).all < EVENTS ? now : 0;
            lane_set_cpu(lane, sched_getcpu());
        }
        if (worked || sleeps || looks)
            tell_control(t);
    }
    tell_control(t);
    return NULL;
}

static void on_news(void *thread)
{
    const struct lane_thread *t = thread;
    t->of->news(t->of->user);
}

/* On its CPU from the beginning. -EINVAL has its own sentence. */
static int start_thread(struct lane_thread *t, struct base_errbuf *err)
{
    pthread_attr_t attr;
    const struct fab_placement *at = t->of->placement;
    (void)pthread_attr_init(&attr);
    if (at->bound)
        (void)pthread_attr_setaffinity_np(&attr, sizeof at->cpus, &at->cpus);
    int status = -pthread_create(&t->thread, &attr, run_lane, t);
    (void)pthread_attr_destroy(&attr);
    t->runs = status == 0;
    if (status == -EINVAL)
        return base_err(err, status,
                        "lane_cpu = %llu: this process may not run there (see nproc, and the "
                        "unit's AllowedCPUs; or set lane_cpu = any)",
                        (unsigned long long)t->of->cpu);
    if (status != 0)
        return base_err(err, status, "the lane cannot begin: %s (raise TasksMax?)",
                        strerror(-status));
    return 0;
}

static int start_lane(struct world *w, struct world_lane *l, struct base_errbuf *err)
{
    struct lane_thread *t = l->of_world = calloc(1, sizeof *t + LINE_BYTES);
    if (t == NULL)
        return base_err(err, -ENOMEM, "the lane cannot begin: out of memory");
    t->of = l;
    t->polling = l->polling;
    t->epfd = epoll_create1(EPOLL_CLOEXEC);
    t->kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (agentd_doorbells_init(&t->doorbells, t->epfd,
                              (uint32_t)loop_world_of(w)->agent->config.max_sessions +
                                  LANE_LODGERS) != 0)
        return base_err(err, -ENOMEM, "the lane cannot begin: out of memory");
    l->doorbells = &t->doorbells;
    if (t->epfd < 0 || t->kick < 0 || watch_fd(t, l->chan->fd, FROM_CHANNEL) != 0 ||
        watch_fd(t, t->kick, FROM_CONTROL) != 0)
        return base_err(err, -errno, "the lane cannot begin: %s (raise LimitNOFILE?)",
                        strerror(errno));
    const int status = agentd_wake_init(&t->news, &loop_world_of(w)->loop, on_news, t, err);
    return status == 0 ? start_thread(t, err) : status;
}

static void kick_lane(const struct lane_thread *t)
{
    uint64_t one = 1;
    if (write(t->kick, &one, sizeof one) < 0)
        BASE_ASSERT(errno == EAGAIN);
}

static void free_thread(struct lane_thread *t)
{
    agentd_wake_fini(&t->news);
    agentd_comp_channels_free(t->channels);
    agentd_doorbells_fini(&t->doorbells);
    free(t);
}

static void on_news_closed(uv_handle_t *handle)
{
    free_thread((struct lane_thread *)((char *)handle - offsetof(struct lane_thread, news.poll)));
}

static void stop_lane(struct world *w, struct world_lane *l)
{
    struct lane_thread *t = l->of_world;
    if (t == NULL)
        return;
    l->of_world = NULL;
    l->doorbells = NULL;
    if (t->runs) {
        atomic_store(&t->stop, true);
        kick_lane(t);
        pthread_join(t->thread, NULL);
    }
    if (t->epfd >= 0)
        close(t->epfd);
    if (t->kick >= 0)
        close(t->kick);
    if (t->news.heard != NULL && !loop_world_of(w)->ended)
        uv_close((uv_handle_t *)&t->news.poll, on_news_closed);
    else
        free_thread(t);
}

/* The ring is full for a moment at the most: the lane takes some in each pass, without sleeping. */
static void command_lane(struct world *w, struct world_lane *l, const struct lane_command *command)
{
    const struct lane_thread *t = l->of_world;
    (void)w;
    if (t == NULL) { /* it takes none any more, and what is in the ring is given back with it */
        (void)lane_command(l->lane, command);
        return;
    }
    while (lane_command(l->lane, command) != 0) {
        kick_lane(t);
        usleep(100);
    }
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&t->asleep))
        kick_lane(t);
}

/* One: a session belongs to one thread, and waking as many as somebody put there takes long. */
static uint64_t time_wake(_Atomic uint32_t *word, uint64_t (*clock)(void))
{
    const uint64_t begin_ns = clock();
    (void)base_futex_wake(word, 1);
    return clock() - begin_ns;
}

/* One that took long may have waited for its processor: it is tried again by the time that this
 * thread has had of it, which is a system call to know. To be woken once more harms nobody. */
static uint64_t wake_worker(struct world *w, _Atomic uint32_t *word)
{
    (void)w;
    if (time_wake(word, base_clock_ns) < WAKE_LONG_NS)
        return 0;
    const uint64_t took_ns = time_wake(word, base_clock_thread_ns);
    return took_ns < WAKE_LONG_NS ? 0 : took_ns;
}

/* Their threads begin with the first one. */
static int open_channel(struct world *w, struct world_lane *l, uint32_t session, uint32_t tenant,
                        int *fd, struct base_errbuf *err)
{
    struct lane_thread *t = l->of_world;
    struct comp_channels *c = atomic_load(&t->channels);
    if (c == NULL) {
        const int status = agentd_comp_channels_new(
            (uint32_t)loop_world_of(w)->agent->config.max_sessions, &c, err);
        if (status != 0)
            return status;
        atomic_store(&t->channels, c);
    }
    return agentd_comp_channels_open(c, session, tenant, fd, err);
}

static void end_channel(struct world *w, struct world_lane *l, uint32_t session)
{
    const struct lane_thread *t = l->of_world;
    (void)w;
    if (t != NULL && t->channels != NULL)
        agentd_comp_channels_close(t->channels, session);
}

static void forget_tenant(struct world *w, struct world_lane *l, uint32_t tenant)
{
    const struct lane_thread *t = l->of_world;
    (void)w;
    if (t != NULL && t->channels != NULL)
        agentd_comp_channels_forget(t->channels, tenant);
}

static void tell_worker(struct world *w, struct world_lane *l, uint32_t session)
{
    const struct lane_thread *t = l->of_world;
    struct comp_channels *c = t != NULL ? atomic_load(&t->channels) : NULL;
    (void)w;
    if (c != NULL)
        agentd_comp_channels_tell(c, session);
}

const struct world_lane_ops LANE_OPS = {
    .start = start_lane,
    .stop = stop_lane,
    .command = command_lane,
    .watch = watch_session,
    .unwatch = unwatch_session,
    .wake = wake_worker,
    .channel = open_channel,
    .channel_end = end_channel,
    .channels_forget = forget_tenant,
    .tell = tell_worker,
    .device = agentd_device_do,
    .settle = agentd_device_settle,
    .lock_limit = agentd_device_lock_limit,
};
