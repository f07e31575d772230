/* SPDX-License-Identifier: Apache-2.0 */
/* The watcher: a thread that marks contexts dead when their processes die. Owned by its context, as
 * f->watch. */
#ifndef SOFT_WATCH_H
#define SOFT_WATCH_H

#include <stdbool.h>

#include "soft/layout.h"

struct soft_fab;

/* Control thread. 0 or -errno. */
int soft_watch_start(struct soft_fab *f);
void soft_watch_stop(struct soft_fab *f);
/* Watches the context that owner names from now on; idempotent, any thread. False: it is dead, or
 * cannot be watched just now. System calls, once for each context. */
bool soft_watch_add(struct soft_fab *f, soft_owner owner);

#endif
