/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/version.h"
#include "perf.h"

static const struct {
    const char *name;
    enum perf_test test;
    uint64_t count; /* by default */
} tests[] = {
    {"attach", PERF_ATTACH, 1000},
    {"connect", PERF_CONNECT, 0},
    {"read", PERF_READ, 1000000},
    {"write", PERF_WRITE, 1000000},
    {"mesh", PERF_MESH, 0},
    {"memory", PERF_MEMORY, 10000},
    {"isolation", PERF_ISOLATION, 200000},
    {"cores", PERF_CORES, 1000000},
    {"verbs-connect", PERF_VERBS_CONNECT, 5},
    {"verbs-data", PERF_VERBS_DATA, 2000},
    {"first-read", PERF_FIRST_READ, 20},
    {"storm", PERF_STORM, 0},
    {"fairness", PERF_FAIRNESS, 0},
    {"renewal", PERF_RENEWAL, 1800000},
    {"lookup", PERF_LOOKUP, 5},
    {"window", PERF_WINDOW, 3000},
    {"poll", PERF_POLL, 5},
    {"merge", PERF_MERGE, 100},
    {"send", PERF_SEND, 20000},
    {"batch", PERF_BATCH, 100000},
    {"notify", PERF_NOTIFY, 10000},
    {"cut", PERF_CUT, 200},
    {"connections", PERF_CONNECTIONS, 100},
    {"lanes", PERF_LANES, 6000},
};

enum {
    UNCACHED = 1000,
    CACHED = 1000000,
    MESH = 16,
    STORM = 240,
    FAIRNESS = 64,
    MERGE = 8,
    LANES = 2,
    LANES_WORKERS = 4, /* so many of a tenant share a lane at first */
    LANES_LEAST_MS = 2000,
    WINDOW_OPS = 16,
    LEASE_MS = 19, /* agents refuse 18 ms, with the time-outs that they set on soft */
    MANY_OPS = 1 << 20
};

static int number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out,
                  struct base_errbuf *err)
{
    if (base_parse_u64(text, min, max, out) == 0)
        return 0;
    return base_err(err, -EINVAL, "--%s must be a number from %llu to %llu, not \"%.40s\"", option,
                    (unsigned long long)min, (unsigned long long)max, text);
}

/* As rdmactl takes it: of a path that is no URL it would say much later, and less. */
static int check_server(const char *server, struct base_errbuf *err)
{
    if (strncmp(server, "http://", 7) == 0 || strncmp(server, "https://", 8) == 0 ||
        strncmp(server, "unix:/", 6) == 0)
        return 0;
    return base_err(err, -EINVAL,
                    "--server (or KEDGE_SERVER) must be a URL such as http://127.0.0.1:7480, or "
                    "unix:/PATH, not \"%.60s\"",
                    server);
}

/* What only makes sense together, of tests in fresh processes. */
static int check_fresh(const struct perf_options *o, struct base_errbuf *err)
{
    static const uint8_t no_gid[16];
    const bool verbs = o->test == PERF_VERBS_CONNECT || o->test == PERF_VERBS_DATA;
    if ((!verbs &&
         (memcmp(o->verbs.gid, no_gid, 16) != 0 || memcmp(o->verbs.peer_gid, no_gid, 16) != 0)) ||
        (o->test != PERF_VERBS_CONNECT && o->child_port != 0))
        return base_err(err, -EINVAL, "--gid and --peer-gid are for verbs-connect and verbs-data");
    if (!verbs && o->test != PERF_LOOKUP && o->verbs.device != NULL)
        return base_err(err, -EINVAL, "--device is for verbs-connect, verbs-data and lookup");
    if ((o->gids != NULL) != (o->test == PERF_LOOKUP && o->verbs.device != NULL))
        return base_err(err, -EINVAL,
                        "lookup on a device needs --device and --gids, and no other test --gids");
    if (o->gids != NULL && o->storm)
        return base_err(err, -EINVAL,
                        "--registering is for soft: its nodes, which are invented, have nothing "
                        "that a metaserver without DC could connect with");
    if (o->token != NULL && o->test != PERF_FIRST_READ)
        return base_err(err, -EINVAL, "--token is what first-read starts itself with");
    if (verbs && o->local)
        return base_err(err, -EINVAL, "%s starts no servers: leave out --local", o->name);
    if (o->test == PERF_VERBS_DATA && o->count > PERF_MAX_BATCH)
        return base_err(err, -EINVAL, "--count is at most %d here", PERF_MAX_BATCH);
    if ((o->test == PERF_VERBS_CONNECT || o->test == PERF_FIRST_READ) &&
        o->count > PERF_MAX_CONNECTS)
        return base_err(err, -EINVAL, "--count is at most %d here", PERF_MAX_CONNECTS);
    return 0;
}

