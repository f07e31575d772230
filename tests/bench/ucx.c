/* SPDX-License-Identifier: Apache-2.0 */
#include "ucx.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROGRAM_MS = 60000, LISTENS_MS = 10000, STEP_US = 5000, MOST_ARGS = 20 };

static const char program[] = "ucx_perftest";

/* One way of many that are out, and of one alone. */
static const char *test_of(const struct perf_options *o)
{
    return o->test == PERF_READ ? "ucp_get" : o->depth > 1 ? "ucp_am_bw" : "ucp_am_lat";
}

int perf_ucx_find(struct base_errbuf *err)
{
    const char *path = getenv("PATH");
    char at[512];
    while (path != NULL && *path != '\0') {
        const size_t n = strcspn(path, ":");
        snprintf(at, sizeof at, "%.*s/%s", (int)n, path, program);
        if (access(at, X_OK) == 0)
            return 0;
        path += n + (path[n] == ':');
    }
    return base_err(err, -ENOENT, "--ucx needs %s, of Debian's ucx-utils", program);
}

/* A port of this host that nobody has now. */
static int free_port(struct base_errbuf *err)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool found = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0 &&
                       getsockname(fd, (struct sockaddr *)&a, &n) == 0;
    const int status = found ? ntohs(a.sin_port) : base_err(err, -errno, "a port for UCX: %m");
    if (fd >= 0)
        close(fd);
    return status;
}

/* Starts it with its output in `out`, on that CPU. */
static pid_t start(const struct perf_options *o, int cpu, int port, const char *peer, int out)
{
    char size[16], count[24], depth[16], on[16], at[16];
    snprintf(size, sizeof size, "%u", o->size);
    snprintf(count, sizeof count, "%llu", (unsigned long long)o->count);
    snprintf(depth, sizeof depth, "%u", o->depth);
    snprintf(on, sizeof on, "%d", cpu);
    snprintf(at, sizeof at, "%d", port);
    const char *args[MOST_ARGS] = {program, "-p", at, "-c", on};
    int n = 5;
    if (peer != NULL) {
        const char *asked[] = {peer, "-t", test_of(o), "-s", size, "-n", count, "-f", "-v"};
        memcpy(&args[n], asked, sizeof asked);
        n += (int)(sizeof asked / sizeof asked[0]);
        if (o->depth > 1) {
            args[n++] = "-O";
            args[n++] = depth;
        }
    }
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("UCX_TLS", "shm", 1);
    setenv("UCX_LOG_LEVEL", "error", 1);
    dup2(out, STDOUT_FILENO);
    execvp(program, (char *const *)args);
    _exit(127);
}

/* True: it has ended by itself, and with 0. Else it is killed. */
static bool ends_well(pid_t pid)
{
    int status = 0;
    for (int waited = 0; waited < PROGRAM_MS * 1000; waited += STEP_US) {
        const pid_t ended = waitpid(pid, &status, WNOHANG);
        if (ended != 0)
            return ended == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
        usleep(STEP_US);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return false;
}

static bool listens(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    /* It takes one connection alone, which is not to be ours. */
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool taken = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) != 0;
    if (fd >= 0)
        close(fd);
    return taken;
}

/* The last line of what it printed: iterations, a median in us, three that are not wanted, ... and
 * how many a second. */
static bool read_figures(int fd, struct perf_ucx *out)
{
    char text[4096];
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return false;
    text[n] = '\0';
    while (n > 0 && strlen(text) > 0 && text[strlen(text) - 1] == '\n')
        text[strlen(text) - 1] = '\0';
    const char *last = strrchr(text, '\n') != NULL ? strrchr(text, '\n') + 1 : text;
    double p50_us, rate;
    if (sscanf(last, "%*d,%lf,%*f,%*f,%*f,%*f,%*f,%lf", &p50_us, &rate) != 2)
        return false;
    *out = (struct perf_ucx){.p50_ns = p50_us * 1e3, .per_second = rate};
    return rate > 0;
}

static FILE *open_output(void)
{
    FILE *f = tmpfile();
    if (f != NULL)
        (void)fcntl(fileno(f), F_SETFD, FD_CLOEXEC);
    return f;
}

int perf_ucx(const struct perf_options *o, struct perf_ucx *out, struct base_errbuf *err)
{
    int cpu[2];
    if (perf_first_cpus(cpu) != 2) {
        cpu[0] = o->worker_cpu;
        cpu[1] = o->pinned ? o->lane_cpu : o->worker_cpu;
    }
    const int port = free_port(err);
    FILE *said = open_output(), *unread = open_output();
    bool good = port > 0 && said != NULL && unread != NULL;
    if (good) {
        const pid_t server = start(o, cpu[1], port, NULL, fileno(unread));
        int waited = 0;
        while (server > 0 && !listens(port) && (waited += STEP_US) < LISTENS_MS * 1000)
            usleep(STEP_US);
        const pid_t client = server > 0 ? start(o, cpu[0], port, "127.0.0.1", fileno(said)) : -1;
        good = client > 0 && ends_well(client) && read_figures(fileno(said), out);
        if (server > 0 && !good)
            kill(server, SIGKILL);
        if (server > 0)
            (void)ends_well(server);
    }
    if (said != NULL)
        fclose(said);
    if (unread != NULL)
        fclose(unread);
    return good ? 0 : port < 0 ? port : base_err(err, -EIO, "%s measured nothing", program);
}

void perf_ucx_report(const struct perf_options *o, const struct perf_ucx *u, struct base_text *t)
{
    const char *what = o->test == PERF_READ ? "get"
                       : o->depth > 1       ? "active messages, from one to the next"
                                            : "active message, one way";
    if (t != NULL)
        base_text_printf(t, "\"ucx\":{\"test\":\"%s\",\"p50_ns\":%.0f,\"per_second\":%.0f},",
                         test_of(o), u->p50_ns, u->per_second);
    else
        printf("UCX over shared memory, %s (%s): p50 %.3f us, %.0f per second\n", what, test_of(o),
               u->p50_ns / 1e3, u->per_second);
}
