/* SPDX-License-Identifier: Apache-2.0 */
/* What a lookup of a name costs as one READ of a metaserver's table, and over HTTP with a
 * connection that is kept: in turns, by as many clients, with the metaserver idle or in a storm of
 * nodes that register. And how long it is from a name to the first byte of a region.
 *
 * Over HTTP a node is looked up by its name, GET /v1/nodes/ID: for the metaserver one look into a
 * hash table, as for the reader of the table of names. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "counters.h"
#include "base/http/client.h"
#include "fresh.h"
#include "kept_http.h"
#include "reader.h"
#include "worker_group.h"

enum {
    READY,
    STORM_CONNECTIONS = 8,
    STORM_NODES = 1000,
    TURN_MS = 500,
    WARM = 20, /* times from a name to the first byte, when the owner is known */
};
/* --local's: the node whose names are looked up, and the region's. */
static const char OWNER[] = "perf-b", TENANT[] = "perf", FIRST_BYTE[] = "perf/first-byte";

struct registry {
    int fd;
    char bytes[PERF_HTTP_BYTES], *answer;
};

struct lookups {
    const struct perf_options *o;
    enum perf_way way;
};

/* ---- what is registered */

static int send_node(int fd, const char *id, const uint8_t gid[16], uint64_t incarnation,
                     struct base_errbuf *err)
{
    char path[96], body[512], text[BASE_GID_TEXT];
    snprintf(path, sizeof path, "/v1/nodes/%s", id);
    snprintf(body, sizeof body,
             "{\"incarnation\":%llu,\"endpoints\":[{\"gid\":\"%s\",\"pool\":1,\"transports\":"
             "[\"dc\",\"rc\"],\"dct_number\":1,\"dc_key\":\"0000000000000001\",\"mtu\":4096,"
             "\"ud_qpn\":1,\"ud_qkey\":1,"
             "\"mr_table\":{\"addr\":\"0000000000100000\",\"rkey\":1,\"log2_slots\":8}}]}",
             (unsigned long long)incarnation, base_gid_format(gid, text));
    return perf_http_send(fd, "PUT", path, body, err);
}

static int put_name(struct registry *r, uint64_t incarnation, const char *name, const char *token,
                    struct base_errbuf *err)
{
    char path[96], body[512];
    snprintf(path, sizeof path, "/v1/nodes/%s/regions", OWNER);
    snprintf(body, sizeof body,
             "{\"incarnation\":%llu,\"tenant\":\"%s\",\"name\":\"%s\",\"grant\":\"%s\"}",
             (unsigned long long)incarnation, TENANT, name, token);
    return perf_http_call(r->fd, "PUT", path, body, r->bytes, &r->answer, err);
}

static void name_of(uint32_t worker, char name[32])
{
    snprintf(name, 32, "perf/%u", worker);
}

/* Of one region of the owner's: one for the first byte, and one for each client. */
static int put_names(struct registry *r, uint32_t workers, const char *token,
                     struct base_errbuf *err)
{
    char path[64], name[32];
    snprintf(path, sizeof path, "/v1/nodes/%s", OWNER);
    int status = perf_http_call(r->fd, "GET", path, NULL, r->bytes, &r->answer, err);
    const char *field = status == 0 ? strstr(r->answer, "\"incarnation\":") : NULL;
    if (status == 0 && field == NULL)
        return base_err(err, -EPROTO, "%s has no incarnation", OWNER);
    const uint64_t incarnation = status == 0 ? strtoull(field + 14, NULL, 10) : 0;
    if (status == 0)
        status = put_name(r, incarnation, FIRST_BYTE, token, err);
    for (uint32_t i = 0; i < workers && status == 0; i++) {
        name_of(i, name);
        status = put_name(r, incarnation, name, token, err);
    }
    return status;
}

/* ---- a storm */

/* Until it is killed: nodes that register, each time as another life, on some connections at once.
 */
static void make_storm(const struct perf_options *o)
{
    static struct registry r[STORM_CONNECTIONS];
    uint8_t gid[16] = {0xfd, 0x02};
    char id[32];
    for (int i = 0; i < STORM_CONNECTIONS; i++)
        if (perf_http_open(o->server, &r[i].fd, NULL) != 0)
            _exit(1);
    for (uint64_t n = 0;; n += STORM_CONNECTIONS) {
        for (uint64_t i = 0; i < STORM_CONNECTIONS; i++) {
            const uint64_t node = (n + i) % STORM_NODES;
            snprintf(id, sizeof id, "perf-storm-%llu", (unsigned long long)node);
            memcpy(gid + 8, &node, sizeof node);
            if (send_node(r[i].fd, id, gid, 1000000000 + n / STORM_NODES, NULL) != 0)
                _exit(1);
        }
        for (int i = 0; i < STORM_CONNECTIONS; i++)
            if (perf_http_receive(r[i].fd, r[i].bytes, &r[i].answer, NULL) != 0)
                _exit(1);
    }
}

