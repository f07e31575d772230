/* SPDX-License-Identifier: Apache-2.0 */
/* Where a lane runs: on CPUs of the NUMA node that its device is at, as far as the process may run
 * there, so that neither completions nor doorbells cross the sockets. Any thread.
 *
 * Completion queues without a lock of their own (IBV_CREATE_CQ_ATTR_SINGLE_THREADED) and thread
 * domains are not used: a lane polls while the provider's workers change states of queue pairs, for
 * which a driver empties the completion queue of what is theirs, under that lock. */
#ifndef FABRIC_PLACEMENT_H
#define FABRIC_PLACEMENT_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#define FAB_ANY_CPU UINT64_MAX

struct fab_placement {
    bool bound;     /* to `cpus` alone */
    cpu_set_t cpus; /* never empty when bound */
    bool beside;    /* they are the device's node's */
    uint32_t comp_vector;
};

/* The choice. allowed: where the process may run; beside: the CPUs of the device's node, empty when
 * nobody knows them. cpu: asked for by the operator, or FAB_ANY_CPU. Lanes of one device,
 * numbered from 0, take its completion vectors (1 or more) in turns. Pure. */
struct fab_placement fab_place(const cpu_set_t *allowed, const cpu_set_t *beside, uint64_t cpu,
                               uint32_t lane, uint32_t comp_vectors);

/* "0-3,8" as the kernel writes it. 0, or -EINVAL. Pure. */
int fab_parse_cpus(const char *text, cpu_set_t *out);
/* The CPUs of a NUMA node of this host; empty for -1, and if it cannot be told. */
void fab_cpus_of_node(int node, cpu_set_t *out);

#endif
