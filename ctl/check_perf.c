/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl check perf: how fast a metaserver answers reads and stores writes. Reads are of its list
 * of nodes; writes set a label of a node that there is not, which goes when it is over. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "ctl/check_perf.h"
#include "ctl/commands.h"
#include "ctl/fetch.h"
#include "ctl/json.h"
#include "ctl/print_table.h"

enum {
    READS = 2000,
    WRITES = 100,
    READERS = 8, /* at a time */
    LONGEST_MS = 20000,
    OUTPUT_BYTES = 1 << 16,
    PATH_BYTES = 128,
};

/* Calls of one kind that are under way, so many at a time. */
struct load {
    struct http_client *client;
    struct http_call call;
    size_t wanted, begun, under_way, done, failed;
    uint64_t *took_ns; /* owned: of each that was answered well */
    struct one {
        struct load *load;
        uint64_t from_ns;
    } one[READERS];
    uint64_t end_ns;
    int status; /* of the first that failed */
    struct base_errbuf why;
};

static void begin_call(struct load *l, struct one *one);

static void on_done(void *user, const struct http_answer *a)
{
    struct one *one = user;
    struct load *l = one->load;
    const uint64_t now = base_clock_ns();
    struct base_errbuf why;
    l->under_way--;
    const int status = a->status < 0
                           ? base_err(&why, a->status, "%.300s", a->why)
                           : ctl_judge("the metaserver", a->status, a->body, a->body_length, &why);
    if (status == 0) {
        l->took_ns[l->done++] = now - one->from_ns;
    } else if (l->failed++ == 0) {
        l->status = status;
        l->why = why;
    }
    if (l->begun < l->wanted && l->failed == 0 && now < l->end_ns)
        begin_call(l, one);
}

static void begin_call(struct load *l, struct one *one)
{
    one->load = l;
    one->from_ns = base_clock_ns();
    l->begun++;
    l->under_way++;
    const int status = http_client_call(l->client, &l->call, on_done, one, NULL);
    if (status == 0)
        return;
    l->under_way--;
    if (l->failed++ == 0)
        l->status = base_err(&l->why, status, "no call can begin: %s", strerror(-status));
}

