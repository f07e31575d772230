/* SPDX-License-Identifier: Apache-2.0 */
/* The soft provider's completion queues and channels: room, overflow, sleeping and waking. */
#include <poll.h>
#include <pthread.h>

#include "../check_main.h"
#include "bed_qp.h"
#include "soft/cq.h"

struct duo {
    char dir[64];
    struct bed_node a, b;
    struct fab_qp *rc[2];
};

static void duo_open(struct duo *d)
{
    bed_dir_make(d->dir);
    bed_open(&d->a, d->dir);
    bed_open(&d->b, d->dir);
    bed_rc_pair(&d->a, &d->b, bed_patient, d->rc);
}

static void duo_close(struct duo *d)
{
    bed_qp_free(d->rc[0]);
    bed_qp_free(d->rc[1]);
    bed_close(&d->a);
    bed_close(&d->b);
    bed_dir_remove(d->dir);
}

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, timeout_ms) == 1;
}

static void send_one(struct duo *d, struct fab_qp *qp, unsigned flags)
{
    struct bed_wr w;
    struct bed_card to = bed_card(&d->b, NULL);
    bed_fill(&w, &d->a, &to, NULL, IBV_WR_SEND, 0, 0, 8);
    w.wr.send_flags = flags;
    bed_post(qp, &w.wr);
}

START_TEST(a_queue_that_overflows_is_dead_and_breaks_its_queue_pairs)
{
    struct duo d;
    struct ibv_wc wc;
    struct fab_event event;
    duo_open(&d);
    struct fab_cq *small = bed_cq(&d.a, 2);
    struct fab_qp *qp = bed_qp_new(&d.a, FAB_QP_DCI, small);
    bed_connect(qp, NULL, bed_patient);
    struct bed_card to = bed_card(&d.b, NULL);
    struct fab_ah *ah = bed_ah(&d.a, to.gid);
    struct bed_wr w;
    bed_fill(&w, &d.a, &to, ah, IBV_WR_RDMA_READ, 0, 0, 8);
    for (int i = 0; i < 3; i++)
        bed_post(qp, &w.wr);
    ck_assert_int_eq(fab_poll(small, 1, &wc), -EIO);
    ck_assert_int_eq(fab_poll(small, 1, &wc), -EIO);
    ck_assert_int_eq(fab_qp_state(qp), IBV_QPS_ERR);
    ck_assert_int_eq(fab_get_event(d.a.fab, &event), 1);
    ck_assert_int_eq(event.type, IBV_EVENT_CQ_ERR);
    ck_assert_ptr_eq(event.cq, small);
    bed_qp_free(qp); /* and its event with it */
    ck_assert_int_eq(fab_get_event(d.a.fab, &event), 0);
    bed_do(d.a.fab, &(struct fab_ctl){.kind = FAB_DESTROY_CQ, .cq = {.x = small}});
    bed_ah_free(ah);
    duo_close(&d);
}
END_TEST

