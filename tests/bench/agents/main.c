/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-agents: as many agents as wanted that come up at once, and stay. Prints a line a second,
 * and one when all are in: each is registered with all metaservers and has their settings. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "host.h"

enum {
    URLS = 8,
    PROCESSES = 64,
    AGENTS = 1000000,
    EVENTS = 256,
    TICK_MS = 20,
    LOOK_MS = 100,
};

/* What a process tells; of all its agents. */
struct told {
    _Atomic uint32_t registered[URLS], follow, in, puts;
};

struct shared {
    _Atomic bool begins;
    struct told of[PROCESSES];
    _Atomic uint64_t in_ns[]; /* of each agent: when it was in first */
};

struct storm {
    struct host_config hosts;
    const char *url[URLS];
    const char *ca;
    uint32_t agents, processes, seconds;
    struct shared *shared;
};

/* ---- one process */

struct crowd {
    const struct storm *storm;
    struct told *told;
    struct host **host;
    uint32_t first, count;
    int epoll;
};

static void fail(const struct base_errbuf *err)
{
    fprintf(stderr, "kedge-agents: %s\n", err->text);
    exit(1);
}

static void look_at_all(struct crowd *c)
{
    uint32_t registered[URLS] = {0}, follow = 0, in = 0, puts = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t at = 0;
        for (uint32_t k = 0; k < c->storm->hosts.urls; k++) {
            const bool is = host_is_registered(c->host[i], k);
            registered[k] += is;
            at += is;
        }
        const bool follows = host_follows(c->host[i]), all = at == c->storm->hosts.urls && follows;
        follow += follows;
        in += all;
        puts += host_puts(c->host[i]);
        if (all && c->storm->shared->in_ns[c->first + i] == 0)
            c->storm->shared->in_ns[c->first + i] = base_clock_ns();
    }
    for (uint32_t k = 0; k < c->storm->hosts.urls; k++)
        c->told->registered[k] = registered[k];
    c->told->follow = follow;
    c->told->in = in;
    c->told->puts = puts;
}

static void begin_all(struct crowd *c)
{
    struct base_errbuf err;
    for (uint32_t i = 0; i < c->count; i++) {
        c->host[i] = host_new(&c->storm->hosts, c->first + i, &err);
        if (c->host[i] == NULL)
            fail(&err);
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};
        if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, host_fd(c->host[i]), &e) != 0) {
            base_err(&err, -errno, "no descriptor for one more agent: %s", strerror(errno));
            fail(&err);
        }
    }
}

static void run_crowd(const struct storm *storm, uint32_t process)
{
    const uint32_t first = (uint32_t)((uint64_t)storm->agents * process / storm->processes);
    const uint32_t end = (uint32_t)((uint64_t)storm->agents * (process + 1) / storm->processes);
    struct crowd c = {storm,       &storm->shared->of[process], NULL, first,
                      end - first, epoll_create1(EPOLL_CLOEXEC)};
    struct epoll_event events[EVENTS];
    uint64_t tick_ns = 0, look_ns = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    c.host = calloc(c.count, sizeof c.host[0]);
    while (c.host != NULL && !storm->shared->begins)
        usleep(1000);
    begin_all(&c);
    for (;;) {
        const int n = epoll_wait(c.epoll, events, EVENTS, TICK_MS);
        for (int i = 0; i < n; i++)
            host_run(c.host[events[i].data.u32]);
        const uint64_t now = base_clock_ns();
        if (now >= tick_ns) {
            for (uint32_t i = 0; i < c.count; i++)
                host_tick(c.host[i]);
            tick_ns = base_clock_ns() + TICK_MS * BASE_NS_PER_MS;
        }
        if (now >= look_ns) {
            look_at_all(&c);
            look_ns = base_clock_ns() + LOOK_MS * BASE_NS_PER_MS;
        }
    }
}

/* ---- all of them */

static struct told sum_up(const struct storm *s)
{
    struct told all = {.in = 0};
    for (uint32_t i = 0; i < s->processes; i++) {
        const struct told *t = &s->shared->of[i];
        for (uint32_t k = 0; k < s->hosts.urls; k++)
            all.registered[k] += t->registered[k];
        all.follow += t->follow;
        all.in += t->in;
        all.puts += t->puts;
    }
    return all;
}

