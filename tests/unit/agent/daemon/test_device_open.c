/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool has of the device when it begins: the device here ends nothing before the test says
 * so, and whoever waits for that fails. Wherever it stops, all that was made can be given back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "base/clock.h"
#include "control/world_log.h"
#include "device.h"
#include "device_objects.h"
#include "fabric/provider.h"
#include "pool.h"

enum { OUT = 64, RECEIVES = 24 };

static bool messages = true;

union object {
    struct fab_pd pd;
    struct fab_mr mr;
    struct fab_chan chan;
    struct fab_cq cq;
    struct fab_srq srq;
    struct fab_qp qp;
    struct fab_dct dct;
};

static struct {
    struct agent agent;
    struct pool pool;
    struct fab fab;
    struct fab_ops ops;
    struct world world;
    struct world_ops world_ops;
    struct fab_ctl *out[OUT];
    uint32_t outs, submitted, objects;
    bool newest_first; /* as a device may that carries out several at a time */
} w;

static int draw_random(struct world *world, void *bytes, size_t n)
{
    (void)world;
    memset(bytes, 5, n);
    return 0;
}

static uint64_t now_ns = 7 * BASE_NS_PER_S;

static uint64_t tell_time(struct world *world)
{
    (void)world;
    return now_ns;
}

static uint64_t tell_no_limit(struct world *world)
{
    (void)world;
    return UINT64_MAX;
}

static void write_log(struct world *world, enum base_log_level level, const char *event,
                      const char *format, va_list args)
{
    (void)world;
    base_log_v(level, event, format, args);
}

static void submit(struct fab *fab, struct fab_ctl *ctl)
{
    (void)fab;
    ck_assert_uint_lt(w.outs, OUT);
    w.out[w.outs++] = ctl;
    w.submitted++;
}

static int run(struct fab *fab)
{
    (void)fab;
    return 0;
}

static void wait_for(struct fab *fab)
{
    (void)fab;
    ck_abort_msg("the control thread waits for the device");
}

static int arm(struct fab_cq *cq, bool solicited_only)
{
    (void)cq, (void)solicited_only;
    return 0;
}

static int post_recv(struct fab_qp *qp, struct fab_recv_wr *wr, struct fab_recv_wr **bad)
{
    (void)qp, (void)wr, (void)bad;
    return 0;
}

/* Its object, as far as who asked for it looks at it. */
static union object *make_object(const struct fab_ctl *ctl)
{
    union object *o = calloc(1, sizeof *o);
    ck_assert_ptr_nonnull(o);
    w.objects++;
    switch (ctl->kind) {
    case FAB_ALLOC_PD:
        o->pd.fab = &w.fab;
        break;
    case FAB_REG_MR:
        o->mr = (struct fab_mr){.pd = ctl->mr.pd, .addr = ctl->mr.iova};
        break;
    case FAB_CREATE_CQ:
        o->cq = (struct fab_cq){.fab = &w.fab, .cqe = ctl->cq.cqe};
        break;
    case FAB_CREATE_SRQ:
        o->srq = (struct fab_srq){.pd = ctl->srq.pd, .max_wr = ctl->srq.max_wr};
        break;
    case FAB_CREATE_DCT:
        ck_assert_uint_ge(ctl->dct.cq->cqe, ctl->dct.srq->max_wr);
        break;
    case FAB_CREATE_QP:
        o->qp = (struct fab_qp){.pd = ctl->qp.pd, .type = ctl->qp.type, .qpn = w.submitted};
        break;
    default:
        break;
    }
    return o;
}

static void end_at(uint32_t i, int status)
{
    ck_assert_uint_lt(i, w.outs);
    struct fab_ctl *ctl = w.out[i];
    memmove(&w.out[i], &w.out[i + 1], (--w.outs - i) * sizeof w.out[0]);
    ctl->status = status;
    if (status == 0 && fab_ctl_balance(ctl->kind) > 0)
        ctl->pd.x = &make_object(ctl)->pd; /* every kind names its object first */
    if (status == 0 && fab_ctl_balance(ctl->kind) < 0) {
        free(ctl->pd.x);
        w.objects--;
    }
    ctl->done(ctl);
}