static pid_t begin_storm(const struct perf_options *o)
{
    const pid_t pid = o->storm ? fork() : 0;
    if (o->storm && pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        make_storm(o);
    }
    return pid;
}

/* It has gone on until now: else what was measured was no storm. */
static int end_storm(pid_t pid, struct base_errbuf *err)
{
    if (pid == 0)
        return 0;
    const bool ended = waitpid(pid, NULL, WNOHANG) != 0;
    kill(pid, SIGKILL);
    if (ended)
        return base_err(err, -EIO, "the storm of registrations ended by itself");
    waitpid(pid, NULL, 0);
    return 0;
}

/* ---- clients */

/* What one of them looks up again and again. */
struct client {
    struct kedge_session *s;
    struct registry r;
    struct http_client *http;
    int answered; /* the status of its call, or 0 */
    char name[32], path[64], url[160];
};

static void note_answer(void *user, const struct http_answer *answer)
{
    struct client *c = user;
    c->answered = answer->status;
}

static int call_http(struct client *c, struct base_errbuf *err)
{
    const struct http_call call = {.url = c->url};
    struct pollfd fd = {.fd = http_client_fd(c->http), .events = POLLIN};
    c->answered = 0;
    int status = http_client_call(c->http, &call, note_answer, c, NULL);
    while (status == 0 && c->answered == 0) {
        http_client_run(c->http);
        if (c->answered == 0 && poll(&fd, 1, PERF_PATIENCE_MS) != 1)
            status = -ETIMEDOUT;
    }
    if (status == 0 && c->answered != 200)
        status = -EPROTO;
    return status != 0 ? base_err(err, status, "GET %s: %d", c->url, c->answered) : 0;
}

static int look_up(struct client *c, enum perf_way way, struct base_errbuf *err)
{
    struct kedge_remote remote;
    int status;
    if (way == PERF_BY_SOCKET)
        return perf_http_call(c->r.fd, "GET", c->path, NULL, c->r.bytes, &c->r.answer, err);
    if (way == PERF_BY_HTTP)
        return call_http(c, err);
    status = kedge_lookup(c->s, c->name, &remote);
    return status != 0 ? perf_failed(status, "kedge_lookup", err) : 0;
}

static int begin_client(struct client *c, const struct lookups *l, uint32_t me,
                        struct perf_member *member)
{
    name_of(me, c->name);
    snprintf(c->path, sizeof c->path, "/v1/nodes/%s", OWNER);
    snprintf(c->url, sizeof c->url, "%s%s", l->o->server, c->path);
    if (l->way == PERF_BY_SOCKET)
        return perf_http_open(l->o->server, &c->r.fd, &member->err);
    if (l->way == PERF_BY_HTTP)
        return http_client_new(&c->http);
    return perf_open(l->o->socket, &c->s, &member->retries, &member->err);
}

static int client_run(struct perf_group *group, uint32_t me, const void *user)
{
    static struct client c;
    const struct lookups *l = user;
    struct perf_member *member = &group->member[me];
    int status = begin_client(&c, l, me, member);
    if (status == 0)
        status = look_up(&c, l->way, &member->err);
    if (status == 0 && (status = perf_group_rendezvous(group, READY)) != 0)
        base_err(&member->err, status, "not all clients came");
    const uint64_t end = atomic_load(&group->met_ns[READY]) + TURN_MS * BASE_NS_PER_MS;
    for (uint64_t begin = base_clock_ns(); status == 0 && begin < end;) {
        status = look_up(&c, l->way, &member->err);
        const uint64_t now = base_clock_ns();
        base_hist_record(&member->hist, now - begin);
        begin = now;
    }
    if (c.s != NULL)
        kedge_close(c.s);
    return status;
}

