/* SPDX-License-Identifier: Apache-2.0 */
/* What a VQP waits for with the first request of its queue: one thing at a time, and nothing while
 * that request is tried. Private to agent/lane, and the lane thread's. */
#ifndef LANE_WAIT_H
#define LANE_WAIT_H

#include <stdint.h>

struct vqp;

/* Where it waits: that says what lets it go on. */
enum wait_place {
    PLACE_NONE,
    PLACE_ENDPOINT, /* its flow's list: only news of that endpoint */
    PLACE_LANE,     /* one of the lane's lists: a change of what others have too */
    PLACE_ROOM,     /* a queue pair's: its turn there (room.h) */
    PLACE_WINDOW,   /* a window's: its turn there (window.h) */
    WAIT_PLACES
};

enum vqp_wait {
    WAIT_NOTHING,
    /* -- PLACE_ENDPOINT */
    WAIT_OWN,    /* what the VQP has out itself comes to its end first */
    WAIT_RECORD, /* the endpoint's record is looked up */
    WAIT_PATH,   /* a path is made, or was refused to another VQP just now */
    WAIT_SIGN,   /* the endpoint is silent, and what is out finds out when it answers */
    WAIT_REGION, /* the record of the peer's region is READ */
    WAIT_REST, /* the tenant rests, or has its turn at silent endpoints elsewhere (quarantine.h) */
    WAIT_NEWS, /* nothing: it is tried in the next round */
    /* -- PLACE_LANE */
    WAIT_FLOW,      /* a flow, of which its tenant has its share or the lane none left */
    WAIT_ASKING,    /* room to ask for a record or for a path */
    WAIT_QP,        /* a queue pair that works */
    WAIT_SMALL,     /* memory for data that the device does not take inline */
    WAIT_INITIATOR, /* the initiator of tenants in quarantine */
    WAIT_TURNS,     /* a place where turns can be kept */
    WAIT_PASS,      /* the next pass */
    /* -- one each */
    WAIT_ROOM,
    WAIT_WINDOW,
    VQP_WAITS
};

extern const uint8_t vqp_wait_places[VQP_WAITS]; /* enum wait_place */

/* The one function that changes what a VQP waits for. The caller has put it there, or taken it
 * away.
 */
void vqp_wait_move(struct vqp *q, enum vqp_wait to);

#endif
