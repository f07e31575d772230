/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/text.h"
#include "perf.h"
#include "ucx.h"
#include "verbs_data.h"

/* The processor's name, as the kernel has it. */
static void processor(char *out, size_t size)
{
    char line[256];
    snprintf(out, size, "unknown");
    FILE *f = fopen("/proc/cpuinfo", "re");
    if (f == NULL)
        return;
    while (fgets(line, sizeof line, f) != NULL) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || value == NULL)
            continue;
        value += 1 + strspn(value + 1, " ");
        value[strcspn(value, "\n")] = '\0';
        snprintf(out, size, "%s", value);
        break;
    }
    fclose(f);
}

static bool has_depth(const struct perf_options *o)
{
    return o->test == PERF_READ || o->test == PERF_WRITE;
}

void perf_report_machine(struct base_text *t)
{
    struct utsname kernel;
    char name[128];
    processor(name, sizeof name);
    if (uname(&kernel) != 0)
        memset(&kernel, 0, sizeof kernel);
    base_text_printf(t, "\"machine\":{\"processor\":");
    base_text_json(t, name);
    base_text_printf(t, ",\"cores\":%ld,\"kernel\":", sysconf(_SC_NPROCESSORS_ONLN));
    base_text_json(t, kernel.release);
    base_text_printf(t, ",\"version\":");
    base_text_json(t, KEDGE_VERSION);
    base_text_printf(t, "}");
}

static double ratio(const struct perf_result *r, double percent)
{
    uint64_t alone = base_hist_percentile(&r->alone, percent);
    return alone > 0 ? (double)base_hist_percentile(&r->hist, percent) / (double)alone : 0;
}

static void storm_as_json(struct base_text *t, const struct perf_options *o,
                          const struct perf_result *r)
{
    base_text_printf(t, "\"workers\":%u,\"worked\":%u,\"failed\":%u,\"first_failure\":", o->workers,
                     r->worked, r->failed);
    if (r->failed > 0)
        base_text_json(t, r->first_failure.text);
    else
        base_text_printf(t, "null");
    base_text_printf(t, ",\"verified\":%s,", r->verified ? "true" : "false");
    if (r->connections.known)
        base_text_printf(t, "\"handshake_requests\":%llu,\"connections\":%llu,",
                         (unsigned long long)r->connections.requests,
                         (unsigned long long)r->connections.made);
    else
        base_text_printf(t, "\"handshake_requests\":null,\"connections\":null,");
}

static void storm_as_text(const struct perf_options *o, const struct perf_result *r)
{
    printf("storm: %u of %u workers READ; the last %.3f ms after they began; each: p50 %.3f us, "
           "p99 %.3f us",
           r->worked, o->workers, (double)r->elapsed_ns / 1e6,
           (double)base_hist_percentile(&r->hist, 50) / 1e3,
           (double)base_hist_percentile(&r->hist, 99) / 1e3);
    if (r->connections.known)
        printf("; connections: %llu made, with %llu handshake messages",
               (unsigned long long)r->connections.made,
               (unsigned long long)r->connections.requests);
    if (r->failed > 0)
        printf("; %u failed, the first of them: %s", r->failed, r->first_failure.text);
    puts("");
}

static void cores_as_text(const struct perf_shared_core *c)
{
    printf("a loop beside the other processor's: %.2f times its time alone (%.1f us); 1.00 where "
           "each has a core\n",
           c->alone_ns > 0 ? (double)c->beside_ns / (double)c->alone_ns : 0,
           (double)c->alone_ns / 1e3);
}

