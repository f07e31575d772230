/* SPDX-License-Identifier: Apache-2.0 */
/* The attach sockets at the moment when they begin to listen: listen() here is a kernel in which
 * somebody connects at once, and bind() one in which somebody may write in their directory. And
 * what the agent does to their files later. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../../check_main.h"
#include "base/fds.h"
#include "attach_socket.h"
#include "agent.h"
#include "connection.h"

static int sent; /* what became of the descriptor that was sent */
static bool asked;
static struct attach_sockets sockets;
static uv_loop_t loop;

int listen(int fd, int backlog)
{
    struct sockaddr_un at = {0};
    socklen_t length = sizeof at;
    int status = (int)syscall(SYS_listen, fd, backlog);
    int one = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    ck_assert_int_eq(connect(one, (const struct sockaddr *)&at, sizeof at), 0);
    sent = base_fds_send(one, "x", 1, &one, 1);
    asked = true;
    close(one);
    return status;
}

static bool kernel_can(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    bool can = base_fds_refuse(fd) == 0;
    close(fd);
    return can;
}

START_TEST(who_connects_as_soon_as_it_listens_cannot_send_descriptors)
{
    char directory[] = "/tmp/kedge-listen-XXXXXX";
    struct agent *a = calloc(1, sizeof *a);
    struct base_errbuf err = {{0}};
    if (!kernel_can()) {
        puts("skip: whether descriptors can be sent at once: this kernel refuses none");
        free(a);
        return;
    }
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(a->config.socket, sizeof a->config.socket, "%s/a.sock", directory);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    sockets = (struct attach_sockets){.agent = a, .loop = &loop};
    ck_assert_msg(agentd_listeners_open(&sockets, &a->config, &err) == 0, "%s", err.text);
    ck_assert(asked);
    ck_assert_int_eq(sent, -EPERM);
    ck_assert(sockets.listener[0].refuses_fds);
    agentd_listeners_close(&sockets);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    (void)rmdir(directory);
    free(a);
}
END_TEST

/* ---- directories where somebody else may write */

static struct {
    char directory[32], socket[64], moved[64], other[64];
    struct agent *agent;
} at;
static bool swaps; /* as soon as it is bound */

/* Somebody moves the socket, and links from its place to another file of the agent's. */
static void swap_file(void)
{
    ck_assert_int_eq(rename(at.socket, at.moved), 0);
    ck_assert_int_eq(symlink(at.other, at.socket), 0);
}

int bind(int fd, const struct sockaddr *address, socklen_t length)
{
    const int status = (int)syscall(SYS_bind, fd, address, length);
    if (status == 0 && swaps)
        swap_file();
    return status;
}

