/* SPDX-License-Identifier: Apache-2.0 */
#include "request/raises.h"

#include <errno.h>

#include "lane_state.h"
#include "request/reply.h"

static void show_value(struct session *s, const struct counter *c)
{
    atomic_store_explicit(&s->ro->counter[c - s->memory->counters], c->value, memory_order_release);
}

/* A name of 0 is none. */
static struct counter *find_free(const struct session *s)
{
    for (uint32_t i = 0; i < SCHEMA_COUNTERS; i++)
        if (s->memory->counters[i].name == 0)
            return &s->memory->counters[i];
    return NULL;
}

static int make_counter(struct lane *l, struct session *s, struct counter **out)
{
    struct counter *c = find_free(s);
    struct {
        uint64_t secret;
        uint32_t name;
    } random = {0};
    if (l->messages == NULL)
        return -EOPNOTSUPP;
    if (c == NULL)
        return -EDQUOT;
    if (l->random_fill(l->random_user, &random, sizeof random) != 0)
        return -EAGAIN;
    *c = (struct counter){.name = (uint64_t)(random.name | 1) << 32 |
                                  (uint64_t)(s->id & 0xffff) << 16 |
                                  (uint64_t)(c - s->memory->counters),
                          .secret = random.secret};
    show_value(s, c);
    *out = c;
    return 0;
}

static int free_counter(struct session *s, uint64_t name)
{
    const uint32_t number = schema_counter_number(name);
    if (name == 0 || number >= SCHEMA_COUNTERS || s->memory->counters[number].name != name)
        return -ENOENT;
    s->memory->counters[number] = (struct counter){.name = 0};
    return 0;
}

void lane_counter_ask(struct lane *l, struct session *s, const struct schema_sq_desc *d)
{
    struct counter *c = NULL;
    const int status =
        d->op == SCHEMA_OP_COUNTER_NEW ? make_counter(l, s, &c) : free_counter(s, d->counter.name);
    lane_session_reply(l, s, status, 0, c != NULL ? c->name : 0, c != NULL ? c->secret : 0, NULL);
}

/* Without a branch that says how much of the secret was right. */
struct counter *lane_counter_find(struct lane *l, const struct schema_message *m,
                                  struct session **owner)
{
    const uint32_t session = m->to >> 16 & 0xffff, number = schema_counter_number(m->to);
    if (session >= l->config.max_sessions || number >= SCHEMA_COUNTERS)
        return NULL;
    struct session *s = &l->sessions[session];
    if (s->state != SESSION_LIVE)
        return NULL;
    struct counter *c = &s->memory->counters[number];
    if (((c->name ^ m->to) | (c->secret ^ m->secret)) != 0)
        return NULL;
    *owner = s;
    return c;
}

void lane_counter_raise(struct lane *l, struct session *owner, struct counter *c)
{
    c->value += c->value != UINT64_MAX;
    show_value(owner, c);
    atomic_fetch_add_explicit(&owner->ro->raised, 1, memory_order_release);
    lane_session_tell_now(l, owner);
}