static int compare_ns(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Runs it, and says what it came to. 0 or -errno. */
static int run_load(struct load *l, size_t at_a_time, struct ctl_perf_part *out,
                    struct base_errbuf *err)
{
    const uint64_t from = base_clock_ns();
    l->end_ns = from + LONGEST_MS * BASE_NS_PER_MS;
    l->took_ns = calloc(l->wanted, sizeof l->took_ns[0]);
    int status = l->took_ns != NULL ? http_client_new(&l->client) : -ENOMEM;
    if (status != 0) {
        free(l->took_ns);
        return base_err(err, status, "the HTTP client cannot begin: %s", strerror(-status));
    }
    for (size_t i = 0; i < at_a_time && i < l->wanted; i++)
        begin_call(l, &l->one[i]);
    while (l->under_way > 0) {
        struct pollfd p = {.fd = http_client_fd(l->client), .events = POLLIN};
        (void)poll(&p, 1, -1);
        http_client_run(l->client);
    }
    const uint64_t ns = base_clock_ns() - from;
    http_client_free(l->client);
    if (l->failed > 0)
        status = base_err(err, l->status, "%.400s", l->why.text);
    qsort(l->took_ns, l->done, sizeof l->took_ns[0], compare_ns);
    if (status == 0)
        ctl_perf_sum(l->took_ns, l->done, ns, out);
    free(l->took_ns);
    return status;
}

/* ---- reads and writes */

static int run_reads(const struct ctl_options *o, struct ctl_perf_part *out,
                     struct base_errbuf *err)
{
    struct ctl_target target;
    struct load l = {.wanted = READS};
    const int status = ctl_target_find(o, "/v1/nodes?limit=100", &target, err);
    if (status != 0)
        return status;
    ctl_aim(&l.call, &target);
    return run_load(&l, READERS, out, err);
}

static int run_writes(const struct ctl_options *o, const char *path, struct ctl_perf_part *out,
                      struct base_errbuf *err)
{
    static const char *const no_headers[] = {NULL};
    struct ctl_target target;
    struct load l = {.wanted = WRITES,
                     .call = {.method = "PUT",
                              .headers = no_headers,
                              .body = "{\"labels\":{\"rdmactl\":\"check-perf\"}}"}};
    l.call.body_length = strlen(l.call.body);
    const int status = ctl_target_of(o, path, &target, err);
    if (status != 0)
        return status;
    ctl_aim(&l.call, &target);
    return run_load(&l, 1, out, err);
}

/* What was set goes, also when something failed. */
static int clean_up(const struct ctl_options *o, const char *path, struct base_errbuf *err)
{
    struct http_result result;
    const struct ctl_request request = {.method = "DELETE", .path = path};
    const int status = ctl_call_server(o, &request, &result, err);
    if (status == 0)
        http_result_fini(&result);
    return status == -ENOENT ? 0 : status;
}

/* ---- shown */

static void part_json(struct base_text *t, const char *key, const struct ctl_perf_part *p)
{
    base_json_object(t, key);
    base_json_u64(t, "count", p->count);
    base_json_u64(t, "per_s", p->per_s);
    base_json_u64(t, "median_us", p->median_us);
    base_json_u64(t, "p99_us", p->p99_us);
    base_json_u64(t, "slowest_us", p->slowest_us);
    base_json_object_end(t);
}

static void add_row(struct ctl_table *table, const char *name, const struct ctl_perf_part *p)
{
    char cells[5][32];
    snprintf(cells[0], sizeof cells[0], "%zu", p->count);
    snprintf(cells[1], sizeof cells[1], "%" PRIu64, p->per_s);
    snprintf(cells[2], sizeof cells[2], "%" PRIu64 "us", p->median_us);
    snprintf(cells[3], sizeof cells[3], "%" PRIu64 "us", p->p99_us);
    snprintf(cells[4], sizeof cells[4], "%" PRIu64 "us", p->slowest_us);
    ctl_table_row(table,
                  (const char *const[]){name, cells[0], cells[1], cells[2], cells[3], cells[4]});
}

static int print_found(const struct ctl_options *o, const struct ctl_perf_part *reads,
                       const struct ctl_perf_part *writes, const char *verdict, bool good,
                       struct base_errbuf *err)
{
    static const char *const headings[] = {"", "COUNT", "PER SECOND", "MEDIAN", "99 %", "SLOWEST"};
    struct ctl_table *table;
    struct base_text t;
    if (o->json) {
        base_text_init(&t, OUTPUT_BYTES);
        ctl_json_begin(&t);
        part_json(&t, "reads", reads);
        part_json(&t, "writes", writes);
        base_json_bool(&t, "pass", good);
        base_json_string(&t, "verdict", verdict);
        base_json_object_end(&t);
        return ctl_json_finish(&t, err);
    }
    int status = ctl_table_new(headings, 6, &table);
    if (status == 0) {
        add_row(table, "reads", reads);
        add_row(table, "writes", writes);
        status = ctl_table_print(table);
        ctl_table_free(table);
    }
    printf("\n%s: %s\n", good ? "PASS" : "FAIL", verdict);
    return status == 0 ? 0 : base_err(err, status, "printing failed: %s", strerror(-status));
}

int ctl_check_perf(const struct ctl_options *o, struct base_errbuf *err)
{
    char path[PATH_BYTES];
    struct ctl_perf_part reads, writes;
    struct base_errbuf why;
    snprintf(path, sizeof path, "/v1/nodes/rdmactl-check-perf-%ld/settings", (long)getpid());
    int status = run_reads(o, &reads, err);
    if (status != 0)
        return status;
    status = run_writes(o, path, &writes, err);
    const int cleaned = clean_up(o, path, &why);
    if (status == 0 && cleaned != 0)
        status = base_err(err, cleaned, "%.100s is left there: %.300s", path, why.text);
    if (status != 0)
        return status;
    char verdict[CTL_PERF_VERDICT_BYTES];
    const bool good = ctl_perf_judge(&reads, &writes, verdict);
    status = print_found(o, &reads, &writes, verdict, good, err);
    return status != 0 || good ? status : base_err(err, -EIO, "%s", verdict);
}