/* One turn: lookups a second of all clients, and how long each took. */
static int take_turn(const struct perf_options *o, enum perf_way way, struct base_hist *hist,
                     double *rate, struct base_errbuf *err)
{
    const struct lookups l = {.o = o, .way = way};
    struct perf_group *group;
    int status = perf_group_new(o->workers, &group, err), said = 0;
    uint64_t done = 0;
    if (status != 0)
        return status;
    perf_group_run(group, client_run, &l);
    if (perf_group_judge(group, &said, err) < o->workers)
        status = said;
    for (uint32_t i = 0; i < o->workers; i++) {
        base_hist_merge(hist, &group->member[i].hist);
        done += group->member[i].hist.count;
    }
    *rate = (double)done * 1e3 / TURN_MS;
    perf_group_free(group);
    return status;
}

/* ---- from a name to the first byte */

static int read_counters(const struct perf_options *o, uint64_t out[3], struct base_errbuf *err)
{
    static const char *const names[] = {"kedge_agent_lane_name_reads_total",
                                        "kedge_agent_lane_endpoint_reads_total",
                                        "kedge_agent_lane_mr_reads_total"};
    bool all;
    return perf_counters(o->admin_socket, names, 3, out, &all, err);
}

/* Of a worker that is attached and has memory. */
static int time_first_byte(const struct perf_options *o, const char *name, uint64_t *ns,
                           uint64_t reads[3], struct base_errbuf *err)
{
    struct perf_reader reader = {.socket = o->socket};
    uint64_t before[3], after[3];
    int status = perf_reader_attach(&reader, err);
    if (status == 0)
        status = perf_reader_memory(&reader, err);
    if (status == 0)
        status = read_counters(o, before, err);
    const uint64_t begin = base_clock_ns();
    if (status == 0 && (status = kedge_lookup(reader.s, name, &reader.remote)) != 0)
        perf_failed(status, "kedge_lookup", err);
    if (status == 0)
        status = perf_reader_connect(&reader, err);
    if (status == 0)
        status = perf_reader_read(&reader, err);
    *ns = base_clock_ns() - begin;
    if (status == 0)
        status = perf_reader_check(&reader, err);
    if (status == 0)
        status = read_counters(o, after, err);
    for (int i = 0; i < 3 && status == 0; i++)
        reads[i] = after[i] - before[i];
    perf_reader_close(&reader);
    return status;
}

/* Of an owner that the agent has never met, and then of the same. */
static int measure_first_byte(const struct perf_options *o, struct perf_lookup *out,
                              struct base_errbuf *err)
{
    static struct perf_samples samples;
    uint64_t ns = 0, reads[3] = {0};
    int status = time_first_byte(o, FIRST_BYTE, &out->cold_ns, out->cold_reads, err);
    for (int i = 0; i < WARM && status == 0; i++) {
        status = time_first_byte(o, FIRST_BYTE, &ns, reads, err);
        perf_samples_add(&samples, &ns, 0, 1);
        for (int k = 0; k < 3; k++)
            out->warm_reads[k] += reads[k];
    }
    uint64_t medians[2];
    perf_samples_medians(&samples, 1, medians);
    out->warm_ns = medians[0];
    return status;
}

/* ---- the test */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *values, int count)
{
    qsort(values, (size_t)count, sizeof values[0], compare);
    return values[count / 2];
}

/* What READs are held against. */
static void conclude_way(struct perf_lookup *l, enum perf_way way,
                         double rate[PERF_WAYS][PERF_MAX_TURNS], int turns)
{
    struct perf_lookup_way *out = &l->way[way];
    double ratio[PERF_MAX_TURNS], sorted[PERF_MAX_TURNS];
    for (int i = 0; i < turns; i++)
        ratio[i] = rate[PERF_BY_READ][i] / rate[way][i];
    memcpy(sorted, rate[way], (size_t)turns * sizeof sorted[0]);
    out->rate = median_of(sorted, turns);
    out->ratio = median_of(ratio, turns);
    out->least_ratio = ratio[0];
    out->most_ratio = ratio[turns - 1];
}

static int measure_turns(const struct perf_options *o, struct perf_lookup *l,
                         struct base_errbuf *err)
{
    static double rate[PERF_WAYS][PERF_MAX_TURNS];
    const int turns = (int)o->count;
    int status = 0;
    const pid_t storm = begin_storm(o);
    if (storm < 0)
        return base_err(err, -errno, "fork: %s", strerror(errno));
    for (int i = 0; i < PERF_WAYS; i++)
        base_hist_reset(&l->way[i].hist);
    for (int i = 0; i < turns; i++)
        for (int k = 0; k < PERF_WAYS && status == 0; k++) {
            const enum perf_way way = (enum perf_way)((i + k) % PERF_WAYS); /* each comes first */
            status = take_turn(o, way, &l->way[way].hist, &rate[way][i], err);
        }
    const int stormed = end_storm(storm, err);
    if (status != 0 || stormed != 0)
        return status != 0 ? status : stormed;
    for (int i = 0; i < PERF_WAYS; i++)
        conclude_way(l, (enum perf_way)i, rate, turns);
    return 0;
}

