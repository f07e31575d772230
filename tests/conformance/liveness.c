/* SPDX-License-Identifier: Apache-2.0 */
/* Peers in other processes: alive, stopped, dead, and several at once. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "remote.h"

static const struct rc_options patient = {.timeout = 12, .retry_cnt = 8};
static const enum ibv_wr_opcode first_ones[] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
                                                IBV_WR_ATOMIC_CMP_AND_SWP,
                                                IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND};
enum { FIRST_ONES = 5 };

START_TEST(another_process_is_read_and_written)
{
    struct remote r;
    struct node a;
    struct link l;
    if (conf_lacks(conf_reliable[_i], __func__))
        return;
    remote_start(&r);
    node_open(&a);
    if (remote_link(&r, &l, conf_reliable[_i], &a, NULL, __func__)) {
        struct ibv_sge sge = sge_of(&a, 0, 8), back = sge_of(&a, 64, 8);
        struct fab_wr write = make_wr(&l, 1, IBV_WR_RDMA_WRITE, &sge, 4096);
        struct fab_wr read = make_wr(&l, 2, IBV_WR_RDMA_READ, &back, 4096);
        struct fab_wr send_wr = make_wr(&l, 3, IBV_WR_SEND, &sge, 0);
        uint64_t word = 0x0123456789abcdef, got;
        memcpy(a.bytes, &word, 8);
        ck_assert_int_eq(do_one(&l, &write), IBV_WC_SUCCESS);
        ck_assert_uint_eq(remote_peek(&r, 4096), word);
        ck_assert_int_eq(do_one(&l, &read), IBV_WC_SUCCESS);
        memcpy(&got, a.bytes + 64, 8);
        ck_assert_uint_eq(got, word);
        remote_receive(&r, 8192);
        ck_assert_int_eq(do_one(&l, &send_wr), IBV_WC_SUCCESS);
        ck_assert_uint_eq(remote_peek(&r, 8192), word);
        remote_end(&r);
        remote_unlink(&l);
    }
    node_close(&a);
}
END_TEST

/* Its CPU takes no part, not even in the first contact. */
START_TEST(the_first_request_to_a_stopped_process_completes)
{
    struct remote r;
    struct node a;
    struct link l;
    enum ibv_wr_opcode opcode = first_ones[_i % FIRST_ONES];
    if (conf_lacks(conf_reliable[_i / FIRST_ONES], __func__))
        return;
    remote_start(&r);
    node_open(&a);
    if (remote_link(&r, &l, conf_reliable[_i / FIRST_ONES], &a, NULL, __func__)) {
        struct ibv_sge sge = sge_of(&a, 0, 8);
        struct fab_wr wr = make_atomic(&l, 1, opcode, &sge, 4096, 0, 7);
        uint64_t seven = 7, expected = 0;
        if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
            wr.compare_add = 7;
        memcpy(a.bytes, &seven, 8);
        if (opcode == IBV_WR_SEND)
            remote_receive(&r, 4096);
        if (opcode != IBV_WR_RDMA_READ)
            expected = 7;
        remote_stop(&r);
        ck_assert_int_eq(do_one(&l, &wr), IBV_WC_SUCCESS);
        (void)kill(r.pid, SIGCONT);
        ck_assert_uint_eq(remote_peek(&r, 4096), expected);
        /* What a READ and the atomics bring back is what was there. */
        ck_assert_uint_eq(a.bytes[0], opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_SEND ? 7 : 0);
        remote_end(&r);
        remote_unlink(&l);
    }
    node_close(&a);
}
END_TEST

/* Repeats a request whose target has died until it fails, as it must before long: a device that
 * shares memory with the dead process may carry out one that was under way. */
static enum ibv_wc_status until_it_fails(struct link *l, struct fab_wr *wr)
{
    uint64_t deadline = now_ms() + 20000;
    enum ibv_wc_status status;
    while ((status = do_one(l, wr)) == IBV_WC_SUCCESS)
        ck_assert(now_ms() < deadline);
    return status;
}

