/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs provider's workers, with operations that do nothing but note and wait. */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../check_main.h"
#include "verbs/verbs.h"

enum { MAX_OPS = 256 };

static struct {
    struct verbs_executor pool;
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct fab_ctl *begun[MAX_OPS], *ended[MAX_OPS]; /* by one clock: */
    int ticks, begins, ends;
    bool closed; /* operations of a kind that has to wait do, until it opens */
    enum fab_ctl_kind waits;
    int done[2]; /* called back: with 0, with an error */
} bed;

static int fake(void *of, struct fab_ctl *ctl)
{
    (void)of;
    pthread_mutex_lock(&bed.lock);
    bed.begun[bed.ticks++] = ctl;
    bed.begins++;
    pthread_cond_broadcast(&bed.change);
    while (bed.closed && ctl->kind == bed.waits)
        pthread_cond_wait(&bed.change, &bed.lock);
    bed.ended[bed.ticks++] = ctl;
    bed.ends++;
    pthread_cond_broadcast(&bed.change);
    pthread_mutex_unlock(&bed.lock);
    return 0;
}

static void bed_open(void)
{
    memset(&bed, 0, sizeof bed);
    pthread_mutex_init(&bed.lock, NULL);
    pthread_cond_init(&bed.change, NULL);
    bed.pool.carry_out = fake;
    bed.pool.needs = verbs_needs_of;
    ck_assert_int_eq(verbs_executor_init(&bed.pool), 0);
    ck_assert_int_eq(verbs_executor_start(&bed.pool), 0);
}

static void shut(enum fab_ctl_kind kind)
{
    bed.waits = kind;
    bed.closed = true;
}

static void let_go(void)
{
    pthread_mutex_lock(&bed.lock);
    bed.closed = false;
    pthread_cond_broadcast(&bed.change);
    pthread_mutex_unlock(&bed.lock);
}

static void *open_up(void *unused)
{
    let_go();
    return unused;
}

static void await_begins(int n)
{
    pthread_mutex_lock(&bed.lock);
    while (bed.begins < n)
        pthread_cond_wait(&bed.change, &bed.lock);
    pthread_mutex_unlock(&bed.lock);
}

static void await_ends(int n)
{
    pthread_mutex_lock(&bed.lock);
    while (bed.ends < n)
        pthread_cond_wait(&bed.change, &bed.lock);
    pthread_mutex_unlock(&bed.lock);
}

static void count_done(struct fab_ctl *ctl)
{
    bed.done[ctl->status != 0]++;
}

static void submit(struct fab_ctl *ctl)
{
    ctl->done = count_done;
    verbs_executor_submit(&bed.pool, ctl);
}

/* Until n operations in all were called back. */
static void run_until(int n)
{
    while (bed.done[0] + bed.done[1] < n) {
        struct pollfd fd = {.fd = bed.pool.over_efd, .events = POLLIN};
        (void)poll(&fd, 1, -1);
        (void)verbs_executor_run(&bed.pool);
    }
}

static void bed_close(void)
{
    bed.pool.objects = 0; /* none of those here is one */
    ck_assert_int_eq(verbs_executor_stop(&bed.pool), 0);
    verbs_executor_fini(&bed.pool);
    pthread_cond_destroy(&bed.change);
    pthread_mutex_destroy(&bed.lock);
}

/* When an operation began or ended, as a place in the record. */
static int place(struct fab_ctl *const record[], const struct fab_ctl *ctl)
{
    for (int i = 0; i < MAX_OPS; i++)
        if (record[i] == ctl)
            return i;
    ck_abort_msg("it never ran");
    return -1;
}

static struct verbs_pd pd;
static struct verbs_cq cq;

static struct fab_qp *new_qp(void)
{
    struct verbs_qp *q = calloc(1, sizeof *q);
    ck_assert_ptr_nonnull(q);
    q->base.pd = &pd.base;
    q->base.send_cq = q->base.recv_cq = &cq.base;
    return &q->base;
}

START_TEST(operations_on_one_queue_pair_run_in_the_order_of_submission)
{
    enum { QPS = 12, MOVES = 5 };
    struct fab_ctl ops[MOVES][QPS] = {0};
    bed_open();
    struct fab_qp *qp[QPS];
    for (int i = 0; i < QPS; i++)
        qp[i] = new_qp();
    for (int m = 0; m < MOVES; m++)
        for (int i = 0; i < QPS; i++) {
            ops[m][i].kind = m + 1 < MOVES ? FAB_MODIFY_QP : FAB_DESTROY_QP;
            ops[m][i].modify.x = qp[i]; /* or qp.x: one union */
            ops[m][i].modify.mask = m == 2 && i % 2 == 0 ? IBV_QP_AV : 0;
            submit(&ops[m][i]);
        }
    run_until(QPS * MOVES);
    for (int i = 0; i < QPS; i++)
        for (int m = 0; m + 1 < MOVES; m++)
            ck_assert_int_lt(place(bed.ended, &ops[m][i]), place(bed.begun, &ops[m + 1][i]));
    bed_close();
}
END_TEST

