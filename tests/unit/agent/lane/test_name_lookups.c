/* SPDX-License-Identifier: Apache-2.0 */
/* Regions that are looked up by their names, in metaservers' tables. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"
#include "schema/wait_reason.h"
#include "world_names.h"
#include "world_rc.h"
#include "world_trio.h"

enum {
    TENANT = 1,
    OTHER = 2, /* tenants */
    LONG = 20000,
    LATE = 400, /* polls */
    MANY = 100  /* sessions, more than there are lookups in common */
};

static struct world world;
static struct world *w = &world;
static struct world_worker owner, reader, crowd[MANY];
static uint32_t vkey;

/* ---- what is published */

/* The owner's region in that table under a name of a tenant, as if it were of `whose`. */
static struct schema_name_record record_in(const struct world_names *t, uint32_t tenant,
                                           const char *name, uint32_t whose)
{
    struct schema_token grant = {.pool = w->node[0].config.pool,
                                 .access = SCHEMA_RECORD_READ,
                                 .vkey = vkey,
                                 .addr = 0x10000,
                                 .length = 4096};
    uint8_t key[16];
    world_name_key(t, tenant, name, key);
    memcpy(grant.gid, w->node[1].fab->caps.gid, 16);
    return schema_name_record_make(key, w->node[1].incarnation, whose, &grant);
}

static void publish_in(struct world_names *t, uint32_t tenant, const char *name, uint32_t whose)
{
    struct schema_name_record r = record_in(t, tenant, name, whose);
    world_region_secret(w, 1, vkey, r.secret);
    ck_assert_int_ge(schema_table_put(&t->table, &r), 0);
}

static void publish(const char *name)
{
    publish_in(w->names, TENANT, name, TENANT);
}

/* ---- who looks up */

static void open_all(void)
{
    world_fault = (struct fault_plan){.seed = 1};
    world_open(w);
    world_attach(w, &owner, 1, 0, TENANT);
    vkey = world_register(w, &owner, 0, 4096, SCHEMA_RECORD_READ);
    ck_assert_uint_ne(vkey, 0);
    world_attach(w, &reader, 0, 0, TENANT);
}

static void close_all(void)
{
    world_delay(w, 0);
    world_detach(w, &reader);
    world_detach(w, &owner);
    world_close(w);
    world_fault = (struct fault_plan){0};
}

static uint32_t owner_bytes; /* that the next lookups name their owner in; 0: it is their own */

/* `length` bytes, of which so many slots follow. */
static void post_lookup(struct world_worker *k, const char *bytes, uint32_t length, uint8_t slots)
{
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_LOOKUP, .slots = slots, .lookup = {.tag = ++k->tag, .length = length}};
    d.lookup.owner = owner_bytes;
    d.lookup.length -= owner_bytes;
    uint8_t room[SCHEMA_MAX_EXTRA + SCHEMA_LINE] = {0};
    memcpy(room, bytes, length < SCHEMA_MAX_EXTRA ? length : SCHEMA_MAX_EXTRA);
    world_post(k, &d);
    for (uint8_t i = 1; i < slots; i++)
        world_post(k, (const struct schema_sq_desc *)(const void *)&room[(i - 1) * SCHEMA_LINE]);
    lane_doorbell(w->node[k->node].lane, k->id);
}

static void ask(struct world_worker *k, const char *name)
{
    const uint32_t length = (uint32_t)strlen(name);
    post_lookup(k, name, length, (uint8_t)(1 + (length + SCHEMA_LINE - 1) / SCHEMA_LINE));
}

static const struct schema_reply *reply_of(const struct world_worker *k)
{
    return &k->r->reply[k->tag % SCHEMA_REPLIES];
}

static bool is_answered(const struct world_worker *k)
{
    return atomic_load(&reply_of(k)->tag) == k->tag;
}

static int await(struct world_worker *k)
{
    for (int i = 0; i < LONG && !is_answered(k); i++)
        world_run(w, 1);
    ck_assert(is_answered(k));
    return reply_of(k)->status;
}

static int look_up(struct world_worker *k, const char *name)
{
    ask(k, name);
    return await(k);
}

static uint64_t reads(void)
{
    return world_stats(w, 0).name_reads;
}