START_TEST(requests_to_a_killed_process_end_with_a_retry_error)
{
    struct remote r;
    struct node a;
    struct link l;
    if (conf_lacks(conf_reliable[_i], __func__))
        return;
    remote_start(&r);
    node_open(&a);
    if (remote_link(&r, &l, conf_reliable[_i], &a, &patient, __func__)) {
        struct ibv_sge sge = sge_of(&a, 0, 8);
        struct fab_wr wr = make_wr(&l, 1, IBV_WR_RDMA_WRITE, &sge, 0);
        struct fab_wr behind = make_wr(&l, 2, IBV_WR_RDMA_READ, &sge, 0);
        ck_assert_int_eq(do_one(&l, &wr), IBV_WC_SUCCESS);
        remote_kill(&r);
        ck_assert_int_eq(until_it_fails(&l, &wr), IBV_WC_RETRY_EXC_ERR);
        bring_to(l.qp, IBV_QPS_RTS, r.address.gid, r.address.qpn, &patient);
        wr.next = &behind;
        ck_assert_int_eq(link_post(&l, &wr), 0);
        expect_wc(a.cq, 1, IBV_WC_RETRY_EXC_ERR);
        expect_wc(a.cq, 2, IBV_WC_WR_FLUSH_ERR);
        ck_assert_int_eq(state_of(l.qp), IBV_QPS_ERR);
        bring_to(l.qp, IBV_QPS_RTS, r.address.gid, r.address.qpn, &patient);
        wr.next = NULL;
        wr.opcode = IBV_WR_SEND;
        ck_assert_int_eq(do_one(&l, &wr), IBV_WC_RETRY_EXC_ERR);
        remote_unlink(&l);
    }
    node_close(&a);
}
END_TEST

START_TEST(a_process_that_dies_before_the_first_request_is_a_retry_error)
{
    struct remote r;
    struct node a;
    struct link l;
    if (conf_lacks(conf_reliable[_i], __func__))
        return;
    remote_start(&r);
    node_open(&a);
    if (remote_link(&r, &l, conf_reliable[_i], &a, &patient, __func__)) {
        struct ibv_sge sge = sge_of(&a, 0, 8);
        struct fab_wr wr = make_wr(&l, 1, IBV_WR_RDMA_READ, &sge, 0);
        remote_kill(&r);
        ck_assert_int_eq(do_one(&l, &wr), IBV_WC_RETRY_EXC_ERR);
        remote_unlink(&l);
    }
    node_close(&a);
}
END_TEST

START_TEST(a_send_that_waits_for_a_receive_ends_when_the_receiver_dies)
{
    struct remote r;
    struct node a;
    struct link l;
    if (conf_lacks(conf_reliable[_i], __func__))
        return;
    remote_start(&r);
    node_open(&a);
    if (remote_link(&r, &l, conf_reliable[_i], &a, &patient, __func__)) {
        struct fab_wr wr = make_wr(&l, 1, IBV_WR_SEND, NULL, 0);
        ck_assert_int_eq(link_post(&l, &wr), 0);
        expect_silence(a.cq);
        remote_kill(&r);
        expect_wc(a.cq, 1, IBV_WC_RETRY_EXC_ERR);
        remote_unlink(&l);
    }
    node_close(&a);
}
END_TEST

/* ---- initiators in other processes */

enum { ADDS = 20000, ADDERS = 2 };

/* Of each. */
static uint64_t count_adds(void)
{
    return conf_is_short() ? ADDS / 10 : ADDS;
}

struct task {
    enum fab_transport transport;
    struct address target;
};

/* Connects to the task's target; the child's address has gone to the parent. */
static void child_link(int fd, struct node *a, struct link *l, struct remote *stand_in)
{
    struct task task;
    struct address mine = {.qpn = 0};
    node_open(a);
    hear(fd, &task.transport, sizeof task.transport);
    *l = (struct link){.transport = task.transport, .a = a};
    l->qp = make_qp(a, task.transport == FAB_RC ? FAB_QP_RC : FAB_QP_DCI, NULL);
    mine.qpn = l->qp->qpn;
    memcpy(mine.gid, a->fab->caps.gid, 16);
    say(fd, &mine, sizeof mine);
    hear(fd, &task.target, sizeof task.target);
    *stand_in = (struct remote){.address = task.target};
    stand_in->mr = (struct fab_mr){.rkey = task.target.rkey, .addr = task.target.addr};
    stand_in->dct = (struct fab_dct){.dctn = task.target.dctn, .dc_key = task.target.dc_key};
    stand_in->node = (struct node){.mr = &stand_in->mr};
    l->b = &stand_in->node;
    if (task.transport == FAB_DC) {
        l->ah = make_ah(a->pd, task.target.gid);
        l->dct = &stand_in->dct;
    }
    bring_to(l->qp, IBV_QPS_RTS, task.target.gid, task.target.qpn, NULL);
}

