/* SPDX-License-Identifier: Apache-2.0 */
/* Registration with every metaserver: put, and put again when a metaserver has forgotten; and what
 * its answer says of its table goes to the lane. renew.c keeps it. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "base/clock.h"
#include "control/world_log.h"
#include "fabric/limits.h"
#include "lane_setup.h"
#include "bounds.h"
#include "metaserver_call.h"
#include "pool.h"
#include "pool_lanes.h"
#include "pools.h"
#include "prefer.h"
#include "publications.h"
#include "register.h"
#include "register_json.h"
#include "register_private.h"
#include "superseded.h"
#include "table_initiators.h"

static void try_later(struct registration *r);
static void complete_registration(struct registration *r);
static void look_again(struct registration *r);

static struct pool *own_pool(const struct agent *a)
{
    return a->pools[0];
}

/* ---- what follows */

/* Whether what is over was begun before this node had another address. */
static bool is_stale(struct registration *r)
{
    const bool stale = r->readdressed;
    r->readdressed = false;
    return stale;
}

static void submit_address(struct registration *r, void (*done)(struct fab_ctl *ctl))
{
    r->resolve.done = done;
    r->resolve.user = r;
    r->resolving = true;
    r->pool->fab_ops++;
    fab_submit(r->pool->device.fab, &r->resolve);
}

static void on_dropped(struct fab_ctl *ctl)
{
    struct registration *r = ctl->user;
    r->pool->fab_ops--;
    r->resolving = false;
    (void)is_stale(r); /* of what comes now nothing was begun yet */
    if (!r->pool->stopping)
        agent_registration_put(r);
}

/* False: it was begun before this node had another address, and goes again. */
static bool take_address(struct registration *r, struct fab_ctl *ctl)
{
    struct pool *p = r->pool;
    p->fab_ops--;
    r->resolving = false;
    r->resolved_ns = world_now_ns(p->world);
    if (is_stale(r)) {
        if (ctl->status == 0) {
            r->resolve = (struct fab_ctl){.kind = FAB_DESTROY_AH, .ah = {.x = ctl->ah.x}};
            submit_address(r, on_dropped);
        } else if (!p->stopping) {
            agent_registration_put(r);
        }
        return false;
    }
    if (ctl->status == 0) {
        r->address = ctl->ah.attr;
        r->before = r->lane.ah;
        r->before_lanes = agent_lanes_count(r->pool);
        r->lane.ah = ctl->ah.x;
    }
    return true;
}

/* There may be no way there, or the device makes no more handles. */
static void lose_address(struct registration *r, int status)
{
    struct base_errbuf why;
    (void)fab_limit_explain(status, UINT64_MAX, "", &why);
    char text[sizeof r->why];
    snprintf(text, sizeof text, "its endpoint's address cannot be resolved: %.400s", why.text);
    agent_registration_lose(r, text);
}

static void on_address(struct fab_ctl *ctl)
{
    struct registration *r = ctl->user;
    if (!take_address(r, ctl) || r->pool->stopping)
        return;
    if (ctl->status == 0)
        complete_registration(r);
    else
        lose_address(r, ctl->status);
}

static void on_address_again(struct fab_ctl *ctl)
{
    struct registration *r = ctl->user;
    if (!take_address(r, ctl) || r->pool->stopping)
        return;
    if (ctl->status == 0) /* whatever it is meanwhile: who has the former one gives it back */
        agent_prefer_tell_lane(r->pool);
    if (r->state == REGISTRATION_ASKING) /* it was lost meanwhile, and put while this was out */
        agent_registration_put(r);
}

/* A handle has the MAC that its GID had when it was made: of the metaserver's host, or of a router
 * on the way, and either may have another one while all else is as it was. */
static void resolve_again(struct registration *r)
{
    const uint64_t now_ns = world_now_ns(r->pool->world);
    if (r->state != REGISTRATION_DONE || r->lane.ah == NULL || !r->address.is_global ||
        r->before != NULL || r->putting || r->resolving ||
        now_ns < r->resolved_ns + RESOLVE_AGAIN_MS * BASE_NS_PER_MS)
        return;
    r->resolve = (struct fab_ctl){.kind = FAB_CREATE_AH,
                                  .ah = {.pd = r->pool->device.system_pd, .attr = r->address}};
    submit_address(r, on_address_again);
}

/* A handle per metaserver address; kept when it comes back with the same one. The one before is the
 * lane's until that gives it back, and no other is made meanwhile. Resolving may take seconds. */
