/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of workers: what metaservers take of an answer has a bound, and however many are asked for
 * a page ends before it. */
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "agent_query.h"
#include "control/admin.h"
#include "pool.h"
#include "revocations.h"
#include "sessions.h"
#include "world.h"

enum {
    WORKERS = 1000,
    TAKEN = 256 << 10, /* bytes of an answer, by metaservers */
    ENVELOPE = 4 << 10 /* of that, around a page */
};

static struct test_world world;
static struct agent agent;
static struct pool pool;

static struct {
    char *body;
    size_t length;
    int status;
} answered;

static void take_answer(struct world *w, struct world_request *r, const struct admin_answer *a)
{
    (void)w, (void)r;
    answered.status = a->status;
    answered.length = a->length;
    free(answered.body);
    answered.body = strndup(a->body, a->length);
}

static const struct world_admin_ops ANSWERS = {.answer = take_answer};

static void begin(struct lane_memory *memory)
{
    test_world_init(&world);
    world.world.admin = &ANSWERS;
    agent = (struct agent){.world = &world.world, .config = {.max_sessions = WORKERS}};
    memset(agent.config.node, 'n', sizeof agent.config.node - 1);
    memset(agent.tenants.at[0].config.name, 't', sizeof agent.tenants.at[0].config.name - 1);
    base_text_init(&agent.answer, 1 << 20);
    pool = (struct pool){.agent = &agent, .config = &agent.config, .world = &world.world};
    pool.sessions = calloc(WORKERS, sizeof pool.sessions[0]);
    ck_assert_ptr_nonnull(pool.sessions);
    for (uint32_t i = 0; i < WORKERS; i++) {
        pool.sessions[i] = (struct agent_session){
            .pool = &pool, .stage = STAGE_LIVE, .serial = i + 1, .tenant = 1};
        pool.sessions[i].rings.memory = memory;
    }
    agent.pools[0] = &pool;
}

static uint32_t count_workers(const char *body)
{
    uint32_t n = 0;
    for (const char *at = body; (at = strstr(at, "\"waits\":")) != NULL; at++)
        n++;
    return n;
}

/* The next page's cursor. False: there is none. */
static bool next_cursor(const char *body, char out[64])
{
    const char *at = strstr(body, "\"next_cursor\":");
    if (at == NULL)
        return false;
    ck_assert_int_eq(sscanf(at, "\"next_cursor\": \"%63[^\"]", out), 1);
    return true;
}

START_TEST(however_many_are_asked_for_a_page_fits_into_an_answer)
{
    char cursor[64] = "";
    uint32_t workers = 0, pages = 0;
    struct lane_memory *memory = lane_memory_new(1, 1, 1, 1);
    begin(memory);
    do {
        const struct held_request all = {.by = {.world = &world.world, .request = (void *)&world},
                                         .limit = "1000",
                                         .cursor = pages > 0 ? cursor : NULL};
        base_text_reset(&agent.answer);
        agent_leases_look(&agent, &all, false);
        ck_assert_int_eq(answered.status, 200);
        ck_assert_uint_le(answered.length, TAKEN - ENVELOPE);
        workers += count_workers(answered.body);
        pages++;
    } while (next_cursor(answered.body, cursor));
    ck_assert_uint_eq(workers, WORKERS);
    ck_assert_uint_gt(pages, 1);
    free(answered.body);
    free(pool.sessions);
    base_text_fini(&agent.answer);
    lane_memory_free(memory);
}
END_TEST

#define TESTS(T) T(however_many_are_asked_for_a_page_fits_into_an_answer)
KEDGE_CHECK_MAIN("agent.control.worker_pages", TESTS)
