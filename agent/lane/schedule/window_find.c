/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/window_find.h"

#include "lane_state.h"
#include "schedule/window.h"

enum {
    DEVICE_FLOOR = 8, /* or one for each active tenant */
    DEVICE_FLOOR_MOST = 256,
    DESTINATION_FLOOR = 4,
    BEGIN_WANTED = 2 * DEVICE_FLOOR,
    IDLE_LOOKS = 64,       /* until it stops to be counted */
    GIVEN_UP_LOOKS = 2000, /* until a destination's place is another's */
    FLOWS = 64,            /* of these are looked at, for more places */
    OTHERS_PART = 8,       /* of what is wanted: less to others is nothing */
    NS_PER_MS = 1000000,
    REST_LEAST_MS = 500,
    REST_MOST_MS = 16000,
    REST_ROUND_MS = 8,
    REST_STRANGE = 4, /* rounds, or looks */
    REST_HASTY_MS = 32,
    REST_HASTY_MOST = 6, /* doublings */
    REST_STRANGE_PERCENT = 30
};

static struct window_search *device_search(struct lane *l)
{
    return &l->search.at[0];
}

static void begin_search(struct lane *l, struct window_search *s, struct window *n)
{
    *s = (struct window_search){.of = n, .done_work = n->done_work, .done_ops = n->done_ops};
    lane_window_finder_begin(&s->finder, l->search.policy);
    n->search = (uint8_t)(1 + (s - l->search.at));
}

static void end_search(struct lane *l, struct window_search *s)
{
    s->of->search = 0;
    lane_window_set_found(l, s->of, 0);
    s->of = NULL;
    s->finder.explores = false;
}

void lane_window_forget_search(struct lane *l, struct window *n)
{
    if (n->search != 0)
        end_search(l, &l->search.at[n->search - 1]);
}

/* ---- which destinations */

static bool has_much(const struct window *n)
{
    return WINDOW_GET(n->ops) + WINDOW_GET(n->waiting) > DESTINATION_FLOOR;
}

static struct window_search *free_place(struct lane *l)
{
    struct window_search *idle = NULL;
    for (uint32_t i = 1; i < WINDOW_SEARCHES; i++) {
        struct window_search *s = &l->search.at[i];
        if (s->of == NULL)
            return s;
        if (s->idle_looks >= GIVEN_UP_LOOKS && (idle == NULL || s->idle_looks > idle->idle_looks))
            idle = s;
    }
    if (idle != NULL)
        end_search(l, idle);
    return idle;
}

static void look_for_destinations(struct lane *l)
{
    const uint32_t ever = flows_ever(l);
    for (uint32_t i = 0; i < FLOWS && i < ever; i++) {
        l->search.hand = l->search.hand + 1 < ever ? l->search.hand + 1 : 0;
        const struct flow *f = &l->flows[l->search.hand];
        if (!f->used || f->window == NULL || f->window->search != 0 || !has_much(f->window))
            continue;
        struct window_search *s = free_place(l);
        if (s == NULL)
            return;
        begin_search(l, s, f->window);
    }
}

/* ---- what they are told */

/* Whether another one tries sizes, or the device's window is to come first. */
static bool others_explore(const struct lane *l, const struct window_search *self)
{
    const struct window_search *device = &l->search.at[0];
    if (self != device && device->finder.waits)
        return true;
    for (uint32_t i = 0; i < WINDOW_SEARCHES; i++)
        if (&l->search.at[i] != self && l->search.at[i].of != NULL &&
            l->search.at[i].finder.explores)
            return true;
    return false;
}

static void tell_search(struct lane *l, struct window_search *s, struct window_sample *sample)
{
    struct window *n = s->of;
    sample->work = n->done_work - s->done_work;
    sample->ops = (uint32_t)(n->done_ops - s->done_ops);
    s->done_work = n->done_work;
    s->done_ops = n->done_ops;
    sample->may_explore = !others_explore(l, s);
    lane_window_finder_take(&s->finder, sample);
    lane_window_set_found(l, n, s->finder.size);
}

