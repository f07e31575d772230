/* SPDX-License-Identifier: Apache-2.0 */
#include "base/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

void base_futex_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

int base_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    struct timespec t = {.tv_sec = (time_t)(timeout_ns / BASE_NS_PER_S),
                         .tv_nsec = (long)(timeout_ns % BASE_NS_PER_S)};
    /* Not FUTEX_PRIVATE_FLAG: the other side is another process. */
    if (syscall(SYS_futex, word, FUTEX_WAIT, expected, timeout_ns == BASE_FUTEX_FOREVER ? NULL : &t,
                NULL, 0) == 0)
        return 0;
    return -errno;
}

int base_futex_wake(_Atomic uint32_t *word, uint32_t count)
{
    long woken =
        syscall(SYS_futex, word, FUTEX_WAKE, count > INT_MAX ? INT_MAX : (int)count, NULL, NULL, 0);
    return woken < 0 ? -errno : (int)woken;
}