static enum ibv_wc_status read_region(struct world_worker *k)
{
    ck_assert_int_eq(world_connect(w, k, 0, 1), 0);
    return world_do(w, k, world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0), LONG).status;
}

/* ---- */

static bool has_bytes(const struct fab_mem *m, const uint8_t *bytes, size_t n)
{
    return memmem(m->addr, m->size, bytes, n) != NULL;
}

START_TEST(a_name_is_found_with_one_read_and_its_secret_stays_with_the_agent)
{
    uint8_t secret[16];
    open_all();
    publish("kv/shard-17");
    const uint64_t before = world_stats(w, 0).endpoint_reads;
    ck_assert_int_eq(look_up(&reader, "kv/shard-17"), 0);
    ck_assert_uint_eq(reads(), 1);
    ck_assert_uint_eq(world_stats(w, 0).endpoint_reads, before);
    const struct schema_found *found = &reply_of(&reader)->found;
    ck_assert_uint_eq(found->addr, 0x10000);
    ck_assert_uint_eq(found->length, 4096);
    ck_assert_uint_eq(found->vkey, vkey);
    ck_assert_uint_eq(found->access, SCHEMA_RECORD_READ);
    ck_assert_uint_eq(found->incarnation, w->node[1].incarnation);
    ck_assert_mem_eq(found->gid, w->node[1].fab->caps.gid, 16);
    world_region_secret(w, 1, vkey, secret);
    ck_assert(!has_bytes(&reader.ro, secret, sizeof secret));
    ck_assert_int_eq(read_region(&reader), IBV_WC_SUCCESS);
    ck_assert_int_eq(look_up(&reader, "kv/shard-1"), -ENOENT);
    ck_assert_int_eq(look_up(&reader, "kv/shard-177"), -ENOENT);
    close_all();
}
END_TEST

/* Longer and shorter ones, as they come to stand anywhere in the ring. */
START_TEST(names_of_all_lengths_are_found)
{
    char name[SCHEMA_NAME_MAX + 2];
    open_all();
    for (uint32_t length = 1; length <= SCHEMA_NAME_MAX; length += length < 250 ? 6 : 1) {
        memset(name, 'a' + (int)length % 26, sizeof name);
        name[length] = '\0';
        publish(name);
        ck_assert_int_eq(look_up(&reader, name), 0);
        struct schema_name_record r = record_in(w->names, TENANT, name, TENANT);
        ck_assert_int_ge(schema_table_remove(&w->names->table, &r), 0);
        ck_assert_int_eq(look_up(&reader, name), -ENOENT);
    }
    close_all();
}
END_TEST

START_TEST(another_tenant_does_not_find_it_and_reads_as_much)
{
    open_all();
    world_attach(w, &crowd[0], 0, 1, OTHER);
    publish("shared");
    ck_assert_int_eq(look_up(&crowd[0], "shared"), -ENOENT);
    ck_assert_uint_eq(reads(), 1);
    ck_assert_int_eq(look_up(&crowd[0], "nobody's"), -ENOENT);
    ck_assert_uint_eq(reads(), 2);
    world_detach(w, &crowd[0]);
    close_all();
}
END_TEST

/* The owner's region for workers of another tenant. */
static void publish_for(const char *of, const char *whom, const char *name)
{
    struct schema_name_record r = record_in(w->names, TENANT, name, TENANT);
    char space[SCHEMA_NAME_SPACE_BYTES];
    ck_assert_int_eq(schema_name_space(of, whom, space), 0);
    schema_name_key(&w->names->table.desc, space, name, r.key);
    world_region_secret(w, 1, vkey, r.secret);
    ck_assert_int_ge(schema_table_put(&w->names->table, &r), 0);
}

static int look_up_of(struct world_worker *k, const char *of, const char *name)
{
    char text[SCHEMA_NAME_TENANT_MAX + SCHEMA_NAME_MAX + 1];
    snprintf(text, sizeof text, "%s%s", of, name);
    owner_bytes = (uint32_t)strlen(of);
    const int status = look_up(k, text);
    owner_bytes = 0;
    return status;
}

