/* SPDX-License-Identifier: Apache-2.0 */
/* The UD queue pair that handshakes go through, and the address handles of those they go to.
 *
 * Resolving an address may block for long, so that is the fabric's to do in the background; what
 * was to be sent waits, one datagram for each address, the newest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/grh.h"
#include "internal.h"

enum {
    SLOT_BYTES = FAB_GRH_BYTES + SCHEMA_HANDSHAKE_BYTES,
    SLOTS = CONNECT_RECVS + CONNECT_SENDS, /* of a queue pair; and as many of a former one's */
    /* What is behind a handshake, of the longest datagram of a network, which a stranger may send:
     * without room for it the device would break the queue pair. No agent sends it and nobody reads
     * it, so that all receives have one place for it, behind all slots. */
    REST_BYTES = 4096 - SCHEMA_HANDSHAKE_BYTES,
    RECV = 1u << 31, /* in a wr_id: a receive; its index in the rest */
};

static const uint64_t AGAIN_NS = 1000000000;  /* the device is ill */
static const uint64_t SILENT_NS = 5000000000; /* and may say nothing any more */

static uint8_t *buffer_at(const struct datagrams *d, uint32_t index)
{
    return (uint8_t *)d->mem.addr + ((d->half ? SLOTS : 0) + (size_t)index) * SLOT_BYTES;
}

static uint8_t *rest_of(const struct datagrams *d)
{
    return (uint8_t *)d->mem.addr + (size_t)2 * SLOTS * SLOT_BYTES;
}

/* ---- addresses */

static void on_closed(struct fab_ctl *ctl)
{
    struct address *a = ctl->user;
    (*a->c->ops)--;
    if (ctl->status != 0) {
        a->state = ADDRESS_LEFT;
        a->c->ud.left++;
        a->c->ud.close_ns = a->c->now_ns + AGAIN_NS;
        return;
    }
    a->c->stats.addresses--;
    a->ah = NULL;
    a->state = ADDRESS_FREE;
}

static void close_address(struct address *a)
{
    a->state = ADDRESS_CLOSING;
    a->ctl = (struct fab_ctl){.kind = FAB_DESTROY_AH, .ah = {.x = a->ah}};
    connector_submit(a->c, &a->ctl, on_closed, a);
}

static void close_left(struct connector *c)
{
    struct datagrams *d = &c->ud;
    if (d->left > 0 && c->now_ns < d->close_ns)
        connector_due(c, d->close_ns);
    for (uint32_t i = 0; d->left > 0 && c->now_ns >= d->close_ns && i < d->addresses; i++)
        if (d->address[i].state == ADDRESS_LEFT) {
            d->left--;
            close_address(&d->address[i]);
        }
}

static bool is_wanted(const struct address *a)
{
    return (a->state == ADDRESS_MAKING || a->state == ADDRESS_READY) && !a->unwanted;
}

static struct address *address_of(struct connector *c, const uint8_t gid[16], uint16_t lid)
{
    for (uint32_t i = 0; i < c->ud.addresses; i++) {
        struct address *a = &c->ud.address[i];
        if (is_wanted(a) && a->lid == lid && memcmp(a->gid, gid, 16) == 0)
            return a;
    }
    return NULL;
}

/* One that is free; the one that was not used for longest goes, for the next that asks. */
static struct address *free_address(struct connector *c)
{
    struct address *oldest = NULL;
    for (uint32_t i = 0; i < c->ud.addresses; i++) {
        struct address *a = &c->ud.address[i];
        if (a->state == ADDRESS_FREE)
            return a;
        if (a->state == ADDRESS_READY && a->out == 0 &&
            (oldest == NULL || a->used_ns < oldest->used_ns))
            oldest = a;
    }
    if (oldest != NULL)
        close_address(oldest);
    return NULL;
}

static void post_datagram(struct connector *c, struct address *a, uint32_t qpn, uint32_t qkey,
                          const struct schema_handshake *h);

static void on_resolved(struct fab_ctl *ctl)
{
    struct address *a = ctl->user;
    struct connector *c = a->c;
    (*c->ops)--;
    a->ah = ctl->status == 0 ? ctl->ah.x : NULL;
    a->state = a->ah != NULL ? ADDRESS_READY : ADDRESS_FREE; /* tried anew by what is repeated */
    c->stats.addresses += a->ah != NULL;
    if (c->closing)
        return;
    if (a->ah != NULL && a->waits)
        post_datagram(c, a, a->qpn, a->qkey, &a->waiting);
    else
        c->stats.lost += a->waits;
    a->waits = false;
    if (a->ah != NULL && a->unwanted && a->out == 0)
        close_address(a);
}