/* The same, of servers of our own. What posts to endpoints that are invented is measured with DC
 * alone: with RC it would be handshakes that nobody answers. */
static int check_local(const struct perf_options *o, struct base_errbuf *err)
{
    bool unknown = o->test == PERF_MEMORY || o->test == PERF_ISOLATION;
    if (o->test == PERF_MEMORY && !o->local)
        return base_err(err, -EINVAL, "memory needs --local: it compares two agents of its own");
    if (o->test == PERF_ISOLATION && !o->local)
        return base_err(err, -EINVAL, "isolation needs --local: it kills agents");
    if (o->test == PERF_FAIRNESS && !o->local)
        return base_err(err, -EINVAL, "fairness needs --local: it is about two tenants of its own");
    if (o->test == PERF_RENEWAL && !o->local)
        return base_err(err, -EINVAL, "renewal needs --local: it compares two agents of its own");
    if (o->test == PERF_POLL && (!o->local || o->depth < 2))
        return base_err(err, -EINVAL, "poll needs --local, and a --depth of 2 at least");
    if (o->test == PERF_MERGE && o->model == NULL && (!o->local || o->size % 8 != 0))
        return base_err(err, -EINVAL,
                        "merge needs --local, and a --size of whole eight bytes; or --model");
    if (o->test == PERF_SEND && !o->local)
        return base_err(err, -EINVAL, "send needs --local: it is compared with its device");
    if (o->by_device && o->test != PERF_SEND)
        return base_err(err, -EINVAL, "--by-device is for send");
    if (o->ucx && (!o->local || o->direct || (o->test != PERF_SEND && o->test != PERF_READ)))
        return base_err(err, -EINVAL, "--ucx is for read and send, with --local");
    if (o->test == PERF_NOTIFY && (!o->local || o->depth != 1))
        return base_err(err, -EINVAL, "notify needs --local, and has one list at a time");
    if (o->test == PERF_BATCH && (!o->local || o->count > PERF_MAX_BATCH))
        return base_err(err, -EINVAL, "batch needs --local, and a --count of %d at most",
                        PERF_MAX_BATCH);
    if (o->test == PERF_LANES &&
        (!o->local || o->size != 8 || o->count < LANES_LEAST_MS || o->count > PERF_MAX_LANES_MS))
        return base_err(err, -EINVAL,
                        "lanes needs --local, a --size of 8, and a --count of %d to %d ms",
                        LANES_LEAST_MS, PERF_MAX_LANES_MS);
    if (o->test == PERF_LOOKUP && !o->local)
        return base_err(err, -EINVAL, "lookup needs --local: it registers names of its own");
    if (o->transport == NULL)
        return 0;
    if (!o->local || o->direct || o->test == PERF_CORES)
        return base_err(err, -EINVAL, "--transport is for --local, which starts agents");
    if (strcmp(o->transport, "dc") != 0 && strcmp(o->transport, "rc") != 0)
        return base_err(err, -EINVAL, "--transport must be dc or rc, not \"%.40s\"", o->transport);
    if (unknown && !o->wrong_keys && strcmp(o->transport, "rc") == 0)
        return base_err(err, -EINVAL,
                        "%s has DC alone: the endpoints that it invents answer no handshake",
                        o->name);
    return 0;
}

static int check_lookup(const struct perf_options *o, struct base_errbuf *err)
{
    if (o->workers == 1 && o->test != PERF_LOOKUP && o->test != PERF_WINDOW)
        return base_err(err, -EINVAL, "--workers is at least 2 here");
    if (o->storm && o->test != PERF_LOOKUP)
        return base_err(err, -EINVAL, "--registering is for lookup");
    if ((o->test == PERF_LOOKUP || o->test == PERF_POLL) && o->count > PERF_MAX_TURNS)
        return base_err(err, -EINVAL, "--count is at most %d here", PERF_MAX_TURNS);
    if (o->test == PERF_LOOKUP && o->workers > PERF_MAX_NAMES)
        return base_err(err, -EINVAL, "--workers is at most %d here", PERF_MAX_NAMES);
    return 0;
}

