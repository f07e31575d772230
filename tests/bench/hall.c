/* SPDX-License-Identifier: Apache-2.0 */
#include "hall.h"

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
    return sizeof(struct perf_hall) + workers * sizeof(struct perf_seat);
}

int perf_hall_new(uint32_t workers, struct perf_hall **out, struct kedge_errbuf *err)
{
    struct perf_hall *hall =
        mmap(NULL, bytes_of(workers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (hall == MAP_FAILED)
        return kedge_err(err, -ENOMEM, "out of memory");
    hall->workers = workers;
    for (uint32_t i = 0; i < workers; i++)
        kedge_hist_reset(&hall->seat[i].hist);
    *out = hall;
    return 0;
}

void perf_hall_free(struct perf_hall *hall)
{
    munmap(hall, bytes_of(hall->workers));
}

void perf_hall_run(struct perf_hall *hall,
                   int (*run)(struct perf_hall *hall, uint32_t me, const void *user),
                   const void *user)
{
    pid_t *pid = calloc(hall->workers, sizeof *pid);
    for (uint32_t i = 0; i < hall->workers; i++) {
        struct perf_seat *seat = &hall->seat[i];
        seat->status = -EIO;
        if (pid == NULL || (pid[i] = fork()) < 0) {
            kedge_err(&seat->err, -EIO, "no process for it (raise TasksMax?)");
            atomic_fetch_add(&hall->failed, 1);
        } else if (pid[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            seat->status = run(hall, i, user);
            if (seat->status != 0)
                atomic_fetch_add(&hall->failed, 1);
            _exit(0);
        }
    }
    for (uint32_t i = 0; pid != NULL && i < hall->workers; i++)
        if (pid[i] > 0)
            waitpid(pid[i], NULL, 0);
    free(pid);
}

uint32_t perf_hall_judge(const struct perf_hall *hall, int *status, struct kedge_errbuf *err)
{
    uint32_t well = 0;
    *status = 0;
    for (uint32_t i = 0; i < hall->workers; i++) {
        const struct perf_seat *seat = &hall->seat[i];
        well += seat->status == 0;
        if (seat->status != 0 && (*status == 0 || *status == -ECANCELED))
            *status = kedge_err(err, seat->status, "worker %u: %.450s", i,
                                seat->err.text[0] != '\0' ? seat->err.text : "it died");
    }
    return well;
}

/* Wakes everyone at each step; waits until all have come, or one has failed. */
int perf_hall_meet(struct perf_hall *hall, int meeting)
{
    _Atomic uint32_t *came = &hall->came[meeting];
    if (atomic_fetch_add(came, 1) + 1 == hall->workers)
        kedge_futex_wake(came, INT32_MAX);
    uint64_t end = kedge_clock_ns() + PERF_PATIENCE_MS * KEDGE_NS_PER_MS;
    for (uint32_t n; (n = atomic_load(came)) < hall->workers;) {
        const uint32_t failed = atomic_load(&hall->failed);
        if (hall->tolerant && n + failed >= hall->workers)
            break;
        if (!hall->tolerant && failed != 0)
            return -ECANCELED;
        if (kedge_clock_ns() > end)
            return -ETIMEDOUT;
        (void)kedge_futex_wait(came, n, 200 * KEDGE_NS_PER_MS);
    }
    uint64_t unset = 0;
    atomic_compare_exchange_strong(&hall->met_ns[meeting], &unset, kedge_clock_ns());
    return 0;
}
