/* SPDX-License-Identifier: Apache-2.0 */
/* Names of workers' regions, at metaservers that are late, lose requests or answers, refuse, forget
 * and are started again. Time, the lane's leases and the metaservers are the test's. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "base/clock.h"
#include "base/random.h"
#include "bounds.h"
#include "fabric/provider.h"
#include "pool.h"
#include "publications.h"
#include "register.h"
#include "sessions.h"
#include "world.h"

enum { METASERVERS = 2, SESSIONS = 4, REGIONS = 2, NAMES = 4, CALLS = 256, TENANT = 1 };
static const char NAME[NAMES][8] = {"kv/0", "kv/1", "kv/\xc3\xa4", "taken"};
enum { TAKEN = NAMES - 1 }; /* which is another node's, everywhere and for ever */

/* What was asked of a metaserver. */
struct call {
    bool out, held;   /* held: it was given up, and is still carried out, later */
    uint64_t held_ns; /* until then */
    bool puts;
    uint32_t metaserver, name, vkey;
    http_done done;
    void *user;
};

static struct {
    struct test_world world;
    struct world_ops ops;
    struct agent agent;
    struct pool pool;
    struct fab fab;
    struct agent_session session[SESSIONS];
    char memory[SESSIONS]; /* only its address is looked at */
    enum lane_lease_state state[SESSIONS][REGIONS];
    struct call call[CALLS];
    uint32_t shown[METASERVERS][NAMES]; /* by metaservers: the region's key; 0: none */
    struct {
        uint32_t count;
        int status;
        char why[256];
    } said[SESSIONS]; /* to its worker */
} w;

/* ---- doubles, in whose place the linker puts these */

uint32_t __wrap_lane_leases(const struct lane_memory *memory);
bool __wrap_lane_lease(const struct lane_memory *memory, uint32_t index, struct lane_lease *out);
bool __wrap_lane_lease_grant(const struct lane_memory *memory, uint32_t index,
                             struct lane_lease *lease, struct lane_grant *out);

static uint32_t vkey_of(uint32_t session, uint32_t region)
{
    return 100 + session * REGIONS + region;
}

uint32_t __wrap_lane_leases(const struct lane_memory *memory)
{
    (void)memory;
    return REGIONS;
}

bool __wrap_lane_lease(const struct lane_memory *memory, uint32_t index, struct lane_lease *out)
{
    const size_t session = (size_t)((const char *)memory - w.memory);
    *out = (struct lane_lease){.state = w.state[session][index],
                               .revoked = w.state[session][index] > LANE_LEASE_LIVE,
                               .number = index + 1,
                               .access = SCHEMA_RECORD_READ,
                               .length = 4096};
    return out->state != LANE_LEASE_NONE;
}

bool __wrap_lane_lease_grant(const struct lane_memory *memory, uint32_t index,
                             struct lane_lease *lease, struct lane_grant *out)
{
    const size_t session = (size_t)((const char *)memory - w.memory);
    *out = (struct lane_grant){.vkey = vkey_of((uint32_t)session, index), .vaddr = 4096};
    return __wrap_lane_lease(memory, index, lease);
}

/* ---- metaservers */

static uint32_t name_of(const char *name)
{
    for (uint32_t i = 0; i < NAMES; i++)
        if (strcmp(name, NAME[i]) == 0)
            return i;
    return 0; /* of many, of which no metaserver is looked at */
}

static void read_put(const struct http_call *call, struct call *c)
{
    json_t *root = json_loadb(call->body, call->body_length, JSON_REJECT_DUPLICATES, NULL);
    struct schema_token grant;
    ck_assert_ptr_nonnull(root);
    ck_assert_str_eq(json_string_value(json_object_get(root, "tenant")), "web");
    ck_assert_uint_eq(json_integer_value(json_object_get(root, "incarnation")),
                      w.agent.incarnation);
    ck_assert_int_eq(schema_token_parse(json_string_value(json_object_get(root, "grant")), &grant),
                     0);
    ck_assert(grant.access == SCHEMA_RECORD_READ && grant.length == 4096 && grant.pool == 7);
    c->name = name_of(json_string_value(json_object_get(root, "name")));
    c->vkey = grant.vkey;
    json_decref(root);
}

