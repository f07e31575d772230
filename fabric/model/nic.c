/* SPDX-License-Identifier: Apache-2.0 */
#include "model/nic.h"

#include <stdlib.h>

enum {
    LINE = 64,
    DOORBELL_BYTES = 8,
    WQE_HEADER = 36,          /* of RC: Design Guidelines, table 1 */
    DATAGRAM_WQE_HEADER = 68, /* of UD: likewise */
    SGE_BYTES = 16,
    CQE_BYTES = 64,
    PART = 1 << 16, /* of a whole: parts of requests that are missed */
    SPAN_SHIFT = 20 /* a queue pair is in use that was used within about 2^20 ns */
};

/* Does one thing after the other. The time until which it is busy, to the picosecond. */
struct server {
    uint64_t free_ns;
    uint32_t rest_ps;
};

struct model_nic {
    struct fab_model facts;
    const struct model_preset *preset;
    struct server down, up; /* PCIe: to the card, and from it */
    struct server pu[MODEL_MAX_PUS];
    struct server out, tx, in, rx;
    struct server *locks; /* atomic_slots of them */
    uint32_t next_pu;
    uint64_t ops, bytes;          /* that are out */
    uint32_t busy_qps;            /* with something out */
    uint64_t span;                /* of time, now */
    uint32_t used[2];             /* queue pairs that were used in it, and in the one before */
    uint64_t wqe_parts, qp_parts; /* misses so far, in parts */
};

/* ---- servers */

static uint64_t serve_one(struct server *s, uint64_t at_ns, uint64_t cost_ps)
{
    if (s->free_ns < at_ns)
        *s = (struct server){.free_ns = at_ns};
    const uint64_t ps = s->rest_ps + cost_ps;
    s->free_ns += ps / 1000;
    s->rest_ps = (uint32_t)(ps % 1000);
    return s->free_ns;
}

/* The same for one of several servers that a request passes from now on: at this one not before
 * at_ns. Its place is taken now, so that no server stands idle for what is on its way to it. */
static uint64_t pass_one(struct server *s, uint64_t now_ns, uint64_t at_ns, uint64_t cost_ps)
{
    const uint64_t end = serve_one(s, now_ns, cost_ps), least = at_ns + cost_ps / 1000;
    return end > least ? end : least;
}

static uint64_t bytes_ps(uint64_t bytes, uint32_t bytes_per_us)
{
    return bytes * 1000000 / bytes_per_us;
}

static uint64_t wire_ps(const struct model_preset *p, uint32_t bytes)
{
    const uint64_t packets = bytes == 0 ? 1 : (bytes - 1) / p->packet_bytes + 1;
    return bytes_ps(bytes + packets * p->packet_header, p->wire_bytes_per_us);
}

/* Pieces of the CPU's memory that a request's bytes are in; taken for equally long. */
static uint32_t pieces_of(const struct model_request *r)
{
    return r->inlined || r->sges == 0 ? 1 : r->sges;
}

/* So many bytes in so many pieces, cut into units: how many units that makes. */
static uint64_t count_units(uint64_t bytes, uint32_t pieces, uint32_t unit)
{
    const uint64_t each = (bytes + pieces - 1) / pieces;
    return pieces * ((each + unit - 1) / unit);
}

/* A DMA read of so many bytes for each piece, all at once: on the link to the card are their
 * answers. */
static uint64_t read_dma(struct model_nic *nic, uint64_t now_ns, uint64_t at_ns, uint64_t bytes,
                         uint32_t pieces)
{
    const struct model_preset *p = nic->preset;
    const uint64_t parts = bytes == 0 ? pieces : count_units(bytes, pieces, p->completion_bytes);
    nic->facts.counters.dma_reads += pieces;
    return pass_one(&nic->down, now_ns, at_ns,
                    bytes_ps(bytes + parts * p->completion_header, p->pcie_bytes_per_us)) +
           p->pcie_read_ps / 1000;
}

