/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-metad: parses, wires and runs. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_commands.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/random.h"
#include "base/version.h"
#include "loop.h"
#include "open_store.h"
#include "process.h"
#include "start_check.h"

/* Of so many nodes what became of each is kept, if all go at once; and so much more. */
enum { NODES_TOLD = 1 << 16, OTHERS_TOLD = 1024 };

static void print_help(void)
{
    printf(
        "usage: kedge-metad [--config FILE] [--check-config]\n"
        "       kedge-metad [--config FILE] backup FILE\n"
        "       kedge-metad [--config FILE] restore FILE\n"
        "       kedge-metad [--config FILE] store copy OTHER\n"
        "\n"
        "Serves the endpoint table that agents read, and the REST interface that they register\n"
        "with.\n"
        "\n"
        "  --config FILE    settings (none: the defaults below)\n"
        "  --check-config   read the settings, say what is wrong, and end\n"
        "  backup FILE      write what the store holds to a file (-: the standard output), also\n"
        "                   while a metaserver runs on it, and end\n"
        "  restore FILE     put that in place of what the store holds, and end; no metaserver may\n"
        "                   run on it\n"
        "  store copy OTHER put all of it into the empty store that the settings in OTHER name\n"
        "  --version        print the version and end\n"
        "  --help           print this and end\n"
        "\n"
        "Settings, with their defaults:\n");
    meta_config_print_help(stdout);
}

/* One sentence on standard error; the program ends with 1. */
static int fail_with(const char *sentence)
{
    base_log_fail("kedge-metad", sentence);
    return EXIT_FAILURE;
}

/* What is done beside a metaserver, or instead of one. */
static const struct command {
    const char *noun, *verb; /* noun NULL: there is none */
    int (*run)(const struct meta_config *config, const char *file, struct base_errbuf *err);
    const char *file;
} commands[] = {
    {NULL, "backup", meta_command_backup, "a FILE, or - for the standard output"},
    {NULL, "restore", meta_command_restore, "a FILE"},
    {"store", "copy", meta_command_copy, "the FILE with the other store's settings"},
};

/* Whether the words begin with that command. */
static bool is_command(const struct command *c, char **word, int words)
{
    const int nouns = c->noun != NULL;
    return words > nouns && (c->noun == NULL || strcmp(word[0], c->noun) == 0) &&
           strcmp(word[nouns], c->verb) == 0;
}

/* Into what the words name, and its FILE: 0; else it has been said what is wrong, and 2. */
static int find_command(char **word, int words, const struct command **out, const char **file)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const struct command *c = &commands[i];
        const int given = words - 1 - (c->noun != NULL);
        if (!is_command(c, word, words))
            continue;
        *out = c;
        *file = word[words - 1];
        if (given == 1)
            return 0;
        if (given < 1)
            fprintf(stderr, "kedge-metad: %s needs %s: see --help\n", c->verb, c->file);
        else
            fprintf(stderr, "kedge-metad: \"%s\" is one word too many: %s takes one FILE\n",
                    word[words - given + 1], c->verb);
        return 2;
    }
    fprintf(stderr,
            "kedge-metad: there is no command \"%s\", but backup, restore and store copy: see "
            "--help\n",
            word[0]);
    return 2;
}

/* Of the table of endpoints, which the table of names is behind: whole cache lines. */
static size_t endpoint_bytes(const struct meta_config *config)
{
    return schema_table_bytes(schema_table_log2_slots((uint32_t)config->max_endpoints));
}

static int make_core(const struct meta_config *config, const struct meta_table_endpoint *e,
                     struct meta_service *service, struct base_errbuf *err)
{
    struct meta_directory_limits limits = {
        .max_nodes = (uint32_t)config->max_nodes,
        .max_endpoints = (uint32_t)config->max_endpoints,
        .node_lease_ns = config->node_lease_ns,
        .forget_ns = config->forget_after_ns,
    };
    uint64_t random[2]; /* seed, generation */
    int status = base_random_bytes(random, sizeof random);
    if (status != 0)
        return base_err(err, status, "there are no random numbers: %s", strerror(-status));
    service->directory = meta_directory_new(&limits, e->mem.addr, random[0], random[1]);
    if (service->directory == NULL)
        return base_err(err, -ENOMEM, "out of memory: lower max_nodes or max_endpoints");
    service->names =
        meta_names_new((uint32_t)config->max_names, (uint8_t *)e->mem.addr + endpoint_bytes(config),
                       random[0], random[1]);
    if (service->names == NULL)
        return base_err(err, -ENOMEM, "out of memory: lower max_names");
    service->hearing.shared = config->store_shared;
    meta_daemon_describe(config, &service->hearing.self);
    if (config->store_shared)
        meta_directory_share(service->directory);
    service->resources = meta_resources_new((uint32_t)config->events);
    if (service->resources == NULL)
        return base_err(err, -ENOMEM, "out of memory: lower events");
    service->liveness = meta_liveness_new(
        (uint32_t)(config->max_nodes < NODES_TOLD ? config->max_nodes : NODES_TOLD) + OTHERS_TOLD,
        random[1]);
    if (service->liveness == NULL)
        return base_err(err, -ENOMEM, "out of memory: lower max_nodes");
    service->max_watches = (uint32_t)config->max_watches;
    service->reader_watches = (uint32_t)config->reader_watches;
    service->tokens_needed = config->tokens_needed;
    service->admin_socket = config->admin_socket;
    service->endpoint = meta_table_endpoint_describe(e);
    service->node_lease_ns = config->node_lease_ns;
    service->zone = config->zone;
    service->hearing.shown_nothing = meta_start_shows_etcd_nothing(config);
    return 0;
}

