/* SPDX-License-Identifier: Apache-2.0 */
/* What wakes a provider's control thread: a descriptor that is readable once anybody has rung,
 * until the control thread has heard it. For providers.
 *
 * The control thread may ask as often as it turns: where nobody has rung that is no system call. */
#ifndef FABRIC_BELL_H
#define FABRIC_BELL_H

#include <stdatomic.h>
#include <stdint.h>

struct fab_bell {
    int fd;                /* -1: open failed; the provider closes it */
    _Atomic uint64_t rung; /* times, counted before the descriptor has them */
    uint64_t heard;        /* control thread: times that were read */
};

/* 0 or -errno. */
int fab_bell_open(struct fab_bell *b);
/* Any thread. What it tells of is to be in place before. */
void fab_bell_ring(struct fab_bell *b);
/* Control thread: nothing is readable now but what is rung from here on. What has been told of is
 * to be looked for behind it. */
void fab_bell_hear(struct fab_bell *b);

#endif
