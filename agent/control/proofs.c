/* SPDX-License-Identifier: Apache-2.0 */
/* Now and then one READ, of a metaserver's table or of one of the endpoints that a metaserver
 * names, shows whether this node's fabric works (agent/lane/resolve/prove.c does it, reach.c keeps
 * what is known). What fails is a condition: shown, logged when it begins and ends, and said to the
 * metaservers, which decide whom to blame. Nothing expires by it. Where they blame this node its DC
 * targets are made anew, since its device may not say that one broke (unreached.h).
 *
 * Of the own pool alone: the others have the same port. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "control/world_log.h"
#include "due.h"
#include "lane_setup.h"
#include "bounds.h"
#include "metaserver_call.h"
#include "proofs.h"
#include "register.h"

enum {
    TELL_PERIODS = 6,     /* metaservers are told again; */
    TELL_MOST_MS = 30000, /* at the latest. They forget what they hear after 120 s */
    KEEP_ROUNDS = 3,      /* what cannot be tried is believed no longer than so many rounds */
    ANSWER_BYTES = 8192,
    NODE_ID_MOST = 63,
    MOST_MS = 2000000000,
    JITTER_PARTS = 4 /* a proof comes up to so large a part of the period earlier or later */
};

static struct pool *own_pool(const struct agent *a)
{
    return a->pools[0];
}

/* ---- proving */

static void put_off(struct agent *a, uint64_t now)
{
    const uint64_t period = a->config.prove_ns, part = period / JITTER_PARTS;
    a->proofs.due_ns = now + period - part + base_prng_below(&a->proofs.random, 2 * part + 1);
}

static void prove_next(struct agent *a)
{
    struct proofs *f = &a->proofs;
    f->place = agent_reach_next(&f->reach);
    if (f->place < 0)
        return;
    const struct agent_reach_target *t = &f->reach.at[f->place];
    struct lane_command c = {.kind = LANE_COMMAND_PROVE,
                             .prove = {.tag = ++f->tag,
                                       .metaserver = t->peer ? LANE_PROVE_ENDPOINT : t->metaserver,
                                       .fresh_ns = a->config.prove_ns}};
    memcpy(c.prove.gid, t->gid, sizeof c.prove.gid);
    memcpy(f->gid, t->gid, sizeof f->gid);
    f->under_way = true;
    agent_pool_command(own_pool(a), &c);
}

static void log_news(struct world *w, const struct agent_reach_target *t,
                     enum agent_reach_news news, uint64_t for_ms)
{
    char gid[BASE_GID_TEXT] = "-";
    const char *what = t->peer ? "node" : "metaserver";
    if (t->peer)
        (void)base_gid_format(t->gid, gid);
    if (news == AGENT_REACH_FAILS || news == AGENT_REACH_OTHER)
        world_log(w, BASE_LOG_WARN, "the fabric does not lead there", "%s=\"%s\" gid=%s why=\"%s\"",
                  what, t->name, gid, agent_reach_why(t->status));
    else if (news == AGENT_REACH_AGAIN)
        world_log(w, BASE_LOG_INFO, "the fabric leads there again",
                  "%s=\"%s\" gid=%s after_ms=%llu", what, t->name, gid, (unsigned long long)for_ms);
    else if (news == AGENT_REACH_GONE)
        world_log(w, BASE_LOG_INFO, "what the fabric did not lead to is not there any more",
                  "%s=\"%s\" gid=%s", what, t->name, gid);
}

void agent_proofs_event(struct pool *p, const struct lane_event *e)
{
    struct agent *a = p->agent;
    struct proofs *f = &a->proofs;
    const uint64_t now = world_now_ns(a->world);
    if (!f->under_way || e->proved.tag != f->tag)
        return;
    f->under_way = false;
    put_off(a, now);
    const struct agent_reach_target *t = &f->reach.at[f->place];
    if (!t->used || memcmp(t->gid, f->gid, sizeof f->gid) != 0) /* it is another's place by now */
        return;
    /* One that has lost the node for now may be just one that is not reached. */
    const int status = e->proved.status == -ENOENT && !t->peer ? -EAGAIN : e->proved.status;
    const uint64_t since_ns = t->since_ns;
    if (status == -ETIMEDOUT && !t->peer)
        agent_registrations_unreached(a, t->metaserver);
    const enum agent_reach_news news = agent_reach_note(
        &f->reach, f->place, status, now, KEEP_ROUNDS * AGENT_REACH_TARGETS * a->config.prove_ns);
    if (news == AGENT_REACH_SAME)
        return;
    log_news(a->world, t, news, (now - since_ns) / BASE_NS_PER_MS);
    memset(f->tell_ns, 0, sizeof f->tell_ns);
}