static struct address *resolve_address(struct connector *c, const uint8_t gid[16], uint16_t lid)
{
    struct address *a = free_address(c);
    if (a == NULL)
        return NULL;
    *a = (struct address){.c = c, .state = ADDRESS_MAKING, .lid = lid};
    memcpy(a->gid, gid, 16);
    a->ctl =
        (struct fab_ctl){.kind = FAB_CREATE_AH,
                         .ah = {.pd = c->res.system_pd, .attr = fab_address(c->res.fab, gid, lid)}};
    connector_submit(c, &a->ctl, on_resolved, a);
    return a;
}

void connector_datagram_expect(struct connector *c, const uint8_t gid[16], uint16_t lid)
{
    if (address_of(c, gid, lid) == NULL)
        (void)resolve_address(c, gid, lid);
}

/* gid: NULL: all of them. */
static void forget_addresses(struct connector *c, const uint8_t gid[16])
{
    for (uint32_t i = 0; i < c->ud.addresses; i++) {
        struct address *a = &c->ud.address[i];
        if (!is_wanted(a) || (gid != NULL && memcmp(a->gid, gid, 16) != 0))
            continue;
        a->unwanted = 1;
        if (a->state == ADDRESS_READY && a->out == 0)
            close_address(a);
    }
}

void connector_datagram_forget(struct connector *c, const uint8_t gid[16])
{
    forget_addresses(c, gid);
}

void connector_datagrams_forget_all(struct connector *c)
{
    forget_addresses(c, NULL);
}

/* ---- sending */

static void post_datagram(struct connector *c, struct address *a, uint32_t qpn, uint32_t qkey,
                          const struct schema_handshake *h)
{
    struct datagrams *d = &c->ud;
    uint32_t i = d->send_hand, tried = 0;
    while (d->sent_to[i] != NULL && tried++ < CONNECT_SENDS)
        i = (i + 1) % CONNECT_SENDS;
    if (d->sent_to[i] != NULL || d->broken) {
        c->stats.lost++;
        return;
    }
    memcpy(buffer_at(d, CONNECT_RECVS + i), h, sizeof *h);
    struct ibv_sge sge = {.addr = (uintptr_t)buffer_at(d, CONNECT_RECVS + i),
                          .length = sizeof *h,
                          .lkey = d->mr->lkey};
    struct fab_wr wr = {.wr_id = i,
                        .sg_list = &sge,
                        .num_sge = 1,
                        .opcode = IBV_WR_SEND,
                        .send_flags = IBV_SEND_SIGNALED,
                        .ah = a->ah,
                        .dest_qpn = qpn,
                        .qkey = qkey},
                  *bad;
    if (fab_post_send(d->qp, &wr, &bad) != 0) {
        c->stats.lost++;
        return;
    }
    d->sent_to[i] = a;
    d->send_hand = (i + 1) % CONNECT_SENDS;
    a->out++;
    a->used_ns = c->now_ns;
}

void connector_datagram_send(struct connector *c, const uint8_t gid[16], uint16_t lid, uint32_t qpn,
                             uint32_t qkey, struct schema_handshake h)
{
    const struct fab_caps *caps = &c->res.fab->caps;
    h.magic = SCHEMA_HANDSHAKE_MAGIC;
    h.version = SCHEMA_HANDSHAKE_VERSION;
    memcpy(h.from_gid, caps->gid, 16);
    memcpy(h.to_gid, gid, 16);
    h.from_incarnation = c->config.incarnation;
    h.pool = c->config.pool;
    h.lid = caps->lid;
    h.mtu = (uint8_t)c->mtu;
    h.rd_atomic =
        caps->max_rd_atomic < CONNECT_RD_ATOMIC ? (uint8_t)caps->max_rd_atomic : CONNECT_RD_ATOMIC;
    h.ud_qpn = c->ud.qpn;
    h.ud_qkey = c->ud.qkey;
    struct address *a = address_of(c, gid, lid);
    if (a == NULL)
        a = resolve_address(c, gid, lid);
    if (a == NULL) {
        c->stats.lost++;
        return;
    }
    if (a->state == ADDRESS_READY) {
        post_datagram(c, a, qpn, qkey, &h);
        return;
    }
    c->stats.lost += a->waits && a->waiting.nonce != h.nonce;
    a->waits = true;
    a->waiting = h;
    a->qpn = qpn;
    a->qkey = qkey;
}

