/* SPDX-License-Identifier: Apache-2.0 */
/* Receives that the worker has posted, until they are popped. What comes out of the completion ring
 * while the other kind is asked for is put aside here: receives while requests are polled for, and
 * the reverse. One thread at a time. */
#ifndef LIBCLIENT_RECEIVE_H
#define LIBCLIENT_RECEIVE_H

#include "message_tables.h"

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

#endif