static int begin_there(struct base_errbuf *err)
{
    snprintf(at.directory, sizeof at.directory, "/tmp/kedge-listen-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(at.directory));
    snprintf(at.socket, sizeof at.socket, "%s/a.sock", at.directory);
    snprintf(at.moved, sizeof at.moved, "%s/moved", at.directory);
    snprintf(at.other, sizeof at.other, "%s/other", at.directory);
    const int fd = open(at.other, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    at.agent = calloc(1, sizeof *at.agent);
    ck_assert_ptr_nonnull(at.agent);
    snprintf(at.agent->config.socket, sizeof at.agent->config.socket, "%s", at.socket);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    sockets = (struct attach_sockets){.agent = at.agent, .loop = &loop};
    return agentd_listeners_open(&sockets, &at.agent->config, err);
}

static void end_there(void)
{
    agentd_listeners_close(&sockets);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    (void)unlink(at.socket);
    (void)unlink(at.moved);
    (void)unlink(at.other);
    ck_assert_int_eq(rmdir(at.directory), 0);
    free(at.agent);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    return st.st_mode & 0777;
}

static bool has_list(const char *path)
{
    return getxattr(path, "system.posix_acl_access", NULL, 0) > 0;
}

START_TEST(who_is_refused_later_is_so_at_the_socket_and_not_at_what_is_in_its_place)
{
    struct base_errbuf err = {{0}};
    ck_assert_msg(begin_there(&err) == 0, "%s", err.text);
    sockets.listener[0].refuses_fds = false; /* an older kernel */
    swap_file();
    sockets.closer.refused[0] = 4242;
    sockets.closer.refused_count = 1;
    agentd_listeners_refuse(&sockets.closer);
    ck_assert_uint_eq(mode_of(at.other), 0600);
    ck_assert(!has_list(at.other));
    if (!has_list(at.moved))
        puts("skip: that it is refused at the socket: this file system has no access lists");
    sockets.closer.refused_count = 0;
    agentd_listeners_refuse(&sockets.closer);
    ck_assert_uint_eq(mode_of(at.other), 0600);
    ck_assert_uint_eq(mode_of(at.moved), 0666);
    end_there();
}
END_TEST

/* Beside those to whom the closer says no, and also where the kernel refuses descriptors. */
START_TEST(strangers_are_kept_out_at_the_socket_for_all)
{
    static const uid_t strangers[] = {4242, 4243};
    struct base_errbuf err = {{0}};
    char list[256];
    ck_assert_msg(begin_there(&err) == 0, "%s", err.text);
    sockets.closer.refused[0] = 4242;
    sockets.closer.refused_count = 1;
    agentd_listeners_keep_out(&sockets, strangers, 2);
    const ssize_t with = getxattr(at.socket, "system.posix_acl_access", list, sizeof list);
    if (with > 0)
        ck_assert_int_eq(with, 4 + 8 * (4 + 2)); /* a header, and entries; each uid once */
    else
        puts("skip: that strangers are kept out: this file system has no access lists");
    agentd_listeners_keep_out(&sockets, strangers, 1);
    sockets.closer.refused_count = 0;
    agentd_listeners_refuse(&sockets.closer);
    if (with > 0)
        ck_assert(has_list(at.socket)); /* the stranger is still in it */
    agentd_listeners_keep_out(&sockets, NULL, 0);
    ck_assert(!has_list(at.socket));
    ck_assert_uint_eq(mode_of(at.socket), 0666);
    end_there();
}
END_TEST

START_TEST(what_is_in_its_place_at_once_is_left_alone)
{
    struct base_errbuf err = {{0}};
    swaps = true;
    ck_assert_int_eq(begin_there(&err), -EEXIST);
    swaps = false;
    ck_assert_uint_eq(mode_of(at.other), 0600);
    end_there();
}
END_TEST

/* ---- who sends much */

enum { CROWD = 40 };

static uint64_t tell_now(struct world *w)
{
    (void)w;
    return 1;
}

static void set_alarm(struct world *w, uint64_t due_ns)
{
    (void)w, (void)due_ns;
}

static const struct world_ops WORLD_OPS = {.now_ns = tell_now, .alarm = set_alarm};
static struct world world = {.ops = &WORLD_OPS, .sockets = &SOCKET_OPS};

/* A tenant's workers, with a message each that is none. */
static void send_each(int fd[CROWD])
{
    for (int i = 0; i < CROWD; i++)
        ck_assert_int_eq(send(fd[i], "x", 1, 0), 1);
}

static void connect_crowd(int fd[CROWD])
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", at.socket);
    for (int i = 0; i < CROWD; i++) {
        fd[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(connect(fd[i], (const struct sockaddr *)&to, sizeof to), 0);
    }
}

static void begin_with_tenant(void)
{
    struct base_errbuf err = {{0}};
    ck_assert_msg(begin_there(&err) == 0, "%s", err.text);
    at.agent->world = &world;
    at.agent->config.max_sessions = 1000;
    at.agent->tenants.at[0] = (struct agent_tenant){
        .state = AGENT_TENANT_LIVE,
        .config = {.name = "own", .uid_ranges = 1, .uids = {{getuid(), getuid()}}}};
}

static void end_crowd(const int fd[CROWD])
{
    for (int i = 0; i < CROWD; i++)
        close(fd[i]);
    end_there();
}

START_TEST(of_many_that_one_tenant_sends_a_few_are_taken_in_a_turn)
{
    int fd[CROWD];
    uint64_t taken = 0;
    begin_with_tenant();
    connect_crowd(fd);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    for (struct connection *c = at.agent->connections; c != NULL; c = c->next) {
        c->attached = c->ended = true; /* and so what it says has no effect */
        c->tenant = 1;
    }
    send_each(fd);
    for (int turns = 0; taken < CROWD; turns++) {
        const uint64_t before = taken;
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        taken = 0;
        for (const struct connection *c = at.agent->connections; c != NULL; c = c->next)
            taken += c->messages;
        ck_assert_uint_le(taken - before, TURN_MESSAGES);
        ck_assert_int_lt(turns, CROWD);
    }
    for (struct connection *c = at.agent->connections; c != NULL; c = c->next)
        c->attached = false;
    end_crowd(fd);
}
END_TEST

/* Else it would count as one that says nothing, which makes room for others. */
START_TEST(who_connects_with_a_message_is_heard_at_once)
{
    int fd[CROWD];
    begin_with_tenant();
    connect_crowd(fd);
    send_each(fd);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_uint_eq(at.agent->refused, CROWD);
    end_crowd(fd);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_connects_as_soon_as_it_listens_cannot_send_descriptors)                                  \
    T(who_is_refused_later_is_so_at_the_socket_and_not_at_what_is_in_its_place)                    \
    T(strangers_are_kept_out_at_the_socket_for_all)                                                \
    T(what_is_in_its_place_at_once_is_left_alone)                                                  \
    T(of_many_that_one_tenant_sends_a_few_are_taken_in_a_turn)                                     \
    T(who_connects_with_a_message_is_heard_at_once)
KEDGE_CHECK_MAIN("agent.daemon.listen", TESTS)