static int begin_call(struct world *world, const struct http_call *call, http_done done, void *user,
                      uint64_t *id)
{
    struct call *c = w.call;
    char url[128];
    (void)world, (void)id;
    while (c < w.call + CALLS && (c->out || c->held))
        c++;
    ck_assert_ptr_ne(c, w.call + CALLS);
    *c = (struct call){.out = true,
                       .puts = strcmp(call->method, "PUT") == 0,
                       .metaserver = (uint32_t)(call->url[8] - '0'),
                       .done = done,
                       .user = user};
    if (c->puts)
        read_put(call, c);
    else
        for (; c->name < NAMES; c->name++) {
            snprintf(url, sizeof url,
                     "http://m%u/v1/nodes/n/regions?incarnation=%u&tenant=web&name=%s",
                     c->metaserver, w.agent.incarnation,
                     c->name == 2       ? "kv%2F%C3%A4"
                     : c->name == TAKEN ? "taken"
                     : c->name == 0     ? "kv%2F0"
                                        : "kv%2F1");
            if (strcmp(url, call->url) == 0)
                break;
        }
    ck_assert_uint_lt(c->name, NAMES);
    return 0;
}

#define PROBLEM(type) "{\"type\":\"urn:kedge:problem:" type "\",\"detail\":\"it is so\"}"

/* Its status. */
static int carry_out(const struct call *c)
{
    uint32_t *has = &w.shown[c->metaserver][c->name];
    if (!c->puts) {
        const bool found = *has != 0 && *has != 1;
        *has = found ? 0 : *has;
        return found ? 204 : 404;
    }
    if (*has != 0 && *has != c->vkey)
        return 409;
    *has = c->vkey;
    return 201;
}

static void answer_call(struct call *c, int status)
{
    const char *body = status == 409 ? PROBLEM("name-taken")
                       : status == 404
                           ? c->puts ? PROBLEM("register-again") : PROBLEM("unknown-region")
                       : status == 403 ? PROBLEM("over-quota")
                       : status == 507 ? PROBLEM("full")
                       : status == 421 ? PROBLEM("unknown-route") /* a stand-in for 404 */
                                       : "{}";
    const struct http_answer answer = {
        .status = status == 421 ? 404 : status, .why = "it is lost", .body = body};
    c->out = false;
    c->done(c->user, &answer);
}

static struct call *find_call(uint32_t metaserver)
{
    for (struct call *c = w.call; c < w.call + CALLS; c++)
        if (c->out && c->metaserver == metaserver)
            return c;
    return NULL;
}

static void serve(uint32_t metaserver)
{
    for (struct call *c; (c = find_call(metaserver)) != NULL;)
        answer_call(c, carry_out(c));
}

/* ---- the agent */

static void on_said(void *user, int status, const char *why)
{
    const size_t i = (size_t)((struct agent_session *)user - w.session);
    w.said[i].count++;
    w.said[i].status = status;
    snprintf(w.said[i].why, sizeof w.said[i].why, "%s", why);
}

static void on_renewal(void *user)
{
    (void)user;
}

