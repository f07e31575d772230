/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker asks of others' memory, and that it is posted: in one list, or in several, of which
 * the later ones come while what was before them is out. */
#include <errno.h>
#include <string.h>

#include "ledger.h"
#include "random.h"
#include "worker_state.h"

enum {
    QUIET_PPM = 500000,    /* bursts of which some have no completion: */
    SIGNALED_PPM = 250000, /* all but these, and the last */
    NEXT_PPM = 600000,     /* of requests that could go on where the one before ended do */
    END_PPM = 250000,      /* of others end with their slot, where another worker's may begin */
    RELAXED_PPM = 500000,  /* bursts in which these may be carried out together */
    PART_MOST = 6,         /* requests in one of several lists, which come */
    APART_NS = 30000       /* so long one after the other, at most */
};

static bool happens(struct play_worker *w, uint32_t ppm)
{
    return play_random_happens(&w->random, ppm);
}

static uint32_t draw_bytes(struct play_worker *w)
{
    const uint32_t most = 8u << base_prng_below(&w->random, 10);
    return (uint32_t)play_random_between(&w->random, 1, most / 8) * 8;
}

/* Each of the burst gets eight bytes at least. */
static uint8_t *take_buffer(struct play_worker *w, struct request *r)
{
    const uint32_t behind = BURST_MOST - 1 - (uint32_t)(r - w->request),
                   most = w->settings.buffer_bytes - w->filled - 8 * behind;
    if (r->bytes > most)
        r->bytes = most / 8 * 8;
    r->offset = w->filled;
    w->filled += r->bytes;
    return w->buffers + r->offset;
}

/* Where it is in its slot: often right behind the request before it, as lanes merge them, or over
 * that; or before the next slot. */
static void place_request(struct play_worker *w, struct request *r)
{
    const struct request *before = r > w->request ? r - 1 : NULL;
    const bool goes_on = before != NULL && before->kind != REQUEST_ADD &&
                         before->at + before->bytes < PLAY_SLOT_BYTES && happens(w, NEXT_PPM);
    r->at = goes_on               ? before->at + before->bytes
            : happens(w, END_PPM) ? PLAY_SLOT_BYTES - r->bytes
                                  : 0;
    if (goes_on && happens(w, NEXT_PPM))
        r->kind = before->kind;
    if (r->at + r->bytes > PLAY_SLOT_BYTES)
        r->bytes = PLAY_SLOT_BYTES - r->at;
}

/* What it is to find, or leaves there. */
static struct ibv_send_wr make_request(struct play_worker *w, struct request *r,
                                       struct ibv_sge *sge)
{
    struct play_slot *slot = w->busy->slot;
    const struct kedge_remote *remote = &w->busy->remote;
    const uint64_t dice = base_prng_below(&w->random, 10);
    r->kind = dice == 0 && !w->settings.no_atomics ? REQUEST_ADD
              : dice < 5                           ? REQUEST_WRITE
                                                   : REQUEST_READ;
    r->wr_id = ++w->last_id;
    r->bytes = r->kind == REQUEST_ADD ? 8 : draw_bytes(w);
    r->at = 0;
    if (r->kind != REQUEST_ADD)
        place_request(w, r);
    uint8_t *buffer = take_buffer(w, r);
    r->never_sent = false;
    r->outlived = slot->begun && play_slot_is_outlived(slot, w->process->host->number);
    *sge = (struct ibv_sge){(uintptr_t)buffer, r->bytes, w->lkey};
    struct ibv_send_wr wr = {
        .wr_id = r->wr_id, .sg_list = sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
    if (r->kind == REQUEST_ADD) {
        wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wr.wr.atomic.remote_addr = remote->addr + play_slot_counter_offset(slot);
        wr.wr.atomic.rkey = remote->rkey;
        wr.wr.atomic.compare_add = 1;
        r->counter = slot->counter++;
        return wr;
    }
    wr.wr.rdma.remote_addr = remote->addr + play_slot_offset(slot) + r->at;
    wr.wr.rdma.rkey = remote->rkey;
    memcpy(r->expected, slot->content + r->at, r->bytes);
    wr.opcode = r->kind == REQUEST_WRITE ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
    if (r->kind == REQUEST_WRITE)
        play_slot_write(slot, &w->random, r->at, r->bytes, buffer);
    return wr;
}

void play_worker_note_posted(struct play_worker *w, enum request_kind kind)
{
    w->count.posted++;
    w->count.reads += kind == REQUEST_READ;
    w->count.writes += kind == REQUEST_WRITE;
    w->count.atomics += kind == REQUEST_ADD;
}

struct burst {
    uint32_t n;
    bool quiet, relaxed, waits;
};

static struct ibv_send_wr make_part(struct play_worker *w, struct burst *b, uint32_t i,
                                    struct ibv_sge *sge)
{
    struct request *r = &w->request[i];
    struct ibv_send_wr wr = make_request(w, r, sge);
    if (r->kind != REQUEST_READ && b->waits)
        wr.send_flags |= IBV_SEND_FENCE;
    if (b->relaxed)
        wr.send_flags |= KEDGE_SEND_RELAXED;
    b->waits |= r->kind != REQUEST_WRITE;
    r->quiet = b->quiet && i + 1 < b->n && !happens(w, SIGNALED_PPM);
    if (r->quiet)
        wr.send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
    return wr;
}

/* How far the next list goes. What comes in parts comes while what was before it is out. */
static uint32_t end_of_part(struct play_worker *w, uint32_t from, uint32_t n)
{
    if (!w->settings.in_parts || n == 1)
        return n;
    if (from > 0)
        play_process_sleep(base_prng_below(&w->random, APART_NS));
    const uint32_t upto = from + (uint32_t)play_random_between(&w->random, 1, PART_MOST);
    return upto < n ? upto : n;
}

/* A list, posted at once. Without a fence a WRITE or an atomic may be executed before a READ or an
 * atomic in front of it (IBTA 10.8.3.3). What the ring had no room for was not posted: its slot is
 * not as the ledger has it. */
int play_worker_post(struct play_worker *w, struct target *t, uint32_t n)
{
    struct ibv_send_wr wr[BURST_MOST], *bad = NULL;
    struct ibv_sge sge[BURST_MOST];
    struct burst b = {.n = n};
    int status = 0;
    b.quiet = happens(w, QUIET_PPM);
    b.relaxed = happens(w, RELAXED_PPM);
    w->busy = t;
    w->broken = false;
    w->posted = w->done = w->filled = 0;
    for (uint32_t from = 0, upto; from < n && status == 0; from = upto) {
        upto = end_of_part(w, from, n);
        for (uint32_t i = from; i < upto; i++) {
            wr[i] = make_part(w, &b, i, &sge[i]);
            wr[i].next = i + 1 < upto ? &wr[i + 1] : NULL;
        }
        status = kedge_post_send(t->q, &wr[from], &bad);
        w->posted = status == 0 ? upto : (uint32_t)(bad - wr);
        if (w->posted < upto)
            t->slot->lost = true;
        for (uint32_t i = from; i < w->posted; i++)
            play_worker_note_posted(w, w->request[i].kind);
    }
    return status == -ENOMEM ? 0 : status;
}
