/* SPDX-License-Identifier: Apache-2.0 */
/* Lines between two probes: who sends bytes now and then, and never a whole line, keeps nobody. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../check_main.h"
#include "peer.h"

enum { LINE_MS = 300, EVERY_US = 20000, BYTES = 400 /* for 8 s */ };

static int ends[2];
static _Atomic uint32_t sent;

static void *trickle(void *arg)
{
    (void)arg;
    while (sent < BYTES && send(ends[1], "w", 1, MSG_NOSIGNAL) == 1) {
        sent++;
        (void)usleep(EVERY_US);
    }
    return NULL;
}

START_TEST(a_line_that_comes_byte_by_byte_has_an_end)
{
    char line[PEER_LINE];
    pthread_t slow;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct peer_link l = {.fd = ends[0], .line_ms = LINE_MS};
    ck_assert_int_eq(pthread_create(&slow, NULL, trickle, NULL), 0);
    ck_assert_int_eq(probe_peer_hear(&l, line), -ETIMEDOUT);
    ck_assert_uint_lt(sent, BYTES);
    probe_peer_close(&l);
    ck_assert_int_eq(pthread_join(slow, NULL), 0);
    close(ends[1]);
}
END_TEST

START_TEST(whoever_does_not_read_keeps_nobody_either)
{
    int status = 0;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct peer_link l = {.fd = ends[0], .line_ms = LINE_MS};
    for (int i = 0; i < 100000 && status == 0; i++)
        status = probe_peer_say(&l, "ok %0400d", i);
    ck_assert_int_eq(status, -ETIMEDOUT);
    probe_peer_close(&l);
    close(ends[1]);
}
END_TEST

START_TEST(lines_come_whole_and_one_after_another)
{
    char line[PEER_LINE];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct peer_link l = {.fd = ends[0], .line_ms = 60000}, far = {.fd = ends[1], .line_ms = 60000};
    ck_assert_int_eq(probe_peer_say(&far, "word %s", "x"), 0);
    ck_assert_int_eq(probe_peer_say(&far, "ok"), 0);
    ck_assert_int_eq(probe_peer_hear(&l, line), 0);
    ck_assert_str_eq(line, "word x");
    ck_assert_int_eq(probe_peer_hear(&l, line), 0);
    ck_assert_str_eq(line, "ok");
    probe_peer_close(&far);
    ck_assert_int_eq(probe_peer_hear(&l, line), -ECONNRESET);
    probe_peer_close(&l);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_line_that_comes_byte_by_byte_has_an_end)                                                   \
    T(whoever_does_not_read_keeps_nobody_either)                                                   \
    T(lines_come_whole_and_one_after_another)
KEDGE_CHECK_MAIN("agent.probe.peer_link", TESTS)
