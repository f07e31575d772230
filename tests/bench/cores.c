/* SPDX-License-Identifier: Apache-2.0 */
/* What a word from one processor to another and back costs here: the least that a worker pays for
 * asking its agent's lane; and what a processor loses while the other one computes, which is
 * nothing where each has a core. In virtual machines both change with where the host puts them. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "perf.h"

enum {
    TURNS = 15,      /* of a loop without the other processor's, and of one beside it */
    ROUNDS = 100000, /* of a loop; some tens of microseconds */
    REST_NS = 20000  /* between two looks of who has nothing to do */
};

enum other_does { OTHER_ANSWERS, OTHER_COMPUTES, OTHER_RESTS, OTHER_ENDS };

struct lines {
    _Alignas(128) _Atomic uint64_t there;
    _Alignas(128) _Atomic uint64_t back;
    _Atomic int other_cpu;
    _Atomic enum other_does does;
    _Atomic enum other_does doing; /* what it is at, a moment later */
};

static void stay_on(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

/* Additions of which four can be made at a time: whoever shares a core with others who compute
 * makes fewer. */
static void compute(void)
{
    uint64_t sum[4] = {0};
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k < 4; k++) {
            sum[k]++;
            __asm__ volatile("" : "+r"(sum[k]));
        }
}

static void answer(struct lines *l, uint64_t *n)
{
    uint64_t came = atomic_load_explicit(&l->there, memory_order_acquire);
    if (came == *n)
        return;
    *n = came;
    atomic_store_explicit(&l->back, came, memory_order_release);
}

static void *be_other(void *arg)
{
    struct lines *l = arg;
    enum other_does does;
    stay_on(l->other_cpu);
    uint64_t n = 0;
    while ((does = atomic_load_explicit(&l->does, memory_order_relaxed)) != OTHER_ENDS) {
        if (does == OTHER_ANSWERS) {
            answer(l, &n);
            continue;
        }
        atomic_store_explicit(&l->doing, does, memory_order_relaxed);
        if (does == OTHER_COMPUTES)
            compute();
        else
            (void)nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
    }
    return NULL;
}

/* The loop's time while the other does that: the median of some. */
static uint64_t time_loop(struct lines *l, const struct base_clock_fast *clock,
                          enum other_does beside)
{
    struct base_hist hist;
    base_hist_reset(&hist);
    atomic_store(&l->does, beside);
    while (atomic_load(&l->doing) != beside)
        (void)sched_yield();
    for (int i = 0; i < TURNS; i++) {
        const uint64_t begin = base_clock_fast_ns(clock);
        compute();
        base_hist_record(&hist, base_clock_fast_ns(clock) - begin);
    }
    return base_hist_percentile(&hist, 50);
}

/* In turns, since a host moves its guests' processors within a second. */
static void measure_loops(struct lines *l, const struct base_clock_fast *clock,
                          struct perf_shared_core *c)
{
    struct base_hist alone, beside;
    base_hist_reset(&alone);
    base_hist_reset(&beside);
    for (int i = 0; i < TURNS; i++) {
        base_hist_record(&alone, time_loop(l, clock, OTHER_RESTS));
        base_hist_record(&beside, time_loop(l, clock, OTHER_COMPUTES));
    }
    c->alone_ns = base_hist_percentile(&alone, 50);
    c->beside_ns = base_hist_percentile(&beside, 50);
}

static void measure_words(const struct perf_options *o, struct lines *l,
                          const struct base_clock_fast *clock, struct perf_result *r)
{
    base_hist_reset(&r->hist);
    atomic_store(&l->does, OTHER_ANSWERS);
    const uint64_t first = base_clock_fast_ns(clock);
    for (uint64_t n = 1; n <= o->count; n++) {
        const uint64_t begin = base_clock_fast_ns(clock);
        atomic_store_explicit(&l->there, n, memory_order_release);
        while (atomic_load_explicit(&l->back, memory_order_acquire) != n) {
        }
        base_hist_record(&r->hist, base_clock_fast_ns(clock) - begin);
    }
    r->elapsed_ns = base_clock_fast_ns(clock) - first;
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
    int status = -pthread_create(&thread, NULL, be_other, &l);
    if (status != 0)
        return base_err(err, status, "no second thread: %s", strerror(-status));
    stay_on(cpu[0]);
    base_clock_fast_init(&clock);
    measure_words(o, &l, &clock, r);
    measure_loops(&l, &clock, &r->shared_core);
    atomic_store(&l.does, OTHER_ENDS);
    pthread_join(thread, NULL);
    r->verified = true;
    return 0;
}