static void begin(uint32_t metaservers)
{
    static const char urls[][10] = {"http://m0", "http://m1"};
    memset(&w, 0, sizeof w);
    test_world_init(&w.world);
    w.ops = *w.world.world.ops;
    w.ops.call = begin_call;
    w.world.world.ops = &w.ops;
    w.world.now_ns = 1000 * BASE_NS_PER_S;
    w.agent.world = w.pool.world = &w.world.world;
    w.agent.incarnation = 9;
    snprintf(w.agent.config.node, sizeof w.agent.config.node, "n");
    w.agent.config.metaservers = metaservers;
    w.agent.tenants.at[0].state = AGENT_TENANT_LIVE;
    w.agent.tenants.at[0].config.id = 5;
    snprintf(w.agent.tenants.at[0].config.name, AGENT_NAME, "web");
    w.agent.pools[0] = &w.pool;
    w.pool.agent = &w.agent;
    w.pool.config = &w.agent.config;
    w.pool.number = 7;
    w.pool.device.fab = &w.fab;
    for (uint32_t i = 0; i < metaservers; i++) {
        w.pool.registration[i] = (struct registration){.pool = &w.pool,
                                                       .url = urls[i],
                                                       .state = REGISTRATION_DONE,
                                                       .timer = {.fired = on_renewal}};
        w.shown[i][TAKEN] = 1;
    }
    for (uint32_t i = 0; i < SESSIONS; i++) {
        w.session[i] = (struct agent_session){.pool = &w.pool,
                                              .stage = STAGE_LIVE,
                                              .tenant = TENANT,
                                              .serial = i,
                                              .pid = 40 + (int)i};
        w.session[i].rings.memory = (struct lane_memory *)&w.memory[i];
        for (uint32_t k = 0; k < REGIONS; k++)
            w.state[i][k] = LANE_LEASE_LIVE;
    }
}

static void end(void)
{
    w.agent.stopping = true;
    for (uint32_t i = 0; i < METASERVERS; i++)
        for (struct call *c; (c = find_call(i)) != NULL;)
            answer_call(c, -ECANCELED);
    agent_publications_stop(&w.agent);
}

/* As the world's loop does: ticks are no less than 20 ms apart. */
static void pass_time(uint64_t ms)
{
    for (const uint64_t end_ns = w.world.now_ns + ms * BASE_NS_PER_MS; w.world.now_ns < end_ns;) {
        const uint64_t due = agent_publications_due_ns(&w.agent);
        uint64_t next = w.world.now_ns + 20 * BASE_NS_PER_MS;
        next = due > next ? due : next;
        test_world_advance(&w.world, (next < end_ns ? next : end_ns) - w.world.now_ns);
        if (agent_publications_due_ns(&w.agent) <= w.world.now_ns)
            agent_publications_tick(&w.agent);
    }
}

static void publish(uint32_t session, uint32_t region, const char *name)
{
    agent_publish(&w.session[session], vkey_of(session, region), name, on_said,
                  &w.session[session]);
}

static void unpublish(uint32_t session, uint32_t region, const char *name)
{
    agent_unpublish(&w.session[session], vkey_of(session, region), name, on_said,
                    &w.session[session]);
}

static void end_session(uint32_t session)
{
    w.session[session].stage = STAGE_ENDING;
    agent_publications_end(&w.session[session]);
}

#define HEARS(session, n, wanted)                                                                  \
    do {                                                                                           \
        ck_assert_uint_eq(w.said[session].count, n);                                               \
        ck_assert_int_eq(w.said[session].status, wanted);                                          \
    } while (0)

/* ---- one after the other */

START_TEST(it_is_published_when_each_metaserver_shows_it_and_the_first_one_decides)
{
    begin(2);
    publish(0, 0, "kv/0");
    ck_assert_ptr_nonnull(find_call(0));
    ck_assert_ptr_null(find_call(1)); /* not before the first has decided */
    serve(0);
    ck_assert_ptr_nonnull(find_call(1));
    ck_assert_uint_eq(w.said[0].count, 0);
    serve(1);
    HEARS(0, 1, 0);
    publish(0, 0, "kv/0"); /* it has it */
    HEARS(0, 2, 0);
    publish(0, 1, "kv/0");
    HEARS(0, 3, -EEXIST);
    publish(1, 0, "kv/0");
    HEARS(1, 1, -EEXIST);
    ck_assert_str_eq(w.said[1].why, "it is of a region of another worker of this node (pid 40)");
    ck_assert_uint_eq(agent_publications_of(&w.session[0], vkey_of(0, 0)), 1);
    unpublish(0, 0, "kv/1");
    HEARS(0, 4, -ENOENT);
    unpublish(0, 0, "kv/0");
    serve(0);
    ck_assert_uint_eq(w.said[0].count, 4);
    serve(1);
    HEARS(0, 5, 0);
    ck_assert(w.shown[0][0] == 0 && w.shown[1][0] == 0);
    ck_assert_uint_eq(w.agent.publications.count, 0);
    end();
}
END_TEST

