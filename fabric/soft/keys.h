/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that regions gave back, for the next regions, where KEDGE_SOFT_KEYS asks for it (fabric.h).
 * Control thread, or whoever opens the device. */
#ifndef SOFT_KEYS_H
#define SOFT_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"

struct base_errbuf;

enum { SOFT_KEYS = 64 };

struct soft_keys {
    bool come_back, seeded;
    struct base_prng prng;
    uint32_t count;
    uint16_t index[SOFT_KEYS]; /* the last one on top */
};

/* Reads KEDGE_SOFT_KEYS. 0, or -EINVAL with a sentence. */
int soft_keys_init(struct soft_keys *k, struct base_errbuf *err);
/* The slot of a region that is gone, whose keys the next one has; -ENOENT: it has new ones. */
int64_t soft_keys_next(struct soft_keys *k);
/* A region's slot is free again. The oldest of SOFT_KEYS is forgotten. */
void soft_keys_give(struct soft_keys *k, uint32_t index);

#endif
