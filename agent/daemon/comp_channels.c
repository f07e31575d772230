/* SPDX-License-Identifier: Apache-2.0 */
#include "comp_channels.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "control/tenant_queue.h"

enum { QUICK, SLOW, SIDES, BITS = 64 };

struct channel {
    struct tenant_queue_item turn;
    uint32_t tenant, session;
    int fd;    /* our end */
    bool told; /* a byte is to be sent */
    bool gone; /* it is no session's, and to be closed */
    bool busy; /* a thread does one of these, without the lock */
};

struct side { /* a thread, and what waits for it */
    struct comp_channels *of;
    pthread_t thread;
    bool runs;
    int kick;
    _Atomic bool asleep;
    struct tenant_queue queue;
    struct channel *doing; /* whose turn it is, or NULL */
};

/* What its channels have cost. 0 is of all tenants that are gone. */
struct channel_tenant {
    uint64_t slow_until_ns;      /* the slow thread has what comes before */
    uint64_t rest_until_ns;      /* and does nothing before */
    uint64_t debt_ns, debt_asof; /* time that took too long, and is not over CHANNELS_PART times */
    uint32_t closing;
};

struct comp_channels {
    uint32_t sessions;
    _Atomic uint64_t *asked; /* bit by session: it is to be told */
    _Atomic bool stop;
    /* Nobody waits for anything with it, and no lane takes it. */
    pthread_mutex_t lock;
    struct channel **of; /* by session; NULL: it has none */
    uint16_t *had;       /* by session: with those that are not closed yet */
    uint32_t open;       /* with those that are not closed yet */
    struct channel_tenant tenant[TENANT_QUEUE_OWNERS];
    struct side side[SIDES];
};

/* ---- whose turn it is */

static void kick_side(struct side *s)
{
    const uint64_t one = 1;
    if (atomic_load(&s->asleep) && atomic_exchange(&s->asleep, false))
        if (write(s->kick, &one, sizeof one) < 0)
            BASE_ASSERT(errno == EAGAIN);
}

/* With the lock. What it waits for already, or is done meanwhile, is looked at when that is over.
 */
static void queue_channel(struct comp_channels *c, struct channel *ch)
{
    if (ch->busy || ch->turn.waits)
        return;
    const bool slow = c->tenant[ch->tenant].slow_until_ns > base_clock_ns();
    struct side *s = &c->side[slow ? SLOW : QUICK];
    agent_tenant_queue_join(&s->queue, &ch->turn, ch->tenant, false);
    kick_side(s);
}

struct may_look {
    const struct comp_channels *of;
    uint64_t now_ns;
    uint64_t due_ns; /* out: when the first of those may that may not now */
};

static bool may_turn(const void *user, uint32_t owner)
{
    struct may_look *look = (struct may_look *)(uintptr_t)user; /* which is no constant */
    const uint64_t until_ns = look->of->tenant[owner].rest_until_ns;
    if (until_ns <= look->now_ns)
        return true;
    look->due_ns = until_ns < look->due_ns ? until_ns : look->due_ns;
    return false;
}

/* With the lock. NULL, and until when. */
static struct channel *begin_turn(struct side *s, uint64_t *due_ns)
{
    struct may_look look = {.of = s->of, .now_ns = base_clock_ns(), .due_ns = UINT64_MAX};
    struct tenant_queue_item *item = agent_tenant_queue_next(&s->queue, may_turn, &look);
    *due_ns = look.due_ns;
    if (item == NULL)
        return NULL;
    agent_tenant_queue_take(&s->queue, item);
    struct channel *ch = TENANT_QUEUE_IN(struct channel, turn, item);
    ch->busy = true;
    ch->told = false;
    s->doing = ch;
    return ch;
}

static void free_channel(struct comp_channels *c, struct channel *ch)
{
    c->open--;
    c->had[ch->session]--;
    c->tenant[ch->tenant].closing--;
    free(ch);
}

/* ---- what it costs */

/* With the lock. What others had of the processor meanwhile is not the tenant's doing, unless it
 * had much of it itself: those whom it has woken have theirs before this thread goes on. */