/* Adds 1 to the word at offset 0, many times over, and checks that it gets nothing back twice: not
 * that it grows, since one atomic may overtake another that has no fence (IBTA 9.5, table 79). */
static void add_up(int fd)
{
    struct node a;
    struct link l;
    struct remote target;
    bool seen[ADDERS * ADDS] = {false};
    const uint64_t adds = count_adds();
    uint64_t posted = 0, done = 0;
    child_link(fd, &a, &l, &target);
    while (done < adds) {
        struct ibv_sge sge = sge_of(&a, posted % 16 * 8, 8);
        struct fab_wr wr = make_atomic(&l, posted, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 0, 1, 0);
        struct ibv_wc wc;
        if (posted < adds && posted - done < 16) {
            ck_assert_int_eq(link_post(&l, &wr), 0);
            posted++;
        }
        int n = fab_poll(a.cq, 1, &wc);
        ck_assert_int_ge(n, 0);
        if (n == 0)
            continue;
        uint64_t before;
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        memcpy(&before, a.bytes + done % 16 * 8, 8);
        ck_assert_uint_lt(before, ADDERS * adds);
        ck_assert(!seen[before]);
        seen[before] = true;
        done++;
    }
    remote_unlink(&l);
    node_close(&a);
}

/* Writes and sends for ever, until it is killed. */
static void hammer(int fd)
{
    struct node a;
    struct link l;
    struct remote target;
    child_link(fd, &a, &l, &target);
    for (uint64_t i = 0;; i++) {
        struct ibv_sge sge = sge_of(&a, 0, i % 3 == 0 ? 8 : 40000);
        struct fab_wr wr =
            make_wr(&l, i, i % 3 == 0 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, &sge, NODE_BYTES / 2);
        struct ibv_wc wc;
        (void)link_post(&l, &wr);
        (void)fab_poll(a.cq, 1, &wc);
        if (i == 20)
            say(fd, &i, 1);
    }
}

struct target {
    struct node n;
    struct fab_srq *srq;
    struct fab_dct *dct;
    struct fab_qp *qp[ADDERS];
};

/* Gives child i its task and itself as the target. */
static void serve_child(struct target *t, int i, int fd, enum fab_transport transport)
{
    struct address mine = {.rkey = t->n.mr->rkey, .addr = t->n.mr->addr}, its;
    memcpy(mine.gid, t->n.fab->caps.gid, 16);
    say(fd, &transport, sizeof transport);
    hear(fd, &its, sizeof its);
    if (transport == FAB_RC) {
        const struct qp_options shared = {.srq = t->srq};
        t->qp[i] = make_qp(&t->n, FAB_QP_RC, &shared);
        bring_to(t->qp[i], IBV_QPS_RTS, its.gid, its.qpn, NULL);
        mine.qpn = t->qp[i]->qpn;
    } else {
        if (t->dct == NULL)
            t->dct = make_dct(&t->n, t->srq, 0xadd);
        mine.dctn = t->dct->dctn;
        mine.dc_key = t->dct->dc_key;
    }
    say(fd, &mine, sizeof mine);
}

static void target_close(struct target *t)
{
    for (int i = 0; i < ADDERS; i++)
        if (t->qp[i] != NULL)
            ck_assert_int_eq(free_qp(t->qp[i]), 0);
    if (t->dct != NULL)
        ck_assert_int_eq(free_dct(t->dct), 0);
    ck_assert_int_eq(free_srq(t->srq), 0);
    node_close(&t->n);
}

