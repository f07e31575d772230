/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that a session has imported: looked for by key and secret, whoever chose them. */
#include "resolve/grants.h"

#include <string.h>

#include "base/hash.h"
#include "lane_state.h"
#include "session_state.h"

static uint32_t *bucket_of(const struct session *s, uint32_t vkey, const uint8_t secret[16])
{
    return &s->memory->grant_first[base_hash_gid(secret, vkey, s->memory->grant_seed) &
                                   s->memory->grant_mask];
}

/* In the same time whatever it is. */
static bool is_same(const struct grant *g, uint32_t vkey, const uint8_t secret[16])
{
    uint8_t differs = 0;
    for (int b = 0; b < 16; b++)
        differs |= (uint8_t)(g->secret[b] ^ secret[b]);
    return g->vkey == vkey && differs == 0;
}

bool lane_grant_is_there(const struct session *s, uint32_t vkey, const uint8_t secret[16])
{
    if (s->grants_used == 0)
        return false;
    for (uint32_t i = *bucket_of(s, vkey, secret); i != 0; i = s->memory->grant_next[i - 1])
        if (is_same(&s->grants[i - 1], vkey, secret))
            return true;
    return false;
}

bool lane_grant_add(struct lane *l, struct session *s, uint32_t vkey, const uint8_t secret[16])
{
    if (lane_grant_is_there(s, vkey, secret))
        return true;
    if (s->grants_used == l->config.max_grants)
        return false;
    uint32_t *first = bucket_of(s, vkey, secret);
    struct grant *g = &s->grants[s->grants_used];
    g->vkey = vkey;
    memcpy(g->secret, secret, sizeof g->secret);
    s->memory->grant_next[s->grants_used] = *first;
    *first = ++s->grants_used;
    return true;
}

/* The place, or the head of the list, that names this one. */
static uint32_t *link_to(const struct session *s, uint32_t place)
{
    const struct grant *g = &s->grants[place];
    uint32_t *at = bucket_of(s, g->vkey, g->secret);
    while (*at != place + 1)
        at = &s->memory->grant_next[*at - 1];
    return at;
}

/* The last one takes its place. */
static void remove_grant(struct session *s, uint32_t place)
{
    const uint32_t last = s->grants_used - 1;
    *link_to(s, place) = s->memory->grant_next[place];
    if (place != last) {
        *link_to(s, last) = place + 1;
        s->grants[place] = s->grants[last];
        s->memory->grant_next[place] = s->memory->grant_next[last];
    }
    memset(&s->grants[last], 0, sizeof s->grants[last]);
    s->grants_used = last;
}

bool lane_grant_remove(struct session *s, uint32_t vkey)
{
    const uint32_t had = s->grants_used;
    for (uint32_t i = had; i > 0; i--)
        if (s->grants[i - 1].vkey == vkey)
            remove_grant(s, i - 1);
    return s->grants_used < had;
}
