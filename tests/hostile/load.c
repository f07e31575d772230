/* SPDX-License-Identifier: Apache-2.0 */
/* All that the rules allow, and as much of it as they allow. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "hostile.h"
#include "schema/phase.h"
#include "schema/record.h"

enum {
    ANSWER_MS = 20000,
    SESSIONS = 16,
    BIG = 64 << 20,
    LONGEST = 8 << 20, /* message that SoftRoCE's port takes; others take more */
    SLEEPERS = 400,
    ARENAS = 64,
    CROWD = 100 /* sessions of one tenant, or as many as it may have */
};

/* One more arena of at least so many bytes: its number, or -errno. */
static int more_memory(struct raw *r, uint64_t bytes)
{
    struct schema_control_arena ask = {.bytes = bytes};
    union {
        struct schema_control_arena_ok ok;
        struct schema_control_error error;
        uint8_t bytes[SCHEMA_CONTROL_MAX_BYTES];
    } got;
    size_t came;
    unsigned count = 0;
    int fd, status = raw_send(r->socket, &ask, SCHEMA_CONTROL_ARENA, sizeof ask, 9);
    if (status == 0)
        status = base_fds_recv(r->socket, &got, sizeof got, &came, &fd, 1, &count);
    if (status != 0)
        return status;
    if (got.ok.h.type == SCHEMA_CONTROL_ERROR)
        return got.error.status;
    if (count != 1 || got.ok.bytes < bytes)
        hostile_fail("the agent's arena makes no sense");
    close(fd);
    return (int)got.ok.arena;
}

void hostile_set_up_writer(struct writer *w, uint64_t bytes)
{
    uint64_t value[2], all;
    int arena = bytes == 0 ? 0 : more_memory(&w->r, bytes);
    if (arena < 0)
        hostile_fail("asking for memory: %s", strerror(-arena));
    all = bytes == 0 ? w->r.arena_bytes : bytes;
    struct schema_sq_desc reg = {
        .op = SCHEMA_OP_REG_MR,
        .reg_mr = {.arena = (uint32_t)arena, .length = all / 2, .access = SCHEMA_RECORD_WRITE}};
    if (raw_connect(&w->r) != 0 || raw_ask(&w->r, &reg, value) != 0)
        hostile_fail("registering own memory failed");
    w->d = (struct schema_sq_desc){
        .op = SCHEMA_OP_WRITE,
        .slots = 1,
        .num_sge = 1,
        .flags = SCHEMA_OP_SIGNALED,
        .post = {.vkey = (uint32_t)value[0],
                 .length = (uint32_t)(all / 2 < LONGEST ? all / 2 : LONGEST),
                 .offset = all / 2,
                 .arena = (uint32_t)arena}};
}

static void start_writer(struct hostile *h, struct writer *w, uint64_t bytes)
{
    raw_open(h, &w->r);
    hostile_set_up_writer(w, bytes);
}

/* The largest requests that there can be, as many as there can be at a time. */
void attack_greedy(struct hostile *h)
{
    static struct writer w[SESSIONS];
    for (int i = 0; i < SESSIONS; i++)
        start_writer(h, &w[i], i == 0 ? BIG : 0);
    hostile_begin(h);
    while (!hostile_over(h))
        for (int i = 0; i < SESSIONS; i++) {
            struct raw *r = &w[i].r;
            struct schema_cqe e;
            if (r->tail - atomic_load(&r->ro->sq_head) < r->ro->sq_slots)
                raw_put(r, &w[i].d, NULL, 0);
            while (raw_poll(r, &e, 0) >= 0) {
                if (e.status != 0)
                    hostile_fail("a request that is all right failed: %u", e.status);
                h->did++;
            }
        }
    for (int i = 0; i < SESSIONS; i++)
        raw_close(&w[i].r);
}

