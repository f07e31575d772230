/* SPDX-License-Identifier: Apache-2.0 */
/* The trail, as other commands than `event` need it. One thread. */
#ifndef CTL_EVENTS_H
#define CTL_EVENTS_H

#include "ctl/options.h"
#include "ctl/resources.h"

/* The newest events of such kinds (with commas) of what is called so: at most max, the oldest
 * first, each the caller's to ctl_event_fini(). 0 or -errno; then there are none. */
int ctl_events_newest(const struct ctl_options *o, const char *kinds, const char *name,
                      struct ctl_event *out, size_t max, size_t *count, struct base_errbuf *err);

#endif
