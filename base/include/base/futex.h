/* SPDX-License-Identifier: Apache-2.0 */
/* futex(2) on words that several processes may share. Any thread. */
#ifndef BASE_FUTEX_H
#define BASE_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

#define BASE_FUTEX_FOREVER UINT64_MAX

/* Between two looks of who spins on such a word: his processor saves power, and serves others that
 * share it. */
void base_futex_relax(void);

/* Sleeps while *word == expected, timeout_ns at most (time asleep does not count). 0 when woken
 * (look again: it may be for nothing), -EAGAIN when *word differed, -ETIMEDOUT, -EINTR. */
int base_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);

/* Wakes up to count sleepers. Returns how many, or -errno. Never blocks. */
int base_futex_wake(_Atomic uint32_t *word, uint32_t count);

#endif
