/* SPDX-License-Identifier: Apache-2.0 */
#include "fault/fault_timer.h"

#include <sys/timerfd.h>

#include "base/clock.h"

/* Relative, so that a time that is over is 1 ns away: 0 would stop it. */
void fault_timer_set(int fd, uint64_t due_ns)
{
    const uint64_t now_ns = base_clock_ns(), in_ns = due_ns > now_ns ? due_ns - now_ns : 1;
    const struct itimerspec at = {.it_value = {.tv_sec = (time_t)(in_ns / BASE_NS_PER_S),
                                               .tv_nsec = (long)(in_ns % BASE_NS_PER_S)}};
    (void)timerfd_settime(fd, 0, &at, NULL);
}
