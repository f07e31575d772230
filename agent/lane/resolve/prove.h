/* SPDX-License-Identifier: Apache-2.0 */
/* Private to agent/lane: the one proof that may be under way (prove.c). The lane thread's. */
#ifndef LANE_PROVE_H
#define LANE_PROVE_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/fabric.h"
#include "resolve/flow.h"

struct lane_command;
struct wr;

enum {
    LANE_PROOF_EVENTS = 4, /* of one proof: its path asked for, given back, twice; its end */
};
#define LANE_PROOF_FLOW UINT32_MAX /* the number of its flow, beside the lane's */

enum proof_state {
    PROOF_IDLE,
    PROOF_SEEKS, /* a record, a path, room; looked at in each housekeeping */
    PROOF_READS, /* the READ is out */
    PROOF_ENDS   /* it has come back; looked at likewise */
};

struct proof {
    uint8_t state; /* enum proof_state */
    uint8_t asked; /* the endpoint's record was, in this try */
    uint8_t tries; /* that were over without an answer */
    int path_status, result;
    uint32_t tag, metaserver; /* as the command has them */
    uint32_t at;              /* the metaserver's place in the lane's list, while READ */
    uint8_t gid[16];
    uint32_t peer_slot, peer_gen;
    uint32_t scratch;
    uint64_t fresh_ns;
    uint64_t end_ns;  /* while it seeks: it could not be tried */
    struct flow flow; /* its own way to the endpoint: nobody else's goes or waits for it */
};

void lane_proof_begin(struct lane *l, const struct lane_command *c);
/* In each housekeeping, while it is due. */
bool lane_proof_is_due(const struct lane *l);
void lane_proof_go_on(struct lane *l);
/* The path that it asked for has come, or has not. */
void lane_proof_path(struct lane *l, int status);
void lane_proof_done(struct lane *l, enum ibv_wc_status answer);

#endif
