/* SPDX-License-Identifier: Apache-2.0 */
/* What workers have done between two looks, added up for each node or each tenant. Any thread. */
#ifndef CTL_TOP_H
#define CTL_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ctl/decode.h"

/* A worker as one look has it. */
struct ctl_top_worker {
    char id[2 * CTL_ID_BYTES], node[CTL_ID_BYTES], tenant[CTL_ID_BYTES];
    bool counts; /* its agent says what it does */
    uint64_t operations, bytes, arena_bytes, leases;
};

/* Owns its workers. */
struct ctl_top_look {
    struct ctl_top_worker *worker;
    size_t count, room;
};

/* Adds the worker that an object of /v1/workers is. 0, -EBADMSG or -ENOMEM. */
int ctl_top_add(struct ctl_top_look *look, const char *json, struct base_errbuf *err);
void ctl_top_look_fini(struct ctl_top_look *look);

/* What has one name. */
struct ctl_top_sum {
    char name[CTL_ID_BYTES];
    size_t sessions, uncounted; /* workers; of whom nothing is known of what they do */
    uint64_t operations, bytes, arena_bytes, leases;
};

/* Of the second look's workers: what each has done since the first one; of one that was not there
 * then all that it has done. One entry for each node, or each tenant, by name. The caller's to
 * free; NULL: no memory. */
struct ctl_top_sum *ctl_top_sums(const struct ctl_top_look *first,
                                 const struct ctl_top_look *second, bool by_node, size_t *count);

#endif
