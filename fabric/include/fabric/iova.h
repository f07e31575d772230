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
/* An address for `length` bytes at offset of mem: congruent to theirs modulo the pages that mem is
 * of, and of 2 MiB where there are so many, since a device needs one entry for them then and not
 * 512. 0, or -ENOSPC: all were given, and none is given twice. */
int fab_iova_take(struct fab_iova *v, enum fab_iova_kind kind, const struct fab_mem *mem,
                  uint64_t offset, uint64_t length, uint64_t *out);

#endif
