/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/bell.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

int fab_bell_open(struct fab_bell *b)
{
    *b = (struct fab_bell){.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    return b->fd >= 0 ? 0 : -errno;
}

void fab_bell_ring(struct fab_bell *b)
{
    uint64_t one = 1;
    atomic_fetch_add(&b->rung, 1);
    if (write(b->fd, &one, sizeof one) < 0) {
        /* Full, and so readable. */
    }
}

/* The descriptor counts as we do. What is readable has been counted before: as long as all that is
 * counted has been read, there is nothing to read. */
void fab_bell_hear(struct fab_bell *b)
{
    uint64_t times;
    if (atomic_load(&b->rung) != b->heard && read(b->fd, &times, sizeof times) == sizeof times)
        b->heard += times;
}
