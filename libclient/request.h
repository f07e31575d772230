/* SPDX-License-Identifier: Apache-2.0 */
/* Control requests to the lane, and its answers (ring.c). One thread at a time. */
#ifndef LIBCLIENT_REQUEST_H
#define LIBCLIENT_REQUEST_H

#include "internal.h"

/* An answer of the lane, copied. */
struct client_reply {
    union {
        struct {
            uint64_t value[2];
            uint8_t secret[16];
        };
        struct schema_found found;
    };
};

/* Asks the lane: sets the descriptor's tag (all have it at the same place). 0; -ETIMEDOUT; or why
 * the session ended. The answer is one to be collected. */
int client_ask(struct kedge_session *s, struct schema_sq_desc *d);
/* The same with what stands behind the descriptor: up to SCHEMA_MAX_EXTRA bytes. */
int client_ask_with(struct kedge_session *s, struct schema_sq_desc *d, const void *extra,
                    size_t bytes);
/* Says what has no answer, and so no tag. 0; -ETIMEDOUT; or why the session ended. */
int client_tell_with(struct kedge_session *s, struct schema_sq_desc *d, const void *extra,
                     size_t bytes);
/* Asks and waits. 0 and *out; the lane's -errno; -ETIMEDOUT; or why the session ended. */
int client_request(struct kedge_session *s, struct schema_sq_desc *d, struct client_reply *out);
/* The same with what stands behind the descriptor. */
int client_request_with(struct kedge_session *s, struct schema_sq_desc *d, const void *extra,
                        size_t bytes, struct client_reply *out);
/* The request that was just refused with that status found no room left for what it makes: no quota
 * refused it, of which the sentence is there already. */
bool client_has_no_room(const struct kedge_session *s, int status);

/* Takes all answers that have come: those of withdrawals go to client_withdrawn(), all others are
 * late, and nobody's. */
void client_collect(struct kedge_session *s);
/* Waits for one that can be collected: 0, -ETIMEDOUT, -EHOSTDOWN, or why the session ended. */
int client_await(struct kedge_session *s, uint64_t until_ns);

/* poll.c: whether kedge_wait() would return at once; it is told then. */
bool client_take_something(struct kedge_session *s);

#endif
