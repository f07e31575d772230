/* SPDX-License-Identifier: Apache-2.0 */
#include "moves.h"

#include "agent.h"
#include "pool_lanes.h"
#include "pools.h"
#include "random.h"
#include "session_moves.h"
#include "session_state.h"
#include "transfers.h"

enum {
    IDLE_PPM = 20000, /* of looks, a session with nothing out */
    OUT_PPM = 500000  /* one that has requests out */
};

/* One that has several lanes; NULL: none has. */
static struct pool *choose_pool(const struct agent *a, struct base_prng *random)
{
    struct pool *found[POOLS];
    uint32_t n = 0;
    for (struct pool *p = agent_pools_next_endpoint(a, NULL); p != NULL;
         p = agent_pools_next_endpoint(a, p))
        if (agent_lanes_count(p) > 1 && pool_has_begun(p) && p->sessions != NULL)
            found[n++] = p;
    return n > 1 ? found[base_prng_below(random, n)] : n == 1 ? found[0] : NULL;
}

static struct pool *choose_lane(struct pool *endpoint, struct base_prng *random)
{
    uint32_t n = base_prng_below(random, agent_lanes_count(endpoint));
    struct pool *p = endpoint;
    while (n-- > 0)
        p = agent_pools_next_lane(endpoint, p);
    return p;
}

static uint32_t count_out(const struct agent_session *s)
{
    const _Atomic uint32_t *out = s->rings.memory->shown.inflight;
    return out != NULL ? *out : 0;
}

/* The first one from a place on that has requests out, or else any. */
static struct agent_session *choose_session(const struct pool *p, struct base_prng *random)
{
    const uint32_t places = (uint32_t)p->config->max_sessions;
    const uint32_t from = base_prng_below(random, places);
    struct agent_session *found = NULL;
    for (uint32_t i = 0; i < places && (found == NULL || count_out(found) == 0); i++) {
        struct agent_session *s = &p->sessions[(from + i) % places];
        if (s->stage == STAGE_LIVE)
            found = s;
    }
    return found;
}

/* Of an agent in this life; less than before: it is another one, or a pool of it has gone. */
static void count_moves(const struct agent *a, uint64_t *seen)
{
    uint64_t moved = 0;
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        moved += p->moves.moved;
    play_transfers_add(moved > *seen ? moved - *seen : 0);
    *seen = moved;
}

void play_move_sessions(struct agent *a, struct base_prng *random, uint64_t *seen)
{
    struct pool *endpoint = a->stopping ? NULL : choose_pool(a, random);
    if (endpoint == NULL)
        return;
    count_moves(a, seen);
    struct pool *from = choose_lane(endpoint, random), *to = choose_lane(endpoint, random);
    struct agent_session *s = choose_session(from, random);
    if (s == NULL || !play_random_happens(random, count_out(s) > 0 ? OUT_PPM : IDLE_PPM))
        return;
    if (s->move != NULL)
        agent_session_call_home(s, false);
    else if (to != from)
        agent_session_move(s, to);
}