static void charge_tenant(struct channel_tenant *t, uint64_t cpu_ns, uint64_t wall_ns)
{
    const uint64_t now_ns = base_clock_ns(), least_ns = CHANNELS_SLOW_MS * BASE_NS_PER_MS;
    if (cpu_ns < CHANNELS_LONG_US * BASE_NS_PER_US)
        return;
    const uint64_t paid_ns = (now_ns - t->debt_asof) / CHANNELS_PART;
    t->debt_ns = (t->debt_ns > paid_ns ? t->debt_ns - paid_ns : 0) + cpu_ns;
    t->debt_asof = now_ns;
    const uint64_t forgiven_ns = CHANNELS_FORGIVEN_US * BASE_NS_PER_US;
    if (t->debt_ns <= forgiven_ns)
        return;
    const uint64_t slow_ns = CHANNELS_SLOW_TIMES * wall_ns;
    t->slow_until_ns = now_ns + (slow_ns > least_ns ? slow_ns : least_ns);
    t->rest_until_ns = now_ns + (t->debt_ns - forgiven_ns) * CHANNELS_PART;
}

/* With the lock: what waits already goes where what comes would. */
static void move_to_slow(struct comp_channels *c, uint32_t owner)
{
    struct tenant_queue *from = &c->side[QUICK].queue;
    struct tenant_queue_item *item;
    while ((item = from->of[owner].first) != NULL) {
        agent_tenant_queue_leave(from, item);
        agent_tenant_queue_join(&c->side[SLOW].queue, item, owner, false);
    }
    kick_side(&c->side[SLOW]);
}

