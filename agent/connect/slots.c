/* SPDX-License-Identifier: Apache-2.0 */
/* RC queue pairs: made ahead of time and kept in INIT, so that a connection costs two changes of
 * state; made ready again after use (fabric/reuse.h). Each has one control operation under way at
 * most. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/retire.h"
#include "internal.h"

enum { MAKING_AT_A_TIME = 4 };
static const uint64_t AFTER_FAILURE_NS = 1000000000; /* the device has no more, or is ill */
static const uint64_t QUIET_NS = 50000000; /* making one takes what a handshake needs: not before */

static const uint8_t slot_moves[9][9] = {
    [SLOT_EMPTY] = {[SLOT_MAKING] = 1},
    [SLOT_MAKING] = {[SLOT_RESTING] = 1, [SLOT_EMPTY] = 1, [SLOT_ENDING] = 1},
    [SLOT_RESTING] = {[SLOT_READY] = 1},
    [SLOT_READY] = {[SLOT_TAKEN] = 1},
    [SLOT_TAKEN] = {[SLOT_CLEANING] = 1, [SLOT_LEFT] = 1, [SLOT_ENDING] = 1, [SLOT_DRAINING] = 1},
    [SLOT_CLEANING] = {[SLOT_RESTING] = 1, [SLOT_EMPTY] = 1, [SLOT_ENDING] = 1},
    [SLOT_LEFT] = {[SLOT_CLEANING] = 1, [SLOT_DRAINING] = 1},
    [SLOT_DRAINING] = {[SLOT_CLEANING] = 1},
    [SLOT_ENDING] = {[SLOT_EMPTY] = 1},
};

static void slot_move(struct slot *s, enum slot_state to)
{
    BASE_ASSERT(slot_moves[s->state][to]);
    s->all->ready -= s->state == SLOT_READY;
    s->all->ready += to == SLOT_READY;
    s->all->resting -= s->state == SLOT_RESTING;
    s->all->resting += to == SLOT_RESTING;
    s->all->made -= to == SLOT_EMPTY;
    s->all->made += s->state == SLOT_EMPTY;
    s->all->ending -= s->state == SLOT_ENDING;
    s->all->ending += to == SLOT_ENDING;
    s->all->draining -= s->state == SLOT_DRAINING;
    s->all->draining += to == SLOT_DRAINING;
    s->state = (uint8_t)to;
}

static void submit_op(struct slot *s, void (*done)(struct fab_ctl *ctl))
{
    s->busy++;
    connector_submit(s->c, &s->ctl, done, s);
}

static struct slot *end_op(struct fab_ctl *ctl)
{
    struct slot *s = ctl->user;
    s->busy--;
    (*s->c->ops)--;
    return s;
}

static uint64_t time_wait_ns(const struct connector *c)
{
    return c->res.fab->caps.time_wait_ns;
}

/* Its number may be the next one's, whoever makes that: packets of its own life may come in as late
 * for it. */
static void leave_number(struct slot *s)
{
    const uint64_t rest_ns = time_wait_ns(s->c);
    const uint64_t gone_ns =
        s->rest_ns > s->c->now_ns + rest_ns ? s->rest_ns - rest_ns : s->c->now_ns;
    if (*s->c->gone_ns < gone_ns)
        *s->c->gone_ns = gone_ns;
}

/* Its place is free with it, so that no device has more of them than there are places. */
static void on_destroyed(struct fab_ctl *ctl)
{
    struct slot *s = end_op(ctl);
    const struct fab_qp *qp = s->qp;
    if (ctl->status != 0) {
        s->all->end_ns = s->c->now_ns + AFTER_FAILURE_NS;
    } else {
        leave_number(s);
        s->qp = NULL;
        slot_move(s, SLOT_EMPTY);
    }
    if (s->tried != NULL)
        s->tried(s->tried_user, qp, ctl->status);
    if (ctl->status == 0)
        s->tried = NULL;
}

static void destroy_slot(struct slot *s)
{
    s->ctl = (struct fab_ctl){.kind = FAB_DESTROY_QP, .qp = {.x = s->qp}};
    submit_op(s, on_destroyed);
}

static void slots_end_refused(struct connector *c, struct slots *all)
{
    if (all->ending > 0 && c->now_ns < all->end_ns)
        connector_due(c, all->end_ns);
    for (uint32_t i = 0; all->ending > 0 && c->now_ns >= all->end_ns && i < all->count; i++)
        if (all->at[i].state == SLOT_ENDING && all->at[i].busy == 0)
            destroy_slot(&all->at[i]);
}

