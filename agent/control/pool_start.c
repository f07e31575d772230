/* SPDX-License-Identifier: Apache-2.0 */
#include "pool_start.h"

#include <errno.h>
#include <string.h>

#include "agent.h"
#include "base/assert.h"
#include "control/world_log.h"
#include "lane_setup.h"
#include "peer_setup.h"
#include "pool.h"
#include "prewarm.h"
#include "schema/peers.h"
#include "schema/table.h"
#include "sessions.h"

static int format_peers(struct pool *p, struct base_errbuf *err)
{
    uint64_t seed;
    const int status = world_random(p->world, &seed, sizeof seed);
    if (status != 0)
        return base_err(err, status, "the peer table cannot be made: %s", strerror(-status));
    schema_peers_format(p->peers.table, (uint32_t)p->config->max_peers, seed);
    return 0;
}

static int begin_serving(struct pool *p, struct base_errbuf *err)
{
    int status = format_peers(p, err);
    if (status == 0)
        status = agent_pool_start_lane(p, err);
    if (status == 0)
        status = agent_peer_setup_start(p, err);
    if (status == 0)
        status = agent_sessions_start(p, err);
    if (status == 0)
        agent_sessions_refill(p);
    return status;
}

static void open_device(struct pool *p)
{
    struct pool_start *s = &p->start;
    s->stage = START_OPENING;
    const int status = world_device(p->world, WORLD_DEVICE_OPEN, p, &s->err);
    if (status != 0)
        agent_pool_device_opened(p, status, &s->err);
}

static void on_memory(void *user)
{
    struct pool *p = user;
    p->works--;
}

/* It takes some ms, and on a busy host much longer: the own one's is made before anybody waits. */
static void begin_making(struct pool *p, struct world_task *making)
{
    making->done = on_memory;
    making->user = p;
    if (pool_is_own(p)) {
        world_run_here(p->world, making);
        return;
    }
    p->works++;
    world_run(p->world, making);
}

/* What was made of the peer table for the first try is there for the one as the file says. */
static void make_memory(struct pool *p)
{
    struct pool_start *s = &p->start;
    const uint32_t log2 = schema_table_log2_slots((uint32_t)p->config->max_mrs);
    s->stage = START_MEMORY;
    s->making =
        (struct world_task){.work = WORLD_MAKE_ARENA,
                            .arena = {.memory = &s->table, .bytes = schema_table_bytes(log2)}};
    if (p->first == NULL)
        begin_making(p, &s->making);
    if (p->peers.table != NULL)
        return;
    p->peers.bytes = schema_peers_bytes((uint32_t)p->config->max_peers);
    s->making_peers = (struct world_task){.work = WORLD_MAKE_PEERS, .peers = &p->peers};
    begin_making(p, &s->making_peers);
}

static void use_memory(struct pool *p)
{
    struct pool_start *s = &p->start;
    struct base_errbuf why;
    int status = s->making.status;
    if (status != 0) {
        (void)agent_device_why(p->world, status, &why);
        (void)base_err(&s->err, status, "the memory of the MR table cannot be made: %.380s",
                       why.text);
    } else if ((status = s->making_peers.status) != 0) {
        (void)base_err(&s->err, status, "the peer table cannot be made: %s", strerror(-status));
    }
    if (status == 0)
        open_device(p);
    else
        agent_pool_device_opened(p, status, &s->err);
}

void agent_pool_start_fini(struct pool *p)
{
    if (p->start.table.addr != NULL)
        fab_mem_free(&p->start.table);
}

void agent_pool_start_begin(struct pool *p)
{
    p->stage = POOL_STARTING;
    p->start = (struct pool_start){.begun_ns = world_now_ns(p->world),
                                   .address_news = p->agent->address_news,
                                   .mtu = p->agent->port.mtu};
    make_memory(p);
}

void agent_pool_device_opened(struct pool *p, int status, const struct base_errbuf *err)
{
    struct pool_start *s = &p->start;
    s->stage = START_OPENED;
    s->status = status;
    if (status != 0 && err != &s->err)
        s->err = *err;
}

/* What operators say elsewhere must not keep this agent from starting. */
static void retire_desired(struct pool *p)
{
    world_log(p->world, BASE_LOG_ERROR,
              "the device cannot be opened as the pool is set: as the file says",
              "pool=%s dcis=%u spares=%u connections=%u responders=%u error=\"%s\"", p->name,
              p->prewarm.dcis, p->prewarm.spares, p->prewarm.connections, p->prewarm.responders,
              p->start.err.text);
    p->start.stage = START_RETIRING;
    (void)world_device(p->world, WORLD_DEVICE_RETIRE, p, NULL);
}

static void open_as_file(struct pool *p)
{
    (void)world_device(p->world, WORLD_DEVICE_CLOSE, p, NULL);
    agent_prewarm_own(p);
    p->start.as_file = true;
    agent_pool_start_fini(p); /* if it has not come that far */
    make_memory(p);
}

/* Those that there are then hear of a change, and no pool that is just being made. */
static bool is_outdated(const struct pool *p)
{
    const struct agent *a = p->agent;
    return p->start.address_news != a->address_news || p->start.mtu != a->port.mtu;
}

static void use_device(struct pool *p)
{
    struct pool_start *s = &p->start;
    if (s->status != 0 && !s->as_file && agent_prewarm_is_desired(p))
        retire_desired(p);
    else
        s->stage = s->status == 0 ? START_READY : START_OVER;
}

bool agent_pool_start_is_over(const struct pool *p)
{
    return p->start.stage == START_READY || p->start.stage == START_OVER;
}

bool agent_pool_start_step(struct pool *p)
{
    const struct pool_start *s = &p->start;
    while (p->fab_ops == 0 && p->works == 0 && !agent_pool_start_is_over(p))
        if (s->stage == START_MEMORY) {
            use_memory(p);
        } else if (s->stage == START_OPENED) {
            use_device(p);
        } else {
            BASE_ASSERT(s->stage == START_RETIRING); /* OPENING has an operation under way */
            open_as_file(p);
        }
    return agent_pool_start_is_over(p);
}

int agent_pool_start_serve(struct pool *p)
{
    struct pool_start *s = &p->start;
    if (s->stage == START_READY && is_outdated(p))
        s->status = base_err(&s->err, -ESTALE, "the device has another address or MTU meanwhile");
    else if (s->stage == START_READY)
        s->status = begin_serving(p, &s->err);
    s->stage = START_OVER;
    return s->status;
}