/* A channel that is full is readable, and one whose worker has closed its end is nobody's. */
static void do_channel(struct channel *ch, bool closes)
{
    if (closes)
        close(ch->fd);
    else
        (void)send(ch->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void take_turn(struct comp_channels *c, struct side *s, struct channel *ch)
{
    const bool closes = ch->gone;
    (void)pthread_mutex_unlock(&c->lock);
    const uint64_t wall_ns = base_clock_ns(), cpu_ns = base_clock_thread_ns();
    do_channel(ch, closes);
    const uint64_t cpu_took = base_clock_thread_ns() - cpu_ns, took = base_clock_ns() - wall_ns;
    (void)pthread_mutex_lock(&c->lock);
    s->doing = NULL;
    charge_tenant(&c->tenant[ch->tenant], cpu_took, took);
    if (c->tenant[ch->tenant].slow_until_ns > base_clock_ns())
        move_to_slow(c, ch->tenant);
    ch->busy = false;
    if (closes)
        free_channel(c, ch);
    else if (ch->told || ch->gone)
        queue_channel(c, ch);
}

/* ---- the threads */

/* With the lock: those that were asked to be told wait for their turns. */
static void collect_asked(struct comp_channels *c)
{
    for (uint32_t word = 0; word * BITS < c->sessions; word++) {
        if (atomic_load_explicit(&c->asked[word], memory_order_relaxed) == 0)
            continue;
        uint64_t bits = atomic_exchange(&c->asked[word], 0);
        for (; bits != 0; bits &= bits - 1) {
            struct channel *ch = c->of[word * BITS + (uint32_t)__builtin_ctzll(bits)];
            if (ch == NULL)
                continue;
            ch->told = true;
            queue_channel(c, ch);
        }
    }
}

static void sleep_side(struct side *s, uint64_t due_ns)
{
    const uint64_t now_ns = base_clock_ns();
    struct pollfd kick = {.fd = s->kick, .events = POLLIN};
    uint64_t times;
    const uint64_t ms = due_ns > now_ns ? (due_ns - now_ns) / BASE_NS_PER_MS + 1 : 0;
    if (poll(&kick, 1, due_ns == UINT64_MAX ? -1 : ms > 1000 ? 1000 : (int)ms) > 0)
        if (read(s->kick, &times, sizeof times) < 0)
            BASE_ASSERT(errno == EAGAIN || errno == EINTR);
    atomic_store(&s->asleep, false);
}

/* What is asked for after the last look kicks, since `asleep` is set before it (held to
 * tests/model/channel.pml). */
static void *run_side(void *arg)
{
    struct side *s = arg;
    struct comp_channels *c = s->of;
    bool last_look = false;
    (void)pthread_mutex_lock(&c->lock);
    while (!atomic_load(&c->stop)) {
        uint64_t due_ns;
        if (s == &c->side[QUICK])
            collect_asked(c);
        struct channel *ch = begin_turn(s, &due_ns);
        if (ch != NULL) {
            atomic_store(&s->asleep, false);
            take_turn(c, s, ch);
            last_look = false;
        } else if (!last_look) {
            atomic_store(&s->asleep, true);
            last_look = true;
        } else {
            (void)pthread_mutex_unlock(&c->lock);
            sleep_side(s, due_ns);
            (void)pthread_mutex_lock(&c->lock);
            last_look = false;
        }
    }
    (void)pthread_mutex_unlock(&c->lock);
    return NULL;
}

static int start_side(struct side *s)
{
    s->kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (s->kick < 0)
        return -errno;
    const int status = -pthread_create(&s->thread, NULL, run_side, s);
    s->runs = status == 0;
    return status;
}

static void stop_sides(struct comp_channels *c)
{
    const uint64_t one = 1;
    atomic_store(&c->stop, true);
    for (struct side *s = c->side; s < c->side + SIDES; s++) {
        if (s->runs && write(s->kick, &one, sizeof one) < 0)
            BASE_ASSERT(errno == EAGAIN);
        if (s->runs)
            pthread_join(s->thread, NULL);
    }
}

/* ---- all of it */

static void close_all(struct comp_channels *c)
{
    for (uint32_t i = 0; i < c->sessions; i++)
        agentd_comp_channels_close(c, i);
    for (struct side *s = c->side; s < c->side + SIDES; s++) {
        for (uint32_t owner = 0; owner < TENANT_QUEUE_OWNERS; owner++) {
            while (s->queue.of[owner].first != NULL) {
                struct tenant_queue_item *item = s->queue.of[owner].first;
                agent_tenant_queue_take(&s->queue, item);
                struct channel *ch = TENANT_QUEUE_IN(struct channel, turn, item);
                close(ch->fd);
                free_channel(c, ch);
            }
        }
        if (s->kick >= 0)
            close(s->kick);
    }
}

void agentd_comp_channels_free(struct comp_channels *c)
{
    if (c == NULL)
        return;
    stop_sides(c);
    close_all(c);
    BASE_ASSERT(c->open == 0);
    (void)pthread_mutex_destroy(&c->lock);
    free(c->asked);
    free(c->of);
    free(c->had);
    free(c);
}

int agentd_comp_channels_new(uint32_t sessions, struct comp_channels **out, struct base_errbuf *err)
{
    struct comp_channels *c = calloc(1, sizeof *c);
    if (c == NULL)
        return base_err(err, -ENOMEM, "out of memory for completion channels");
    (void)pthread_mutex_init(&c->lock, NULL);
    c->asked = calloc((sessions + BITS - 1) / BITS, sizeof *c->asked);
    c->of = calloc(sessions, sizeof(struct channel *));
    c->had = calloc(sessions, sizeof *c->had);
    int status = c->asked != NULL && c->of != NULL && c->had != NULL ? 0 : -ENOMEM;
    for (struct side *s = c->side; s < c->side + SIDES; s++) {
        s->of = c;
        s->kick = -1;
    }
    c->sessions = status == 0 ? sessions : 0;
    for (int i = 0; i < SIDES && status == 0; i++)
        status = start_side(&c->side[i]);
    if (status != 0) {
        agentd_comp_channels_free(c);
        return base_err(err, status, "completion channels cannot begin: %s (raise TasksMax?)",
                        strerror(-status));
    }
    *out = c;
    return 0;
}

/* With the lock. */
static void end_channel(struct comp_channels *c, uint32_t session)
{
    struct channel *ch = c->of[session];
    if (ch == NULL)
        return;
    c->of[session] = NULL;
    c->tenant[ch->tenant].closing++;
    ch->gone = true;
    queue_channel(c, ch);
}

void agentd_comp_channels_close(struct comp_channels *c, uint32_t session)
{
    (void)pthread_mutex_lock(&c->lock);
    end_channel(c, session);
    (void)pthread_mutex_unlock(&c->lock);
}

/* With the lock: whether there is room for one more. A session has one by right; beside one that is
 * not closed yet it has another only where all together are no more than there are sessions. */
static int check_room(const struct comp_channels *c, uint32_t session, uint32_t tenant,
                      struct base_errbuf *err)
{
    const uint32_t closing = c->tenant[tenant].closing;
    if (c->had[session] == 0)
        return 0;
    if (closing >= CHANNELS_CLOSING)
        return base_err(err, -EAGAIN,
                        "%u completion channels of this tenant are not closed yet, since what was "
                        "hung on them makes that slow: try again later",
                        closing);
    if (c->open >= c->sessions)
        return base_err(err, -EAGAIN,
                        "%u completion channels are open, or not closed yet: try again later",
                        c->open);
    return 0;
}

/* Our end takes nothing: with what a worker could send it descriptors would come to be closed. */
static int make_pair(int ends[2], struct base_errbuf *err)
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
        return base_err(err, -errno, "no completion channel can be had: %s%s", strerror(errno),
                        errno == EMFILE ? " (raise LimitNOFILE)" : "");
    (void)shutdown(ends[0], SHUT_RD);
    /* What is sent is the agent's memory until it is read, also when this end is closed: 6 bytes
     * and not 278, which take a page each at worst. */
    const int least = 0;
    (void)setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
    return 0;
}

int agentd_comp_channels_open(struct comp_channels *c, uint32_t session, uint32_t tenant, int *fd,
                              struct base_errbuf *err)
{
    struct channel *ch = calloc(1, sizeof *ch);
    int ends[2];
    if (ch == NULL)
        return base_err(err, -ENOMEM, "out of memory for a completion channel");
    (void)pthread_mutex_lock(&c->lock);
    end_channel(c, session);
    int status = check_room(c, session, tenant, err);
    if (status == 0)
        status = make_pair(ends, err);
    if (status == 0) {
        *ch = (struct channel){.tenant = tenant, .session = session, .fd = ends[0]};
        c->of[session] = ch;
        c->open++;
        c->had[session]++;
        *fd = ends[1];
    }
    (void)pthread_mutex_unlock(&c->lock);
    if (status != 0)
        free(ch);
    return status;
}

static uint64_t later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void agentd_comp_channels_forget(struct comp_channels *c, uint32_t tenant)
{
    (void)pthread_mutex_lock(&c->lock);
    struct channel_tenant *t = &c->tenant[tenant], *gone = &c->tenant[0];
    *gone =
        (struct channel_tenant){.slow_until_ns = later_of(gone->slow_until_ns, t->slow_until_ns),
                                .rest_until_ns = later_of(gone->rest_until_ns, t->rest_until_ns),
                                .debt_ns = later_of(gone->debt_ns, t->debt_ns),
                                .debt_asof = later_of(gone->debt_asof, t->debt_asof),
                                .closing = gone->closing + t->closing};
    *t = (struct channel_tenant){.debt_ns = 0};
    for (struct side *s = c->side; s < c->side + SIDES; s++) {
        struct tenant_queue_item *item;
        while ((item = s->queue.of[tenant].first) != NULL) {
            agent_tenant_queue_leave(&s->queue, item);
            agent_tenant_queue_join(&s->queue, item, 0, false);
            TENANT_QUEUE_IN(struct channel, turn, item)->tenant = 0;
        }
        if (s->doing != NULL && s->doing->tenant == tenant)
            s->doing->tenant = 0;
    }
    (void)pthread_mutex_unlock(&c->lock);
}

void agentd_comp_channels_tell(struct comp_channels *c, uint32_t session)
{
    const uint64_t bit = 1ull << session % BITS;
    if ((atomic_fetch_or(&c->asked[session / BITS], bit) & bit) == 0)
        kick_side(&c->side[QUICK]);
}