/* The same, of all. */
static int check(struct perf_options *o, struct base_errbuf *err)
{
    bool one_sided = o->test == PERF_READ || o->test == PERF_WRITE;
    if (o->test == PERF_CONNECT && o->cached == o->uncached)
        return base_err(err, -EINVAL, "connect needs either --cached or --uncached");
    if (o->test != PERF_CONNECT && (o->cached || o->uncached))
        return base_err(err, -EINVAL, "--cached and --uncached are for connect");
    if (o->direct && !one_sided)
        return base_err(err, -EINVAL, "--direct is for read and write");
    if (o->spin && !o->direct)
        return base_err(err, -EINVAL, "--spin is for --direct");
    if (o->count == 0)
        o->count = o->cached ? CACHED : UNCACHED;
    if ((o->uncached || o->test == PERF_MEMORY) && o->count > PERF_MAX_STRANGERS)
        return base_err(err, -EINVAL, "--count is at most %d here", PERF_MAX_STRANGERS);
    if (o->test == PERF_STORM && o->local && o->admin_socket != NULL)
        return base_err(err, -EINVAL, "--local knows its agent's socket: leave out --admin-socket");
    if (o->test != PERF_STORM && o->admin_socket != NULL)
        return base_err(err, -EINVAL, "--admin-socket is for storm");
    int status = perf_options_check_model(o, err);
    if (status != 0)
        return status;
    if (o->windows && o->test != PERF_WINDOW && (!o->local || o->direct))
        return base_err(err, -EINVAL,
                        "--window-ops and --window-bytes are for --local, which starts agents");
    if (o->defaults && (o->test != PERF_FAIRNESS || o->windows))
        return base_err(err, -EINVAL, "--defaults is for fairness, without windows");
    if (o->test == PERF_FAIRNESS && !o->windows && !o->defaults)
        o->window_ops = WINDOW_OPS;
    if (o->size == 0)
        o->size = o->test == PERF_FAIRNESS                         ? 65536
                  : o->test == PERF_MERGE || o->test == PERF_BATCH ? 4096
                                                                   : 8;
    if (o->depth == 0)
        o->depth = o->test == PERF_FAIRNESS || o->test == PERF_POLL ? 64
                   : o->test == PERF_MERGE || o->test == PERF_LANES ? 32
                                                                    : 1;
    if (o->workers == 0)
        o->workers = o->test == PERF_STORM      ? STORM
                     : o->test == PERF_FAIRNESS ? FAIRNESS
                     : o->test == PERF_MERGE    ? MERGE
                     : o->test == PERF_LANES    ? LANES_WORKERS
                                                : MESH;
    if (o->test != PERF_RENEWAL && (o->regions != 0 || o->lease_ms != 0))
        return base_err(err, -EINVAL, "--regions and --lease are for renewal");
    status = check_lookup(o, err);
    if (status != 0)
        return status;
    if (o->lanes != 0 && o->test != PERF_LANES)
        return base_err(err, -EINVAL, "--lanes is for lanes");
    if (o->lanes == 0)
        o->lanes = LANES;
    if (o->regions == 0)
        o->regions = 1;
    if (o->lease_ms == 0)
        o->lease_ms = LEASE_MS;
    status = check_local(o, err);
    return status != 0 ? status : check_fresh(o, err);
}

