/* SPDX-License-Identifier: Apache-2.0 */
/* What a session keeps of messages: its receives (receive.h) and the VQPs that answer senders
 * (sender.h). Tables alone, which VQPs that go leave; nothing is asked of the agent here. One
 * thread at a time.
 *
 * Invariant: each receive of a VQP that is there has one place, from when it is posted until it is
 * popped. */
#ifndef LIBCLIENT_MESSAGE_TABLES_H
#define LIBCLIENT_MESSAGE_TABLES_H

#include "internal.h"

enum receive_state { RECEIVE_FREE, RECEIVE_POSTED, RECEIVE_ENDED };

/* A place. Its number and its round are the wr_id that the lane has, so that what is said of one
 * that is over is told from what is said of the next. */
struct client_receive {
    uint64_t wr_id;  /* the worker's */
    uint32_t length; /* of its pieces together */
    uint32_t round;
    uint32_t next; /* in the list of those that are free, or have ended: index + 1, or 0 */
    uint16_t vqp, vqp_gen;
    uint8_t state; /* enum receive_state */
    /* ENDED */
    struct schema_cqe c;
    struct schema_cqe_sender from;
};

/* Of the VQP with that index, if it answers one. */
struct client_sender {
    struct schema_cqe_sender is;
    uint32_t next; /* in its chain: index + 1, or 0 */
};

/* Allocated with the first message to a port. */
struct client_senders {
    uint32_t mask;             /* of the chains */
    uint32_t *chain;           /* index + 1 of the first */
    struct client_sender of[]; /* by VQP: max_vqps */
};

struct client_messages {
    struct client_receive *place; /* `most` of them */
    uint32_t most, fresh;         /* fresh: this one and those behind were never used */
    uint32_t free, first, last;   /* lists, index + 1: free ones; those that have ended, in order */
    uint32_t held, ended;         /* places in use; of them, on the list of those that have ended */
    struct client_senders *senders;
    /* Requests' completions: indices that run freely, as the ring's, of as many places. */
    struct schema_cqe *aside;
    uint32_t aside_head, aside_tail;
};

void client_messages_free(struct client_messages *m); /* NULL is allowed */

void client_receive_free(struct client_messages *m, struct client_receive *r);
/* The VQP goes: its receives are nobody's any more. */
void client_receives_forget(struct kedge_vqp *q);

/* Where the chain of those with that name begins; it is random. */
static inline uint32_t *client_senders_chain(struct client_senders *all, uint64_t name)
{
    return &all->chain[(name ^ name >> 32) & all->mask];
}
/* The VQP is connected to something else from now on, or is none any more. */
void client_sender_forget(struct kedge_vqp *q);

#endif