START_TEST(one_that_another_metaserver_gives_to_another_is_taken_back_at_the_first)
{
    begin(2);
    w.shown[1][0] = 1;
    publish(0, 0, "kv/0");
    serve(0);
    ck_assert_uint_eq(w.shown[0][0], vkey_of(0, 0));
    serve(1);
    HEARS(0, 1, -EEXIST);
    ck_assert_str_eq(w.said[0].why, "it is so");
    serve(0);
    ck_assert_uint_eq(w.shown[0][0], 0);
    ck_assert_uint_eq(w.agent.publications.count, 0);
    end();
}
END_TEST

START_TEST(refusals_have_their_own_errors)
{
    static const struct {
        int answer, status;
    } rows[] = {{403, -EDQUOT}, {507, -ENOSPC}, {421, -EOPNOTSUPP}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(1);
        publish(0, 0, "kv/0");
        answer_call(find_call(0), rows[i].answer);
        HEARS(0, 1, rows[i].status);
        ck_assert_uint_eq(w.agent.publications.count, 0);
        end();
    }
    begin(1);
    publish(0, 0, "");
    HEARS(0, 1, -EINVAL);
    publish(0, 0, "a\nb");
    HEARS(0, 2, -EINVAL);
    agent_publish(&w.session[0], vkey_of(1, 0), "kv/0", on_said, &w.session[0]);
    HEARS(0, 3, -ENOENT); /* another session's */
    w.state[0][0] = LANE_LEASE_REVOKED;
    publish(0, 0, "kv/0");
    HEARS(0, 4, -EACCES);
    w.pool.registration[0].state = REGISTRATION_LOST;
    publish(0, 1, "kv/0");
    HEARS(0, 5, -EHOSTUNREACH);
    end();
}
END_TEST

START_TEST(a_metaserver_that_does_not_answer_is_asked_again_until_its_worker_has_waited_long_enough)
{
    begin(2);
    publish(0, 0, "kv/0");
    for (int i = 0; i < 3; i++) {
        answer_call(find_call(0), 503);
        ck_assert_ptr_nonnull(find_call(1)); /* the next one is asked meanwhile */
        answer_call(find_call(1), -ECONNREFUSED);
        pass_time(800);
    }
    ck_assert_uint_eq(w.said[0].count, 0);
    pass_time(RESOLVE_MS);
    ck_assert_uint_eq(w.said[0].count, 1);
    ck_assert(w.said[0].status == -ETIMEDOUT || w.said[0].status == -EHOSTUNREACH);
    /* What it may have been given all the same is taken back. */
    pass_time(1000);
    for (int i = 0; i < 40; i++, pass_time(1000))
        serve(0), serve(1);
    ck_assert(w.shown[0][0] == 0 && w.shown[1][0] == 0);
    ck_assert_uint_eq(w.agent.publications.count, 0);
    end();
}
END_TEST