static void make_ah(struct registration *r, const struct table_initiator_peer *peer)
{
    struct pool *p = r->pool;
    const struct ibv_ah_attr wanted = fab_address(p->device.fab, peer->gid, peer->lid);
    if (r->lane.ah != NULL && fab_address_is_same(&r->address, &wanted)) {
        complete_registration(r);
        return;
    }
    if (r->before != NULL) {
        agent_registration_lose(r, "the lane has not given its former address back yet");
        return;
    }
    r->resolve =
        (struct fab_ctl){.kind = FAB_CREATE_AH, .ah = {.pd = p->device.system_pd, .attr = wanted}};
    submit_address(r, on_address);
}

void agent_registration_lose(struct registration *r, const char *why)
{
    /* At once; then other reasons, a few a minute, until it is registered again. One that was held
     * back is said when its turn comes, if it still holds. */
    const bool news = r->why[0] == '\0';
    uint32_t suppressed;
    if (news && r->said_registered)
        r->log = (struct base_log_limit){0};
    r->unsaid = r->unsaid || news || base_log_is_news(r->why, why);
    if (r->unsaid && base_log_allow(&r->log, world_now_ns(r->pool->world),
                                    LOSS_LOGGED_S * BASE_NS_PER_S, LOSSES_LOGGED, &suppressed)) {
        r->unsaid = false;
        world_log(r->pool->world, BASE_LOG_WARN, "not registered",
                  "pool=%s lane=%u metaserver=\"%s\" why=\"%s\" suppressed=%u", r->pool->name,
                  r->pool->lane_number, r->url, why, suppressed);
    }
    if (r->offered != NULL)
        agent_table_initiator_withdraw(r->offered);
    r->offered = NULL;
    snprintf(r->why, sizeof r->why, "%s", why);
    r->quiet[0] = '\0';
    const bool was_sound = r->state == REGISTRATION_DONE;
    r->state = REGISTRATION_LOST;
    if (was_sound)
        agent_prefer_tell_lane(r->pool);
    try_later(r);
    agent_registration_end_turn(r);
}

void agent_registration_come_again(struct registration *r, uint32_t after_s)
{
    struct world *w = r->pool->world;
    const uint64_t ms =
        1000 * (uint64_t)(after_s < RETRY_AFTER_MAX_S ? after_s : RETRY_AFTER_MAX_S);
    uint32_t random = 0;
    (void)world_random(w, &random, sizeof random); /* else at once */
    world_timer_after(w, &r->timer, (ms + random % (1000 + ms / 4)) * BASE_NS_PER_MS);
}

/* That it is crowded says nothing against it: the next try is no later for that. */
static void put_off(struct registration *r, const struct http_answer *answer, const char *why)
{
    const uint64_t backoff_ms = r->backoff_ms, ms = 1000 * (uint64_t)answer->retry_after_s;
    agent_registration_lose(r, why);
    agent_registration_begin_turn(r, ms < TURN_PUT_OFF_MS ? ms : TURN_PUT_OFF_MS);
    r->backoff_ms = backoff_ms;
    agent_registration_come_again(r, answer->retry_after_s);
}

void agent_registration_refuse(struct registration *r, const struct http_answer *answer)
{
    char why[sizeof r->why];
    r->late = answer->status == -ETIMEDOUT;
    if (answer->status >= 0)
        r->late_ms = 0;
    if (answer->status < 0) {
        agent_registration_lose(r, answer->why);
        return;
    }
    json_t *problem = json_loads(answer->body, 0, NULL);
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    const char *field = json_string_value(json_object_get(problem, "field"));
    if (detail == NULL)
        detail = "refused";
    if (answer->status != 409 || !agent_registration_is_superseded(r, problem, &detail)) {
        snprintf(why, sizeof why, "%d: %.60s%s%s", answer->status, field != NULL ? field : "",
                 field != NULL ? ": " : "", detail);
        agent_register_json_explain(r, why, sizeof why);
        if (answer->retry_after_s > 0)
            put_off(r, answer, why);
        else
            agent_registration_lose(r, why);
    }
    json_decref(problem);
}

/* A metaserver that forgets the node again and again does not fill its log. */
static void say_registered(struct registration *r)
{
    uint32_t suppressed;
    r->said_registered =
        base_log_allow(&r->registered_log, world_now_ns(r->pool->world),
                       LOSS_LOGGED_S * BASE_NS_PER_S, REGISTRATIONS_LOGGED, &suppressed);
    if (r->said_registered)
        world_log(r->pool->world, BASE_LOG_INFO, "registered",
                  "pool=%s metaserver=\"%s\" incarnation=%u suppressed=%u", r->pool->name, r->url,
                  r->pool->agent->incarnation, suppressed);
}

