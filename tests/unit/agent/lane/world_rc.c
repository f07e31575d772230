/* SPDX-License-Identifier: Apache-2.0 */
/* The control side of a node whose lane uses RC: a connector, and by hand the connection to the
 * metaserver that HTTP would make. */
#include <check.h>
#include <string.h>

#include "../connector_made.h"
#include "base/error.h"
#include "world.h"
#include "world_messages.h"
#include "world_rc.h"

uint32_t world_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

bool world_apart;
uint32_t world_cut_bytes;

uint32_t world_merge_sges(const struct world_node *n)
{
    return world_apart ? 0 : world_least(LANE_MERGE_SGES, n->fab->caps.max_sge);
}

static void call(struct fab *fab, struct fab_ctl *ctl)
{
    ck_assert_int_eq(fab_call(fab, ctl), 0);
}

static void modify(struct fab_qp *qp, struct ibv_qp_attr attr, int mask)
{
    struct fab_ctl c = {.kind = FAB_MODIFY_QP,
                        .modify = {.x = qp, .attr = attr, .mask = IBV_QP_STATE | mask}};
    call(qp->pd->fab, &c);
}

static struct fab_qp *make_qp(struct fab_pd *pd, struct fab_cq *cq, uint32_t depth)
{
    struct fab_ctl c = {
        .kind = FAB_CREATE_QP,
        .qp = {.pd = pd,
               .type = FAB_QP_RC,
               .send_cq = cq,
               .recv_cq = cq,
               .cap = {.send_wr = depth, .recv_wr = 1, .send_sge = 1, .recv_sge = 1}}};
    call(pd->fab, &c);
    return c.qp.x;
}

static void drop_qp(struct fab_qp *qp)
{
    struct fab_ctl c = {.kind = FAB_DESTROY_QP, .qp = {.x = qp}};
    call(qp->pd->fab, &c);
}

enum { SLOW = 19 }; /* as a time-out: 2 s */