/* ---- receiving */

static int post_recv(struct datagrams *d, uint32_t index)
{
    struct ibv_sge sge[] = {
        {.addr = (uintptr_t)buffer_at(d, index), .length = SLOT_BYTES, .lkey = d->mr->lkey},
        {.addr = (uintptr_t)rest_of(d), .length = REST_BYTES, .lkey = d->mr->lkey}};
    struct fab_recv_wr wr = {.wr_id = RECV | index, .sg_list = sge, .num_sge = 2}, *bad;
    return fab_post_recv(d->qp, &wr, &bad);
}

/* A device has written where it came from, and the sender what it likes. Only InfiniBand may have
 * no GRH, which no agent sends there. */
static bool is_forged(const struct ibv_wc *wc, const uint8_t *datagram,
                      const struct schema_handshake *h)
{
    if (h->ud_qpn != wc->src_qp)
        return true;
    return !(wc->wc_flags & IBV_WC_GRH) || !fab_grh_is(datagram, h->from_gid, h->to_gid);
}

static void on_received(struct connector *c, const struct ibv_wc *wc)
{
    uint32_t index = (uint32_t)wc->wr_id & ~(uint32_t)RECV;
    const uint8_t *datagram = buffer_at(&c->ud, index);
    struct schema_handshake h;
    if (wc->byte_len < FAB_GRH_BYTES ||
        schema_handshake_read(datagram + FAB_GRH_BYTES, wc->byte_len - FAB_GRH_BYTES, &h) != 0)
        c->stats.dropped++;
    else if (is_forged(wc, datagram, &h))
        c->stats.forged++;
    else
        connector_message(c, &h);
    (void)post_recv(&c->ud, index);
}

static void on_sent(struct datagrams *d, uint32_t index)
{
    struct address *a = d->sent_to[index];
    d->sent_to[index] = NULL;
    if (a != NULL && --a->out == 0 && a->unwanted)
        close_address(a);
}

/* ---- its queue pair */

enum {
    STEPS = 3,
    REPAIRS = 3 /* that the device refuses, until another one is made */
};

/* INIT, RTR, RTS. Returns the mask. */
static int step_attr(const struct connector *c, int step, struct ibv_qp_attr *attr)
{
    static const enum ibv_qp_state states[STEPS] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
    static const int masks[STEPS] = {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0,
                                     IBV_QP_SQ_PSN};
    *attr = fab_pd_init_attr(c->res.system_pd);
    attr->qp_state = states[step];
    attr->qkey = c->ud.qkey;
    return IBV_QP_STATE | masks[step];
}

static struct fab_ctl ud_creation(const struct connector *c)
{
    return (struct fab_ctl){.kind = FAB_CREATE_QP,
                            .qp = {.pd = c->res.system_pd,
                                   .type = FAB_QP_UD,
                                   .send_cq = c->ud.cq,
                                   .recv_cq = c->ud.cq,
                                   .cap = {.send_wr = CONNECT_SENDS,
                                           .recv_wr = CONNECT_RECVS,
                                           .send_sge = 1,
                                           .recv_sge = 2}}};
}

/* ---- the one before */

static void on_former_ended(struct fab_ctl *ctl)
{
    struct connector *c = ctl->user;
    struct ud_former *f = &c->ud.former;
    (*c->ops)--;
    f->ending = false;
    f->again_ns = c->now_ns + AGAIN_NS;
    if (ctl->status != 0)
        return;
    f->qp = NULL;
    f->is_there = false;
}

static void end_former(struct connector *c)
{
    struct ud_former *f = &c->ud.former;
    f->ending = true;
    f->ctl = (struct fab_ctl){.kind = FAB_DESTROY_QP, .qp = {.x = f->qp}};
    connector_submit(c, &f->ctl, on_former_ended, c);
}

/* It does no more, or nobody knows what: another has its own memory, and its completions are
 * dropped. */
static void leave_former(struct connector *c, bool returns)
{
    struct datagrams *d = &c->ud;
    d->former = (struct ud_former){.is_there = true, .returns = returns, .qp = d->qp};
    d->qp = NULL;
    d->half = !d->half;
}