static const struct option long_options[] = {
    {"local", no_argument, NULL, 'l'},
    {"size", required_argument, NULL, 's'},
    {"depth", required_argument, NULL, 'd'},
    {"count", required_argument, NULL, 'n'},
    {"workers", required_argument, NULL, 'w'},
    {"dead", required_argument, NULL, 'k'},
    {"silent", required_argument, NULL, 'i'},
    {"regions", required_argument, NULL, 'R'},
    {"lease", required_argument, NULL, 'L'},
    {"window-ops", required_argument, NULL, 'o'},
    {"window-bytes", required_argument, NULL, 'B'},
    {"wrong-keys", no_argument, NULL, 'W'},
    {"registering", no_argument, NULL, 'S'},
    {"defaults", no_argument, NULL, 'F'},
    {"socket", required_argument, NULL, 'a'},
    {"peer-socket", required_argument, NULL, 'p'},
    {"server", required_argument, NULL, 'm'},
    {"bin", required_argument, NULL, 'b'},
    {"device", required_argument, NULL, 'r'},
    {"gid", required_argument, NULL, 'g'},
    {"peer-gid", required_argument, NULL, 'G'},
    {"gids", required_argument, NULL, 'I'},
    {"child", required_argument, NULL, 'C'}, /* what verbs-connect starts itself with */
    {"token", required_argument, NULL, 't'}, /* what first-read starts itself with */
    {"admin-socket", required_argument, NULL, 'A'},
    {"transport", required_argument, NULL, 'T'},
    {"model", required_argument, NULL, 'M'},
    {"queue-pairs", required_argument, NULL, 'q'},
    {"lanes", required_argument, NULL, 'N'},
    {"work", required_argument, NULL, 'x'},
    {"seed", required_argument, NULL, 'y'},
    {"lane", no_argument, NULL, 'E'},
    {"load", required_argument, NULL, 'O'},
    {"json", no_argument, NULL, 'j'},
    {"direct", no_argument, NULL, 'D'},
    {"spin", no_argument, NULL, 'z'},
    {"by-device", no_argument, NULL, 'v'},
    {"ucx", no_argument, NULL, 'U'},
    {"cached", no_argument, NULL, 'c'},
    {"uncached", no_argument, NULL, 'u'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static int set_gid(const char *option, uint8_t gid[16], struct base_errbuf *err)
{
    if (base_gid_parse(optarg, gid) == 0)
        return 0;
    return base_err(err, -EINVAL, "--%s must be a GID or an IP address, not \"%.60s\"", option,
                    optarg);
}

/* What verbs-connect has of its own. */
static int set_verbs(struct perf_options *o, int c, struct base_errbuf *err)
{
    uint64_t port = 0;
    int status = 0;
    if (c == 'r')
        o->verbs.device = optarg;
    else if (c == 'g')
        status = set_gid("gid", o->verbs.gid, err);
    else if (c == 'G')
        status = set_gid("peer-gid", o->verbs.peer_gid, err);
    else if ((status = number("child", optarg, 1, UINT16_MAX, &port, err)) == 0)
        o->child_port = (uint16_t)port;
    return status;
}

static const struct {
    char c;
    const char *name;
    uint64_t min, max;
    size_t at, bytes; /* in perf_options */
} numbers[] = {
#define AT(field) offsetof(struct perf_options, field), sizeof(((struct perf_options *)0)->field)
    {'s', "size", 1, PERF_MAX_SIZE, AT(size)},
    {'d', "depth", 1, PERF_MAX_DEPTH, AT(depth)},
    {'n', "count", 1, UINT32_MAX, AT(count)},
    {'k', "dead", 1, PERF_MAX_DEAD, AT(dead)},
    {'o', "window-ops", 0, MANY_OPS, AT(window_ops)},
    {'B', "window-bytes", 0, 1ull << 48, AT(window_bytes)},
    {'R', "regions", 1, PERF_MAX_REGIONS, AT(regions)},
    {'N', "lanes", 2, PERF_MAX_LANES, AT(lanes)},
    {'q', "queue-pairs", 1, PERF_MAX_QPS, AT(qps)},
    {'x', "work", 1, 1ull << 32, AT(work_ns)},
    {'y', "seed", 1, UINT64_MAX, AT(seed)},
    {'L', "lease", 1, 60000, AT(lease_ms)},
    {'i', "silent", 1, PERF_MAX_STRANGERS, AT(silent)},
    {'w', "workers", 1, PERF_MAX_WORKERS, AT(workers)},
#undef AT
};

/* One option with a number. -ENOENT: it is none of these. */
static int set_number(struct perf_options *o, int c, struct base_errbuf *err)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        uint64_t value = 0;
        if (numbers[i].c != c)
            continue;
        const int status =
            number(numbers[i].name, optarg, numbers[i].min, numbers[i].max, &value, err);
        const uint32_t small = (uint32_t)value;
        if (status == 0)
            memcpy((char *)o + numbers[i].at,
                   numbers[i].bytes == sizeof small ? (const void *)&small : &value,
                   numbers[i].bytes);
        o->windows |= c == 'o' || c == 'B';
        return status;
    }
    return -ENOENT;
}

