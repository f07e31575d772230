/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "control/reach.h"

static struct agent_reach_target *find_peer(struct agent_reach *r, const uint8_t gid[16])
{
    for (int i = 0; i < AGENT_REACH_TARGETS; i++)
        if (r->at[i].used && r->at[i].peer && memcmp(r->at[i].gid, gid, sizeof r->at[i].gid) == 0)
            return &r->at[i];
    return NULL;
}

static struct agent_reach_target *find_unused(struct agent_reach *r)
{
    for (int i = 0; i < AGENT_REACH_TARGETS; i++)
        if (!r->at[i].used)
            return &r->at[i];
    return NULL;
}

static bool is_among(const struct agent_reach_target *t, const struct agent_reach_peer *peers,
                     uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (memcmp(t->gid, peers[i].gid, sizeof t->gid) == 0)
            return true;
    return false;
}

void agent_reach_peers(struct agent_reach *r, const struct agent_reach_peer *peers, uint32_t count)
{
    BASE_ASSERT(count <= AGENT_REACH_PEERS);
    for (int i = 0; i < AGENT_REACH_TARGETS; i++)
        if (r->at[i].used && r->at[i].peer && !is_among(&r->at[i], peers, count))
            r->at[i].used = false;
    for (uint32_t i = 0; i < count; i++) {
        struct agent_reach_target *t = find_peer(r, peers[i].gid);
        if (t == NULL) {
            t = find_unused(r);
            BASE_ASSERT(t != NULL);
            *t = (struct agent_reach_target){.used = true, .peer = true};
            memcpy(t->gid, peers[i].gid, sizeof t->gid);
        }
        snprintf(t->name, sizeof t->name, "%s", peers[i].name);
    }
}

void agent_reach_metaserver(struct agent_reach *r, uint32_t number, const char *url)
{
    struct agent_reach_target *t = find_unused(r);
    BASE_ASSERT(t != NULL);
    *t = (struct agent_reach_target){.used = true, .metaserver = number};
    snprintf(t->name, sizeof t->name, "%s", url);
}

int agent_reach_next(struct agent_reach *r)
{
    for (int i = 0; i < AGENT_REACH_TARGETS; i++) {
        const uint32_t place = r->next;
        r->next = (r->next + 1) % AGENT_REACH_TARGETS;
        if (r->at[place].used)
            return (int)place;
    }
    return -1;
}

static enum agent_reach_news forget_target(struct agent_reach_target *t)
{
    const bool was_failing = t->since_ns != 0;
    t->known_ns = t->since_ns = 0;
    t->status = 0;
    return was_failing ? AGENT_REACH_GONE : AGENT_REACH_SAME;
}

enum agent_reach_news agent_reach_note(struct agent_reach *r, int place, int status,
                                       uint64_t now_ns, uint64_t keep_ns)
{
    struct agent_reach_target *t = &r->at[place];
    const uint64_t before_ns = t->known_ns;
    const int before = t->status;
    if (!t->used)
        return AGENT_REACH_SAME;
    if (status == -EAGAIN)
        return before_ns != 0 && now_ns - before_ns > keep_ns ? forget_target(t) : AGENT_REACH_SAME;
    if (status == -ENOENT)
        return forget_target(t);
    t->known_ns = now_ns;
    t->status = status;
    if (status == 0) {
        t->since_ns = 0;
        return before_ns == 0 ? AGENT_REACH_KNOWN
               : before != 0  ? AGENT_REACH_AGAIN
                              : AGENT_REACH_SAME;
    }
    if (t->since_ns == 0) {
        t->since_ns = now_ns;
        return AGENT_REACH_FAILS;
    }
    return status != before ? AGENT_REACH_OTHER : AGENT_REACH_SAME;
}

struct agent_reach_counts agent_reach_count(const struct agent_reach *r)
{
    struct agent_reach_counts c = {.tried = 0};
    for (int i = 0; i < AGENT_REACH_TARGETS; i++) {
        const struct agent_reach_target *t = &r->at[i];
        if (!t->used || t->known_ns == 0)
            continue;
        c.tried++;
        c.failing += t->since_ns != 0;
        if (t->since_ns != 0 && (c.since_ns == 0 || t->since_ns < c.since_ns))
            c.since_ns = t->since_ns;
    }
    return c;
}

const char *agent_reach_error(int status)
{
    switch (status) {
    case 0:
        return "";
    case -ETIMEDOUT:
        return "timeout";
    case -EREMOTEIO:
        return "refused";
    case -EIO:
        return "device";
    default:
        return "unreachable";
    }
}

const char *agent_reach_why(int status)
{
    switch (status) {
    case 0:
        return "";
    case -ETIMEDOUT:
        return "it does not answer";
    case -EREMOTEIO:
        return "it refuses to be READ";
    case -EIO:
        return "this node's device refuses the READ";
    default:
        return "there is no path to it";
    }
}
