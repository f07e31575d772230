/* SPDX-License-Identifier: Apache-2.0 */
#include "explore.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "plants.h"

static uint64_t processor_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * BASE_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* ---- seeds */

static void print_result(uint64_t seed, const struct play_cluster_result *r, bool json)
{
    const struct play_worker_counts *w = &r->workers;
    if (json)
        printf("{\"seed\":%" PRIu64 ",\"hash\":\"%016" PRIx64 "\",\"violated\":%s"
               ",\"events\":%" PRIu64 ",\"posted\":%" PRIu64 ",\"completed\":%" PRIu64
               ",\"failed\":%" PRIu64 ",\"sessions\":%" PRIu64 ",\"faults\":%" PRIu64
               ",\"accesses\":%" PRIu64 "}\n",
               seed, r->hash, r->violation != NULL ? "true" : "false", r->events + r->net_events,
               w->posted, w->completed, w->failed, w->sessions, r->faults, r->accesses);
    else
        printf("seed %" PRIu64 ": %016" PRIx64 ", %" PRIu64 " events, %" PRIu64
               " requests, %" PRIu64 " failed, %" PRIu64 " sessions, %" PRIu64 " faults%s%s\n",
               seed, r->hash, r->events + r->net_events, w->posted, w->failed, w->sessions,
               r->faults, r->violation != NULL ? ": VIOLATION: " : "",
               r->violation != NULL ? r->violation : "");
    fflush(stdout);
}

struct sums {
    uint64_t began_ns, seeds, violations, simulated_ns, events;
};

static bool run_seed(struct play_cluster_settings *s, uint64_t seed, bool json, struct sums *sums)
{
    struct play_cluster_result r;
    s->seed = seed;
    play_cluster_run(s, &r);
    print_result(seed, &r, json);
    sums->seeds++;
    sums->violations += r.violation != NULL;
    sums->simulated_ns += r.simulated_ns;
    sums->events += r.events + r.net_events;
    return r.violation != NULL;
}

static void print_sums(const struct sums *sums, bool json)
{
    const double took_ns = (double)(processor_ns() - sums->began_ns) + 1;
    const double hours = (double)sums->simulated_ns / (3600.0 * BASE_NS_PER_S);
    printf(json ? "{\"seeds\":%" PRIu64 ",\"violations\":%" PRIu64 ",\"simulated_hours\":%.3f"
                  ",\"simulated_hours_per_hour\":%.1f,\"events_per_second\":%.0f}\n"
                : "%" PRIu64 " seeds, %" PRIu64
                  " violations, %.2f simulated hours, %.1f of them an hour of one processor, "
                  "%.0f events a second\n",
           sums->seeds, sums->violations, hours, (double)sums->simulated_ns / took_ns,
           (double)sums->events * BASE_NS_PER_S / took_ns);
}

uint64_t play_explore_seeds(struct play_cluster_settings *s, uint64_t first, uint64_t count,
                            bool json)
{
    struct sums sums = {.began_ns = processor_ns()};
    for (uint64_t seed = first; seed < first + count; seed++)
        (void)run_seed(s, seed, json, &sums);
    print_sums(&sums, json);
    return sums.violations;
}

bool play_explore_time(struct play_cluster_settings *s, uint64_t first, uint64_t simulated_ns,
                       uint64_t *seed)
{
    struct sums sums = {.began_ns = processor_ns()};
    bool found = false;
    for (*seed = first; !found && sums.simulated_ns < simulated_ns; ++*seed)
        found = run_seed(s, *seed, false, &sums);
    print_sums(&sums, false);
    --*seed;
    return found;
}

bool play_explore_one(struct play_cluster_settings *s)
{
    struct play_cluster_result r;
    s->trace = stdout;
    play_cluster_run(s, &r);
    print_result(s->seed, &r, false);
    return r.violation != NULL;
}

/* ---- in a child, since a fault of ours may also end the process */

/* Whether the cluster breaks a rule, or ends the process. */
static bool breaks_rule(struct play_cluster_settings *s)
{
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        struct play_cluster_result r;
        (void)!freopen("/dev/null", "w", stderr);
        play_cluster_run(s, &r);
        _exit(r.violation != NULL);
    }
    BASE_ASSERT(child > 0 && waitpid(child, &status, 0) == child);
    return status != 0;
}

static void set_left_out(uint8_t *bits, uint32_t from, uint32_t to, bool left_out)
{
    for (uint32_t i = from; i < to; i++)
        bits[i / 8] = (uint8_t)((bits[i / 8] & ~(1u << i % 8)) | (unsigned)left_out << i % 8);
}

static bool is_left_out(const uint8_t *bits, uint32_t i)
{
    return bits[i / 8] >> i % 8 & 1;
}

/* Halves first, then smaller and smaller parts. */
static void leave_out(struct play_cluster_settings *s, uint8_t *bits, uint32_t count)
{
    uint8_t before[FAULTS_MOST / 8];
    for (uint32_t part = (count + 1) / 2; part > 0; part /= 2)
        for (uint32_t from = 0; from < count; from += part) {
            memcpy(before, bits, sizeof before);
            set_left_out(bits, from, from + part < count ? from + part : count, true);
            if (memcmp(before, bits, sizeof before) != 0 && !breaks_rule(s))
                memcpy(bits, before, sizeof before);
        }
}

bool play_explore_shrink(struct play_cluster_settings *s)
{
    uint8_t bits[FAULTS_MOST / 8] = {0};
    const uint32_t count = play_cluster_faults(s);
    const char *between = "";
    BASE_ASSERT(count <= FAULTS_MOST);
    s->left_out = bits;
    if (!breaks_rule(s)) {
        printf("seed %" PRIu64 " breaks no rule\n", s->seed);
        return false;
    }
    leave_out(s, bits, count);
    printf("of %" PRIu32 " faults these are needed:", count);
    for (uint32_t i = 0; i < count; i++)
        if (!is_left_out(bits, i))
            printf(" %" PRIu32, i);
    printf("\nkedge-sim --seed %" PRIu64 " --only ", s->seed);
    for (uint32_t i = 0; i < count; i++)
        if (!is_left_out(bits, i)) {
            printf("%s%" PRIu32, between, i);
            between = ",";
        }
    printf("%s\n", between[0] == '\0' ? "none" : "");
    return true;
}

/* ---- planted bugs */

static uint64_t find_plant(struct play_cluster_settings *s, uint64_t first, uint64_t count)
{
    for (s->seed = first; s->seed < first + count; s->seed++)
        if (breaks_rule(s))
            return s->seed;
    return 0;
}

bool play_explore_plants(struct play_cluster_settings *s, uint64_t first, uint64_t count)
{
    int found = 0, all = 0;
    for (; PLAY_PLANTS[all].name != NULL; all++) {
        struct timespec began, ended;
        kedge_planted = all + 1;
        clock_gettime(CLOCK_MONOTONIC, &began);
        const uint64_t seed = find_plant(s, first, count);
        clock_gettime(CLOCK_MONOTONIC, &ended);
        found += seed != 0;
        if (seed != 0)
            printf("%-28s seed %4" PRIu64 ", %3ld s: %s\n", PLAY_PLANTS[all].name, seed,
                   (long)(ended.tv_sec - began.tv_sec), PLAY_PLANTS[all].what);
        else
            printf("%-28s NOT FOUND: %s\n", PLAY_PLANTS[all].name, PLAY_PLANTS[all].what);
        fflush(stdout);
    }
    kedge_planted = 0;
    printf("%d of %d planted bugs found\n", found, all);
    return found == all;
}
