/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this process can have before the kernel ends processes for it. Any thread; reads
 * small files of the kernel's, so not for the hot path.
 *
 * Of control groups, those of version 2 are looked at: what version 1 bounds is not known here, nor
 * what bounds groups above the root of this process' cgroup namespace. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes: the least of the machine's memory and what base_memory_group() finds for this process.
 * UINT64_MAX: nothing is known. *of_group says whether it is a group that bounds it. What
 * memory.max says may change at any time, and is read each time. */
uint64_t base_memory_most(bool *of_group);

/* Bytes: the least memory.max of a process' control group and of all above it. `membership` is a
 * file like /proc/self/cgroup, `root` a directory like /sys/fs/cgroup (without a slash at its end).
 * UINT64_MAX: no bound. A group whose memory.max is not there, or makes no sense, is none. */
uint64_t base_memory_group(const char *membership, const char *root);

#endif
