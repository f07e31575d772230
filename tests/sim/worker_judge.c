/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated worker's completions, held against what it has posted and what is there. */
#include <string.h>

#include "kedge.h"
#include "ledger.h"
#include "schema/session.h"
#include "trace.h"
#include "worker_state.h"

static void judge_success(struct play_worker *w, const struct request *r)
{
    const uint8_t *buffer = w->buffers + r->offset;
    const struct play_slot *s = w->busy->slot;
    if (w->broken)
        play_violation(w->process->name, "a request succeeded behind one that had failed");
    if (r->kind == REQUEST_READ && memcmp(buffer, r->expected, r->bytes) != 0)
        play_violation(w->process->name,
                       "a READ of %u bytes of slot %u brought others than were written there last",
                       r->bytes, s->number);
    if (r->kind == REQUEST_ADD && memcmp(buffer, &r->counter, 8) != 0)
        play_violation(w->process->name, "an atomic found another count than it must: slot %u",
                       s->number);
    if (r->kind == REQUEST_BATCH)
        play_worker_judge_batch(w, r);
    if (r->kind == REQUEST_LOOK)
        play_worker_judge_look(w, r);
    w->busy->slot->begun = true;
    w->count.last_success_ns = play_now_ns();
}

static void judge_failure(struct play_worker *w, const struct request *r, const struct ibv_wc *wc)
{
    const bool never_sent = r->kind != REQUEST_BATCH && kedge_never_sent(wc) == 1;
    if (r->kind == REQUEST_BATCH && play_worker_batch_failed(w, wc))
        return;
    w->count.failed++;
    w->count.never_sent += never_sent;
    if (r->outlived && wc->vendor_err == SCHEMA_REASON_VKEY)
        play_violation(w->process->name, "request %llu was looked up at another life of its peer",
                       (unsigned long long)r->wr_id);
    w->busy->slot->begun = false; /* it is connected again, or goes */
    w->broken = true;
    w->request[r - w->request].never_sent = never_sent;
    w->busy->slot->lost |= r->kind != REQUEST_READ && r->kind != REQUEST_BATCH && !never_sent;
    play_trace(w->process->name, "request %llu failed: %s%s%s", (unsigned long long)r->wr_id,
               kedge_wc_status_str(wc->status), wc->vendor_err != 0 ? ": " : "",
               wc->vendor_err != 0 ? kedge_reason_str(wc->vendor_err) : "");
}

/* What has no completion of its own is over, and well, with the next one. */
static void judge_quiet(struct play_worker *w, uint64_t before)
{
    for (; w->done < w->posted && w->request[w->done].quiet && w->request[w->done].wr_id < before;
         w->done++) {
        w->count.completed++;
        judge_success(w, &w->request[w->done]);
    }
}

void play_worker_judge(struct play_worker *w, const struct ibv_wc *wc)
{
    judge_quiet(w, wc->wr_id);
    if (w->busy == NULL || w->done == w->posted) {
        play_violation(w->process->name, "a completion of nothing that is out: request %llu",
                       (unsigned long long)wc->wr_id);
        return;
    }
    const struct request *r = &w->request[w->done++];
    w->count.completed++;
    if (wc->wr_id != r->wr_id || wc->qp_num != kedge_vqp_num(w->busy->q))
        play_violation(w->process->name, "request %llu completes where %llu should",
                       (unsigned long long)wc->wr_id, (unsigned long long)r->wr_id);
    else if (wc->status == IBV_WC_SUCCESS)
        judge_success(w, r);
    else
        judge_failure(w, r, wc);
}
