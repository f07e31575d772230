/* SPDX-License-Identifier: Apache-2.0 */
/* The story of a simulation: lines such as
 *
 *     [   1.204117] node-b/lane: READ of endpoint fd00::1 -> incarnation 7
 *
 * Every line goes into a hash, by which two runs of one seed are held against each other; it is
 * written only when somebody wants to read it. No line may hold an address of this process. One
 * thread. */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* out: where it is written; NULL: nowhere. from_ns: what is earlier is only hashed. */
void play_trace_init(FILE *out, uint64_t from_ns);
/* who: "node-b/lane". */
void play_trace(const char *who, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t play_trace_hash(void);
uint64_t play_trace_lines(void);

#endif
