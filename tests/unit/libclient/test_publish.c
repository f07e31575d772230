/* SPDX-License-Identifier: Apache-2.0 */
/* Names of regions, as a worker's library asks its agent for them. */
#include "fake_lane.h"

struct script {
    struct fake_agent *a;
    uint16_t type; /* that is expected */
    const char *name, *reader;
    int status; /* of the answer */
    uint32_t vkey;
    pthread_t thread;
};

static void *serve_one(void *argument)
{
    struct script *x = argument;
    struct schema_control_publish_for got;
    const struct schema_control_publish *m = &got.what;
    struct schema_control_published done = {.names = x->name[0] != '\0'};
    struct schema_control_error error = {.status = x->status, .text = "it is of node b"};
    size_t bytes;
    unsigned count;
    ck_assert_int_eq(base_fds_recv(x->a->connection, &got, sizeof got, &bytes, NULL, 0, &count), 0);
    ck_assert_int_eq(schema_control_check(&got, bytes), 0);
    ck_assert_uint_eq(m->h.type, x->type);
    ck_assert_str_eq(m->name, x->name);
    if (x->reader != NULL)
        ck_assert_str_eq(got.reader, x->reader);
    x->vkey = m->vkey;
    if (x->status != 0)
        fake_agent_send(x->a->connection, &error.h, m->h.tag, SCHEMA_CONTROL_ERROR, sizeof error,
                        NULL, 0);
    else
        fake_agent_send(x->a->connection, &done.h, m->h.tag, SCHEMA_CONTROL_PUBLISHED, sizeof done,
                        NULL, 0);
    return NULL;
}

static void expect(struct script *x)
{
    pthread_create(&x->thread, NULL, serve_one, x);
}

/* A session, and a region of its with that access. */
static struct kedge_session *open_with(struct fake_agent *a, uint32_t features, int access,
                                       struct kedge_mr **mr)
{
    void *memory;
    uint32_t lkey;
    fake_agent_start(a);
    a->attached.features = features;
    struct kedge_session *s = fake_agent_open(a);
    ck_assert_int_eq(kedge_alloc(s, 64, &memory, &lkey), 0);
    a->reply = (struct schema_reply){.value = {99}};
    if (access != 0)
        fake_agent_answer(a);
    ck_assert_int_eq(kedge_reg_mr(s, memory, 64, access, mr), 0);
    if (access != 0)
        (void)fake_agent_asked(a);
    return s;
}

