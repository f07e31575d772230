/* SPDX-License-Identifier: Apache-2.0 */
#include "probe_main.h"

#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "agent/connector.h"
#include "agent/lane_config.h"
#include "control/config.h"
#include "control/lane_choice.h"
#include "fabric/providers.h"
#include "bounds.h"
#include "probe/probe.h"
#include "schema/session.h"
#include "schema/table.h"

enum {
    BAD_COMMAND_LINE = 2,
    REPORT_BYTES = 4 << 20,
    SLOT_BYTES = 256,       /* of a send queue; devices differ, and this is a large one */
    COMPLETION_BYTES = 128, /* of a completion queue */
    SCRATCH_BYTES = 2 * 256 * SCHEMA_TABLE_SPAN_BYTES, /* device.c registers it in both domains */
    RESPONDER_BYTES = 8192,                            /* a queue pair with one slot of each kind */
    OWN_REGIONS = 8,                                   /* beside the arenas */
};

static const char NO_CONFIG[] =
    "no settings (--config FILE): the defaults, and the first RDMA device if there is one";

static int fail_usage(const char *sentence)
{
    fprintf(stderr, "kedge-agentd: %s\n", sentence);
    return BAD_COMMAND_LINE;
}

bool agentd_probe_is_asked_for(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--probe") == 0)
            return true;
    return false;
}

struct options {
    const char *config, *provider, *device, *peer, *serve;
    bool json;
};

static const char *parse_options(int argc, char **argv, struct options *o)
{
    static const struct option table[] = {
        {"probe", no_argument, NULL, 'p'},        {"config", required_argument, NULL, 'c'},
        {"output", required_argument, NULL, 'o'}, {"provider", required_argument, NULL, 'r'},
        {"device", required_argument, NULL, 'd'}, {"peer", required_argument, NULL, 'P'},
        {"serve", required_argument, NULL, 'S'},  {0}};
    *o = (struct options){.json = false};
    for (int c; (c = getopt_long(argc, argv, "o:", table, NULL)) != -1;) {
        switch (c) {
        case 'p':
            break;
        case 'c':
            o->config = optarg;
            break;
        case 'r':
            o->provider = optarg;
            break;
        case 'd':
            o->device = optarg;
            break;
        case 'P':
            o->peer = optarg;
            break;
        case 'S':
            o->serve = optarg;
            break;
        case 'o':
            o->json = strcmp(optarg, "json") == 0;
            if (!o->json && strcmp(optarg, "text") != 0)
                return "--output must be text or json";
            break;
        default:
            return "see kedge-agentd --help";
        }
    }
    if (o->peer != NULL && o->serve != NULL)
        return "--peer and --serve are for two nodes: one of them each";
    return optind < argc ? "it takes no arguments but its options: see kedge-agentd --help" : NULL;
}

/* Without settings of anybody's: the first device that does, for that is what one wants to know. */
static const char *name_provider(const struct options *o, const struct agent_config *config)
{
    if (o->provider != NULL)
        return o->provider;
    return o->config != NULL ? config->provider : fab_provider_usual(o->device != NULL)->name;
}

static uint64_t larger_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static bool keeps_deadlines(const char *name)
{
    struct base_errbuf err;
    const struct fab_provider *provider = fab_provider_find(name, &err);
    return provider != NULL && provider->deadlines;
}

