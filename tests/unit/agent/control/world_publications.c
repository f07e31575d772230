/* SPDX-License-Identifier: Apache-2.0 */
#include "world_publications.h"

const char NAME[NAMES][8] = {"kv/0", "kv/1", "kv/\xc3\xa4", "taken"};
struct publications_world w;

/* ---- doubles, in whose place the linker puts these */

uint32_t __wrap_lane_leases(const struct lane_memory *memory);
bool __wrap_lane_lease(const struct lane_memory *memory, uint32_t index, struct lane_lease *out);
bool __wrap_lane_lease_grant(const struct lane_memory *memory, uint32_t index,
                             struct lane_lease *lease, struct lane_grant *out);

uint32_t vkey_of(uint32_t session, uint32_t region)
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

/* Of the grant of the region with that key, as these tests have them. */
static void digest_of(uint32_t vkey, char out[BASE_DIGEST_NAME])
{
    char text[SCHEMA_TOKEN_TEXT];
    const struct schema_token grant = {
        .pool = 7, .access = SCHEMA_RECORD_READ, .vkey = vkey, .addr = 4096, .length = 4096};
    schema_token_format(&grant, text);
    ck_assert_int_eq(base_digest_name(text, out), 0);
}

void know_digests(void)
{
    for (uint32_t i = 0; i < METASERVERS; i++)
        w.pool.registration[i].standing.names_version = 2;
}

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
    const char *reader = json_string_value(json_object_get(root, "for"));
    snprintf(w.reader, sizeof w.reader, "%s", reader != NULL ? reader : "");
    c->name = name_of(json_string_value(json_object_get(root, "name")));
    c->vkey = grant.vkey;
    c->again = json_is_true(json_object_get(root, "again"));
    json_decref(root);
}

static int begin_call(struct world *world, const struct http_call *call, http_done done, void *user,
                      uint64_t *id)
{
    struct call *c = w.call;
    char url[128], list[128], asked[640];
    (void)world, (void)id;
    while (c < w.call + CALLS && (c->out || c->held))
        c++;
    ck_assert_ptr_ne(c, w.call + CALLS);
    w.calls++;
    w.lists += call->method == NULL;
    snprintf(list, sizeof list, "http://m%c/v1/nodes/n/regions?incarnation=%u&limit=32",
             call->url[8], w.agent.incarnation);
    snprintf(asked, sizeof asked, "%s", call->url);
    *c = (struct call){.out = true,
                       .puts = call->method != NULL && strcmp(call->method, "PUT") == 0,
                       .lists = call->method == NULL,
                       .metaserver = (uint32_t)(call->url[8] - '0'),
                       .done = done,
                       .user = user};
    char *digest = strstr(asked, "&digest=");
    if (digest != NULL) {
        snprintf(c->digest, sizeof c->digest, "%s", digest + strlen("&digest="));
        *digest = '\0';
    }
    if (c->puts)
        read_put(call, c);
    else if (c->lists)
        ck_assert_str_eq(call->url, list);
    else if (strstr(asked, "tenant=any&name=returned") != NULL)
        c->returned = c->metaserver == 0;
    else
        for (; c->name < NAMES; c->name++) {
            snprintf(url, sizeof url,
                     "http://m%u/v1/nodes/n/regions?incarnation=%u&tenant=web%s%s&name=%s",
                     c->metaserver, w.agent.incarnation, w.reader[0] != '\0' ? "&for=" : "",
                     w.reader,
                     c->name == 2       ? "kv%2F%C3%A4"
                     : c->name == TAKEN ? "taken"
                     : c->name == 0     ? "kv%2F0"
                                        : "kv%2F1");
            if (strcmp(url, asked) == 0)
                break;
        }
    ck_assert_uint_lt(c->name, NAMES);
    return 0;
}

#define PROBLEM(type) "{\"type\":\"urn:kedge:problem:" type "\",\"detail\":\"it is so\"}"

/* Its status. */
int carry_out(const struct call *c)
{
    uint32_t *has = &w.shown[c->metaserver][c->name];
    char digest[BASE_DIGEST_NAME];
    if (c->lists)
        return 200;
    if (c->returned) {
        w.returned -= w.returned > 0;
        return 204;
    }
    if (!c->puts) {
        digest_of(*has, digest);
        const bool found = *has >= 100 && (c->digest[0] == '\0' || strcmp(c->digest, digest) == 0);
        *has = found ? 0 : *has;
        return found ? 204 : 404;
    }
    if (*has != 0 && *has != c->vkey)
        return 409;
    *has = c->vkey;
    return 201;
}

