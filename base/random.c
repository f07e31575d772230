/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include <errno.h>
#include <sys/random.h>

int base_random_bytes(void *buffer, size_t bytes)
{
    uint8_t *p = buffer;
    while (bytes > 0) {
        ssize_t n = getrandom(p, bytes, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        bytes -= (size_t)n;
    }
    return 0;
}
