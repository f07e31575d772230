/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-sim: simulates clusters of Kedge, each from one seed. */
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lane_config.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/text.h"
#include "explore.h"
#include "plants.h"
#include "replay.h"
#include "watchdog.h"

enum { SECONDS_MOST = 1 << 30, OWN_PAGES_BYTES = 1 << 16 };

/* What the command line says. */
struct options {
    struct play_cluster_settings settings;
    uint64_t first, count, hours;
    bool json, one, shrink, planted, with_long, table, help;
    uint8_t left_out[FAULTS_MOST / 8];
};

static void print_help(void)
{
    printf(
        "usage: kedge-sim [--seeds N | --hours N] [--first S] [--json] [settings]\n"
        "       kedge-sim --seed S [--from SECONDS] [--only FAULTS] [--plant NAME] [settings]\n"
        "       kedge-sim --seed S --shrink [--plant NAME] [settings]\n"
        "       kedge-sim --planted [--plant NAME | --long] [--table] [--seeds N] [--first S]\n"
        "                 [settings]\n"
        "\n"
        "Simulates a cluster of agents, metaservers and workers in one thread and virtual\n"
        "time; one seed decides all that happens. Ends with 1 if a rule was broken; of the\n"
        "first seed that does it says which faults are enough, and the command that shows it.\n"
        "\n"
        "  --seeds N         so many clusters, one after another (10)\n"
        "  --hours N         until one breaks a rule, or N hours were simulated\n"
        "  --first S         the first of their seeds (1)\n"
        "  --json            an object for each seed, and one for all\n"
        "  --seed S          one cluster, and its story on standard output\n"
        "  --from SECONDS    the story from there on (0)\n"
        "  --only FAULTS     of its faults these alone happen: \"3,17\", or \"none\"\n"
        "  --shrink          says which of its faults are needed to break a rule\n"
        "  --planted         switches on the bugs that are planted in this program, one after\n"
        "                    another, and tries up to N seeds for each\n"
        "  --plant NAME      one of them\n"
        "  --long            those too that take many seeds each\n"
        "  --table           as a table of docs/planted-bugs.md\n"
        "settings:\n"
        "  --nodes N         hosts with an agent (4)\n"
        "  --metaservers N   hosts with a metaserver (2)\n"
        "  --workers N       of each node (2; 0 and --rate 0 show what a cluster at rest does)\n"
        "  --seconds N       simulated, of each cluster (300)\n"
        "  --rate N          turns of a worker a second, on average (1): one operation each, or\n"
        "                    20 at once, or something else\n"
        "  --operations N    operations of a worker a second, on average, instead\n"
        "  --arena-kib N     of memory in an arena (256; 64 at least, and bursts are smaller)\n"
        "  --clock-ppm N     so many millionths the clock of an agent's host is off, at most\n"
        "                    (500, which is what leases allow for)\n"
        "  --slack-ms N      so many ms a device may take to see what is posted, whatever\n"
        "                    it claims (0: what it claims)\n"
        "  --shared          all metaservers have one store, and there are three, unless\n"
        "                    --metaservers behind it says otherwise\n"
        "  --hybrid          in clusters with DC virtual queue pairs go from it to\n"
        "                    connections and back\n"
        "  --messages        workers send each other messages, and half of them sleep in poll()\n"
        "  --liar            one of the agents lies to others\n"
        "  --lanes N         each agent's own pool has so many lanes\n"
        "  --pool-lanes N    pools that operators say have up to so many\n"
        "  --calm            nothing goes wrong\n");
}

static uint64_t number_of(const char *text, uint64_t least, uint64_t most)
{
    uint64_t n;
    if (base_parse_u64(text, least, most, &n) == 0)
        return n;
    fprintf(stderr, "kedge-sim: \"%s\" is no number of %" PRIu64 " to %" PRIu64 "\n", text, least,
            most);
    exit(2);
}

static int plant_of(const char *name)
{
    for (int i = 0; PLAY_PLANTS[i].name != NULL; i++)
        if (strcmp(PLAY_PLANTS[i].name, name) == 0)
            return i + 1;
    fprintf(stderr, "kedge-sim: \"%s\" is no planted bug: tests/sim/plants/ has them\n", name);
    exit(2);
}

static void take_only(struct options *o, char *list)
{
    memset(o->left_out, 0xff, sizeof o->left_out);
    o->settings.left_out = o->left_out;
    for (char *one; strcmp(list, "none") != 0 && (one = strsep(&list, ",")) != NULL;) {
        const uint64_t i = number_of(one, 0, FAULTS_MOST - 1);
        o->left_out[i / 8] &= (uint8_t) ~(1u << i % 8);
        if (list == NULL)
            break;
    }
}

/* A turn is of two or three, as a rule: workers make up for the rest. */
static void set_operations(struct play_cluster_settings *s, uint64_t rate)
{
    s->operation_ns = BASE_NS_PER_S / rate;
    s->pause_ns = 3 * s->operation_ns;
}

