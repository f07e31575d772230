/* SPDX-License-Identifier: Apache-2.0 */
/* How long kedge_open() waits: connect() here takes as long as one that waits for room in the
 * agent's backlog, and setsockopt() is listened to. */
#include "fake_agent.h"

#include <sys/syscall.h>
#include <sys/time.h>

enum { CONNECTING_US = 300000, ALL_US = 5000000 };

static int64_t received_within_us; /* the last limit that was set */

int connect(int fd, const struct sockaddr *at, socklen_t length)
{
    (void)usleep(CONNECTING_US);
    return (int)syscall(SYS_connect, fd, at, length);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    if (level == SOL_SOCKET && name == SO_RCVTIMEO) {
        struct timeval t;
        memcpy(&t, value, sizeof t);
        received_within_us = t.tv_sec * INT64_C(1000000) + t.tv_usec;
    }
    return (int)syscall(SYS_setsockopt, fd, level, name, value, length);
}

START_TEST(the_time_that_connecting_took_is_not_there_for_the_answer)
{
    struct fake_agent a;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    ck_assert_int_gt(received_within_us, 0);
    ck_assert_int_le(received_within_us, ALL_US - CONNECTING_US);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

#define TESTS(T) T(the_time_that_connecting_took_is_not_there_for_the_answer)
KEDGE_CHECK_MAIN("deadline", TESTS)
