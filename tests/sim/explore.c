/* SPDX-License-Identifier: Apache-2.0 */
#include "explore.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "plants.h"
#include "replay.h"
#include "rule.h"
#include "watchdog.h"
#include "transfers.h"

enum {
    VERDICT_BYTES = 512,
    SHRINK_RUNS = 40 /* that a violation costs which nobody has asked to shrink */
};

static uint64_t processor_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * BASE_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* ---- in a child, since a fault of ours may also end the process */

/* What became of a cluster. */
struct verdict {
    bool broken;        /* a rule was broken, or the process ended */
    uint64_t in_effect; /* so often a planted bug was */
    uint64_t simulated_ns;
    char why[VERDICT_BYTES];
};

static void judge_in_child(const struct play_cluster_settings *s, int to)
{
    struct play_cluster_result r;
    play_watchdog_begin(); /* timers are not inherited */
    (void)!freopen("/dev/null", "w", stderr);
    play_cluster_run(s, &r);
    struct verdict v = {.broken = r.violation != NULL, .simulated_ns = r.simulated_ns};
    (void)snprintf(v.why, sizeof v.why, "%s", r.violation != NULL ? r.violation : "");
    _exit(write(to, &v, sizeof v) != sizeof v);
}

static struct verdict judge_cluster(const struct play_cluster_settings *s)
{
    struct verdict v = {.broken = true};
    int ends[2], status = 0;
    *kedge_plant_count = 0;
    fflush(stdout);
    BASE_ASSERT(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0)
        judge_in_child(s, ends[1]);
    close(ends[1]);
    const bool judged = read(ends[0], &v, sizeof v) == sizeof v;
    close(ends[0]);
    BASE_ASSERT(child > 0 && waitpid(child, &status, 0) == child);
    if (!judged)
        v = (struct verdict){.broken = true};
    if (!judged)
        (void)snprintf(v.why, sizeof v.why, "%s",
                       WIFEXITED(status) && WEXITSTATUS(status) == WATCHDOG_STATUS
                           ? "it does not come to an end of what it does"
                           : "an assertion fails");
    v.in_effect = *kedge_plant_count;
    return v;
}

/* ---- which faults are needed */

/* One that breaks a rule, and what is left out of it so far. */
struct shrinking {
    struct play_cluster_settings *s;
    uint32_t faults, runs_left;
    char why[VERDICT_BYTES]; /* the rule */
    uint8_t left_out[FAULTS_MOST / 8];
};

static bool breaks_same_rule(struct shrinking *k)
{
    const struct verdict v = judge_cluster(k->s);
    k->runs_left -= k->runs_left > 0;
    return v.broken && play_rule_is_same(v.why, k->why);
}

static void set_left_out(uint8_t *bits, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        bits[i / 8] |= (uint8_t)(1u << i % 8);
}

/* Halves first, then smaller and smaller parts, as long as it may take. */
static void leave_out(struct shrinking *k)
{
    uint8_t before[FAULTS_MOST / 8];
    for (uint32_t part = (k->faults + 1) / 2; part > 0; part /= 2)
        for (uint32_t from = 0; from < k->faults && k->runs_left > 0; from += part) {
            memcpy(before, k->left_out, sizeof before);
            set_left_out(k->left_out, from, from + part < k->faults ? from + part : k->faults);
            if (memcmp(before, k->left_out, sizeof before) != 0 && !breaks_same_rule(k))
                memcpy(k->left_out, before, sizeof before);
        }
}

/* s->left_out is k's until the second. */
static void begin_shrinking(struct shrinking *k, struct play_cluster_settings *s, uint32_t runs)
{
    memset(k, 0, sizeof *k);
    k->faults = play_cluster_faults(s);
    BASE_ASSERT(k->faults <= FAULTS_MOST);
    k->runs_left = runs;
    k->s = s;
    if (s->left_out != NULL)
        memcpy(k->left_out, s->left_out, sizeof k->left_out);
    s->left_out = k->left_out;
}

static void print_needed(const struct shrinking *k, const char *between)
{
    const char *before = "";
    for (uint32_t i = 0; i < k->faults; i++) {
        if (play_is_left_out(k->left_out, i))
            continue;
        printf("%s%" PRIu32, before, i);
        before = between;
    }
}

static void print_shrunk(const struct shrinking *k)
{
    printf("of %" PRIu32 " faults these are %s: ", k->faults,
           k->runs_left > 0 ? "needed" : "enough, and perhaps fewer are");
    print_needed(k, " ");
    printf("\n");
    play_replay_print(k->s);
    printf("\n");
}