static void take_setting(struct play_cluster_settings *s, int option, const char *text)
{
    if (option == 'N')
        s->nodes = (uint32_t)number_of(text, 1, CLUSTER_NODES);
    else if (option == 'M')
        s->metaservers = (uint32_t)number_of(text, 1, CLUSTER_METASERVERS);
    else if (option == 'W')
        s->workers = (uint32_t)number_of(text, 0, CLUSTER_WORKERS);
    else if (option == 't')
        s->duration_ns = number_of(text, 10, SECONDS_MOST) * BASE_NS_PER_S;
    else if (option == 'r')
        s->pause_ns = play_pause_of(number_of(text, 0, 1000));
    else if (option == 'u')
        set_operations(s, number_of(text, 1, 1000));
    else if (option == 'A')
        s->arena_bytes = number_of(text, CLUSTER_ARENA_LEAST >> 10, 1 << 20) << 10;
    else if (option == 'k')
        s->clock_ppm = (uint32_t)number_of(text, 0, CLUSTER_CLOCK_PPM_MOST);
    else if (option == 'd')
        s->slack_ms = (uint32_t)number_of(text, 0, SECONDS_MOST);
    else if (option == 'o')
        s->trace_from_ns = number_of(text, 0, SECONDS_MOST) * BASE_NS_PER_S;
    else if (option == 'x')
        play_share_store(s);
    else if (option == 'y')
        s->hybrid = true;
    else if (option == 'm')
        s->messages = true;
    else if (option == 'I')
        s->liar = true;
    else if (option == 'L')
        s->lanes = (uint32_t)number_of(text, 1, LANE_POOL_LANES);
    else if (option == 'Q')
        s->pool_lanes = (uint32_t)number_of(text, 1, LANE_POOL_LANES);
    else if (option == 'c')
        s->faults = false;
}

static void take_option(struct options *o, int option, char *text)
{
    if (option == 'n')
        o->count = number_of(text, 1, UINT32_MAX);
    else if (option == 'H')
        o->hours = number_of(text, 1, 1 << 20);
    else if (option == 'f')
        o->first = number_of(text, 0, UINT64_MAX / 2);
    else if (option == 's')
        o->settings.seed = number_of(text, 0, UINT64_MAX);
    else if (option == 'P')
        kedge_planted = plant_of(text);
    else if (option == 'O')
        take_only(o, text);
    else
        take_setting(&o->settings, option, text);
    o->json |= option == 'j';
    o->one |= option == 's';
    o->shrink |= option == 'S';
    o->planted |= option == 'p';
    o->with_long |= option == 'l';
    o->table |= option == 'T';
    o->help |= option == 'h';
}

static bool run(struct options *o)
{
    struct play_cluster_settings *s = &o->settings;
    if (o->planted)
        return !play_explore_plants(s, o->first, o->count, o->table, o->with_long);
    if (o->shrink)
        return play_explore_shrink(s);
    if (o->one)
        return play_explore_one(s);
    if (o->hours == 0)
        return play_explore_seeds(s, o->first, o->count, o->json) > 0;
    return play_explore_time(s, o->first, o->hours * 3600 * BASE_NS_PER_S, o->json);
}

/* What is as large as an agent's tables has pages of its own, of which those cost nothing that
 * nobody touches. glibc's allocator would stop that after the first that is freed;
 * a sanitizer's has no such setting. */
static void leave_pages_untouched(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, OWN_PAGES_BYTES);
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"seeds", required_argument, NULL, 'n'},
                                          {"hours", required_argument, NULL, 'H'},
                                          {"first", required_argument, NULL, 'f'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"from", required_argument, NULL, 'o'},
                                          {"only", required_argument, NULL, 'O'},
                                          {"shrink", no_argument, NULL, 'S'},
                                          {"planted", no_argument, NULL, 'p'},
                                          {"long", no_argument, NULL, 'l'},
                                          {"plant", required_argument, NULL, 'P'},
                                          {"nodes", required_argument, NULL, 'N'},
                                          {"metaservers", required_argument, NULL, 'M'},
                                          {"workers", required_argument, NULL, 'W'},
                                          {"seconds", required_argument, NULL, 't'},
                                          {"operations", required_argument, NULL, 'u'},
                                          {"arena-kib", required_argument, NULL, 'A'},
                                          {"rate", required_argument, NULL, 'r'},
                                          {"clock-ppm", required_argument, NULL, 'k'},
                                          {"slack-ms", required_argument, NULL, 'd'},
                                          {"calm", no_argument, NULL, 'c'},
                                          {"shared", no_argument, NULL, 'x'},
                                          {"hybrid", no_argument, NULL, 'y'},
                                          {"messages", no_argument, NULL, 'm'},
                                          {"liar", no_argument, NULL, 'I'},
                                          {"lanes", required_argument, NULL, 'L'},
                                          {"pool-lanes", required_argument, NULL, 'Q'},
                                          {"table", no_argument, NULL, 'T'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    static struct options o = {.first = 1, .count = 10};
    o.settings = PLAY_USUAL;
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (c == '?')
            return 2;
        take_option(&o, c, optarg);
    }
    leave_pages_untouched();
    play_watchdog_begin();
    if (!o.help)
        return run(&o) ? EXIT_FAILURE : EXIT_SUCCESS;
    print_help();
    return EXIT_SUCCESS;
}
