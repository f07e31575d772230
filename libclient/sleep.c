/* SPDX-License-Identifier: Apache-2.0 */
/* The sleep itself, which whoever waits ends up in. */
#include "internal.h"

#include <stdatomic.h>

#include "base/futex.h"
#include "schema/wake.h"

/* Held to tests/model/wake.pml. */
int client_sleep_once(struct kedge_session *s, uint32_t want,
                      bool (*ready)(struct kedge_session *, uint32_t), uint32_t argument,
                      uint64_t most_ns)
{
    _Atomic uint32_t *wake = (_Atomic uint32_t *)(uintptr_t)&s->ro->wake; /* is only read */
    const uint32_t seen = atomic_load_explicit(wake, memory_order_acquire);
    int slept = 0;
    atomic_store_explicit(&s->rw->sleeps_on, schema_wake_word(seen), memory_order_release);
    atomic_store_explicit(&s->rw->want_wake, want, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (!ready(s, argument) && atomic_load(&s->ro->ended) == 0)
        slept = base_futex_wait(wake, seen, most_ns);
    atomic_store_explicit(&s->rw->want_wake, 0, memory_order_relaxed);
    return slept;
}
