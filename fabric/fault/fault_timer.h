/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor that says that a time has come. Any thread. */
#ifndef FAULT_TIMER_H
#define FAULT_TIMER_H

#include <stdint.h>

/* The timer fd (of CLOCK_MONOTONIC) becomes readable at that time of base_clock_ns(), at once if
 * that is over. */
void fault_timer_set(int fd, uint64_t due_ns);

#endif