/* What device.c, queues.c and arenas.c make of a configuration. */
static void settings_from(const struct options *o, struct agent_config *config,
                          struct probe_settings *s)
{
    const char *device = o->device != NULL ? o->device : config->device;
    const char *provider = name_provider(o, config);
    if (o->config == NULL) { /* all is auto, and the provider is another one perhaps */
        snprintf(config->provider, sizeof config->provider, "%s", provider);
        config->ack_timeout = config->mr_lease_ns = 0;
        agent_config_choose_times(config);
    }
    const uint64_t dc = config->dcis + config->spares + 1;
    /* Where deadlines are kept regions need no registrations of their own. */
    const bool own_regions = !keeps_deadlines(provider);
    const uint64_t each = own_regions ? config->regions_ahead : 0;
    const uint64_t rc =
        agent_lane_connections((uint32_t)config->connections, (uint32_t)config->lanes, true) +
        config->queue_pairs_ahead + 2 * config->metaservers; /* of each lane */
    *s = (struct probe_settings){
        .provider = provider,
        .attr = {.device = device[0] != '\0' ? device : NULL,
                 .port = (uint8_t)config->port,
                 .service = config->service},
        .mr_lease_ns = config->mr_lease_ns,
        .ack_timeout = (uint8_t)config->ack_timeout,
        .ack_retries = ACK_RETRIES,
        .transport = config->transport,
        .lane_cpu = config->lane_cpu.count > 0 ? config->lane_cpu.at[0] : AGENT_ANY_CPU,
        .dc = {.queue_pairs = config->lanes * dc,
               .send_wr = SQ_DEPTH,
               .cqe = dc * SQ_DEPTH,
               .way_out = "lower dcis or spares"},
        .rc = {.queue_pairs = config->lanes * (rc + 1) + config->responders,
               .send_wr = RC_SQ_DEPTH,
               .cqe = larger_of(rc * RC_SQ_DEPTH, rc + 2 * config->responders),
               .way_out = "lower connections or responders"},
        .sge = SCHEMA_MAX_SGE,
        .most_sge = LANE_MERGE_SGES,
        .inline_bytes = SCHEMA_MAX_INLINE,
        .datagrams_sent = CONNECTOR_SENDS,
        .datagrams_taken = CONNECTOR_RECVS,
        .regions = (uint32_t)((config->max_sessions + config->arenas_ahead) * (1 + each) +
                              OWN_REGIONS + (own_regions ? config->max_mrs : 0)),
        .largest_region = config->arena_bytes,
        .open_files = FDS_OF(config->max_sessions),
        .start_bytes =
            config->arenas_ahead * config->arena_bytes * (1 + each) +
            schema_table_bytes(schema_table_log2_slots((uint32_t)config->max_mrs)) + SCRATCH_BYTES +
            larger_of(dc * SQ_DEPTH, rc * RC_SQ_DEPTH) * (SLOT_BYTES + COMPLETION_BYTES)};
    s->attr.model = config->model[0] != '\0' ? config->model : NULL;
    memcpy(s->attr.gid, config->gid, sizeof s->attr.gid);
    s->most_bytes = s->start_bytes + config->responders * RESPONDER_BYTES;
    for (uint32_t i = 0; i < config->tenants; i++)
        s->most_bytes += config->tenant[i].memory * (1 + each);
}

int agentd_probe_main(int argc, char **argv)
{
    static struct agent_config config;
    static struct probe_report report;
    struct base_errbuf err = {.text = ""};
    struct probe_settings settings;
    struct probe_verdict verdict;
    struct options options;
    char source[256];
    const char *wrong = parse_options(argc, argv, &options);
    if (wrong != NULL)
        return fail_usage(wrong);
    /* Without a file all has its default, and what can be wrong is the host's name alone. */
    if (agent_config_read(options.config, &config, &err) != 0 && options.config != NULL)
        return fail_usage(err.text);
    settings_from(&options, &config, &settings);
    snprintf(source, sizeof source, "%s%.200s",
             options.config != NULL ? "the settings of " : NO_CONFIG,
             options.config != NULL ? options.config : "");
    settings.source = source;
    settings.wrong = err.text;
    settings.peer = options.peer;
    settings.fault = config.fault;
    if (options.serve != NULL)
        return probe_serve(&settings, options.serve, stdout, &err) == 0 ? 0 : fail_usage(err.text);
    probe_run(&settings, &report);
    if (options.json) {
        struct base_text text;
        base_text_init(&text, REPORT_BYTES);
        probe_print_json(&report, &text);
        if (text.error != 0)
            return fail_usage("the report is too long");
        puts(base_text_str(&text));
        base_text_fini(&text);
    } else {
        probe_print_text(&report, stdout);
    }
    probe_judge(&report, &verdict);
    probe_report_fini(&report);
    if (fflush(stdout) != 0 || ferror(stdout))
        return fail_usage("standard output cannot be written");
    if (report.stuck)
        _exit(1); /* a thread of the provider is in the kernel, and joining it would hang as well */
    return verdict.usable ? 0 : 1;
}
