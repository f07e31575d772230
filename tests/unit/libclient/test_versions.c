/* SPDX-License-Identifier: Apache-2.0 */
/* An agent of another Kedge than this library's: who opens a session is told both versions, and
 * what to do. */
#include "fake_agent.h"

/* Of the message that answers ATTACH; the test's. */
static uint16_t answered;

static void *answer_in_another_version(void *argument)
{
    struct fake_agent *a = argument;
    struct schema_control_attach m;
    size_t bytes;
    unsigned count;
    a->connection = accept(a->listener, NULL, NULL);
    ck_assert_int_eq(base_fds_recv(a->connection, &m, sizeof m, &bytes, NULL, 0, &count), 0);
    a->attached.h = (struct schema_control_header){.magic = SCHEMA_CONTROL_MAGIC,
                                                   .version = answered,
                                                   .type = SCHEMA_CONTROL_ATTACHED,
                                                   .tag = m.h.tag,
                                                   .size = sizeof a->attached};
    ck_assert_int_eq(
        base_fds_send(a->connection, &a->attached, sizeof a->attached, a->fds, a->send_fds), 0);
    return NULL;
}

/* what: the sentence, with a place for each number. */
static void refused(struct fake_agent *a, void *(*serve)(void *), const char *what, unsigned agents,
                    unsigned own)
{
    const struct kedge_open_attr attr = {.socket = a->path};
    struct kedge_session *s = NULL;
    char sentence[256];
    ck_assert_int_eq(pthread_create(&a->thread, NULL, serve, a), 0);
    ck_assert_int_eq(kedge_open(&attr, &s), -EPROTONOSUPPORT);
    pthread_join(a->thread, NULL);
    ck_assert_ptr_null(s);
    snprintf(sentence, sizeof sentence, what, agents, own);
    ck_assert_str_eq(kedge_last_error(), sentence);
    close(a->connection);
}

START_TEST(an_agent_that_speaks_another_protocol_is_refused_with_both_numbers)
{
    struct fake_agent a;
    fake_agent_start(&a);
    for (int apart = -1; apart <= 1; apart += 2) {
        answered = (uint16_t)(SCHEMA_CONTROL_VERSION + apart);
        refused(&a, answer_in_another_version,
                "the agent speaks protocol %u, this library %u: run the worker with the libkedge "
                "of its host's Kedge",
                answered, SCHEMA_CONTROL_VERSION);
    }
    kedge_close(fake_agent_open(&a));
    fake_agent_stop(&a);
}
END_TEST

START_TEST(sessions_of_another_version_are_refused_with_both_numbers)
{
    struct fake_agent a;
    fake_agent_start(&a);
    for (int apart = -1; apart <= 1; apart += 2) {
        a.ro->version = (uint32_t)(SCHEMA_SESSION_VERSION + apart);
        refused(&a, fake_agent_serve_attach,
                "the agent's sessions have version %u, this library's %u: run the worker with the "
                "libkedge of its host's Kedge",
                a.ro->version, SCHEMA_SESSION_VERSION);
    }
    a.ro->version = SCHEMA_SESSION_VERSION;
    kedge_close(fake_agent_open(&a));
    fake_agent_stop(&a);
}
END_TEST

/* In the library's own version, as agents do: unit.agent.control.attach. */
START_TEST(what_an_agent_says_of_the_librarys_version_is_passed_on)
{
    struct fake_agent a;
    fake_agent_start(&a);
    a.error.status = -EPROTONOSUPPORT;
    snprintf(a.error.text, sizeof a.error.text, "the agent speaks protocol 9, this library 3");
    refused(&a, fake_agent_serve_attach, "the agent speaks protocol %u, this library %u", 9, 3);
    fake_agent_stop(&a);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_agent_that_speaks_another_protocol_is_refused_with_both_numbers)                          \
    T(sessions_of_another_version_are_refused_with_both_numbers)                                   \
    T(what_an_agent_says_of_the_librarys_version_is_passed_on)
KEDGE_CHECK_MAIN("libkedge versions", TESTS)
