/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs_late.h"

#include "base/clock.h"

bool verbs_is_late(const struct fab_wr *list)
{
    uint64_t first = UINT64_MAX;
    for (const struct fab_wr *wr = list; wr != NULL; wr = wr->next)
        if (wr->key.not_after_ns != 0 && wr->key.not_after_ns < first &&
            wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM)
            first = wr->key.not_after_ns;
    return first != UINT64_MAX && base_clock_ns() > first;
}