/* There is a way to what has answered: both are in force from now on. */
static void complete_registration(struct registration *r)
{
    r->lane.dctn = r->answered.dctn;
    r->lane.dc_key = r->answered.dc_key;
    r->lane.table = r->answered.table;
    r->lane.names = r->answered.names;
    say_registered(r);
    r->state = REGISTRATION_DONE;
    r->pool->agent->was_registered |= r->pool == own_pool(r->pool->agent);
    /* The agent's token may be another one than at the start. */
    agent_registrations_look_at_token(r->pool->agent);
    r->why[0] = '\0';
    r->told = r->tell_ns = 0; /* it may have forgotten that too */
    agent_registration_answered(r, r->put_ns);
    agent_prefer_tell_lane(r->pool);
    agent_registration_end_turn(r);
    agent_publications_registered(r->pool->agent, (uint32_t)(r - r->pool->registration),
                                  pool_endpoint(r->pool)->place);
    look_again(r);
    agent_registration_look_with_others(r);
}

static void on_registered(void *user, const struct http_answer *answer)
{
    struct registration *r = user;
    struct table_initiator_peer peer = {.qpn = 0};
    struct table_initiator *offered = r->offered;
    r->pool->calls--;
    r->putting = false;
    if (r->pool->stopping)
        return;
    if (is_stale(r) && offered != NULL) { /* the metaserver has connected to the former address */
        agent_table_initiator_withdraw(offered);
        r->offered = NULL;
        agent_registration_put(r);
        return;
    }
    if (answer->status != 200 && answer->status != 201) {
        agent_registration_refuse(r, answer);
        return;
    }
    if (offered == NULL && r->pool->device.rc) { /* withdrawn: it was lost while this was put */
        agent_registration_put(r);
        return;
    }
    const char *why = agent_register_json_understand(r, answer->body, &peer);
    if (why != NULL) {
        agent_registration_lose(r, why);
        return;
    }
    r->standing = agent_register_json_standing(answer->body);
    if (offered != NULL) {
        r->offered = NULL;
        agent_table_initiator_raise(offered, &peer);
        return;
    }
    make_ah(r, &peer);
}

void agent_registration_initiator_up(struct registration *r, struct table_initiator *initiator,
                                     int status)
{
    if (is_stale(r)) {
        if (status == 0)
            agent_table_initiator_drop(initiator);
        agent_registration_put(r);
        return;
    }
    if (status != 0) {
        agent_registration_lose(
            r, "the queue pair to its table cannot be connected: is its endpoint on this network?");
        return;
    }
    r->lane.qp = initiator->qp;
    complete_registration(r);
}

void agent_registration_initiator_lost(struct registration *r)
{
    r->lane.qp = NULL;
    if (r->pool->stopping)
        return;
    agent_prefer_tell_lane(r->pool);
    for (int i = 0; i < 2; i++) /* another one is on its way */
        if (r->initiator[i].state == INITIATOR_OFFERED ||
            r->initiator[i].state == INITIATOR_RAISING)
            return;
    agent_registration_lose(
        r, "the queue pair to its table broke: it may have restarted, or cannot be reached");
}

void agent_registrations_look_at_token(struct agent *a)
{
    struct base_errbuf why;
    const bool open = !world_token_is_private(a->world, &why);
    if (open && !a->token_is_open)
        world_log(a->world, BASE_LOG_WARN, "others may read the token", "reason=\"%s\"", why.text);
    a->token_is_open = open;
}

int agent_registration_call(struct registration *r, const char *method, const char *tail,
                            const char *body, uint32_t ms, http_done done, struct base_errbuf *why)
{
    struct pool *p = r->pool;
    char url[METASERVER_URL_BYTES];
    snprintf(url, sizeof url, "%s/v1/nodes/%s%s", r->url, p->config->node, tail);
    struct http_call c = agent_metaserver_call(p->agent, method, url, ms);
    c.body = body;
    c.body_length = strlen(body);
    const int status = world_call(p->world, &c, done, r, NULL);
    p->calls += status == 0;
    if (status == 0)
        return 0;
    if (status == -ENOKEY && world_has_token(p->world, p->device.fab->caps.gid, why))
        return base_err(why, status, "its token_file held no token a moment ago");
    if (status == -EPERM)
        return base_err(why, status,
                        "no token over plain HTTP: https://, or allow_plain_tokens = "
                        "yes");
    return status == -ENOKEY ? status : base_err(why, status, "too many HTTP calls at once");
}

