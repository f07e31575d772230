/* SPDX-License-Identifier: Apache-2.0 */
/* An RC queue pair's changes of state. */
#include <errno.h>
#include <string.h>

#include "base/random.h"
#include "private.h"

enum { PSN_MASK = 0xffffff };

int bench_failed(struct base_errbuf *err, const char *what, int errnum)
{
    return base_err(err, errnum > 0 ? -errnum : -EIO, "%s failed: %s%s", what, strerror(errnum),
                    errnum == ENOMEM ? " (raise LimitMEMLOCK?)" : "");
}

int bench_draw_psn(uint32_t *psn, struct base_errbuf *err)
{
    uint32_t drawn = 0;
    const int status = base_random_bytes(&drawn, sizeof drawn);
    if (status != 0)
        return bench_failed(err, "drawing a random number", -status);
    *psn = drawn & PSN_MASK;
    return 0;
}

int bench_to_init(const struct bench_program *p, struct ibv_qp *qp, unsigned access,
                  struct base_errbuf *err)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = p->port, .qp_access_flags = access};
    int status = ibv_modify_qp(
        qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    return status == 0 ? 0 : bench_failed(err, "the change to INIT", status);
}

int bench_to_rtr(const struct bench_program *p, struct ibv_qp *qp, const struct bench_address *peer,
                 uint8_t reads, struct base_errbuf *err)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = p->port_attr.active_mtu,
                               .dest_qp_num = peer->qpn,
                               .rq_psn = peer->psn,
                               .max_dest_rd_atomic = reads,
                               .min_rnr_timer = 12,
                               .ah_attr = {.is_global = 1,
                                           .dlid = (uint16_t)peer->lid,
                                           .port_num = p->port,
                                           .grh = {.sgid_index = p->gid_index, .hop_limit = 64}}};
    memcpy(attr.ah_attr.grh.dgid.raw, peer->gid, 16);
    int status =
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    return status == 0 ? 0 : bench_failed(err, "the change to RTR", status);
}

int bench_to_rts(struct ibv_qp *qp, uint32_t psn, uint8_t reads, struct base_errbuf *err)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
                               .timeout = 14,
                               .retry_cnt = 7,
                               .rnr_retry = 7,
                               .sq_psn = psn,
                               .max_rd_atomic = reads};
    int status = ibv_modify_qp(qp, &attr,
                               IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    return status == 0 ? 0 : bench_failed(err, "the change to RTS", status);
}
