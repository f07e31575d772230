/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are lost. The target executes a request, and of those behind it to the same target
 * the first few, as far as they came; the initiator hears nothing, tries again until it gives up,
 * and reports the first with RETRY_EXC_ERR and all others as flushed: it cannot know (IBTA 9.9.2).
 * A DCI begins with another target only when it is done with the one before, so that nothing to
 * another one is executed.
 *
 * They are posted as they are, without completions of their own, and behind them a request more
 * that the inner provider refuses: when that comes back, or an error of theirs, each is completed
 * so. */
#include "fault/answers.h"

#include <string.h>

#include "fault/poison.h"

static bool is_same_target(const struct fault_qp *qp, const struct fab_wr *a,
                           const struct fab_wr *b)
{
    return qp->base.type == FAB_QP_RC ||
           (a->dest_qpn == b->dest_qpn &&
            memcmp(((const struct fault_ah *)a->ah)->way.gid,
                   ((const struct fault_ah *)b->ah)->way.gid, 16) == 0);
}

void fault_silence_join(struct fault_list *list)
{
    struct fab_wr *last = &list->copy[list->count - 1];
    struct fault_poison *poison = list->silence;
    poison->unanswered_id[poison->unanswered++] = last->wr_id;
    last->wr_id = (uintptr_t)poison;
    last->send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
}

void fault_silence_begin(struct fault_fab *f, struct fault_qp *qp, struct fault_list *list)
{
    list->silence = fault_poison_take(f, qp);
    list->silence->status = IBV_WC_RETRY_EXC_ERR;
    list->silent_more = (uint32_t)base_prng_below(&qp->stream.prng, FAULT_UNANSWERED);
    fault_silence_join(list);
}

bool fault_silence_goes_on(const struct fault_qp *qp, const struct fault_list *list,
                           const struct fab_wr *wr)
{
    return list->silence->unanswered <= list->silent_more &&
           is_same_target(qp, list->caller[list->count - 1], wr);
}

void fault_silence_end(const struct fault_qp *qp, struct fault_list *list)
{
    const int at = list->count;
    if (list->silence == NULL)
        return;
    list->copy[at] = list->copy[at - 1];
    list->copy[at].next = NULL;
    list->copy[at - 1].next = &list->copy[at];
    list->caller[at] = list->caller[at - 1];
    fault_make_fail(qp, list->silence, &list->copy[at]);
    list->silence = NULL;
    list->count++;
}
