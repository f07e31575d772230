/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that sleep in all ways that there are, and in none of them with a time-out, for
 * sleeps.sh:
 *
 *   kedge-sleepers TOKEN ROUNDS SECONDS WAYS
 *
 * Four threads with a session each do so many rounds of READs of what TOKEN names, in the WAYS that
 * are listed, in seeded order: w (kedge_wait), m (kedge_wait_many), r (a batch is prepared, through
 * a ring that has no room for it), f (kedge_fd, kedge_arm, epoll). One that does not go on for so
 * many seconds has slept over something: it ends with 1 and says who. The agent is $KEDGE_SOCKET's.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <kedge.h>
#include <kedge_batch.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/random.h"
#include "delays.h"
#include "internal.h"
#include "schema/wake.h"

enum { WORKERS = 4, DEPTH = 16, BYTES = 8, DESCS = 1000, LOOK_US = 50000 };
enum sleep { AWAKE, FOR_ONE, FOR_MANY, FOR_ROOM, IN_EPOLL };

struct worker {
    struct kedge_session *s;
    struct kedge_vqp *q;
    struct kedge_remote remote;
    uint8_t *memory;
    uint32_t lkey, posted;
    int epfd, number;
    struct base_prng prng;
    pthread_t thread;
    _Atomic uint32_t moves; /* rounds and sleeps, for who looks whether it goes on */
    _Atomic int sleeps_in;  /* enum sleep */
    _Atomic char way;
    _Atomic uint32_t slept[IN_EPOLL + 1];
    _Atomic bool done;
};

static struct worker workers[WORKERS];
static _Thread_local struct worker *own; /* NULL: no worker's thread */
static const char *token, *ways;
static uint32_t rounds;

static _Noreturn void die(const char *what)
{
    printf("%s: %s\n", what, kedge_last_error());
    exit(1);
}

static void must(int status, const char *what)
{
    if (status < 0)
        die(what);
}

/* ---- the calls of libkedge around which this is linked */

static enum sleep kind_of(uint32_t want)
{
    const bool is_for_one = want == 1 || (want & SCHEMA_WAKE_ANSWER) != 0;
    return (want & SCHEMA_WAKE_ROOM) != 0 ? FOR_ROOM : is_for_one ? FOR_ONE : FOR_MANY;
}

static void begin_sleep(enum sleep in)
{
    atomic_fetch_add(&own->slept[in], 1);
    atomic_fetch_add(&own->moves, 1);
    atomic_store(&own->sleeps_in, in);
}

static void end_sleep(void)
{
    atomic_store(&own->sleeps_in, AWAKE);
    atomic_fetch_add(&own->moves, 1);
}

int __real_base_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
int __wrap_base_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
int __wrap_base_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    (void)timeout_ns;
    delays_step(); /* all was looked at */
    begin_sleep(kind_of(own->s->rw->want_wake));
    const int status = __real_base_futex_wait(word, expected, BASE_FUTEX_FOREVER);
    end_sleep();
    return status;
}

void __wrap_base_futex_relax(void);
void __wrap_base_futex_relax(void)
{
    delays_step();
}

/* Before the word is read that it will sleep on, or before it rings. */
void __real_client_say_processor(struct kedge_session *s);
void __wrap_client_say_processor(struct kedge_session *s);
void __wrap_client_say_processor(struct kedge_session *s)
{
    delays_step();
    __real_client_say_processor(s);
}

/* What it waits for was looked at, and not found. */
bool __real_client_has_notice(struct kedge_session *s);
bool __wrap_client_has_notice(struct kedge_session *s);
bool __wrap_client_has_notice(struct kedge_session *s)
{
    delays_step();
    return __real_client_has_notice(s);
}

ssize_t __real_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n)
{
    if (own == NULL || own->s == NULL || fd != own->s->doorbell)
        return __real_write(fd, bytes, n);
    return delays_loses("doorbell") ? (ssize_t)n : __real_write(fd, bytes, n);
}

/* ---- rounds */