/* Until the lane has gone to sleep, or polls on for another's sake: soon. */
static void await_sleep(const struct raw *r)
{
    const uint64_t until_ns = base_clock_ns() + BASE_NS_PER_MS;
    while (atomic_load(&r->ro->doorbell) == 0 && base_clock_ns() < until_ns)
        ;
}

/* Says of its workers that they run on the lane's processor, where they do not, so that the lane
 * sleeps whenever it has answered one; and rings at once when it does, half of the time, so that
 * the lane lives in its own wake-up, or else is heard again soon. */
void attack_false_processor(struct hostile *h)
{
    enum { PAUSE_US = 50, AT_ONCE = 256 };
    static struct writer w[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) {
        start_writer(h, &w[i], 0);
        w[i].d.post.length = 8;
    }
    hostile_begin(h);
    while (!hostile_over(h)) {
        struct schema_cqe e;
        const bool at_once = h->did / AT_ONCE % 2 == 0;
        struct writer *one = &w[at_once ? 0 : hostile_random(h) % SESSIONS];
        struct raw *r = &one->r;
        atomic_store(&r->rw->cpu, atomic_load(&r->ro->lane_cpu));
        raw_put(r, &one->d, NULL, 0);
        const int status = raw_poll(r, &e, ANSWER_MS);
        if (status != 0)
            hostile_fail("a request that is all right failed: %d", status);
        h->did++;
        if (at_once)
            await_sleep(r);
        else
            usleep(PAUSE_US);
    }
    for (int i = 0; i < SESSIONS; i++)
        raw_close(&w[i].r);
}

/* All that it will ever post is in its ring from the beginning, without completions: the index
 * moves, and what says that they are there. */
static void fill_for_ever(struct writer *w)
{
    w->d.flags = 0;
    w->d.post.length = 8;
    for (uint32_t i = 0; i < w->r.ro->sq_slots; i++)
        memcpy(w->r.ring + (size_t)i * SCHEMA_LINE, &w->d, sizeof w->d);
}

/* True: its ring was not full. */
static bool fill_up(struct raw *r)
{
    const uint32_t full = atomic_load(&r->ro->sq_head) + r->ro->sq_slots;
    if (full == r->tail)
        return false;
    struct schema_sq_desc *ring = (void *)r->ring;
    for (uint32_t i = r->tail; i != full; i++) /* of a former round's phase */
        ring[i & (r->ro->sq_slots - 1)].slots = 1;
    schema_sq_publish(r->rw, ring, r->ro->sq_slots - 1, r->tail, full);
    atomic_thread_fence(memory_order_seq_cst);
    r->tail = full;
    if (atomic_load(&r->ro->doorbell) != 0)
        raw_ring(r);
    return true;
}

/* Small requests of many sessions, whose rings are always full. */
void attack_smalls(struct hostile *h)
{
    static struct writer w[CROWD];
    int sessions = 0;
    for (; sessions < CROWD && raw_open_more(h, &w[sessions].r, sessions); sessions++) {
        hostile_set_up_writer(&w[sessions], 0);
        fill_for_ever(&w[sessions]);
    }
    hostile_begin(h);
    while (!hostile_over(h))
        for (int i = 0; i < sessions; i++)
            h->did += fill_up(&w[i].r);
    for (int i = 0; i < sessions; i++)
        if (raw_ended(&w[i].r))
            hostile_fail("small requests ended the session");
    while (sessions > 0)
        raw_close(&w[--sessions].r);
}

/* Doorbells of many sessions that have nothing to say. */
void attack_doorbells(struct hostile *h)
{
    static struct raw r[CROWD];
    int sessions = 0;
    while (sessions < CROWD && raw_open_more(h, &r[sessions], sessions))
        sessions++;
    hostile_begin(h);
    while (!hostile_over(h))
        for (int i = 0; i < sessions; i++, h->did++)
            raw_ring(&r[i]);
    for (int i = 0; i < sessions; i++)
        if (raw_ended(&r[i]))
            hostile_fail("ringing ended the session");
    while (sessions > 0)
        raw_close(&r[--sessions]);
}

