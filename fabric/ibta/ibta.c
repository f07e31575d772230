/* SPDX-License-Identifier: Apache-2.0 */
#include "ibta/ibta.h"

#include <string.h>

#include "fabric/iova.h"

struct move {
    uint8_t type;           /* enum fab_qp_type */
    uint8_t from, to;       /* enum ibv_qp_state */
    int required, optional; /* enum ibv_qp_attr_mask, beside IBV_QP_STATE */
};

#define RC_RTR                                                                                     \
    (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |   \
     IBV_QP_MIN_RNR_TIMER)
#define RC_RTS                                                                                     \
    (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)

static const struct move moves[] = {
    {FAB_QP_RC, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
     0},
    {FAB_QP_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {FAB_QP_RC, IBV_QPS_INIT, IBV_QPS_RTR, RC_RTR, IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS},
    {FAB_QP_RC, IBV_QPS_RTR, IBV_QPS_RTS, RC_RTS, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {FAB_QP_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {FAB_QP_UD, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {FAB_QP_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {FAB_QP_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_QKEY},
    {FAB_QP_DCI, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT, 0},
    {FAB_QP_DCI, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX | IBV_QP_AV},
    {FAB_QP_DCI, IBV_QPS_RTR, IBV_QPS_RTS, RC_RTS, IBV_QP_MIN_RNR_TIMER},
};

bool fab_ibta_allows_move(enum fab_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
                          int mask)
{
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        return mask == IBV_QP_STATE && (to == IBV_QPS_RESET || from != IBV_QPS_RESET);
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
        const struct move *m = &moves[i];
        if (m->type == type && m->from == from && m->to == to)
            return (mask & m->required) == m->required &&
                   (mask & ~(m->required | m->optional | IBV_QP_STATE)) == 0;
    }
    return false;
}

bool fab_ibta_takes_values(const struct fab_pd *pd, const struct ibv_qp_attr *attr, int mask)
{
    return (!(mask & IBV_QP_PORT) || attr->port_num == pd->fab->caps.port_num) &&
           (!(mask & IBV_QP_PKEY_INDEX) || attr->pkey_index == pd->service.pkey_index) &&
           (!(mask & IBV_QP_PATH_MTU) ||
            (attr->path_mtu >= IBV_MTU_256 && attr->path_mtu <= pd->fab->caps.mtu)) &&
           (!(mask & IBV_QP_MAX_QP_RD_ATOMIC) ||
            attr->max_rd_atomic <= pd->fab->caps.max_rd_atomic) &&
           (!(mask & IBV_QP_MAX_DEST_RD_ATOMIC) ||
            attr->max_dest_rd_atomic <= pd->fab->caps.max_rd_atomic) &&
           (!(mask & IBV_QP_TIMEOUT) || attr->timeout <= 31) &&
           (!(mask & IBV_QP_RETRY_CNT) || attr->retry_cnt <= 7) &&
           (!(mask & IBV_QP_RNR_RETRY) || attr->rnr_retry <= 7) &&
           (!(mask & IBV_QP_MIN_RNR_TIMER) || attr->min_rnr_timer <= 31) &&
           (!(mask & IBV_QP_DEST_QPN) || attr->dest_qp_num < 1u << 24);
}

/* A peer that writes makes us write (ibv_reg_mr(3)). */
static bool access_is_possible(unsigned access)
{
    return !(access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) ||
           (access & IBV_ACCESS_LOCAL_WRITE);
}

bool fab_ibta_takes_region(const struct fab_ctl *ctl)
{
    const struct fab_mem *mem = ctl->mr.mem;
    const uint64_t offset = ctl->mr.offset, length = ctl->mr.length, iova = ctl->mr.iova;
    if (length == 0 || offset > mem->size || length > mem->size - offset ||
        !access_is_possible(ctl->mr.access))
        return false;
    return iova == 0 || (fab_iova_fits((uintptr_t)mem->addr + offset, length, iova) &&
                         iova <= UINT64_MAX - length);
}

bool fab_ibta_serves(const struct fab_pd *pd, const struct ibv_ah_attr *a)
{
    const struct fab_service *s = &pd->service;
    /* Ethernet: the GID is the address. InfiniBand: the LID is. */
    return (pd->fab->caps.is_ethernet ? a->is_global : a->dlid != 0) && a->sl == s->service_level &&
           a->grh.traffic_class == s->traffic_class && a->grh.flow_label == s->flow_label;
}

uint16_t fab_ibta_pkey(const struct fab_pd *pd)
{
    const uint16_t index = pd->service.pkey_index;
    if (index == 0)
        return pd->fab->caps.is_ethernet ? 0 : 0xffff;
    return 0x8000 | index;
}

void fab_ibta_find_pkey(uint16_t pkey, bool *there, uint16_t *index)
{
    *there = (pkey & 0x8000) != 0;
    *index = pkey == 0xffff ? 0 : pkey & 0x7fff;
}

void fab_ibta_scramble(struct ibv_wc *wc)
{
    uint64_t any = (wc->wr_id ^ (uint64_t)wc->qp_num << 32 ^ wc->status) * 0x9e3779b97f4a7c15;
    any ^= any >> 29;
    wc->opcode = (enum ibv_wc_opcode)((any & 7) | (any & 8 ? IBV_WC_RECV : 0));
    wc->byte_len = (uint32_t)(any >> 8);
    wc->imm_data = (uint32_t)(any >> 16);
    wc->src_qp = (uint32_t)(any >> 24) & 0xffffff;
    wc->wc_flags = (unsigned)(any >> 60);
    wc->slid = (uint16_t)(any >> 40);
}

uint64_t fab_ibta_rnr_ns(uint8_t code)
{
    static const uint32_t units[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                       16,    24,   32,   48,    64,    96,    128,   192,
                                       256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                       4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return units[code & 31] * 10000ull; /* of 10 us */
}

static void make_ipv4(uint8_t grh[FAB_GRH_BYTES], const uint8_t from[16], const uint8_t to[16],
                      uint32_t bytes)
{
    enum { IPV4 = 20, UDP = 8, GARBLED = 0x60 };
    const uint16_t length = __builtin_bswap16((uint16_t)(IPV4 + UDP + bytes));
    uint8_t *ip = grh + FAB_GRH_BYTES - IPV4;
    uint32_t sum = 0;
    memset(grh, GARBLED, FAB_GRH_BYTES - IPV4);
    memset(ip, 0, IPV4);
    ip[0] = 4 << 4 | IPV4 / 4;
    memcpy(ip + 2, &length, sizeof length);
    ip[8] = 64;
    ip[9] = 17;
    memcpy(ip + 12, from + 12, 4);
    memcpy(ip + 16, to + 12, 4);
    for (int i = 0; i < IPV4; i += 2)
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16));
    ip[10] = (uint8_t)(sum >> 8);
    ip[11] = (uint8_t)sum;
}

void fab_ibta_make_grh(uint8_t grh[FAB_GRH_BYTES], const struct fab_caps *caps,
                       const uint8_t from[16], const uint8_t to[16], uint32_t bytes, bool imm)
{
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
    enum { BTH = 12, DETH = 8, IMM_DT = 4, ICRC = 4, PAD_TO = 4 };
    const uint32_t padded = (bytes + PAD_TO - 1) / PAD_TO * PAD_TO;
    const uint32_t length = BTH + DETH + (imm ? IMM_DT : 0) + padded + ICRC;
    const uint16_t payload = __builtin_bswap16((uint16_t)length);
    if (caps->is_ethernet && memcmp(from, mapped, sizeof mapped) == 0 &&
        memcmp(to, mapped, sizeof mapped) == 0) {
        make_ipv4(grh, from, to, length);
        return;
    }
    memset(grh, 0, FAB_GRH_BYTES);
    grh[0] = 6 << 4; /* IP version */
    memcpy(grh + 4, &payload, sizeof payload);
    grh[6] = 0x1b;
    grh[7] = 64;
    memcpy(grh + 8, from, 16);
    memcpy(grh + 24, to, 16);
}
