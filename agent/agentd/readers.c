/* SPDX-License-Identifier: Apache-2.0 */
/* With RC: the queue pairs that metaservers' endpoint tables are READ through. Made at start; a
 * registration offers one, the metaserver connects its own to it, and the lane gets it. */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/random.h"
#include "daemon.h"

static struct reader *end_op(struct fab_ctl *ctl)
{
    struct reader *reader = ctl->user;
    reader->registration->pool->fab_ops--;
    return reader;
}

static void submit_op(struct reader *reader, void (*done)(struct fab_ctl *ctl))
{
    struct pool *p = reader->registration->pool;
    reader->ctl.done = done;
    reader->ctl.user = reader;
    p->fab_ops++;
    fab_submit(p->device.fab, &reader->ctl);
}

static void modify_reader(struct reader *reader, const struct ibv_qp_attr *attr, int mask,
                          void (*done)(struct fab_ctl *ctl))
{
    reader->ctl = (struct fab_ctl){.kind = FAB_MODIFY_QP,
                                   .modify = {.x = reader->qp, .attr = *attr, .mask = mask}};
    submit_op(reader, done);
}

/* ---- cleaned: in INIT, the same one or another one
 * ------------------------------------------------------------------------------ */

static uint64_t time_wait_ns(const struct agent_device *d)
{
    return d->fab->caps.time_wait_ns;
}

static void on_cleaned(struct fab_ctl *ctl)
{
    struct reader *reader = end_op(ctl);
    struct pool *p = reader->registration->pool;
    const bool more = fab_reuse_next(&reader->reuse, ctl);
    reader->qp = reader->reuse.qp;
    if (p->stopping)
        return;
    if (more) {
        submit_op(reader, on_cleaned);
        return;
    }
    if (reader->reuse.anew) /* its number may be that of one that is gone just now */
        reader->rest_ns = base_clock_ns() + time_wait_ns(&p->device);
    if (reader->reuse.status == 0) {
        reader->state = READER_READY;
        return;
    }
    base_log(BASE_LOG_ERROR, "a queue pair cannot be repaired: it is tried again",
             "qpn=%u error=\"%s\"", reader->qp != NULL ? reader->qp->qpn : 0,
             strerror(-reader->reuse.status));
    reader->state = READER_FAILED;
    reader->again_ns = base_clock_ns() + REPAIR_AGAIN_MS * BASE_NS_PER_MS;
}

static struct fab_ctl reader_creation(const struct agent_device *d)
{
    return (struct fab_ctl){
        .kind = FAB_CREATE_QP,
        .qp = {.pd = d->system_pd,
               .type = FAB_QP_RC,
               .send_cq = d->cq,
               .recv_cq = d->cq,
               .cap = {.send_wr = d->sq_depth, .recv_wr = 1, .send_sge = 1, .recv_sge = 1}}};
}

static void clean_reader(struct reader *reader, bool is_new)
{
    const struct agent_device *d = &reader->registration->pool->device;
    reader->state = READER_CLEANING;
    reader->reuse = (struct fab_reuse){.fab = d->fab,
                                       .qp = reader->qp,
                                       .in_reset = is_new,
                                       .make = reader_creation(d),
                                       .init = fab_init_attr(d->fab),
                                       .mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                               IBV_QP_ACCESS_FLAGS};
    fab_reuse_begin(&reader->reuse, &reader->ctl);
    submit_op(reader, on_cleaned);
}

static int make_one(struct registration *r, struct reader *reader)
{
    struct agent_device *d = &r->pool->device;
    struct fab_ctl c = reader_creation(d);
    int status = fab_call(d->fab, &c);
    if (status != 0)
        return status;
    *reader = (struct reader){
        .registration = r, .qp = c.qp.x, .rest_ns = pool_begun_ns(r->pool) + time_wait_ns(d)};
    clean_reader(reader, true);
    return 0;
}

int readers_make(struct pool *p)
{
    int status = 0;
    for (uint32_t i = 0; i < p->config->metaservers && status == 0; i++) {
        p->registration[i].pool = p;
        status = make_one(&p->registration[i], &p->registration[i].reader[0]);
        if (status == 0)
            status = make_one(&p->registration[i], &p->registration[i].reader[1]);
    }
    if (status == 0)
        device_settle(&p->device, &p->fab_ops);
    return status;
}

/* ---- connected: RTR, RTS
 * -------------------------------------------------------------------------------- */

