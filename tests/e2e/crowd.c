/* SPDX-License-Identifier: Apache-2.0 */
/* Local users without any right: as many uids hold connections that say nothing, and make each anew
 * that is cut off, until this program is ended. With a token they all show that one instead, which
 * no tenant has. Prints "here" when each uid has had its turn. Needs root. Not installed.
 *
 *   kedge-crowd UIDS CONNECTIONS SOCKET [TOKEN] */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "schema/control.h"

enum { FIRST_UID = 200000, MOST = 1024, PAUSE_US = 10000 };

static struct schema_control_attach wrong = {
    .h = {SCHEMA_CONTROL_MAGIC, SCHEMA_CONTROL_VERSION, SCHEMA_CONTROL_ATTACH, 1, sizeof wrong}};

static int dial(const struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof *at) == 0) {
        if (wrong.token[0] != '\0')
            (void)send(fd, &wrong, sizeof wrong, MSG_NOSIGNAL);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* One that was refused, or cut off, is closed. */
static bool is_there(int fd)
{
    char text[1024];
    if (fd >= 0 && recv(fd, text, sizeof text, 0) < 0 && errno == EAGAIN)
        return true;
    if (fd >= 0)
        close(fd);
    return false;
}

static void hold(uid_t uid, int connections, const struct sockaddr_un *at, int told, pid_t parent)
{
    static int held[MOST];
    if (setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0)
        exit(1);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* behind those, which clear it */
    if (getppid() != parent)
        exit(1);
    for (int i = 0; i < connections; i++)
        held[i] = dial(at);
    (void)!write(told, "", 1);
    for (;;) {
        (void)usleep(PAUSE_US);
        for (int i = 0; i < connections; i++)
            if (!is_there(held[i]))
                held[i] = dial(at);
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    uint64_t uids, connections;
    char byte;
    int told[2];
    if ((argc != 4 && argc != 5) || base_parse_u64(argv[1], 1, MOST, &uids) != 0 ||
        base_parse_u64(argv[2], 1, MOST, &connections) != 0 || pipe(told) != 0)
        return 2;
    snprintf(at.sun_path, sizeof at.sun_path, "%s", argv[3]);
    if (argc == 5)
        snprintf(wrong.token, sizeof wrong.token, "%s", argv[4]);
    const pid_t self = getpid();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setrlimit(RLIMIT_NOFILE, &(struct rlimit){2 * MOST, 2 * MOST});
    for (uint64_t i = 0; i < uids; i++)
        if (fork() == 0)
            hold(FIRST_UID + (uid_t)i, (int)connections, &at, told[1], self);
    for (uint64_t i = 0; i < uids; i++)
        if (read(told[0], &byte, 1) != 1)
            return 1;
    puts("here");
    fflush(stdout);
    (void)pause();
    return 0;
}