/* What is slowed least of all: then the device is to blame at most for that. */
static uint32_t least_slowed(const struct lane *l)
{
    uint32_t least = 0;
    for (uint32_t i = 1; i < WINDOW_SEARCHES; i++) {
        const struct window_search *s = &l->search.at[i];
        if (s->of != NULL && s->idle_looks == 0 && s->finder.slowed != 0 &&
            (least == 0 || s->finder.slowed < least))
            least = s->finder.slowed;
    }
    return least;
}

static void tell_device(struct lane *l, uint64_t ns, uint32_t wanted)
{
    const uint32_t tenants = l->active_tenant_count;
    struct window_sample sample = {.ns = ns,
                                   .out = (uint32_t)WINDOW_GET(l->device_window->ops),
                                   .wanted = wanted,
                                   .slowed = least_slowed(l),
                                   .shared = true};
    sample.floor = tenants < DEVICE_FLOOR        ? DEVICE_FLOOR
                   : tenants < DEVICE_FLOOR_MOST ? tenants
                                                 : DEVICE_FLOOR_MOST;
    tell_search(l, device_search(l), &sample);
}

/* Of all ways to its endpoint. */
static uint32_t count_out(const struct flow *first)
{
    uint32_t out = 0;
    for (const struct flow *f = first; f != NULL; f = f->siblings)
        out += f->outstanding;
    for (const struct flow *f = first->twin; f != NULL; f = f->siblings)
        out += f->outstanding;
    return out;
}

static void tell_destination(struct lane *l, struct window_search *s, uint64_t ns, uint32_t wanted)
{
    const struct flow *f = &l->flows[s->of - l->flow_windows];
    struct window_sample sample = {
        .ns = ns,
        .out = count_out(f),
        .wanted = (uint32_t)(WINDOW_GET(s->of->ops) + WINDOW_GET(s->of->waiting)),
        .floor = DESTINATION_FLOOR};
    s->idle_looks = has_much(s->of) ? 0 : s->idle_looks + 1;
    if (sample.wanted + wanted / OTHERS_PART > wanted) {
        /* No window but the device's; what was found is forgotten, since it was beside others. */
        if (s->finder.size != 0)
            begin_search(l, s, s->of);
        lane_window_set_found(l, s->of, 0);
        s->finder.explores = s->finder.waits = false;
        s->done_work = s->of->done_work;
        s->done_ops = s->of->done_ops;
        return;
    }
    tell_search(l, s, &sample);
}

/* ---- rest */

static bool finds_nothing(const struct window_search *s)
{
    return s->of == NULL || s->idle_looks > 0 || (s->finder.size == 0 && !s->finder.explores);
}

/* The device's has tried, and no destination has a size, tries some or would. */
static bool is_content(const struct lane *l)
{
    if (!l->search.at[0].finder.content)
        return false;
    for (uint32_t i = 1; i < WINDOW_SEARCHES; i++)
        if (!finds_nothing(&l->search.at[i]) || l->search.at[i].finder.waits)
            return false;
    return true;
}

static uint64_t count_completed(const struct lane *l)
{
    return atomic_load_explicit(&l->counters.completed, memory_order_relaxed);
}

static void begin_rest(struct lane *l, uint32_t wanted)
{
    const struct window_rest before = l->search.rest;
    const uint64_t least_ns = (uint64_t)REST_LEAST_MS * NS_PER_MS,
                   most_ns = (uint64_t)REST_MOST_MS * NS_PER_MS;
    uint64_t for_ns = before.for_ns == 0 ? least_ns : 2 * before.for_ns;
    for_ns = for_ns < most_ns ? for_ns : most_ns;
    l->search.rests = 1;
    l->search.rest = (struct window_rest){
        .for_ns = for_ns,
        .until_ns = l->now_ns + for_ns,
        .wanted = wanted,
        .hasty = before.hasty,
        .more_spent = before.more_spent,
        .not_before_ns = l->now_ns + ((uint64_t)REST_HASTY_MS * NS_PER_MS << before.hasty),
        .completed = count_completed(l)};
}

static bool is_another_rate(struct window_rest *r, uint64_t rate)
{
    const uint64_t was = r->rate, part = was * REST_STRANGE_PERCENT / 100;
    r->strange = was != 0 && (rate < was - part || rate > was + part) ? r->strange + 1 : 0;
    if (r->strange == 0)
        r->rate = was == 0 ? rate : (7 * was + rate) / 8;
    return r->strange >= REST_STRANGE;
}