static uint32_t patience_ms(const struct registration *r)
{
    const uint64_t third_ms = r->answered.lease_ms / 3;
    if (r->late_ms == 0 || third_ms <= CALL_MS)
        return CALL_MS;
    return third_ms < LATE_CALL_MS ? (uint32_t)third_ms : LATE_CALL_MS;
}

/* False: it cannot be asked, and is lost. */
static bool put_body(struct registration *r, const char *body, http_done done)
{
    struct base_errbuf why;
    const int status = agent_registration_call(r, "PUT", "", body, patience_ms(r), done, &why);
    if (status != 0)
        agent_registration_lose(r, why.text);
    return status == 0;
}

void agent_registration_put(struct registration *r)
{
    /* Several renewals may hear at once that the metaserver has forgotten. */
    if (r->offered != NULL || r->putting || r->resolving)
        return;
    /* Targets and tables of the former address, under the new incarnation, would be what tells
     * this process from others: what is put later would be another's, and refused. */
    r->held = r->pool->agent->readdressing > 0;
    if (r->held || agent_registration_must_wait(r))
        return;
    if (r->pool->device.rc) {
        r->offered = agent_table_initiator_offer(r);
        const uint64_t rests_ms = r->offered == NULL ? agent_table_initiator_rests_ms(r) : 0;
        if (rests_ms > 0) {
            world_timer_after(r->pool->world, &r->timer, rests_ms * BASE_NS_PER_MS);
            return;
        }
        if (r->offered == NULL) {
            agent_registration_lose(r,
                                    "both queue pairs for its table are in use or being repaired");
            return;
        }
    }
    r->endpoints = r->pool->agent->endpoints;
    char *body = agent_register_json_describe(r->pool, r->offered);
    if (body == NULL) {
        agent_registration_lose(r, "out of memory");
        return;
    }
    r->put_ns = world_now_ns(r->pool->world);
    agent_registration_begin_turn(r, agent_registration_turn_ms(r));
    r->putting = put_body(r, body, on_registered);
    free(body);
}

uint64_t agent_registration_backoff_ms(struct registration *r)
{
    const bool late = r->late;
    const uint64_t third_ms = r->answered.lease_ms / 3;
    const uint64_t most_ms = !late ? BACKOFF_MAX_MS : third_ms != 0 ? third_ms : LATE_MAX_MS;
    uint64_t *next_ms = late ? &r->late_ms : &r->backoff_ms, ms;
    uint32_t random = 0;
    *next_ms = late && *next_ms == 0 ? LATE_MS : *next_ms;
    ms = *next_ms < most_ms ? *next_ms : most_ms;
    *next_ms = 2 * ms < most_ms ? 2 * ms : most_ms;
    if (third_ms != 0 && ms > third_ms)
        ms = third_ms;
    r->late = false;
    (void)world_random(r->pool->world, &random, sizeof random); /* else none */
    return ms - random % (ms / 2 + 1);
}

/* Lost: another try, each later than the one before. */
static void try_later(struct registration *r)
{
    world_timer_after(r->pool->world, &r->timer,
                      agent_registration_lost_pause_ms(r) * BASE_NS_PER_MS);
}

static void on_timer(void *user)
{
    struct registration *r = user;
    if (r->state == REGISTRATION_DONE) {
        agent_registration_renew(r);
        return;
    }
    r->state = REGISTRATION_ASKING;
    agent_registration_put(r);
}

void agent_registrations_start(struct pool *p)
{
    if (pool_registered(p) != p)
        return;
    const uint32_t count = p->config->metaservers, first = agent_registration_first(p);
    for (uint32_t i = 0; i < count; i++) {
        struct registration *r = &p->registration[i];
        r->pool = p;
        r->url = p->config->metaserver[i];
        r->state = REGISTRATION_ASKING;
        r->backoff_ms = BACKOFF_MS;
        r->turn_ns = 0;
        r->timer = (struct world_timer){.fired = on_timer, .user = r};
    }
    agent_nearness_begin(p);
    for (uint32_t i = 0; i < count; i++)
        agent_registration_put(&p->registration[(first + i) % count]);
}

static bool is_raising(const struct registration *r)
{
    return r->initiator[0].state == INITIATOR_RAISING || r->initiator[1].state == INITIATOR_RAISING;
}

