/* SPDX-License-Identifier: Apache-2.0 */
/* A worker whose library is of another Kedge than this agent, and uids of no tenant that come again
 * and again. Their sockets are the test's. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "base/clock.h"
#include "connection.h"
#include "world.h"

enum { UID = 1000 };
static struct test_world world;
static struct agent agent;

struct world_socket {
    union {
        struct schema_control_header h;
        struct schema_control_error error;
        uint8_t bytes[SCHEMA_CONTROL_MAX_BYTES];
    } said; /* by the agent, the last of it */
    uint32_t replies;
    bool lent, closed;
};

static int keep_reply(struct world *w, struct world_socket *s, const void *message, size_t bytes,
                      const struct world_lent *lent)
{
    (void)w;
    ck_assert_uint_le(bytes, sizeof s->said);
    memcpy(&s->said, message, bytes);
    s->replies++;
    s->lent |= lent != NULL;
    return 0;
}

static bool note_close(struct world *w, struct world_socket *s)
{
    (void)w;
    s->closed = true;
    return false;
}

static bool tell_unread(struct world *w, struct world_socket *s)
{
    (void)w, (void)s;
    return false;
}

static uid_t out[STRANGERS_KNOWN];
static uint32_t outs, told_of_outs;

static void note_out(struct world *w, const uid_t *uids, uint32_t count)
{
    (void)w;
    memcpy(out, uids, count * sizeof *uids);
    outs = count;
    told_of_outs++;
}

static const struct world_socket_ops SOCKETS = {
    .reply = keep_reply, .unread = tell_unread, .close = note_close, .keep_out = note_out};

static void begin(void)
{
    struct agent_tenant *t = &agent.tenants.at[0];
    memset(&agent, 0, sizeof agent);
    test_world_init(&world);
    world.world.sockets = &SOCKETS;
    agent.world = &world.world;
    agent.config.max_sessions = 4;
    t->state = AGENT_TENANT_LIVE;
    t->config.uid_ranges = 1;
    t->config.uids[0].first = t->config.uids[0].last = UID;
    agent_attach_init(&agent);
    outs = told_of_outs = 0;
}

/* Somebody connects and sends that, of which the agent takes no more. */
static void send_in(struct world_socket *s, uint16_t version, uint16_t type, size_t bytes)
{
    const struct attach_peer peer = {.uid = UID, .pid = 1, .path = "/run/kedge/agent.sock"};
    union {
        struct schema_control_header h;
        uint8_t bytes[SCHEMA_CONTROL_MAX_BYTES];
    } m = {.h = {.magic = SCHEMA_CONTROL_MAGIC,
                 .version = version,
                 .type = type,
                 .tag = 7,
                 .size = (uint32_t)bytes}};
    memset(s, 0, sizeof *s);
    struct connection *c = agent_attach_connected(&agent, s, &peer);
    ck_assert_ptr_nonnull(c);
    agent_attach_received(c, 0, &m, bytes);
    agent_attach_watched(c, 0, NULL);
    ck_assert(s->closed && !s->lent);
    agent_attach_closed(c);
    ck_assert_ptr_null(agent.connections);
    ck_assert_uint_eq(s->replies, 1);
    ck_assert_uint_eq(s->said.h.magic, SCHEMA_CONTROL_MAGIC);
    ck_assert_uint_eq(s->said.h.type, SCHEMA_CONTROL_ERROR);
    ck_assert_uint_eq(s->said.h.size, sizeof s->said.error);
}

