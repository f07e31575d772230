/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/liveness.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"

#define NONE UINT32_MAX

struct entry {
    struct meta_liveness_event event;
    uint32_t older; /* in the same bucket */
    bool dead;      /* superseded by a later one of its node */
};

/* Entries from `first` to `end` are in use, the dead among them until they are swept out, which is
 * when `end` comes to the end of the memory: once for many events. */
struct meta_liveness {
    uint32_t most, room; /* of living ones; of all */
    uint32_t living, first, end;
    uint32_t buckets;  /* a power of two */
    uint32_t *newest;  /* of each bucket */
    uint64_t position; /* of the last one */
    uint64_t dropped;  /* of the last one that was given up for want of room */
    uint64_t generation;
    struct entry *entries;
};

const char *meta_liveness_state_name(enum meta_liveness_state state)
{
    static const char *const names[] = {"live", "expired", "removed"};
    return names[state];
}

const char *meta_certificate_name(enum meta_certificate_use certificate)
{
    static const char *const names[] = {"", "api", "etcd"};
    return names[certificate];
}

const char *meta_certificate_state_name(enum meta_certificate_state state)
{
    static const char *const names[] = {"expiring", "expired", "renewed"};
    return names[state];
}

struct meta_liveness *meta_liveness_new(uint32_t events, uint64_t generation)
{
    struct meta_liveness *l = calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    BASE_ASSERT(events >= 1 && events <= 1u << 24);
    *l = (struct meta_liveness){.most = events,
                                .room = events + events / 2 + META_LIVENESS_OF_NODE,
                                .buckets = 64,
                                .generation = generation};
    while (l->buckets < events)
        l->buckets *= 2;
    l->newest = malloc(l->buckets * sizeof *l->newest);
    l->entries = calloc(l->room, sizeof *l->entries);
    if (l->newest == NULL || l->entries == NULL) {
        meta_liveness_free(l);
        return NULL;
    }
    memset(l->newest, 0xff, l->buckets * sizeof *l->newest); /* NONE */
    return l;
}

void meta_liveness_free(struct meta_liveness *l)
{
    if (l == NULL)
        return;
    free(l->newest);
    free(l->entries);
    free(l);
}

static uint32_t *bucket_of(struct meta_liveness *l, const char *node)
{
    return &l->newest[base_crc32c(0, node, strlen(node)) & (l->buckets - 1)];
}

static void link_entry(struct meta_liveness *l, uint32_t at)
{
    uint32_t *bucket = bucket_of(l, l->entries[at].event.node);
    l->entries[at].older = *bucket;
    *bucket = at;
}

static void kill_entry(struct meta_liveness *l, struct entry *e)
{
    e->dead = true;
    l->living--;
}

static void sweep_dead(struct meta_liveness *l)
{
    uint32_t to = 0;
    memset(l->newest, 0xff, l->buckets * sizeof *l->newest);
    for (uint32_t at = l->first; at < l->end; at++) {
        if (l->entries[at].dead)
            continue;
        if (to != at)
            l->entries[to] = l->entries[at];
        link_entry(l, to++);
    }
    l->first = 0;
    l->end = to;
}

/* Gives up the oldest event of all. */
static void drop_oldest(struct meta_liveness *l)
{
    while (l->entries[l->first].dead)
        l->first++;
    l->dropped = l->entries[l->first].event.position;
    kill_entry(l, &l->entries[l->first++]);
}

/* Gives up what a new event supersedes. Returns how often it has happened already. */
static uint32_t supersede_events(struct meta_liveness *l, const struct meta_liveness_event *event)
{
    uint32_t times = 0, others = 0;
    for (uint32_t *link = bucket_of(l, event->node); *link != NONE && *link >= l->first;) {
        struct entry *e = &l->entries[*link];
        const bool same_node =
            e->event.certificate == event->certificate && strcmp(e->event.node, event->node) == 0;
        const bool same = same_node && e->event.incarnation == event->incarnation &&
                          e->event.state == event->state && e->event.ends_ms == event->ends_ms &&
                          e->event.certificate_state == event->certificate_state;
        if (same)
            times = e->event.times;
        if (same || (same_node && ++others >= META_LIVENESS_OF_NODE)) {
            kill_entry(l, e);
            *link = e->older;
        } else {
            link = &e->older;
        }
    }
    return times;
}

void meta_liveness_add(struct meta_liveness *l, const struct meta_liveness_event *event)
{
    uint32_t times = supersede_events(l, event);
    if (l->living == l->most)
        drop_oldest(l);
    if (l->end == l->room)
        sweep_dead(l);
    BASE_ASSERT(l->end < l->room);
    struct entry *e = &l->entries[l->end];
    *e = (struct entry){.event = *event};
    e->event.position = ++l->position;
    e->event.times = times + (times < UINT32_MAX);
    link_entry(l, l->end++);
    l->living++;
}

const struct meta_liveness_event *meta_liveness_after(const struct meta_liveness *l,
                                                      uint64_t position)
{
    uint32_t low = l->first, high = l->end;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (l->entries[middle].event.position > position)
            high = middle;
        else
            low = middle + 1;
    }
    while (low < l->end && l->entries[low].dead)
        low++;
    return low < l->end ? &l->entries[low].event : NULL;
}

uint64_t meta_liveness_newest(const struct meta_liveness *l)
{
    return l->position;
}

uint64_t meta_liveness_dropped(const struct meta_liveness *l)
{
    return l->dropped;
}

bool meta_liveness_has(const struct meta_liveness *l, uint64_t position)
{
    return position >= l->dropped && position <= l->position;
}

uint64_t meta_liveness_generation(const struct meta_liveness *l)
{
    return l->generation;
}
