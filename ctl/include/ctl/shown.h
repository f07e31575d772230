/* SPDX-License-Identifier: Apache-2.0 */
/* What the REST interface's document (schema/openapi.yaml) says of the members of what is shown,
 * those that nobody sets among them. The document's schemas are a part of rdmactl. Any thread. */
#ifndef CTL_SHOWN_H
#define CTL_SHOWN_H

#include <stddef.h>

#include "base/error.h"

extern const char ctl_schemas[]; /* components/schemas, YAML */

enum { CTL_SHOWN_NAME = 64, CTL_SHOWN_TYPE = 200, CTL_SHOWN_HELP = 2048, CTL_SHOWN_MEMBERS = 64 };

struct ctl_shown_member {
    char name[CTL_SHOWN_NAME];
    char type[CTL_SHOWN_TYPE];  /* "integer", "live, waiting or gone", "list of objects" */
    char range[CTL_SHOWN_TYPE]; /* "0 to 4294967294"; or "" */
    char help[CTL_SHOWN_HELP];  /* in one line; or "" */
};

/* It, and the members that it has itself. */
struct ctl_shown {
    struct ctl_shown_member self;
    size_t members;
    struct ctl_shown_member member[CTL_SHOWN_MEMBERS];
};

/* The i-th kind, "tenant", "worker" and so on; NULL: there are no more. */
const char *ctl_shown_kind(size_t i);
/* Of a kind, and of a member of it, of a member of that, and so on: "fabric.state"; of a list its
 * items' members. path "": the kind itself. 0; -ENOENT: there is none; -EBADMSG, -ENOMEM and a
 * sentence. */
int ctl_shown_find(const char *kind, const char *path, struct ctl_shown *out,
                   struct base_errbuf *err);

#endif