struct ringer {
    int fd;
    _Atomic bool stop;
    _Atomic uint64_t rings, most_ns; /* that one of them took */
};

static void *ring_on(void *arg)
{
    struct ringer *r = arg;
    const uint64_t one = 1;
    while (!atomic_load(&r->stop)) {
        const uint64_t begin = base_clock_ns();
        (void)!write(r->fd, &one, sizeof one);
        const uint64_t took = base_clock_ns() - begin;
        if (took > atomic_load(&r->most_ns))
            atomic_store(&r->most_ns, took);
        atomic_fetch_add(&r->rings, 1);
    }
    return NULL;
}

enum { EPOLLS = 300, COPIES = 300, HUNG_MS = 300 };

/* Less than the 1,024 open files that all may have. */
static void hang_on(int fd, int epoll[EPOLLS], int copy[COPIES])
{
    for (int i = 0; i < COPIES; i++)
        copy[i] = dup(fd);
    for (int i = 0; i < EPOLLS; i++) {
        epoll[i] = epoll_create1(EPOLL_CLOEXEC);
        for (int n = 0; n < COPIES; n++) {
            struct epoll_event e = {.events = EPOLLIN | EPOLLET};
            if (epoll_ctl(epoll[i], EPOLL_CTL_ADD, copy[n], &e) != 0)
                hostile_fail("watching: %s", strerror(errno));
        }
    }
}

static void let_go(int epoll[EPOLLS], int copy[COPIES])
{
    for (int i = 0; i < EPOLLS; i++)
        close(epoll[i]);
    for (int i = 0; i < COPIES; i++)
        close(copy[i]);
}

/* What others have, meanwhile: sessions that begin, work and end. The longest that one took. */
static uint64_t attach_beside(struct hostile *h)
{
    const uint64_t until = base_clock_ns() + HUNG_MS * BASE_NS_PER_MS;
    uint64_t most = 0;
    do {
        struct raw r;
        const uint64_t begin = base_clock_ns();
        raw_open(h, &r);
        if (raw_connect(&r) != 0)
            hostile_fail("a session beside a doorbell that hangs does not work");
        const uint64_t took = base_clock_ns() - begin;
        most = took > most ? took : most;
        raw_close(&r);
        h->did++;
    } while (base_clock_ns() < until);
    return most;
}

/* Each ring holds the lock of the eventfd's queue until all that hang on it are told; whoever takes
 * his own off waits for that, as the agent does of a session that is over. */
void attack_hung_doorbell(struct hostile *h)
{
    static int epoll[EPOLLS], copy[COPIES];
    uint64_t ring_ns = 0, attach_ns = 0;
    while (!hostile_over(h)) {
        struct raw r;
        pthread_t thread;
        raw_open(h, &r);
        struct ringer ringer = {.fd = dup(r.fd[SCHEMA_FD_DOORBELL])};
        hang_on(ringer.fd, epoll, copy);
        if (pthread_create(&thread, NULL, ring_on, &ringer) != 0)
            hostile_fail("no thread");
        while (atomic_load(&ringer.rings) == 0)
            usleep(1000);
        raw_close(&r);
        const uint64_t rings = atomic_load(&ringer.rings), took = attach_beside(h);
        if (atomic_load(&ringer.rings) == rings)
            hostile_fail("nobody rang while others attached");
        atomic_store(&ringer.stop, true);
        (void)pthread_join(thread, NULL);
        attach_ns = took > attach_ns ? took : attach_ns;
        ring_ns = ringer.most_ns > ring_ns ? ringer.most_ns : ring_ns;
        let_go(epoll, copy);
        close(ringer.fd);
    }
    printf("a ring took %llu us at most, and attaching beside it %llu us\n",
           (unsigned long long)(ring_ns / BASE_NS_PER_US),
           (unsigned long long)(attach_ns / BASE_NS_PER_US));
}

