/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a descriptor: the one place where what a worker wrote becomes a request (KRCore,
 * Algorithm 2, "detecting malformed requests"). Works on copies; reads nothing that is shared. */
#include "request/check.h"

#include <string.h>

#include "schedule/sends.h"
#include "schema/name_record.h"
#include "session_state.h"
#include "transmit/operation.h"
#include "transmit/wr.h"

static_assert(SCHEMA_NAME_TENANT_MAX + SCHEMA_NAME_MAX < SCHEMA_MAX_EXTRA &&
                  SCHEMA_MAX_INLINE <= SCHEMA_MAX_EXTRA &&
                  SCHEMA_IMPORTS_AT_ONCE * sizeof(struct schema_grant) <= SCHEMA_MAX_EXTRA &&
                  SCHEMA_BATCH_FILLED * sizeof(struct schema_batch_entry) <= SCHEMA_MAX_EXTRA,
              "room behind a descriptor");

/* Of what has data: they follow it, or its pieces do. 0: more than there may be. */
static inline uint32_t count_post_slots(const struct schema_sq_desc *d)
{
    if (!(d->flags & SCHEMA_OP_INLINE))
        return d->num_sge > 1 ? 2 : 1;
    return d->post.length <= SCHEMA_MAX_INLINE
               ? 1 + (d->post.length + SCHEMA_LINE - 1) / SCHEMA_LINE
               : 0;
}

uint32_t lane_check_slots(const struct operation *op, const struct schema_sq_desc *d)
{
    uint32_t slots = 1;
    if (op->kind == OPERATION_POST) {
        if ((slots = count_post_slots(d)) == 0)
            return 0;
    } else if (op->kind == OPERATION_SEND || op->kind == OPERATION_RECEIVE) {
        if ((slots = count_post_slots(d)) == 0)
            return 0;
    } else if (op->kind == OPERATION_UNKNOWN) {
        return 0;
    } else if (op->has_name) {
        if (d->lookup.length > SCHEMA_NAME_MAX || d->lookup.owner > SCHEMA_NAME_TENANT_MAX)
            return 0;
        slots += (d->lookup.owner + d->lookup.length + SCHEMA_LINE - 1) / SCHEMA_LINE;
    } else if (op->has_grants) {
        const uint32_t count = d->import_many.count;
        if (count == 0 || count > SCHEMA_IMPORTS_AT_ONCE)
            return 0;
        slots += (count * (uint32_t)sizeof(struct schema_grant) + SCHEMA_LINE - 1) / SCHEMA_LINE;
    } else if (op->has_entries) {
        const uint32_t count = d->batch.fill.count, each = sizeof(struct schema_batch_entry);
        if (count == 0 || count > SCHEMA_BATCH_FILLED)
            return 0;
        slots += (count * each + SCHEMA_LINE - 1) / SCHEMA_LINE;
    }
    return d->slots == slots ? slots : 0;
}

/* One SGE of the worker's against its arenas. */
static inline __attribute__((always_inline)) bool local_sge(const struct session *s,
                                                            uint64_t offset, uint32_t length,
                                                            uint32_t arena, struct ibv_sge *out)
{
    if (arena >= s->arenas || offset > s->arena[arena].bytes ||
        length > s->arena[arena].bytes - offset)
        return false;
    *out = (struct ibv_sge){
        .addr = s->arena[arena].iova + offset, .length = length, .lkey = s->arena[arena].lkey};
    return true;
}

/* Pieces without a byte are left away: drivers have to treat them as a case of its own, and not all
 * do. */
static __attribute__((noinline)) uint32_t take_many(const struct session *s,
                                                    const struct schema_sq_desc *d,
                                                    const void *extra, struct wr *out)
{
    struct schema_sq_sges more;
    uint32_t n = 0;
    memcpy(&more, extra, sizeof more);
    for (uint32_t i = 0; i < d->num_sge; i++) {
        if (!local_sge(s, more.sge[i].offset, more.sge[i].length, more.sge[i].arena, &out->sge[n]))
            return SCHEMA_REASON_LOCAL_RANGE;
        out->length += more.sge[i].length;
        n += more.sge[i].length != 0;
    }
    out->fab.num_sge = (int)n;
    return n <= s->caps->max_sge ? 0 : SCHEMA_REASON_DEVICE;
}

static uint32_t take_sges(const struct session *s, const struct schema_sq_desc *d,
                          const void *extra, struct wr *out)
{
    out->length = 0;
    if (d->num_sge > 1)
        return take_many(s, d, extra, out);
    if (d->num_sge == 0)
        return 0;
    if (!local_sge(s, d->post.offset, d->post.length, d->post.arena, &out->sge[0]))
        return SCHEMA_REASON_LOCAL_RANGE;
    out->length = d->post.length;
    return 0;
}

/* Apart, as take_many(), so that what most requests are needs no register more than there are. */
static __attribute__((noinline)) uint32_t take_inline(const struct session *s,
                                                      const struct schema_sq_desc *d,
                                                      const void *extra, struct wr *out)
{
    if (!out->op->can_inline || d->post.length > SCHEMA_MAX_INLINE)
        return SCHEMA_REASON_DESCRIPTOR;
    memcpy(out->inline_data, extra, d->post.length);
    out->length = d->post.length;
    out->sge[0] = (struct ibv_sge){.addr = (uintptr_t)out->inline_data, .length = d->post.length};
    out->fab.num_sge = 1;
    out->fab.send_flags |= IBV_SEND_INLINE;
    if (out->length > s->caps->max_inline)
        out->special |= SPECIAL_COPY;
    return 0;
}

