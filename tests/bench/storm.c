/* SPDX-License-Identifier: Apache-2.0 */
/* Many workers of one host that all at once want the same endpoint, which their agent may never
 * have met: each connects and READs, and all of them have to get through. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "counters.h"
#include "reader.h"
#include "worker_group.h"

enum { READY };

struct storm {
    const struct perf_options *o;
    const char *token;
};

static int worker_run(struct perf_group *group, uint32_t me, const void *user)
{
    const struct storm *storm = user;
    struct perf_member *member = &group->member[me];
    struct perf_reader reader = {.socket = storm->o->socket, .token = storm->token};
    int status = perf_reader_attach(&reader, &member->err);
    member->retries = reader.retries;
    if (status == 0)
        status = perf_reader_memory(&reader, &member->err);
    if (status == 0)
        status = perf_reader_import(&reader, &member->err);
    if (status == 0 && (status = perf_group_rendezvous(group, READY)) != 0)
        base_err(&member->err, status, "not all workers came");
    uint64_t begin = base_clock_ns();
    if (status == 0)
        status = perf_reader_connect(&reader, &member->err);
    if (status == 0)
        status = perf_reader_read(&reader, &member->err);
    member->end_ns = base_clock_ns();
    if (status == 0)
        status = perf_reader_check(&reader, &member->err);
    if (status == 0)
        base_hist_record(&member->hist, member->end_ns - begin);
    perf_reader_close(&reader);
    return status;
}

/* Absent: it makes no connections (dc). */
static int count_connections(const struct perf_options *o, struct perf_connections *out,
                             struct base_errbuf *err)
{
    static const char *const names[] = {"kedge_agent_connections_requests_total",
                                        "kedge_agent_connections_connected_total"};
    uint64_t value[2];
    if (o->admin_socket == NULL)
        return 0;
    int status = perf_counters(o->admin_socket, names, 2, value, &out->known, err);
    out->requests = value[0];
    out->made = value[1];
    return status;
}

static int judge(const struct perf_group *group, struct perf_result *r, struct base_errbuf *err)
{
    const uint64_t met_ns = atomic_load(&group->met_ns[READY]);
    struct base_errbuf why = {.text = ""};
    int status;
    base_hist_reset(&r->hist);
    r->worked = perf_group_judge(group, &status, &why);
    r->failed = group->workers - r->worked;
    r->first_failure = why;
    if (r->worked == 0)
        return base_err(err, status, "none of %u workers READ; %.450s", group->workers, why.text);
    for (uint32_t i = 0; i < group->workers; i++) {
        const struct perf_member *member = &group->member[i];
        if (member->status != 0)
            continue;
        base_hist_merge(&r->hist, &member->hist);
        r->retries += member->retries;
        if (member->end_ns - met_ns > r->elapsed_ns)
            r->elapsed_ns = member->end_ns - met_ns;
    }
    r->verified = r->failed == 0;
    return 0;
}

int perf_storm(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    struct perf_connections before = {.known = false}, after = {.known = false};
    struct perf_target target;
    struct perf_group *group;
    int status = perf_target_open(o, &target, &r->retries, err);
    if (status != 0)
        return status;
    status = perf_group_new(o->workers, &group, err);
    if (status == 0) {
        struct storm storm = {.o = o, .token = target.token};
        group->tolerant = true; /* it counts who fails */
        status = count_connections(o, &before, err);
        if (status == 0) {
            perf_group_run(group, worker_run, &storm);
            status = judge(group, r, err);
        }
        perf_group_free(group);
    }
    if (status == 0)
        status = count_connections(o, &after, err);
    perf_target_close(&target);
    r->connections = (struct perf_connections){.known = before.known && after.known,
                                               .requests = after.requests - before.requests,
                                               .made = after.made - before.made};
    return status;
}
