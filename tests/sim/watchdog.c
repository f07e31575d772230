/* SPDX-License-Identifier: Apache-2.0 */
#include "watchdog.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "events.h"
#include "process.h"

enum { PATIENCE_S = 5, STACK_BYTES = 65536 };

static uint8_t stack[STACK_BYTES]; /* fibers have little */
static uint64_t seen_events, seen_ns;

static void on_alarm(int number)
{
    char line[160];
    (void)number;
    if (play_events_count() != seen_events || play_now_ns() != seen_ns) {
        seen_events = play_events_count();
        seen_ns = play_now_ns();
        return;
    }
    /* Nothing else runs, and nothing is printed but by this: the process ends. */
    const int n =
        snprintf(line, sizeof line, "[%5llu.%06llu] %s: does not come to an end of what it does\n",
                 (unsigned long long)(seen_ns / BASE_NS_PER_S),
                 (unsigned long long)(seen_ns % BASE_NS_PER_S / BASE_NS_PER_US),
                 play_process != NULL ? play_process->name : "the simulation");
    (void)!write(STDERR_FILENO, line, (size_t)n);
    _exit(WATCHDOG_STATUS);
}

void play_watchdog_begin(void)
{
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    const struct itimerval every = {.it_interval = {.tv_sec = PATIENCE_S},
                                    .it_value = {.tv_sec = PATIENCE_S}};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK | SA_RESTART};
    seen_events = UINT64_MAX;
    BASE_ASSERT(sigaltstack(&own, NULL) == 0 && sigaction(SIGVTALRM, &action, NULL) == 0);
    BASE_ASSERT(setitimer(ITIMER_VIRTUAL, &every, NULL) == 0);
}
