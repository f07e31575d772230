/* SPDX-License-Identifier: Apache-2.0 */
/* What applying a file would change, as far as the resources' tables tell. Any thread. */
#ifndef CTL_COMPARE_H
#define CTL_COMPARE_H

#include <stddef.h>

#include "base/error.h"
#include "schema/resources.h"

/* A field that would have another value. */
struct ctl_change {
    const struct resource_field *field;
    char *before, *after;           /* owned: as they are shown; "-": it is not set */
    char *before_json, *after_json; /* owned: as JSON; "null": it is not set */
};

/* Owns its changes, in the order of the fields. */
struct ctl_changes {
    struct ctl_change change[RESOURCE_FIELDS_MAX];
    size_t count;
};

/* there: what the metaserver has, as it answers (NULL: nothing); wanted: what would be PUT. Fields
 * that are left out, that have their default and that list the same in another order are the same.
 * 0, the caller's to fini; -EINVAL: a field of `wanted` is no such, as the metaserver would say;
 * -EBADMSG; -ENOMEM. */
int ctl_compare(const struct resource_table *kind, const char *there, const char *wanted,
                struct ctl_changes *out, struct base_errbuf *err);
/* Whether `wanted` may be PUT, as a metaserver of this version would say by looking at nothing
 * else. 0, -EINVAL or -ENOMEM. */
int ctl_wanted_check(const struct resource_table *kind, const char *wanted,
                     struct base_errbuf *err);
void ctl_changes_fini(struct ctl_changes *changes);

#endif