/* It cannot be made ready: another takes its place, not at once. */
static void give_up(struct slot *s, int status)
{
    s->all->status = status;
    s->all->retry_ns = s->c->now_ns + AFTER_FAILURE_NS;
    if (s->qp == NULL) {
        slot_move(s, SLOT_EMPTY);
        return;
    }
    slot_move(s, SLOT_ENDING);
    destroy_slot(s);
}

/* ---- resting: what IBTA calls TimeWait (12.9.8.5.2). A late acknowledgement whose number falls
 * among those of the next life would complete a request that was never executed. */

/* When one that is made now could be used: its number may be that of one that is gone. */
static uint64_t new_rest_ns(const struct connector *c)
{
    return fab_reuse_rest_ns(&c->res.fab->caps, *c->gone_ns, c->config.begun_ns);
}

static void rest_slot(struct slot *s)
{
    slot_move(s, SLOT_RESTING);
    if (time_wait_ns(s->c) == 0 || s->c->now_ns >= s->rest_ns)
        slot_move(s, SLOT_READY);
}

void connector_slots_wake(struct slots *all)
{
    for (uint32_t i = 0; all->resting > 0 && i < all->count; i++) {
        struct slot *s = &all->at[i];
        if (s->state != SLOT_RESTING)
            continue;
        if (s->c->now_ns >= s->rest_ns)
            slot_move(s, SLOT_READY);
        else
            connector_due(s->c, s->rest_ns);
    }
}

static void clean_slot(struct slot *s);

static void slots_end_drains(struct connector *c, struct slots *all)
{
    for (uint32_t i = 0; all->draining > 0 && i < all->count; i++) {
        struct slot *s = &all->at[i];
        if (s->state != SLOT_DRAINING || s->drained_ns == 0)
            continue;
        if (c->now_ns >= s->drained_ns)
            clean_slot(s);
        else
            connector_due(c, s->drained_ns);
    }
}

static void on_init(struct fab_ctl *ctl)
{
    struct slot *s = end_op(ctl);
    if (s->c->closing)
        return;
    if (ctl->status != 0)
        give_up(s, ctl->status);
    else
        rest_slot(s);
}

static struct slot_change init_of(const struct slot *s)
{
    struct slot_change init = {.attr = fab_pd_init_attr(s->c->res.pd),
                               .mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                       IBV_QP_ACCESS_FLAGS};
    if (!s->all->initiators)
        init.attr.qp_access_flags = fab_remote_access(s->c->res.fab);
    return init;
}

static void to_init(struct slot *s)
{
    const struct slot_change init = init_of(s);
    s->ctl = (struct fab_ctl){.kind = FAB_MODIFY_QP,
                              .modify = {.x = s->qp, .attr = init.attr, .mask = init.mask}};
    submit_op(s, on_init);
}

static void on_created(struct fab_ctl *ctl)
{
    struct slot *s = end_op(ctl);
    if (ctl->status == 0)
        s->qp = ctl->qp.x;
    s->rest_ns = new_rest_ns(s->c);
    if (s->c->closing)
        return;
    if (ctl->status != 0)
        give_up(s, ctl->status);
    else
        to_init(s);
}

static struct fab_ctl rc_creation(const struct slot *s)
{
    const struct connector_config *config = &s->c->config;
    struct fab_cq *cq = s->all->initiators ? s->c->res.cq : s->c->responder_cq;
    struct fab_ctl ctl = {
        .kind = FAB_CREATE_QP,
        .qp = {.pd = s->c->res.pd,
               .type = FAB_QP_RC,
               .send_cq = cq,
               .recv_cq = s->c->responder_cq,
               .cap = {.send_wr = 1, .recv_wr = 1, .send_sge = 1, .recv_sge = 1}}};
    if (!s->all->initiators && s->c->res.srq != NULL) {
        ctl.qp.recv_cq = s->c->res.cq;
        ctl.qp.srq = s->c->res.srq;
        ctl.qp.cap.recv_wr = 0;
    }
    if (s->all->initiators) {
        ctl.qp.cap.send_wr = config->sq_depth;
        ctl.qp.cap.send_sge = config->sge;
        ctl.qp.cap.inline_bytes = config->inline_bytes;
    }
    return ctl;
}

static void make_slot(struct slot *s)
{
    slot_move(s, SLOT_MAKING);
    s->ctl = rc_creation(s);
    submit_op(s, on_created);
}

