/* SPDX-License-Identifier: Apache-2.0 */
#include "ring_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"

/* The handler walks their list at any time, so that none is ever freed or taken out: one that is
 * dropped is the next ring's. */
struct ring_guard {
    _Atomic uintptr_t ring; /* 0: none */
    _Atomic size_t bytes;
    struct ring_guard *next; /* of all; it stays what it was when the guard was made */
    struct ring_guard *free; /* under the lock: the next that has no ring */
};

static struct ring_guard *_Atomic all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ring_guard *unused;
static _Atomic uint32_t replaced;
static uint32_t reported;
static struct sigaction former;
static bool started;
static int news_fd = -1;

/* Who touches a ring has it, so that its guard does not change meanwhile; others may. */
static const struct ring_guard *find_guard(uintptr_t address)
{
    for (const struct ring_guard *g = atomic_load(&all); g != NULL; g = g->next) {
        const uintptr_t ring = atomic_load(&g->ring);
        if (ring != 0 && address >= ring && address - ring < atomic_load(&g->bytes))
            return g;
    }
    return NULL;
}

/* Async-signal-safe. Not a page of the ring but all of it: one mapping takes the place of one, and
 * the process may not have many more. Zeros that are only read count in no limit of memory. */
static bool replace_ring(uintptr_t address)
{
    const struct ring_guard *g = find_guard(address);
    if (g == NULL)
        return false;
    void *ring = (void *)atomic_load(&g->ring); // NOLINT(performance-no-int-to-ptr)
    if (mmap(ring, atomic_load(&g->bytes), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) == MAP_FAILED)
        return false;
    const uint64_t once = 1;
    atomic_fetch_add(&replaced, 1);
    if (write(news_fd, &once, sizeof once) < 0) {
        /* Full, and so readable; or nobody is to hear. */
    }
    return true;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)context;
    const int error = errno;
    if (info->si_code != BUS_ADRERR || !replace_ring((uintptr_t)info->si_addr)) {
        (void)sigaction(number, &former, NULL); /* whoever touched it does so again */
        if (info->si_code <= 0)
            (void)raise(number); /* one that was sent is sent again */
    }
    errno = error;
}

void agentd_ring_guard_start(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    if (news_fd < 0)
        news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    started = sigaction(SIGBUS, &action, &former) == 0;
}

int agentd_ring_guard_fd(void)
{
    return news_fd;
}

int agentd_ring_guard_new(void *ring, size_t bytes, struct ring_guard **out)
{
    *out = NULL;
    if (!started)
        return 0;
    pthread_mutex_lock(&lock);
    struct ring_guard *g = unused;
    if (g != NULL)
        unused = g->free;
    else if ((g = calloc(1, sizeof *g)) != NULL) {
        g->next = atomic_load(&all);
        atomic_store(&all, g);
    }
    pthread_mutex_unlock(&lock);
    if (g == NULL)
        return -ENOMEM;
    atomic_store(&g->bytes, bytes);
    atomic_store(&g->ring, (uintptr_t)ring);
    *out = g;
    return 0;
}

void agentd_ring_guard_drop(struct ring_guard *guard)
{
    if (guard == NULL)
        return;
    atomic_store(&guard->ring, 0);
    pthread_mutex_lock(&lock);
    guard->free = unused;
    unused = guard;
    pthread_mutex_unlock(&lock);
}

void agentd_ring_guard_report(void)
{
    uint64_t times;
    if (read(news_fd, &times, sizeof times) < 0) {
        /* Nothing new. */
    }
    const uint32_t now = atomic_load(&replaced);
    if (now == reported)
        return;
    base_log(BASE_LOG_WARN,
             "workers took pages of their rings away, and there was no memory for others",
             "rings=%u", now - reported);
    reported = now;
}
