/* SPDX-License-Identifier: Apache-2.0 */
#include "raises.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "liar.h"

enum { COUNTERS = 1 << 14 };

static struct {
    struct play_counter *counter[COUNTERS];
    uint32_t count;
    uint64_t raised;
} all;

void play_counters_begin(void)
{
    all.raised = 0;
}

void play_counters_end(void)
{
    for (uint32_t i = 0; i < all.count; i++)
        free(all.counter[i]);
    all.count = 0;
}

struct play_counter *play_counter_open(const char *owner, const char *token, bool one)
{
    struct play_counter *c = calloc(1, sizeof *c);
    BASE_ASSERT(c != NULL && all.count < COUNTERS);
    (void)snprintf(c->owner, sizeof c->owner, "%s", owner);
    (void)snprintf(c->token, sizeof c->token, "%s", token);
    c->live = true;
    c->one = one;
    return all.counter[all.count++] = c;
}

void play_counter_close(struct play_counter *c, bool told)
{
    if (c == NULL)
        return;
    c->live = false;
    c->gone_ns = told ? play_now_ns() : 0;
}

static bool may_take(const struct play_counter *c, const char *owner, bool dead)
{
    if (dead)
        return c->gone_ns != 0;
    return c->live && !(c->one && c->taken) && (owner == NULL || strcmp(c->owner, owner) == 0);
}

struct play_counter *play_counter_take(struct base_prng *r, const char *owner, bool dead)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < all.count; i++)
        count += may_take(all.counter[i], owner, dead);
    uint64_t which = count > 0 ? base_prng_below(r, count) : 0;
    for (uint32_t i = 0; i < all.count && count > 0; i++) {
        struct play_counter *c = all.counter[i];
        if (!may_take(c, owner, dead) || which-- > 0)
            continue;
        c->taken = true;
        c->lies |= play_liar_is(play_process->host->number) || play_liar_has_worker(c->owner);
        c->mixed |= c->lies;
        return c;
    }
    return NULL;
}

struct play_counter *play_counter_find(struct base_prng *r)
{
    const uint32_t from = all.count > 0 ? (uint32_t)base_prng_below(r, all.count) : 0;
    for (uint32_t i = 0; i < all.count; i++)
        if (all.counter[(from + i) % all.count]->live)
            return all.counter[(from + i) % all.count];
    return NULL;
}

void play_counter_give(struct play_counter *c)
{
    c->taken = false;
}

void play_counter_post(struct play_counter *c, const struct mail_list *list)
{
    c->open++;
    c->list[(c->sure + c->open) % RAISES_KEPT] = *list;
}

void play_counter_ended(struct play_counter *c, enum mail_end end, uint64_t posted_ns,
                        const char *who)
{
    if (end == MAIL_UNKNOWN || end == MAIL_LEFT) {
        c->mixed = true; /* it may yet come, or never */
        return;
    }
    c->open--;
    if (end != MAIL_TAKEN)
        return;
    if (!c->lies && c->gone_ns != 0 && posted_ns > c->gone_ns)
        play_violation(who, "a counter is raised that is gone");
    c->sure++;
    all.raised++;
}

static void look_at_list(struct play_counter *c, uint64_t raise, const struct play_region *region)
{
    if (c->one && !c->mixed && raise + RAISES_KEPT > c->sure + c->open &&
        !play_list_is_there(&c->list[raise % RAISES_KEPT], region))
        play_violation(c->owner,
                       "a counter was raised behind a list, and not all of that is there");
}

void play_counter_seen(struct play_counter *c, uint64_t value, const struct play_region *region)
{
    if (value < c->seen)
        play_violation(c->owner, "a counter says %llu, and said %llu before",
                       (unsigned long long)value, (unsigned long long)c->seen);
    if (!c->lies && (value < c->sure || value > c->sure + c->open))
        play_violation(
            c->owner, "a counter says %llu, where %llu raises are known to be in and %llu may be",
            (unsigned long long)value, (unsigned long long)c->sure, (unsigned long long)c->open);
    for (uint64_t i = c->seen + 1; i <= value; i++)
        look_at_list(c, i, region);
    c->seen = value;
}

uint64_t play_counters_raised(void)
{
    return all.raised;
}
