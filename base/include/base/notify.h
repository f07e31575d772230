/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the supervisor how the daemon fares, in the protocol of sd_notify(3): one datagram for each
 * word, to the socket that NOTIFY_SOCKET names (a path, or "@" and an abstract name).
 *
 * One per process, as the environment is; one thread, the control thread. Nothing here blocks or
 * fails: without a supervisor nothing is sent, and what it did not take is sent again by
 * base_notify_tick, unless something newer was said since. */
#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

#include <stdint.h>

#define BASE_NOTIFY_TEXT 256 /* bytes of a datagram; a longer status is cut */

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and removes them from the environment, so
 * that no child speaks for the daemon. Before other threads are made. */
void base_notify_init(void);

/* It serves. status, one line for people, is copied. */
void base_notify_ready(const char *status);

/* It reads its settings again; base_notify_ready follows. */
void base_notify_reloading(void);

/* It serves nobody for a while, and base_notify_ready will follow. */
void base_notify_status(const char *status);

/* It ends. */
void base_notify_stopping(void);

/* From the control loop; now_ns is any clock that counts nanoseconds. Says that the loop still
 * turns, twice in the time after which the supervisor would lose patience. */
void base_notify_tick(uint64_t now_ns);
/* When that has something to do, of that clock: 0: now, since the supervisor had no room for what
 * was said; UINT64_MAX: not before something is said. */
uint64_t base_notify_due_ns(void);

/* Closes the socket; nothing is said afterwards. */
void base_notify_fini(void);

#endif
