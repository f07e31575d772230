/* SPDX-License-Identifier: Apache-2.0 */
/* Moving bytes as a device does. These copies race with other initiators and with the target's own
 * process by nature; what is torn is for the protocols above to see. They alone are hidden from the
 * thread sanitizer, which also intercepts the C library's own memcpy. */
#include "soft/copy.h"

#include <string.h>

#define RACES_BY_NATURE __attribute__((no_sanitize("thread")))

typedef uint64_t __attribute__((may_alias)) word8;
typedef uint32_t __attribute__((may_alias)) word4;
typedef uint16_t __attribute__((may_alias)) word2;

#ifdef __SANITIZE_THREAD__
RACES_BY_NATURE static void copy_long(uint8_t *to, const uint8_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((volatile uint8_t *)to)[i] = from[i];
}
#else
/* Requests of that length often go on where the last one ended, as those of a batch do, and most of
 * the time of one would be that of its memory: that comes meanwhile, and nobody waits for it.
 * Longer ones are moved in pieces, which ask for their own (pieces.c). */
enum { ASK_FROM = 1024, ASK_UP_TO = 4096, ASK_BYTES = 1024, CACHE_LINE = 64 };

static inline void ask_behind(const uint8_t *to, const uint8_t *from)
{
    for (size_t i = 0; i < ASK_BYTES; i += CACHE_LINE) {
        __builtin_prefetch(from + i, 0, 2);
        __builtin_prefetch(to + i, 1, 2);
    }
}

/* Apart, so that short ones need no frame. */
static __attribute__((noinline)) void copy_long(uint8_t *to, const uint8_t *from, size_t n)
{
    memmove(to, from, n); /* a worker may READ its own memory onto itself */
    if (n >= ASK_FROM && n <= ASK_UP_TO)
        ask_behind(to + n, from + n);
}
#endif

RACES_BY_NATURE void soft_copy(uint8_t *to, const uint8_t *from, size_t n)
{
    uintptr_t both = (uintptr_t)to | (uintptr_t)from;
    if (n <= 64 && ((both | n) & 7) == 0) {
        for (size_t i = 0; i < n; i += 8)
            *(volatile word8 *)(to + i) = *(const volatile word8 *)(from + i);
    } else if (n == 4 && (both & 3) == 0) {
        *(volatile word4 *)to = *(const volatile word4 *)from;
    } else if (n == 2 && (both & 1) == 0) {
        *(volatile word2 *)to = *(const volatile word2 *)from;
    } else if (n < 8) {
        for (size_t i = 0; i < n; i++)
            ((volatile uint8_t *)to)[i] = ((const volatile uint8_t *)from)[i];
    } else {
        copy_long(to, from, n);
    }
}
