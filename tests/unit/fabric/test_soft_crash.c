/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that stop or die, at any instruction: what the soft provider still does, and what it leaves
 * behind. The peers are children of the test. */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "../../../fabric/soft/layout.h"
#include "../check_main.h"
#include "bed_qp.h"

#ifdef __SANITIZE_THREAD__
/* Children start threads of their own: the sanitizer only warns against that. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}
#endif

/* A child that opens a node, hands over its card, and then lives on in `then`. */
struct child {
    pid_t pid;
    int from, to; /* pipes; closing `to` ends it */
    struct bed_card card;
};

static void child_start(struct child *c, const char *dir,
                        void (*then)(struct bed_node *n, int from, int to))
{
    int up[2], down[2];
    ck_assert(pipe(up) == 0 && pipe(down) == 0);
    c->pid = fork();
    ck_assert_int_ge(c->pid, 0);
    if (c->pid == 0) {
        struct bed_node n;
        close(up[0]);
        close(down[1]);
        bed_open(&n, dir);
        for (uint64_t i = 0; i < 4; i++)
            BASE_ASSERT(bed_recv(&n, NULL, i, 64 * i, 64) == 0);
        memset(n.mem.addr, 0x5a, 4096);
        struct bed_card card = bed_card(&n, NULL);
        bed_write_full(up[1], &card, sizeof card);
        then(&n, down[0], up[1]);
        _exit(0);
    }
    close(up[1]);
    close(down[0]);
    c->from = up[0];
    c->to = down[1];
    bed_read_full(c->from, &c->card, sizeof c->card);
}

