/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that steps the lane, and how it sleeps (design: "Polling"; RDMAbox): it polls as long
 * as there is work and a little longer, then sets the flags, looks once more, and waits for a
 * doorbell, a completion or a command.
 *
 * Doorbells are watched edge-triggered and never read or written: a worker holds the same
 * descriptor, and could make either block. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/futex.h"
#include "base/random.h"
#include "agent.h"

enum { EPOLL_EVERY = 64, EVENTS = 64 };
static const uint64_t FROM_CHANNEL = UINT64_MAX, FROM_CONTROL = UINT64_MAX - 1;

static int watch_fd(struct pool *p, int fd, uint64_t what)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = what};
    return epoll_ctl(p->lane_epfd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

int lane_thread_watch(struct pool *p, uint32_t session, int doorbell)
{
    return watch_fd(p, doorbell, session);
}

void lane_thread_unwatch(struct pool *p, int doorbell)
{
    (void)epoll_ctl(p->lane_epfd, EPOLL_CTL_DEL, doorbell, NULL);
}

static void look_at_descriptors(struct pool *p, int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(p->lane_epfd, events, EVENTS, timeout_ms);
    for (int i = 0; i < n; i++) {
        if (events[i].data.u64 == FROM_CHANNEL)
            fab_chan_drain(p->device.chan);
        else if (events[i].data.u64 != FROM_CONTROL)
            lane_doorbell(p->lane, (uint32_t)events[i].data.u64);
    }
}

static void sleep_until_work(struct pool *p)
{
    uint64_t now = base_clock_ns();
    atomic_store(&p->lane_asleep,
                 true); /* before the last look: a command that comes after it kicks */
    uint64_t due = lane_prepare_sleep(p->lane, now);
    if (due != 0 && !atomic_load(&p->lane_stop)) {
        uint64_t ms = due == UINT64_MAX ? 1000 : due > now ? (due - now + 999999) / 1000000 : 0;
        look_at_descriptors(p, ms > 1000 ? 1000 : (int)ms);
    }
    atomic_store(&p->lane_asleep, false);
}

static void tell_control(struct pool *p)
{
    uint64_t one = 1;
    if (lane_has_events(p->lane) && write(p->events_efd, &one, sizeof one) < 0)
        BASE_ASSERT(errno == EAGAIN); /* full, and so readable */
}

static void *run_lane(void *arg)
{
    struct pool *p = arg;
    uint32_t passes = 0;
    uint64_t worked_ns = 0;
    while (!atomic_load_explicit(&p->lane_stop, memory_order_relaxed)) {
        uint64_t now = base_clock_ns();
        if (lane_step(p->lane, now) > 0) {
            worked_ns = now;
            tell_control(p);
        } else if (now - worked_ns > p->config->spin_ns) {
            sleep_until_work(p);
            worked_ns = base_clock_ns();
            tell_control(p);
        }
        if (++passes % EPOLL_EVERY == 0)
            look_at_descriptors(p, 0);
    }
    tell_control(p);
    return NULL;
}

/* One: a session belongs to one thread, and waking as many as somebody put there takes long. */
static void wake_worker(void *user, _Atomic uint32_t *word)
{
    (void)user;
    (void)base_futex_wake(word, 1);
}

static int fill_random(void *user, void *bytes, size_t n)
{
    (void)user;
    return base_random_bytes(bytes, n);
}

/* What is out takes so little of the time that a request may be out, at the port's rate, that it is
 * over in time where the network has only a small part of that to give, or lanes share the port. */
static uint64_t most_bytes(const struct agent_device *d)
{
    enum { PART = 32 };
    return d->bound_ns / BASE_NS_PER_MS * d->fab->caps.port_rate / PART;
}

/* As long as the device repeats a READ whose packets are lost. With DC all metaservers are asked
 * through one initiator, so that the next one's answer comes behind that. */
static uint64_t lookup_timeout_ns(const struct pool *p)
{
    const uint64_t least_ns = LOOKUP_TIMEOUT_MS * BASE_NS_PER_MS;
    const uint64_t repeats_ns = p->device.bound_ns / 2;
    const uint64_t all_ns =
        p->device.rc || p->config->metaservers < 2 ? repeats_ns : 2 * repeats_ns;
    return all_ns > least_ns ? all_ns : least_ns;
}

/* As long as a connected queue pair would have repeated a request. */
static uint64_t patience_ns(const struct pool *p)
{
    const uint64_t least_ns = PATH_PATIENCE_MS * BASE_NS_PER_MS,
                   repeats_ns = p->device.bound_ns / 2;
    return repeats_ns > least_ns ? repeats_ns : least_ns;
}

static int make_lane(struct pool *p)
{
    const struct agentd_config *c = p->config;
    const struct agent_device *d = &p->device;
    struct lane_config config = {
        .max_sessions = (uint32_t)c->max_sessions,
        .max_peers = (uint32_t)c->max_peers,
        .max_flows =
            2 * (uint32_t)c->max_peers, /* whatever others do, one tenant has all of them */
        .max_tenants = AGENTD_TENANT_SLOTS,
        .max_mrs = (uint32_t)c->max_mrs,
        .quotas = p->quota,
        .mr_cache = MR_CACHE,
        .sq_depth = d->sq_depth,
        .rc = d->rc,
        .max_links = p->prewarm.connections,
        .spin_ns = c->spin_ns,
        .guess_budget = GUESS_BUDGET,
        .max_grants = MAX_GRANTS,
        .suspect_ns = SUSPECT_TIMEOUTS * fab_timeout_ns(&d->fab->caps, (uint8_t)c->ack_timeout),
        .port_rate = d->fab->caps.port_rate,
        .most_bytes = d->fab->caps.deadlines ? 0 : most_bytes(d),
        .lookup_timeout_ns = lookup_timeout_ns(p),
        .path_patience_ns = patience_ns(p),
        .lookup_hedge_ns = LOOKUP_HEDGE_MS * BASE_NS_PER_MS,
        .node_lease_ns = NODE_BELIEVED_S * BASE_NS_PER_S,
        .mr_lease_ns = p->mr_lease_ns,
        .deadlines = d->fab->caps.deadlines,
        .posts_in_time = d->fab->caps.posts_in_time,
        .end_overdue = !d->fab->caps.deadlines,
        .own_regions = !d->fab->caps.deadlines,
        .clock_doubted = &p->agent->clock.doubted,
        .streams = d->fab->caps.dci_streams,
        .names_culprit = d->fab->caps.names_culprit,
        .writes_in_order = d->fab->caps.writes_in_order,
        .bound_ns = d->bound_ns,
        .slack_ns = d->fab->caps.slack_ns,
        .pool = p->number,
        .incarnation = p->incarnation,
    };
    memcpy(config.gid, d->fab->caps.gid, sizeof config.gid);
    struct lane_device_objects r = {
        .fab = d->fab,
        .cq = d->cq,
        .pd = d->pd,
        .dcis = d->rc ? 0 : p->prewarm.dcis,
        .spares = d->rc ? 0 : p->prewarm.spares,
        .max_spares = d->rc ? 0 : d->max_spares,
        .system_dci = d->rc ? NULL : d->qp[0],
        .scratch = d->scratch,
        .scratch_lkey = d->scratch_mr->lkey,
        .scratch_system_lkey = d->scratch_system_mr->lkey,
        .small = d->small,
        .small_iova = d->small_mr != NULL ? d->small_mr->addr : 0,
        .small_lkey = d->small_mr != NULL ? d->small_mr->lkey : 0,
        .peers = p->peers.table,
        .mr_table = &p->device.table->table,
    };
    for (uint32_t i = 0; i < r.dcis; i++)
        r.dci[i] = d->qp[1 + i];
    for (uint32_t i = 0; i < r.spares; i++)
        r.spare[i] = d->qp[1 + r.dcis + i];
    int status = lane_new(&config, &r, &p->lane);
    if (status == 0) {
        lane_set_random(p->lane, fill_random, NULL);
        lane_set_wake(p->lane, wake_worker, NULL);
    }
    return status;
}

/* On its CPU from the beginning. -EINVAL has its own sentence. */
static int start_thread(struct pool *p, struct base_errbuf *err)
{
    pthread_attr_t attr;
    const struct fab_placement *at = &p->device.placement;
    (void)pthread_attr_init(&attr);
    if (at->bound)
        (void)pthread_attr_setaffinity_np(&attr, sizeof at->cpus, &at->cpus);
    int status = -pthread_create(&p->thread, &attr, run_lane, p);
    (void)pthread_attr_destroy(&attr);
    if (status == 0) {
        p->thread_runs = true;
        return 0;
    }
    if (status == -EINVAL)
        return base_err(err, status,
                        "lane_cpu = %llu: this process may not run there (see nproc, and the "
                        "unit's AllowedCPUs; or set lane_cpu = any)",
                        (unsigned long long)p->config->lane_cpu);
    return base_err(err, status, "the lane cannot begin: %s (raise TasksMax?)", strerror(-status));
}

int lane_thread_start(struct pool *p, struct base_errbuf *err)
{
    p->lane_epfd = epoll_create1(EPOLL_CLOEXEC);
    p->lane_kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    p->events_efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (p->lane_epfd < 0 || p->lane_kick < 0 || p->events_efd < 0 ||
        watch_fd(p, p->device.chan->fd, FROM_CHANNEL) != 0 ||
        watch_fd(p, p->lane_kick, FROM_CONTROL) != 0)
        return base_err(err, -errno, "the lane cannot begin: %s (raise LimitNOFILE?)",
                        strerror(errno));
    for (uint32_t i = 0; i < p->config->metaservers; i++)
        p->registration[i].lane.number = i; /* as the lane is to name it */
    int status = make_lane(p);
    if (status == 0)
        return start_thread(p, err);
    return base_err(err, status, "the lane cannot begin: %s", strerror(-status));
}

static void kick_lane(struct pool *p)
{
    uint64_t one = 1;
    if (write(p->lane_kick, &one, sizeof one) < 0)
        BASE_ASSERT(errno == EAGAIN);
}

void lane_thread_stop(struct pool *p)
{
    if (p->thread_runs) {
        atomic_store(&p->lane_stop, true);
        kick_lane(p);
        pthread_join(p->thread, NULL);
        p->thread_runs = false;
    }
    struct fab_ctl drop = {.kind = FAB_DESTROY_AH};
    while (p->lane != NULL && (drop.ah.x = lane_take_ah(p->lane)) != NULL)
        (void)fab_call(p->device.fab, &drop);
    for (uint32_t i = 0; i < p->config->metaservers; i++) {
        if ((drop.ah.x = p->registration[i].lane.ah) != NULL)
            (void)fab_call(p->device.fab, &drop);
        if ((drop.ah.x = p->registration[i].before) != NULL)
            (void)fab_call(p->device.fab, &drop);
        p->registration[i].lane.ah = p->registration[i].before = NULL;
    }
    lane_free(p->lane);
    p->lane = NULL;
    int fds[] = {p->lane_epfd, p->lane_kick, p->events_efd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    p->lane_epfd = p->lane_kick = p->events_efd = -1;
}

void lane_thread_command(struct pool *p, const struct lane_command *command)
{
    while (lane_command(p->lane, command) != 0) {
        kick_lane(p);
        usleep(100); /* the lane takes all of them in each pass */
    }
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&p->lane_asleep))
        kick_lane(p);
}