/* Returns its kind. */
static enum fab_ctl_kind end_one(int status)
{
    const uint32_t i = w.newest_first ? w.outs - 1 : 0;
    ck_assert_uint_lt(i, w.outs);
    const enum fab_ctl_kind kind = w.out[i]->kind;
    end_at(i, status);
    return kind;
}

static void begin(bool rc)
{
    static const struct world_lane_ops lanes = {.lock_limit = tell_no_limit};
    static const struct world_log_ops log = {.write = write_log};
    memset(&w, 0, sizeof w);
    w.ops = (struct fab_ops){
        .submit = submit, .run = run, .wait = wait_for, .arm = arm, .post_recv = post_recv};
    w.fab = (struct fab){.ops = &w.ops,
                         .caps = {.transports = FAB_RC | FAB_DC | FAB_UD,
                                  .ud_payload = 1024,
                                  .max_srq_wr = RECEIVES + 1,
                                  .max_cqe = 1 << 20,
                                  .max_rd_atomic = 16,
                                  .max_sge = 4,
                                  .mtu = IBV_MTU_4096,
                                  .timeout_stretch = 1,
                                  .numa_node = -1,
                                  .comp_vectors = 1}};
    w.world_ops.random = draw_random;
    w.world_ops.now_ns = tell_time;
    w.world.ops = &w.world_ops;
    w.world.lanes = &lanes;
    w.world.log = &log;
    w.agent.config.ack_timeout = 14;
    w.agent.config.max_mrs = 64;
    w.agent.config.messages = messages;
    w.agent.config.receives = RECEIVES;
    w.agent.config.queue_pairs_ahead = 2;
    w.agent.config.metaservers = 2;
    w.agent.world = w.pool.world = &w.world;
    w.agent.fab = &w.fab;
    w.agent.port.mtu = IBV_MTU_4096;
    w.agent.rc = rc;
    fab_iova_init(&w.agent.iova, 1);
    w.pool.agent = &w.agent;
    w.pool.config = &w.agent.config;
    w.pool.place = 1;
    w.pool.mr_lease_ns = 3600 * BASE_NS_PER_S;
    w.pool.prewarm.dcis = 2;
    w.pool.prewarm.spares = 1;
    w.pool.prewarm.connections = w.pool.prewarm.responders = 4;
    w.pool.stage = POOL_STARTING;
    w.pool.start.stage = START_OPENING;
    struct base_errbuf err = {""};
    ck_assert_int_eq(fab_mem_alloc(schema_table_bytes(schema_table_log2_slots(64)), "table",
                                   &w.pool.start.table),
                     0);
    ck_assert_msg(agentd_device_do(&w.world, WORLD_DEVICE_OPEN, &w.pool, &err) == 0, "%s",
                  err.text);
}

static bool is_over(void)
{
    return w.pool.start.stage == START_OPENED && w.pool.fab_ops == 0;
}

/* All that there is of it. */
static void give_back(void)
{
    while (w.outs > 0)
        end_one(0);
    ck_assert_uint_eq(w.pool.fab_ops, 0);
    w.pool.stopping = true;
    (void)agentd_device_do(&w.world, WORLD_DEVICE_RETIRE, &w.pool, NULL);
    ck_assert_uint_eq(w.outs, w.objects);
    while (w.outs > 0)
        end_at(0, 0); /* what needs another came behind it */
    ck_assert_uint_eq(w.pool.fab_ops, 0);
    ck_assert_uint_eq(w.objects, 0);
    (void)agentd_device_do(&w.world, WORLD_DEVICE_CLOSE, &w.pool, NULL);
    if (w.pool.start.table.addr != NULL)
        fab_mem_free(&w.pool.start.table);
}

/* How many operations it takes. */
static uint32_t open_whole(bool rc, bool newest_first)
{
    begin(rc);
    w.newest_first = newest_first;
    while (!is_over()) {
        ck_assert_uint_gt(w.outs, 0);
        ck_assert_uint_eq(w.outs, w.pool.fab_ops); /* a pool's end waits for them */
        end_one(0);
    }
    ck_assert_msg(w.pool.start.status == 0, "%s", w.pool.start.err.text);
    ck_assert_uint_eq(w.outs, 0);
    return w.submitted;
}