static void take_former_back(struct ud_repair *r)
{
    struct connector *c = r->c;
    struct ud_former *f = &c->ud.former;
    f->qp = r->ctl.kind == FAB_CREATE_QP ? (r->ctl.status == 0 ? r->ctl.qp.x : NULL)
            : r->ctl.kind == FAB_DESTROY_QP && r->ctl.status == 0 ? NULL
                                                                  : f->qp;
    f->returns = false;
    f->is_there = f->qp != NULL;
    if (c->ud.repair != NULL) /* what stood behind this has its time from now on */
        c->ud.repair->silent_ns = c->now_ns + SILENT_NS;
    if (f->is_there && !c->closing)
        end_former(c);
}

static void step_former(struct connector *c)
{
    const struct ud_former *f = &c->ud.former;
    if (!f->is_there || f->returns || f->ending)
        return;
    if (c->now_ns >= f->again_ns)
        end_former(c);
    else
        connector_due(c, f->again_ns);
}

/* ---- its repair */

static void begin_repair(struct connector *c);
static int take_some(struct connector *c, int most);

/* What completed before, and a device may leave there (rxe), is dropped: it has the same number. */
static void restart_after_repair(struct connector *c)
{
    struct datagrams *d = &c->ud;
    while (take_some(c, CONNECTOR_TAKES) > 0)
        ;
    for (uint32_t i = 0; i < CONNECT_SENDS; i++)
        on_sent(d, i);
    for (uint32_t i = 0; i < CONNECT_RECVS; i++)
        (void)post_recv(d, i);
    d->broken = false;
    d->repair = NULL;
    d->failures = 0;
    if (d->outdated)
        begin_repair(c);
    if (d->qpn == d->qp->qpn)
        return;
    d->qpn = d->qp->qpn;
    connector_outgoing_renumbered(c);
}

static void on_repaired(struct fab_ctl *ctl)
{
    struct ud_repair *r = ctl->user;
    struct connector *c = r->c;
    struct datagrams *d = &c->ud;
    bool more = false;
    (*c->ops)--;
    r->busy = false;
    if (r->given_up) {
        take_former_back(r);
        return;
    }
    if (r->step == 0) {
        more = fab_reuse_next(&r->reuse, ctl);
        d->qp = r->reuse.qp;
        ctl->status = r->reuse.status;
    }
    if (c->closing)
        return;
    if (!more && ctl->status != 0) {
        d->repair = NULL;
        d->failures++;
        d->again_ns = c->now_ns + AGAIN_NS;
        return;
    }
    if (!more && ++r->step == STEPS) {
        restart_after_repair(c);
        return;
    }
    if (!more) {
        *ctl = (struct fab_ctl){.kind = FAB_MODIFY_QP, .modify = {.x = d->qp}};
        ctl->modify.mask = step_attr(c, r->step, &ctl->modify.attr);
    }
    r->busy = true;
    connector_submit(c, &r->ctl, on_repaired, r);
}

/* Something has broken it: all that was out is lost, as the wire may lose it. There is one former
 * queue pair at a time; else this one has to be destroyed before another is made. */
static void begin_repair(struct connector *c)
{
    struct datagrams *d = &c->ud;
    const bool given_up = d->failures >= REPAIRS;
    if (d->repair != NULL)
        return;
    d->broken = true;
    d->outdated = false;
    if (given_up && d->qp != NULL && !d->former.is_there) {
        leave_former(c, false);
        end_former(c);
    }
    struct ud_repair *r = d->repair = &d->repairs[d->repairs[0].busy];
    BASE_ASSERT(!r->busy);
    *r = (struct ud_repair){
        .c = c,
        .silent_ns = c->now_ns + SILENT_NS,
        .reuse = {.fab = c->res.fab, .qp = d->qp, .given_up = given_up, .make = ud_creation(c)}};
    r->reuse.mask = step_attr(c, 0, &r->reuse.init);
    fab_reuse_begin(&r->reuse, &r->ctl);
    r->busy = true;
    connector_submit(c, &r->ctl, on_repaired, r);
}

/* The device may be silent for ever: another one is made beside it, and it goes when it returns. */
static void step_repair(struct connector *c)
{
    struct datagrams *d = &c->ud;
    if (c->now_ns < d->repair->silent_ns) {
        connector_due(c, d->repair->silent_ns);
        return;
    }
    if (d->former.is_there)
        return;
    d->repair->given_up = true;
    d->repair = NULL;
    d->failures = 0;
    leave_former(c, true);
    begin_repair(c);
}

