/* SPDX-License-Identifier: Apache-2.0 */
#include "world_shared.h"

struct shared_world all;

static void submit_ordered(struct meta_world *w, struct meta_store_job *job)
{
    struct metad *m = (struct metad *)w;
    meta_store_order_add(&m->order, job);
    meta_store_late_submit(&m->world.store, job);
}

static void on_heard(void *user, const struct meta_store_heard *heard)
{
    meta_service_hear(&((struct metad *)user)->s, heard, all.now);
}

static void on_answer(void *token, const struct meta_service_answer *a,
                      const struct base_text *body)
{
    struct reply *r = token;
    ck_assert_int_eq(r->status, META_SERVICE_LATER);
    r->status = a->status;
    r->revision = a->revision;
    snprintf(r->body, sizeof r->body, "%s", base_text_str(body));
}

void open_metad(struct metad *m, int number, uint32_t max_nodes, uint64_t seed)
{
    static struct meta_world_ops ops;
    const struct meta_directory_limits limits = {max_nodes, 64, LEASE, 1000 * BASE_NS_PER_S};
    const size_t bytes = schema_table_bytes(schema_table_log2_slots(64));
    const size_t names_bytes = schema_name_table_bytes(schema_table_log2_slots(NAMES));
    char name[8];
    struct base_errbuf err;
    memset(m, 0, sizeof *m);
    snprintf(name, sizeof name, "m%d", number);
    m->store = meta_store_hub_open(all.hub, name);
    m->memory = aligned_alloc(64, bytes);
    memset(m->memory, 0, bytes);
    m->names_memory = aligned_alloc(64, names_bytes);
    memset(m->names_memory, 0, names_bytes);
    test_world_init(&m->world, m->store);
    m->world.wall_ms = all.now / BASE_NS_PER_MS;
    meta_store_late_init(&m->world.store, m->store, seed);
    ops = *m->world.base.ops;
    ops.submit = submit_ordered;
    m->world.base.ops = &ops;
    meta_store_order_init(&m->order, on_heard, m);
    m->s.world = &m->world.base;
    m->s.directory = meta_directory_new(&limits, m->memory, 0x5eed, 0x77);
    meta_directory_share(m->s.directory);
    m->s.resources = meta_resources_new(TRAIL);
    m->s.names = meta_names_new(NAMES, m->names_memory, 0x5eed, 0x77);
    m->s.store = m->store;
    m->s.hearing.shared = true;
    memcpy(m->s.hearing.self.name, name, sizeof name);
    m->s.answer = on_answer;
    m->s.endpoint.dct_number = 9;
    m->s.node_lease_ns = LEASE;
    ck_assert_msg(meta_service_load(&m->s, all.now, &err) == 0, "%s", err.text);
}

void close_metad(struct metad *m)
{
    meta_store_order_fini(&m->order);
    meta_store_close(m->store);
    meta_directory_free(m->s.directory);
    meta_resources_free(m->s.resources);
    meta_names_free(m->s.names);
    free(m->memory);
    free(m->names_memory);
}

void setup_all(uint64_t seed)
{
    memset(&all, 0, sizeof all);
    all.hub = meta_store_hub_new();
    all.now = BASE_NS_PER_S;
    base_prng_seed(&all.prng, seed);
    for (int i = 0; i < METASERVERS; i++)
        open_metad(&all.metad[i], i, MAX_NODES, seed + (uint64_t)i);
}

void step_metad(struct metad *m)
{
    struct meta_store_heard *heard = NULL;
    if (m->dead)
        return;
    if (base_prng_below(&all.prng, 3) != 0)
        meta_store_late_step(&m->world.store);
    const bool hears = !m->cut_off && base_prng_below(&all.prng, 2) == 0;
    if (hears && (heard = meta_store_hub_hear(m->store)) != NULL)
        meta_store_order_put(&m->order, heard);
    else if (hears && meta_store_order_is_idle(&m->order))
        meta_service_hear_nothing(&m->s, NULL, all.now);
    meta_service_at(&m->s, all.now, all.now / BASE_NS_PER_MS);
    while (meta_store_order_run(&m->order, all.now))
        meta_service_advance(&m->s, all.now);
    meta_service_advance(&m->s, all.now);
}

void step_all(void)
{
    all.now += BASE_NS_PER_MS;
    for (int i = 0; i < METASERVERS; i++)
        step_metad(&all.metad[i]);
}

static bool is_settled(const struct metad *m)
{
    return m->dead || (m->s.writes.first == NULL && m->order.with_store == 0 &&
                       meta_store_order_is_idle(&m->order));
}

/* Until all have nothing to do for so long that they must have heard everything. */
void settle_all(void)
{
    for (int quiet = 0; quiet < 200; quiet++) {
        step_all();
        for (int i = 0; i < METASERVERS; i++)
            if (!is_settled(&all.metad[i]))
                quiet = 0;
    }
}

void teardown_all(void)
{
    for (int i = 0; i < METASERVERS; i++)
        if (!all.metad[i].dead)
            close_metad(&all.metad[i]);
    meta_store_hub_free(all.hub);
}

void begin_ask(struct metad *m, const char *method, const char *path, const char *json,
               struct reply *reply)
{
    struct base_text body;
    struct meta_service_answer answer;
    const struct meta_service_request request = {.method = method,
                                                 .path = path,
                                                 .content_type = "application/json",
                                                 .body = json,
                                                 .body_bytes = strlen(json),
                                                 .token = reply,
                                                 .who = "uid 7",
                                                 .shown = {.local = true},
                                                 .wall_ms = all.now / BASE_NS_PER_MS};
    base_text_init(&body, 4 << 20);
    meta_service_handle(&m->s, &request, all.now, &body, &answer);
    *reply = (struct reply){.status = answer.status, .revision = answer.revision};
    snprintf(reply->body, sizeof reply->body, "%s", base_text_str(&body));
    base_text_fini(&body);
}