/* ---- told */

static json_t *describe_target(const struct agent_reach_target *t, uint64_t now)
{
    char gid[BASE_GID_TEXT];
    json_t *o = json_object();
    if (t->peer)
        json_object_set_new(o, "gid", json_string(base_gid_format(t->gid, gid)));
    if (t->since_ns != 0) {
        json_object_set_new(o, "for_ms",
                            json_integer((json_int_t)((now - t->since_ns) / BASE_NS_PER_MS)));
        json_object_set_new(o, "error", json_string(agent_reach_error(t->status)));
    }
    return o;
}

/* What one metaserver hears: of itself, and of the endpoints. */
static char *describe_targets(const struct agent *a, uint32_t metaserver, uint64_t now)
{
    json_t *targets = json_array();
    json_t *root = json_pack("{s:I, s:i, s:o}", "incarnation", (json_int_t)a->incarnation, "pool",
                             (int)own_pool(a)->number, "targets", targets);
    for (int i = 0; i < AGENT_REACH_TARGETS; i++) {
        const struct agent_reach_target *t = &a->proofs.reach.at[i];
        if (!t->used || t->known_ns == 0)
            continue;
        if (t->peer)
            json_array_append_new(targets, describe_target(t, now));
        else if (t->metaserver == metaserver)
            json_object_set_new(root, "table", describe_target(t, now));
    }
    char *text = root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

/* The endpoints that a metaserver names, to be proven from now on. */
static void take_peers(struct agent *a, const json_t *root)
{
    struct agent_reach_peer peers[AGENT_REACH_PEERS];
    uint32_t count = 0;
    size_t i;
    json_t *list = json_object_get(root, "prove"), *one;
    json_array_foreach(list, i, one)
    {
        const char *gid = json_string_value(json_object_get(one, "gid"));
        const char *name = json_string_value(json_object_get(one, "node"));
        if (count < AGENT_REACH_PEERS && gid != NULL && name != NULL &&
            base_parse_name(name, NODE_ID_MOST) == 0 && base_gid_parse(gid, peers[count].gid) == 0)
            snprintf(peers[count++].name, sizeof peers[0].name, "%s", name);
    }
    if (json_is_array(list))
        agent_reach_peers(&a->proofs.reach, peers, count);
}

/* ---- this node is not reached */

/* Another target is no help where it is this node that reaches nothing, by a port that is down or a
 * wire that is cut; and one that is being made is waited for. */
static bool may_help(const struct agent *a)
{
    const struct agent_reach_counts c = agent_reach_count(&a->proofs.reach);
    return !own_pool(a)->device.rc && !a->address.down && !a->address.gone &&
           a->readdressing == 0 && c.tried > c.failing;
}

static void log_unreached(struct world *w, const struct agent_unreached *u)
{
    if (u->is)
        world_log(w, BASE_LOG_WARN, "most nodes that tried do not reach this one over the fabric",
                  "by=%u tried_by=%u", u->by, u->tried_by);
    else
        world_log(w, BASE_LOG_INFO, "other nodes reach this one again", "targets_anew=%llu",
                  (unsigned long long)u->anew);
}

static uint64_t bounded_ns(json_int_t for_ms)
{
    return (uint64_t)(for_ms < MOST_MS ? for_ms : MOST_MS) * BASE_NS_PER_MS;
}

/* Of all pools: what broke the target of one may have broken those that nobody proves. */
static void heed_others(struct agent *a, const json_t *root)
{
    struct agent_unreached *u = &a->proofs.unreached;
    const json_t *said = json_object_get(root, "unreached");
    const json_int_t by = json_integer_value(json_object_get(said, "by")),
                     tried_by = json_integer_value(json_object_get(said, "tried_by")),
                     for_ms = json_integer_value(json_object_get(said, "for_ms"));
    const uint64_t now = world_now_ns(a->world);
    const bool sound = by > 0 && by <= tried_by && tried_by <= UINT32_MAX && for_ms >= 0;
    if (agent_unreached_hear(u, sound ? (uint32_t)by : 0, sound ? (uint32_t)tried_by : 0,
                             sound ? bounded_ns(for_ms) : 0, now))
        log_unreached(a->world, u);
    if (!agent_unreached_may(u, now) || !may_help(a))
        return;
    agent_unreached_heed(u, now, AGENT_REACH_TARGETS * a->config.prove_ns);
    world_log(a->world, BASE_LOG_WARN,
              "most nodes do not reach this one, and it reaches others: its DC targets are made "
              "anew, in case one broke and the device did not say so",
              "by=%u tried_by=%u again_s=%llu", u->by, u->tried_by,
              (unsigned long long)(u->wait_ns / BASE_NS_PER_S));
    a->retarget_wanted = true;
}

/* The first one that has this node names them. */
static bool is_first(const struct agent *a, const struct registration *r)
{
    const struct registration *first = own_pool(a)->registration;
    while (first < r && first->state != REGISTRATION_DONE)
        first++;
    return first == r;
}

static void on_told(void *user, const struct http_answer *answer)
{
    struct registration *r = user;
    struct agent *a = r->pool->agent;
    r->pool->calls--;
    a->proofs.telling &= ~(1u << (r - r->pool->registration));
    if (a->stopping || answer->status != 200 || !is_first(a, r))
        return; /* an older metaserver knows no such path; others are told again anyway */
    json_t *root = json_loads(answer->body, 0, NULL);
    take_peers(a, root);
    heed_others(a, root);
    json_decref(root);
}

static void tell_metaserver(struct agent *a, uint32_t i, uint64_t now)
{
    struct registration *r = &own_pool(a)->registration[i];
    char url[METASERVER_URL_BYTES];
    snprintf(url, sizeof url, "%s/v1/nodes/%s/reach", r->url, a->config.node);
    struct http_call c = agent_metaserver_call(a, "PUT", url, CALL_MS);
    char *body = describe_targets(a, i, now);
    if (body == NULL)
        return;
    c.body = body;
    c.body_length = strlen(body);
    c.max_response_bytes = ANSWER_BYTES;
    if (world_call(a->world, &c, on_told, r, NULL) == 0) {
        r->pool->calls++;
        a->proofs.telling |= 1u << i;
    }
    free(body);
}

static bool may_prove(const struct agent *a)
{
    return a->config.prove_ns != 0 && !a->stopping && !a->device_lost &&
           agent_registrations_count(own_pool(a)) > 0;
}

/* Never: it is being told, or has not this node. */
static uint64_t tell_due_ns(const struct agent *a, uint32_t i)
{
    const struct proofs *f = &a->proofs;
    return due_if(own_pool(a)->registration[i].state == REGISTRATION_DONE &&
                      !(f->telling & 1u << i),
                  f->tell_ns[i]);
}

uint64_t agent_proofs_due_ns(const struct agent *a)
{
    const struct proofs *f = &a->proofs;
    uint64_t due_ns = due_if(!f->under_way, f->due_ns);
    if (!may_prove(a))
        return DUE_NEVER;
    for (uint32_t i = 0; i < a->config.metaservers; i++)
        due_ns = due_first(due_ns, tell_due_ns(a, i));
    return f->begun ? due_ns : DUE_NOW;
}

void agent_proofs_tick(struct agent *a)
{
    struct proofs *f = &a->proofs;
    const uint64_t now = world_now_ns(a->world), period = a->config.prove_ns;
    if (!may_prove(a))
        return;
    if (!f->begun) {
        f->begun = true;
        base_prng_seed(&f->random, now ^ (uint64_t)a->incarnation << 32);
        for (uint32_t i = 0; i < a->config.metaservers; i++)
            agent_reach_metaserver(&f->reach, i, a->config.metaserver[i]);
        f->due_ns = now + base_prng_below(&f->random, period); /* a rack comes up at once */
    }
    uint64_t again_ns = TELL_PERIODS * period;
    if (again_ns > TELL_MOST_MS * BASE_NS_PER_MS)
        again_ns = TELL_MOST_MS * BASE_NS_PER_MS;
    for (uint32_t i = 0; i < a->config.metaservers; i++)
        if (now >= tell_due_ns(a, i)) {
            f->tell_ns[i] = now + again_ns;
            tell_metaserver(a, i, now);
        }
    if (!f->under_way && now >= f->due_ns) {
        put_off(a, now);
        prove_next(a);
    }
}

void agent_proofs_forgotten(struct agent *a, uint32_t metaserver)
{
    a->proofs.tell_ns[metaserver] = 0;
}

/* ---- shown */

static const char *state_of(const struct agent *a, const struct agent_reach_counts *c)
{
    return a->config.prove_ns == 0 ? "off"
           : c->tried == 0         ? "unknown"
           : c->failing > 0        ? "failing"
                                   : "ok";
}

static void status_unreached(const struct agent_unreached *u, uint64_t now, struct base_text *t)
{
    if (u->is) {
        base_json_object(t, "unreached");
        base_json_u64(t, "by", u->by);
        base_json_u64(t, "tried_by", u->tried_by);
        base_json_u64(t, "for_ms", (now - u->since_ns) / BASE_NS_PER_MS);
        base_json_object_end(t);
    }
    base_json_u64(t, "targets_anew", u->anew);
}

void agent_proofs_status(const struct agent *a, struct base_text *t)
{
    const struct agent_reach_counts c = agent_reach_count(&a->proofs.reach);
    const uint64_t now = world_now_ns(a->world);
    char gid[BASE_GID_TEXT];
    base_json_object(t, "fabric");
    base_json_string(t, "state", state_of(a, &c));
    base_json_u64(t, "tried", c.tried);
    base_json_u64(t, "failing", c.failing);
    base_json_array(t, "towards");
    for (int i = 0; i < AGENT_REACH_TARGETS; i++) {
        const struct agent_reach_target *r = &a->proofs.reach.at[i];
        if (!r->used || r->since_ns == 0)
            continue;
        base_json_object(t, NULL);
        base_json_string(t, "name", r->name);
        base_json_string(t, "kind", r->peer ? "node" : "metaserver");
        base_json_u64(t, "for_ms", (now - r->since_ns) / BASE_NS_PER_MS);
        base_json_string(t, "error", agent_reach_error(r->status));
        base_json_string(t, "why", agent_reach_why(r->status));
        if (r->peer)
            base_json_string(t, "gid", base_gid_format(r->gid, gid));
        base_json_object_end(t);
    }
    base_json_array_end(t);
    status_unreached(&a->proofs.unreached, now, t);
    base_json_object_end(t);
}

void agent_proofs_metrics(const struct agent *a, struct base_text *t)
{
    const struct agent_reach_counts c = agent_reach_count(&a->proofs.reach);
    base_metric_one(t, "kedge_agent_fabric_targets", BASE_METRIC_GAUGE,
                    "Nodes and metaservers of which it is known whether the fabric leads there.",
                    c.tried);
    base_metric_one(t, "kedge_agent_fabric_failing", BASE_METRIC_GAUGE,
                    "Of them, those that it does not lead to.", c.failing);
    base_metric_one(t, "kedge_agent_fabric_unreached_by", BASE_METRIC_GAUGE,
                    "Nodes that do not reach this one, where they are two and more, and most that "
                    "tried; else 0.",
                    a->proofs.unreached.by);
    base_metric_one(t, "kedge_agent_targets_anew_total", BASE_METRIC_COUNTER,
                    "How often DC targets were made anew because most nodes did not reach this "
                    "one.",
                    a->proofs.unreached.anew);
}
