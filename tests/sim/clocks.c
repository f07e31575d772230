/* SPDX-License-Identifier: Apache-2.0 */
/* Time, sleep and randomness of simulated processes, and what they log. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "os.h"
#include "os_calls.h"
#include "process.h"
#include "random.h"
#include "shared.h"
#include "trace.h"

enum { READS_FOR_NOTHING = 3, SPIN_NS = 5000, BUCKETS = 1024 };

/* ---- clocks */

/* Who looks at the clock in a loop stands on a processor meanwhile, where time goes by. */
static void spend_time(void)
{
    struct play_process *p = play_process;
    if (p->spins && ++p->clock_reads > READS_FOR_NOTHING)
        (void)play_process_wait(play_now_ns() + SPIN_NS);
}

int os_clock_gettime(clockid_t clock, struct timespec *out)
{
    uint64_t ns = play_now_ns();
    if (play_process != NULL) {
        spend_time();
        ns = clock == CLOCK_REALTIME ? play_host_wall_ms(play_process->host) * BASE_NS_PER_MS
                                     : play_host_now_ns(play_process->host);
    }
    *out = (struct timespec){.tv_sec = (time_t)(ns / BASE_NS_PER_S),
                             .tv_nsec = (long)(ns % BASE_NS_PER_S)};
    return 0;
}

/* No time goes by between two looks at the clock. */
void os_base_futex_relax(void)
{
}

time_t os_time(time_t *out)
{
    struct timespec now;
    (void)os_clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}

/* Of a host's two processors. It moves now and then, so that what it has said of that is false
 * until it says so anew. */
int os_sched_getcpu(void)
{
    struct play_process *p = play_process;
    if (p == NULL)
        return 0;
    if (play_random_happens(&p->moves, 20000))
        p->cpu ^= 1;
    return p->cpu;
}

int os_nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)left;
    play_process_sleep((uint64_t)wanted->tv_sec * BASE_NS_PER_S + (uint64_t)wanted->tv_nsec);
    return 0;
}

ssize_t os_getrandom(void *bytes, size_t n, unsigned flags)
{
    (void)flags;
    play_random_fill(&play_process->random, bytes, n);
    return (ssize_t)n;
}

/* Nothing of the environment decides anything. */
char *os_getenv(const char *name)
{
    (void)name;
    return NULL;
}

/* ---- sleeping on a word */

static struct play_process *sleepers[BUCKETS];

static struct play_process **bucket_of(const void *word)
{
    return &sleepers[(uintptr_t)word / 64 % BUCKETS];
}

void os_forget_sleeper(struct play_process *p)
{
    if (p->sleeps_on == NULL)
        return;
    struct play_process **at = bucket_of(p->sleeps_on);
    while (*at != p)
        at = &(*at)->next_sleeper;
    *at = p->next_sleeper;
    p->sleeps_on = NULL;
}

void os_wake_word(const void *word)
{
    struct play_process *p = *bucket_of(word);
    while (p != NULL && p->sleeps_on != word)
        p = p->next_sleeper;
    if (p == NULL)
        return;
    os_forget_sleeper(p);
    play_process_wake(p);
}

int os_base_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    struct play_process *p = play_process;
    if (*word != expected)
        return -EAGAIN;
    p->sleeps_on = (const void *)word;
    p->next_sleeper = *bucket_of(p->sleeps_on);
    *bucket_of(p->sleeps_on) = p;
    const bool woken = play_process_wait(
        timeout_ns == UINT64_MAX ? PLAY_NEVER
                                 : play_host_due(p->host, play_host_now_ns(p->host) + timeout_ns));
    os_forget_sleeper(p);
    return woken ? 0 : -ETIMEDOUT;
}

/* ---- the log */

void play_log(int level, const char *event, const char *format, va_list args)
{
    char pairs[BASE_LOG_LINE];
    if (level > BASE_LOG_INFO)
        return;
    (void)vsnprintf(pairs, sizeof pairs, format, args);
    play_trace(play_process != NULL ? play_process->name : "?", "%s%s%s%s",
               level == BASE_LOG_ERROR  ? "ERROR "
               : level == BASE_LOG_WARN ? "WARN "
                                        : "",
               event, pairs[0] == '\0' ? "" : " ", pairs);
}
