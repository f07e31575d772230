/* SPDX-License-Identifier: Apache-2.0 */
/* SENDs from one VQP of this lane to another one, which go by no device (schedule/near_sends.h).
 * Private to agent/lane, and the lane thread's. */
#ifndef LANE_NEAR_STATE_H
#define LANE_NEAR_STATE_H

#include <stdint.h>
#include <sys/queue.h>

struct vqp_messages;

struct stream_receiver;

/* Who took its last one: a worker's VQP of its own tenant. */
struct near_hearer {
    struct stream_receiver *stream; /* its place, which may be another's by now */
    struct vqp_messages *by;        /* a place likewise; NULL: there was none */
    uint64_t name;                  /* of its sender: with another it may be another VQP */
    uint32_t unbound;               /* of `ports`: another count, and the port may be another's */
};

/* Of a VQP that sends. Those that wait are kept, from number `next` on, and all that is kept behind
 * that: they count as `bytes` together, with what a header would be. */
struct near_sends {
    uint32_t next, bytes;
    uint32_t done;     /* bytes of the first one that are in its receive, if that is a large one */
    uint32_t mark;     /* what the receive bears that has them (receive/near_messages.c) */
    uint32_t wired;    /* one past the last number that a device was given */
    uint8_t waits;     /* some do: it is in the list */
    uint8_t looks;     /* at it, on end, while another's had the receive */
    uint64_t again_ns; /* by the device until then */
    TAILQ_ENTRY(vqp_messages) by_near;
    struct near_tenant *tenant; /* whose it is, while some wait */
    struct near_hearer hearer;
};

/* The VQPs of a tenant of which some wait. */
TAILQ_HEAD(near_vqps, vqp_messages);
struct near_tenant {
    struct near_vqps vqps;
    uint64_t bytes; /* of all of them */
    TAILQ_ENTRY(near_tenant) by_turn;
};

/* The tenants that have such. */
TAILQ_HEAD(near_tenants, near_tenant);
struct near_list {
    struct near_tenants waiting;
    uint64_t bytes;
    uint32_t larges;             /* that have begun */
    struct near_tenant *tenants; /* max_tenants of them */
};

#endif
