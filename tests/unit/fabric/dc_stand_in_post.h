/* SPDX-License-Identifier: Apache-2.0 */
/* How the stand-in's queue pairs are posted to. What it expects is taken from rdma-core (facts; no
 * code), release 64:
 *
 *  - wr_id and wr_flags come before the builder, a refusal aborts all: tests/utils.py,
 *    post_send_ex; man ibv_wr_post(3);
 *  - every request has its DC address: man mlx5dv_wr_post(3);
 *  - of an overflow the error comes from complete: providers/mlx5/qp.c, _common_wqe_init_op. */
#ifndef TESTS_UNIT_FABRIC_DC_STAND_IN_POST_H
#define TESTS_UNIT_FABRIC_DC_STAND_IN_POST_H

#include "dc_stand_in_device.h"

static struct fake_qp *of_ex(struct ibv_qp_ex *ex)
{
    return (struct fake_qp *)ex;
}

static struct fake_qp *of_dv(struct mlx5dv_qp_ex *dv)
{
    return (struct fake_qp *)((char *)dv - offsetof(struct fake_qp, dv));
}

static void finish_request(struct fake_qp *q)
{
    if (q->request != NO_REQUEST && q->request != (BUILT | ADDRESSED | FILLED))
        wrong("a request without its address or its data");
    q->request = NO_REQUEST;
}

static void fake_start(struct ibv_qp_ex *ex)
{
    struct fake_qp *q = of_ex(ex);
    say("start");
    if (q->inside)
        wrong("start inside of start");
    q->inside = true;
    q->err = 0;
    q->building = 0;
    q->request = NO_REQUEST;
}

static void built(struct ibv_qp_ex *ex)
{
    struct fake_qp *q = of_ex(ex);
    if (!q->inside)
        wrong("a builder outside of start and complete");
    finish_request(q);
    if (q->head + q->building - q->tail >= q->max_wr) {
        q->err = q->err != 0 ? q->err : ENOMEM;
        q->request = BUILT; /* and forgotten by complete */
        return;
    }
    if (fake.disliked != 0 && ex->wr_id == fake.disliked)
        q->err = fake.refused_errno;
    const uint32_t index = q->head + q->building++;
    if (index - q->oldest >= q->max_wr)
        wrong("a request is written over one that is still to be executed");
    uint32_t at = index % FAKE_WRS;
    q->wr[at].wr_id = ex->wr_id;
    q->wr[at].signalled = (ex->wr_flags & IBV_SEND_SIGNALED) != 0;
    q->wr[at].over = false;
    q->request = BUILT;
}

#define ID(ex) (unsigned long)(ex)->wr_id, (ex)->wr_flags

static void fake_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    say("write id=%lu flags=%u rkey=%u at=%lu", ID(ex), rkey, (unsigned long)addr);
    built(ex);
}

static void fake_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
    say("write_imm id=%lu flags=%u rkey=%u at=%lu imm=%08x", ID(ex), rkey, (unsigned long)addr,
        imm);
    built(ex);
}

static void fake_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    say("read id=%lu flags=%u rkey=%u at=%lu", ID(ex), rkey, (unsigned long)addr);
    built(ex);
}

static void fake_send(struct ibv_qp_ex *ex)
{
    say("send id=%lu flags=%u", ID(ex));
    built(ex);
}

static void fake_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
    say("send_imm id=%lu flags=%u imm=%08x", ID(ex), imm);
    built(ex);
}

static void fake_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare,
                         uint64_t swap)
{
    say("cmp_swp id=%lu flags=%u rkey=%u at=%lu compare=%lu swap=%lu", ID(ex), rkey,
        (unsigned long)addr, (unsigned long)compare, (unsigned long)swap);
    built(ex);
}

static void fake_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
    say("fetch_add id=%lu flags=%u rkey=%u at=%lu add=%lu", ID(ex), rkey, (unsigned long)addr,
        (unsigned long)add);
    built(ex);
}

static void set(struct fake_qp *q, int what)
{
    if (!(q->request & BUILT) || (q->request & what))
        wrong("a setter without a builder, or twice");
    else
        q->request |= what;
}

static void fake_set_dc_addr(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t dctn,
                             uint64_t key)
{
    say(" to %s dctn=%u key=%lx", ah != NULL ? "ah" : "nobody", dctn, (unsigned long)key);
    set(of_dv(dv), ADDRESSED);
}

static void fake_set_dc_addr_stream(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t dctn,
                                    uint64_t key, uint16_t stream)
{
    say(" to %s dctn=%u key=%lx stream=%u", ah != NULL ? "ah" : "nobody", dctn, (unsigned long)key,
        stream);
    if (of_dv(dv)->log_streams == 0)
        wrong("a stream of a DCI that was created without");
    struct fake_qp *q = of_dv(dv);
    q->wr[(q->head + q->building - 1) % FAKE_WRS].stream = stream;
    set(q, ADDRESSED);
}

static void fake_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
    say(" sge %u:%lu+%u", lkey, (unsigned long)addr, length);
    set(of_ex(ex), FILLED);
}

static void fake_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *s)
{
    say(" sges %zu", n);
    for (size_t i = 0; i < n; i++)
        say("  %u:%lu+%u", s[i].lkey, (unsigned long)s[i].addr, s[i].length);
    set(of_ex(ex), FILLED);
}

static void fake_set_inline_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *b)
{
    say(" inline %zu", n);
    for (size_t i = 0; i < n; i++)
        say("  '%.*s'", (int)b[i].length, (const char *)b[i].addr);
    set(of_ex(ex), FILLED);
}

static int fake_complete(struct ibv_qp_ex *ex)
{
    struct fake_qp *q = of_ex(ex);
    if (say("complete"))
        q->err = fake.refused_errno;
    if (!q->inside)
        return wrong("complete without start");
    if (q->err == 0)
        finish_request(q);
    q->inside = false;
    if (q->err == 0)
        q->head += q->building;
    if (fake.rung != NULL)
        fake.rung();
    return q->err;
}

static void fake_abort(struct ibv_qp_ex *ex)
{
    say("abort");
    if (!of_ex(ex)->inside)
        wrong("abort without start");
    of_ex(ex)->inside = false;
}

#endif
