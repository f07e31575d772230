/* SPDX-License-Identifier: Apache-2.0 */
#include "worker_group.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"

static size_t bytes_of(uint32_t workers)
{
    return sizeof(struct perf_group) +
           workers * (sizeof(struct perf_member) + (size_t)KEDGE_TOKEN_MAX);
}

int perf_group_new(uint32_t workers, struct perf_group **out, struct base_errbuf *err)
{
    struct perf_group *group =
        mmap(NULL, bytes_of(workers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (group == MAP_FAILED)
        return base_err(err, -ENOMEM, "out of memory");
    group->workers = workers;
    group->token = (char(*)[KEDGE_TOKEN_MAX])(void *)&group->member[workers];
    base_clock_fast_init(&group->clock);
    for (uint32_t i = 0; i < workers; i++)
        base_hist_reset(&group->member[i].hist);
    *out = group;
    return 0;
}

void perf_group_free(struct perf_group *group)
{
    munmap(group, bytes_of(group->workers));
}

void perf_group_run(struct perf_group *group,
                    int (*run)(struct perf_group *group, uint32_t me, const void *user),
                    const void *user)
{
    pid_t *pid = calloc(group->workers, sizeof *pid);
    for (uint32_t i = 0; i < group->workers; i++) {
        struct perf_member *member = &group->member[i];
        member->status = -EIO;
        if (pid == NULL || (pid[i] = fork()) < 0) {
            base_err(&member->err, -EIO, "no process for it (raise TasksMax?)");
            atomic_fetch_add(&group->failed, 1);
        } else if (pid[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            member->status = run(group, i, user);
            if (member->status != 0)
                atomic_fetch_add(&group->failed, 1);
            _exit(0);
        }
    }
    for (uint32_t i = 0; pid != NULL && i < group->workers; i++)
        if (pid[i] > 0)
            waitpid(pid[i], NULL, 0);
    free(pid);
}

uint32_t perf_group_judge(const struct perf_group *group, int *status, struct base_errbuf *err)
{
    uint32_t well = 0;
    *status = 0;
    for (uint32_t i = 0; i < group->workers; i++) {
        const struct perf_member *member = &group->member[i];
        well += member->status == 0;
        if (member->status != 0 && (*status == 0 || *status == -ECANCELED))
            *status = base_err(err, member->status, "worker %u: %.450s", i,
                               member->err.text[0] != '\0' ? member->err.text : "it died");
    }
    return well;
}

/* Wakes everyone at each step; waits until all have come, or one has failed. */
int perf_group_rendezvous(struct perf_group *group, int point)
{
    _Atomic uint32_t *came = &group->came[point];
    if (atomic_fetch_add(came, 1) + 1 == group->workers)
        base_futex_wake(came, INT32_MAX);
    uint64_t end = base_clock_ns() + PERF_PATIENCE_MS * BASE_NS_PER_MS;
    for (uint32_t n; (n = atomic_load(came)) < group->workers;) {
        const uint32_t failed = atomic_load(&group->failed);
        if (group->tolerant && n + failed >= group->workers)
            break;
        if (!group->tolerant && failed != 0)
            return -ECANCELED;
        if (base_clock_ns() > end)
            return -ETIMEDOUT;
        (void)base_futex_wait(came, n, 200 * BASE_NS_PER_MS);
    }
    uint64_t unset = 0;
    atomic_compare_exchange_strong(&group->met_ns[point], &unset, base_clock_ns());
    return 0;
}