START_TEST(one_that_is_silent_keeps_nobody_from_what_another_has_decided)
{
    begin(2);
    publish(0, 0, "kv/0");
    serve(0);
    answer_call(find_call(1), -ETIMEDOUT);
    HEARS(0, 1, 0);
    pass_time(1000);
    serve(1); /* and is told when it answers */
    ck_assert_uint_eq(w.shown[1][0], vkey_of(0, 0));
    end_session(0);
    pass_time(1000);
    serve(0);
    answer_call(find_call(1), -ETIMEDOUT);
    publish(1, 0, "kv/0"); /* somebody else's turn here: the one that answers decides */
    serve(0);
    ck_assert_uint_eq(w.said[1].count, 0);
    answer_call(find_call(1), -ETIMEDOUT);
    HEARS(1, 1, 0);
    pass_time(20000);
    serve(1);
    ck_assert(w.shown[0][0] == vkey_of(1, 0) && w.shown[1][0] == vkey_of(1, 0));
    end();
}
END_TEST

START_TEST(a_metaserver_that_was_started_again_is_told_again)
{
    begin(1);
    publish(0, 0, "kv/0");
    serve(0);
    w.shown[0][0] = 0;
    agent_publications_registered(&w.agent, 0, 0);
    pass_time(100);
    serve(0);
    ck_assert_uint_eq(w.shown[0][0], vkey_of(0, 0));
    /* Another life of the node: what it had is nobody's. */
    w.shown[0][0] = 0;
    w.agent.incarnation++;
    agent_publications_registered(&w.agent, 0, 0);
    pass_time(100);
    serve(0);
    ck_assert_uint_eq(w.shown[0][0], vkey_of(0, 0));
    /* Another one has it since: for long, and it is lost. */
    w.shown[0][0] = 1;
    agent_publications_registered(&w.agent, 0, 0);
    for (int i = 0; i < 5; i++, pass_time(1000))
        serve(0);
    ck_assert_uint_eq(w.agent.publications.count, 1);
    for (int i = 0; i < 10; i++, pass_time(1000))
        serve(0);
    ck_assert_uint_eq(w.agent.publications.count, 0);
    ck_assert_uint_eq(w.agent.publications.lost, 1);
    end();
}
END_TEST

START_TEST(a_region_that_is_given_back_or_revoked_has_its_name_no_more)
{
    begin(1);
    publish(0, 0, "kv/0");
    serve(0);
    w.state[0][0] = LANE_LEASE_NONE; /* which nobody tells */
    pass_time(PUBLICATIONS_LOOK_MS + 100);
    serve(0);
    ck_assert_uint_eq(w.shown[0][0], 0);
    publish(0, 1, "kv/0");
    serve(0);
    w.state[0][1] = LANE_LEASE_REVOKED;
    agent_publications_look(&w.agent);
    pass_time(20);
    serve(0);
    ck_assert_uint_eq(w.shown[0][0], 0);
    ck_assert_uint_eq(w.agent.publications.count, 0);
    end();
}
END_TEST

START_TEST(a_session_a_tenant_and_a_second_have_so_many)
{
    char name[16];
    uint32_t n = 0;
    begin(1);
    for (; w.said[0].status == 0; n++) {
        snprintf(name, sizeof name, "n%u", n);
        publish(0, 0, name);
        for (struct call *c; (c = find_call(0)) != NULL;)
            answer_call(c, 201);
        ck_assert_uint_eq(w.said[0].count, n + 1);
    }
    ck_assert_uint_eq(n, PUBLICATIONS_OF_SESSION + 1);
    ck_assert_int_eq(w.said[0].status, -EDQUOT);
    for (n = 0; w.said[1].status == 0; n++) { /* it is asked for and given up, over and over */
        publish(1, 0, "kv/0");
        if (w.said[1].count == 0)
            answer_call(find_call(0), 403);
        w.said[1].status = w.said[1].status == -EDQUOT ? 0 : w.said[1].status;
        w.said[1].count = 0;
    }
    ck_assert_int_eq(w.said[1].status, -EAGAIN);
    ck_assert_uint_le(n, PUBLICATIONS_PER_S);
    end();
}
END_TEST