int perf_lookup(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    static struct registry registry;
    struct perf_target target;
    uint64_t retries = 0;
    int status = perf_http_open(o->server, &registry.fd, err);
    if (status != 0)
        return status;
    if ((status = perf_target_open(o, &target, &retries, err)) == 0) {
        status = put_names(&registry, o->workers, target.token, err);
        if (status == 0)
            status = measure_first_byte(o, &r->lookup, err);
        if (status == 0)
            status = measure_turns(o, &r->lookup, err);
        perf_target_close(&target);
    }
    close(registry.fd);
    return status;
}

static const struct {
    const char *key, *text;
} ways[PERF_WAYS] = {[PERF_BY_READ] = {"read", "by READ"},
                     [PERF_BY_HTTP] = {"http", "over HTTP, as agents ask"},
                     [PERF_BY_SOCKET] = {"socket", "over HTTP, with bare sockets"}};

static uint64_t count_reads(const uint64_t reads[3])
{
    return reads[0] + reads[1] + reads[2];
}

static void report_as_json(const struct perf_options *o, const struct perf_lookup *l)
{
    struct base_text t;
    base_text_init(&t, 4096);
    base_text_printf(
        &t, "{\"test\":\"%s\",\"provider\":\"%s\",\"workers\":%u,\"storm\":%s,\"turns\":%d,",
        o->name, o->gids != NULL ? "verbs" : "soft", o->workers, o->storm ? "true" : "false",
        (int)o->count);
    for (int i = 0; i < PERF_WAYS; i++) {
        const struct perf_lookup_way *w = &l->way[i];
        base_text_printf(
            &t,
            "\"%s\":{\"per_second\":%.0f,\"p50_ns\":%llu,\"p99_ns\":%llu,\"ratio\":%.2f,"
            "\"least_ratio\":%.2f,\"most_ratio\":%.2f},",
            ways[i].key, w->rate, (unsigned long long)base_hist_percentile(&w->hist, 50),
            (unsigned long long)base_hist_percentile(&w->hist, 99), w->ratio, w->least_ratio,
            w->most_ratio);
    }
    base_text_printf(&t,
                     "\"first_byte\":{\"cold_ns\":%llu,\"cold_reads\":%llu,\"warm_ns\":%llu,"
                     "\"warm_reads\":%.2f},",
                     (unsigned long long)l->cold_ns,
                     (unsigned long long)(1 + count_reads(l->cold_reads)),
                     (unsigned long long)l->warm_ns, 1 + (double)count_reads(l->warm_reads) / WARM);
    perf_report_machine(&t);
    base_text_printf(&t, "}");
    puts(base_text_str(&t));
    base_text_fini(&t);
}

void perf_lookup_report(const struct perf_options *o, const struct perf_result *r)
{
    const struct perf_lookup *l = &r->lookup;
    if (o->json) {
        report_as_json(o, l);
        return;
    }
    printf("lookup: %u client%s on %s, %s, %d turns\n", o->workers, o->workers == 1 ? "" : "s",
           o->gids != NULL ? o->verbs.device : "soft",
           o->storm ? "nodes registering" : "metaserver idle", (int)o->count);
    for (int i = 0; i < PERF_WAYS; i++) {
        const struct perf_lookup_way *w = &l->way[i];
        printf("%-30s %9.0f a second; p50 %.1f us, p99 %.1f us", ways[i].text, w->rate,
               (double)base_hist_percentile(&w->hist, 50) / 1e3,
               (double)base_hist_percentile(&w->hist, 99) / 1e3);
        if (i != PERF_BY_READ)
            printf("; %.1f times as many by READ (%.1f to %.1f)", w->ratio, w->least_ratio,
                   w->most_ratio);
        puts("");
    }
    printf("from a name to the first byte: %.1f us and %llu READs (names %llu, endpoints %llu, "
           "regions %llu, the region) of an owner that the agent has never met; %.1f us and %.2f "
           "READs of one that it knows\n",
           (double)l->cold_ns / 1e3, (unsigned long long)(1 + count_reads(l->cold_reads)),
           (unsigned long long)l->cold_reads[0], (unsigned long long)l->cold_reads[1],
           (unsigned long long)l->cold_reads[2], (double)l->warm_ns / 1e3,
           1 + (double)count_reads(l->warm_reads) / WARM);
}