/* Of an operation on so many bytes, which is an atomic. */
static __attribute__((noinline)) uint32_t
check_exact(const struct session *s, const struct schema_sq_desc *d, struct wr *out)
{
    if (d->num_sge != 1 || out->length != out->op->bytes)
        return SCHEMA_REASON_DESCRIPTOR;
    if (!s->caps->atomics)
        return SCHEMA_REASON_ATOMICS;
    if (d->post.remote_addr % out->op->alignment != 0)
        return SCHEMA_REASON_ATOMIC;
    out->special |= SPECIAL_ALIGNED;
    return 0;
}

uint32_t lane_check_post(const struct session *s, const struct operation *op,
                         const struct schema_sq_desc *d, const void *extra, struct wr *out)
{
    out->op = op;
    out->length = 0;
    if (op->kind != OPERATION_POST || d->num_sge > SCHEMA_MAX_SGE ||
        (d->flags & ~(SCHEMA_OP_SIGNALED | SCHEMA_OP_INLINE | SCHEMA_OP_FENCE | SCHEMA_OP_RELAXED |
                      SCHEMA_OP_LISTED)) != 0)
        return SCHEMA_REASON_DESCRIPTOR;
    out->fab.opcode = op->opcode;
    out->special = d->flags & (SPECIAL_FENCE | SPECIAL_RELAXED | SPECIAL_LISTED);
    out->fab.send_flags = d->flags & SCHEMA_OP_FENCE ? IBV_SEND_FENCE : 0;
    out->fab.sg_list = out->sge;
    out->fab.num_sge = d->num_sge;
    out->fab.compare_add = d->post.compare_add;
    out->fab.swap = d->post.swap;
    const uint32_t reason =
        d->flags & SCHEMA_OP_INLINE ? take_inline(s, d, extra, out) : take_sges(s, d, extra, out);
    if (reason != 0)
        return reason;
    if (out->length == 0)
        out->special |= SPECIAL_EMPTY;
    return op->bytes != 0 ? check_exact(s, d, out) : 0;
}

/* ---- messages */

/* One piece: as the device is to find it, or as the worker names it. */
static bool take_piece(const struct session *s, const struct schema_sge *from, bool send,
                       struct wr *out)
{
    struct ibv_sge *to = &out->sge[out->fab.num_sge];
    if (!local_sge(s, from->offset, from->length, from->arena, to))
        return false;
    if (!send)
        *to = (struct ibv_sge){.addr = from->offset, .length = from->length, .lkey = from->arena};
    out->length += from->length;
    out->fab.num_sge += from->length != 0;
    return true;
}

static uint32_t take_pieces(const struct session *s, const struct schema_sq_desc *d,
                            const void *extra, struct wr *out)
{
    const bool send = d->op == SCHEMA_OP_SEND;
    struct schema_sq_sges more = {
        .sge = {{.offset = d->post.offset, .length = d->post.length, .arena = d->post.arena}}};
    if (d->num_sge > (send ? SCHEMA_SEND_SGES : SCHEMA_MAX_SGE))
        return SCHEMA_REASON_DESCRIPTOR;
    if (d->num_sge > 1)
        memcpy(&more, extra, sizeof more);
    for (uint32_t i = 0; i < d->num_sge; i++)
        if (!take_piece(s, &more.sge[i], send, out))
            return SCHEMA_REASON_LOCAL_RANGE;
    return send && (uint32_t)out->fab.num_sge > s->caps->max_sge ? SCHEMA_REASON_DEVICE : 0;
}

/* What it says beside its payload: that a WRITE before it is there. */
static uint32_t take_written(const struct schema_sq_desc *d, struct wr *out)
{
    if (d->num_sge != 0 || (d->flags & SCHEMA_OP_INLINE) || !(d->flags & SCHEMA_OP_IMM))
        return SCHEMA_REASON_DESCRIPTOR;
    out->remote_addr |= SEND_OF_WRITE | (uint64_t)d->post.length << SEND_WRITTEN_SHIFT;
    return 0;
}

uint32_t lane_check_message(const struct session *s, const struct schema_sq_desc *d,
                            const void *extra, struct wr *out)
{
    const bool send = d->op != SCHEMA_OP_RECV;
    const uint32_t flags = send ? SCHEMA_OP_SIGNALED | SCHEMA_OP_INLINE | SCHEMA_OP_FENCE |
                                      SCHEMA_OP_IMM | SCHEMA_OP_LISTED
                                : SCHEMA_OP_SIGNALED;
    out->fab.num_sge = send; /* the header's */
    if ((d->flags & ~flags) != 0)
        return SCHEMA_REASON_DESCRIPTOR;
    out->special |= d->flags & SPECIAL_LISTED;
    if (d->flags & SCHEMA_OP_IMM)
        out->remote_addr |= SEND_IMM;
    if (d->op == SCHEMA_OP_WRITE_IMM)
        return take_written(d, out);
    if (!(d->flags & SCHEMA_OP_INLINE))
        return take_pieces(s, d, extra, out);
    memcpy(out->inline_data, extra, d->post.length);
    out->length = d->post.length;
    out->remote_addr |= SEND_INLINE;
    return 0;
}