START_TEST(so_many_are_asked_at_a_time_and_who_waits_is_told_when_the_session_ends)
{
    uint32_t out = 0;
    begin(1);
    for (uint32_t i = 0; i < SESSIONS; i++)
        publish(i, 0, NAME[i]);
    for (struct call *c = w.call; c < w.call + CALLS; c++)
        out += c->out;
    ck_assert_uint_eq(out, SESSIONS);
    ck_assert_uint_eq(w.agent.publications.out, SESSIONS);
    end_session(0);
    HEARS(0, 1, -ECANCELED);
    answer_call(find_call(0), -ETIMEDOUT); /* it may come into force yet */
    pass_time(1000);
    serve(0);
    ck_assert_uint_eq(w.shown[0][0], 0);
    w.shown[0][0] = vkey_of(0, 0); /* as it does */
    pass_time(CALL_MS);
    serve(0);
    pass_time(1000);
    ck_assert_uint_eq(w.shown[0][0], 0);
    end();
}
END_TEST

/* ---- whatever happens */

struct wish {
    uint32_t region; /* + 1; 0: it has not published that name */
    bool sure;       /* it has heard so */
};

static struct base_prng prng;
static struct wish wish[SESSIONS][NAMES];
static uint32_t asked[SESSIONS],
    asked_name[SESSIONS]; /* what it waits for: 1: publish, 2: the end */
static uint64_t asked_ns[SESSIONS];
static uint32_t heard[SESSIONS];

static uint32_t draw(uint32_t below)
{
    return (uint32_t)base_prng_below(&prng, below);
}

static void note_answers(void)
{
    for (uint32_t s = 0; s < SESSIONS; s++) {
        struct wish *x = &wish[s][asked_name[s]];
        ck_assert_uint_le(w.said[s].count, heard[s] + (asked[s] != 0));
        if (w.said[s].count == heard[s]) {
            ck_assert(asked[s] == 0 ||
                      w.world.now_ns - asked_ns[s] <= (RESOLVE_MS + 100) * BASE_NS_PER_MS);
            continue;
        }
        heard[s]++;
        if (asked[s] == 1 && w.said[s].status == 0)
            x->sure = true;
        else if (asked[s] == 1 && !x->sure)
            x->region = 0;
        asked[s] = 0;
    }
}

static void ask_something(uint32_t s)
{
    const uint32_t name = draw(NAMES), region = draw(REGIONS);
    if (asked[s] != 0 || w.session[s].stage != STAGE_LIVE)
        return;
    asked_name[s] = name;
    asked_ns[s] = w.world.now_ns;
    if (draw(3) != 0) {
        asked[s] = 1;
        if (wish[s][name].region == 0)
            wish[s][name] = (struct wish){.region = region + 1};
        publish(s, wish[s][name].region - 1, NAME[name]);
    } else {
        asked[s] = 2;
        const uint32_t had = wish[s][name].region;
        wish[s][name] = (struct wish){.region = 0};
        unpublish(s, had > 0 ? had - 1 : 0, NAME[name]);
    }
}

static void move_worker(uint32_t s)
{
    if (w.session[s].stage == STAGE_LIVE) {
        end_session(s);
        memset(wish[s], 0, sizeof wish[s]);
    } else {
        w.session[s].stage = STAGE_LIVE;
        w.session[s].serial += SESSIONS;
    }
}

static void move_call(struct call *c)
{
    static const int REFUSALS[] = {429, 503, 404, 500, 400, -ECONNREFUSED};
    switch (draw(8)) {
    case 0: /* the answer is lost */
        (void)carry_out(c);
        answer_call(c, -ETIMEDOUT);
        break;
    case 1: /* it comes later than the agent waits, as the metaserver may be slow */
        c->held_ns = w.world.now_ns + draw(CALL_MS / 2) * BASE_NS_PER_MS;
        c->held = c->puts;
        answer_call(c, -ETIMEDOUT);
        break;
    case 2:
        if (c->puts)
            answer_call(c, REFUSALS[draw(6)]);
        else
            answer_call(c, draw(2) ? 503 : -ECONNREFUSED);
        break;
    default:
        answer_call(c, carry_out(c));
    }
}

