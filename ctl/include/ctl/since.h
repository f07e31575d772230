/* SPDX-License-Identifier: Apache-2.0 */
/* --since of `event list`. Any thread. */
#ifndef CTL_SINCE_H
#define CTL_SINCE_H

#include "base/error.h"

enum { CTL_SINCE_BYTES = 32 };

/* A duration, which is that long before now, or a time of RFC 3339, to the beginning of an event's
 * time as the metaserver writes it: events whose text sorts before it are older. 0 or -EINVAL. */
int ctl_since_parse(const char *text, char out[CTL_SINCE_BYTES], struct base_errbuf *err);

#endif
