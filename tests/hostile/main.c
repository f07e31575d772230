/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "hostile.h"

static const struct {
    const char *name, *what;
    void (*run)(struct hostile *h);
    bool cut_off; /* the guilty one must be cut off */
    bool errors;  /* must get errors */
} roles[] = {
    {"ring-random", "random bytes in every ring and index", attack_ring_random, true, false},
    {"ring-formed", "descriptors that are well formed and nonsense", attack_ring_formed, false,
     true},
    {"ring-torn", "descriptors that change while they are read", attack_ring_torn, true, false},
    {"indices", "indices that jump", attack_indices, true, false},
    {"phases", "says of what its ring has one thing by phases, and another by the tail",
     attack_phases, true, false},
    {"resize", "truncates and grows the shared memory", attack_resize, false, true},
    {"punch", "punches holes in it under requests", attack_punch, false, false},
    {"idle-punch", "does so in a thread that others keep from its processor", attack_idle_punch,
     false, false},
    {"idle-collapse", "has huge pages made of its rings in such a thread, with all that maps them",
     attack_idle_collapse, false, false},
    {"idle-lock", "leaves, and keeps the locks of what it had in such threads", attack_idle_lock,
     false, false},
    {"promises", "the same while the kernel promises no page to anybody", attack_promises, true,
     false},
    {"write-read-only", "writes what the agent alone may write", attack_write_read_only, false,
     true},
    {"doorbell", "fills the eventfd and makes it block", attack_doorbell, false, false},
    {"flood", "floods the socket with messages", attack_flood, true, true},
    {"garbage", "messages that are none", attack_garbage, true, true},
    {"tokens", "guesses tenants' tokens", attack_tokens, false, true},
    {"connections", "opens connections and says nothing", attack_connections, false, false},
    {"descriptors", "sends descriptors that nobody asked for", attack_descriptors, true, false},
    {"linger", "sends sockets that block whoever closes them", attack_linger, true, false},
    {"unread", "attaches, and leaves what it is sent unread", attack_unread, false, true},
    {"keys", "guesses remote keys", attack_keys, true, true},
    {"secrets", "uses the victim's key without its secret", attack_secrets, true, true},
    {"stale-keys", "uses keys of regions that are gone", attack_stale_keys, false, true},
    {"never-polls", "posts and never polls", attack_never_polls, false, false},
    {"greedy", "has as much copied as it may", attack_greedy, false, false},
    {"smalls", "keeps many rings full of small requests", attack_smalls, false, false},
    {"false-processor", "says that it runs on the lane's processor, and rings when that sleeps",
     attack_false_processor, false, false},
    {"doorbells", "rings the doorbells of many sessions without an end", attack_doorbells, false,
     false},
    {"hung-doorbell", "ends sessions whose doorbell many epolls hang on", attack_hung_doorbell,
     false, false},
    {"connects", "fills rings with questions for nodes that do not exist", attack_connects, false,
     false},
    {"imports", "fills them with tokens that nobody gave", attack_imports, false, false},
    {"statuses", "fills them with questions for the state of its regions", attack_statuses, false,
     false},
    {"regions", "has as many regions registered at a time as it may", attack_regions, false, false},
    {"sleepers", "has hundreds of threads woken for each completion", attack_sleepers, false,
     false},
    {"crowded-bucket", "has the kernel look through many who wait to wake it",
     attack_crowded_bucket, false, false},
    {"crowded-descriptor", "has the kernel tell ten thousand who watch its completion channel",
     attack_crowded_descriptor, false, false},
    {"strangers", "asks for nodes that do not exist", attack_strangers, false, true},
    {"names", "asks for nodes by names that there are not", attack_names, false, true},
    {"publishes", "has names for regions, and gives them back, as fast as it may", attack_publishes,
     false, true},
    {"messages", "descriptors of messages, receives and ports that are nonsense", attack_messages,
     false, true},
    {"message-flood", "floods a worker of its own with messages, which takes none",
     attack_message_flood, false, true},
    {"counters", "has as many counters as it may, guesses others', and ends no list",
     attack_counters, false, true},
    {"ports", "hears as many ports as there are", attack_ports, false, true},
    {"foreign-port", "floods ports of another tenant's worker", attack_foreign_port, false, true},
    {"batches", "operations of batches that are nonsense, and ends in their middle", attack_batches,
     false, true},
    {"batch-storm", "posts and takes back lists of single bytes", attack_batch_storm, false, false},
    {"hoard", "takes all the memory that its tenant may have", attack_hoard, false, true},
    /* Not cut off, nor surely refused: the agent may see it leave before it has read what it asks
       for. */
    {"balloon", "asks for its whole quota of memory and leaves before it is made", attack_balloon,
     false, false},
    {"accomplice", "leaves a child that still maps everything", attack_accomplice, false, false},
    {"leaver", "leaves, and keeps the rings that it was lent", attack_leaver, false, false},
    {"quitter", "registers a region and leaves, and comes again", attack_quitter, false, false},
    {"dies", "dies in the middle of each step", attack_dies, false, false},
    {"remap", "maps its memory elsewhere, and other things in its place", attack_remap, true,
     false},
    {"ask-and-fault", "asks for memory and breaks its session at once", attack_ask_and_fault, true,
     false},
    /* The last one, since its uid is refused for a while after it. */
    {"crowded-socket", "has the kernel tell ten thousand who watch its attach socket",
     attack_crowded_socket, true, true},
    {"newcomer", "honest workers that come and go", newcomer, false, false},
    {"attacher", "an honest worker that attaches and leaves, again and again", attacher, false,
     false},
    {"registrar", "an honest worker that registers regions and gives them back", registrar, false,
     false},
    {"victim", "the honest worker: verifies what it reads and writes", victim, false, false},
};