static void print_line(const struct storm *s, const struct told *t, uint64_t ns)
{
    printf("t=%.1f in=%" PRIu32 " registered=", (double)ns / 1e9, t->in);
    for (uint32_t k = 0; k < s->hosts.urls; k++)
        printf("%s%" PRIu32, k > 0 ? "," : "", t->registered[k]);
    printf(" follow=%" PRIu32 " puts=%" PRIu32 "\n", t->follow, t->puts);
    fflush(stdout);
}

static int compare_times(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void print_times(const struct storm *s, uint64_t begin_ns)
{
    uint64_t *ns = calloc(s->agents, sizeof *ns);
    for (uint32_t i = 0; ns != NULL && i < s->agents; i++)
        ns[i] = s->shared->in_ns[i] - begin_ns;
    if (ns == NULL)
        return;
    qsort(ns, s->agents, sizeof *ns, compare_times);
    printf("all %" PRIu32 " in: first %.2f s, p50 %.2f s, p99 %.2f s, last %.2f s\n", s->agents,
           (double)ns[0] / 1e9, (double)ns[s->agents / 2] / 1e9,
           (double)ns[(uint64_t)s->agents * 99 / 100] / 1e9, (double)ns[s->agents - 1] / 1e9);
    fflush(stdout);
    free(ns);
}

static void watch_all(const struct storm *s)
{
    const uint64_t begin_ns = base_clock_ns();
    bool said = false;
    uint64_t line_ns = 0;
    s->shared->begins = true;
    for (;;) {
        const struct told all = sum_up(s);
        const uint64_t ns = base_clock_ns() - begin_ns;
        if (!said && all.in == s->agents) {
            print_times(s, begin_ns);
            said = true;
        }
        if (ns >= line_ns) {
            print_line(s, &all, ns);
            line_ns += BASE_NS_PER_S;
        }
        if (ns >= s->seconds * BASE_NS_PER_S || waitpid(-1, NULL, WNOHANG) > 0)
            return;
        usleep(LOOK_MS * 1000 / 2);
    }
}

static bool read_number(const char *text, uint32_t most, uint32_t *out)
{
    char *end = NULL;
    const unsigned long n = strtoul(text, &end, 10);
    *out = (uint32_t)n;
    return end != text && *end == '\0' && n >= 1 && n <= most;
}

static bool read_options(int argc, char **argv, struct storm *s)
{
    static const struct option options[] = {{"agents", required_argument, NULL, 'n'},
                                            {"processes", required_argument, NULL, 'p'},
                                            {"server", required_argument, NULL, 's'},
                                            {"trusted-ca-file", required_argument, NULL, 'c'},
                                            {"token-file", required_argument, NULL, 't'},
                                            {"seconds", required_argument, NULL, 'd'},
                                            {0}};
    bool good = true;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1 && good;) {
        good = (o == 'n' && read_number(optarg, AGENTS, &s->agents)) ||
               (o == 'p' && read_number(optarg, PROCESSES, &s->processes)) ||
               (o == 'd' && read_number(optarg, 1000000, &s->seconds)) || o == 'c' || o == 't' ||
               (o == 's' && s->hosts.urls < URLS);
        if (o == 's' && good)
            s->url[s->hosts.urls++] = optarg;
        s->ca = o == 'c' ? optarg : s->ca;
        s->hosts.token_file = o == 't' ? optarg : s->hosts.token_file;
    }
    return good && optind == argc && s->hosts.urls > 0 && s->processes <= s->agents;
}

int main(int argc, char **argv)
{
    struct storm s = {.agents = 100, .processes = 1, .seconds = 1000000};
    struct rlimit limit;
    struct base_errbuf err;
    s.hosts.url = s.url;
    if (!read_options(argc, argv, &s)) {
        fprintf(stderr,
                "usage: kedge-agents --server URL ... [--agents N] [--processes N] [--seconds N]\n"
                "                    [--trusted-ca-file FILE] [--token-file FILE]\n");
        return 2;
    }
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    const struct http_tls_config files = {.ca_file = s.ca};
    if (s.ca != NULL && http_tls_new(&files, &s.hosts.tls, &err) != 0)
        fail(&err);
    s.shared = mmap(NULL, sizeof *s.shared + s.agents * sizeof s.shared->in_ns[0],
                    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s.shared == MAP_FAILED) {
        perror("kedge-agents: memory");
        return 1;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* no flood outlives who began it */
    for (uint32_t i = 0; i < s.processes; i++)
        if (fork() == 0)
            run_crowd(&s, i);
    watch_all(&s);
    return 0;
}
