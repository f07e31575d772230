/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulated worker does with batches: lists of READs and WRITEs in its slot, posted again
 * and again, between requests that are to keep their order with them, now and then cancelled, or
 * left behind with their queue pair. Of one that was cancelled it looks what was carried out: that
 * is whole descriptors, and as many as kedge_batch_status() says. */
#include <errno.h>
#include <kedge_batch.h>
#include <string.h>

#include "base/clock.h"
#include "random.h"
#include "schema/session.h"
#include "trace.h"
#include "worker_state.h"

enum {
    UNIT = 4,            /* parts begin and end at multiples of it */
    PART_UNITS = 64,     /* of a part, at most */
    MANY_PPM = 200000,   /* batches whose parts are as short as may be */
    GAP_PPM = 150000,    /* parts that do not go on where the one before ends */
    TURN_PPM = 200000,   /* parts that do otherwise than the one before */
    MIRROR_PPM = 250000, /* batches of which nothing here goes on as there */
    KEEP_PPM = 700000,   /* turns in which one that is there is posted again */
    BEFORE_PPM = 500000, /* posts with a WRITE in front */
    BEHIND_PPM = 700000, /* and with a READ behind */
    CANCEL_PPM = 250000,
    LEAVE_PPM = 10000,
    CANCEL_MOST_NS = 400000,
    ALONE_BYTES = PLAY_SLOT_BYTES - WORKER_BATCH_BYTES /* of a slot: no batch has these */
};

static bool happens(struct play_worker *w, uint32_t ppm)
{
    return play_random_happens(&w->random, ppm);
}

static uint8_t *own_memory(const struct play_worker *w, const struct batch_part *p)
{
    const uint32_t at = w->batch.mirrored ? WORKER_BATCH_BYTES - p->at - p->bytes : p->at;
    return w->buffers + w->settings.buffer_bytes - WORKER_BATCH_BYTES + at;
}

/* ---- preparing */

static void draw_parts(struct play_worker *w)
{
    struct worker_batch *b = &w->batch;
    const uint32_t most = happens(w, MANY_PPM) ? 1 : PART_UNITS;
    const uint32_t parts = (uint32_t)play_random_between(&w->random, 1, WORKER_BATCH_PARTS);
    bool writes = happens(w, 500000);
    b->parts = 0;
    b->mirrored = happens(w, MIRROR_PPM);
    for (uint32_t at = 0; b->parts < parts;) {
        struct batch_part *p = &b->part[b->parts];
        if (happens(w, GAP_PPM))
            at += UNIT * (uint32_t)play_random_between(&w->random, 1, PART_UNITS / 4);
        if (happens(w, TURN_PPM))
            writes = !writes;
        *p = (struct batch_part){.at = at,
                                 .bytes = UNIT * (uint32_t)play_random_between(&w->random, 1, most),
                                 .writes = writes};
        at += p->bytes;
        if (at > WORKER_BATCH_BYTES)
            break;
        b->parts++;
    }
    if (b->parts == 0)
        b->part[b->parts++] = (struct batch_part){.bytes = UNIT, .writes = writes};
}

static bool prepare_batch(struct play_worker *w, const struct target *t)
{
    struct worker_batch *b = &w->batch;
    static struct kedge_batch_desc desc[WORKER_BATCH_PARTS]; /* libkedge copies them before it waits
                                                              */
    draw_parts(w);
    for (uint32_t i = 0; i < b->parts; i++)
        desc[i] = (struct kedge_batch_desc){
            .opcode = b->part[i].writes ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
            .rkey = t->remote.rkey,
            .local = {(uintptr_t)own_memory(w, &b->part[i]), b->part[i].bytes, w->lkey},
            .remote_addr = t->remote.addr + play_slot_offset(t->slot) + b->part[i].at};
    const int status = kedge_batch_prepare(w->session, desc, b->parts, &b->batch);
    if (!play_worker_is_possible(w, status, "prepare a batch"))
        return false;
    b->region = t->slot->region->id;
    b->slot = t->slot->number;
    w->count.batches_prepared++;
    return true;
}

/* It is over, which the library and the agent know as well. */
static bool give_batch(struct play_worker *w)
{
    const int status = kedge_batch_destroy(w->batch.batch);
    if (status == -EBUSY)
        play_violation(w->process->name, "a batch is over, and cannot be given back: %s",
                       kedge_last_error());
    w->batch.batch = NULL; /* at the latest with the session */
    return play_worker_is_possible(w, status, "give a batch back");
}

static bool has_batch(struct play_worker *w, const struct target *t)
{
    const struct worker_batch *b = &w->batch;
    if (b->batch != NULL && b->region == t->slot->region->id && b->slot == t->slot->number &&
        happens(w, KEEP_PPM))
        return true;
    if (b->batch != NULL && !give_batch(w))
        return false;
    return prepare_batch(w, t);
}

/* ---- posting */