START_TEST(a_region_of_another_tenant_is_granted_as_it_is_found)
{
    open_all();
    world_attach(w, &crowd[0], 0, 1, OTHER);
    publish_for("tenant-1", "tenant-2", "lent");
    ck_assert_int_eq(world_connect(w, &crowd[0], 0, 1), 0);
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    ck_assert_int_ne(world_do(w, &crowd[0], d, LONG).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(look_up_of(&crowd[0], "tenant-1", "lent"), 0);
    ck_assert_int_eq(read_region(&crowd[0]), IBV_WC_SUCCESS);
    world_detach(w, &crowd[0]);
    close_all();
}
END_TEST

/* Whatever a worker writes, it looks up as of its own tenant, and learns nothing of the others. */
START_TEST(nobody_finds_what_was_published_for_others_and_it_costs_the_same_read)
{
    uint64_t n = 0;
    open_all();
    world_attach(w, &crowd[0], 0, 1, OTHER);
    world_attach(w, &crowd[1], 0, 2, OTHER + 1);
    publish_for("tenant-1", "tenant-2", "lent");
    publish("own");
    static const struct {
        int who;
        const char *of, *name;
    } rows[] = {
        {1, "tenant-1", "lent"}, {1, "tenant-1", "nobody's"}, {1, "tenant-1", "own"},
        {1, "nobody", "lent"},   {1, "tenant-2", "lent"},     {0, "tenant-2", "lent"},
        {0, "", "lent"},         {0, "tenant-1", "own"},      {0, "tenant-1", "nobody's"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_int_eq(look_up_of(&crowd[rows[i].who], rows[i].of, rows[i].name), -ENOENT);
        ck_assert_uint_eq(reads(), ++n);
    }
    ck_assert_int_eq(look_up_of(&crowd[0], "tenant-1", "lent"), 0);
    ck_assert_uint_eq(reads(), ++n);
    ck_assert_int_eq(look_up(&reader, "lent"), -ENOENT);         /* it was for those alone */
    ck_assert_int_eq(look_up_of(&reader, "tenant-1", "own"), 0); /* one's own tenant is no other */
    /* A comma makes no space of somebody else's. */
    ck_assert_int_eq(look_up_of(&crowd[1], "tenant-1,tenant-2", "lent"), -EINVAL);
    ck_assert_int_eq(look_up_of(&crowd[1], "a\nb", "lent"), -EINVAL);
    world_detach(w, &crowd[1]);
    world_detach(w, &crowd[0]);
    close_all();
}
END_TEST

START_TEST(the_longest_tenants_name_and_the_longest_name_fit)
{
    char of[SCHEMA_NAME_TENANT_MAX + 1], name[SCHEMA_NAME_MAX + 1];
    open_all();
    world_attach(w, &crowd[0], 0, 1, OTHER);
    memset(of, 'o', sizeof of);
    memset(name, 'n', sizeof name);
    for (uint32_t first = 1; first < sizeof of; first += 6)
        for (uint32_t second = first + 6 < sizeof of ? 1 : 193; second < sizeof name;
             second += 31) {
            of[first] = name[second] = '\0';
            publish_for(of, "tenant-2", name);
            ck_assert_int_eq(look_up_of(&crowd[0], of, name), 0);
            of[first] = 'o', name[second] = 'n';
        }
    world_detach(w, &crowd[0]);
    close_all();
}
END_TEST

START_TEST(grants_are_of_others_regions_alone_and_have_an_end)
{
    char name[16];
    open_all();
    const uint32_t most = w->node[0].config.max_grants;
    world_attach(w, &crowd[0], 0, 1, OTHER);
    for (uint32_t i = 0; i <= most + 1; i++) {
        snprintf(name, sizeof name, "n%u", i);
        struct schema_name_record r = record_in(w->names, OTHER, name, i == 0 ? OTHER : TENANT);
        r.secret[0] = (uint8_t)i;
        ck_assert_int_ge(schema_table_put(&w->names->table, &r), 0);
        ck_assert_int_eq(look_up(&crowd[0], name), i <= most ? 0 : -EDQUOT);
    }
    ck_assert_int_eq(reply_of(&crowd[0])->reason, SCHEMA_REASON_QUOTA);
    ck_assert_int_eq(look_up(&crowd[0], "n1"), 0); /* which it has already */
    world_detach(w, &crowd[0]);
    close_all();
}
END_TEST

START_TEST(a_record_that_is_being_written_is_read_again)
{
    open_all();
    publish("n");
    struct schema_name_record r = record_in(w->names, TENANT, "n", TENANT);
    const int64_t slot = schema_table_begin(&w->names->table, &r);
    ck_assert_int_ge(slot, 0);
    ask(&reader, "n");
    for (int i = 0; i < LONG && reads() < 2; i++)
        world_run(w, 1);
    ck_assert(!is_answered(&reader));
    schema_table_commit(&w->names->table, slot, &r);
    ck_assert_int_eq(await(&reader), 0);
    ck_assert_int_ge(schema_table_begin(&w->names->table, &r),
                     0); /* and one that is never written */
    ck_assert_int_eq(look_up(&reader, "n"), -EHOSTUNREACH);
    close_all();
}
END_TEST

START_TEST(one_that_a_metaserver_lacks_is_asked_of_the_next)
{
    open_all();
    struct world_names *empty = world_names_open(w, 77);
    world_names_tell_two(w, empty, false);
    publish("n");
    ck_assert_int_eq(look_up(&reader, "n"), 0);
    ck_assert_uint_eq(reads(), 2);
    ck_assert_int_eq(look_up(&reader, "m"), -ENOENT);
    ck_assert_uint_eq(reads(), 4);
    publish_in(empty, TENANT, "n", TENANT); /* in the good case it is one */
    ck_assert_int_eq(look_up(&reader, "n"), 0);
    ck_assert_uint_eq(reads(), 5);
    world_names_close(w, empty);
    close_all();
}
END_TEST

START_TEST(an_older_metaserver_without_names_is_not_asked)
{
    open_all();
    world_names_tell_two(w, NULL, false);
    publish("n");
    ck_assert_int_eq(look_up(&reader, "n"), 0);
    ck_assert_uint_eq(reads(), 1);
    close_all();
}
END_TEST

START_TEST(where_no_metaserver_has_names_it_says_so)
{
    struct lane_command list = {.kind = LANE_COMMAND_METASERVERS, .metaservers.count = 1};
    open_all();
    list.metaservers.at[0] = (struct lane_metaserver){.ah = w->node[0].metaserver_ah,
                                                      .dctn = w->meta_dct->dctn,
                                                      .dc_key = w->meta_dct->dc_key,
                                                      .qp = w->node[0].metaserver_qp};
    world_tables(w, &list.metaservers.at[0]);
    list.metaservers.at[0].names = (struct schema_table_desc){.log2_slots = 0};
    ck_assert_int_eq(lane_command(w->node[0].lane, &list), 0);
    ck_assert_int_eq(look_up(&reader, "n"), -EOPNOTSUPP);
    world_forget_metaserver(w, 0);
    ck_assert_int_eq(look_up(&reader, "n"), -EHOSTUNREACH);
    ck_assert_int_eq(reply_of(&reader)->reason, SCHEMA_REASON_LOOKUP);
    ck_assert_uint_eq(reads(), 0);
    close_all();
}
END_TEST

START_TEST(with_dc_a_silent_metaserver_keeps_nobody_from_the_next)
{
    open_all();
    if (!w->rc) { /* with RC each has a connection */
        world_names_tell_two(w, NULL, true);
        publish("n");
        ck_assert_int_eq(look_up(&reader, "n"), 0);
        ck_assert_uint_eq(world_stats(w, 0).lookups_failed, 0);
    }
    close_all();
}
END_TEST

/* An earlier life of its owner than this node has used: that metaserver is behind. */
START_TEST(a_record_of_an_earlier_life_than_is_known_is_not_believed)
{
    open_all();
    struct world_names *behind = world_names_open(w, 77);
    world_names_tell_two(w, behind, false);
    publish_in(behind, TENANT, "n", TENANT);
    w->node[1].incarnation++;
    publish("n");
    w->node[1].incarnation--;
    world_restart_node(w, 1);
    ck_assert_int_eq(world_connect(w, &reader, 0, 1), 0);
    ck_assert_int_eq(look_up(&reader, "n"), 0);
    ck_assert_uint_eq(reads(), 2);
    ck_assert_uint_eq(reply_of(&reader)->found.incarnation, w->node[1].incarnation);
    struct schema_name_record r = record_in(w->names, TENANT, "n", TENANT);
    ck_assert_int_ge(schema_table_remove(&w->names->table, &r), 0);
    ck_assert_int_eq(look_up(&reader, "n"), -ENOENT);
    world_names_close(w, behind);
    close_all();
}
END_TEST

/* The node has what it knew of the owner READ again, rather than when its lease is over, and
 * believes no name of that life from then on. */
START_TEST(a_record_of_a_later_life_makes_what_is_known_of_its_owner_old)
{
    open_all();
    publish("old");
    ck_assert_int_eq(world_connect(w, &reader, 0, 1), 0);
    const uint64_t before = world_stats(w, 0).endpoint_reads;
    ck_assert_int_eq(world_connect(w, &reader, 0, 1), 0);
    ck_assert_uint_eq(world_stats(w, 0).endpoint_reads, before);
    world_restart_node(w, 1);
    const struct schema_name_record r = record_in(w->names, TENANT, "n", TENANT);
    ck_assert_int_ge(schema_table_put(&w->names->table, &r), 0);
    ck_assert_int_eq(look_up(&reader, "n"), 0);
    ck_assert_int_eq(look_up(&reader, "old"), -ENOENT);
    ck_assert_int_eq(world_connect(w, &reader, 0, 1), 0);
    ck_assert_uint_eq(world_stats(w, 0).endpoint_reads, before + 1);
    close_all();
}
END_TEST

START_TEST(a_region_in_another_pool_is_not_for_this_one)
{
    open_all();
    struct schema_name_record r = record_in(w->names, TENANT, "n", TENANT);
    r.pool++;
    ck_assert_int_ge(schema_table_put(&w->names->table, &r), 0);
    ck_assert_int_eq(look_up(&reader, "n"), -EXDEV);
    close_all();
}
END_TEST

START_TEST(sessions_of_a_tenant_that_look_for_the_same_share_a_read_and_others_do_not)
{
    uint32_t waits[SCHEMA_WAITS];
    open_all();
    world_attach(w, &crowd[0], 0, 1, TENANT);
    world_attach(w, &crowd[1], 0, 2, OTHER);
    world_attach(w, &crowd[2], 0, 3, TENANT);
    publish("n");
    world_delay(w, LATE);
    ask(&reader, "n");
    ask(&crowd[0], "n");
    ask(&crowd[1], "n");
    ask(&crowd[2], "n");
    world_run(w, 8);
    ck_assert_uint_eq(reads(), 2);
    lane_waits(reader.memory, true, waits);
    ck_assert_uint_eq(waits[SCHEMA_WAIT_LOOKUP], 1);
    world_detach(w, &crowd[2]); /* while it is looked up */
    ck_assert_int_eq(await(&reader), 0);
    ck_assert_int_eq(await(&crowd[0]), 0);
    ck_assert_int_eq(await(&crowd[1]), -ENOENT);
    ck_assert_uint_eq(reads(), 2);
    world_detach(w, &crowd[0]);
    world_detach(w, &crowd[1]);
    close_all();
}
END_TEST

START_TEST(a_session_that_ends_while_it_is_looked_up_leaves_nothing)
{
    open_all();
    publish("n");
    for (int round = 0; round < 3; round++) {
        world_attach(w, &crowd[0], 0, 1, TENANT);
        world_delay(w, LATE);
        ask(&crowd[0], "n");
        world_run(w, 2);
        world_detach(w, &crowd[0]);
        world_delay(w, 0);
        ck_assert_int_eq(look_up(&reader, "n"), 0);
    }
    close_all();
}
END_TEST

/* One tenant has as many lookups of names that nobody has under way as it may. */
START_TEST(who_comes_beside_a_tenant_with_all_lookups_that_there_are_has_one_at_once)
{
    static struct world_worker stranger;
    char name[16];
    open_all();
    for (uint32_t i = 0; i < MANY; i++)
        world_attach(w, &crowd[i], 0, 1 + i, TENANT);
    world_delay(w, LATE);
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "n%u", i);
        ask(&crowd[i], name);
    }
    world_run(w, 2 * MANY);
    const uint64_t before = reads();
    ck_assert_uint_lt(before, MANY);
    world_attach(w, &stranger, 0, 1 + MANY, OTHER);
    ask(&stranger, "n");
    world_run(w, 4);
    ck_assert_uint_eq(reads(), before + 1);
    ck_assert_int_eq(await(&stranger), -ENOENT);
    world_delay(w, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        const int status = await(&crowd[i]);
        ck_assert_msg(status == -ENOENT || status == -EAGAIN, "%d", status);
    }
    for (uint32_t i = 0; i < MANY; i++)
        world_detach(w, &crowd[i]);
    world_detach(w, &stranger);
    close_all();
}
END_TEST

