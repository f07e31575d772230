/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <string.h>

#include "internal.h"

void client_gid(const struct kedge_session *s, uint8_t gid[16])
{
    const struct schema_session_ro *ro = s->ro;
    uint32_t changes = atomic_load_explicit(&ro->changes, memory_order_acquire), before = 0;
    memcpy(gid, s->gid, sizeof s->gid);
    while (changes != before) { /* the agent does not write where the latest one is */
        uint64_t word[2];
        for (int i = 0; i < 2; i++)
            word[i] = atomic_load_explicit(&ro->present_gid[changes % 2][i], memory_order_relaxed);
        memcpy(gid, word, sizeof word);
        atomic_thread_fence(memory_order_acquire);
        before = changes;
        changes = atomic_load_explicit(&ro->changes, memory_order_acquire);
        if (changes == 0) /* the page is taken back: the words may be zeros */
            memcpy(gid, s->gid, sizeof s->gid);
    }
}