static struct request *begin_request(struct play_worker *w, enum request_kind kind, uint32_t at,
                                     uint32_t bytes)
{
    struct request *r = &w->request[w->posted];
    const struct play_slot *slot = w->busy->slot;
    *r = (struct request){.kind = kind,
                          .wr_id = ++w->last_id,
                          .at = at,
                          .bytes = bytes,
                          .offset = w->filled,
                          .outlived =
                              slot->begun && play_slot_is_outlived(slot, w->process->host->number)};
    memcpy(r->expected, slot->content + at, bytes);
    return r;
}

static bool note_post(struct play_worker *w, const struct request *r, int status)
{
    if (status == 0) {
        play_worker_note_posted(w, r->kind);
        w->posted++;
        return true;
    }
    w->busy->slot->lost |= r->kind != REQUEST_READ;
    return false;
}

static bool post_plain(struct play_worker *w, enum request_kind kind, uint32_t at, uint32_t bytes)
{
    struct request *r = begin_request(w, kind, at, bytes);
    struct play_slot *slot = w->busy->slot;
    struct ibv_sge sge = {(uintptr_t)(w->buffers + r->offset), bytes, w->lkey};
    struct ibv_send_wr *bad,
        wr = {
            .wr_id = r->wr_id,
            .sg_list = &sge,
            .num_sge = 1,
            .opcode = kind == REQUEST_WRITE ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
            .send_flags = IBV_SEND_SIGNALED,
            .wr.rdma = {w->busy->remote.addr + play_slot_offset(slot) + at, w->busy->remote.rkey}};
    w->filled += bytes;
    if (kind == REQUEST_WRITE)
        play_slot_write(slot, &w->random, at, bytes, w->buffers + r->offset);
    return note_post(w, r, kedge_post_send(w->busy->q, &wr, &bad));
}

/* What it WRITEs is new each time; where it READs there is the contrary of what is to come. */
static bool post_batch(struct play_worker *w)
{
    struct worker_batch *b = &w->batch;
    struct request *r = begin_request(w, REQUEST_BATCH, 0, WORKER_BATCH_BYTES);
    struct play_slot *slot = w->busy->slot;
    b->asked_to_end = false;
    for (uint32_t i = 0; i < b->parts; i++) {
        const struct batch_part *p = &b->part[i];
        uint8_t *own = own_memory(w, p);
        if (p->writes)
            play_slot_write(slot, &w->random, p->at, p->bytes, own);
        for (uint32_t k = 0; k < p->bytes && !p->writes; k++)
            own[k] = (uint8_t)~slot->content[p->at + k];
    }
    const int status = kedge_batch_post(w->busy->q, b->batch, r->wr_id);
    if (status == -EBUSY)
        play_violation(w->process->name, "a batch is over, and cannot be posted again: %s",
                       kedge_last_error());
    return note_post(w, r, status);
}

static void cancel_batch(struct play_worker *w)
{
    w->batch.asked_to_end = true;
    play_process_sleep(1 + base_prng_below(&w->random, CANCEL_MOST_NS));
    (void)play_worker_is_possible(w, kedge_batch_cancel(w->batch.batch), "cancel a batch");
}

/* ---- its end */

static bool writes_some(const struct worker_batch *b)
{
    for (uint32_t i = 0; i < b->parts; i++)
        if (b->part[i].writes)
            return true;
    return false;
}

static bool look_at_state(struct play_worker *w, struct kedge_batch_state *is)
{
    if (kedge_batch_status(w->batch.batch, is) != 0)
        return false; /* its session has ended meanwhile */
    if (is->posted || is->count != w->batch.parts || is->done > is->count ||
        (is->status == IBV_WC_SUCCESS) != (is->done == is->count))
        play_violation(w->process->name,
                       "a batch is over, and is said to have %u descriptors, %u done, status %d%s",
                       is->count, is->done, is->status, is->posted ? ", and to be out" : "");
    return true;
}

void play_worker_judge_batch(struct play_worker *w, const struct request *r)
{
    struct kedge_batch_state is;
    for (uint32_t i = 0; i < w->batch.parts; i++) {
        const struct batch_part *p = &w->batch.part[i];
        if (!p->writes && memcmp(own_memory(w, p), r->expected + p->at, p->bytes) != 0)
            play_violation(w->process->name,
                           "a batch ended well, and its READ of %u bytes brought others than were "
                           "written there last",
                           p->bytes);
    }
    if (look_at_state(w, &is) && is.status != IBV_WC_SUCCESS)
        play_violation(w->process->name, "a batch ended well, and is said not to have");
    w->count.batches++;
}

bool play_worker_batch_failed(struct play_worker *w, const struct ibv_wc *wc)
{
    struct worker_batch *b = &w->batch;
    struct kedge_batch_state is;
    if (look_at_state(w, &is) &&
        (is.status != wc->status || is.vendor_err != wc->vendor_err || is.failed >= is.count))
        play_violation(w->process->name,
                       "a batch failed by %d, and is said to have at descriptor %u of %u, by %d",
                       wc->status, is.failed, is.count, is.status);
    if (wc->vendor_err != SCHEMA_REASON_CANCELLED) {
        w->busy->slot->lost |= writes_some(b);
        return false;
    }
    if (!b->asked_to_end)
        play_violation(w->process->name, "a batch ends that nobody has cancelled");
    b->cancelled = true; /* what is there will be looked at */
    w->count.cancelled++;
    return true;
}