START_TEST(a_pool_begins_without_waiting_for_any_operation_of_its_device)
{
    for (int i = 0; i < 4; i++) {
        const bool rc = i % 2 != 0;
        ck_assert_uint_gt(open_whole(rc, i >= 2), 10);
        const struct agent_device *d = &w.pool.device;
        ck_assert_ptr_nonnull(d->pd);
        ck_assert_ptr_nonnull(d->system_pd);
        ck_assert_ptr_nonnull(d->cq);
        ck_assert_ptr_nonnull(d->table->mr);
        ck_assert_ptr_nonnull(d->small_mr);
        ck_assert_uint_eq(d->dcis, rc ? 0 : 4);
        ck_assert_int_eq(d->dct != NULL, !rc);
        ck_assert_int_eq(d->connector != NULL, rc);
        ck_assert_ptr_eq(rc ? d->system_pd : d->dci[0].qp->pd, d->system_pd);
        ck_assert_uint_eq(d->ud_qpn != 0, rc);
        give_back();
    }
}
END_TEST

START_TEST(a_pool_has_what_messages_need_where_it_is_to_carry_them)
{
    const struct agent_device *d = &w.pool.device;
    const uint32_t operations = open_whole(false, false);
    ck_assert_uint_eq(d->messages.receives, RECEIVES);
    ck_assert_uint_eq(d->srq->max_wr, RECEIVES);
    ck_assert_uint_ge(d->messages.memory.size, lane_messages_bytes(RECEIVES));
    ck_assert_int_eq(d->messages.ud->type, FAB_QP_UD);
    ck_assert_ptr_eq(d->messages.ud->pd, d->pd);
    ck_assert_ptr_nonnull(d->messages.mr);
    const uint32_t cqe = d->cq->cqe;
    const struct lane_messages given = agent_messages_describe(&w.pool);
    ck_assert_ptr_eq(given.srq, d->srq);
    ck_assert_ptr_eq(given.ud, d->messages.ud);
    ck_assert_uint_eq(given.receives, RECEIVES);
    ck_assert_uint_gt(agent_messages_bytes(&w.pool), 0);
    give_back();
    messages = false;
    ck_assert_uint_lt(open_whole(false, false), operations);
    ck_assert_ptr_null(d->messages.ud);
    ck_assert_uint_eq(d->messages.memory.size, 0);
    ck_assert_uint_eq(cqe, d->cq->cqe + RECEIVES + LANE_DATAGRAMS_IN + LANE_DATAGRAMS_OUT);
    ck_assert_ptr_null(agent_messages_describe(&w.pool).srq);
    give_back();
    messages = true;
}
END_TEST

START_TEST(whichever_operation_fails_is_said_and_what_was_made_goes)
{
    uint32_t repaired = 0;
    for (int rc = 0; rc < 2; rc++) {
        const uint32_t most = open_whole(rc, false);
        give_back();
        for (uint32_t k = 0; k < most; k++) {
            begin(rc);
            for (uint32_t i = 0; i < k; i++)
                end_one(0);
            const enum fab_ctl_kind failed = end_one(-ENOSPC);
            while (w.outs > 0)
                end_one(0);
            ck_assert(is_over());
            if (rc && failed == FAB_MODIFY_QP && w.pool.start.status == 0)
                repaired++; /* of queue pairs for tables */
            else
                ck_assert_int_eq(w.pool.start.status, -ENOSPC);
            ck_assert(w.pool.start.status == 0 || w.pool.start.err.text[0] != '\0');
            give_back();
        }
    }
    ck_assert_uint_gt(repaired, 0);
}
END_TEST

START_TEST(wherever_a_pool_goes_before_it_has_begun_nothing_more_is_made)
{
    for (int rc = 0; rc < 2; rc++) {
        const uint32_t most = open_whole(rc, false);
        give_back();
        for (uint32_t k = 0; k + 1 < most; k++) {
            begin(rc);
            for (uint32_t i = 0; i < k; i++)
                end_one(0);
            w.pool.stopping = true;
            const uint32_t submitted = w.submitted;
            bool repairs = rc; /* nothing but queue pairs for tables is left to do */
            while (w.outs > 0)
                repairs = end_one(0) == FAB_MODIFY_QP && repairs;
            ck_assert_uint_eq(w.submitted, submitted);
            ck_assert(is_over());
            if (!repairs || w.pool.start.status != 0)
                ck_assert_int_eq(w.pool.start.status, -ECANCELED);
            give_back();
        }
    }
}
END_TEST