void connector_datagrams_repartition(struct connector *c)
{
    c->ud.outdated = c->ud.repair != NULL;
    begin_repair(c);
}

void connector_datagrams_step(struct connector *c)
{
    const struct datagrams *d = &c->ud;
    close_left(c);
    step_former(c);
    if (!d->broken)
        return;
    if (d->repair != NULL)
        step_repair(c);
    else if (c->now_ns >= d->again_ns)
        begin_repair(c);
    else
        connector_due(c, d->again_ns);
}

static int take_some(struct connector *c, int most)
{
    struct ibv_wc wc[CONNECTOR_TAKES];
    const int n = fab_poll(c->ud.cq, most, wc);
    for (int i = 0; i < n; i++) {
        if (c->ud.broken || wc[i].qp_num != c->ud.qp->qpn)
            continue; /* flushed; the repair deals with all of it. Or the former one's */
        if (wc[i].status != IBV_WC_SUCCESS)
            begin_repair(c);
        else if (wc[i].wr_id & RECV)
            on_received(c, &wc[i]);
        else
            on_sent(&c->ud, (uint32_t)wc[i].wr_id);
    }
    return n;
}

/* What is left has its turn when others had theirs: whoever sends as fast as the wire takes it
 * keeps nothing else waiting that the control thread does. */
void connector_datagrams_take(struct connector *c)
{
    int left = CONNECTOR_TAKES;
    fab_chan_drain(c->ud.chan);
    (void)fab_arm(c->ud.cq, false);
    for (int n; left > 0 && (n = take_some(c, left)) > 0;)
        left -= n;
    if (left == 0)
        connector_due(c, c->now_ns);
}

/* ---- making */

int connector_datagrams_init(struct connector *c, uint32_t addresses)
{
    struct datagrams *d = &c->ud;
    d->address = calloc(addresses, sizeof d->address[0]);
    if (d->address == NULL)
        return -ENOMEM;
    d->addresses = addresses;
    int status = c->fill(c->fill_user, &d->qkey, sizeof d->qkey);
    d->qkey &= 0x7fffffff; /* the high bit is the kernel's own */
    return status == 0 ? fab_mem_alloc_for(c->res.fab, (size_t)2 * SLOTS * SLOT_BYTES + REST_BYTES,
                                           "kedge-handshakes", &d->mem)
                       : status;
}

static int begin_receiving(struct datagrams *d)
{
    int status = 0;
    for (uint32_t i = 0; i < CONNECT_RECVS && status == 0; i++)
        status = post_recv(d, i);
    if (status == 0)
        (void)fab_arm(d->cq, false);
    return status;
}

int connector_datagrams_make(void *of, uint32_t over, struct fab_ctl *ctl)
{
    enum { MR, CHAN, CQ, QP, FIRST_STEP };
    struct connector *c = of;
    struct datagrams *d = &c->ud;
    switch (over) {
    case MR:
        *ctl = (struct fab_ctl){.kind = FAB_REG_MR,
                                .mr = {.pd = c->res.system_pd,
                                       .mem = &d->mem,
                                       .length = d->mem.size,
                                       .access = IBV_ACCESS_LOCAL_WRITE}};
        return 1;
    case CHAN:
        d->mr = ctl->mr.x;
        *ctl = (struct fab_ctl){.kind = FAB_CREATE_CHAN};
        return 1;
    case CQ:
        d->chan = ctl->chan.x;
        *ctl = (struct fab_ctl){.kind = FAB_CREATE_CQ, .cq = {.cqe = 2 * SLOTS, .chan = d->chan}};
        return 1;
    case QP:
        d->cq = ctl->cq.x;
        *ctl = ud_creation(c);
        return 1;
    case FIRST_STEP:
        d->qp = ctl->qp.x;
        d->qpn = d->qp->qpn;
        break;
    }
    const int step = (int)over - FIRST_STEP;
    if (step == STEPS)
        return begin_receiving(d);
    *ctl = (struct fab_ctl){.kind = FAB_MODIFY_QP, .modify = {.x = d->qp}};
    ctl->modify.mask = step_attr(c, step, &ctl->modify.attr);
    return 1;
}
