/* SPDX-License-Identifier: Apache-2.0 */
/* The other processor, kept busy: as a lane that polls keeps it, and more so, since this one has
 * nothing to wait for. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "perf.h"

static struct {
    _Atomic bool over;
    int cpu;
    pthread_t thread;
} spinner;

static int stay_on(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return -pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

static void *spin(void *unused)
{
    (void)unused;
    (void)stay_on(spinner.cpu);
    while (!atomic_load_explicit(&spinner.over, memory_order_relaxed)) {
    }
    return NULL;
}

int perf_spinner_start(struct base_errbuf *err)
{
    int cpu[2];
    if (perf_first_cpus(cpu) != 2)
        return base_err(err, -EINVAL, "--spin needs two processors that it may use");
    spinner.cpu = cpu[1];
    int status = stay_on(cpu[0]);
    if (status == 0)
        status = -pthread_create(&spinner.thread, NULL, spin, NULL);
    return status == 0 ? 0 : base_err(err, status, "a thread that spins: %s", strerror(-status));
}

void perf_spinner_stop(void)
{
    atomic_store(&spinner.over, true);
    (void)pthread_join(spinner.thread, NULL);
}