static uint64_t write_ps(const struct model_preset *p, uint64_t bytes, uint32_t pieces)
{
    const uint64_t parts = count_units(bytes, pieces, p->completion_bytes);
    return bytes_ps(bytes + parts * p->request_header, p->pcie_bytes_per_us);
}

/* ---- what its caches miss */

/* Of `have` that are wanted in turns there is room for `room`: which part is missed. */
static uint64_t part_missed(uint64_t have, uint64_t room)
{
    return room == 0 || have <= room ? 0 : PART - room * PART / have;
}

static void note_parts(uint64_t *parts, uint64_t *counter, uint64_t more)
{
    *parts += more;
    *counter = *parts / PART;
}

/* For how long a request stands still, since more is out than the card keeps. */
static uint64_t thrash_ps(struct model_nic *nic, const struct model_request *r, bool moves)
{
    const struct model_preset *p = nic->preset;
    const uint64_t pages = moves ? count_units(r->bytes, pieces_of(r), MODEL_PAGE) : 0;
    const uint64_t wqe = part_missed(nic->ops, p->inflight_ops[r->kind]);
    const uint64_t data = part_missed(nic->bytes, p->inflight_bytes) * pages;
    const uint64_t parts = wqe > data ? wqe : data;
    const uint64_t before = nic->facts.counters.wqe_misses;
    note_parts(&nic->wqe_parts, &nic->facts.counters.wqe_misses, parts);
    nic->facts.counters.dma_reads += nic->facts.counters.wqe_misses - before;
    return parts * p->miss_ps / PART;
}

static void use_qp(struct model_nic *nic, struct model_qp *qp, uint64_t now_ns)
{
    const uint64_t span = 1 + (now_ns >> SPAN_SHIFT);
    if (span > nic->span) {
        nic->used[1] = span == nic->span + 1 ? nic->used[0] : 0;
        nic->used[0] = 0;
        nic->span = span;
    }
    if (qp->used < nic->span) {
        qp->used = nic->span;
        nic->used[0]++;
    }
}

/* The same for a queue pair's context. */
static uint64_t context_ps(struct model_nic *nic, struct model_qp *qp, uint64_t now_ns)
{
    use_qp(nic, qp, now_ns);
    const uint32_t in_use = nic->used[0] > nic->used[1] ? nic->used[0] : nic->used[1];
    const uint64_t parts = part_missed(in_use, nic->preset->qp_cache);
    const uint64_t before = nic->facts.counters.qp_misses;
    note_parts(&nic->qp_parts, &nic->facts.counters.qp_misses, parts);
    nic->facts.counters.dma_reads += nic->facts.counters.qp_misses - before;
    return parts * nic->preset->pcie_read_ps / PART;
}

/* ---- the card */

struct model_nic *model_nic_new(const struct model_preset *preset)
{
    struct model_nic *nic = calloc(1, sizeof *nic);
    if (nic == NULL)
        return NULL;
    nic->locks = calloc(preset->atomic_slots, sizeof nic->locks[0]);
    if (nic->locks == NULL) {
        free(nic);
        return NULL;
    }
    nic->preset = preset;
    nic->facts.preset = preset->name;
    return nic;
}

void model_nic_free(struct model_nic *nic)
{
    if (nic == NULL)
        return;
    free(nic->locks);
    free(nic);
}

struct fab_model *model_nic_facts(struct model_nic *nic)
{
    return &nic->facts;
}

const struct model_preset *model_nic_preset(const struct model_nic *nic)
{
    return nic->preset;
}

void model_qp_begin(struct model_nic *nic, struct model_qp *qp)
{
    *qp = (struct model_qp){.pu = nic->next_pu++ % nic->preset->pus};
}

void model_qp_end(struct model_nic *nic, struct model_qp *qp)
{
    nic->ops -= qp->ops;
    nic->bytes -= qp->bytes;
    nic->busy_qps -= qp->ops > 0;
    qp->ops = 0;
    qp->bytes = 0;
}