/* What is under way goes to its end first, and is not used. */
void agent_registrations_readdress(struct pool *p)
{
    if (p->device.rc) /* the lane gives them up, and others are offered */
        agent_pool_command(p, &(struct lane_command){.kind = LANE_COMMAND_METASERVERS});
    for (uint32_t i = 0; i < p->config->metaservers; i++) {
        struct registration *r = &p->registration[i];
        if (p->device.rc) {
            r->readdressed |= r->putting || is_raising(r);
            continue;
        }
        memset(&r->address, 0, sizeof r->address); /* it is resolved anew */
        r->readdressed |= r->resolving;
        if (r->state == REGISTRATION_DONE)
            agent_registration_put(r);
    }
}

/* ---- the node's endpoints, without a table initiator: they change while the one that there is
 * goes on */

static void endpoints_told(void *user, const struct http_answer *answer)
{
    struct registration *r = user;
    r->pool->calls--;
    r->announcing = false;
    if (r->pool->stopping || r->state != REGISTRATION_DONE)
        return;
    if (answer->status == 200 || answer->status == 201) {
        if (!agent_register_json_is_of_table(r, answer->body))
            agent_registration_put(r);
        else
            look_again(r);
    } else if (agent_registration_is_no_answer(answer->status)) {
        r->endpoints--; /* told again when it answers */
        agent_registration_unanswered(r, answer);
    } else {
        agent_registration_refuse(r, answer);
    }
}

/* Of the own pool, which is there as long as the agent. */
void agent_registration_tell_endpoints(struct registration *r)
{
    const struct agent *a = r->pool->agent;
    if (r->state != REGISTRATION_DONE || r->announcing || r->endpoints == a->endpoints ||
        a->readdressing > 0)
        return;
    char *body = agent_register_json_describe(r->pool, NULL);
    if (body == NULL) {
        agent_registration_lose(r, "out of memory");
        return;
    }
    r->endpoints = a->endpoints;
    r->announcing = put_body(r, body, endpoints_told);
    free(body);
}

/* What was put may have taken the place of something newer. */
static void look_again(struct registration *r)
{
    const struct agent *a = r->pool->agent;
    struct registration *first = &own_pool(a)->registration[r - r->pool->registration];
    if (r->endpoints == a->endpoints)
        return;
    first->endpoints = r->endpoints;
    agent_registration_tell_endpoints(first);
}

bool agent_registrations_take_back(struct pool *p, const struct fab_ah *ah)
{
    for (uint32_t i = 0; i < p->config->metaservers; i++) {
        struct registration *r = &pool_endpoint(p)->registration[i];
        if (r->before != ah)
            continue;
        if (--r->before_lanes > 0)
            return false;
        r->before = NULL;
    }
    return true;
}

void agent_registrations_note_lookups(struct pool *p)
{
    uint64_t failed = 0;
    if (pool_registered(p) != p)
        return;
    for (const struct pool *l = p; l != NULL; l = p->device.rc ? NULL : agent_pools_next_lane(p, l))
        failed += lane_lookups_failed(l->lane);
    agent_registrations_note_failed(p, failed);
}

void agent_registrations_note_failed(struct pool *p, uint64_t failed)
{
    const bool more = failed != p->lookups_failed;
    p->lookups_failed = failed;
    for (uint32_t i = 0; more && i < p->config->metaservers; i++)
        if (p->registration[i].state == REGISTRATION_DONE) {
            agent_registration_look_soon(&p->registration[i]);
            resolve_again(&p->registration[i]);
        }
}

void agent_registrations_unreached(struct agent *a, uint32_t metaserver)
{
    for (uint32_t i = 0; i < POOLS; i++)
        if (pool_has_begun(a->pools[i]) && a->pools[i]->registration[metaserver].pool != NULL)
            resolve_again(&a->pools[i]->registration[metaserver]);
}

/* While the address changes nothing is put or told: this follows when that is over. */
void agent_registrations_changed(struct agent *a)
{
    for (uint32_t k = 0; a->readdressing == 0 && k < POOLS; k++)
        for (uint32_t i = 0; a->pools[k] != NULL && i < a->config.metaservers; i++)
            if (a->pools[k]->registration[i].held && !a->pools[k]->stopping)
                agent_registration_put(&a->pools[k]->registration[i]);
    for (uint32_t i = 0; i < a->config.metaservers; i++)
        if (own_pool(a)->registration[i].state == REGISTRATION_DONE)
            agent_registration_tell_endpoints(&own_pool(a)->registration[i]);
}