/* An error looks the same in all versions, and an ATTACH perhaps not. */
START_TEST(a_library_of_another_version_is_told_both_numbers_in_its_own)
{
    static const size_t sizes[] = {sizeof(struct schema_control_attach),
                                   sizeof(struct schema_control_header), SCHEMA_CONTROL_MAX_BYTES};
    uint64_t refused = 0;
    struct world_socket s;
    char text[sizeof s.said.error.text];
    begin();
    for (int apart = -1; apart <= 1; apart += 2)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            const uint16_t version = (uint16_t)(SCHEMA_CONTROL_VERSION + apart);
            send_in(&s, version, SCHEMA_CONTROL_ATTACH, sizes[i]);
            ck_assert_uint_eq(s.said.h.version, version);
            ck_assert_uint_eq(s.said.h.tag, 0); /* as of what answers nothing */
            ck_assert_int_eq(s.said.error.status, -EPROTONOSUPPORT);
            snprintf(text, sizeof text,
                     "the agent speaks protocol %u, this library %u: run the worker with the "
                     "libkedge of its host's Kedge",
                     SCHEMA_CONTROL_VERSION, version);
            ck_assert_str_eq(s.said.error.text, text);
            ck_assert_uint_eq(agent.refused, ++refused);
        }
}
END_TEST

START_TEST(one_of_this_version_is_not)
{
    struct world_socket s;
    begin();
    send_in(&s, SCHEMA_CONTROL_VERSION, SCHEMA_CONTROL_RESOLVE,
            sizeof(struct schema_control_resolve));
    ck_assert_uint_eq(s.said.h.version, SCHEMA_CONTROL_VERSION);
    ck_assert_uint_eq(s.said.h.tag, 7);
    ck_assert_int_eq(s.said.error.status, -EPROTO);
    ck_assert_str_eq(s.said.error.text, "attach first");
}
END_TEST

/* So often, and is refused each time. */
static void come(uid_t uid, uint32_t times)
{
    const struct attach_peer peer = {.uid = uid, .pid = 1, .path = "/run/kedge/agent.sock"};
    for (uint32_t i = 0; i < times; i++) {
        struct world_socket s = {.replies = 0};
        ck_assert_ptr_null(agent_attach_connected(&agent, &s, &peer));
        ck_assert_int_eq(s.said.error.status, -EACCES);
    }
}

START_TEST(a_stranger_that_comes_again_and_again_is_kept_out_for_a_while)
{
    begin();
    come(UID + 1, STRANGER_REFUSALS - 1);
    ck_assert_uint_eq(told_of_outs, 0);
    come(UID + 1, 1);
    ck_assert_uint_eq(outs, 1);
    ck_assert_uint_eq(out[0], UID + 1);
    ck_assert_str_eq(world.said,
                     "a uid that no tenant has connects too often and is kept out for some "
                     "seconds");
    come(UID + 1, 1000); /* that had connected before */
    ck_assert_uint_eq(told_of_outs, 1);
    ck_assert_uint_eq(agent.strangers.kept_out, 1);
    test_world_advance(&world, STRANGER_OUT_S * BASE_NS_PER_S - 1);
    ck_assert_uint_eq(outs, 1);
    test_world_advance(&world, BASE_NS_PER_S);
    ck_assert_uint_eq(outs, 0);
    ck_assert_uint_eq(told_of_outs, 2);
    ck_assert_uint_eq(world.alarm_ns, UINT64_MAX);
    come(UID + 1, STRANGER_REFUSALS);
    ck_assert_uint_eq(outs, 1);
}
END_TEST

START_TEST(a_stranger_that_becomes_a_tenants_is_kept_out_no_longer)
{
    begin();
    come(UID + 1, STRANGER_REFUSALS);
    come(UID + 2, STRANGER_REFUSALS);
    ck_assert_uint_eq(outs, 2);
    agent.tenants.at[0].config.uids[0].last = UID + 1;
    test_world_advance(&world, BASE_NS_PER_S);
    ck_assert_uint_eq(outs, 1);
    ck_assert_uint_eq(out[0], UID + 2);
    agent.tenants.at[0].config.tokens = 1; /* which any uid may have */
    test_world_advance(&world, BASE_NS_PER_S);
    ck_assert_uint_eq(outs, 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_library_of_another_version_is_told_both_numbers_in_its_own)                                \
    T(one_of_this_version_is_not)                                                                  \
    T(a_stranger_that_comes_again_and_again_is_kept_out_for_a_while)                               \
    T(a_stranger_that_becomes_a_tenants_is_kept_out_no_longer)
KEDGE_CHECK_MAIN("agent.control.attach", TESTS)
