/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool has of the device so that its lane carries workers' messages
 * (agent/lane_messages.h): the queue of shared receives by which its target hears them, or
 * responders do, is the pool's; here is the memory behind that, which no worker maps, and the UD
 * queue pair, and the address handles of those to whom the lane says something. Control thread. */
#ifndef CONTROL_MESSAGE_OBJECTS_H
#define CONTROL_MESSAGE_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane.h"
#include "base/text.h"
#include "fabric/fabric.h"
#include "fabric/reuse.h"

struct pool;

/* The UD queue pair is brought up anew, or another is made; the control thread's alone. */
struct ud_repair {
    struct fab_ctl ctl;
    struct fab_reuse reuse;
    uint32_t step;     /* of those to RTS, once it is in INIT */
    uint32_t failures; /* on end */
    bool is_under_way; /* from when the lane says that it broke, until it hears of the next one */
    bool is_out;       /* the device has it */
    bool outdated;     /* the P_Key has another place: it is to be repaired once more */
    bool refused;      /* likewise, of one that works: the device has refused to put it to ERR */
    uint64_t again_ns; /* it failed, or was repaired just now: not before */
};

/* All zero: the pool carries none. */
struct agent_message_objects {
    uint32_t receives; /* of the SRQ; 0: none */
    struct fab_mem memory;
    struct fab_mr *mr;
    struct fab_qp *ud; /* NULL while another is made */
    uint32_t qpn;      /* its number, or the last one's: as others are told */
    uint32_t qkey;
    struct ud_repair repair;
};

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
/* LANE_EVENT_WANT_NUMBER; and what peers have answered, once the connector was stepped. */
void agent_messages_want_number(struct pool *p, const struct lane_event *e);
void agent_messages_tell_numbers(struct pool *p);
/* LANE_EVENT_UD_BROKEN: nothing is posted there until UD_READY. */
void agent_messages_ud_broken(struct pool *p, struct fab_qp *qp);
/* The P_Key has another place: its queue pair is put to ERR, so that it is brought up with that. */
void agent_messages_repartition(struct pool *p);
/* Now and then: a repair that failed is tried again. */
void agent_messages_tick(struct pool *p);
uint64_t agent_messages_due_ns(const struct pool *p);

/* Bytes of memory that is there for messages, as a member of the pool's status. */
void agent_messages_status(const struct pool *p, struct base_text *t);
uint64_t agent_messages_bytes(const struct pool *p);

#endif
