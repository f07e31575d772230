/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of the I/O virtual space, each given to one registration and never again.
 *
 * A device may give the keys of a region that is gone to the next one (mlx5 keeps them and hands
 * out the last one first). Were that found at the same address too, whoever still has the former
 * record would reach the new one. So every region that peers can reach is registered at a place
 * where nothing was before: the addresses begin at random, so that a process does not meet those of
 * its former life, and only grow.
 *
 * No I/O; one thread, its owner's. All are above any address of a process. */
#ifndef FABRIC_IOVA_H
#define FABRIC_IOVA_H

#include "fabric/fabric.h"

struct fab_iova {
    uint64_t next_table, next_region; /* nothing at or above was given yet */
};

enum fab_iova_kind {
    FAB_IOVA_REGION,
    FAB_IOVA_TABLE, /* below 2^48: records of endpoints keep so many bits */
};

/* random: 64 bits that nobody guesses twice (base/random.h). */
void fab_iova_init(struct fab_iova *v, uint64_t random);
/* Whether a region of `length` bytes, more than 0, at that address of the process is led to from
 * iova by any driver. Drivers translate by pages that are larger than the host's where memory is
 * contiguous, and not all of them look at the I/O virtual address before they choose their size:
 * mlx5's until Linux 5.10 takes the largest that the process's address is a multiple of, though
 * none larger than the region rounded up to a power of two (mlx5_ib_cont_pages). So the two
 * addresses lie alike in pages of that size, or a request may reach other bytes than it names. */
bool fab_iova_fits(uint64_t at, uint64_t length, uint64_t iova);
/* An address that fits `length` bytes at offset of mem, and is congruent to theirs modulo the pages
 * that mem is of. 0, or -ENOSPC: all were given, and none is given twice. */
int fab_iova_take(struct fab_iova *v, enum fab_iova_kind kind, const struct fab_mem *mem,
                  uint64_t offset, uint64_t length, uint64_t *out);

#endif