enum { ROLES = sizeof roles / sizeof roles[0] };

uint64_t hostile_random(struct hostile *h)
{
    h->random ^= h->random << 13;
    h->random ^= h->random >> 7;
    h->random ^= h->random << 17;
    return h->random;
}

void hostile_fill(struct hostile *h, void *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)memory)[i] = (uint8_t)hostile_random(h);
}

void hostile_begin(struct hostile *h)
{
    h->until_ns = base_clock_ns() + h->ms * BASE_NS_PER_MS;
}

bool hostile_over(const struct hostile *h)
{
    return h->did > 0 && base_clock_ns() >= h->until_ns;
}

void hostile_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("kedge-hostile: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void hostile_look_for_secret(const void *memory, size_t bytes)
{
    if (memmem(memory, bytes, HOSTILE_SECRET, 16) != NULL)
        hostile_fail("the victim's secret is in memory that is not the victim's");
}

static int usage(void)
{
    fputs("usage: kedge-hostile ROLE --socket PATH [--peer PATH] [--token TOKEN] [--seed N] "
          "[--ms N] [--node NAME] [--progress FILE] [--rest-us N] | --list\n",
          stderr);
    return 2;
}

static int run(const char *name, struct hostile *h)
{
    for (int i = 0; i < ROLES; i++) {
        if (strcmp(roles[i].name, name) != 0)
            continue;
        roles[i].run(h);
        /* On a busy machine the time may have been too short for what must happen. */
        for (int again = 0; again < 20 && ((roles[i].cut_off && h->cut_off == 0) ||
                                           (roles[i].errors && h->errors == 0));
             again++) {
            h->until_ns = base_clock_ns() + 1000 * BASE_NS_PER_MS;
            roles[i].run(h);
        }
        printf("%s: did %llu, cut off %llu times, %llu errors\n", name, (unsigned long long)h->did,
               (unsigned long long)h->cut_off, (unsigned long long)h->errors);
        if (h->did == 0)
            hostile_fail("%s did nothing", name);
        if (roles[i].cut_off && h->cut_off == 0)
            hostile_fail("%s was never cut off", name);
        if (roles[i].errors && h->errors == 0)
            hostile_fail("%s never got an error", name);
        return 0;
    }
    return usage();
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"socket", required_argument, NULL, 's'},  {"peer", required_argument, NULL, 'p'},
        {"token", required_argument, NULL, 't'},   {"seed", required_argument, NULL, 'r'},
        {"ms", required_argument, NULL, 'm'},      {"progress", required_argument, NULL, 'f'},
        {"rest-us", required_argument, NULL, 'u'}, {"node", required_argument, NULL, 'n'},
        {"list", no_argument, NULL, 'l'},          {0}};
    struct hostile h = {.random = 1, .ms = 1000};
    signal(SIGPIPE, SIG_IGN);
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (c) {
        case 's':
            h.socket = optarg;
            break;
        case 'p':
            h.peer = optarg;
            break;
        case 't':
            h.token = optarg;
            break;
        case 'n':
            h.node = optarg;
            break;
        case 'f':
            h.progress = optarg;
            break;
        case 'r':
            h.random = 0x9e3779b97f4a7c15ull * (strtoull(optarg, NULL, 10) + 1);
            break;
        case 'u':
            h.rest_us = strtoull(optarg, NULL, 10);
            break;
        case 'm':
            h.ms = strtoull(optarg, NULL, 10);
            break;
        case 'l':
            for (int i = 0; i < ROLES; i++)
                printf("%-16s %s\n", roles[i].name, roles[i].what);
            return 0;
        default:
            return usage();
        }
    if (optind + 1 != argc || h.socket == NULL)
        return usage();
    hostile_begin(&h);
    return run(argv[optind], &h);
}