/* Whether the load is another one. */
static bool is_another_load(struct window_rest *r, uint64_t ns, uint64_t ended, uint32_t wanted)
{
    r->more = wanted > 2 * r->wanted ? r->more + 1 : 0;
    if (r->more >= REST_STRANGE)
        return true;
    r->ns += ns;
    r->ended += ended;
    if (r->ns < (uint64_t)REST_ROUND_MS * NS_PER_MS)
        return false;
    const uint64_t rate = r->ended * 1000 / (r->ns / NS_PER_MS);
    r->ns = r->ended = 0;
    return is_another_rate(r, rate);
}

/* Sizes are to be tried anew. */
static bool rest_is_over(struct lane *l, uint64_t ns, uint32_t wanted)
{
    struct window_rest *r = &l->search.rest;
    const uint64_t completed = count_completed(l), ended = completed - r->completed;
    r->completed = completed;
    if (wanted <= BEGIN_WANTED)
        return false;
    const bool another = ns <= WINDOW_AWAY_NS && is_another_load(r, ns, ended, wanted);
    const bool more = r->more >= REST_STRANGE && !r->more_spent;
    if (another && (more || l->now_ns >= r->not_before_ns)) {
        r->for_ns = 0;
        r->more_spent |= more;
        r->hasty += !more && r->hasty < REST_HASTY_MOST;
        return true;
    }
    if (l->now_ns < r->until_ns)
        return false;
    r->hasty -= r->hasty > 0;
    r->more_spent = false;
    return true;
}

/* ---- each look */

static void stop_searches(struct lane *l)
{
    for (uint32_t i = 0; i < WINDOW_SEARCHES; i++)
        if (l->search.at[i].of != NULL)
            lane_window_set_found(l, l->search.at[i].of, 0);
    l->search.on = 0;
    lane_windows_switch(l);
}

static void start_searches(struct lane *l)
{
    l->search.on = 1;
    l->search.idle_looks = 0;
    lane_windows_switch(l);
    for (uint32_t i = 0; i < WINDOW_SEARCHES; i++) {
        struct window_search *s = &l->search.at[i];
        if (s->of == NULL)
            continue;
        s->done_work = s->of->done_work;
        s->done_ops = s->of->done_ops;
        lane_window_set_found(l, s->of, s->finder.size);
    }
    if (device_search(l)->of == NULL || l->search.rests)
        begin_search(l, device_search(l), l->device_window);
    l->search.rests = 0;
}

void lane_windows_find(struct lane *l, uint32_t wanted)
{
    const uint64_t ns = l->now_ns - l->search.look_ns;
    l->search.look_ns = l->now_ns;
    if (!l->search.on) {
        if (l->search.rests ? rest_is_over(l, ns, wanted) : wanted > BEGIN_WANTED)
            start_searches(l);
        return;
    }
    l->search.idle_looks = wanted > DEVICE_FLOOR ? 0 : l->search.idle_looks + 1;
    if (l->search.idle_looks >= IDLE_LOOKS) {
        stop_searches(l);
        return;
    }
    look_for_destinations(l);
    tell_device(l, ns, wanted);
    for (uint32_t i = 1; i < WINDOW_SEARCHES; i++)
        if (l->search.at[i].of != NULL)
            tell_destination(l, &l->search.at[i], ns, wanted);
    if (l->search.at[0].finder.size != 0)
        l->search.rest.for_ns = 0;
    if (is_content(l)) {
        stop_searches(l);
        begin_rest(l, wanted);
    }
}

void lane_windows_choose(struct lane *l, enum lane_window_policy which)
{
    for (uint32_t i = 0; i < WINDOW_SEARCHES; i++)
        if (l->search.at[i].of != NULL)
            end_search(l, &l->search.at[i]);
    l->search.policy = lane_window_policy(which);
    l->search.look_ns = l->now_ns;
    l->search.on = l->search.rests = 0;
    l->search.rest.for_ns = 0;
    lane_windows_switch(l);
}
