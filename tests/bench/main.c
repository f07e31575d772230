/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-perf: measures one thing and prints it. */
#include <errno.h>
#include <stdio.h>

#include "perf.h"
#include "ucx.h"
#include "verbs_data.h"

static int measure(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    switch (o->test) {
    case PERF_ATTACH:
        return perf_attach(o, r, err);
    case PERF_CONNECT:
        return perf_connect(o, r, err);
    case PERF_MESH:
        return perf_mesh(o, r, err);
    case PERF_MEMORY:
        return perf_memory(o, r, err);
    case PERF_CORES:
        return perf_cores(o, r, err);
    case PERF_ISOLATION:
        return perf_isolation(o, r, err);
    case PERF_VERBS_CONNECT:
        return perf_verbs_connect(o, r, err);
    case PERF_VERBS_DATA:
        return perf_verbs_data(o, r, err);
    case PERF_FIRST_READ:
        return perf_first_read(o, r, err);
    case PERF_STORM:
        return perf_storm(o, r, err);
    case PERF_FAIRNESS:
        return perf_fairness(o, r, err);
    case PERF_RENEWAL:
        return perf_renewal(o, r, err);
    case PERF_LOOKUP:
        return perf_lookup(o, r, err);
    case PERF_WINDOW:
        return perf_window(o, r, err);
    case PERF_POLL:
        return perf_poll(o, r, err);
    case PERF_MERGE:
        return perf_merge(o, r, err);
    case PERF_SEND:
        return perf_send(o, r, err);
    case PERF_NOTIFY:
        return perf_notify(o, r, err);
    case PERF_BATCH:
        return perf_batch(o, r, err);
    case PERF_CUT:
        return perf_cut(o, r, err);
    case PERF_CONNECTIONS:
        return perf_connections(o, r, err);
    case PERF_LANES:
        return perf_lanes(o, r, err);
    case PERF_READ:
    case PERF_WRITE:
        break;
    }
    return o->direct ? perf_direct(o, r, err) : perf_one_sided(o, r, err);
}

/* --direct needs no servers. */
static int run(struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    struct perf_local local;
    if (o->ucx && perf_ucx_find(err) != 0)
        return -ENOENT;
    if (o->direct || !o->local || o->test == PERF_CORES)
        return measure(o, r, err);
    int status = perf_local_start(&local, o, err);
    if (status != 0)
        return status;
    status = measure(o, r, err);
    perf_local_stop(&local);
    return status == 0 && o->ucx ? perf_ucx(o, &r->ucx, err) : status;
}

int main(int argc, char **argv)
{
    static struct perf_result result;
    struct perf_options options;
    struct base_errbuf err = {.text = ""};
    int status = perf_options_parse(argc, argv, &options, &err);
    if (status > 0)
        return 0;
    if (status < 0) {
        fprintf(stderr, "kedge-perf: %s\n", err.text);
        return 2;
    }
    status = run(&options, &result, &err);
    if (status != 0) {
        fprintf(stderr, "kedge-perf: %s\n", err.text);
        return 1;
    }
    if (options.child_port == 0 && options.token == NULL)
        perf_report(&options, &result);
    return result.failed > 0 ? 1 : 0;
}