static void move_held(bool all)
{
    for (struct call *c = w.call; c < w.call + CALLS; c++)
        if (c->held && !c->out && (all || w.world.now_ns >= c->held_ns)) {
            c->held = false;
            (void)carry_out(c);
        }
}

static void restart_metaserver(uint32_t m)
{
    memset(w.shown[m], 0, sizeof w.shown[m]);
    w.shown[m][TAKEN] = 1;
    for (struct call *c = w.call; c < w.call + CALLS; c++)
        c->held &= c->metaserver != m;
    agent_publications_registered(&w.agent, m, 0);
}

static void move_anything(void)
{
    const uint32_t s = draw(SESSIONS), m = draw(METASERVERS);
    struct call *c = &w.call[draw(16)];
    switch (draw(16)) {
    case 0:
        move_worker(s);
        break;
    case 1:
        if (draw(4) == 0)
            restart_metaserver(m);
        break;
    case 2:
    case 3:
    case 4:
    case 5:
        ask_something(s);
        break;
    case 6:
    case 7:
        pass_time(1 + draw(600));
        break;
    default:
        if (c->out)
            move_call(c);
    }
    move_held(false);
    note_answers();
}

static void check_end(uint64_t seed)
{
    for (uint32_t m = 0; m < METASERVERS; m++)
        for (uint32_t n = 0; n < TAKEN; n++) {
            uint32_t wanted = 0;
            for (uint32_t s = 0; s < SESSIONS; s++)
                if (wish[s][n].region != 0) {
                    ck_assert_msg(wanted == 0, "seed %llu: two have %s", (unsigned long long)seed,
                                  NAME[n]);
                    wanted = vkey_of(s, wish[s][n].region - 1);
                }
            ck_assert_msg(w.shown[m][n] == wanted,
                          "seed %llu: metaserver %u shows %u for %s, not %u",
                          (unsigned long long)seed, m, w.shown[m][n], NAME[n], wanted);
        }
}

START_TEST(whatever_happens_metaservers_show_in_the_end_what_workers_were_told)
{
    for (uint64_t seed = 1; seed <= 120; seed++) {
        base_prng_seed(&prng, seed);
        memset(wish, 0, sizeof wish);
        memset(asked, 0, sizeof asked);
        memset(heard, 0, sizeof heard);
        memset(asked_name, 0, sizeof asked_name);
        begin(METASERVERS);
        for (int i = 0; i < 300; i++)
            move_anything();
        for (int i = 0; i < 200; i++, pass_time(250)) {
            move_held(i > 100);
            for (uint32_t m = 0; m < METASERVERS; m++)
                serve(m);
            note_answers();
        }
        check_end(seed);
        for (uint32_t s = 0; s < SESSIONS; s++)
            ck_assert_uint_eq(asked[s], 0);
        ck_assert_uint_eq(w.agent.publications.out, 0);
        end();
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(it_is_published_when_each_metaserver_shows_it_and_the_first_one_decides)                     \
    T(one_that_another_metaserver_gives_to_another_is_taken_back_at_the_first)                     \
    T(refusals_have_their_own_errors)                                                              \
    T(a_metaserver_that_does_not_answer_is_asked_again_until_its_worker_has_waited_long_enough)    \
    T(one_that_is_silent_keeps_nobody_from_what_another_has_decided)                               \
    T(a_metaserver_that_was_started_again_is_told_again)                                           \
    T(a_region_that_is_given_back_or_revoked_has_its_name_no_more)                                 \
    T(a_session_a_tenant_and_a_second_have_so_many)                                                \
    T(so_many_are_asked_at_a_time_and_who_waits_is_told_when_the_session_ends)                     \
    T(whatever_happens_metaservers_show_in_the_end_what_workers_were_told)
KEDGE_CHECK_MAIN("agent.control.publications", TESTS)