int connector_slots_init(struct connector *c, struct slots *s, uint32_t count, bool initiators)
{
    *s = (struct slots){.count = count, .initiators = initiators};
    s->at = calloc(count + 1, sizeof s->at[0]); /* also where there are none */
    if (s->at == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        s->at[i] = (struct slot){.c = c, .all = s};
    return 0;
}

/* Each is created and put to INIT. The others come as if these had been used. */
int connector_slots_make_ahead(struct connector *c, struct slots *all, uint32_t over,
                               struct fab_ctl *ctl)
{
    const uint32_t first = c->config.first != 0 ? c->config.first : UINT32_MAX;
    const uint32_t ahead = c->config.ahead < all->count ? c->config.ahead : all->count;
    struct slot *s = &all->at[over / 2];
    if (over % 2 != 0) {
        s->qp = ctl->qp.x;
        s->rest_ns = new_rest_ns(c);
        const struct slot_change init = init_of(s);
        *ctl = (struct fab_ctl){.kind = FAB_MODIFY_QP,
                                .modify = {.x = s->qp, .attr = init.attr, .mask = init.mask}};
        return 1;
    }
    if (over > 0)
        rest_slot(s - 1);
    if (over / 2 == (first < ahead ? first : ahead))
        return 0;
    slot_move(s, SLOT_MAKING);
    *ctl = rc_creation(s);
    return 1;
}

void connector_slots_refill(struct connector *c, struct slots *s)
{
    uint32_t making = 0, resting = 0;
    const uint64_t new_ns = new_rest_ns(c);
    slots_end_drains(c, s);
    connector_slots_wake(s);
    slots_end_refused(c, s);
    if (s->ready >= c->config.ahead || s->made == s->count)
        return;
    uint64_t after_ns = s->retry_ns;
    if (s->taken_ns != 0 && 2 * s->ready >= c->config.ahead && after_ns < s->taken_ns + QUIET_NS)
        after_ns = s->taken_ns + QUIET_NS;
    if (c->now_ns < after_ns) {
        connector_due(c, after_ns);
        return;
    }
    for (uint32_t i = 0; i < s->count; i++)
        making += s->at[i].state == SLOT_MAKING || s->at[i].state == SLOT_CLEANING ||
                  s->at[i].state == SLOT_LEFT || s->at[i].state == SLOT_DRAINING;
    /* Who rests is as good as ready, unless a new one would have to rest less. */
    for (uint32_t i = 0; s->resting > 0 && i < s->count; i++)
        resting += s->at[i].state == SLOT_RESTING && s->at[i].rest_ns <= new_ns;
    for (uint32_t i = 0;
         i < s->count && making < MAKING_AT_A_TIME && s->ready + making + resting < c->config.ahead;
         i++)
        if (s->at[i].state == SLOT_EMPTY) {
            make_slot(&s->at[i]);
            making++;
        }
}

struct slot *connector_slot_take(struct slots *s)
{
    struct slot *first = NULL;
    for (uint32_t i = 0; i < s->count && s->ready > 0; i++)
        if (s->at[i].state == SLOT_READY && (first == NULL || s->at[i].rest_ns < first->rest_ns))
            first = &s->at[i];
    if (first == NULL)
        return NULL;
    slot_move(first, SLOT_TAKEN);
    s->taken_ns = first->c->now_ns;
    return first;
}

bool connector_slots_may_come(const struct slots *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->at[i].state != SLOT_TAKEN)
            return true;
    return false;
}

struct slot *connector_slot_of(struct slots *s, const struct fab_qp *qp)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->at[i].qp == qp)
            return &s->at[i];
    return NULL;
}

/* ---- in a connection */

struct slot_change connector_slot_rtr(const struct connector *c, const struct schema_handshake *h)
{
    const struct fab_caps *caps = &c->res.fab->caps;
    struct slot_change rtr = {.mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                      IBV_QP_MIN_RNR_TIMER};
    rtr.attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = h->mtu < c->mtu ? (enum ibv_mtu)h->mtu : c->mtu,
        .dest_qp_num = h->qpn,
        .rq_psn = h->psn,
        .max_dest_rd_atomic = caps->max_rd_atomic < CONNECT_RD_ATOMIC ? (uint8_t)caps->max_rd_atomic
                                                                      : CONNECT_RD_ATOMIC,
        .min_rnr_timer = 12, /* 0.64 ms; no agent sends more than it may */
        .pkey_index = c->res.pd->service.pkey_index,
        .ah_attr = fab_pd_address(c->res.pd, h->from_gid, h->lid)};
    if (c->res.pd->pkey != 0) /* which may have moved since it went to INIT */
        rtr.mask |= IBV_QP_PKEY_INDEX;
    return rtr;
}