/* Agents with DC need none; without it every one does, and the first should not have to wait. */
static int make_responders(const struct meta_config *config, const struct meta_table_endpoint *e,
                           struct meta_service *service, struct base_errbuf *err)
{
    if (!(e->fab->caps.transports & FAB_RC))
        return 0;
    return meta_responders_new(service->world, e->pd, e->cq, (uint32_t)config->max_endpoints,
                               e->dct == NULL, base_clock_ns(), &service->responders, err);
}

static int run_server(const struct meta_config *config, const char *path, struct base_errbuf *err)
{
    static struct meta_process process; /* the store's thread may be left with what it borrows */
    struct meta_service *service = &process.service;
    struct meta_store_watch *watch = NULL;
    const size_t bytes =
        endpoint_bytes(config) +
        schema_name_table_bytes(schema_table_log2_slots((uint32_t)config->max_names));
    meta_loop_world_init(&process.world);
    service->world = &process.world.base;
    int status = meta_daemon_begin_life(config, err);
    if (status == 0)
        status = meta_daemon_open_store(config, false, &service->store, err);
    if (status == 0)
        status = meta_table_endpoint_init(&process.endpoint, config, bytes, err);
    process.endpoint.names_offset = endpoint_bytes(config);
    if (status == 0)
        status = make_core(config, &process.endpoint, service, err);
    if (status == 0)
        status = make_responders(config, &process.endpoint, service, err);
    if (status == 0)
        status = meta_service_load(service, base_clock_ns(), err);
    if (status == 0 && config->store_shared)
        status = meta_process_remember(&process, config->data_dir, err);
    if (status == 0)
        status = meta_daemon_open_watch(config, &watch, err);
    if (status == 0)
        status = meta_process_start_store(&process, watch, err);
    if (status == 0)
        status = meta_daemon_serve(config, path, &process, err);
    if (status != -EINPROGRESS)
        meta_process_fini(&process);
    return status;
}

/* What --check-config and commands say is for people. */
static void begin_log(const struct meta_config *config)
{
    enum base_log_level level = BASE_LOG_INFO;
    enum base_log_format format = BASE_LOG_TEXT;
    (void)base_log_parse_level(config->log_level, &level);
    (void)base_log_parse_format(config->log_format, &format);
    base_log_set_format(format);
    base_log_init("kedge-metad", level);
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {{"config", required_argument, NULL, 'c'},
                                          {"check-config", no_argument, NULL, 'k'},
                                          {"version", no_argument, NULL, 'v'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct meta_config config;
    struct base_errbuf err;
    const char *path = NULL;
    bool check = false;
    for (int option; (option = getopt_long(argc, argv, "c:h", longs, NULL)) != -1;) {
        switch (option) {
        case 'c':
            path = optarg;
            break;
        case 'k':
            check = true;
            break;
        case 'v':
            printf("kedge-metad %s\n", base_version_text());
            return EXIT_SUCCESS;
        case 'h':
            print_help();
            return EXIT_SUCCESS;
        default:
            fprintf(stderr, "kedge-metad: see --help\n");
            return 2;
        }
    }
    const struct command *command = NULL;
    const char *file = NULL;
    if (optind < argc && find_command(argv + optind, argc - optind, &command, &file) != 0)
        return 2;
    if (meta_config_read(path, &config, &err) != 0) {
        (void)fail_with(err.text);
        return 2; /* to begin again would change nothing */
    }
    if (command != NULL)
        return command->run(&config, file, &err) == 0 ? EXIT_SUCCESS : fail_with(err.text);
    if (!check)
        begin_log(&config);
    int status = meta_start_check(&config, &err);
    if (status != 0) {
        (void)fail_with(err.text);
        return status == -EINVAL ? 2 : EXIT_FAILURE;
    }
    if (check) {
        printf("kedge-metad: the settings are right\n");
        if (meta_start_shows_etcd_nothing(&config))
            printf("kedge-metad: it would begin, and if etcd takes that, %s\n",
                   meta_service_open_to_all);
        return EXIT_SUCCESS;
    }
    signal(SIGPIPE, SIG_IGN);
    base_notify_init();
    return run_server(&config, path, &err) == 0 ? EXIT_SUCCESS : fail_with(err.text);
}
