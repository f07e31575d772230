/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool has of the device so that its lane carries workers' messages
 * (agent/lane_messages.h): the queue of shared receives by which its target hears them is the
 * pool's in any case; here is the memory behind that, which no worker maps, and the UD queue pair,
 * and the address handles of those to whom the lane says something. Control thread. */
#ifndef CONTROL_MESSAGE_OBJECTS_H
#define CONTROL_MESSAGE_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane.h"
#include "base/text.h"
#include "fabric/fabric.h"

struct pool;

/* All zero: the pool carries none. */
struct agent_message_objects {
    uint32_t receives; /* of the SRQ; 0: none */
    struct fab_mem memory;
    struct fab_mr *mr;
    struct fab_qp *ud;
    uint32_t qkey;
};

/* How many receives the pool has for messages; 0: it carries none, by its settings or since the
 * device cannot. Once its device is open. */
uint32_t agent_messages_receives(const struct pool *p);
/* So many of them, and datagrams, complete on the lane's queue. */
uint32_t agent_messages_completions(const struct pool *p);
/* Whether workers are told that there are messages: the lane carries them, and may write to what
 * workers are lent. */
bool agent_messages_are_for_workers(const struct pool *p);

/* A part of the series that makes what the device has of a pool (fabric/series.h). */
int agent_messages_make(void *pool, uint32_t over, struct fab_ctl *ctl);
/* At its end: to the device to destroy; and when it has been: the memory. */
void agent_messages_retire(struct pool *p);
void agent_messages_close(struct pool *p);

/* What the lane is given. */
struct lane_messages agent_messages_describe(const struct pool *p);
/* LANE_EVENT_WANT_AH. */
void agent_messages_want_ah(struct pool *p, const struct lane_event *e);
/* Bytes of memory that is there for messages, as a member of the pool's status. */
void agent_messages_status(const struct pool *p, struct base_text *t);
uint64_t agent_messages_bytes(const struct pool *p);

#endif
