/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that cannot be watched: the kernel has no more room for them whenever a test wants.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../check_main.h"
#include "base/fds.h"
#include "admin_http.h"
#include "agent.h"
#include "fd_watch.h"
#include "loop_world.h"
#include "metaserver_client.h"
#include "schema/control.h"

static struct agent *a;
static struct loop_world world;
static struct base_errbuf err;
static char directory[32];
static uint32_t room; /* so many more can be watched */

int __real_uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd);
int __wrap_uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd);

int __wrap_uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd)
{
    if (room == 0)
        return UV_ENOSPC;
    room--;
    return __real_uv_poll_init(loop, poll, fd);
}

static void begin(uint32_t how_many)
{
    a = calloc(1, sizeof *a);
    ck_assert_ptr_nonnull(a);
    err.text[0] = '\0';
    room = how_many;
    snprintf(directory, sizeof directory, "/tmp/kedge-watch-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(a->config.socket, sizeof a->config.socket, "%s/a.sock", directory);
    snprintf(a->config.admin_socket, sizeof a->config.admin_socket, "%s/a.admin", directory);
    ck_assert_int_eq(agentd_loop_world_init(&world, a), 0);
}

/* Nothing is left, in the loop or in the directory. */
static void end(void)
{
    uv_close((uv_handle_t *)&world.alarm, NULL);
    (void)uv_run(&world.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&world.loop), 0);
    ck_assert_int_eq(rmdir(directory), 0);
    free(a);
}

static void expect_way_out(int status)
{
    ck_assert_int_eq(status, -ENOSPC);
    ck_assert_ptr_nonnull(strstr(err.text, "raise fs.epoll.max_user_watches"));
}

START_TEST(what_cannot_be_watched_is_not_begun_and_the_way_out_is_desired)
{
    uv_poll_t poll = {.data = NULL};
    begin(0);
    expect_way_out(agentd_fd_watch(&world.loop, &poll, STDIN_FILENO, NULL, &err));
    ck_assert_int_eq(poll.type, UV_UNKNOWN_HANDLE);
    end();
}
END_TEST

START_TEST(a_socket_for_workers_that_nobody_would_hear_is_none)
{
    begin(0);
    expect_way_out(agentd_listeners_open(&world.sockets, &a->config, &err));
    ck_assert_uint_eq(world.sockets.listeners, 0);
    agentd_listeners_close(&world.sockets);
    end();
}
END_TEST

START_TEST(an_admin_socket_that_nobody_would_hear_is_none)
{
    begin(0);
    expect_way_out(agentd_admin_listen(&world, &err));
    ck_assert_ptr_null(world.admin);
    agentd_admin_stop(&world);
    end();
}
END_TEST

START_TEST(without_hearing_metaservers_nothing_is_asked_of_them)
{
    begin(0);
    expect_way_out(agentd_metaserver_client_start(&world, &err));
    ck_assert_ptr_null(world.http);
    agentd_metaserver_client_stop(&world);
    end();
}
END_TEST

/* `how_many`: of its socket and its process. */
static void expect_worker_is_told(uint32_t how_many)
{
    union {
        struct schema_control_header header;
        struct schema_control_error error;
    } got;
    int pair[2];
    begin(how_many);
    struct listener at = {.of = &world.sockets, .tenant = 1, .refuses_fds = true};
    a->config.max_sessions = 16;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
    agentd_socket_accept(agentd_socket_new(&at), pair[0]);
    ck_assert_int_eq(recv(pair[1], &got, sizeof got, 0), (ssize_t)sizeof got.error);
    ck_assert_int_eq(got.header.type, SCHEMA_CONTROL_ERROR);
    ck_assert_int_eq(got.error.status, -EAGAIN);
    ck_assert_ptr_nonnull(strstr(got.error.text, "can watch over no more workers"));
    (void)uv_run(&world.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(recv(pair[1], &got, sizeof got, 0), 0); /* and closed */
    ck_assert_ptr_null(a->connections);
    ck_assert_uint_eq(a->refused, 1);
    close(pair[1]);
    end();
}

START_TEST(a_worker_that_cannot_be_watched_over_is_told)
{
    expect_worker_is_told(0);
    expect_worker_is_told(1);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_cannot_be_watched_is_not_begun_and_the_way_out_is_desired)                              \
    T(a_socket_for_workers_that_nobody_would_hear_is_none)                                         \
    T(an_admin_socket_that_nobody_would_hear_is_none)                                              \
    T(without_hearing_metaservers_nothing_is_asked_of_them)                                        \
    T(a_worker_that_cannot_be_watched_over_is_told)
KEDGE_CHECK_MAIN("agent.daemon.fd_watch", TESTS)
