/* SPDX-License-Identifier: Apache-2.0 */
/* Busy, adaptive and event polling of a lane side by side, in the patterns of RDMAbox (III-B):
 * READs in clusters as large as they come, in clusters of half of that with short gaps, and single
 * ones with long gaps. And a worker on the lane's own processor, and a lane with nothing to do. And
 * all of it once more with a worker that does not poll but waits in epoll_wait(), as a program with
 * an event loop does. */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kedge.h"
#include "perf.h"

enum { CELL_MS = 200, PATIENCE_S = 10, WARM = 1000 };

static const struct {
    const char *key, *text;
    uint32_t gap_us;
} loads[PERF_LOADS] = {
    [PERF_DENSE] = {"dense", "clusters on end", 0},
    [PERF_MEDIUM] = {"medium", "half as large, 20 us apart", 20},
    [PERF_SPARSE] = {"sparse", "single ones, 1 ms apart", 1000},
    [PERF_SAME] = {"same_processor", "single ones, on the lane's processor", 0},
    [PERF_IDLE] = {"idle", "none", 0},
};
static const char *const modes[PERF_MODES] = {[PERF_BUSY] = "busy",
                                              [PERF_ADAPTIVE] = "adaptive",
                                              [PERF_EVENT] = "event",
                                              [PERF_DESCRIPTOR] = "descriptor"};

static uint32_t cluster_of(const struct perf_options *o, enum perf_load load)
{
    return load == PERF_DENSE ? o->depth : load == PERF_MEDIUM ? o->depth / 2 : 1;
}

/* ---- what the system counts */

struct counted {
    uint64_t ns, run_ns;           /* now; that the agent had of processors */
    uint64_t switches, interrupts; /* of agent and worker; of the whole host */
};

static void count_task(int pid, const char *task, struct counted *out)
{
    char path[320], line[256];
    unsigned long long value;
    snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", pid, task);
    FILE *f = fopen(path, "re");
    if (f != NULL && fscanf(f, "%llu", &value) == 1)
        out->run_ns += value;
    if (f != NULL)
        fclose(f);
    snprintf(path, sizeof path, "/proc/%d/task/%s/status", pid, task);
    f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "voluntary_ctxt_switches: %llu", &value) == 1 ||
            sscanf(line, "nonvoluntary_ctxt_switches: %llu", &value) == 1)
            out->switches += value;
    if (f != NULL)
        fclose(f);
}

static void count_host(struct counted *out)
{
    char word[32];
    unsigned long long value;
    FILE *f = fopen("/proc/stat", "re");
    while (f != NULL && fscanf(f, "%31s", word) == 1)
        if (strcmp(word, "intr") == 0 && fscanf(f, "%llu", &value) == 1) {
            out->interrupts = value;
            break;
        }
    if (f != NULL)
        fclose(f);
}

static int count(int pid, struct counted *out, struct base_errbuf *err)
{
    char path[64];
    struct rusage own;
    *out = (struct counted){.ns = base_clock_ns()};
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *d = opendir(path);
    if (d == NULL || getrusage(RUSAGE_SELF, &own) != 0) {
        const int status = base_err(err, -errno, "%s: %s", path, strerror(errno));
        if (d != NULL)
            closedir(d);
        return status;
    }
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.')
            count_task(pid, e->d_name, out);
    closedir(d);
    out->switches += (uint64_t)(own.ru_nvcsw + own.ru_nivcsw);
    count_host(out);
    return 0;
}

/* ---- one cell of the table */

/* An agent, and a worker of it. */
struct side {
    struct perf_options o;
    struct perf_worker *w;
    int pid;
    int epfd; /* -1: it polls */
};

/* Until there is something to poll for: at once where there is, or where it does not wait. */
static int wait_in_epoll(const struct side *s, int timeout_ms, struct base_errbuf *err)
{
    struct epoll_event event;
    const int armed = s->epfd >= 0 ? kedge_arm(perf_worker_session(s->w)) : 1;
    if (armed < 0)
        return perf_failed(armed, "kedge_arm", err);
    if (armed == 0 && epoll_wait(s->epfd, &event, 1, timeout_ms) < 0 && errno != EINTR)
        return base_err(err, -errno, "epoll_wait: %s", strerror(errno));
    return 0;
}

static int read_cluster(const struct side *s, uint32_t size, struct base_errbuf *err)
{
    struct perf_path *path = perf_worker_path(s->w);
    int status = path->post(path, 0, size, err);
    const uint64_t end_ns = base_clock_ns() + PATIENCE_S * BASE_NS_PER_S;
    for (uint32_t done = 0; status == 0 && done < size;) {
        status = wait_in_epoll(s, PATIENCE_S * 1000, err);
        if (status != 0)
            return status;
        const int got = path->poll(path, err);
        if (got < 0)
            return got;
        done += (uint32_t)got;
        if (got == 0 && base_clock_ns() > end_ns)
            return base_err(err, -ETIMEDOUT, "nothing completed for %d s; is the target alive?",
                            PATIENCE_S);
    }
    return status;
}