static void raise(struct fab_qp *qp, const struct fab_qp *peer, uint8_t timeout)
{
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_4096,
                              .dest_qp_num = peer->qpn,
                              .max_dest_rd_atomic = 16,
                              .min_rnr_timer = 12,
                              .ah_attr = {.is_global = 1, .port_num = 1}};
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .timeout = timeout, .retry_cnt = 1, .max_rd_atomic = 16};
    memcpy(rtr.ah_attr.grh.dgid.raw, peer->pd->fab->caps.gid, 16);
    modify(qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0);
    modify(qp, init, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    modify(qp, rtr,
           IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    modify(qp, rts,
           IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC);
}

struct fab_qp *world_rc_metaserver(struct world *w, struct world_node *n)
{
    ck_assert_ptr_null(n->former_qp);
    n->former_qp = n->metaserver_qp;
    n->former_responder = n->metaserver_responder;
    n->metaserver_qp = make_qp(n->system_pd, n->cq, WORLD_SQ_DEPTH);
    n->metaserver_responder = make_qp(w->meta_pd, w->meta_cq, 1);
    raise(n->metaserver_responder, n->metaserver_qp, world_ack_timeout);
    raise(n->metaserver_qp, n->metaserver_responder, world_ack_timeout);
    return n->metaserver_qp;
}

struct fab_qp *world_rc_silent(struct world *w, struct world_node *n)
{
    struct fab_qp *nobody = make_qp(w->meta_pd, w->meta_cq, 1);
    n->silent_qp = make_qp(n->system_pd, n->cq, WORLD_SQ_DEPTH);
    raise(n->silent_qp, nobody, SLOW);
    drop_qp(nobody);
    return n->silent_qp;
}

void world_rc_open(struct world *w, struct world_node *n)
{
    struct base_errbuf err = {""};
    struct connector_config config = {.pool = 1,
                                      .incarnation = n->incarnation,
                                      .initiators = 2 * WORLD_LINKS,
                                      .responders = 16,
                                      .ahead = 2,
                                      .wanted = 8,
                                      .handshakes = 4,
                                      .sq_depth = WORLD_SQ_DEPTH,
                                      .sge = world_least(LANE_MERGE_SGES, n->fab->caps.max_sge),
                                      .inline_bytes =
                                          world_least(SCHEMA_MAX_INLINE, n->fab->caps.max_inline),
                                      .timeout = world_ack_timeout,
                                      .retry_cnt = 1,
                                      .retry_ns = 50000,
                                      .silence_ns = 1000000,
                                      .drain_ns = 50000,
                                      .idle_ns = 1000000000};
    struct connector_resources r = {.fab = n->fab,
                                    .pd = n->pd,
                                    .system_pd = n->system_pd,
                                    .cq = n->cq,
                                    .srq = world_messages_srq(n)};
    connector_free(n->connector);
    ck_assert_msg(connector_made(&config, &r, world_fill, w, &n->connector, &err) == 0, "%s",
                  err.text);
}

static void drop_former(struct world_node *n)
{
    if (n->former_qp == NULL)
        return;
    drop_qp(n->former_qp);
    drop_qp(n->former_responder);
    n->former_qp = NULL;
}

void world_rc_close(struct world *w, struct world_node *n)
{
    (void)w;
    connector_free(n->connector);
    drop_former(n);
    if (n->silent_qp != NULL)
        drop_qp(n->silent_qp);
    if (n->metaserver_qp == NULL)
        return;
    drop_qp(n->metaserver_qp);
    drop_qp(n->metaserver_responder);
}

bool world_rc_is_about(const struct lane_event *e)
{
    return e->kind == LANE_EVENT_WANT_RELAY || e->kind == LANE_EVENT_RELAYED ||
           (e->kind == LANE_EVENT_WANT_PATH && e->want_path.rc) ||
           (e->kind == LANE_EVENT_DROP_PATH && e->path.qp != NULL) ||
           (e->kind == LANE_EVENT_QP_BROKEN && e->broken.qp->type == FAB_QP_RC);
}

void (*world_on_relay)(struct world *w, struct world_node *n, const struct lane_event *e);

void world_rc_event(struct world *w, struct world_node *n, const struct lane_event *e)
{
    if (e->kind == LANE_EVENT_WANT_RELAY || e->kind == LANE_EVENT_RELAYED) {
        world_on_relay(w, n, e);
        return;
    }
    if (e->kind == LANE_EVENT_WANT_PATH) {
        struct connector_peer peer = {.incarnation = e->want_path.incarnation,
                                      .ud_qpn = e->want_path.ud_qpn,
                                      .ud_qkey = e->want_path.ud_qkey};
        memcpy(peer.gid, e->want_path.gid, 16);
        connector_connect(n->connector, &peer, e->want_path.flow);
        return;
    }
    struct fab_qp *qp = e->kind == LANE_EVENT_QP_BROKEN ? e->broken.qp : e->path.qp;
    if (qp == n->former_qp) {
        drop_former(n);
        return;
    }
    if (qp == n->silent_qp)
        return;
    if (qp != n->metaserver_qp) {
        connector_drop(n->connector, qp, w->now_ns);
        return;
    }
    drop_qp(n->metaserver_qp);
    drop_qp(n->metaserver_responder);
    n->metaserver_qp = NULL;
    if (n->no_metaserver)
        return;
    const struct lane_command none = {.kind = LANE_COMMAND_METASERVERS};
    ck_assert_int_eq(lane_command(n->lane, &none), 0); /* as the daemon: the next may be its like */
    world_tell_metaserver(w, n);
}

void world_rc_run(struct world *w, struct world_node *n)
{
    struct connector_event e;
    if (n->connector == NULL)
        return;
    (void)fab_run(n->fab);
    (void)connector_step(n->connector, w->now_ns);
    while (connector_event(n->connector, &e)) {
        struct lane_command c = {.kind = LANE_COMMAND_PATH_READY,
                                 .path = {.flow = e.tag, .path.qp = e.qp, .status = e.status}};
        n->last_link = e.qp;
        ck_assert_int_eq(lane_command(n->lane, &c), 0);
    }
    for (struct fab_qp *qp; (qp = connector_broken(n->connector)) != NULL;) {
        const struct lane_command c = {.kind = LANE_COMMAND_QP_RETIRE, .qp = qp};
        ck_assert_int_eq(lane_command(n->lane, &c), 0);
    }
}
