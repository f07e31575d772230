/* SPDX-License-Identifier: Apache-2.0 */
#include "closer_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fds.h"

#ifndef SYS_close_range
#define SYS_close_range 436 /* Linux 5.9 */
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2U
#endif

enum { LOOK_MS = 100 };

struct request {
    uint32_t serial, count;
    int fd[CLOSER_BATCH];
};

/* Of the process that hands over; every descriptor is below CLOSER_NUMBERS. */
struct handing {
    int control;        /* requests come and reports go */
    int agent;          /* readable when the agent has ended, all of its threads */
    int up[2], down[2]; /* pipes: a child has its own table; it may end */
    int null;           /* what a slot holds when nothing is handed over */
    int slot[CLOSER_BATCH];
    struct child {
        uint32_t serial; /* 0: free */
        pid_t pid;       /* 0: it has ended, or there was none */
        int status;
        bool told; /* that it has been taken, or not */
    } child[CLOSER_CHILDREN];
};

static void on_child(int sig)
{
    (void)sig; /* ppoll() ends */
}

/* As fork(), and with the descriptors in common if wanted: fork() cannot do that, and clone() wants
 * a stack. */
static pid_t make_process(bool same_descriptors)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD | (same_descriptors ? CLONE_FILES : 0), 0, 0, 0, 0);
}

static void end_with(pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
}

/* ---- a child: has the slots, and ends when it may */

static _Noreturn void run_child(const struct handing *h, pid_t parent)
{
    char byte = 0;
    end_with(parent);
    /* Copies the numbers below, and no reference to anything else of the agent's. Where there is no
     * such call, all is copied, and released when this ends, before what it may hang in. */
    if (syscall(SYS_close_range, (unsigned)CLOSER_NUMBERS, ~0U, CLOSE_RANGE_UNSHARE) != 0 &&
        unshare(CLONE_FILES) != 0)
        byte = 1;
    if (write(h->up[1], &byte, 1) == 1 && byte == 0)
        (void)!read(h->down[0], &byte, 1);
    /* A process that ends waits for no socket that lingers. And first it drops what its table has,
     * and then what was in those sockets, in which it may hang. */
    _exit(0);
}

/* ---- the process that hands over */

static void reap_children(struct handing *h)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        for (struct child *c = h->child; c < h->child + CLOSER_CHILDREN; c++)
            if (c->pid == pid)
                c->pid = 0;
}