int ask(struct metad *m, const char *method, const char *path, const char *json)
{
    struct reply reply;
    begin_ask(m, method, path, json, &reply);
    for (int i = 0; i < 20000 && reply.status == META_SERVICE_LATER; i++)
        step_all();
    return reply.status;
}

void put_node(struct metad *m, int node, int incarnation, int gid, struct reply *reply)
{
    char path[32], json[256];
    snprintf(path, sizeof path, "/v1/nodes/n%d", node);
    snprintf(json, sizeof json,
             "{\"incarnation\":%d,\"endpoints\":[{\"gid\":\"fd00::%d\",\"pool\":1,\"transports\":["
             "\"dc\"],\"dct_number\":7,\"dc_key\":\"%016x\",\"mtu\":4096}]}",
             incarnation, gid + 1, (unsigned)(node * 1000 + incarnation));
    begin_ask(m, "PUT", path, json, reply);
}

void put_name(struct metad *m, int node, int incarnation, int gid, int name, struct reply *reply)
{
    struct schema_token grant = {
        .pool = 1, .access = SCHEMA_RECORD_READ, .vkey = (uint32_t)incarnation, .length = 4096};
    char path[32], text[SCHEMA_TOKEN_TEXT], json[320];
    grant.gid[0] = 0xfd;
    grant.gid[15] = (uint8_t)(gid + 1);
    schema_token_format(&grant, text);
    snprintf(path, sizeof path, "/v1/nodes/n%d/regions", node);
    snprintf(json, sizeof json,
             "{\"incarnation\":%d,\"tenant\":\"web\",\"name\":\"x%d\",\"grant\":\"%s\"%s}",
             incarnation, name, text, all.again ? ",\"again\":true" : "");
    begin_ask(m, "PUT", path, json, reply);
}

/* ---- what they know */

/* Everything that is to be the same, as one text: nodes with their lives and who owns which
 * endpoint, and settings with their revisions. */
static void describe(struct metad *m, struct base_text *out)
{
    struct meta_node_view v;
    char after[META_STORE_ID_BYTES] = "", line[512];
    base_text_init(out, 1 << 20);
    while (meta_directory_after(m->s.directory, after, all.now, &v) == 0) {
        memcpy(after, v.id, sizeof after);
        snprintf(line, sizeof line, "%s:%" PRIu32 "%s", v.id, v.incarnation,
                 v.state == META_NODE_EXPIRED ? ":expired" : "");
        base_text_append(out, line, strlen(line));
        for (uint32_t i = 0; i < v.endpoint_count; i++) {
            snprintf(line, sizeof line, ":%02x", v.endpoint[i].gid[15]);
            base_text_append(out, line, strlen(line));
        }
        base_text_append(out, "\n", 1);
    }
    for (const struct meta_store_name *n = meta_names_after(m->s.names, "", ""); n != NULL;
         n = meta_names_after(m->s.names, n->tenant, n->name)) {
        snprintf(line, sizeof line, "%s/%s:%s:%" PRIu32 "\n", n->tenant, n->name, n->node,
                 n->incarnation);
        base_text_append(out, line, strlen(line));
    }
    meta_json_write_document(out, m->s.resources, m->s.directory);
    for (int kind = 0; kind < META_RESOURCE_KINDS; kind++)
        for (const struct meta_resource *r =
                 meta_resources_after(m->s.resources, (enum meta_resource_kind)kind, "");
             r != NULL;
             r = meta_resources_after(m->s.resources, (enum meta_resource_kind)kind, r->name)) {
            snprintf(line, sizeof line, "\n%d/%s@%" PRIu64, kind, r->name, r->revision);
            base_text_append(out, line, strlen(line));
        }
    ck_assert_int_eq(out->error, 0);
}

static void expect_same(struct metad *m, const struct base_text *first, uint64_t seed)
{
    struct base_text other;
    describe(m, &other);
    ck_assert_msg(strcmp(base_text_str(first), base_text_str(&other)) == 0,
                  "seed %" PRIu64 ": metaserver %s:\n%s\nand not\n%s", seed, m->s.hearing.self.name,
                  base_text_str(&other), base_text_str(first));
    base_text_fini(&other);
}

void expect_all_the_same(uint64_t seed)
{
    static struct metad begins;
    struct base_text first;
    describe(&all.metad[0], &first);
    for (int i = 1; i < METASERVERS; i++)
        expect_same(&all.metad[i], &first, seed);
    open_metad(&begins, METASERVERS, MAX_NODES, seed);
    expect_same(&begins, &first, seed);
    close_metad(&begins);
    base_text_fini(&first);
}

unsigned count_restores(const struct metad *m)
{
    const struct meta_resource_change *c = meta_resources_change_after(m->s.resources, 0);
    unsigned count = 0;
    for (; c != NULL; c = meta_resources_change_after(m->s.resources, c->revision))
        count += c->kind == META_RESTORE;
    return count;
}

void tick_all(void)
{
    for (int i = 0; i < METASERVERS; i++)
        if (!all.metad[i].dead)
            meta_service_tick(&all.metad[i].s, all.now, all.now / BASE_NS_PER_MS);
    settle_all();
}
