/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: which processes have the device open, and what dead ones left. */
#ifndef SOFT_CONTEXT_H
#define SOFT_CONTEXT_H

#include <stdbool.h>
#include <sys/types.h>

#include "soft/layout.h"

struct base_errbuf;
struct soft_fab;

/* Takes a context for this process, with the open lock held; gid: the one to have, network order,
 * or zero for a random one. What dead processes left is taken back. 0, or -errno with a sentence.
 */
int soft_context_take(struct soft_fab *f, const uint8_t gid[16], struct base_errbuf *err);
/* Locks or unlocks a byte of the device file, without waiting. 0 or -errno. Any thread. */
int soft_lock_byte(int fd, off_t byte, bool lock);
/* Whether the process of the context that `owner` names still lives, asked of the kernel. Any
 * thread; system calls. */
bool soft_owner_process_lives(const struct soft_fab *f, soft_owner owner);
/* Ends the context `dead` (0: none), and takes back every slot that no living context owns. With 0:
 * with the open lock held; else any thread. */
void soft_reclaim(struct soft_fab *f, soft_owner dead);

#endif
