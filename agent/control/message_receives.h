/* SPDX-License-Identifier: Apache-2.0 */
/* How many receives a pool has for messages, by its settings and its device: of an endpoint, its
 * first lane has them all. Pure. */
#ifndef CONTROL_MESSAGE_RECEIVES_H
#define CONTROL_MESSAGE_RECEIVES_H

#include <stdint.h>

struct pool;

/* How many receives the pool has for messages; 0: it carries none, by its settings or since the
 * device cannot. Once its device is open. */
uint32_t agent_messages_receives(const struct pool *p);
/* So many of them, and datagrams, complete on the lane's queue. */
uint32_t agent_messages_completions(const struct pool *p);

#endif