static void child_stop(const struct child *c)
{
    int status;
    ck_assert_int_eq(kill(c->pid, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(c->pid, &status, WUNTRACED), c->pid);
    ck_assert(WIFSTOPPED(status));
}

static void child_kill(const struct child *c)
{
    int status;
    (void)kill(c->pid, SIGKILL);
    ck_assert_int_eq(waitpid(c->pid, &status, 0), c->pid);
    close(c->from);
    close(c->to);
}

static void idle(struct bed_node *n, int from, int to)
{
    char byte;
    (void)n;
    (void)to;
    (void)!read(from, &byte, 1);
}

START_TEST(a_stopped_process_is_read_also_the_first_time)
{
    char dir[64];
    struct child c;
    struct bed_node n;
    struct bed_wr w;
    bed_dir_make(dir);
    child_start(&c, dir, idle);
    child_stop(&c);
    bed_open(&n, dir);
    struct fab_qp *qp = bed_qp(&n, FAB_QP_DCI, bed_hasty);
    struct fab_ah *ah = bed_ah(&n, c.card.gid);
    bed_fill(&w, &n, &c.card, ah, IBV_WR_RDMA_READ, 0, 8, 8);
    ck_assert_int_eq(bed_post_wait(qp, &w.wr), IBV_WC_SUCCESS);
    ck_assert_uint_eq(*(uint64_t *)n.mem.addr, 0x5a5a5a5a5a5a5a5aull);
    bed_fill(&w, &n, &c.card, ah, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 8);
    w.wr.compare_add = 1;
    ck_assert_int_eq(bed_post_wait(qp, &w.wr), IBV_WC_SUCCESS);
    bed_fill(&w, &n, &c.card, ah, IBV_WR_SEND, 0, 0, 64);
    for (int i = 0; i < 4; i++) /* as many as it posted receives */
        ck_assert_int_eq(bed_post_wait(qp, &w.wr), IBV_WC_SUCCESS);
    ck_assert_int_eq(bed_post_wait(qp, &w.wr), IBV_WC_RNR_RETRY_EXC_ERR);
    child_kill(&c);
    bed_qp_free(qp);
    bed_ah_free(ah);
    bed_close(&n);
    bed_dir_remove(dir);
}
END_TEST

/* Reads until the dead peer is noticed; says how many reads that took. */
static int reads_until_error(struct bed_node *n, struct fab_qp *qp, struct bed_wr *w)
{
    for (int i = 0;; i++) {
        enum ibv_wc_status status = bed_post_wait(qp, &w->wr);
        if (status != IBV_WC_SUCCESS) {
            ck_assert_int_eq(status, IBV_WC_RETRY_EXC_ERR);
            bed_modify(qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0);
            bed_connect(qp, NULL, bed_hasty);
            return i;
        }
        ck_assert_int_lt(i, 1000);
        usleep(1000);
        (void)n;
    }
}

START_TEST(a_killed_process_answers_no_more)
{
    char dir[64];
    struct child known, unknown;
    struct bed_node n;
    struct bed_wr w;
    bed_dir_make(dir);
    child_start(&known, dir, idle);
    child_start(&unknown, dir, idle);
    bed_open(&n, dir);
    struct fab_qp *qp = bed_qp(&n, FAB_QP_DCI, bed_hasty);
    struct fab_ah *ah = bed_ah(&n, known.card.gid), *ah2 = bed_ah(&n, unknown.card.gid);
    bed_fill(&w, &n, &known.card, ah, IBV_WR_RDMA_READ, 0, 8, 8);
    ck_assert_int_eq(bed_post_wait(qp, &w.wr), IBV_WC_SUCCESS);
    child_kill(&known);
    child_kill(&unknown);
    (void)reads_until_error(&n, qp, &w); /* the watcher may need a moment */
    ck_assert_int_eq(reads_until_error(&n, qp, &w), 0);
    bed_fill(&w, &n, &unknown.card, ah2, IBV_WR_RDMA_READ, 0, 8, 8);
    ck_assert_int_eq(reads_until_error(&n, qp, &w), 0);
    bed_fill(&w, &n, &unknown.card, ah2, IBV_WR_SEND, 0, 0, 8);
    ck_assert_int_eq(reads_until_error(&n, qp, &w), 0);
    bed_qp_free(qp);
    bed_ah_free(ah);
    bed_ah_free(ah2);
    bed_close(&n);
    bed_dir_remove(dir);
}
END_TEST

START_TEST(a_forked_child_does_not_keep_a_dead_context)
{
    char dir[64];
    uint8_t gid[16] = {0xfd, [15] = 9};
    int up[2], hold[2];
    char byte;
    struct fab *fab;
    struct fab_open_attr attr = {.device = dir};
    memcpy(attr.gid, gid, 16);
    bed_dir_make(dir);
    ck_assert(pipe(up) == 0 && pipe(hold) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        BASE_ASSERT(fab_soft.open(&attr, &fab, NULL) == 0);
        if (fork() == 0) { /* inherits the descriptor that holds the lock */
            close(hold[1]);
            (void)!read(hold[0], &byte, 1);
            _exit(0);
        }
        bed_write_full(up[1], "x", 1);
        pause();
    }
    bed_read_full(up[0], &byte, 1);
    ck_assert_int_eq(fab_soft.open(&attr, &fab, NULL), -EADDRINUSE);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(fab_soft.open(&attr, &fab, NULL), 0);
    ck_assert_int_eq(fab_close(fab), 0);
    close(hold[1]);
    bed_dir_remove(dir);
}
END_TEST

/* ---- the fence of deregistration */

enum { FENCE_CHUNK = 1 << 20, FENCE_READS = 32 };

/* What the test and the child that reads share. */
struct fence {
    struct bed_card target;
    _Atomic uint32_t rkey; /* 0: wait */
};
static struct fence *fence;

/* Reads the test's region without end, in chains, so that it is nearly always inside. */
static void read_for_ever(struct bed_node *n, int from, int to)
{
    static struct bed_wr w[FENCE_READS];
    struct ibv_wc wc;
    (void)from;
    (void)to;
    struct fab_ah *ah = bed_ah(n, fence->target.gid);
    struct fab_qp *qp = bed_qp(n, FAB_QP_DCI, bed_hasty);
    for (;;) {
        struct bed_card target = fence->target;
        target.rkey = atomic_load(&fence->rkey);
        for (int i = 0; i < FENCE_READS; i++) {
            bed_fill(&w[i], n, &target, ah, IBV_WR_RDMA_READ, 0, 0, FENCE_CHUNK);
            w[i].wr.next = i + 1 < FENCE_READS ? &w[i + 1].wr : NULL;
        }
        if (target.rkey == 0)
            continue;
        bed_post(qp, &w[0].wr);
        for (int i = 0; i < FENCE_READS; i++)
            wc = bed_wait(n->cq);
        if (wc.status != IBV_WC_SUCCESS) {
            bed_modify(qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0);
            bed_connect(qp, NULL, bed_hasty);
        }
    }
}

static void set_flag(struct fab_ctl *ctl)
{
    *(bool *)ctl->user = true;
}

/* Runs control operations for so long; whether *flag came true. */
static bool run_for(struct bed_node *n, uint64_t ms, const bool *flag)
{
    for (uint64_t start = base_clock_ns(); base_clock_ns() - start < ms * BASE_NS_PER_MS;) {
        fab_run(n->fab);
        if (*flag)
            return true;
        usleep(500);
    }
    return false;
}

/* Deregisters n's region with the child stopped inside it, ctl pending. */
static void get_stuck(struct bed_node *n, const struct child *c, struct fab_ctl *ctl, bool *done)
{
    for (int tries = 0; tries < 100; tries++) {
        atomic_store(&fence->rkey, n->mr->rkey);
        usleep(3000);
        child_stop(c);
        *done = false;
        *ctl = (struct fab_ctl){
            .kind = FAB_DEREG_MR, .done = set_flag, .user = done, .mr = {.x = n->mr}};
        fab_submit(n->fab, ctl);
        atomic_store(&fence->rkey, 0);
        if (!run_for(n, 20, done))
            return;
        ck_assert_int_eq(kill(c->pid, SIGCONT), 0);
        n->mr = bed_reg(n, &n->mem, 0, BED_MEM, BED_ALL_ACCESS);
    }
    ck_abort_msg("never stopped inside");
}

static void fence_open(char dir[64], struct bed_node *n, struct child *c)
{
    bed_dir_make(dir);
    fence = mmap(NULL, sizeof *fence, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(fence, MAP_FAILED);
    bed_open(n, dir);
    fence->target = bed_card(n, NULL);
    child_start(c, dir, read_for_ever);
}

static void fence_close(const char *dir, struct bed_node *n)
{
    n->mr = bed_reg(n, &n->mem, 0, BED_MEM, BED_ALL_ACCESS);
    bed_close(n);
    bed_dir_remove(dir);
    munmap(fence, sizeof *fence);
}

START_TEST(deregistering_waits_for_who_is_stopped_inside_and_blocks_nobody)
{
    char dir[64];
    struct bed_node n;
    struct child c;
    struct fab_ctl ctl;
    bool done;
    fence_open(dir, &n, &c);
    get_stuck(&n, &c, &ctl, &done);
    struct fab_mr *other = bed_reg(&n, &n.mem, 0, 64, BED_ALL_ACCESS);
    ck_assert_int_eq(bed_dereg(&n, other), 0);
    ck_assert(!run_for(&n, 50, &done));
    ck_assert_int_eq(fab_close(n.fab), -EBUSY);
    ck_assert_int_eq(kill(c.pid, SIGCONT), 0);
    ck_assert(run_for(&n, 60000, &done));
    ck_assert_int_eq(ctl.status, 0);
    child_kill(&c);
    fence_close(dir, &n);
}
END_TEST

START_TEST(who_died_inside_is_not_waited_for)
{
    char dir[64];
    struct bed_node n;
    struct child c;
    struct fab_ctl ctl;
    bool done;
    fence_open(dir, &n, &c);
    get_stuck(&n, &c, &ctl, &done);
    child_kill(&c);
    ck_assert(run_for(&n, 60000, &done));
    ck_assert_int_eq(ctl.status, 0);
    fence_close(dir, &n);
}
END_TEST

/* ---- litter */

struct usage {
    int contexts, qps, mrs, cqs, rqs;
};

#define COUNT(out, table, n)                                                                       \
    for (uint32_t i = 0; i < (n); i++)                                                             \
        (out) += atomic_load(&(table)[i].owner) != 0;

static struct usage count_slots(const char *dir)
{
    char path[80];
    struct usage u = {0};
    snprintf(path, sizeof path, "%s/device", dir);
    int fd = open(path, O_RDONLY);
    const struct soft_shared *s = mmap(NULL, sizeof *s, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(s, MAP_FAILED);
    COUNT(u.contexts, s->context, SOFT_CONTEXTS)
    COUNT(u.qps, s->qp, atomic_load(&s->qp_high))
    COUNT(u.mrs, s->mr, atomic_load(&s->mr_high))
    COUNT(u.cqs, s->cq, atomic_load(&s->cq_high))
    COUNT(u.rqs, s->rq, atomic_load(&s->rq_high))
    munmap((void *)(uintptr_t)s, sizeof *s);
    close(fd);
    return u;
}

/* Opens, creates, talks to itself and frees, over and over. */
static void live_busily(const char *dir)
{
    for (;;) {
        struct bed_node n;
        struct bed_wr w;
        bed_open(&n, dir);
        struct bed_card me = bed_card(&n, NULL);
        struct fab_qp *qp = bed_qp(&n, FAB_QP_DCI, bed_patient);
        struct fab_ah *ah = bed_ah(&n, me.gid);
        for (int i = 0; i < 20; i++) {
            bed_fill(&w, &n, &me, ah, IBV_WR_RDMA_READ, 0, 4096, 4096);
            BASE_ASSERT(bed_post_wait(qp, &w.wr) == IBV_WC_SUCCESS);
            BASE_ASSERT(bed_recv(&n, NULL, 1, 0, 64) == 0);
            bed_fill(&w, &n, &me, ah, IBV_WR_SEND, 64, 0, 64);
            bed_post(qp, &w.wr);
            BASE_ASSERT(bed_wait(n.cq).status == IBV_WC_SUCCESS);
            BASE_ASSERT(bed_wait(n.cq).status == IBV_WC_SUCCESS);
        }
        bed_qp_free(qp);
        bed_ah_free(ah);
        bed_close(&n);
    }
}

START_TEST(two_hundred_deaths_leave_nothing)
{
    char dir[64];
    bed_dir_make(dir);
    for (int round = 0; round < 200; round++) {
        pid_t pid[2];
        for (int i = 0; i < 2; i++) {
            pid[i] = fork();
            ck_assert_int_ge(pid[i], 0);
            if (pid[i] == 0)
                live_busily(dir);
        }
        usleep((unsigned)(round * 7919 % 9000));
        for (int i = 0; i < 2; i++) {
            ck_assert_int_eq(kill(pid[i], SIGKILL), 0);
            ck_assert_int_eq(waitpid(pid[i], NULL, 0), pid[i]);
        }
    }
    struct bed_node n;
    bed_open(&n, dir);
    struct usage u = count_slots(dir);
    ck_assert_int_eq(u.contexts, 1);
    ck_assert_int_eq(u.qps, 1);
    ck_assert_int_eq(u.mrs, 1);
    ck_assert_int_eq(u.cqs, 1);
    ck_assert_int_eq(u.rqs, 1);
    ck_assert_int_eq(bed_dir_count(dir, "chan."), 1);
    bed_close(&n);
    u = count_slots(dir);
    ck_assert_int_eq(u.contexts + u.qps + u.mrs + u.cqs + u.rqs, 0);
    bed_dir_remove(dir);
}
END_TEST

/* ---- senders that die in the middle */

enum { POSTED = 32, DEATHS = 150 };

static void send_for_ever(struct bed_node *n, int from, int to)
{
    struct bed_wr w;
    struct bed_patience p = bed_hasty;
    struct bed_card target;
    struct ibv_wc wc;
    (void)to;
    bed_read_full(from, &target, sizeof target);
    p.rnr_retry = 7;
    struct fab_ah *ah = bed_ah(n, target.gid);
    struct fab_qp *qp = bed_qp(n, FAB_QP_DCI, p);
    for (;;) {
        bed_fill(&w, n, &target, ah, IBV_WR_SEND, 0, 0, 512);
        bed_post(qp, &w.wr);
        while (fab_poll(n->cq, 1, &wc) == 0)
            ;
        BASE_ASSERT(wc.status == IBV_WC_SUCCESS);
    }
}

static bool any_is(const bool posted[POSTED])
{
    bool any = false;
    for (int i = 0; i < POSTED; i++)
        any |= posted[i];
    return any;
}

/* Takes what has arrived; each receive must be one that is posted, and is posted again. */
static int take_and_repost(struct bed_node *n, bool posted[POSTED], bool again)
{
    struct ibv_wc wc;
    int taken = 0;
    for (; fab_poll(n->cq, 1, &wc) == 1; taken++) {
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        ck_assert_uint_lt(wc.wr_id, POSTED);
        ck_assert(posted[wc.wr_id]); /* not twice */
        posted[wc.wr_id] = again;
        if (again)
            ck_assert_int_eq(bed_recv(n, NULL, wc.wr_id, 512 * wc.wr_id, 512), 0);
    }
    return taken;
}

START_TEST(no_receive_is_lost_or_given_twice_when_senders_die)
{
    char dir[64];
    struct bed_node n;
    bool posted[POSTED];
    struct child c[2];
    bed_dir_make(dir);
    bed_open(&n, dir);
    struct bed_card card = bed_card(&n, NULL);
    for (uint64_t i = 0; i < POSTED; i++) {
        ck_assert_int_eq(bed_recv(&n, NULL, i, 512 * i, 512), 0);
        posted[i] = true;
    }
    for (int round = 0; round < DEATHS; round++) {
        for (int i = 0; i < 2; i++) {
            child_start(&c[i], dir, send_for_ever);
            bed_write_full(c[i].to, &card, sizeof card);
        }
        uint64_t start = base_clock_ns(), life = (uint64_t)(round * 7919 % 4000) * BASE_NS_PER_US;
        while (base_clock_ns() - start < BASE_NS_PER_MS + life)
            (void)take_and_repost(&n, posted, true);
        for (int i = 0; i < 2; i++)
            child_kill(&c[i]);
    }
    (void)take_and_repost(&n, posted, false);
    child_start(&c[0], dir, send_for_ever); /* uses up what is left */
    bed_write_full(c[0].to, &card, sizeof card);
    for (uint64_t start = base_clock_ns();
         any_is(posted) && base_clock_ns() - start < 60 * BASE_NS_PER_S;)
        (void)take_and_repost(&n, posted, false);
    for (int i = 0; i < POSTED; i++)
        ck_assert_msg(!posted[i], "receive %d was lost", i);
    child_kill(&c[0]);
    ck_assert_int_eq(take_and_repost(&n, posted, false), 0); /* nor was one given twice */
    bed_close(&n);
    bed_dir_remove(dir);
}
END_TEST

/* Dies in the middle of delivering to the only queue of the device, after `stores` of its stores.
 */
static void die_delivering(const char *dir, uint32_t dctn, int stores)
{
    char path[80];
    snprintf(path, sizeof path, "%s/device", dir);
    int fd = open(path, O_RDWR);
    struct soft_shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    BASE_ASSERT(s != MAP_FAILED);
    struct soft_rq_shared *rq = &s->rq[0];
    struct soft_cq_shared *cq = &s->cq[0];
    BASE_ASSERT(atomic_load(&rq->owner) != 0 && atomic_load(&cq->owner) != 0);
    BASE_ASSERT(pthread_mutex_trylock(&rq->lock) == 0 && pthread_mutex_trylock(&cq->lock) == 0);
    uint32_t head = atomic_load(&rq->head), tail = atomic_load(&cq->tail);
    if (stores >= 1) {
        rq->taking_head = head;
        rq->taking_tail = tail;
        atomic_store(&rq->taking, 1);
    }
    if (stores >= 2) {
        cq->ring[tail & cq->mask] =
            (struct soft_arrival){.wr_id = rq->ring[head & rq->mask].wr_id,
                                  .qpn = dctn,
                                  .opcode = (uint8_t)IBV_WC_RECV,
                                  .epoch = atomic_load(&s->qp[dctn & (SOFT_QPS - 1)].epoch)};
        atomic_store(&cq->tail, tail + 1);
    }
    if (stores >= 3)
        atomic_store(&rq->head, head + 1);
    _exit(0);
}

/* The next completion of a receive; those of sends are passed over. */
static uint64_t next_receive(struct bed_node *n)
{
    for (;;) {
        struct ibv_wc wc = bed_wait(n->cq);
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        if (wc.opcode == IBV_WC_RECV)
            return wc.wr_id;
    }
}

START_TEST(a_delivery_is_finished_wherever_its_sender_died)
{
    char dir[64];
    struct bed_node n;
    struct bed_wr w;
    bed_dir_make(dir);
    bed_open(&n, dir);
    struct bed_card me = bed_card(&n, NULL);
    struct fab_qp *qp = bed_qp(&n, FAB_QP_DCI, bed_patient);
    struct fab_ah *ah = bed_ah(&n, me.gid);
    for (uint64_t i = 0; i < 8; i++)
        ck_assert_int_eq(bed_recv(&n, NULL, i, 64 * i, 64), 0);
    uint64_t next = 0;
    for (int stores = 0; stores <= 3; stores++) {
        pid_t pid = fork();
        if (pid == 0)
            die_delivering(dir, n.dct->dctn, stores);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        bed_fill(&w, &n, &me, ah, IBV_WR_SEND, 4096, 0, 64);
        bed_post(qp, &w.wr);
        for (int left = stores >= 2 ? 2 : 1; left > 0; left--)
            ck_assert_uint_eq(next_receive(&n), next++);
    }
    bed_qp_free(qp);
    bed_ah_free(ah);
    bed_close(&n);
    bed_dir_remove(dir);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_stopped_process_is_read_also_the_first_time)                                               \
    T(a_killed_process_answers_no_more)                                                            \
    T(a_forked_child_does_not_keep_a_dead_context)                                                 \
    T(deregistering_waits_for_who_is_stopped_inside_and_blocks_nobody)                             \
    T(who_died_inside_is_not_waited_for)                                                           \
    T(two_hundred_deaths_leave_nothing)                                                            \
    T(no_receive_is_lost_or_given_twice_when_senders_die)                                          \
    T(a_delivery_is_finished_wherever_its_sender_died)

KEDGE_CHECK_MAIN("fabric.soft_crash", TESTS)
