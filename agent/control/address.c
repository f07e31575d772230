/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "control/address.h"

static enum address_news take_other(struct address *a, const struct fab_own_address *seen)
{
    memcpy(a->gid, seen->other, sizeof a->gid);
    a->sgid_index = seen->other_index;
    a->lid = seen->lid;
    a->gone = false;
    return ADDRESS_CHANGED;
}

enum address_news agent_address_seen(struct address *a, const struct fab_own_address *seen,
                                     uint64_t now_ns)
{
    const bool was_gone = a->gone;
    if (!seen->has_gid) {
        a->gone = true;
        if (!was_gone)
            a->gone_ns = now_ns;
        if (seen->has_other && seen->active && now_ns - a->gone_ns >= ADDRESS_PATIENCE_NS)
            return take_other(a, seen);
        return was_gone ? ADDRESS_SAME : ADDRESS_GONE;
    }
    /* A subnet manager that has not said a LID yet will. */
    const bool other_lid = seen->lid != a->lid && seen->lid != 0;
    const bool moved = seen->sgid_index != a->sgid_index;
    a->gone = false;
    a->sgid_index = seen->sgid_index;
    if (other_lid)
        a->lid = seen->lid;
    if (other_lid) /* peers have it in handles and records of this incarnation */
        return ADDRESS_CHANGED;
    return moved ? ADDRESS_MOVED : was_gone ? ADDRESS_BACK : ADDRESS_SAME;
}
