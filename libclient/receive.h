/* SPDX-License-Identifier: Apache-2.0 */
/* Receives that the worker has posted, until they are popped. What comes out of the completion ring
 * while the other kind is asked for is put aside here: receives while requests are polled for, and
 * the reverse. One thread at a time.
 *
 * Invariant: each receive of a VQP that is there has one place, from when it is posted until it is
 * popped. */
#ifndef LIBCLIENT_RECEIVE_H
#define LIBCLIENT_RECEIVE_H

#include "internal.h"

struct client_receive;
struct client_senders;

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

/* How many a session may have: two places for each in the completion ring, and half of what the
 * lane takes at a time is left for requests. */
static inline uint32_t client_receives_most(const struct kedge_session *s)
{
    return (s->features & SCHEMA_FEATURE_MESSAGES) != 0 ? s->max_inflight / 4 : 0;
}
/* The session may be used, and its agent knows messages: 0, or an error that is said. */
int client_messages_check(struct kedge_session *s);
/* Makes s->messages unless it is there: 0 or -ENOMEM, which is said. */
int client_messages_make(struct kedge_session *s);
void client_messages_free(struct client_messages *m);
void client_senders_free(struct client_senders *all); /* sender.c; NULL is allowed */

/* Whether that is a receive's. */
static inline bool client_is_receive(const struct schema_cqe *c)
{
    return c->opcode >= IBV_WC_RECV || c->extra != 0;
}
/* Takes the next completion, a receive's, out of the ring, into its place. `there`: places of the
 * ring that can be read. False: none was taken, since it makes no sense, and the session is over.
 */
bool client_receive_take(struct kedge_session *s, uint32_t there);
/* Takes the first one that has ended, of which there is one. */
void client_receive_pop(struct kedge_session *s, struct kedge_msg *out);
/* The VQP goes: its receives are nobody's any more. */
void client_receives_forget(struct kedge_vqp *q);

#endif
