/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of writes that wait for the store, and how many of which kind are in it. One thread. */
#ifndef METASERVER_WRITES_QUEUE_H
#define METASERVER_WRITES_QUEUE_H

#include "writes.h"

void meta_writes_append(struct meta_writes *q, struct meta_write *w);
/* before: the one before it; NULL: it is the first. */
void meta_writes_remove(struct meta_writes *q, struct meta_write *w, struct meta_write *before);
/* Its turn comes behind `to`, before what has waited for longer. before: the one before it. */
void meta_writes_move(struct meta_writes *q, struct meta_write *w, struct meta_write *before,
                      struct meta_write *to);

#endif