static void post_reads(struct worker *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct ibv_sge sge = {
            .addr = (uintptr_t)w->memory + i * BYTES, .length = BYTES, .lkey = w->lkey};
        struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .wr_id = w->posted++,
                                 .wr.rdma = {.remote_addr = w->remote.addr,
                                             .rkey = w->remote.rkey}},
                           *bad;
        must(kedge_post_send(w->q, &wr, &bad), "posting");
    }
}

/* In their order, and none twice. */
static uint32_t take(struct worker *w, uint32_t out)
{
    struct ibv_wc wc[DEPTH];
    const int n = kedge_poll(w->s, DEPTH, wc);
    must(n, "polling");
    for (int i = 0; i < n; i++)
        if (wc[i].status != IBV_WC_SUCCESS || wc[i].wr_id != w->posted - out + (uint32_t)i) {
            printf("worker %d: READ %u ended with %d as number %u\n", w->number,
                   (unsigned)wc[i].wr_id, wc[i].status, w->posted - out + (uint32_t)i);
            exit(1);
        }
    return (uint32_t)n;
}

static void wait_in_epoll(struct worker *w)
{
    struct epoll_event event;
    const int armed = kedge_arm(w->s);
    must(armed, "arming");
    if (armed != 0)
        return;
    delays_step();
    begin_sleep(IN_EPOLL);
    while (epoll_wait(w->epfd, &event, 1, -1) < 0 && errno == EINTR)
        ;
    end_sleep();
}

static void read_some(struct worker *w, char way)
{
    uint32_t out = 1 + (uint32_t)base_prng_below(&w->prng, DEPTH);
    memset(w->memory, 0, DEPTH * BYTES);
    post_reads(w, out);
    for (const uint32_t all = out; out > 0; out -= take(w, out)) {
        if (way == 'f')
            wait_in_epoll(w);
        else if (way == 'w')
            must(kedge_wait(w->s, -1), "kedge_wait");
        else
            must(kedge_wait_many(w->s, 1 + (int)base_prng_below(&w->prng, all), -1),
                 "kedge_wait_many");
    }
    if (memchr(w->memory, 0, BYTES) != NULL) {
        printf("worker %d: its READs have ended, and brought nothing\n", w->number);
        exit(1);
    }
}

/* Says more than the ring has room for, many times over, and then asks. */
static void fill_ring(struct worker *w)
{
    static struct kedge_batch_desc desc[WORKERS][DESCS];
    struct kedge_batch *b;
    struct kedge_batch_desc *of = desc[w->number];
    for (int i = 0; i < DESCS; i++)
        of[i] = (struct kedge_batch_desc){
            .opcode = IBV_WR_RDMA_READ,
            .rkey = w->remote.rkey,
            .remote_addr = w->remote.addr,
            .local = {.addr = (uintptr_t)w->memory, .length = BYTES, .lkey = w->lkey}};
    must(kedge_batch_prepare(w->s, of, DESCS, &b), "a batch");
    must(kedge_batch_destroy(b), "its end");
}

static void begin(struct worker *w)
{
    const struct kedge_open_attr attr = {.agent_timeout_ms = -1}; /* nor any look at the lane */
    struct epoll_event event = {.events = EPOLLIN};
    void *memory;
    must(kedge_open(&attr, &w->s), "attaching");
    must(kedge_import(w->s, token, &w->remote), "the token");
    must(kedge_alloc(w->s, 4096, &memory, &w->lkey), "memory");
    w->memory = memory;
    must(kedge_vqp_create(w->s, NULL, &w->q), "a queue pair");
    must(kedge_connect(w->q, w->remote.gid), "connecting");
    const int fd = kedge_fd(w->s);
    must(fd, "the descriptor");
    w->epfd = epoll_create1(EPOLL_CLOEXEC);
    if (w->epfd < 0 || epoll_ctl(w->epfd, EPOLL_CTL_ADD, fd, &event) != 0) {
        perror("epoll");
        exit(1);
    }
}