static void as_json(const struct perf_options *o, const struct perf_result *r, double per_second)
{
    const struct base_hist *h = &r->hist;
    struct base_text t;
    base_text_init(&t, 4096);
    /* Whose an agent is that was running already, it does not tell its workers. */
    base_text_printf(&t, "{\"test\":\"%s\",\"provider\":%s,\"direct\":%s,", o->name,
                     o->direct || o->local ? "\"soft\"" : "null", o->direct ? "true" : "false");
    if (o->model != NULL)
        base_text_printf(&t, "\"modelled\":\"%s\",", o->model);
    if (o->test == PERF_CONNECT)
        base_text_printf(&t, "\"cached\":%s,", o->cached ? "true" : "false");
    if (has_depth(o))
        base_text_printf(&t, "\"size\":%u,\"depth\":%u,\"verified\":%s,", o->size, o->depth,
                         r->verified ? "true" : "false");
    if (o->test == PERF_MESH)
        base_text_printf(&t,
                         "\"workers\":%u,\"verified\":%s,\"faults_per_worker\":%.1f,"
                         "\"sleeps_per_worker\":%.1f,\"workers_processor_ns\":%llu,"
                         "\"agents_processor_ns\":%llu,",
                         o->workers, r->verified ? "true" : "false", (double)r->faults / o->workers,
                         (double)r->sleeps / o->workers, (unsigned long long)r->workers_ns,
                         (unsigned long long)r->agents_ns);
    if (o->test == PERF_STORM)
        storm_as_json(&t, o, r);
    if (o->test == PERF_CORES)
        base_text_printf(&t, "\"loop_alone_ns\":%llu,\"loop_beside_ns\":%llu,",
                         (unsigned long long)r->shared_core.alone_ns,
                         (unsigned long long)r->shared_core.beside_ns);
    if (o->test == PERF_MEMORY)
        base_text_printf(&t, "\"peers\":%llu,\"bytes_with\":%llu,\"bytes_without\":%llu,",
                         (unsigned long long)o->count, (unsigned long long)r->large,
                         (unsigned long long)r->small);
    if (o->test == PERF_ISOLATION)
        base_text_printf(&t,
                         "\"dead\":%u,\"silent\":%u,\"wrong_keys\":%s,\"alone_p50_ns\":%llu,"
                         "\"alone_p99_ns\":%llu,"
                         "\"alone_max_ns\":%llu,\"alone_mean_ns\":%.1f,\"bad_posted\":%llu,"
                         "\"bad_failed\":%llu,\"p99_ratio\":%.3f,",
                         o->wrong_keys ? 0 : o->dead, o->wrong_keys ? 0 : o->silent,
                         o->wrong_keys ? "true" : "false",
                         (unsigned long long)base_hist_percentile(&r->alone, 50),
                         (unsigned long long)base_hist_percentile(&r->alone, 99),
                         (unsigned long long)r->alone.max, base_hist_mean(&r->alone),
                         (unsigned long long)r->bad_posted, (unsigned long long)r->bad_failed,
                         ratio(r, 99));
    base_text_printf(
        &t,
        "\"count\":%llu,\"retries\":%llu,\"min_ns\":%llu,\"p50_ns\":%llu,\"p99_ns\":%llu,"
        "\"p999_ns\":%llu,\"max_ns\":%llu,\"mean_ns\":%.1f,\"elapsed_ns\":%llu,"
        "\"per_second\":%.0f,",
        (unsigned long long)h->count, (unsigned long long)r->retries,
        (unsigned long long)(h->count > 0 ? h->min : 0),
        (unsigned long long)base_hist_percentile(h, 50),
        (unsigned long long)base_hist_percentile(h, 99),
        (unsigned long long)base_hist_percentile(h, 99.9), (unsigned long long)h->max,
        base_hist_mean(h), (unsigned long long)r->elapsed_ns, per_second);
    base_text_printf(&t, "\"pinned\":%s,", o->pinned ? "true" : "false");
    if (o->ucx)
        perf_ucx_report(o, &r->ucx, &t);
    perf_report_machine(&t);
    base_text_printf(&t, "}");
    puts(base_text_str(&t));
    base_text_fini(&t);
}