START_TEST(what_a_destruction_frees_is_not_needed_by_an_earlier_operation_any_more)
{
    struct verbs_pd *domain = calloc(1, sizeof *domain);
    struct verbs_cq *c = calloc(1, sizeof *c);
    struct fab_qp *qp = new_qp();
    ck_assert(domain != NULL && c != NULL);
    qp->pd = &domain->base;
    qp->send_cq = qp->recv_cq = &c->base;
    struct fab_ctl ops[] = {
        {.kind = FAB_DESTROY_QP, .qp = {.x = qp}},
        {.kind = FAB_DESTROY_CQ, .cq = {.x = &c->base}},
        {.kind = FAB_FREE_PD, .pd = {.x = &domain->base}},
        {.kind = FAB_ALLOC_PD},
    };
    bed_open();
    shut(FAB_DESTROY_QP);
    for (int i = 0; i < 4; i++)
        submit(&ops[i]);
    await_ends(1);
    await_begins(2);
    (void)place(bed.ended, &ops[3]); /* which needs nothing, and overtook them all */
    ck_assert_int_eq(bed.begins, 2);
    let_go();
    run_until(4);
    ck_assert_int_lt(place(bed.ended, &ops[0]), place(bed.begun, &ops[1]));
    ck_assert_int_lt(place(bed.ended, &ops[0]), place(bed.begun, &ops[2]));
    bed_close();
}
END_TEST

START_TEST(operations_that_share_an_object_run_side_by_side)
{
    struct fab_ctl ops[VERBS_WORKERS] = {0};
    bed_open();
    shut(FAB_CREATE_SRQ);
    for (int i = 0; i < VERBS_WORKERS; i++) {
        ops[i].kind = FAB_CREATE_SRQ;
        ops[i].srq.pd = &pd.base;
        submit(&ops[i]);
    }
    await_begins(VERBS_WORKERS); /* or for ever */
    ck_assert_int_eq(bed.ends, 0);
    let_go();
    run_until(VERBS_WORKERS);
    bed_close();
}
END_TEST

static struct fab_dct *new_dct(void)
{
    struct verbs_dct *d = calloc(1, sizeof *d);
    ck_assert_ptr_nonnull(d);
    d->base.pd = &pd.base;
    d->cq = &cq;
    return &d->base;
}

/* Draining takes as long as peers like, and each pool has a target that goes with an address. */
START_TEST(targets_that_are_drained_leave_workers_to_all_else)
{
    enum { TARGETS = 2 * VERBS_WORKERS };
    struct fab_ctl dct[TARGETS] = {0}, region = {.kind = FAB_REG_MR}, ah = {.kind = FAB_CREATE_AH};
    struct fab_ctl end = {.kind = FAB_MODIFY_QP, .modify.mask = IBV_QP_STATE};
    struct fab_qp *qp = new_qp();
    bed_open();
    shut(FAB_DESTROY_DCT);
    for (int i = 0; i < TARGETS; i++) {
        dct[i].kind = FAB_DESTROY_DCT;
        dct[i].dct.x = new_dct();
        submit(&dct[i]);
    }
    region.mr.pd = &pd.base;
    submit(&region);
    ah.ah.pd = &pd.base;
    submit(&ah);
    end.modify.x = qp;
    submit(&end);
    run_until(3); /* or for ever */
    await_begins(4);
    ck_assert_int_eq(bed.begins, 3 + VERBS_DRAINING);
    let_go();
    run_until(3 + TARGETS);
    bed_close();
    free(qp);
}
END_TEST

/* Whoever gives queue pairs up is told nothing by a device that answers no question. */
START_TEST(questions_that_are_not_answered_leave_workers_to_all_else)
{
    enum { ASKED = 2 * VERBS_WORKERS, OTHERS = 20 };
    struct fab_ctl ask[ASKED] = {0}, end[OTHERS] = {0}, go = {.kind = FAB_DESTROY_QP};
    struct fab_qp *qp[ASKED];
    bed_open();
    shut(FAB_QUERY_QP);
    for (int i = 0; i < ASKED; i++) {
        qp[i] = new_qp();
        ask[i].kind = FAB_QUERY_QP;
        ask[i].asked.x = qp[i];
        submit(&ask[i]);
    }
    await_begins(VERBS_ASKING);
    for (int i = 0; i < OTHERS; i++) {
        end[i].kind = FAB_DESTROY_QP;
        end[i].qp.x = new_qp();
        submit(&end[i]);
    }
    run_until(OTHERS); /* or for ever */
    ck_assert_int_eq(bed.begins, VERBS_ASKING + OTHERS);
    go.qp.x = qp[ASKED - 1]; /* nobody asks that any more */
    submit(&go);
    run_until(OTHERS + 2);
    ck_assert_int_eq(ask[ASKED - 1].status, -ECANCELED);
    ck_assert_int_eq(go.status, 0);
    ck_assert_int_eq(bed.done[1], 1);
    let_go();
    run_until(OTHERS + 1 + ASKED);
    ck_assert_int_eq(bed.done[1], 1);
    bed_close();
    for (int i = 0; i < ASKED - 1; i++)
        free(qp[i]);
}
END_TEST

