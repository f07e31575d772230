/* SPDX-License-Identifier: Apache-2.0 */
/* The attach sockets at the moment when they begin to listen: listen() here is a kernel in which
 * somebody connects at once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../check_main.h"
#include "base/fds.h"
#include "attach_socket.h"
#include "agent.h"

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
    ck_assert_msg(listeners_open(&sockets, &a->config, &err) == 0, "%s", err.text);
    ck_assert(asked);
    ck_assert_int_eq(sent, -EPERM);
    ck_assert(sockets.listener[0].refuses_fds);
    listeners_close(&sockets);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    (void)rmdir(directory);
    free(a);
}
END_TEST

#define TESTS(T) T(who_connects_as_soon_as_it_listens_cannot_send_descriptors)
KEDGE_CHECK_MAIN("listen", TESTS)
