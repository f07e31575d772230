/* SPDX-License-Identifier: Apache-2.0 */
/* A metaserver whose device has few queue pairs for lanes. For tests that include it once. */
#ifndef TESTS_UNIT_METASERVER_ROOM_WORLD_H
#define TESTS_UNIT_METASERVER_ROOM_WORLD_H

#include <stdio.h>

#include "world.h"

enum { HOSTILE = 9 /* a node */ };

enum { MAX_READERS = 16, SHARED = 4, MAX_QP = SHARED + META_RESPONDERS_SPARES + 1 };

static inline void open_reader(struct reader *a, const struct world *w, uint8_t number,
                               uint8_t node, uint8_t lane)
{
    reader_open(a, w, number);
    a->node = node;
    a->lane = lane;
}

static inline bool reads(struct reader *a, const struct world *w)
{
    return reader_try(a, w, IBV_WR_RDMA_READ, 1) == IBV_WC_SUCCESS;
}

static inline void renew(struct world *w, const struct reader *a, struct reply *reply)
{
    char path[32];
    snprintf(path, sizeof path, "/v1/nodes/n%u/renew", a->node);
    world_ask(w, "POST", path, "{\"incarnation\":5}", reply);
    ck_assert_int_eq(reply->status, 200);
}

static inline void refuse(struct world *w, const struct reader *a, const char *why)
{
    struct reply reply;
    reader_put(w, a, 5, &reply);
    world_settle(w);
    ck_assert_int_eq(reply.status, 503);
    ck_assert_msg(says(&reply, why), "%s", reply.body);
}

static inline void leave_as(struct world *w, uint8_t node)
{
    char path[32];
    struct reply reply;
    snprintf(path, sizeof path, "/v1/nodes/n%u", node);
    world_ask(w, "DELETE", path, "", &reply);
    ck_assert_int_eq(reply.status, 204);
    world_settle(w);
}

static inline void leave(struct world *w)
{
    leave_as(w, HOSTILE);
}

static inline void join_anew(struct world *w, struct reader *a, int status)
{
    reader_renew(a);
    reader_join(w, a, 5, status);
}

#endif
