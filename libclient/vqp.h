/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual queue pair as its session's thread holds it. */
#ifndef LIBCLIENT_VQP_H
#define LIBCLIENT_VQP_H

#include <stdbool.h>
#include <stdint.h>

struct kedge_session;

enum client_vqp_state {
    CLIENT_VQP_FREE,
    CLIENT_VQP_CREATED,
    CLIENT_VQP_CONNECTED,
    CLIENT_VQP_HEARING, /* it is bound to a port */
    CLIENT_VQP_DYING,   /* destroyed, but the ring has no room to say so */
};

struct kedge_vqp {
    struct kedge_session *session;
    void *user;
    /* CONNECTED: where its SENDs go: a port, or a VQP's or a counter's name, with the counter's
     * secret; HEARING: its port */
    uint64_t to, secret;
    uint32_t to_tenant; /* whose port that is, by its number; 0: the session's own */
    uint32_t peer_slot, peer_gen;
    uint32_t out, next; /* completions to be taken; FREE and DYING: index + 1 of the next, or 0 */
    uint32_t receives;  /* of its own, that were posted and not popped yet */
    uint16_t index, gen;
    uint8_t state;   /* enum client_vqp_state */
    uint8_t to_kind; /* enum schema_send_to; 0: its SENDs go nowhere */
    bool bound;      /* the lane was told of the present peer */
    bool known;      /* the lane was told of this generation */
    bool answers;    /* it was made for a sender (sender.h), and CREATED is not connected yet */
};

/* Whether it was created, and not destroyed. */
static inline bool client_vqp_is_there(const struct kedge_vqp *q)
{
    return q->state == CLIENT_VQP_CREATED || q->state == CLIENT_VQP_CONNECTED ||
           q->state == CLIENT_VQP_HEARING;
}
/* Back to the free list. An index that the lane never heard of keeps its generation. */
void client_vqp_release(struct kedge_session *s, struct kedge_vqp *q);
/* Connected to the peer in that slot, of which the lane hears with the next post. */
void client_vqp_point(struct kedge_vqp *q, uint32_t slot, uint32_t gen);
/* Where the peer is in the table of those that the host knows, which its agent is asked for where
 * it is not: 0, or an error that is said. */
int client_vqp_resolve(struct kedge_vqp *q, const uint8_t gid[16], uint16_t pool, uint32_t *slot,
                       uint32_t *gen);
/* kedge_connect(), after the arguments were looked at, and within the session's pool. */
int client_vqp_connect(struct kedge_vqp *q, const uint8_t gid[16], uint16_t pool);

#endif