static void *sleep_on(void *arg)
{
    const struct raw *r = arg;
    while (!raw_ended(r)) {
        const struct timespec t = {.tv_nsec = 50000000};
        uint32_t seen = atomic_load(&r->ro->wake);
        (void)syscall(SYS_futex, &r->ro->wake, FUTEX_WAIT, seen, &t, NULL, 0);
    }
    return NULL;
}

/* Has hundreds of threads woken for each completion. */
void attack_sleepers(struct hostile *h)
{
    static pthread_t thread[SLEEPERS];
    struct writer w;
    pthread_attr_t attr;
    int threads = 0;
    start_writer(h, &w, 0);
    w.d.post.length = 8;
    atomic_store(&w.r.rw->want_wake, 1);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, 65536);
    while (threads < SLEEPERS && pthread_create(&thread[threads], &attr, sleep_on, &w.r) == 0)
        threads++;
    hostile_begin(h);
    while (!hostile_over(h)) {
        struct schema_cqe e;
        if (w.r.tail - atomic_load(&w.r.ro->sq_head) < w.r.ro->sq_slots)
            raw_put(&w.r, &w.d, NULL, 0);
        while (raw_poll(&w.r, &e, 0) >= 0)
            h->did++;
    }
    (void)shutdown(w.r.socket, SHUT_RDWR);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    raw_close(&w.r);
}

/* Asks for nodes that do not exist. */
void attack_strangers(struct hostile *h)
{
    struct raw r;
    raw_open(h, &r);
    while (!hostile_over(h)) {
        struct schema_sq_desc d = {.op = SCHEMA_OP_CONNECT, .connect = {.pool = r.ro->pool}};
        hostile_fill(h, d.connect.gid, sizeof d.connect.gid);
        h->errors += raw_ask(&r, &d, NULL) != 0;
        h->did++;
    }
    raw_close(&r);
}

/* Takes all the memory and sessions that its tenant may have, and leaves with them. */
void attack_hoard(struct hostile *h)
{
    static struct raw r[ARENAS];
    while (!hostile_over(h)) {
        int sessions = 0, status = 0;
        for (; sessions < ARENAS; sessions++) {
            if (raw_try(h->socket, &r[sessions]) != 0)
                break;
            for (int n = 0; n < 4 && status >= 0; n++, h->did++)
                status = more_memory(&r[sessions], 1 << 20);
        }
        h->errors += status < 0;
        while (sessions > 0)
            raw_close(&r[--sessions]);
    }
}

/* Asks for nearly all the memory that its tenant may have, and leaves before it is made. */
void attack_balloon(struct hostile *h)
{
    while (!hostile_over(h)) {
        struct raw r;
        struct schema_control_arena ask = {.bytes = 200 << 20};
        if (raw_try(h->socket, &r) != 0) { /* what it left counts until it is given back */
            h->errors++;
            usleep(1000);
            continue;
        }
        (void)raw_send(r.socket, &ask, SCHEMA_CONTROL_ARENA, sizeof ask, 1);
        h->did++;
        raw_close(&r);
    }
}

/* Its arena is on the way when the session ends. */
void attack_ask_and_fault(struct hostile *h)
{
    while (!hostile_over(h)) {
        struct raw r;
        struct schema_control_arena ask = {.bytes = hostile_random(h) % 2 ? 0 : 4 << 20};
        raw_open(h, &r);
        if (raw_send(r.socket, &ask, SCHEMA_CONTROL_ARENA, sizeof ask, 1) != 0)
            hostile_fail("asking for memory");
        usleep((useconds_t)(hostile_random(h) % 300));
        atomic_store(&r.rw->sq_tail, UINT32_MAX / 2);
        raw_ring(&r);
        if (!raw_ends_within(&r, ANSWER_MS))
            hostile_fail("a wrong tail did not end the session");
        h->cut_off++;
        h->did++;
        raw_close(&r);
    }
}