void model_take(struct model_nic *nic, struct model_qp *qp, uint32_t bytes)
{
    struct fab_model_counters *c = &nic->facts.counters;
    nic->busy_qps += qp->ops == 0;
    qp->ops++;
    qp->bytes += bytes;
    nic->ops++;
    nic->bytes += bytes;
    c->work_requests++;
    c->bytes += bytes;
    c->most_ops = nic->ops > c->most_ops ? nic->ops : c->most_ops;
    c->most_bytes = nic->bytes > c->most_bytes ? nic->bytes : c->most_bytes;
}

void model_over(struct model_nic *nic, struct model_qp *qp, uint32_t bytes)
{
    if (qp->ops == 0) /* of a life that is over */
        return;
    qp->ops--;
    nic->ops--;
    const uint64_t over = qp->ops == 0 || bytes > qp->bytes ? qp->bytes : bytes;
    qp->bytes -= over;
    nic->bytes -= over;
    nic->busy_qps -= qp->ops == 0;
}

/* ---- out-bound */

uint32_t model_wqe_bytes(const struct model_request *r)
{
    const uint32_t header = r->datagram || r->dc ? DATAGRAM_WQE_HEADER : WQE_HEADER;
    const uint32_t body = r->inlined ? r->bytes : r->sges * SGE_BYTES;
    return (header + body + LINE - 1) / LINE * LINE;
}

uint64_t model_doorbell(struct model_nic *nic, uint64_t now_ns, uint32_t requests,
                        uint64_t wqe_bytes)
{
    const struct model_preset *p = nic->preset;
    const uint64_t bytes = requests == 1 ? wqe_bytes : DOORBELL_BYTES;
    const uint64_t lines = (bytes + LINE - 1) / LINE;
    nic->facts.counters.doorbells++;
    nic->facts.counters.mmio_bytes += bytes;
    const uint64_t at =
        serve_one(&nic->down, now_ns,
                  bytes_ps(bytes + lines * p->request_header, p->pcie_bytes_per_us)) +
        p->pcie_write_ps / 1000;
    return requests == 1 ? at : read_dma(nic, now_ns, at, wqe_bytes, 1);
}

/* The engine that all queue pairs share takes longer the more of them want it, and for each piece
 * more, of which it has a key to look up. */
static uint64_t engine_ps(const struct model_nic *nic, const struct model_request *r)
{
    const struct model_preset *p = nic->preset;
    const uint32_t more =
        p->busy_qps > 0 && nic->busy_qps > p->busy_qps ? nic->busy_qps - p->busy_qps : 0;
    return p->out_ps[r->kind] + (uint64_t)more * p->busy_qp_ps +
           (uint64_t)(pieces_of(r) - 1) * p->piece_ps;
}

static bool carries_payload(const struct model_request *r)
{
    return r->kind == MODEL_WRITE || r->kind == MODEL_SEND;
}

uint64_t model_unit(struct model_nic *nic, struct model_qp *qp, uint64_t now_ns,
                    const struct model_request *r)
{
    const struct model_preset *p = nic->preset;
    uint64_t unit_ps = p->pu_ps + context_ps(nic, qp, now_ns);
    if (r->reconnects) {
        unit_ps += p->reconnect_ps;
        nic->facts.counters.reconnects++;
    }
    return serve_one(&nic->pu[qp->pu], now_ns, unit_ps) + (r->dc ? p->dc_latency_ps / 1000 : 0);
}

