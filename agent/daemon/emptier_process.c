/* SPDX-License-Identifier: Apache-2.0 */
#include "emptier_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436 /* Linux 5.9 */
#endif

enum {
    CONTROL = 3, /* its number in the other process, which has no others */
    FORK_AGAIN_MS = 50,
};

struct request {
    uint32_t serial;
};

struct child {
    pid_t pid; /* 0: free, if there is no serial number, else ended and not reported */
    struct emptier_report report;
};

static struct child children[EMPTIER_CHILDREN];

/* ---- a child */

static _Noreturn void run_child(const int *file, unsigned count)
{
    int status = 0;
    (void)close(CONTROL);
    for (unsigned i = 0; i < count; i++) {
        const int one = base_memfd_empty(file[i]);
        status = status == 0 ? one : status;
        (void)close(file[i]);
    }
    _exit(-status & 0xff);
}

/* ---- the process that has them */

static void on_child(int sig)
{
    (void)sig; /* ppoll() ends */
}

static int status_of(int how)
{
    return WIFEXITED(how) ? -WEXITSTATUS(how) : -ECHILD;
}

static void reap_children(void)
{
    pid_t pid;
    int how;
    while ((pid = waitpid(-1, &how, WNOHANG)) > 0)
        for (struct child *c = children; c < children + EMPTIER_CHILDREN; c++)
            if (c->pid == pid) {
                c->pid = 0;
                c->report.status = status_of(how);
            }
}

static struct child *find_free(void)
{
    for (struct child *c = children; c < children + EMPTIER_CHILDREN; c++)
        if (c->pid == 0 && c->report.serial == 0)
            return c;
    return NULL;
}

/* Whether some are left, since there is no room now. */
static bool report_all(void)
{
    for (struct child *c = children; c < children + EMPTIER_CHILDREN; c++) {
        if (c->pid != 0 || c->report.serial == 0)
            continue;
        if (send(CONTROL, &c->report, sizeof c->report, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            return true;
        c->report.serial = 0;
    }
    return false;
}

/* A host, a user or a control group may have as many processes as it may: what nobody empties would
 * stay with its holder, and count to nobody. What comes behind it finds no process either. */
static pid_t fork_when_possible(void)
{
    pid_t pid;
    while ((pid = fork()) < 0) {
        struct pollfd of = {.fd = CONTROL}; /* POLLHUP: the agent has ended */
        if (poll(&of, 1, FORK_AGAIN_MS) > 0)
            _exit(0);
        reap_children();
        (void)report_all();
    }
    return pid;
}

/* No reference that is dropped here is the last one, unless its child has ended already. */
static void serve_request(void)
{
    struct child *c = find_free();
    struct request r;
    size_t bytes;
    int file[EMPTIER_BATCH];
    unsigned count = 0;
    const int status = base_fds_recv(CONTROL, &r, sizeof r, &bytes, file, EMPTIER_BATCH, &count);
    if (status == -EPIPE)
        _exit(0);
    if (status != 0 || bytes != sizeof r)
        return;
    const pid_t pid = fork_when_possible();
    if (pid == 0)
        run_child(file, count);
    *c = (struct child){.pid = pid, .report = {.serial = r.serial}};
    for (unsigned i = 0; i < count; i++)
        (void)close(file[i]);
}

/* Nothing of the agent's stays open here but this end of the socket: it closes with the other
 * one. */
static void keep_only(int control)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (dup2(control, CONTROL) < 0 && control != CONTROL)
        _exit(1);
    for (int fd = 0; fd < CONTROL; fd++)
        if (null >= 0 && null != fd)
            (void)dup2(null, fd);
    if (syscall(SYS_close_range, CONTROL + 1, ~0U, 0) != 0)
        for (int fd = CONTROL + 1; fd < 1 << 16; fd++)
            (void)close(fd);
}

static _Noreturn void run_emptier(int control)
{
    const struct sigaction action = {.sa_handler = on_child};
    sigset_t set;
    keep_only(control);
    (void)prctl(PR_SET_NAME, "kedge-emptier");
    (void)sigfillset(&set);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
    (void)sigdelset(&set, SIGCHLD);
    (void)sigaction(SIGCHLD, &action, NULL);
    for (;;) {
        reap_children();
        const bool reports = report_all();
        /* What comes is left where it is while there is no room: a child's end makes some. */
        const int events = (reports ? POLLOUT : 0) | (find_free() != NULL ? POLLIN : 0);
        struct pollfd of = {.fd = CONTROL, .events = (short)events};
        if (ppoll(&of, 1, NULL, &set) <= 0)
            continue;
        if ((of.revents & POLLIN) != 0)
            serve_request();
        else if ((of.revents & (POLLHUP | POLLERR)) != 0)
            _exit(0);
    }
}

/* ---- the agent's side */

int agentd_emptier_process_start(struct emptier_process *p, struct base_errbuf *err)
{
    int control[2];
    *p = (struct emptier_process){.fd = -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0)
        return base_err(err, -errno, "no sockets can be made: %s (raise LimitNOFILE)",
                        strerror(errno));
    const pid_t pid = fork();
    if (pid == 0)
        run_emptier(control[1]);
    const int status = pid < 0 ? -errno : 0;
    (void)close(control[1]);
    if (status != 0) {
        (void)close(control[0]);
        return base_err(err, status, "no process can be made: %s (raise TasksMax?)",
                        strerror(-status));
    }
    *p = (struct emptier_process){.pid = pid, .fd = control[0]};
    (void)fcntl(p->fd, F_SETFL, O_NONBLOCK);
    return 0;
}

int agentd_emptier_process_give(struct emptier_process *p, const int *file, uint32_t count,
                                uint32_t *serial)
{
    const struct request r = {.serial = p->serial + 1 != 0 ? p->serial + 1 : 1};
    const int status = base_fds_send(p->fd, &r, sizeof r, file, count);
    if (status != 0)
        return status == -ECONNRESET ? -EPIPE : status;
    *serial = p->serial = r.serial;
    return 0;
}

int agentd_emptier_process_hear(const struct emptier_process *p, struct emptier_report *out)
{
    struct emptier_report report;
    const ssize_t n = recv(p->fd, &report, sizeof report, MSG_DONTWAIT);
    if (n != (ssize_t)sizeof report)
        return n < 0 && errno != ECONNRESET ? -EAGAIN : -EPIPE;
    *out = report;
    return 0;
}

void agentd_emptier_process_stop(struct emptier_process *p)
{
    if (p->pid == 0)
        return;
    (void)close(p->fd);
    (void)kill(p->pid, SIGKILL);
    (void)waitpid(p->pid, NULL, 0);
    p->pid = 0;
}
