/* SPDX-License-Identifier: Apache-2.0 */
/* Windows that bound nothing, as nothing is said or a narrower one holds: taken all the same, since
 * the narrower one may go, and noted. Pure; any thread. */
#ifndef CTL_WINDOW_NOTES_H
#define CTL_WINDOW_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "ctl/resources.h"

/* A window, or what a tenant says of its own. */
struct ctl_window {
    const char *kind; /* "window" or "tenant" */
    char name[CTL_ID_BYTES], scope[CTL_ID_BYTES], tenant[CTL_ID_BYTES];
    char node[CTL_ID_BYTES], gid[CTL_ID_BYTES], pool[CTL_ID_BYTES]; /* "": not said */
    uint64_t bytes, ops;                                            /* 0: no bound */
    bool is_new; /* it was set just now: the notes are about these */
};

/* False: the resource is no window, and has none. */
bool ctl_window_of(const struct resource_table *kind, const struct ctl_resource *resource,
                   struct ctl_window *out);

/* Appends a line for each bound that has no effect because of another one, where one of the two is
 * new, and for each new window without any bound. */
void ctl_window_notes(const struct ctl_window *windows, size_t count, struct base_text *out);

#endif
