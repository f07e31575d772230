/* SPDX-License-Identifier: Apache-2.0 */
/* An agent whose workers publish names at metaservers that are the test's, as are time and the
 * lane's leases. */
#ifndef TESTS_UNIT_AGENT_CONTROL_WORLD_PUBLICATIONS_H
#define TESTS_UNIT_AGENT_CONTROL_WORLD_PUBLICATIONS_H

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/random.h"
#include "bounds.h"
#include "due.h"
#include "fabric/provider.h"
#include "pool.h"
#include "publications.h"
#include "register.h"
#include "sessions.h"
#include "world.h"

enum { METASERVERS = 2, SESSIONS = 4, REGIONS = 2, NAMES = 4, CALLS = 256, TENANT = 1 };
extern const char NAME[NAMES][8];
enum { TAKEN = NAMES - 1 }; /* which is another node's, everywhere and for ever */

/* What was asked of a metaserver. */
struct call {
    bool out, held;                    /* held: it was given up, and is still carried out, later */
    uint64_t held_ns;                  /* until then */
    bool puts, lists, again, returned; /* returned: of a name that the first one says to have */
    uint32_t metaserver, name, vkey;
    char digest[BASE_DIGEST_NAME]; /* of what is to be taken back; "": whatever it is */
    http_done done;
    void *user;
};

extern struct publications_world {
    struct test_world world;
    struct world_ops ops;
    struct agent agent;
    struct pool pool;
    struct fab fab;
    struct agent_session session[SESSIONS];
    char memory[SESSIONS]; /* only its address is looked at */
    enum lane_lease_state state[SESSIONS][REGIONS];
    struct call call[CALLS];
    uint32_t shown[METASERVERS][NAMES]; /* by metaservers: the region's key; 0: none */
    struct {
        uint32_t count;
        int status;
        char why[256];
    } said[SESSIONS];        /* to its worker */
    uint32_t calls, lists;   /* so far */
    uint32_t returned;       /* names that the first metaserver says to have, and nobody here */
    char reader[AGENT_NAME]; /* for whom the last name was that was put */
} w;

void on_said(void *user, int status, const char *why);
uint32_t vkey_of(uint32_t session, uint32_t region);
/* All metaservers take digests. */
void know_digests(void);
int carry_out(const struct call *c);
void answer_call(struct call *c, int status);
struct call *find_call(uint32_t metaserver);
void serve(uint32_t metaserver);
void begin(uint32_t metaservers);
void end(void);
void pass_time(uint64_t ms);
void publish(uint32_t session, uint32_t region, const char *name);
void publish_for(uint32_t session, uint32_t region, const char *name, const char *reader);
void unpublish(uint32_t session, uint32_t region, const char *name);
void end_session(uint32_t session);
#define HEARS(session, n, wanted)                                                                  \
    do {                                                                                           \
        ck_assert_uint_eq(w.said[session].count, n);                                               \
        ck_assert_int_eq(w.said[session].status, wanted);                                          \
    } while (0)

#endif