START_TEST(a_region_is_published_and_its_names_go_before_it_does)
{
    struct fake_agent a;
    struct kedge_mr *mr;
    struct kedge_session *s = open_with(&a, SCHEMA_FEATURE_PUBLISH, IBV_ACCESS_REMOTE_READ, &mr);
    struct script x = {.a = &a, .type = SCHEMA_CONTROL_PUBLISH, .name = "kv/1"};
    expect(&x);
    ck_assert_int_eq(kedge_publish(mr, "kv/1"), 0);
    pthread_join(x.thread, NULL);
    ck_assert_uint_eq(x.vkey, kedge_mr_rkey(mr));
    x.status = -EEXIST;
    expect(&x);
    ck_assert_int_eq(kedge_publish(mr, "kv/1"), -EEXIST);
    pthread_join(x.thread, NULL);
    ck_assert_str_eq(kedge_last_error(), "\"kv/1\" is taken: it is of node b");
    x = (struct script){.a = &a, .type = SCHEMA_CONTROL_UNPUBLISH, .name = "kv/1"};
    expect(&x);
    ck_assert_int_eq(kedge_unpublish(mr, "kv/1"), 0); /* it has another one left */
    pthread_join(x.thread, NULL);
    /* What the agent says to that does not keep the region. */
    x = (struct script){
        .a = &a, .type = SCHEMA_CONTROL_UNPUBLISH, .name = "", .status = -EHOSTUNREACH};
    expect(&x);
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_dereg_mr(mr), 0);
    (void)fake_agent_asked(&a);
    pthread_join(x.thread, NULL);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(one_that_has_no_names_goes_without_a_message)
{
    struct fake_agent a;
    struct kedge_mr *mr;
    struct kedge_session *s = open_with(&a, SCHEMA_FEATURE_PUBLISH, IBV_ACCESS_REMOTE_READ, &mr);
    struct script x = {.a = &a, .type = SCHEMA_CONTROL_PUBLISH, .name = "kv/1"};
    expect(&x);
    ck_assert_int_eq(kedge_publish(mr, "kv/1"), 0);
    pthread_join(x.thread, NULL);
    x = (struct script){
        .a = &a, .type = SCHEMA_CONTROL_UNPUBLISH, .name = "kv/1", .status = -ENOENT};
    expect(&x);
    ck_assert_int_eq(kedge_unpublish(mr, "kv/1"), -ENOENT);
    pthread_join(x.thread, NULL);
    x = (struct script){.a = &a, .type = SCHEMA_CONTROL_UNPUBLISH, .name = ""};
    expect(&x);
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_dereg_mr(mr), 0); /* whether that was all is not known */
    (void)fake_agent_asked(&a);
    pthread_join(x.thread, NULL);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(what_cannot_be_published_is_refused_without_a_message)
{
    struct fake_agent a;
    struct kedge_mr *mr;
    char name[KEDGE_NAME_MAX + 2];
    struct kedge_session *s = open_with(&a, SCHEMA_FEATURE_PUBLISH, IBV_ACCESS_REMOTE_READ, &mr);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert_int_eq(kedge_publish(mr, name), -EINVAL);
    ck_assert_int_eq(kedge_publish(mr, ""), -EINVAL);
    ck_assert_int_eq(kedge_unpublish(mr, ""), -EINVAL);
    ck_assert_int_eq(kedge_publish(mr, "a\tb"), -EINVAL);
    ck_assert_int_eq(kedge_publish(mr, "\xff"), -EINVAL);
    ck_assert_str_eq(kedge_last_error(),
                     "a region's name has 1 to 255 bytes of UTF-8 without control characters");
    kedge_close(s);
    fake_agent_stop(&a);

    s = open_with(&a, SCHEMA_FEATURE_PUBLISH, 0, &mr);
    ck_assert_int_eq(kedge_publish(mr, "kv/1"), -EINVAL);
    ck_assert_str_eq(kedge_last_error(),
                     "a region without remote access cannot be exported or published");
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

/* It would end the session. */
START_TEST(an_agent_of_before_is_not_asked)
{
    struct fake_agent a;
    struct kedge_mr *mr;
    struct kedge_session *s = open_with(&a, 0, IBV_ACCESS_REMOTE_READ, &mr);
    ck_assert_int_eq(kedge_publish(mr, "kv/1"), -EOPNOTSUPP);
    ck_assert_int_eq(kedge_unpublish(mr, "kv/1"), -EOPNOTSUPP);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

/* One after the other: a lease with that key, and what the agent says of its name. */
static int publish_for(struct script *x, struct kedge_mr *mr, uint32_t vkey, const char *name,
                       const char *reader, int says)
{
    x->a->reply = (struct schema_reply){.value = {vkey}};
    *x = (struct script){.a = x->a,
                         .type = SCHEMA_CONTROL_PUBLISH_FOR,
                         .name = name,
                         .reader = reader,
                         .status = says};
    fake_agent_answer(x->a);
    expect(x);
    const int status = kedge_publish_for(mr, name, reader);
    (void)fake_agent_asked(x->a);
    pthread_join(x->thread, NULL);
    return status;
}

/* What goes with its key: the agent is asked to take back its names, the lane the lease. */
static void expect_end(struct script *x)
{
    x->a->reply = (struct schema_reply){.status = 0};
    *x = (struct script){.a = x->a, .type = SCHEMA_CONTROL_UNPUBLISH, .name = ""};
    expect(x);
    fake_agent_answer(x->a);
}

static const struct schema_sq_desc *await_end(struct script *x)
{
    const struct schema_sq_desc *d = fake_agent_asked(x->a);
    pthread_join(x->thread, NULL);
    ck_assert_uint_eq(d->op, SCHEMA_OP_DEREG_MR);
    return d;
}

START_TEST(a_name_for_another_tenant_has_a_lease_of_its_own_that_ends_with_it)
{
    struct fake_agent a;
    struct kedge_mr *mr;
    struct script x = {.a = &a};
    struct kedge_session *s =
        open_with(&a, SCHEMA_FEATURE_PUBLISH | SCHEMA_FEATURE_TENANTS, IBV_ACCESS_REMOTE_READ, &mr);
    ck_assert_int_eq(publish_for(&x, mr, 7, "n", "red", 0), 0);
    ck_assert_uint_eq(x.vkey, 7);
    ck_assert_uint_eq(a.asked.op, SCHEMA_OP_REG_MR);
    ck_assert_uint_eq(a.asked.reg_mr.length, 64);
    ck_assert_uint_eq(kedge_mr_rkey(mr), 99); /* the region's own is another one */
    /* Again: the same lease. */
    x = (struct script){.a = &a, .type = SCHEMA_CONTROL_PUBLISH_FOR, .name = "n", .reader = "red"};
    expect(&x);
    ck_assert_int_eq(kedge_publish_for(mr, "n", "red"), 0);
    pthread_join(x.thread, NULL);
    ck_assert_uint_eq(x.vkey, 7);
    ck_assert_int_eq(publish_for(&x, mr, 8, "n", "blue", 0), 0);
    ck_assert_int_eq(kedge_unpublish_for(mr, "m", "red"), -ENOENT);
    ck_assert_str_eq(kedge_last_error(), "the region is not published as \"m\" for red");
    expect_end(&x);
    ck_assert_int_eq(kedge_unpublish_for(mr, "n", "red"), 0);
    ck_assert_uint_eq(await_end(&x)->dereg_mr.vkey, 7);
    ck_assert_uint_eq(x.vkey, 7);
    ck_assert_int_eq(kedge_unpublish_for(mr, "n", "red"), -ENOENT);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

/* A lease, a name that is refused, and the lease's end. */
struct refusal {
    struct fake_agent *a;
    struct script *asked, *taken_back;
};

static void *refuse_one(void *argument)
{
    struct refusal *r = argument;
    fake_lane_answer_one(r->a);
    serve_one(r->asked);
    serve_one(r->taken_back);
    r->a->reply = (struct schema_reply){.status = 0};
    fake_lane_answer_one(r->a);
    return NULL;
}

/* So many messages that take back names. */
struct crowd {
    struct fake_agent *a;
    uint32_t count;
};

static void *take_back_many(void *argument)
{
    struct crowd *c = argument;
    for (uint32_t i = 0; i < c->count; i++) {
        struct script x = {.a = c->a, .type = SCHEMA_CONTROL_UNPUBLISH, .name = ""};
        serve_one(&x);
    }
    return NULL;
}

START_TEST(what_was_not_published_for_another_tenant_leaves_no_lease)
{
    struct fake_agent a;
    struct kedge_mr *mr;
    struct script x = {.a = &a}, y;
    pthread_t lane;
    struct kedge_session *s = open_with(&a, SCHEMA_FEATURE_TENANTS, IBV_ACCESS_REMOTE_READ, &mr);
    a.reply = (struct schema_reply){.status = -EDQUOT, .reason = SCHEMA_REASON_QUOTA_MRS};
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_publish_for(mr, "n", "red"), -EDQUOT);
    (void)fake_agent_asked(&a);
    ck_assert_int_eq(kedge_publish_for(mr, "n", "r,d"), -EINVAL);
    ck_assert_int_eq(kedge_publish_for(mr, "n", ""), -EINVAL);
    ck_assert_int_eq(kedge_publish_for(mr, "", "red"), -EINVAL);
    /* The agent refuses the name: the lease is given back, and what it has said is told. */
    a.reply = (struct schema_reply){.value = {7}};
    x = (struct script){.a = &a,
                        .type = SCHEMA_CONTROL_PUBLISH_FOR,
                        .name = "n",
                        .reader = "red",
                        .status = -EEXIST};
    y = (struct script){.a = &a, .type = SCHEMA_CONTROL_UNPUBLISH, .name = ""};
    struct refusal r = {&a, &x, &y};
    pthread_create(&lane, NULL, refuse_one, &r);
    ck_assert_int_eq(kedge_publish_for(mr, "n", "red"), -EEXIST);
    pthread_join(lane, NULL);
    ck_assert_str_eq(kedge_last_error(), "\"n\" is taken: it is of node b");
    ck_assert_uint_eq(a.asked.op, SCHEMA_OP_DEREG_MR);
    ck_assert_uint_eq(a.asked.dereg_mr.vkey, 7);
    ck_assert_int_eq(kedge_unpublish_for(mr, "n", "red"), -ENOENT);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(a_region_goes_with_all_its_leases_for_others)
{
    enum { MANY = 30 };
    struct fake_agent a;
    struct kedge_mr *mr;
    char name[8];
    uint32_t gone = 0;
    struct script x = {.a = &a};
    struct kedge_session *s = open_with(&a, SCHEMA_FEATURE_TENANTS, IBV_ACCESS_REMOTE_READ, &mr);
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "n%u", i);
        ck_assert_int_eq(publish_for(&x, mr, 100 + i, name, "red", 0), 0);
    }
    struct crowd c = {&a, MANY};
    pthread_t agent;
    pthread_create(&agent, NULL, take_back_many, &c);
    ck_assert_int_eq(kedge_dereg_mrs_begin(&mr, 1), 0);
    pthread_join(agent, NULL);
    ck_assert_int_eq(kedge_dereg_mrs_wait(s, 0), MANY + 1);
    a.reply = (struct schema_reply){.status = 0};
    while (fake_lane_waiting(&a) > 0) {
        fake_agent_answer(&a);
        const struct schema_sq_desc *d = fake_agent_asked(&a);
        ck_assert_uint_eq(d->op, SCHEMA_OP_DEREG_MR);
        gone += 1 + d->dereg_mr.more;
    }
    ck_assert_uint_eq(gone, MANY + 1);
    ck_assert_int_eq(kedge_dereg_mrs_wait(s, -1), 0);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(an_agent_that_knows_no_other_tenants_is_not_asked)
{
    struct fake_agent a;
    struct kedge_mr *mr;
    struct kedge_session *s = open_with(&a, SCHEMA_FEATURE_PUBLISH, IBV_ACCESS_REMOTE_READ, &mr);
    ck_assert_int_eq(kedge_publish_for(mr, "n", "red"), -EOPNOTSUPP);
    ck_assert_int_eq(kedge_unpublish_for(mr, "n", "red"), -EOPNOTSUPP);
    ck_assert_uint_eq(fake_lane_waiting(&a), 0);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_region_is_published_and_its_names_go_before_it_does)                                       \
    T(one_that_has_no_names_goes_without_a_message)                                                \
    T(what_cannot_be_published_is_refused_without_a_message)                                       \
    T(an_agent_of_before_is_not_asked)                                                             \
    T(a_name_for_another_tenant_has_a_lease_of_its_own_that_ends_with_it)                          \
    T(what_was_not_published_for_another_tenant_leaves_no_lease)                                   \
    T(a_region_goes_with_all_its_leases_for_others)                                                \
    T(an_agent_that_knows_no_other_tenants_is_not_asked)
KEDGE_CHECK_MAIN("libclient publish", TESTS)