static const struct {
    char c;
    size_t at; /* in perf_options */
} texts[] =
    {
        {'a', offsetof(struct perf_options, socket)},
        {'p', offsetof(struct perf_options, peer_socket)},
        {'A', offsetof(struct perf_options, admin_socket)},
        {'m', offsetof(struct perf_options, server)},
        {'b', offsetof(struct perf_options, bin)},
        {'T', offsetof(struct perf_options, transport)},
        {'O', offsetof(struct perf_options, load)},
        {'I', offsetof(struct perf_options, gids)},
        {'M', offsetof(struct perf_options, model)},
        {'t', offsetof(struct perf_options, token)},
},
  flags[] = {
      {'l', offsetof(struct perf_options, local)},
      {'j', offsetof(struct perf_options, json)},
      {'D', offsetof(struct perf_options, direct)},
      {'W', offsetof(struct perf_options, wrong_keys)},
      {'F', offsetof(struct perf_options, defaults)},
      {'S', offsetof(struct perf_options, storm)},
      {'E', offsetof(struct perf_options, lane)},
      {'z', offsetof(struct perf_options, spin)},
      {'v', offsetof(struct perf_options, by_device)},
      {'U', offsetof(struct perf_options, ucx)},
      {'c', offsetof(struct perf_options, cached)},
      {'u', offsetof(struct perf_options, uncached)},
};

/* One with a text, or with nothing. False: it is neither. */
static bool set_plain(struct perf_options *o, int c)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].c == c) {
            memcpy((char *)o + texts[i].at, &optarg, sizeof optarg);
            return true;
        }
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (flags[i].c == c) {
            *(bool *)((char *)o + flags[i].at) = true;
            return true;
        }
    return false;
}

/* What there is instead. */
static int refuse_test(const char *said, struct base_errbuf *err)
{
    struct base_text names;
    base_text_init(&names, 1024);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        base_text_printf(&names, "%s%s", i > 0 ? ", " : "", tests[i].name);
    const char *all = base_text_str(&names);
    const int status = said == NULL
                           ? base_err(err, -EINVAL, "name one test: %s", all)
                           : base_err(err, -EINVAL, "there is no test \"%.40s\": %s", said, all);
    base_text_fini(&names);
    return status;
}

static int parse_test(int argc, char **argv, struct perf_options *o, struct base_errbuf *err)
{
    if (optind + 1 != argc)
        return refuse_test(NULL, err);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        if (strcmp(argv[optind], tests[i].name) != 0)
            continue;
        o->test = tests[i].test;
        o->name = tests[i].name;
        if (o->count == 0)
            o->count = tests[i].count;
        return 0;
    }
    return refuse_test(argv[optind], err);
}

/* Of several the first: to try them in turn is for rdmactl. */
static const char *find_server(void)
{
    static char first[512];
    const char *said = getenv("KEDGE_SERVER");
    if (said == NULL)
        return "unix:/run/kedge/metad.sock";
    snprintf(first, sizeof first, "%.*s", (int)strcspn(said, ","), said);
    return first;
}

static void tell_about(int c)
{
    if (c == 'h')
        fputs(perf_options_help, stdout);
    else
        printf("kedge-perf %s\n", base_version_text());
}

static int set_option(struct perf_options *o, int c, struct base_errbuf *err)
{
    if (set_plain(o, c))
        return 0;
    const int status = set_number(o, c, err);
    return status == -ENOENT ? set_verbs(o, c, err) : status;
}

int perf_options_parse(int argc, char **argv, struct perf_options *out, struct base_errbuf *err)
{
    struct perf_options o = {.dead = 4, .silent = 4, .server = find_server()};
    int c, status = 0;
    while (status == 0 && (c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (c == 'h' || c == 'V') {
            tell_about(c);
            return 1;
        }
        status =
            c == '?' ? base_err(err, -EINVAL, "see kedge-perf --help") : set_option(&o, c, err);
    }
    if (status == 0)
        status = parse_test(argc, argv, &o, err);
    if (status == 0)
        status = check(&o, err);
    if (status == 0 && !o.local)
        status = check_server(o.server, err);
    *out = status == 0 ? o : *out;
    return status;
}
