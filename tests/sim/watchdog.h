/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the program when one event of a simulation takes seconds of processor time: a loop without
 * an end, in which no virtual time goes by, so that nothing else would ever notice. One thread. */
#ifndef SIM_WATCHDOG_H
#define SIM_WATCHDOG_H

enum { WATCHDOG_STATUS = 3 }; /* that of a process which it ended */

/* From now on, in this process alone. Says on standard error who it was. */
void play_watchdog_begin(void);

#endif
