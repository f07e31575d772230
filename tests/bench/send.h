/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-perf send: its way without Kedge. */
#ifndef BENCH_SEND_H
#define BENCH_SEND_H

#include "perf.h"

/* Its receiver READs it (docs/messages.md#large-messages). */
static inline bool perf_send_is_large(const struct perf_options *o)
{
    return o->size > 16384;
}
/* It goes from one worker of the lane to another by no device, but where it is too long for that
 * (docs/messages.md#near-messages). */
static inline bool perf_send_is_near(const struct perf_options *o)
{
    return !o->by_device && o->size <= 65536;
}
/* SENDs of o->size, o->depth at a time, on that soft device; READs of as much where messages are
 * large. One at a time; it stays for as long as the process. */
int perf_send_direct(const struct perf_options *o, const char *device, struct perf_path **out,
                     struct base_errbuf *err);
/* What its receives hold, or its READs have brought, each at its slot's place. */
const void *perf_send_direct_heard(void);

#endif
