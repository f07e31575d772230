/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that waits in poll(): what kedge_fd() and kedge_arm() say to the agent, and what it
 * hears. */
#include "fake_lane.h"

#include <poll.h>
#include <sys/wait.h>

static const uint8_t GID[16] = {0xfd, 1};
static struct fake_agent a;
static int ours; /* the agent's end */
static int refuse;

static void *serve_channel(void *unused)
{
    struct schema_control_channel m;
    struct schema_control_error e = {.status = refuse, .text = "not now"};
    size_t bytes;
    unsigned count;
    int ends[2];
    ck_assert_int_eq(base_fds_recv(a.connection, &m, sizeof m, &bytes, NULL, 0, &count), 0);
    ck_assert_int_eq(schema_control_check(&m, bytes), 0);
    ck_assert_uint_eq(m.h.type, SCHEMA_CONTROL_CHANNEL);
    if (refuse != 0) {
        fake_agent_send(a.connection, &e.h, m.h.tag, SCHEMA_CONTROL_ERROR, sizeof e, NULL, 0);
        return unused;
    }
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    ours = ends[0];
    fake_agent_send(a.connection, &m.h, m.h.tag, SCHEMA_CONTROL_CHANNEL_OK, sizeof m, &ends[1], 1);
    close(ends[1]);
    return unused;
}

static struct kedge_session *begin(uint32_t features)
{
    refuse = 0;
    fake_agent_start(&a);
    a.attached.features = features;
    return fake_agent_open(&a);
}

static int ask_fd(struct kedge_session *s)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, serve_channel, NULL), 0);
    const int fd = kedge_fd(s);
    pthread_join(thread, NULL);
    return fd;
}

static void end(struct kedge_session *s)
{
    kedge_close(s);
    fake_agent_stop(&a);
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void send_byte(void)
{
    ck_assert_int_eq(send(ours, "", 1, 0), 1);
}

static struct kedge_vqp *connect_vqp(struct kedge_session *s)
{
    struct kedge_vqp *q;
    ck_assert_int_eq(kedge_vqp_create(s, NULL, &q), 0);
    a.reply = (struct schema_reply){.value = {0, 1}};
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_connect(q, GID), 0);
    fake_agent_asked(&a);
    return q;
}

START_TEST(an_agent_of_before_this_is_not_asked_and_one_that_refuses_says_why)
{
    struct kedge_session *s = begin(0);
    ck_assert_int_eq(kedge_fd(s), -EOPNOTSUPP);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "kedge_wait()"));
    ck_assert_int_eq(kedge_arm(s), -EINVAL);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "kedge_fd()"));
    ck_assert_uint_eq(atomic_load(&a.rw->armed), 0);
    end(s);
    s = begin(SCHEMA_FEATURE_CHANNEL);
    refuse = -EAGAIN;
    ck_assert_int_eq(ask_fd(s), -EAGAIN);
    ck_assert_str_eq(kedge_last_error(), "not now");
    refuse = 0;
    const int fd = ask_fd(s);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(kedge_fd(s), fd); /* nobody is asked again */
    close(ours);
    end(s);
}
END_TEST

START_TEST(each_arm_is_another_one_and_what_is_there_arms_nothing)
{
    struct kedge_session *s = begin(SCHEMA_FEATURE_CHANNEL);
    struct ibv_wc wc;
    const int fd = ask_fd(s);
    struct kedge_vqp *q = connect_vqp(s);
    ck_assert_int_eq(kedge_arm(s), 0);
    const uint32_t first = atomic_load(&a.rw->armed);
    ck_assert_uint_eq(first % 2, 1);
    ck_assert(!is_readable(fd));
    fake_lane_complete(&a, kedge_vqp_num(q), 7, IBV_WC_SUCCESS);
    ck_assert_int_eq(kedge_arm(s), 1);
    ck_assert_uint_eq(atomic_load(&a.rw->armed), first); /* nothing new */
    ck_assert_int_eq(kedge_poll(s, 1, &wc), 1);
    ck_assert_int_eq(kedge_arm(s), 0);
    ck_assert_uint_eq(atomic_load(&a.rw->armed) % 2, 1);
    ck_assert_uint_ne(atomic_load(&a.rw->armed), first);
    close(ours);
    end(s);
}
END_TEST

START_TEST(it_stays_readable_until_it_is_armed_again)
{
    struct kedge_session *s = begin(SCHEMA_FEATURE_CHANNEL);
    const int fd = ask_fd(s);
    ck_assert_int_eq(kedge_arm(s), 0);
    for (int i = 0; i < 100; i++)
        send_byte();
    ck_assert(is_readable(fd));
    ck_assert(is_readable(fd));
    ck_assert_int_eq(kedge_arm(s), 0);
    ck_assert(!is_readable(fd));
    close(ours);
    end(s);
}
END_TEST

START_TEST(it_is_told_of_notices_once)
{
    struct kedge_session *s = begin(SCHEMA_FEATURE_CHANNEL);
    ask_fd(s);
    ck_assert_int_eq(kedge_session_notices(s), 0);
    ck_assert_int_eq(kedge_arm(s), 0);
    atomic_store(&a.ro->drains, 1);
    ck_assert_int_eq(kedge_arm(s), 1);
    ck_assert_int_eq(kedge_arm(s), 0);
    ck_assert_int_eq(kedge_session_notices(s), KEDGE_NOTICE_DRAIN);
    close(ours);
    end(s);
}
END_TEST

START_TEST(its_end_is_readable_and_says_why)
{
    struct kedge_session *s = begin(SCHEMA_FEATURE_CHANNEL);
    const int fd = ask_fd(s);
    ck_assert_int_eq(kedge_arm(s), 0);
    atomic_store(&a.ro->ended, SCHEMA_REASON_NODE_DRAINED);
    send_byte();
    ck_assert(is_readable(fd));
    ck_assert_int_eq(kedge_arm(s), -EPIPE);
    close(ours);
    ck_assert(is_readable(fd));
    ck_assert_int_eq(kedge_arm(s), -EPIPE);
    ck_assert_uint_eq(atomic_load(&a.rw->armed) % 2, 1);
    end(s);
    s = begin(SCHEMA_FEATURE_CHANNEL);
    ask_fd(s);
    close(ours); /* it alone, which no agent does */
    ck_assert_int_eq(kedge_arm(s), -EPIPE);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "completion channel"));
    end(s);
}
END_TEST

START_TEST(a_forked_child_arms_nothing)
{
    struct kedge_session *s = begin(SCHEMA_FEATURE_CHANNEL);
    const int fd = ask_fd(s);
    int status = 0;
    send_byte();
    const pid_t child = fork();
    if (child == 0)
        _exit(kedge_arm(s) == -EPERM && kedge_fd(s) == -EPERM ? 0 : 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert(is_readable(fd)); /* nor does it take what is there */
    close(ours);
    end(s);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_agent_of_before_this_is_not_asked_and_one_that_refuses_says_why)                          \
    T(each_arm_is_another_one_and_what_is_there_arms_nothing)                                      \
    T(it_stays_readable_until_it_is_armed_again)                                                   \
    T(it_is_told_of_notices_once)                                                                  \
    T(its_end_is_readable_and_says_why)                                                            \
    T(a_forked_child_arms_nothing)

KEDGE_CHECK_MAIN("libclient.channel", TESTS)