START_TEST(two_processes_that_fetch_and_add_lose_nothing)
{
    struct target t = {.dct = NULL};
    pid_t pid[ADDERS];
    int fd[ADDERS], status;
    if (conf_lacks(conf_reliable[_i], __func__))
        return;
    for (int i = 0; i < ADDERS; i++)
        pid[i] = remote_fork(add_up, &fd[i]);
    node_open(&t.n);
    t.srq = make_srq(t.n.pd, 16);
    bool has = conf_has(t.n.fab, conf_reliable[_i], __func__);
    for (int i = 0; i < ADDERS; i++) {
        if (has)
            serve_child(&t, i, fd[i], conf_reliable[_i]);
        else
            (void)kill(pid[i], SIGKILL);
    }
    for (int i = 0; i < ADDERS; i++) {
        ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
        ck_assert(!has || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
        close(fd[i]);
    }
    if (has)
        ck_assert_uint_eq(*(volatile uint64_t *)(void *)t.n.bytes, ADDERS * count_adds());
    target_close(&t);
}
END_TEST

START_TEST(initiators_that_are_killed_in_the_middle_leave_the_target_usable)
{
    enum { ROUNDS = 12 };
    const int rounds = conf_is_short() ? ROUNDS / 3 : ROUNDS;
    pid_t pid[ROUNDS];
    int fd[ROUNDS];
    if (conf_lacks(conf_reliable[_i], __func__))
        return;
    for (int i = 0; i < rounds; i++)
        pid[i] = remote_fork(hammer, &fd[i]);
    struct target t = {.dct = NULL};
    node_open(&t.n);
    t.srq = make_srq(t.n.pd, 1024 < t.n.fab->caps.max_srq_wr ? 1024 : t.n.fab->caps.max_srq_wr);
    bool has = conf_has(t.n.fab, conf_reliable[_i], __func__);
    for (int i = 0; i < rounds; i++) {
        struct ibv_sge in = sge_of(&t.n, 64, 64);
        struct fab_recv_wr wr = {.wr_id = 1, .sg_list = &in, .num_sge = 1}, *bad;
        struct ibv_wc wc;
        char ready;
        if (has) {
            for (int k = 0; k < 60; k++)
                (void)fab_post_srq_recv(t.srq, &wr, &bad);
            serve_child(&t, 0, fd[i], conf_reliable[_i]);
            hear(fd[i], &ready, 1);
            usleep(1000 + (useconds_t)i * 377);
        }
        ck_assert_int_eq(kill(pid[i], SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid[i], NULL, 0), pid[i]);
        close(fd[i]);
        if (t.qp[0] != NULL)
            ck_assert_int_eq(free_qp(t.qp[0]), 0);
        t.qp[0] = NULL;
        while (fab_poll(t.n.cq, 1, &wc) > 0)
            ;
        /* Its memory can be taken back, and its receives still work. */
        ck_assert_int_eq(free_mr(t.n.mr), 0);
        t.n.mr = make_mr(t.n.pd, &t.n.mem, 0, NODE_BYTES, ALL_ACCESS);
    }
    target_close(&t);
}
END_TEST

START_TEST(a_node_that_starts_again_is_another_one)
{
    struct remote one, two;
    struct node a;
    struct link l, again;
    if (conf_lacks(conf_reliable[_i], __func__))
        return;
    remote_start(&one);
    remote_start(&two);
    node_open(&a);
    bool first = remote_link(&one, &l, conf_reliable[_i], &a, &patient, __func__);
    bool second = remote_link(&two, &again, conf_reliable[_i], &a, &patient, __func__);
    if (first && second) {
        struct ibv_sge sge = sge_of(&a, 0, 8);
        struct fab_wr old = make_wr(&l, 1, IBV_WR_RDMA_WRITE, &sge, 0);
        struct fab_wr new = make_wr(&again, 2, IBV_WR_RDMA_WRITE, &sge, 0);
        remote_kill(&one);
        memset(a.bytes, 1, 8);
        ck_assert_int_eq(until_it_fails(&l, &old), IBV_WC_RETRY_EXC_ERR);
        ck_assert_uint_eq(remote_peek(&two, 0), 0);
        ck_assert_int_eq(do_one(&again, &new), IBV_WC_SUCCESS);
        ck_assert_uint_eq(remote_peek(&two, 0), 0x0101010101010101);
        remote_end(&two);
        remote_unlink(&l);
        remote_unlink(&again);
    }
    node_close(&a);
}
END_TEST

void add_liveness(Suite *suite)
{
    TCase *t = conf_case(suite, "liveness");
    tcase_add_loop_test(t, another_process_is_read_and_written, 0, 2);
    tcase_add_loop_test(t, the_first_request_to_a_stopped_process_completes, 0, 2 * FIRST_ONES);
    tcase_add_loop_test(t, requests_to_a_killed_process_end_with_a_retry_error, 0, 2);
    tcase_add_loop_test(t, a_process_that_dies_before_the_first_request_is_a_retry_error, 0, 2);
    tcase_add_loop_test(t, a_send_that_waits_for_a_receive_ends_when_the_receiver_dies, 0, 2);
    tcase_add_loop_test(t, two_processes_that_fetch_and_add_lose_nothing, 0, 2);
    tcase_add_loop_test(t, initiators_that_are_killed_in_the_middle_leave_the_target_usable, 0, 2);
    tcase_add_loop_test(t, a_node_that_starts_again_is_another_one, 0, 2);
}
