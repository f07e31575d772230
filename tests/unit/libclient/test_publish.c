/* SPDX-License-Identifier: Apache-2.0 */
/* Names of regions, as a worker's library asks its agent for them. */
#include "fake_lane.h"

struct script {
    struct fake_agent *a;
    uint16_t type; /* that is expected */
    const char *name;
    int status; /* of the answer */
    uint32_t vkey;
    pthread_t thread;
};

static void *serve_one(void *argument)
{
    struct script *x = argument;
    struct schema_control_publish m;
    struct schema_control_published done = {.names = x->name[0] != '\0'};
    struct schema_control_error error = {.status = x->status, .text = "it is of node b"};
    size_t bytes;
    unsigned count;
    ck_assert_int_eq(base_fds_recv(x->a->connection, &m, sizeof m, &bytes, NULL, 0, &count), 0);
    ck_assert_int_eq(schema_control_check(&m, bytes), 0);
    ck_assert_uint_eq(m.h.type, x->type);
    ck_assert_str_eq(m.name, x->name);
    x->vkey = m.vkey;
    if (x->status != 0)
        fake_agent_send(x->a->connection, &error.h, m.h.tag, SCHEMA_CONTROL_ERROR, sizeof error,
                        NULL, 0);
    else
        fake_agent_send(x->a->connection, &done.h, m.h.tag, SCHEMA_CONTROL_PUBLISHED, sizeof done,
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

#define TESTS(T)                                                                                   \
    T(a_region_is_published_and_its_names_go_before_it_does)                                       \
    T(one_that_has_no_names_goes_without_a_message)                                                \
    T(what_cannot_be_published_is_refused_without_a_message)                                       \
    T(an_agent_of_before_is_not_asked)
KEDGE_CHECK_MAIN("libclient publish", TESTS)