struct reader *reader_offer(struct registration *r)
{
    const uint64_t now = base_clock_ns();
    for (int i = 0; i < 2; i++) {
        struct reader *reader = &r->reader[i];
        if (reader->state != READER_READY || now < reader->rest_ns ||
            base_random_bytes(&reader->psn, sizeof reader->psn) != 0)
            continue;
        reader->psn &= 0xffffff;
        reader->state = READER_OFFERED;
        return reader;
    }
    return NULL;
}

uint64_t reader_rests_ms(const struct registration *r)
{
    const uint64_t now = base_clock_ns();
    uint64_t least = 0;
    for (int i = 0; i < 2; i++) {
        const struct reader *reader = &r->reader[i];
        if (reader->state != READER_READY)
            continue;
        const uint64_t ms =
            reader->rest_ns > now ? (reader->rest_ns - now) / BASE_NS_PER_MS + 1 : 1;
        least = least == 0 || ms < least ? ms : least;
    }
    return least;
}

void reader_withdraw(struct reader *reader)
{
    BASE_ASSERT(reader->state == READER_OFFERED);
    reader->state = READER_READY;
}

static void on_raised(struct fab_ctl *ctl)
{
    struct reader *reader = end_op(ctl);
    struct registration *r = reader->registration;
    const struct pool *p = r->pool;
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
                              .timeout = (uint8_t)p->config->ack_timeout,
                              .retry_cnt = ACK_RETRIES,
                              .rnr_retry = RNR_RETRIES,
                              .sq_psn = reader->psn,
                              .max_rd_atomic = reader->reads};
    if (p->stopping)
        return;
    if (ctl->status == 0 && reader->step++ == 0) {
        modify_reader(reader, &rts,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                      on_raised);
        return;
    }
    reader->state = READER_UP;
    const int status = ctl->status;
    if (status != 0)
        clean_reader(reader, false);
    registration_reader_up(r, reader, status);
}

void reader_raise(struct reader *reader, const struct reader_peer *peer)
{
    const struct fab *fab = reader->registration->pool->device.fab;
    const struct fab_caps *caps = &fab->caps;
    const enum ibv_mtu own = reader->registration->pool->agent->port.mtu;
    reader->state = READER_RAISING;
    reader->step = 0;
    reader->reads = caps->max_rd_atomic < peer->reads ? (uint8_t)caps->max_rd_atomic : peer->reads;
    reader->rtr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                       .path_mtu = peer->mtu < own ? peer->mtu : own,
                                       .dest_qp_num = peer->qpn,
                                       .rq_psn = peer->psn,
                                       .max_dest_rd_atomic = 1, /* nobody reads here */
                                       .min_rnr_timer = 12,
                                       .ah_attr = fab_address(fab, peer->gid, peer->lid)};
    modify_reader(reader, &reader->rtr,
                  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                  on_raised);
}

/* ---- over
 * ---------------------------------------------------------------------------------------------- */

void reader_drop(struct reader *reader)
{
    reader->rest_ns = base_clock_ns() + time_wait_ns(&reader->registration->pool->device);
    clean_reader(reader, false);
}

bool reader_done(struct pool *p, const struct fab_qp *qp)
{
    for (uint32_t i = 0; i < p->config->metaservers; i++)
        for (int k = 0; k < 2; k++) {
            struct reader *reader = &p->registration[i].reader[k];
            if (reader->qp != qp)
                continue;
            reader->rest_ns = base_clock_ns() + time_wait_ns(&p->device);
            clean_reader(reader, false);
            if (p->registration[i].lane.qp == qp)
                registration_reader_lost(&p->registration[i]);
            return true;
        }
    return false;
}

void readers_tick(struct pool *p)
{
    const uint64_t now = base_clock_ns();
    for (uint32_t i = 0; i < p->config->metaservers && !p->agent->device_lost; i++)
        for (int k = 0; k < 2; k++) {
            struct reader *reader = &p->registration[i].reader[k];
            if (reader->state == READER_FAILED && now >= reader->again_ns)
                clean_reader(reader, false);
        }
}

void readers_stop(struct pool *p)
{
    for (uint32_t i = 0; i < p->config->metaservers; i++)
        for (int k = 0; k < 2; k++) {
            device_destroy(&p->device, FAB_DESTROY_QP, p->registration[i].reader[k].qp);
            p->registration[i].reader[k].qp = NULL;
        }
}
