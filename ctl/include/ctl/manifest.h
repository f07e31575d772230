/* SPDX-License-Identifier: Apache-2.0 */
/* What `apply` is to set. Any thread. */
#ifndef CTL_MANIFEST_H
#define CTL_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ctl/resources.h"

struct ctl_manifest_item {
    const struct resource_table *kind;
    char *name;        /* owned */
    uint64_t revision; /* the one that it was made of; 0: whatever is there */
    char *body;        /* owned: what to PUT */
    bool strange;      /* it has a field that this rdmactl does not know: a server may */
};

/* Owns its items, of which no two have the same kind and name. */
struct ctl_manifest {
    struct ctl_manifest_item *item;
    size_t count;
    struct json_t *known; /* kinds and names */
};

/* Appends what a text says, which is JSON, or YAML of one document or several: an array of objects
 * with a kind, a name and what is set; one such; or what `get` and `list` print of the kinds that
 * can be set. 0; -EINVAL: the text is no such, or has something twice; -ENOMEM. Then what was
 * before that stays in *m. */
int ctl_manifest_read(struct ctl_manifest *m, const char *text, size_t bytes,
                      struct base_errbuf *err);
void ctl_manifest_fini(struct ctl_manifest *m);

#endif
