/* SPDX-License-Identifier: Apache-2.0 */
/* Nobody fails without a reason, which is looked for at the end, since a revocation says whom it
 * concerns only when it is over:
 *   - what an agent refused was given back, left by an owner that ended, or revoked by then;
 *   - what a device refused, breaking the connection, was named in the report of a forced
 *     revocation;
 *   - a WRITE that was flushed behind nothing of its own was out at the same time as a request that
 *     a device refused, to a region whose report says that this happens.
 * Nothing else fails: no READ behind another's request, for one. On a device that keeps no
 * deadlines what is late may end in any way, and a device may refuse what an agent may. */
#include <errno.h>
#include <stdio.h>

#include "leases.h"
#include "schema/session.h"

void leases_earlier(_Atomic uint64_t *at, uint64_t ns)
{
    uint64_t known = atomic_load(at);
    while ((known == 0 || ns < known) && !atomic_compare_exchange_weak(at, &known, ns))
        ;
}

static void log_list(struct failed_lists *lists, const struct failed_list *list)
{
    uint64_t i = atomic_fetch_add(&lists->count, 1);
    if (i >= LOGGED)
        stress_fail("more than %d requests that broke connections: make the run shorter", LOGGED);
    lists->at[i] = *list;
}

void leases_failed(const struct stress *s, struct board *b, const struct ibv_wc *wc, bool write,
                   const struct failed_list *list)
{
    struct region_facts *region = &b->region[list->generation];
    if (wc->status == IBV_WC_REM_ACCESS_ERR && wc->vendor_err == SCHEMA_REASON_VKEY) {
        leases_earlier(&region->refused_ns, list->polled_ns);
    } else if (wc->status == IBV_WC_REM_ACCESS_ERR && wc->vendor_err == SCHEMA_REASON_NONE) {
        leases_earlier(&region->broke_ns, list->polled_ns);
        log_list(&b->culprits, list);
    } else if (wc->status == IBV_WC_WR_FLUSH_ERR && write) {
        log_list(&b->victims, list);
    } else if (s->deadlines) {
        stress_fail("a %s of region %llu had status %d, which nothing explains: %s",
                    write ? "WRITE" : "READ", (unsigned long long)list->generation, (int)wc->status,
                    kedge_reason_str(wc->vendor_err));
    }
}

static void judge_region(uint64_t generation, const char *how, uint64_t failed_ns,
                         uint64_t allowed_ns, const char *reason)
{
    if (failed_ns == 0 || (allowed_ns != 0 && allowed_ns <= failed_ns))
        return;
    if (allowed_ns == 0)
        stress_fail("region %llu was refused by %s, and never %s", (unsigned long long)generation,
                    how, reason);
    stress_fail("region %llu was refused by %s %llu us before it was %s",
                (unsigned long long)generation, how,
                (unsigned long long)((allowed_ns - failed_ns) / 1000), reason);
}

static bool has_culprit(const struct board *b, const struct failed_list *victim)
{
    for (uint64_t i = 0; i < b->culprits.count; i++) {
        const struct failed_list *culprit = &b->culprits.at[i];
        if (culprit->posted_ns <= victim->polled_ns && victim->posted_ns <= culprit->polled_ns &&
            b->region[culprit->generation].flushes)
            return true;
    }
    return false;
}

void leases_judge(const struct stress *s, const struct board *b)
{
    for (uint64_t i = 1; i <= b->generations; i++) {
        const struct region_facts *region = &b->region[i];
        judge_region(i, "an agent", region->refused_ns, region->ending_ns,
                     "given back, left or revoked");
        if (s->deadlines)
            judge_region(i, "a device", region->broke_ns, region->forced_ns,
                         "named in the report of a forced revocation");
        else
            judge_region(i, "a device", region->broke_ns, region->ending_ns,
                         "given back, left or revoked");
    }
    for (uint64_t i = 0; s->deadlines && i < b->victims.count; i++)
        if (!has_culprit(b, &b->victims.at[i]))
            stress_fail("a WRITE of region %llu was flushed, and no report allows that",
                        (unsigned long long)b->victims.at[i].generation);
    printf("leases: %llu lists of requests broke a connection, %llu of others were flushed behind "
           "them\n",
           (unsigned long long)b->culprits.count, (unsigned long long)b->victims.count);
}
