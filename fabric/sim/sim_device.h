/* SPDX-License-Identifier: Apache-2.0 */
/* Private to fabric/sim: a device and its objects. Each has the public struct first.
 *
 * Files call downward only:
 *
 *    - open: opening, closing, crashing, faults, and what arrives
 *    - control: control operations; create, modify: objects made, changed and freed
 *    - post: the data path's entries
 *    - requester, responder, datagram: queue pairs at work
 *    - execute: one request at its responder
 *    - qp_error: queue pairs that break
 *    - model: what things cost, if the net has such a model
 *    - queue, memory, wire: completions and receives, registrations, links
 *    - net, table: time */
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

#include "fabric/provider.h"
#include "sim/net.h"

enum {
    SIM_PSN_MASK = 0xffffff,
    SIM_MAX_WR = 4096,
    SIM_MAX_CQE = 65536,
    SIM_MAX_READS = 16, /* READs and atomics of one queue pair at a time */
    SIM_DATAGRAM_BYTES = 4096,
    SIM_EVENTS = 1024, /* that nobody has taken */
};

/* What is freed at once when a device crashes, in this order. */
enum sim_kind {
    SIM_DCT,
    SIM_QP,
    SIM_MR,
    SIM_CQ,
    SIM_SRQ,
    SIM_CHAN,
    SIM_AH,
    SIM_PD,
    SIM_MEM,
    SIM_KINDS
};

struct sim_object {
    void *self;
    enum sim_kind kind;
    LIST_ENTRY(sim_object) link;
};

struct model_nic; /* model/nic.h */
struct sim_op;    /* control.c */
struct sim_place; /* wire.c */

struct sim_device {
    struct sim_frozen frozen; /* first: net.h */
    struct fab base;
    struct sim_net *net;
    struct sim_device_attr attr;
    bool implied_free; /* implied NAKs are no tries */
    uint32_t stretch;  /* of its time-outs, at most */
    uint64_t slack_ns; /* until it sees a doorbell, at most */
    struct sim_faults faults;
    struct base_prng prng;
    struct model_nic *nic;   /* what things cost; NULL: nothing but what links say */
    struct sim_place *place; /* that packets find it at */
    bool down;               /* its port */
    uint32_t pds;
    struct sim_ready control, event;
    TAILQ_HEAD(sim_ops, sim_op) ops; /* under way */
    struct fab_ctl *done, **done_tail;
    LIST_HEAD(sim_objects, sim_object) objects[SIM_KINDS];
    uint32_t count[SIM_KINDS];
    struct sim_table qps; /* by number: struct sim_numbered */
    struct sim_table mrs; /* by key */
    struct {
        uint32_t count;
        uint32_t key[64];
    } returned;           /* keys of regions that are gone, the last one on top */
    uint32_t last_number; /* of the queue pair that was destroyed last; 0: none */
    struct fab_event queued[SIM_EVENTS];
    uint32_t queued_head, queued_tail;
};

static inline struct sim_device *sim_device_of(const struct fab *fab)
{
    return (struct sim_device *)(void *)((char *)(uintptr_t)fab -
                                         offsetof(struct sim_device, base));
}

struct sim_pd {
    struct fab_pd base;
    struct sim_object object;
    uint32_t id, users;
};

struct sim_mr {
    struct fab_mr base;
    struct sim_object object;
    struct sim_device *dev;
    uint8_t *at;
    uint64_t identity;
    unsigned access;
};

struct sim_chan {
    struct fab_chan base;
    struct sim_object object;
    struct sim_ready ready;
    uint32_t users;
};

struct sim_ah {
    struct fab_ah base;
    struct sim_object object;
};

/* What packets are sent to: a queue pair or a DC target. */
struct sim_numbered {
    uint32_t number;
    bool is_dct;
};

void sim_object_add(struct sim_device *dev, struct sim_object *o, enum sim_kind kind, void *self);
void sim_object_drop(struct sim_device *dev, struct sim_object *o);
/* Asynchronous events, of which the oldest are kept. */
void sim_device_tell(struct sim_device *dev, enum ibv_event_type type, void *object);
void sim_device_forget(struct sim_device *dev, const void *object);

#endif
