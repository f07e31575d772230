/* SPDX-License-Identifier: Apache-2.0 */
/* Three metaservers of one store, which takes its time, and is heard of late, as a seed says. */
#ifndef TESTS_UNIT_METASERVER_API_WORLD_SHARED_H
#define TESTS_UNIT_METASERVER_API_WORLD_SHARED_H

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "metaserver/resources_json.h"
#include "metaserver/service.h"
#include "metaserver/store_hub.h"
#include "metaserver/store_order.h"
#include "../test_world.h"

enum { METASERVERS = 3, NODES = 6, TENANTS = 5, ENDPOINTS = 8, NAMES = 16 };
enum { MAX_NODES = 16, TRAIL = 1024 };
enum { LOST_PERCENT = 5 }; /* of what the store was given, its answers */
#define LEASE (10 * BASE_NS_PER_S)

struct metad {
    struct test_world world; /* first: what submits is looked for by its base */
    struct meta_store_order order;
    struct meta_service s;
    struct meta_store *store;
    void *memory, *names_memory;
    bool cut_off; /* it hears nothing */
    bool dead;    /* and closed */
};

extern struct shared_world {
    struct meta_store_hub *hub;
    struct metad metad[METASERVERS];
    struct base_prng prng;
    uint64_t now;
    bool again; /* names are put as those that their nodes have put before */
} all;

struct reply {
    int status; /* META_SERVICE_LATER: not yet */
    uint64_t revision;
    char body[1024];
};

/* At time 1 s. */
void setup_all(uint64_t seed);
/* A millisecond goes by. */
void step_all(void);
/* Until all have nothing to do for so long that they must have heard everything. */
void settle_all(void);
void teardown_all(void);
/* One beside them, of that number. */
void open_metad(struct metad *m, int number, uint32_t max_nodes, uint64_t seed);
void close_metad(struct metad *m);
/* Time goes by for one of them: its store does something, it hears something, or both. */
void step_metad(struct metad *m);
/* *reply is borrowed until it has a status. */
void begin_ask(struct metad *m, const char *method, const char *path, const char *json,
               struct reply *reply);
/* Its status, when it has one. */
int ask(struct metad *m, const char *method, const char *path, const char *json);
/* With one endpoint, fd00::(gid + 1). */
void put_node(struct metad *m, int node, int incarnation, int gid, struct reply *reply);
/* A region of that node's endpoint, under the name x(name) of one tenant. */
void put_name(struct metad *m, int node, int incarnation, int gid, int name, struct reply *reply);
/* And one that begins now. */
void expect_all_the_same(uint64_t seed);
/* Entries of the trail that say that the store was put back. */
unsigned count_restores(const struct metad *m);
void tick_all(void);

#endif