/* However much is registered, and whoever is waited for beside it: here three handles come first,
 * and leave one worker to a registration. */
START_TEST(memory_that_takes_long_leaves_a_worker_to_the_end_of_a_queue_pair)
{
    enum { REGIONS = 3 * VERBS_LOOKAHEAD, HANDLES = VERBS_RESOLVING + 1 };
    struct fab_ctl region[REGIONS] = {0}, ah[HANDLES] = {0}, end = {.kind = FAB_MODIFY_QP};
    struct fab_qp *qp = new_qp();
    for (int handles = 0; handles <= HANDLES; handles += HANDLES) {
        const int out = VERBS_PINNING; /* without those that end */
        bed_open();
        shut(handles > 0 ? FAB_CREATE_AH : FAB_REG_MR);
        for (int i = 0; i < handles; i++) {
            ah[i].kind = FAB_CREATE_AH;
            ah[i].ah.pd = &pd.base;
            submit(&ah[i]);
        }
        for (int i = 0; i < REGIONS; i++) {
            region[i].kind = FAB_REG_MR;
            region[i].mr.pd = &pd.base;
            submit(&region[i]);
        }
        end.modify.x = qp;
        end.modify.mask = IBV_QP_STATE;
        submit(&end);
        run_until(handles > 0 ? 1 + REGIONS : 1); /* or for ever */
        (void)place(bed.ended, &end);
        if (handles == 0) {
            await_begins(out + 1);
            ck_assert_int_eq(bed.begins, out + 1);
        }
        let_go();
        run_until(1 + REGIONS + handles);
        bed_close();
    }
    free(qp);
}
END_TEST

/* Workers register and give back as much as they like, one after the other without end. */
START_TEST(memory_that_takes_long_leaves_a_worker_to_neighbours)
{
    enum { REGIONS = 3 * VERBS_LOOKAHEAD, HANDLES = 20 };
    struct fab_ctl region[REGIONS] = {0}, ah[HANDLES] = {0};
    bed_open();
    shut(FAB_REG_MR);
    for (int i = 0; i < REGIONS; i++) {
        region[i].kind = FAB_REG_MR;
        region[i].mr.pd = &pd.base;
        submit(&region[i]);
    }
    for (int i = 0; i < HANDLES; i++) {
        ah[i].kind = FAB_CREATE_AH;
        ah[i].ah.pd = &pd.base;
        submit(&ah[i]);
    }
    run_until(HANDLES); /* or for ever */
    for (int i = 0; i < HANDLES; i++)
        (void)place(bed.ended, &ah[i]);
    let_go();
    run_until(HANDLES + REGIONS);
    bed_close();
}
END_TEST

START_TEST(neighbours_that_do_not_answer_leave_a_worker_to_the_others)
{
    enum { HANDLES = 3 * VERBS_LOOKAHEAD, OTHERS = 20 };
    struct fab_ctl ah[HANDLES] = {0}, other[OTHERS] = {0};
    bed_open();
    shut(FAB_CREATE_AH);
    for (int i = 0; i < HANDLES; i++) {
        ah[i].kind = FAB_CREATE_AH;
        ah[i].ah.pd = &pd.base;
        submit(&ah[i]);
    }
    for (int i = 0; i < OTHERS; i++) {
        other[i].kind = FAB_ALLOC_PD;
        submit(&other[i]);
    }
    run_until(OTHERS);
    await_begins(OTHERS + VERBS_RESOLVING);
    ck_assert_int_eq(bed.begins, OTHERS + VERBS_RESOLVING);
    let_go();
    run_until(OTHERS + HANDLES);
    bed_close();
}
END_TEST