/* Whether it was carried out; a part of one never is. */
static bool is_done(struct play_worker *w, const struct batch_part *p, const struct request *batch,
                    const uint8_t *seen)
{
    const uint8_t *is = p->writes ? seen + p->at : own_memory(w, p);
    const uint8_t *done = p->writes ? w->busy->slot->content + p->at : batch->expected + p->at;
    if (memcmp(is, done, p->bytes) == 0)
        return true;
    for (uint32_t k = 0; k < p->bytes; k++)
        if (is[k] != (uint8_t)(p->writes ? batch->expected[p->at + k] : ~done[k])) {
            play_violation(w->process->name, "a descriptor of a batch was carried out in part, or "
                                             "brought what was not there");
            break;
        }
    return false;
}

/* What there is of the slot after a batch that was cancelled. A READ that a broken queue pair gave
 * back, and that was not posted again, may have been carried out, and does not count as done. */
void play_worker_judge_look(struct play_worker *w, const struct request *look)
{
    const uint8_t *seen = w->buffers + look->offset;
    const struct request *batch = &w->request[w->batch.at];
    struct kedge_batch_state is;
    uint32_t done = 0, written = 0;
    uint8_t *content = w->busy->slot->content;
    for (uint32_t i = 0; i < w->batch.parts; i++) {
        const struct batch_part *p = &w->batch.part[i];
        const bool is_new = is_done(w, p, batch, seen);
        done += is_new;
        written += is_new && p->writes;
        if (p->writes && !is_new)
            memcpy(content + p->at, batch->expected + p->at, p->bytes);
    }
    if (memcmp(seen, content, WORKER_BATCH_BYTES) != 0)
        play_violation(w->process->name, "a batch wrote where it was not to");
    if (kedge_batch_status(w->batch.batch, &is) == 0 && (is.done > done || is.done < written))
        play_violation(w->process->name,
                       "of a batch that was cancelled %u descriptors were carried out, and %u are "
                       "said to have been",
                       done, is.done);
}

/* Its queue pair is gone: nobody hears of it, and it ends. */
static void await_batch(struct play_worker *w)
{
    const uint64_t until_ns = play_now_ns() + WORKER_HANG_S * BASE_NS_PER_S;
    struct kedge_batch_state is;
    while (kedge_batch_status(w->batch.batch, &is) == 0 && is.posted) {
        if (play_now_ns() > until_ns) {
            play_violation(w->process->name, "a batch whose queue pair is gone does not end");
            return;
        }
        play_process_sleep(BASE_NS_PER_S);
    }
    if (kedge_session_status(w->session) == 0)
        (void)give_batch(w);
}

/* Where it cannot look what is there nobody knows. */
static void look_at_slot(struct play_worker *w)
{
    if (!w->broken && post_plain(w, REQUEST_LOOK, 0, WORKER_BATCH_BYTES))
        play_worker_await(w);
    if (w->session != NULL && w->broken)
        w->busy->slot->lost |= writes_some(&w->batch);
    w->batch.cancelled = false;
}

/* Returns false if nothing of it is out. */
static bool post_all(struct play_worker *w, struct target *t)
{
    const bool cancels = happens(w, CANCEL_PPM);
    w->busy = t;
    w->broken = w->batch.cancelled = false;
    w->posted = w->done = w->filled = 0;
    if (happens(w, BEFORE_PPM)) {
        const uint32_t bytes = 8 * (uint32_t)play_random_between(&w->random, 1, 64);
        const uint32_t at =
            8 * (uint32_t)base_prng_below(&w->random, (WORKER_BATCH_BYTES - bytes) / 8);
        (void)post_plain(w, REQUEST_WRITE, at, bytes);
    }
    w->batch.at = w->posted;
    if (!t->slot->lost && post_batch(w) && happens(w, BEHIND_PPM))
        (void)(cancels ? post_plain(w, REQUEST_READ, WORKER_BATCH_BYTES, ALONE_BYTES)
                       : post_plain(w, REQUEST_READ, 0, WORKER_BATCH_BYTES));
    if (cancels && w->posted > w->batch.at)
        cancel_batch(w);
    return w->posted > 0;
}

void play_worker_do_batch(struct play_worker *w, struct target *t)
{
    if (!has_batch(w, t) || w->session == NULL)
        return;
    const bool out = post_all(w, t);
    if (w->session == NULL)
        return;
    if (out && happens(w, LEAVE_PPM)) {
        play_worker_abandon(w, t);
        await_batch(w);
        return;
    }
    play_worker_await(w);
    if (w->session != NULL && w->batch.cancelled)
        look_at_slot(w);
}
