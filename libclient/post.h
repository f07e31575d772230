/* SPDX-License-Identifier: Apache-2.0 */
/* What posts of requests and of receives have in common. One thread at a time. */
#ifndef LIBCLIENT_POST_H
#define LIBCLIENT_POST_H

#include "internal.h"

enum { CLIENT_POST_SLOTS = 1 + SCHEMA_MAX_INLINE / SCHEMA_LINE };

#define CLIENT_NO_MESSAGES                                                                         \
    "this host's agent carries no messages (SEND, RECV): it needs messages = yes in [pool] "       \
    "and memory in which nobody punches holes (memory_whole of rdmactl agent status)"

/* A request as it goes into the ring. */
union client_post {
    struct schema_sq_desc d;
    struct {
        uint8_t first[SCHEMA_LINE];
        union {
            struct schema_sq_sges sges;
            uint8_t payload[SCHEMA_MAX_INLINE];
        };
    };
    uint8_t slot[CLIENT_POST_SLOTS][SCHEMA_LINE];
};

/* The user's n SGEs as the arenas' (offset, index), which p->d is to begin with: 0, or -EINVAL. */
int client_gather(const struct kedge_session *s, const struct ibv_sge *list, int n,
                  union client_post *p);
/* Before something is posted on q: 0, or why nothing can be. */
int client_post_begin(struct kedge_vqp *q);
/* What the worker asks for, as a request: 0, or what is wrong with it, which is said. */
int client_post_build(const struct kedge_vqp *q, const struct ibv_send_wr *wr,
                      union client_post *p);
/* Says that there are too many, or none where there should be some: -EINVAL. */
int client_refuse_sges(int n, int most) __attribute__((cold));
/* Puts it into the ring, which is not shown to the lane yet: and before it what the VQP is
 * connected to, where the lane has not heard of that. 0; -ENOMEM; or why the session ended. */
int client_post_put(struct kedge_vqp *q, const union client_post *p);

#endif