bool play_explore_shrink(struct play_cluster_settings *s)
{
    struct shrinking k;
    begin_shrinking(&k, s, UINT32_MAX);
    const struct verdict v = judge_cluster(s);
    if (!v.broken) {
        printf("seed %" PRIu64 " breaks no rule\n", s->seed);
        return false;
    }
    memcpy(k.why, v.why, sizeof k.why);
    leave_out(&k);
    printf("%s\n", k.why);
    print_shrunk(&k);
    s->left_out = NULL;
    return true;
}

/* ---- seeds */

static void print_json(uint64_t seed, const struct play_cluster_result *r,
                       const struct shrinking *shrunk)
{
    const struct play_worker_counts *w = &r->workers;
    printf("{\"seed\":%" PRIu64 ",\"hash\":\"%016" PRIx64 "\",\"violated\":%s"
           ",\"events\":%" PRIu64 ",\"posted\":%" PRIu64 ",\"completed\":%" PRIu64
           ",\"failed\":%" PRIu64 ",\"sessions\":%" PRIu64 ",\"faults\":%" PRIu64
           ",\"accesses\":%" PRIu64 ",\"merged\":%" PRIu64 ",\"transfers\":%" PRIu64
           ",\"batches\":%" PRIu64 ",\"cancelled\":%" PRIu64 ",\"messages\":%" PRIu64
           ",\"heard\":%" PRIu64 ",\"large\":%" PRIu64 ",\"lists\":%" PRIu64 ",\"imports\":%" PRIu64
           ",\"lies\":%" PRIu64 ",\"hostile\":%" PRIu64,
           seed, r->hash, r->violation != NULL ? "true" : "false", r->events + r->net_events,
           w->posted, w->completed, w->failed, w->sessions, r->faults, r->accesses, r->merged,
           r->transfers, w->batches, w->cancelled, w->messages, w->heard, w->large, w->lists,
           w->imports, r->lies, w->hostile);
    if (shrunk != NULL) {
        printf(",\"faults_needed\":[");
        print_needed(shrunk, ",");
        printf("],\"replay\":\"");
        play_replay_print(shrunk->s);
        printf("\"");
    }
    printf("}\n");
}

static void print_text(uint64_t seed, const struct play_cluster_result *r,
                       const struct shrinking *shrunk)
{
    const struct play_worker_counts *w = &r->workers;
    printf("seed %" PRIu64 ": %016" PRIx64 ", %" PRIu64 " events, %" PRIu64 " requests, %" PRIu64
           " failed, %" PRIu64 " sessions, %" PRIu64 " faults%s%s\n",
           seed, r->hash, r->events + r->net_events, w->posted, w->failed, w->sessions, r->faults,
           r->violation != NULL ? ": VIOLATION: " : "", r->violation != NULL ? r->violation : "");
    if (shrunk != NULL)
        print_shrunk(shrunk);
}

/* shrunk: what its violation needs; NULL: nobody has looked. */
static void print_result(uint64_t seed, const struct play_cluster_result *r, bool json,
                         const struct shrinking *shrunk)
{
    (json ? print_json : print_text)(seed, r, shrunk);
    fflush(stdout);
}

struct sums {
    uint64_t began_ns, seeds, violations, simulated_ns, events, transfers;
    uint32_t nodes;
};

/* At most until now, by hosts with an agent. */
static uint64_t bytes_per_node(uint32_t nodes)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (uint64_t)u.ru_maxrss * 1024 / nodes;
}

/* The first violation is shrunk: others are most often the same. */
static void report_violation(struct play_cluster_settings *s, const struct play_cluster_result *r,
                             bool json)
{
    const uint8_t *const left_out = s->left_out;
    struct shrinking k;
    begin_shrinking(&k, s, SHRINK_RUNS);
    (void)snprintf(k.why, sizeof k.why, "%s", r->violation);
    leave_out(&k);
    print_result(s->seed, r, json, &k);
    s->left_out = left_out;
}

static bool run_seed(struct play_cluster_settings *s, uint64_t seed, bool json, struct sums *sums)
{
    struct play_cluster_result r;
    s->seed = seed;
    play_cluster_run(s, &r);
    r.transfers = play_transfers_take();
    if (r.violation != NULL && sums->violations == 0)
        report_violation(s, &r, json);
    else
        print_result(seed, &r, json, NULL);
    sums->seeds++;
    sums->violations += r.violation != NULL;
    sums->transfers += r.transfers;
    sums->simulated_ns += r.simulated_ns;
    sums->events += r.events + r.net_events;
    return r.violation != NULL;
}

