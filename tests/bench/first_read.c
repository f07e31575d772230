/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker that has just been started pays until its first READ has completed, beside what
 * verbs-connect says of a program without Kedge: each repetition in a fresh process, timed from the
 * same point of its main(). */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "fresh.h"
#include "reader.h"

static const struct {
    const char *name; /* for a table's first column */
    const char *key;  /* for JSON */
    int (*run)(struct perf_reader *r, struct base_errbuf *err);
} steps[PERF_FIRST_STEPS] = {
    {"attach to the agent", "attach", perf_reader_attach},
    {"memory, registered", "memory", perf_reader_memory},
    {"import the target's token", "import", perf_reader_import},
    {"VQP, connect", "connect", perf_reader_connect},
    {"first READ, 8 bytes", "read", perf_reader_read},
};

/* Before each repetition: the agent ends the session of the one before. */
enum { PAUSE_US = 200000 };

/* In the process that was started for one repetition: prints its times. */
static int be_worker(const struct perf_options *o, struct base_errbuf *err)
{
    struct perf_reader reader = {.socket = o->socket, .token = o->token};
    struct base_clock_fast clock;
    uint64_t ns[PERF_FIRST_STEPS];
    int status = 0;
    base_clock_fast_init(&clock);
    uint64_t begin = base_clock_fast_ns(&clock);
    for (int i = 0; i < PERF_FIRST_STEPS && status == 0; i++) {
        status = steps[i].run(&reader, err);
        uint64_t end = base_clock_fast_ns(&clock);
        ns[i] = end - begin;
        begin = end;
    }
    if (status == 0)
        status = perf_reader_check(&reader, err);
    perf_reader_close(&reader);
    if (status == 0)
        perf_fresh_print(ns, PERF_FIRST_STEPS);
    return status;
}

int perf_first_read(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    static struct perf_samples samples;
    struct perf_target target;
    uint64_t ns[PERF_FIRST_STEPS];
    if (o->token != NULL)
        return be_worker(o, err);
    int status = perf_target_open(o, &target, &r->retries, err);
    if (status != 0)
        return status;
    const char *argv[7] = {"kedge-perf", "first-read", "--token", target.token};
    if (o->socket != NULL) {
        argv[4] = "--socket";
        argv[5] = o->socket;
    }
    for (uint64_t i = 0; i < o->count && status == 0; i++) {
        usleep(PAUSE_US);
        status = perf_fresh_run(argv, ns, PERF_FIRST_STEPS, err);
        if (status == 0)
            perf_samples_add(&samples, ns, 0, PERF_FIRST_STEPS);
    }
    perf_target_close(&target);
    if (status == 0)
        r->first_least_ns = perf_samples_medians(&samples, PERF_FIRST_STEPS, r->first_ns);
    return status;
}

void perf_first_report(const struct perf_options *o, const struct perf_result *r)
{
    const uint64_t *ns = r->first_ns;
    struct base_text t;
    if (!o->json) {
        printf("first-read, with Kedge; medians of %llu fresh processes, in us\n",
               (unsigned long long)o->count);
        for (int i = 0; i < PERF_FIRST_STEPS; i++)
            printf("%-32s %16.1f\n", steps[i].name, (double)ns[i] / 1e3);
        printf("%-32s %16.1f\n", "all of it", (double)ns[PERF_FIRST_STEPS] / 1e3);
        return;
    }
    base_text_init(&t, 4096);
    base_text_printf(&t, "{\"test\":\"%s\",\"verified\":true,\"count\":%llu,\"cold\":{", o->name,
                     (unsigned long long)o->count);
    for (int i = 0; i < PERF_FIRST_STEPS; i++)
        base_text_printf(&t, "\"%s_ns\":%llu,", steps[i].key, (unsigned long long)ns[i]);
    base_text_printf(&t, "\"total_ns\":%llu,\"least_total_ns\":%llu},",
                     (unsigned long long)ns[PERF_FIRST_STEPS],
                     (unsigned long long)r->first_least_ns);
    perf_report_machine(&t);
    base_text_printf(&t, "}");
    puts(base_text_str(&t));
    base_text_fini(&t);
}
