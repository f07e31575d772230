/* SPDX-License-Identifier: Apache-2.0 */
/* The form of what rdmactl prints with -o json: one object, which says its form's version first. */
#ifndef CTL_JSON_H
#define CTL_JSON_H

#include "base/error.h"
#include "base/text.h"

/* Grows when a member goes or means something else; not when one is added. */
#define CTL_FORMAT "\"format_version\":1"

/* Prints an object that a server has said, with CTL_FORMAT in it, and the end of the line. 0; or
 * -EBADMSG: it is no object. */
int ctl_json_print(const char *object, struct base_errbuf *err);
/* Likewise, and says what it is, so that `apply` takes it back. */
int ctl_json_print_of(const char *kind, const char *object, struct base_errbuf *err);
/* Begins the object: what is written next are members of it. */
void ctl_json_begin(struct base_text *t);
/* Prints a text that is whole, and the end of the line; frees it. 0 or -errno. */
int ctl_json_finish(struct base_text *t, struct base_errbuf *err);
/* Prints that something of that name is there no longer. */
int ctl_json_deleted(const char *kind, const char *name, struct base_errbuf *err);

#endif
