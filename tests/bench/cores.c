/* SPDX-License-Identifier: Apache-2.0 */
/* What a word from one processor to another and back costs here: the least that a worker pays for
 * asking its agent's lane. In virtual machines it changes with where the host puts them. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "perf.h"

struct lines {
    _Alignas(128) _Atomic uint64_t there;
    _Alignas(128) _Atomic uint64_t back;
    _Atomic int other_cpu;
    _Atomic bool over;
};

static void stay_on(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

static void *answer(void *arg)
{
    struct lines *l = arg;
    stay_on(l->other_cpu);
    for (uint64_t n = 0; !atomic_load_explicit(&l->over, memory_order_relaxed);) {
        uint64_t came = atomic_load_explicit(&l->there, memory_order_acquire);
        if (came == n)
            continue;
        n = came;
        atomic_store_explicit(&l->back, n, memory_order_release);
    }
    return NULL;
}

int perf_cores(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    static struct lines l;
    struct base_clock_fast clock;
    pthread_t thread;
    int cpu[2];
    if (perf_first_cpus(cpu) != 2)
        return base_err(err, -EINVAL, "cores needs two processors that it may use");
    l.other_cpu = cpu[1];
    int status = -pthread_create(&thread, NULL, answer, &l);
    if (status != 0)
        return base_err(err, status, "no second thread: %s", strerror(-status));
    stay_on(cpu[0]);
    base_clock_fast_init(&clock);
    base_hist_reset(&r->hist);
    uint64_t first = base_clock_fast_ns(&clock);
    for (uint64_t n = 1; n <= o->count; n++) {
        uint64_t begin = base_clock_fast_ns(&clock);
        atomic_store_explicit(&l.there, n, memory_order_release);
        while (atomic_load_explicit(&l.back, memory_order_acquire) != n) {
        }
        base_hist_record(&r->hist, base_clock_fast_ns(&clock) - begin);
    }
    r->elapsed_ns = base_clock_fast_ns(&clock) - first;
    atomic_store(&l.over, true);
    pthread_join(thread, NULL);
    r->verified = true;
    return 0;
}
