/* SPDX-License-Identifier: Apache-2.0 */
/* Revokes whatever is lent at the moment, by the rule and by force, one region and all of a
 * worker's, and says on the board what the answers say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "leases.h"

enum { NO_SUCH = 3, BUSY = 5 }; /* exit codes of rdmactl: the region or its worker has just gone */

/* What the operator sees of a lease. */
struct seen {
    char worker[48];
    uint64_t number, pid;
    bool live, asked_for, by_operator;
};

/* The next object of an array of leases. False: there is none. */
static bool next_lease(const char **at, struct seen *out)
{
    static const char begin[] = "{\"id\":\"", pid[] = "\"pid\":";
    char object[600];
    const char *start = strstr(*at, begin), *end = start != NULL ? strchr(start, '}') : NULL;
    if (end == NULL || (size_t)(end - start) >= sizeof object)
        return false;
    *at = end;
    memcpy(object, start, (size_t)(end - start));
    object[end - start] = '\0';
    const char *id = object + sizeof begin - 1, *quote = strchr(id, '"'), *dash = quote;
    const char *pid_at = strstr(object, pid);
    while (dash != NULL && dash > id && *dash != '-')
        dash--;
    if (dash == NULL || pid_at == NULL || (size_t)(dash - id) >= sizeof out->worker)
        stress_fail("rdmactl shows a lease that makes no sense: %s", object);
    *out = (struct seen){.number = strtoull(dash + 1, NULL, 10),
                         .pid = strtoull(pid_at + sizeof pid - 1, NULL, 10),
                         .live = strstr(object, "\"state\":\"live\"") != NULL,
                         .by_operator = strstr(object, "\"by_operator\":true") != NULL,
                         .asked_for = strstr(object, "\"asked_for\":true") != NULL};
    memcpy(out->worker, id, (size_t)(dash - id));
    return true;
}

/* One that is live, any; or one that is not, if there is no other. */
static bool pick(const char *list, uint64_t *random, struct seen *out)
{
    struct seen seen;
    uint64_t live = 0, others = 0;
    while (next_lease(&list, &seen)) {
        uint64_t *count = seen.live ? &live : &others;
        if (stress_random(random) % ++*count == 0 && (seen.live || live == 0))
            *out = seen;
    }
    return live + others > 0;
}

static uint64_t generation_of(const struct board *b, const struct seen *seen)
{
    for (uint64_t i = b->lives; i > 0; i--)
        if (b->life[i].pid == seen->pid && seen->number <= PER_LIFE)
            return b->life[i].generation[seen->number];
    return 0;
}

/* Nobody reaches any of those that it names, from before now on. */
static void believe(struct board *b, const char *report, uint64_t begun_ns, bool force)
{
    const bool over = strstr(report, "\"over\":true") != NULL;
    const bool forced = strstr(report, "\"forced\":true") != NULL;
    const bool flushes = strstr(report, "IBV_WC_WR_FLUSH_ERR") != NULL;
    struct seen seen;
    if (!over)
        stress_fail("a revocation takes longer than rdmactl waits: %s", report);
    for (const char *at = report; next_lease(&at, &seen);) {
        const uint64_t generation = generation_of(b, &seen);
        if (generation == 0)
            stress_fail("a report names a lease that nobody has: %s", report);
        struct region_facts *region = &b->region[generation];
        const bool hit = !region->revoked && (seen.by_operator || region->heard);
        leases_earlier(&region->ending_ns, begun_ns);
        if (forced)
            leases_earlier(&region->forced_ns, begun_ns);
        atomic_store(&region->flushes, region->flushes || (forced && flushes));
        atomic_store(&region->free, true);
        atomic_store(&region->revoked, true);
        if (hit)
            atomic_fetch_add(!force           ? &b->plain_hits
                             : seen.asked_for ? &b->forced_hits
                                              : &b->along,
                             1);
    }
}

static void revoke_it(const struct stress *s, struct board *b, char *out, const struct seen *seen,
                      uint64_t *random)
{
    const bool force = stress_random(random) % 2 == 0;
    const bool all = stress_random(random) % 4 == 0;
    char what[100];
    if (all)
        snprintf(what, sizeof what, "--worker=%s", seen->worker);
    else
        snprintf(what, sizeof what, "%s-%llu", seen->worker, (unsigned long long)seen->number);
    const uint64_t begun_ns = base_clock_ns();
    const int code = stress_ctl(s, out,
                                (const char *const[STRESS_WORDS]){"-ojson", "lease", "revoke", what,
                                                                  force ? "--force" : NULL});
    if (code == NO_SUCH || code == BUSY) {
        atomic_fetch_add(&b->late, 1);
        return;
    }
    if (code != 0)
        stress_fail("rdmactl lease revoke %s%s: exit %d, %s", what, force ? " --force" : "", code,
                    out);
    believe(b, out, begun_ns, force);
    atomic_fetch_add(force ? &b->forced : &b->plain, 1);
    atomic_fetch_add(&b->all, all);
}

void leases_operate(const struct stress *s, struct board *b, uint64_t random)
{
    char *out = malloc(STRESS_OUTPUT);
    struct seen seen;
    if (out == NULL)
        stress_fail("no memory");
    while (!atomic_load(&b->stop)) {
        if (stress_ctl(s, out, (const char *const[STRESS_WORDS]){"-ojson", "lease", "list"}) != 0)
            stress_fail("rdmactl lease list: %s", out);
        if (pick(out, &random, &seen))
            revoke_it(s, b, out, &seen, &random);
        usleep((useconds_t)(stress_random(&random) % 20000));
    }
    free(out);
}

bool leases_operator_has_seen_all(const struct stress *s, const struct board *b)
{
    return (!s->breaks || b->culprits.count > 0) && b->plain_hits > 0 && b->forced_hits > 0 &&
           b->along > 0 && b->all > 0 && b->heard > 0 && b->own > 0 && b->past_revoked > 0;
}

void leases_operator_report(const struct board *b)
{
    printf("leases: an operator revoked %llu times by the rule and %llu times by force (%llu of "
           "these all that a worker had; %llu times more he came too late): %llu and %llu regions "
           "that were live, and %llu that shared a registration; %llu owners heard of it, %llu "
           "used the memory themselves while they had the region, %llu lists of requests were "
           "posted to one later\n",
           (unsigned long long)b->plain, (unsigned long long)b->forced, (unsigned long long)b->all,
           (unsigned long long)b->late, (unsigned long long)b->plain_hits,
           (unsigned long long)b->forced_hits, (unsigned long long)b->along,
           (unsigned long long)b->heard, (unsigned long long)b->own,
           (unsigned long long)b->past_revoked);
}