START_TEST(receives_overflow_a_queue_as_sends_do)
{
    struct duo d;
    struct ibv_wc wc;
    duo_open(&d);
    struct fab_cq *small = bed_cq(&d.b, 3);
    struct fab_qp *from = bed_qp_new(&d.a, FAB_QP_RC, d.a.cq);
    struct fab_qp *to = bed_qp_new(&d.b, FAB_QP_RC, small);
    struct bed_card card[2] = {bed_card(&d.a, from), bed_card(&d.b, to)};
    bed_connect(from, &card[1], bed_hasty);
    bed_connect(to, &card[0], bed_hasty);
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_int_eq(bed_recv(&d.b, to, i, 0, 8), 0);
    for (int i = 0; i < 4; i++)
        send_one(&d, from, IBV_SEND_SIGNALED);
    ck_assert_int_eq(fab_poll(small, 1, &wc), -EIO);
    ck_assert_int_eq(fab_qp_state(to), IBV_QPS_ERR);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(bed_wait(d.a.cq).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(bed_wait(d.a.cq).status, IBV_WC_RETRY_EXC_ERR);
    bed_qp_free(from);
    bed_qp_free(to);
    bed_do(d.b.fab, &(struct fab_ctl){.kind = FAB_DESTROY_CQ, .cq = {.x = small}});
    duo_close(&d);
}
END_TEST

START_TEST(a_queue_has_all_the_room_that_was_asked_for)
{
    enum { QPS = 320, EACH = 16 };
    struct duo d;
    struct ibv_wc wc[64];
    static struct fab_qp *qp[QPS][2];
    duo_open(&d);
    struct fab_cq *large = bed_cq(&d.b, QPS * EACH); /* more than fits in 4096 */
    for (int i = 0; i < QPS; i++) {
        qp[i][0] = bed_qp_new(&d.a, FAB_QP_RC, d.a.cq);
        qp[i][1] = bed_qp_new(&d.b, FAB_QP_RC, large);
        struct bed_card card[2] = {bed_card(&d.a, qp[i][0]), bed_card(&d.b, qp[i][1])};
        bed_connect(qp[i][0], &card[1], bed_patient);
        bed_connect(qp[i][1], &card[0], bed_patient);
        for (uint64_t k = 0; k < EACH; k++) {
            ck_assert_int_eq(bed_recv(&d.b, qp[i][1], k, 0, 8), 0);
            send_one(&d, qp[i][0], 0);
        }
    }
    int got = 0;
    for (int n; (n = fab_poll(large, 64, wc)) != 0; got += n)
        ck_assert_int_gt(n, 0);
    ck_assert_int_eq(got, QPS * EACH);
    for (int i = 0; i < QPS; i++) {
        bed_qp_free(qp[i][0]);
        bed_qp_free(qp[i][1]);
    }
    bed_do(d.b.fab, &(struct fab_ctl){.kind = FAB_DESTROY_CQ, .cq = {.x = large}});
    duo_close(&d);
}
END_TEST

START_TEST(an_armed_queue_wakes_once)
{
    struct duo d;
    struct ibv_wc wc;
    duo_open(&d);
    int fd = d.b.chan->fd;
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_int_eq(bed_recv(&d.b, d.rc[1], i, 0, 8), 0);
    send_one(&d, d.rc[0], 0);
    ck_assert(!is_readable(fd, 0)); /* not armed */
    ck_assert_int_eq(fab_arm(d.b.cq, false), 0);
    ck_assert(!is_readable(fd, 0)); /* what came before raises nothing */
    ck_assert_int_eq(fab_poll(d.b.cq, 1, &wc), 1);
    send_one(&d, d.rc[0], 0);
    ck_assert(is_readable(fd, 0));
    fab_chan_drain(d.b.chan);
    ck_assert(!is_readable(fd, 0));
    send_one(&d, d.rc[0], 0);
    ck_assert(!is_readable(fd, 0)); /* armed for one */
    ck_assert_int_eq(fab_arm(d.b.cq, true), 0);
    send_one(&d, d.rc[0], 0);
    ck_assert(!is_readable(fd, 0));
    ck_assert_int_eq(bed_recv(&d.b, d.rc[1], 9, 0, 8), 0);
    send_one(&d, d.rc[0], IBV_SEND_SOLICITED);
    ck_assert(is_readable(fd, 0));
    duo_close(&d);
}
END_TEST

START_TEST(an_own_completion_wakes_too)
{
    struct duo d;
    struct bed_wr w;
    duo_open(&d);
    struct bed_card to = bed_card(&d.b, NULL);
    bed_fill(&w, &d.a, &to, NULL, IBV_WR_RDMA_READ, 0, 0, 8);
    ck_assert_int_eq(fab_arm(d.a.cq, false), 0);
    bed_post(d.rc[0], &w.wr);
    ck_assert(is_readable(d.a.chan->fd, 0));
    duo_close(&d);
}
END_TEST

/* Sleeps on the channel as an agent does, until a completion comes. */
static struct ibv_wc sleep_for_one(struct bed_node *n)
{
    struct ibv_wc wc;
    for (int wakes = 0; wakes < 1000; wakes++) {
        fab_chan_drain(n->chan);
        if (fab_poll(n->cq, 1, &wc) == 1)
            return wc;
        ck_assert_int_eq(fab_arm(n->cq, false), 0);
        if (fab_poll(n->cq, 1, &wc) == 1)
            return wc;
        ck_assert(is_readable(n->chan->fd, 5000));
    }
    ck_abort_msg("woken 1000 times for nothing");
}

START_TEST(time_outs_wake_a_sleeper)
{
    struct duo d;
    struct bed_wr w;
    duo_open(&d);
    struct bed_card to = bed_card(&d.b, NULL);
    struct fab_qp *qp = bed_qp(&d.a, FAB_QP_DCI, bed_hasty);
    struct fab_ah *ah = bed_ah(&d.a, to.gid);
    bed_fill(&w, &d.a, &to, ah, IBV_WR_RDMA_READ, 0, 0, 8);
    w.wr.dc_key++;
    bed_post(qp, &w.wr);
    ck_assert_int_eq(sleep_for_one(&d.a).status, IBV_WC_RETRY_EXC_ERR);
    bed_qp_free(qp);
    bed_ah_free(ah);
    duo_close(&d);
}
END_TEST

static void break_by_peer(struct duo *d)
{
    struct bed_card to = bed_card(&d->b, NULL);
    struct bed_wr w;
    bed_fill(&w, &d->a, &to, NULL, IBV_WR_RDMA_READ, 0, BED_MEM, 8);
    bed_post(d->rc[0], &w.wr);
}

static void end_by_owner(struct duo *d)
{
    bed_modify(d->rc[1], (struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE);
}

/* The receive is flushed, whoever is asleep. */
static void expect_wakes_a_sleeper(void (*break_it)(struct duo *d))
{
    struct duo d;
    struct ibv_wc wc;
    duo_open(&d);
    ck_assert_int_eq(bed_recv(&d.b, d.rc[1], 6, 0, 8), 0);
    ck_assert_int_eq(fab_arm(d.b.cq, false), 0);
    ck_assert_int_eq(fab_poll(d.b.cq, 1, &wc), 0);
    break_it(&d);
    ck_assert(is_readable(d.b.chan->fd, 0));
    ck_assert_int_eq(bed_wait(d.b.cq).status, IBV_WC_WR_FLUSH_ERR);
    duo_close(&d);
}

START_TEST(a_queue_pair_that_is_broken_by_its_peer_wakes_a_sleeper)
{
    expect_wakes_a_sleeper(break_by_peer);
}
END_TEST

START_TEST(a_queue_pair_that_its_owner_ends_wakes_a_sleeper)
{
    expect_wakes_a_sleeper(end_by_owner);
}
END_TEST

/* The control thread changes something at that moment. Returns when nothing more can wake it. */
static void fall_asleep_beside_another(const struct bed_node *n)
{
    struct soft_cq *cq = (struct soft_cq *)n->cq;
    struct ibv_wc wc;
    pthread_mutex_lock(&cq->qps_lock);
    ck_assert_int_eq(fab_arm(n->cq, false), 0);
    ck_assert_int_eq(fab_poll(n->cq, 1, &wc), 0);
    pthread_mutex_unlock(&cq->qps_lock);
}

START_TEST(who_falls_asleep_while_another_has_the_lock_is_woken_for_what_waits)
{
    struct duo d;
    duo_open(&d);
    send_one(&d, d.rc[0], IBV_SEND_SIGNALED); /* nobody receives yet */
    fall_asleep_beside_another(&d.a);
    ck_assert_int_eq(bed_recv(&d.b, d.rc[1], 6, 0, 8), 0);
    ck_assert(is_readable(d.a.chan->fd, 5000));
    ck_assert_int_eq(sleep_for_one(&d.a).status, IBV_WC_SUCCESS);
    duo_close(&d);
}
END_TEST

START_TEST(who_falls_asleep_while_another_has_the_lock_is_woken_for_what_broke)
{
    struct duo d;
    duo_open(&d);
    ck_assert_int_eq(bed_recv(&d.a, d.rc[0], 6, 0, 8), 0);
    bed_modify(d.rc[0], (struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE);
    fall_asleep_beside_another(&d.a);
    ck_assert(is_readable(d.a.chan->fd, 5000));
    ck_assert_int_eq(sleep_for_one(&d.a).status, IBV_WC_WR_FLUSH_ERR);
    duo_close(&d);
}
END_TEST

enum { PINGS = 2000 };

/* Echoes PINGS messages, asleep between them. */
static void *echo(void *arg)
{
    struct duo *d = arg;
    struct bed_card to = bed_card(&d->a, NULL);
    struct bed_wr w;
    for (int i = 0; i < PINGS; i++) {
        ck_assert_int_eq(sleep_for_one(&d->b).status, IBV_WC_SUCCESS);
        ck_assert_int_eq(bed_recv(&d->b, d->rc[1], 1, 0, 8), 0);
        bed_fill(&w, &d->b, &to, NULL, IBV_WR_SEND, 0, 0, 8);
        w.wr.send_flags = i % 16 == 0 ? IBV_SEND_SIGNALED : 0;
        bed_post(d->rc[1], &w.wr);
        if (i % 16 == 0)
            ck_assert_int_eq(sleep_for_one(&d->b).status, IBV_WC_SUCCESS);
    }
    return NULL;
}

START_TEST(no_wake_is_lost_between_two_sleepers)
{
    struct duo d;
    struct bed_wr w;
    pthread_t thread;
    duo_open(&d);
    struct bed_card to = bed_card(&d.b, NULL);
    for (uint64_t i = 0; i < 4; i++) {
        ck_assert_int_eq(bed_recv(&d.a, d.rc[0], i, 64, 8), 0);
        ck_assert_int_eq(bed_recv(&d.b, d.rc[1], i, 64, 8), 0);
    }
    ck_assert_int_eq(pthread_create(&thread, NULL, echo, &d), 0);
    for (int i = 0; i < PINGS; i++) {
        bed_fill(&w, &d.a, &to, NULL, IBV_WR_SEND, 0, 0, 8);
        w.wr.send_flags = i % 16 == 15 ? IBV_SEND_SIGNALED : 0;
        bed_post(d.rc[0], &w.wr);
        for (int left = i % 16 == 15 ? 2 : 1; left > 0; left--)
            ck_assert_int_eq(sleep_for_one(&d.a).status, IBV_WC_SUCCESS);
        ck_assert_int_eq(bed_recv(&d.a, d.rc[0], 1, 64, 8), 0);
    }
    pthread_join(thread, NULL);
    duo_close(&d);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_queue_that_overflows_is_dead_and_breaks_its_queue_pairs)                                   \
    T(receives_overflow_a_queue_as_sends_do)                                                       \
    T(a_queue_has_all_the_room_that_was_asked_for)                                                 \
    T(an_armed_queue_wakes_once)                                                                   \
    T(an_own_completion_wakes_too)                                                                 \
    T(time_outs_wake_a_sleeper)                                                                    \
    T(a_queue_pair_that_is_broken_by_its_peer_wakes_a_sleeper)                                     \
    T(a_queue_pair_that_its_owner_ends_wakes_a_sleeper)                                            \
    T(who_falls_asleep_while_another_has_the_lock_is_woken_for_what_waits)                         \
    T(who_falls_asleep_while_another_has_the_lock_is_woken_for_what_broke)                         \
    T(no_wake_is_lost_between_two_sleepers)

KEDGE_CHECK_MAIN("fabric.soft_cq", TESTS)
