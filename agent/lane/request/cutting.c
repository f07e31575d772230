/* SPDX-License-Identifier: Apache-2.0 */
#include "request/cutting.h"

#include <string.h>

#include "lane_state.h"
#include "session_state.h"
#include "transmit/cut.h"

/* Of a large message they are short whatever the operator says of workers' requests: a READ that
 * its worker has not posted itself is not to stand before others. */
static uint64_t bytes_of_pieces(const struct lane *l, const struct wr *w)
{
    const uint64_t most = l->config.cut_bytes;
    return (w->special & SPECIAL_PULL) && most > CUT_PULL ? CUT_PULL : most;
}

/* All that is left of a large message, of which no more than a part would be left behind a piece:
 * it would take a READ and a pass of its own. */
static bool ends_here(const struct lane *l, const struct wr *w, uint64_t bytes)
{
    return (w->special & SPECIAL_PULL) && bytes <= CUT_PULL + CUT_PART &&
           bytes <= l->config.cut_bytes;
}

/* How much goes next, of so many bytes. */
static uint64_t next_length(const struct lane *l, const struct wr *w, uint64_t bytes)
{
    const uint64_t cut = bytes_of_pieces(l, w), most = cut - (w->remote_addr + cut) % CUT_PART;
    return bytes < most || ends_here(l, w, bytes) ? bytes : most;
}

/* w's own SGEs become those of the next `bytes`, which the others have no more then. */
static void take_front(struct wr *w, uint64_t bytes)
{
    struct schema_sge *sge = cut_of(w)->sge;
    int n = 0, gone = 0;
    while (bytes > 0) {
        struct schema_sge *from = &sge[gone];
        const struct lane_arena *a = &w->session->arena[from->arena];
        const uint32_t part = from->length < bytes ? from->length : (uint32_t)bytes;
        if (part > 0)
            w->sge[n++] =
                (struct ibv_sge){.addr = a->iova + from->offset, .length = part, .lkey = a->lkey};
        from->offset += part;
        from->length -= part;
        bytes -= part;
        gone += from->length == 0;
    }
    for (int i = 0; i + gone < SCHEMA_MAX_SGE; i++)
        sge[i] = sge[i + gone];
    w->fab.num_sge = n;
}

static void take_piece(const struct lane *l, struct wr *w)
{
    struct cut *c = cut_of(w);
    w->length = next_length(l, w, c->left);
    c->left -= w->length;
    take_front(w, w->length);
}

void lane_cut_begin(struct lane *l, struct wr *w, const struct schema_sq_desc *d, const void *extra)
{
    struct cut *c = cut_of(w);
    if (!w->op->merges) /* READs and WRITEs */
        return;
    *c = (struct cut){.total = w->length, .left = w->length};
    if (d->num_sge > 1)
        memcpy(c->sge, extra, d->num_sge * sizeof c->sge[0]);
    else
        c->sge[0] = (struct schema_sge){
            .offset = d->post.offset, .length = d->post.length, .arena = d->post.arena};
    w->special |= SPECIAL_CUT;
    take_piece(l, w);
}

void lane_cut_begin_pull(struct lane *l, struct wr *w, const struct schema_sge *sge, uint32_t count)
{
    struct cut *c = cut_of(w);
    *c = (struct cut){.total = w->length, .left = w->length};
    memcpy(c->sge, sge, count * sizeof c->sge[0]);
    take_piece(l, w);
}

bool lane_cut_next(struct lane *l, struct wr *w)
{
    struct cut *c = cut_of(w);
    if (c->left == 0) {
        w->length = c->total;
        return false;
    }
    w->remote_addr += w->length;
    w->special &= (uint16_t)~SPECIAL_FENCE; /* it was before the first */
    w->fab.send_flags &= ~(unsigned)IBV_SEND_FENCE;
    take_piece(l, w);
    COUNT(l, pieces, 1);
    return true;
}