static void write_list(uint32_t metaserver, char *out, size_t room)
{
    char digest[BASE_DIGEST_NAME];
    uint32_t some = 0;
    size_t n = (size_t)snprintf(out, room, "{\"regions\":[");
    digest_of(99, digest);
    for (uint32_t i = 0; metaserver == 0 && i < w.returned; i++)
        n += (size_t)snprintf(out + n, room - n,
                              "%s{\"tenant\":\"any\",\"name\":\"returned%u\",\"digest\":\"%s\"}",
                              some++ > 0 ? "," : "", i, digest);
    for (uint32_t i = 0; i < NAMES; i++)
        if (w.shown[metaserver][i] >= 100) {
            digest_of(w.shown[metaserver][i], digest);
            n += (size_t)snprintf(out + n, room - n,
                                  "%s{\"tenant\":\"web\",\"name\":\"%s\",\"digest\":\"%s\"}",
                                  some++ > 0 ? "," : "", NAME[i], digest);
        }
    snprintf(out + n, room - n, "]}");
}

void answer_call(struct call *c, int status)
{
    const bool digests = w.pool.registration[c->metaserver].standing.names_version >= 2;
    const uint32_t has = c->lists ? 0 : w.shown[c->metaserver][c->name];
    static char list[65536];
    char taken[256], other[192], digest[BASE_DIGEST_NAME] = "";
    if (digests && has >= 100)
        digest_of(has, digest);
    write_list(c->metaserver, list, sizeof list);
    /* Keys of regions begin at 100: others' are another node's. */
    snprintf(taken, sizeof taken,
             "{\"type\":\"urn:kedge:problem:name-taken\",\"detail\":\"it is so\","
             "\"node\":\"%s\",\"incarnation\":%u%s%s%s}",
             has < 100 ? "another" : "n", w.agent.incarnation,
             digest[0] != '\0' ? ",\"digest\":\"" : "", digest, digest[0] != '\0' ? "\"" : "");
    snprintf(other, sizeof other,
             "{\"type\":\"urn:kedge:problem:unknown-region\",\"digest\":\"%s\"}", digest);
    const char *body = status == 409   ? taken
                       : status == 404 ? c->puts ? PROBLEM("register-again") : other
                       : c->lists      ? list
                       : status == 503 ? PROBLEM("settling")
                       : status == 403 ? PROBLEM("over-quota")
                       : status == 507 ? PROBLEM("full")
                       : status == 421 ? PROBLEM("unknown-route") /* a stand-in for 404 */
                                       : "{}";
    const struct http_answer answer = {
        .status = status == 421 ? 404 : status, .why = "it is lost", .body = body};
    c->out = false;
    c->done(c->user, &answer);
}

struct call *find_call(uint32_t metaserver)
{
    for (struct call *c = w.call; c < w.call + CALLS; c++)
        if (c->out && c->metaserver == metaserver)
            return c;
    return NULL;
}

void serve(uint32_t metaserver)
{
    for (struct call *c; (c = find_call(metaserver)) != NULL;)
        answer_call(c, carry_out(c));
}

/* ---- the agent */

void on_said(void *user, int status, const char *why)
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

void begin(uint32_t metaservers)
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

void end(void)
{
    w.agent.stopping = true;
    for (uint32_t i = 0; i < METASERVERS; i++)
        for (struct call *c; (c = find_call(i)) != NULL;)
            answer_call(c, -ECANCELED);
    agent_publications_stop(&w.agent);
}

/* As the world's loop does: ticks are no less than 20 ms apart. */
void pass_time(uint64_t ms)
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

void publish(uint32_t session, uint32_t region, const char *name)
{
    agent_publish(&w.session[session], vkey_of(session, region), name, "", on_said,
                  &w.session[session]);
}

void publish_for(uint32_t session, uint32_t region, const char *name, const char *reader)
{
    agent_publish(&w.session[session], vkey_of(session, region), name, reader, on_said,
                  &w.session[session]);
}

void unpublish(uint32_t session, uint32_t region, const char *name)
{
    agent_unpublish(&w.session[session], vkey_of(session, region), name, on_said,
                    &w.session[session]);
}

void end_session(uint32_t session)
{
    w.session[session].stage = STAGE_ENDING;
    agent_publications_end(&w.session[session]);
}