static void print_sums(const struct sums *sums, bool json)
{
    const double took_ns = (double)(processor_ns() - sums->began_ns) + 1;
    const double hours = (double)sums->simulated_ns / (3600.0 * BASE_NS_PER_S);
    printf(json ? "{\"seeds\":%" PRIu64 ",\"violations\":%" PRIu64 ",\"simulated_hours\":%.3f"
                  ",\"simulated_hours_per_hour\":%.1f,\"events_per_second\":%.0f,\"bytes_per_"
                  "node\":%" PRIu64 ",\"transfers\":%" PRIu64 "}\n"
                : "%" PRIu64 " seeds, %" PRIu64
                  " violations, %.2f simulated hours, %.1f of them an hour of one processor, "
                  "%.0f events a second, %" PRIu64 " bytes of memory a node, %" PRIu64 " transfers",
           sums->seeds, sums->violations, hours, (double)sums->simulated_ns / took_ns,
           (double)sums->events * BASE_NS_PER_S / took_ns, bytes_per_node(sums->nodes),
           sums->transfers);
    if (!json)
        printf(", %.0f seeds a minute of one processor\n",
               (double)sums->seeds * 60 * BASE_NS_PER_S / took_ns);
}

uint64_t play_explore_seeds(struct play_cluster_settings *s, uint64_t first, uint64_t count,
                            bool json)
{
    struct sums sums = {.began_ns = processor_ns(), .nodes = s->nodes};
    for (uint64_t seed = first; seed < first + count; seed++)
        (void)run_seed(s, seed, json, &sums);
    print_sums(&sums, json);
    return sums.violations;
}

bool play_explore_time(struct play_cluster_settings *s, uint64_t first, uint64_t simulated_ns,
                       bool json)
{
    struct sums sums = {.began_ns = processor_ns(), .nodes = s->nodes};
    bool found = false;
    for (uint64_t seed = first; !found && sums.simulated_ns < simulated_ns; seed++)
        found = run_seed(s, seed, json, &sums);
    print_sums(&sums, json);
    return found;
}

bool play_explore_one(struct play_cluster_settings *s)
{
    struct play_cluster_result r;
    s->trace = stdout;
    play_cluster_run(s, &r);
    print_result(s->seed, &r, false, NULL);
    if (kedge_planted != 0)
        printf("the planted bug was in effect %" PRIu64 " times\n", *kedge_plant_count);
    return r.violation != NULL;
}

/* ---- planted bugs */

/* What it took to find one. */
struct find {
    uint64_t seed;                       /* 0: it was not found */
    uint64_t in_effect;                  /* there; of one that was not found, in all seeds */
    uint64_t simulated_ns, processor_ns; /* of all seeds until then */
    char why[VERDICT_BYTES];
};

static uint64_t children_ns(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_CHILDREN, &u);
    return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * BASE_NS_PER_S +
           (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * BASE_NS_PER_US;
}

/* The rule that it breaks is broken, and not while nothing was otherwise than in the product. */
static bool is_seen(const struct play_plant *plant, const struct verdict *v)
{
    if (!v->broken || (plant->lines > 0 && v->in_effect == 0))
        return false;
    for (size_t i = 0; i < sizeof plant->sees / sizeof *plant->sees; i++)
        if (plant->sees[i] != NULL && strstr(v->why, plant->sees[i]) != NULL)
            return true;
    return false;
}