/* Once at least. */
static int read_for_a_while(const struct side *s, uint32_t size, uint64_t gap_ns, uint64_t *done,
                            struct base_errbuf *err)
{
    const uint64_t end_ns = base_clock_ns() + CELL_MS * BASE_NS_PER_MS;
    int status;
    do {
        status = read_cluster(s, size, err);
        *done += size;
        for (const uint64_t next_ns = base_clock_ns() + gap_ns; base_clock_ns() < next_ns;)
            ;
    } while (status == 0 && base_clock_ns() < end_ns);
    return status;
}

/* One that waits in epoll_wait() is armed meanwhile. */
static int idle_for_a_while(const struct side *s, struct base_errbuf *err)
{
    const uint64_t begin_ns = base_clock_ns();
    const int status = s->epfd >= 0 ? wait_in_epoll(s, CELL_MS, err) : 0;
    const uint64_t took_us = (base_clock_ns() - begin_ns) / BASE_NS_PER_US;
    if (status == 0 && took_us < CELL_MS * 1000)
        usleep((useconds_t)(CELL_MS * 1000 - took_us));
    return status;
}

static void stay_on(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

struct cell {
    double per_second, switches, interrupts, share;
};

static int measure_cell(const struct side *s, enum perf_load load, struct cell *out,
                        struct base_errbuf *err)
{
    const struct perf_options *o = &s->o;
    struct counted before, after;
    uint64_t done = 0;
    stay_on(load == PERF_SAME ? o->lane_cpu : o->worker_cpu);
    int status = count(s->pid, &before, err);
    if (status == 0 && load == PERF_IDLE)
        status = idle_for_a_while(s, err);
    else if (status == 0)
        status = read_for_a_while(s, cluster_of(o, load), loads[load].gap_us * BASE_NS_PER_US,
                                  &done, err);
    if (status == 0)
        status = count(s->pid, &after, err);
    stay_on(o->worker_cpu);
    if (status != 0)
        return status;
    const double ns = (double)(after.ns - before.ns);
    const double each = done > 0 ? (double)done / 1000 : 1;
    *out = (struct cell){.per_second = (double)done * 1e9 / ns,
                         .switches = (double)(after.switches - before.switches) / each,
                         .interrupts = (double)(after.interrupts - before.interrupts) / each,
                         .share = (double)(after.run_ns - before.run_ns) / ns};
    return 0;
}

/* ---- turns */

/* A lane that polls without an end is stopped while others are measured: all have one processor. */
static void let_run(const struct side *s, enum perf_mode mode, bool runs)
{
    if (mode == PERF_BUSY)
        (void)kill(s->pid, runs ? SIGCONT : SIGSTOP);
}

static int take_turn(struct side side[PERF_MODES], int turn,
                     struct cell cell[PERF_LOADS][PERF_MODES], struct base_errbuf *err)
{
    static struct perf_result unused;
    int status = 0;
    for (int k = 0; k < PERF_MODES && status == 0; k++) {
        const enum perf_mode mode = (enum perf_mode)((turn + k) % PERF_MODES);
        struct side *s = &side[mode];
        let_run(s, mode, true);
        status = perf_worker_measure(s->w, &s->o, &unused, err); /* and compares the bytes */
        for (int load = 0; load < PERF_LOADS && status == 0; load++)
            status = measure_cell(s, (enum perf_load)load, &cell[load][mode], err);
        let_run(s, mode, false);
    }
    return status;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort(double *values, int n)
{
    qsort(values, (size_t)n, sizeof values[0], compare);
}

static struct cell cells[PERF_MAX_TURNS][PERF_LOADS][PERF_MODES];

static void conclude(struct perf_polled *out, int load, int mode, int turns)
{
    double rate[PERF_MAX_TURNS], switches[PERF_MAX_TURNS], interrupts[PERF_MAX_TURNS],
        share[PERF_MAX_TURNS], ratio[PERF_MAX_TURNS];
    for (int i = 0; i < turns; i++) {
        const struct cell *c = &cells[i][load][mode], *busy = &cells[i][load][PERF_BUSY];
        rate[i] = c->per_second;
        switches[i] = c->switches;
        interrupts[i] = c->interrupts;
        share[i] = c->share;
        ratio[i] = busy->per_second > 0 ? c->per_second / busy->per_second : 0;
    }
    sort(rate, turns), sort(switches, turns), sort(interrupts, turns), sort(share, turns);
    sort(ratio, turns);
    *out = (struct perf_polled){.per_second = rate[turns / 2],
                                .switches = switches[turns / 2],
                                .interrupts = interrupts[turns / 2],
                                .share = share[turns / 2],
                                .ratio = ratio[turns / 2],
                                .least_ratio = ratio[0],
                                .most_ratio = ratio[turns - 1]};
}

/* Its worker waits in epoll_wait() from here on. */
static int use_epoll(struct side *s, struct base_errbuf *err)
{
    struct epoll_event event = {.events = EPOLLIN};
    const int fd = kedge_fd(perf_worker_session(s->w));
    if (fd < 0)
        return perf_failed(fd, "kedge_fd", err);
    s->epfd = epoll_create1(EPOLL_CLOEXEC);
    if (s->epfd < 0 || epoll_ctl(s->epfd, EPOLL_CTL_ADD, fd, &event) != 0)
        return base_err(err, -errno, "epoll: %s", strerror(errno));
    return 0;
}

int perf_poll(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    struct side side[PERF_MODES] = {
        [PERF_ADAPTIVE] = {.o = *o, .pid = o->agent_pid[0], .epfd = -1},
        [PERF_EVENT] = {.o = *o, .pid = o->more_pid[0], .epfd = -1},
        [PERF_BUSY] = {.o = *o, .pid = o->more_pid[1], .epfd = -1},
        [PERF_DESCRIPTOR] = {.o = *o, .pid = o->agent_pid[0], .epfd = -1},
    };
    int status = 0;
    if (!o->pinned)
        return base_err(err, -EINVAL, "poll needs two processors that it may use");
    side[PERF_EVENT].o.socket = o->more_socket[0];
    side[PERF_BUSY].o.socket = o->more_socket[1];
    for (int i = 0; i < PERF_MODES && status == 0; i++) {
        side[i].o.count = WARM;
        status = perf_worker_new(&side[i].o, r, &side[i].w, err);
    }
    if (status == 0)
        status = use_epoll(&side[PERF_DESCRIPTOR], err);
    let_run(&side[PERF_BUSY], PERF_BUSY, false);
    for (int i = 0; i < (int)o->count && status == 0; i++)
        status = take_turn(side, i, cells[i], err);
    let_run(&side[PERF_BUSY], PERF_BUSY, true);
    for (int i = 0; i < PERF_MODES; i++)
        perf_worker_free(side[i].w);
    if (side[PERF_DESCRIPTOR].epfd >= 0)
        close(side[PERF_DESCRIPTOR].epfd);
    for (int load = 0; load < PERF_LOADS && status == 0; load++)
        for (int mode = 0; mode < PERF_MODES; mode++)
            conclude(&r->polled[load][mode], load, mode, (int)o->count);
    r->verified = status == 0;
    return status;
}

/* ---- the report */

static void cell_as_json(struct base_text *t, int load, int mode, const struct perf_polled *p)
{
    base_text_printf(t, "%s\"%s\":{", mode > 0 ? "," : "", modes[mode]);
    if (load != PERF_IDLE)
        base_text_printf(t,
                         "\"per_second\":%.0f,\"mean_ns\":%.0f,\"ratio\":%.3f,\"least_ratio\":%.3f,"
                         "\"most_ratio\":%.3f,",
                         p->per_second, 1e9 / p->per_second, p->ratio, p->least_ratio,
                         p->most_ratio);
    base_text_printf(t, "\"switches\":%.1f,\"interrupts\":%.1f,\"agent_share\":%.4f}", p->switches,
                     p->interrupts, p->share);
}

static void report_as_json(const struct perf_options *o, const struct perf_result *r)
{
    struct base_text t;
    base_text_init(&t, 4096);
    base_text_printf(&t, "{\"test\":\"%s\",\"provider\":\"soft\",\"turns\":%d,\"depth\":%u,",
                     o->name, (int)o->count, o->depth);
    for (int load = 0; load < PERF_LOADS; load++) {
        base_text_printf(&t, "\"%s\":{", loads[load].key);
        if (load != PERF_IDLE)
            base_text_printf(&t, "\"cluster\":%u,\"gap_us\":%u,",
                             cluster_of(o, (enum perf_load)load), loads[load].gap_us);
        for (int mode = 0; mode < PERF_MODES; mode++)
            cell_as_json(&t, load, mode, &r->polled[load][mode]);
        base_text_printf(&t, "},");
    }
    base_text_printf(&t, "\"verified\":%s,", r->verified ? "true" : "false");
    perf_report_machine(&t);
    base_text_printf(&t, "}");
    puts(base_text_str(&t));
    base_text_fini(&t);
}

void perf_poll_report(const struct perf_options *o, const struct perf_result *r)
{
    if (o->json) {
        report_as_json(o, r);
        return;
    }
    printf("poll: READs of %u bytes in clusters of %u, medians of %d turns; switches and the "
           "host's interrupts for 1000 READs (idle: in %d ms)\n",
           o->size, o->depth, (int)o->count, CELL_MS);
    for (int load = 0; load < PERF_LOADS; load++) {
        printf("%s: %s\n", loads[load].key, loads[load].text);
        for (int mode = 0; mode < PERF_MODES; mode++) {
            const struct perf_polled *p = &r->polled[load][mode];
            printf("  %-10s", modes[mode]);
            if (load != PERF_IDLE)
                printf("%10.0f a second, %9.3f us each, %.3f of busy (%.3f to %.3f);",
                       p->per_second, 1e6 / p->per_second, p->ratio, p->least_ratio, p->most_ratio);
            printf(" switches %.1f, interrupts %.1f, the agent has %.2f %% of a processor\n",
                   p->switches, p->interrupts, p->share * 100);
        }
    }
}