static bool report_child(const struct handing *h, const struct child *c, enum closer_news news)
{
    const struct closer_report report = {.serial = c->serial, .news = news, .status = c->status};
    return send(h->control, &report, sizeof report, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

/* Whether some are left, since there is no room now; nobody may read any more. */
static bool report_all(struct handing *h)
{
    for (struct child *c = h->child; c < h->child + CLOSER_CHILDREN; c++) {
        if (c->serial == 0 || (c->told && c->pid != 0))
            continue;
        if (!c->told && !(c->told = report_child(h, c, CLOSER_TAKEN)))
            return true;
        if (c->pid != 0)
            continue;
        if (c->status == 0 && !report_child(h, c, CLOSER_CLOSED))
            return true;
        c->serial = 0;
    }
    return false;
}

/* Whether it has its own table, and so what it is to close. 0; -errno: it has not, and ends. */
static int await_child(const struct handing *h, pid_t pid)
{
    struct pollfd up = {.fd = h->up[0], .events = POLLIN};
    char byte = 1;
    for (;;) {
        if (poll(&up, 1, LOOK_MS) > 0)
            return read(h->up[0], &byte, 1) == 1 && byte == 0 ? 0 : -ENOSYS;
        if (waitpid(pid, NULL, WNOHANG) == pid)
            return -ECHILD;
    }
}

static void empty_slots(const struct handing *h, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        (void)dup3(h->null, h->slot[i], O_CLOEXEC);
}

/* No reference that is dropped here is the last one: the child has one, or else the agent. */
static int begin_child(struct handing *h, const struct request *r, pid_t *child)
{
    const pid_t self = getpid();
    for (uint32_t i = 0; i < r->count; i++)
        if (dup3(r->fd[i], h->slot[i], O_CLOEXEC) < 0) {
            const int status = -errno;
            empty_slots(h, i);
            return status;
        }
    const pid_t pid = make_process(true);
    if (pid == 0)
        run_child(h, self);
    const int status = pid < 0 ? -errno : await_child(h, pid);
    empty_slots(h, r->count);
    if (status != 0)
        return status;
    for (uint32_t i = 0; i < r->count; i++)
        (void)close(r->fd[i]);
    *child = pid;
    (void)!write(h->down[1], "", 1);
    return 0;
}

/* Where the next child is remembered; NULL: there is no room now. */
static struct child *find_free(struct handing *h)
{
    for (struct child *c = h->child; c < h->child + CLOSER_CHILDREN; c++)
        if (c->serial == 0)
            return c;
    return NULL;
}

static void serve_request(struct handing *h)
{
    struct request r;
    struct child *c = find_free(h);
    if (c == NULL || recv(h->control, &r, sizeof r, MSG_DONTWAIT) != (ssize_t)sizeof r)
        return;
    *c = (struct child){.serial = r.serial};
    c->status = begin_child(h, &r, &c->pid);
}

/* As long as any thread of the agent: the last that has the table would close what is in it. (The
 * signal of a parent's death comes with that of its first thread.) */
static _Noreturn void run_handing(struct handing *h)
{
    const struct sigaction action = {.sa_handler = on_child};
    sigset_t set;
    (void)prctl(PR_SET_NAME, "kedge-closer");
    (void)sigfillset(&set);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
    (void)sigdelset(&set, SIGCHLD);
    (void)sigaction(SIGCHLD, &action, NULL);
    for (;;) {
        reap_children(h);
        const bool reports = report_all(h);
        /* What comes is left where it is while there is no room: a child's end makes some. */
        const int events = (reports ? POLLOUT : 0) | (find_free(h) != NULL ? POLLIN : 0);
        struct pollfd of[] = {{.fd = h->control, .events = (short)events},
                              {.fd = h->agent, .events = POLLIN}};
        if (ppoll(of, 2, NULL, &set) <= 0)
            continue;
        if (of[1].revents != 0)
            _exit(0);
        if ((of[0].revents & POLLIN) != 0)
            serve_request(h);
    }
}

/* ---- the agent's side */

/* All that is made here takes the lowest numbers that are free, and the rest of those becomes
 * slots, or is filled: nothing of the agent's is there. */
static int fill_numbers(struct handing *h)
{
    int fd, slots = 0;
    while ((fd = fcntl(h->null, F_DUPFD_CLOEXEC, 0)) >= 0 && fd < CLOSER_NUMBERS)
        if (slots < CLOSER_BATCH)
            h->slot[slots++] = fd;
    if (fd < 0)
        return -errno;
    close(fd);
    return slots == CLOSER_BATCH ? 0 : -EMFILE;
}

static int make_descriptors(struct handing *h, int control[2])
{
    h->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (h->null < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0 ||
        pipe2(h->up, O_CLOEXEC) != 0 || pipe2(h->down, O_CLOEXEC) != 0)
        return -errno;
    h->control = control[1];
    h->agent = base_pidfd_open(getpid());
    if (h->agent < 0)
        return h->agent;
    return fill_numbers(h);
}

static bool kernel_refuses(void)
{
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const bool refuses = fd >= 0 && base_fds_refuse(fd) == 0;
    if (fd >= 0)
        close(fd);
    return refuses;
}

int agentd_closer_process_start(struct closer_process *p, struct base_errbuf *err)
{
    static struct handing handing; /* the copy that the other process has is what is used */
    int control[2];
    *p = (struct closer_process){0};
    if (kernel_refuses())
        return 0;
    const int status = make_descriptors(&handing, control);
    if (status != 0)
        return base_err(err, status,
                        "what strangers send cannot be closed apart: %s (too many files are open "
                        "when it begins?)",
                        strerror(-status));
    const pid_t pid = make_process(true);
    if (pid == 0)
        run_handing(&handing);
    if (pid < 0)
        return base_err(err, -errno, "no process can be made: %s (raise TasksMax?)",
                        strerror(errno));
    *p = (struct closer_process){.pid = pid, .fd = control[0], .ended_fd = base_pidfd_open(pid)};
    return p->ended_fd >= 0
               ? 0
               : base_err(err, p->ended_fd, "no descriptor of a process can be had: %s",
                          strerror(-p->ended_fd));
}

int agentd_closer_process_give(struct closer_process *p, const int *fd, uint32_t count,
                               uint32_t *serial)
{
    struct request r = {.serial = p->serial + 1 != 0 ? p->serial + 1 : 1, .count = count};
    memcpy(r.fd, fd, count * sizeof *fd);
    if (send(p->fd, &r, sizeof r, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return errno == EINTR ? -EAGAIN : -errno;
    *serial = p->serial = r.serial;
    return 0;
}

int agentd_closer_process_hear(struct closer_process *p, struct closer_report *out)
{
    struct closer_report report;
    if (recv(p->fd, &report, sizeof report, MSG_DONTWAIT) != (ssize_t)sizeof report)
        return -EAGAIN;
    *out = report;
    return 0;
}

void agentd_closer_process_stop(struct closer_process *p)
{
    if (p->pid == 0)
        return;
    (void)kill(p->pid, SIGKILL);
    (void)waitpid(p->pid, NULL, 0);
    p->pid = 0;
}