/* Of tests that have a report of their own. */
static bool report_own(const struct perf_options *o, const struct perf_result *r)
{
    static const struct {
        enum perf_test test;
        void (*report)(const struct perf_options *o, const struct perf_result *r);
    } own[] = {
        {PERF_VERBS_CONNECT, perf_verbs_report},
        {PERF_FAIRNESS, perf_fairness_report},
        {PERF_RENEWAL, perf_renewal_report},
        {PERF_LOOKUP, perf_lookup_report},
        {PERF_WINDOW, perf_window_report},
        {PERF_POLL, perf_poll_report},
        {PERF_FIRST_READ, perf_first_report},
        {PERF_MERGE, perf_merge_report},
        {PERF_SEND, perf_send_report},
        {PERF_NOTIFY, perf_notify_report},
        {PERF_BATCH, perf_batch_report},
        {PERF_CUT, perf_cut_report},
        {PERF_CONNECTIONS, perf_connections_report},
        {PERF_VERBS_DATA, perf_verbs_data_report},
        {PERF_LANES, perf_lanes_report},
    };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (own[i].test == o->test) {
            own[i].report(o, r);
            return true;
        }
    return false;
}

void perf_report(const struct perf_options *o, const struct perf_result *r)
{
    const struct base_hist *h = &r->hist;
    double seconds = (double)r->elapsed_ns / 1e9;
    double per_second = seconds > 0 ? (double)h->count / seconds : 0;
    char what[96] = "";
    if (report_own(o, r))
        return;
    if (o->json) {
        as_json(o, r, per_second);
        return;
    }
    if (o->test == PERF_STORM) {
        storm_as_text(o, r);
        return;
    }
    if (o->test == PERF_MEMORY) {
        printf("memory: %.1f bytes for each of %llu peers (%llu KiB; %llu KiB without them)\n",
               ((double)r->large - (double)r->small) / (double)o->count,
               (unsigned long long)o->count, (unsigned long long)r->large / 1024,
               (unsigned long long)r->small / 1024);
        return;
    }
    if (o->test == PERF_ISOLATION) {
        char other[80] = "guesses keys of the same node";
        if (!o->wrong_keys)
            snprintf(other, sizeof other, "posts to %u killed nodes and %u that never answer",
                     o->dead, o->silent);
        printf("isolation: READs of %u bytes alone: p50 %.3f us, p99 %.3f us; beside a worker that "
               "%s: p50 %.3f us, p99 %.3f us; "
               "ratio %.2f and %.2f (%llu each; the other posted %llu, %llu of them failed)\n",
               o->size, (double)base_hist_percentile(&r->alone, 50) / 1e3,
               (double)base_hist_percentile(&r->alone, 99) / 1e3, other,
               (double)base_hist_percentile(h, 50) / 1e3, (double)base_hist_percentile(h, 99) / 1e3,
               ratio(r, 50), ratio(r, 99), (unsigned long long)h->count,
               (unsigned long long)r->bad_posted, (unsigned long long)r->bad_failed);
        return;
    }
    if (o->test == PERF_CORES)
        cores_as_text(&r->shared_core);
    if (o->model != NULL)
        printf("modelled: %s\n", o->model);
    if (has_depth(o))
        snprintf(what, sizeof what, " of %u bytes, depth %u%s", o->size, o->depth,
                 o->direct ? ", on the fabric itself" : "");
    else if (o->test == PERF_CONNECT)
        snprintf(what, sizeof what, "%s", o->cached ? " to a known peer" : " to an unknown peer");
    else if (o->test == PERF_MESH)
        snprintf(what, sizeof what, " of %u workers, %.3f s from the last attach to the last READ",
                 o->workers, seconds);
    if (o->test == PERF_MESH)
        printf("%.1f page faults and %.1f sleeps of a worker; processors' time: workers %.3f s, "
               "agents %.3f s\n",
               (double)r->faults / o->workers, (double)r->sleeps / o->workers,
               (double)r->workers_ns / 1e9, (double)r->agents_ns / 1e9);
    printf("%s%s: p50 %.3f us, p99 %.3f us, mean %.3f us, %.0f per second (%llu)\n", o->name, what,
           (double)base_hist_percentile(h, 50) / 1e3, (double)base_hist_percentile(h, 99) / 1e3,
           base_hist_mean(h) / 1e3, per_second, (unsigned long long)h->count);
    if (o->ucx)
        perf_ucx_report(o, &r->ucx, NULL);
}