static void on_cleaned(struct fab_ctl *ctl)
{
    struct slot *s = end_op(ctl);
    const bool more = fab_reuse_next(&s->reuse, ctl);
    s->qp = s->reuse.qp;
    if (s->qp == NULL)
        leave_number(s);
    if (s->c->closing)
        return;
    if (more) {
        submit_op(s, on_cleaned);
        return;
    }
    if (s->reuse.anew)
        s->rest_ns = new_rest_ns(s->c);
    if (s->reuse.status != 0)
        give_up(s, s->reuse.status);
    else
        rest_slot(s);
}

static void clean_slot(struct slot *s)
{
    const struct slot_change init = init_of(s);
    slot_move(s, SLOT_CLEANING);
    s->reuse = (struct fab_reuse){.fab = s->c->res.fab,
                                  .qp = s->qp,
                                  .make = rc_creation(s),
                                  .init = init.attr,
                                  .mask = init.mask};
    fab_reuse_begin(&s->reuse, &s->ctl);
    submit_op(s, on_cleaned);
}

/* ---- draining: a responder that is put to RESET takes shared receives with it, those that it has
 * taken for a message which is not whole, and those whose completions nobody has polled, which go
 * without a word (IBTA vol. 1, 10.3.1). In ERR it gives them back. */

static void on_err(struct fab_ctl *ctl)
{
    struct slot *s = end_op(ctl);
    if (s->c->closing)
        return;
    if (ctl->status != 0) {
        clean_slot(s);
        return;
    }
    s->drained_ns = s->c->now_ns + s->c->config.drain_ns;
    connector_due(s->c, s->drained_ns);
}

static void drain_slot(struct slot *s)
{
    if (s->all->initiators || s->c->res.srq == NULL) {
        clean_slot(s);
        return;
    }
    slot_move(s, SLOT_DRAINING);
    s->drained_ns = 0;
    s->ctl = (struct fab_ctl){
        .kind = FAB_MODIFY_QP,
        .modify = {.x = s->qp, .attr = {.qp_state = IBV_QPS_ERR}, .mask = IBV_QP_STATE}};
    submit_op(s, on_err);
}

static void on_raised(struct fab_ctl *ctl)
{
    struct slot *s = end_op(ctl);
    if (s->status == 0)
        s->status = ctl->status;
    if (s->busy > 0 || s->c->closing)
        return;
    if (s->state == SLOT_LEFT)
        drain_slot(s);
    else
        s->raised(s->user, s->status);
}

static void change_state(struct slot *s, struct fab_ctl *ctl, const struct slot_change *to)
{
    *ctl = (struct fab_ctl){.kind = FAB_MODIFY_QP,
                            .modify = {.x = s->qp, .attr = to->attr, .mask = to->mask}};
    s->busy++;
    connector_submit(s->c, ctl, on_raised, s);
}

/* The fabric carries out what concerns one queue pair in order. */
void connector_slot_raise(struct slot *s, const struct slot_change *rtr,
                          const struct slot_change *rts, void (*raised)(void *user, int status),
                          void *user)
{
    s->raised = raised;
    s->user = user;
    s->status = 0;
    change_state(s, &s->ctl, rtr);
    if (rts != NULL)
        change_state(s, &s->then, rts);
}

static void leave_for(struct slot *s, uint64_t ns)
{
    s->rest_ns = s->c->now_ns + ns;
    if (s->busy)
        slot_move(s, SLOT_LEFT);
    else
        drain_slot(s);
}

void connector_slot_leave(struct slot *s)
{
    leave_for(s, time_wait_ns(s->c));
}

void connector_slot_return(struct slot *s)
{
    leave_for(s, 0);
}

void connector_slot_reclaim(struct slot *s)
{
    const struct connector_config *config = &s->c->config;
    const uint64_t bound_ns =
        fab_bound_ns(&s->c->res.fab->caps, config->timeout, config->retry_cnt);
    leave_for(s, bound_ns + time_wait_ns(s->c));
}

void connector_slot_destroy(struct slot *s,
                            void (*tried)(void *user, const struct fab_qp *qp, int status),
                            void *user)
{
    s->rest_ns = s->c->now_ns + time_wait_ns(s->c);
    s->tried = tried;
    s->tried_user = user;
    slot_move(s, SLOT_ENDING);
    destroy_slot(s);
}

void connector_slots_retire(struct connector *c, struct slots *s)
{
    for (uint32_t i = 0; s->at != NULL && i < s->count; i++) {
        fab_retire(c->res.fab, FAB_DESTROY_QP, s->at[i].qp, c->ops);
        s->at[i].qp = NULL;
    }
}