START_TEST(what_is_no_name_is_refused)
{
    static const struct {
        const char *bytes;
        uint32_t length;
    } none[] = {{"", 0}, {"a\0b", 3}, {"\n", 1}, {"\xff", 1}, {"\0", 1}, {"a\x7f", 2}};
    open_all();
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        post_lookup(&reader, none[i].bytes, none[i].length, none[i].length > 0 ? 2 : 1);
        ck_assert_int_eq(await(&reader), -EINVAL);
    }
    ck_assert_uint_eq(reads(), 0);
    close_all();
}
END_TEST

/* No library of ours writes such. */
START_TEST(a_descriptor_that_makes_no_sense_ends_its_session_alone)
{
    static const struct {
        uint32_t length;
        uint8_t slots;
    } wrong[] = {{256, 5}, {UINT32_MAX, 2}, {64, 1}, {64, 3}, {65, 2}, {0, 2}, {255, 255}, {1, 0}};
    open_all();
    publish("n");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const uint32_t faults = w->node[0].faults;
        struct schema_sq_desc d = {.op = SCHEMA_OP_LOOKUP,
                                   .slots = wrong[i].slots,
                                   .lookup = {.tag = 1, .length = wrong[i].length}};
        world_attach(w, &crowd[0], 0, 1, TENANT);
        for (int k = 0; k < 6; k++)
            world_post(&crowd[0], &d);
        lane_doorbell(w->node[0].lane, 1);
        world_run(w, 4);
        ck_assert_uint_eq(w->node[0].faults, faults + 1);
        ck_assert_uint_eq(w->node[0].last_reason, SCHEMA_REASON_DESCRIPTOR);
        world_detach(w, &crowd[0]);
        ck_assert_int_eq(look_up(&reader, "n"), 0);
    }
    /* More slots than it has shown. */
    world_attach(w, &crowd[0], 0, 1, TENANT);
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_LOOKUP, .slots = 5, .lookup = {.tag = 1, .length = 255}};
    world_post(&crowd[0], &d);
    lane_doorbell(w->node[0].lane, 1);
    world_run(w, 4);
    ck_assert_uint_eq(w->node[0].last_reason, SCHEMA_REASON_DESCRIPTOR);
    world_detach(w, &crowd[0]);
    close_all();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_name_is_found_with_one_read_and_its_secret_stays_with_the_agent)                           \
    T(names_of_all_lengths_are_found)                                                              \
    T(another_tenant_does_not_find_it_and_reads_as_much)                                           \
    T(nobody_finds_what_was_published_for_others_and_it_costs_the_same_read)                       \
    T(the_longest_tenants_name_and_the_longest_name_fit)                                           \
    T(a_region_of_another_tenant_is_granted_as_it_is_found)                                        \
    T(grants_are_of_others_regions_alone_and_have_an_end)                                          \
    T(a_record_that_is_being_written_is_read_again)                                                \
    T(one_that_a_metaserver_lacks_is_asked_of_the_next)                                            \
    T(an_older_metaserver_without_names_is_not_asked)                                              \
    T(where_no_metaserver_has_names_it_says_so)                                                    \
    T(with_dc_a_silent_metaserver_keeps_nobody_from_the_next)                                      \
    T(a_record_of_an_earlier_life_than_is_known_is_not_believed)                                   \
    T(a_record_of_a_later_life_makes_what_is_known_of_its_owner_old)                               \
    T(a_region_in_another_pool_is_not_for_this_one)                                                \
    T(sessions_of_a_tenant_that_look_for_the_same_share_a_read_and_others_do_not)                  \
    T(a_session_that_ends_while_it_is_looked_up_leaves_nothing)                                    \
    T(who_comes_beside_a_tenant_with_all_lookups_that_there_are_has_one_at_once)                   \
    T(what_is_no_name_is_refused)                                                                  \
    T(a_descriptor_that_makes_no_sense_ends_its_session_alone)
KEDGE_CHECK_MAIN("agent.lane.name_lookups", TESTS)
