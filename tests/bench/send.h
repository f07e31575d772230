/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-perf send: its way without Kedge. */
#ifndef BENCH_SEND_H
#define BENCH_SEND_H

#include "perf.h"

/* SENDs of o->size, o->depth at a time, on that soft device. One at a time; it stays for as long as
 * the process. */
int perf_send_direct(const struct perf_options *o, const char *device, struct perf_path **out,
                     struct base_errbuf *err);
/* What its receives hold, each at its slot's place. */
const void *perf_send_direct_heard(void);

#endif
