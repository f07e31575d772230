/* SPDX-License-Identifier: Apache-2.0 */
/* A metaserver without sockets on a device of its own, and agents that READ its table over RC. The
 * device has no DC as far as the metaserver knows. Every failure aborts the test where it happened.
 *
 * With KEDGE_TEST_RXE=rxe0 in the environment it is that device, of a guest of tests/vm, and the
 * GIDs are those of 10.0.1.1 (the metaserver) to 10.0.1.4. */
#ifndef TESTS_UNIT_METASERVER_WORLD_H
#define TESTS_UNIT_METASERVER_WORLD_H

#include "../../check_main.h"
#include "base/clock.h"
#include "fabric/fault.h"
#include "metaserver/service.h"
#include "metaserver/table_responders.h"
#include "../test_world.h"

#define WORLD_LEASE (2 * BASE_NS_PER_S)

struct world {
    char device[64];
    struct fab *fab; /* a fault layer without faults, over soft */
    struct fab_pd *pd;
    struct fab_mem mem;
    struct fab_mr *mr;
    struct fab_chan *chan;
    struct fab_cq *cq;
    struct test_world world;
    struct meta_service s;
    uint64_t now, rested_ns;   /* and so much later for queue pairs that rest */
    const char *authorization; /* what those who ask show; NULL: nothing */
};

/* max_readers: pools of nodes that can have a reader at a time; 16 nodes can register. */
void world_open(struct world *w, uint32_t max_readers);
/* On a device on whose network packets live so long. */
void world_open_resting(struct world *w, uint32_t max_readers, uint64_t packet_life_ns);
/* On one that says it has so many queue pairs. */
void world_open_small(struct world *w, uint32_t max_readers, uint32_t max_qp);
void world_close(struct world *w);
/* Waits until their completion queue tells of something, and nothing before was left to be looked
 * at. */
const char *world_hear_broken(struct world *w);
/* Its responders stop; who waited for one is not told yet. */
void world_stop(struct world *w);
/* Runs the metaserver until everything is answered, its device has nothing to do and no queue pair
 * rests. */
void world_settle(struct world *w);

/* Until its device has nothing to do; some may wait on. */
void world_run(struct world *w);

struct meta_responders_counts world_readers(const struct world *w);

/* A device carries out several control operations at a time: the next queue pair that is to be
 * connected is held back; world_wait_held() waits until it is and a later one had time to be ready.
 * Until world_release(), of one world at a time. */
void world_hold(struct world *w);
void world_wait_held(struct world *w);
void world_release(struct world *w);

/* Ways of n1 to go: the last one says that it reads over DC from now on, as incarnation 6. */
void world_delete_node(struct world *w);
void world_expire_node(struct world *w);
void world_put_node_without(struct world *w);

/* A request and what was answered: the token of the service. */
struct reply {
    int status; /* META_SERVICE_LATER: not yet */
    bool gone;  /* nobody waits for it */
    char body[2048];
};
void world_ask(struct world *w, const char *method, const char *path, const char *body,
               struct reply *out);
bool says(const struct reply *reply, const char *text);

struct reader {
    struct fab *fab;
    uint8_t number; /* its GID is fd00::number (on rxe one of three) */
    uint8_t node;   /* registers as this one, with the endpoint fd00::node; its number to begin */
    uint8_t pools;  /* in the pools 0 .. pools - 1; 0: as 1, and the reader says no pool */
    uint8_t pool;   /* that it reads for */
    uint8_t calls;  /* and calls that so much more */
    uint8_t lane;   /* of that pool; 0: it says none */
    struct fab_pd *pd;
    struct fab_mem mem;
    struct fab_mr *mr;
    struct fab_cq *cq;
    struct fab_qp *qp; /* in INIT until reader_connect() */
    uint32_t psn;
};
void reader_open(struct reader *a, const struct world *w, uint8_t number);
void reader_close(struct reader *a);
/* Another queue pair instead of the one that it has. */
void reader_renew(struct reader *a);
/* PUT /v1/nodes/n<node>, with its queue pair. */
void reader_put(struct world *w, const struct reader *a, uint32_t incarnation, struct reply *out);
/* Does so, must be answered with that status, and connects. */
void reader_join(struct world *w, struct reader *a, uint32_t incarnation, int status);
/* As the answer says. */
void reader_connect(struct reader *a, const struct reply *reply);
/* The status of one operation on the table's span that belongs to the endpoint fd00::number. */
enum ibv_wc_status reader_try(struct reader *a, const struct world *w, enum ibv_wr_opcode opcode,
                              uint8_t number);
/* Whether the endpoint is in the table, seen by one READ, which must succeed. */
bool reader_finds(struct reader *a, const struct world *w, uint8_t number);

#endif