static void *run(void *arg)
{
    struct worker *w = own = arg;
    begin(w);
    for (uint32_t i = 0; i < rounds; i++) {
        const char way = ways[base_prng_below(&w->prng, strlen(ways))];
        atomic_store(&w->way, way);
        if (way == 'r')
            fill_ring(w);
        else
            read_some(w, way);
        atomic_fetch_add(&w->moves, 1);
        if (base_prng_below(&w->prng, 4) == 0) /* the lane comes to sleep too */
            usleep((useconds_t)base_prng_below(&w->prng, 300));
    }
    atomic_store(&w->done, true);
    return NULL;
}

/* ---- who does not go on */

/* Of pages that nobody writes any more. */
static void say_who_sleeps(const struct worker *w)
{
    static const char *const where[] = {"is awake", "sleeps in a futex", "sleeps in a futex",
                                        "sleeps in a futex", "sleeps in epoll_wait()"};
    const struct kedge_session *s = w->s;
    const uint32_t slots = s->sq_mask + 1, want = s->rw->want_wake;
    const uint32_t waiting = s->rw->sq_tail - s->ro->sq_head,
                   there = s->ro->cq_tail - s->rw->cq_head;
    const uint32_t room = want & SCHEMA_WAKE_ROOM ? want & ~SCHEMA_WAKE_ROOM : 0;
    const bool is_answered = room == 0 && (want & SCHEMA_WAKE_ANSWER) != 0 &&
                             schema_wake_has_answer(want, s->ro->reply[want % SCHEMA_REPLIES].tag);
    printf("worker %d (way %c) %s for %#x: ", w->number, w->way, where[w->sleeps_in], want);
    if (waiting > 0 && s->ro->doorbell != 0)
        printf("the lane sleeps over %u slots of its ring\n", waiting);
    else if (room != 0 && slots - waiting >= room)
        printf("the worker sleeps over the room that there is, %u slots\n", slots - waiting);
    else if (there > 0)
        printf("the worker sleeps over %u completions\n", there);
    else if (is_answered || (w->sleeps_in == FOR_ONE && waiting == 0))
        printf("the worker sleeps over an answer\n");
    else
        printf("neither can be told: %u slots wait, %u completions are there\n", waiting, there);
}

static int watch(uint64_t limit_ns)
{
    uint32_t seen[WORKERS] = {0};
    uint64_t since_ns[WORKERS];
    int left = WORKERS;
    for (int i = 0; i < WORKERS; i++)
        since_ns[i] = base_clock_ns();
    while (left > 0) {
        usleep(LOOK_US);
        left = WORKERS;
        for (int i = 0; i < WORKERS; i++) {
            struct worker *w = &workers[i];
            const uint32_t moves = atomic_load(&w->moves);
            left -= atomic_load(&w->done);
            if (moves != seen[i] || atomic_load(&w->done)) {
                seen[i] = moves;
                since_ns[i] = base_clock_ns();
            } else if (base_clock_ns() - since_ns[i] > limit_ns) {
                if (w->s == NULL)
                    printf("worker %d does not come to attach\n", i);
                else
                    say_who_sleeps(w);
                return 1;
            }
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *seed = getenv("SLEEPS_SEED");
    uint32_t slept[IN_EPOLL + 1] = {0};
    if (argc != 5)
        return 2;
    token = argv[1];
    rounds = (uint32_t)strtoul(argv[2], NULL, 10);
    ways = argv[4];
    for (int i = 0; i < WORKERS; i++) {
        workers[i].number = i;
        base_prng_seed(&workers[i].prng,
                       (seed != NULL ? strtoull(seed, NULL, 10) : 0) * 100 + (uint64_t)i);
        if (pthread_create(&workers[i].thread, NULL, run, &workers[i]) != 0)
            return 2;
    }
    if (watch(strtoull(argv[3], NULL, 10) * BASE_NS_PER_S) != 0) {
        (void)fflush(stdout);
        _exit(1); /* its threads sleep for ever */
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        kedge_close(workers[i].s);
        for (int in = FOR_ONE; in <= IN_EPOLL; in++)
            slept[in] += workers[i].slept[in];
    }
    printf("%u rounds, slept %u for one, %u for many, %u for room, %u in epoll\n", WORKERS * rounds,
           slept[FOR_ONE], slept[FOR_MANY], slept[FOR_ROOM], slept[IN_EPOLL]);
    return 0;
}