/* The count is of a process that may end at any moment: it is in memory that outlives it. */
static void share_count(void)
{
    kedge_plant_count = mmap(NULL, sizeof *kedge_plant_count, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BASE_ASSERT(kedge_plant_count != MAP_FAILED);
}

static void try_seed(const struct play_plant *plant, struct play_cluster_settings *s, uint64_t seed,
                     struct find *f)
{
    s->seed = seed;
    const struct verdict v = judge_cluster(s);
    f->simulated_ns += v.simulated_ns;
    f->in_effect += v.in_effect;
    if (!is_seen(plant, &v))
        return;
    f->seed = seed;
    f->in_effect = v.in_effect;
    memcpy(f->why, v.why, sizeof f->why);
}

/* known: the seed that found it once is tried first. Those before it are as long as it, and find
 * nothing. */
static struct find find_plant(const struct play_plant *plant, struct play_cluster_settings *s,
                              uint64_t first, uint64_t count, bool known)
{
    const uint64_t began_ns = children_ns();
    struct find f = {.seed = 0};
    known = known && plant->seed >= first && plant->seed - first < count;
    if (known)
        try_seed(plant, s, plant->seed, &f);
    for (uint64_t seed = first; f.seed == 0 && seed < first + count; seed++)
        if (!known || seed != plant->seed)
            try_seed(plant, s, seed, &f);
    f.processor_ns = children_ns() - began_ns;
    return f;
}

enum { SETTINGS_TEXT = 64 };

/* Which it takes beside the seed, for the table. Returns out. */
static const char *settings_of(const struct play_plant *plant, char out[SETTINGS_TEXT])
{
    size_t used = 0;
    if (plant->workers != 0)
        used = (size_t)snprintf(out, SETTINGS_TEXT, " `--workers %" PRIu32 "`", plant->workers);
    if (plant->rate != 0)
        used += (size_t)snprintf(out + used, SETTINGS_TEXT - used, " `--rate %" PRIu32 "`",
                                 plant->rate);
    if (plant->hybrid != 0)
        used += (size_t)snprintf(out + used, SETTINGS_TEXT - used, " `--hybrid`");
    if (plant->messages != 0)
        used += (size_t)snprintf(out + used, SETTINGS_TEXT - used, " `--messages`");
    if (plant->liar != 0)
        used += (size_t)snprintf(out + used, SETTINGS_TEXT - used, " `--liar`");
    if (plant->lanes != 0)
        used += (size_t)snprintf(out + used, SETTINGS_TEXT - used, " `--lanes %" PRIu32 "`",
                                 plant->lanes);
    if (plant->shared != 0)
        used += (size_t)snprintf(out + used, SETTINGS_TEXT - used, " `--shared`");
    out[used] = '\0';
    return out;
}

static void print_find(const struct play_plant *plant, const struct find *f, bool table)
{
    const double simulated_s = (double)f->simulated_ns / BASE_NS_PER_S,
                 processor_s = (double)f->processor_ns / BASE_NS_PER_S;
    char settings[SETTINGS_TEXT];
    if (f->seed == 0)
        printf(table ? "| `%s`: %s | not found | %" PRIu64 " | | |\n"
                     : "%-34s NOT FOUND: %s; it was in effect %" PRIu64 " times\n",
               plant->name, plant->what, f->in_effect);
    else if (table)
        printf("| `%s`: %s | %" PRIu64 "%s | %" PRIu64 " | %.0f s | %.2f s |\n", plant->name,
               plant->what, f->seed, settings_of(plant, settings), f->in_effect, simulated_s,
               processor_s);
    else
        printf("%-34s seed %3" PRIu64 "%s, %6.0f s simulated in %5.2f s, in effect %" PRIu64
               " times: %.80s\n",
               plant->name, f->seed,
               plant->seed != 0 && plant->seed != f->seed ? " (its list has another)" : "",
               simulated_s, processor_s, f->in_effect, f->why);
    fflush(stdout);
}

static void set_for_plant(struct play_cluster_settings *s, const struct play_plant *plant,
                          const struct play_cluster_settings *usual)
{
    *s = *usual;
    if (plant->workers != 0)
        s->workers = plant->workers;
    if (plant->rate != 0)
        s->pause_ns = BASE_NS_PER_S / plant->rate;
    if (plant->clock_ppm != 0)
        s->clock_ppm = plant->clock_ppm;
    if (plant->slack_ms != 0)
        s->slack_ms = plant->slack_ms;
    if (plant->shared != 0)
        play_share_store(s);
    s->hybrid = plant->hybrid != 0;
    s->messages = plant->messages != 0;
    s->liar = plant->liar != 0;
    if (plant->lanes != 0)
        s->lanes = plant->lanes;
}

bool play_explore_plants(struct play_cluster_settings *s, uint64_t first, uint64_t count,
                         bool table, bool with_long)
{
    const int only = kedge_planted;
    const struct play_cluster_settings usual = *s;
    int found = 0, all = 0;
    share_count();
    if (table)
        printf("| bug | seed | in effect | simulated | processor |\n"
               "| --- | --- | --- | --- | --- |\n");
    for (int i = 0; PLAY_PLANTS[i].name != NULL; i++) {
        if (only != 0 && only != i + 1)
            continue;
        if (only == 0 && PLAY_PLANTS[i].takes_long && !with_long) {
            printf("skip: %s, which takes many seeds (--long)\n", PLAY_PLANTS[i].name);
            continue;
        }
        kedge_planted = i + 1;
        set_for_plant(s, &PLAY_PLANTS[i], &usual);
        const struct find f = find_plant(&PLAY_PLANTS[i], s, first, count, !table);
        all++;
        found += f.seed != 0;
        print_find(&PLAY_PLANTS[i], &f, table);
    }
    kedge_planted = only;
    *s = usual;
    printf("%s%d of %d planted bugs found\n", table ? "\n" : "", found, all);
    return found == all;
}