START_TEST(what_waits_for_its_turn_is_not_overtaken_on_its_own_object)
{
    struct fab_ctl ah[VERBS_RESOLVING] = {0}, other = {.kind = FAB_ALLOC_PD};
    struct fab_ctl rtr = {.kind = FAB_MODIFY_QP}, rts = {.kind = FAB_MODIFY_QP};
    struct fab_qp *qp = new_qp();
    bed_open();
    shut(FAB_CREATE_AH);
    for (int i = 0; i < VERBS_RESOLVING; i++) {
        ah[i].kind = FAB_CREATE_AH;
        ah[i].ah.pd = &pd.base;
        submit(&ah[i]);
    }
    await_begins(VERBS_RESOLVING);
    rtr.modify.x = rts.modify.x = qp;
    rtr.modify.mask = IBV_QP_AV; /* which has to wait until a neighbour answers */
    submit(&rtr);
    submit(&rts);
    submit(&other);
    run_until(1);
    (void)place(bed.ended, &other);
    ck_assert_int_eq(bed.begins, VERBS_RESOLVING + 1); /* neither of the two */
    let_go();
    run_until(VERBS_RESOLVING + 3);
    ck_assert_int_lt(place(bed.ended, &rtr), place(bed.begun, &rts));
    free(qp);
    bed_close();
}
END_TEST

START_TEST(a_pool_with_objects_is_not_stopped_and_goes_on)
{
    struct fab_ctl make = {.kind = FAB_CREATE_QP};
    struct fab_ctl move = {.kind = FAB_MODIFY_QP};
    bed_open();
    submit(&make);
    run_until(1);
    ck_assert_int_eq(verbs_executor_stop(&bed.pool), -EBUSY);
    move.modify.x = new_qp();
    submit(&move);
    run_until(2);
    free(move.modify.x);
    bed_close();
}
END_TEST

START_TEST(stopping_waits_for_what_runs_and_cancels_what_does_not)
{
    struct fab_ctl ops[3] = {
        {.kind = FAB_MODIFY_QP}, {.kind = FAB_MODIFY_QP}, {.kind = FAB_MODIFY_QP}};
    struct fab_qp *qp = new_qp();
    pthread_t opener;
    bed_open();
    shut(FAB_MODIFY_QP);
    for (int i = 0; i < 3; i++) {
        ops[i].modify.x = qp;
        submit(&ops[i]);
    }
    await_begins(1);
    pthread_mutex_lock(&bed.pool.lock);
    bed.pool.paused = true; /* as stop() does first, so that none begins when the first is over */
    pthread_mutex_unlock(&bed.pool.lock);
    ck_assert_int_eq(pthread_create(&opener, NULL, open_up, NULL), 0);
    ck_assert_int_eq(verbs_executor_stop(&bed.pool), 0);
    pthread_join(opener, NULL);
    ck_assert_int_eq(bed.done[0], 1);
    ck_assert_int_eq(bed.done[1], 2);
    ck_assert_int_eq(ops[2].status, -ECANCELED);
    free(qp);
    verbs_executor_fini(&bed.pool);
}
END_TEST

START_TEST(stopping_does_not_wait_for_ever_for_what_hangs)
{
    struct fab_ctl hangs = {.kind = FAB_MODIFY_QP}, behind = {.kind = FAB_MODIFY_QP};
    struct fab_qp *qp = new_qp();
    bed_open();
    bed.pool.stop_ns = 50000000;
    shut(FAB_MODIFY_QP);
    hangs.modify.x = behind.modify.x = qp;
    submit(&hangs);
    submit(&behind);
    await_begins(1);
    ck_assert_int_eq(verbs_executor_stop(&bed.pool), -ETIMEDOUT);
    let_go(); /* it comes back after all: what is behind it does not begin any more */
    await_ends(1);
    bed.pool.stop_ns = 0;
    ck_assert_int_eq(verbs_executor_stop(&bed.pool), 0);
    ck_assert_int_eq(hangs.status, 0);
    ck_assert_int_eq(behind.status, -ECANCELED);
    free(qp);
    verbs_executor_fini(&bed.pool);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(operations_on_one_queue_pair_run_in_the_order_of_submission)                                 \
    T(what_a_destruction_frees_is_not_needed_by_an_earlier_operation_any_more)                     \
    T(operations_that_share_an_object_run_side_by_side)                                            \
    T(targets_that_are_drained_leave_workers_to_all_else)                                          \
    T(questions_that_are_not_answered_leave_workers_to_all_else)                                   \
    T(memory_that_takes_long_leaves_a_worker_to_the_end_of_a_queue_pair)                           \
    T(memory_that_takes_long_leaves_a_worker_to_neighbours)                                        \
    T(neighbours_that_do_not_answer_leave_a_worker_to_the_others)                                  \
    T(what_waits_for_its_turn_is_not_overtaken_on_its_own_object)                                  \
    T(stopping_does_not_wait_for_ever_for_what_hangs)                                              \
    T(a_pool_with_objects_is_not_stopped_and_goes_on)                                              \
    T(stopping_waits_for_what_runs_and_cancels_what_does_not)

KEDGE_CHECK_MAIN("fabric.verbs_pool", TESTS)