/* Peers may repeat requests to what served. What never did may be tried every few seconds, and new
 * queue pairs of other pools would rest each time. */
START_TEST(numbers_of_a_pool_that_never_served_rest_no_longer_than_packets_live)
{
    for (int served = 0; served < 2; served++) {
        (void)open_whole(true, false);
        w.pool.start.stage = served ? START_OVER : START_OPENED;
        w.agent.numbers_gone_ns = 0;
        ck_assert_uint_gt(w.pool.device.bound_ns, 0);
        const uint64_t gone_ns = tell_time(&w.world) + (served ? w.pool.device.bound_ns : 0);
        give_back();
        ck_assert_uint_eq(w.agent.numbers_gone_ns, gone_ns);
    }
}
END_TEST

/* A device may take its time, and give each number to the next one at once. */
START_TEST(numbers_rest_from_when_the_device_has_destroyed_them_and_not_from_when_it_was_to)
{
    for (int rc = 0; rc < 2; rc++)
        for (int served = 0; served < 2; served++) {
            struct base_errbuf err = {""};
            (void)open_whole(rc, false);
            w.agent.pools[1] = &w.pool;
            w.pool.start.stage = served ? START_OVER : START_OPENED;
            w.pool.stopping = true;
            const uint64_t bound_ns = served ? w.pool.device.bound_ns : 0;
            w.agent.numbers_gone_ns = 0;
            ck_assert_int_eq(agentd_device_do(&w.world, WORLD_DEVICE_RETIRE, &w.pool, &err), 0);
            ck_assert_uint_eq(w.agent.numbers_gone_ns, now_ns + bound_ns);
            uint32_t gone = 0;
            while (w.outs > 0) {
                now_ns += BASE_NS_PER_S;
                const uint64_t before_ns = w.agent.numbers_gone_ns;
                if (end_one(0) != FAB_DESTROY_QP) {
                    ck_assert_uint_eq(w.agent.numbers_gone_ns, before_ns);
                    continue;
                }
                gone++;
                ck_assert_uint_eq(w.agent.numbers_gone_ns, now_ns + bound_ns);
            }
            ck_assert_uint_gt(gone, 2);
            ck_assert_int_eq(agentd_device_do(&w.world, WORLD_DEVICE_CLOSE, &w.pool, &err), 0);
            ck_assert_uint_eq(w.objects, 0);
            if (w.pool.start.table.addr != NULL)
                fab_mem_free(&w.pool.start.table);
        }
}
END_TEST

START_TEST(a_lease_that_is_too_short_for_the_device_is_refused_before_anything_is_made)
{
    struct base_errbuf err = {""};
    (void)open_whole(false, false);
    give_back();
    w.submitted = 0;
    w.pool.mr_lease_ns = 1;
    ck_assert_int_eq(agentd_device_do(&w.world, WORLD_DEVICE_OPEN, &w.pool, &err), -EDOM);
    ck_assert_ptr_nonnull(strstr(err.text, "mr_lease_ms is too short for this device"));
    ck_assert_uint_eq(w.submitted, 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_pool_begins_without_waiting_for_any_operation_of_its_device)                               \
    T(a_pool_has_what_messages_need_where_it_is_to_carry_them)                                     \
    T(whichever_operation_fails_is_said_and_what_was_made_goes)                                    \
    T(wherever_a_pool_goes_before_it_has_begun_nothing_more_is_made)                               \
    T(numbers_rest_from_when_the_device_has_destroyed_them_and_not_from_when_it_was_to)            \
    T(numbers_of_a_pool_that_never_served_rest_no_longer_than_packets_live)                        \
    T(a_lease_that_is_too_short_for_the_device_is_refused_before_anything_is_made)
KEDGE_CHECK_MAIN("agent.daemon.device_open", TESTS)
