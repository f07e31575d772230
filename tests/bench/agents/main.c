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
#include "base/heap.h"
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

/* An agent, and what was told of it last. */
struct member {
    struct base_heap_node due; /* the first member: when it has something to do by itself */
    struct host *host;
    uint32_t registered, puts; /* a bit for each metaserver */
    bool follows, in;
};

struct crowd {
    const struct storm *storm;
    struct told *told;
    struct member *member;
    uint32_t first, count;
    int epoll;
    struct base_heap due;
};

static void fail(const struct base_errbuf *err)
{
    fprintf(stderr, "kedge-agents: %s\n", err->text);
    exit(1);
}

static void tell_difference(_Atomic uint32_t *sum, bool was, bool is)
{
    if (was != is)
        *sum += is ? 1 : UINT32_MAX;
}

/* Whatever it was that was done with it: nothing here is looked at that is of another one. */
static void look_at(struct crowd *c, struct member *m)
{
    struct told *t = c->told;
    const uint32_t urls = c->storm->hosts.urls, puts = host_puts(m->host);
    const bool follows = host_follows(m->host);
    uint32_t registered = 0;
    for (uint32_t k = 0; k < urls; k++) {
        registered |= (uint32_t)host_is_registered(m->host, k) << k;
        tell_difference(&t->registered[k], m->registered >> k & 1, registered >> k & 1);
    }
    const bool in = follows && registered == (1u << urls) - 1;
    tell_difference(&t->follow, m->follows, follows);
    tell_difference(&t->in, m->in, in);
    t->puts += puts - m->puts;
    m->registered = registered;
    m->follows = follows;
    m->in = in;
    m->puts = puts;
    _Atomic uint64_t *in_ns = &c->storm->shared->in_ns[c->first + (uint32_t)(m - c->member)];
    if (in && *in_ns == 0)
        *in_ns = base_clock_ns();
    const uint64_t due_ns = host_due_ns(m->host);
    if (due_ns == m->due.key)
        return;
    base_heap_take_out(&c->due, &m->due);
    m->due.key = due_ns;
    base_heap_add(&c->due, &m->due);
}

/* Each that is due once, whatever it wants next. */
static void tick_due(struct crowd *c, uint64_t now)
{
    for (uint32_t i = 0; i < c->count && c->due.first->key <= now; i++) {
        struct member *m = (struct member *)c->due.first;
        host_tick(m->host);
        look_at(c, m);
    }
}

static void begin_all(struct crowd *c)
{
    struct base_errbuf err;
    for (uint32_t i = 0; i < c->count; i++) {
        struct member *m = &c->member[i];
        m->host = host_new(&c->storm->hosts, c->first + i, &err);
        if (m->host == NULL)
            fail(&err);
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};
        if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, host_fd(m->host), &e) != 0) {
            base_err(&err, -errno, "no descriptor for one more agent: %s", strerror(errno));
            fail(&err);
        }
        m->due = (struct base_heap_node){.key = 0, .order = i};
        base_heap_add(&c->due, &m->due);
    }
}

static void run_crowd(const struct storm *storm, uint32_t process)
{
    const uint32_t first = (uint32_t)((uint64_t)storm->agents * process / storm->processes);
    const uint32_t end = (uint32_t)((uint64_t)storm->agents * (process + 1) / storm->processes);
    struct crowd c = {.storm = storm,
                      .told = &storm->shared->of[process],
                      .first = first,
                      .count = end - first,
                      .epoll = epoll_create1(EPOLL_CLOEXEC)};
    struct epoll_event events[EVENTS];
    uint64_t tick_ns = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    c.member = calloc(c.count, sizeof c.member[0]);
    while (c.member != NULL && !storm->shared->begins)
        usleep(1000);
    begin_all(&c);
    for (;;) {
        const int n = epoll_wait(c.epoll, events, EVENTS, TICK_MS);
        for (int i = 0; i < n; i++) {
            struct member *m = &c.member[events[i].data.u32];
            host_run(m->host);
            look_at(&c, m);
        }
        const uint64_t now = base_clock_ns();
        if (now < tick_ns)
            continue;
        tick_due(&c, now);
        tick_ns = base_clock_ns() + TICK_MS * BASE_NS_PER_MS;
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