uint64_t model_send(struct model_nic *nic, uint64_t now_ns, uint64_t at_ns,
                    const struct model_request *r)
{
    const struct model_preset *p = nic->preset;
    const uint32_t bytes = carries_payload(r) ? r->bytes : 0;
    uint64_t at = at_ns;
    if (bytes > 0 && !r->inlined)
        at = read_dma(nic, now_ns, at, bytes, pieces_of(r));
    /* Engine and wire go on beside each other; what was missed holds up both. */
    const uint64_t stands_ps = thrash_ps(nic, r, carries_payload(r));
    at = pass_one(&nic->out, now_ns, at, engine_ps(nic, r) + stands_ps) - stands_ps / 1000;
    return pass_one(&nic->tx, now_ns, at, wire_ps(p, bytes) + stands_ps);
}

uint64_t model_wire_ns(const struct model_nic *nic)
{
    return nic->preset->wire_ps / 1000;
}

/* ---- in-bound */

static uint64_t served_ps(const struct model_preset *p, const struct model_request *r)
{
    if (r->kind == MODEL_SEND && r->bytes == 0)
        return p->in_empty_send_ps;
    return r->dc ? p->in_dc_ps[r->kind] : p->in_ps[r->kind];
}

uint64_t model_serve(struct model_nic *nic, struct model_qp *qp, uint64_t now_ns,
                     const struct model_request *r)
{
    const struct model_preset *p = nic->preset;
    const uint32_t bytes = carries_payload(r) ? r->bytes : 0;
    nic->facts.counters.served++;
    uint64_t at = serve_one(&nic->rx, now_ns, wire_ps(p, bytes));
    at = pass_one(&nic->in, now_ns, at, served_ps(p, r) + context_ps(nic, qp, now_ns));
    switch (r->kind) {
    case MODEL_READ:
        return read_dma(nic, now_ns, at, r->bytes, 1);
    case MODEL_ATOMIC:
        return pass_one(&nic->locks[r->remote_addr % p->atomic_slots], now_ns, at, p->atomic_ps);
    case MODEL_SEND:
        nic->facts.counters.cqes++;
        return pass_one(&nic->up, now_ns, at, write_ps(p, bytes, 1) + write_ps(p, CQE_BYTES, 1)) +
               p->pcie_write_ps / 1000;
    default:
        /* It is acknowledged when it is accepted, and is in memory a little later. */
        (void)serve_one(&nic->up, now_ns, write_ps(p, bytes, 1));
        return at;
    }
}

static uint32_t answer_bytes(const struct model_request *r)
{
    return r->kind == MODEL_READ ? r->bytes : r->kind == MODEL_ATOMIC ? 8 : 0;
}

uint64_t model_answer(struct model_nic *nic, uint64_t now_ns, const struct model_request *r)
{
    return serve_one(&nic->tx, now_ns, wire_ps(nic->preset, answer_bytes(r)));
}

uint64_t model_complete(struct model_nic *nic, uint64_t now_ns, uint64_t at_ns,
                        const struct model_request *r)
{
    const struct model_preset *p = nic->preset;
    const uint32_t bytes = answer_bytes(r);
    const bool moves = r->kind == MODEL_READ;
    const uint64_t stands_ps = moves ? thrash_ps(nic, r, true) : 0;
    const uint64_t at = pass_one(&nic->rx, now_ns, at_ns, wire_ps(p, bytes) + stands_ps);
    uint64_t link_ps = write_ps(p, bytes, pieces_of(r));
    if (r->signalled) {
        link_ps += write_ps(p, CQE_BYTES, 1);
        nic->facts.counters.cqes++;
    }
    return pass_one(&nic->up, now_ns, at, link_ps) + p->pcie_write_ps / 1000;
}

uint64_t model_far_side_ns(const struct model_preset *p, const struct model_request *r)
{
    const uint64_t one_way = p->wire_ps;
    uint64_t ps = 2 * one_way + served_ps(p, r) + wire_ps(p, answer_bytes(r));
    if (r->kind == MODEL_READ)
        ps += p->pcie_read_ps;
    else if (r->kind == MODEL_ATOMIC)
        ps += p->atomic_ps;
    else if (r->kind == MODEL_SEND)
        ps += p->pcie_write_ps;
    return ps / 1000;
}
