/* SPDX-License-Identifier: Apache-2.0 */
/* The form of what rdmactl prints with -o json: one object, which says its form's version first. */
#ifndef CTL_JSON_H
#define CTL_JSON_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

/* Grows when a member goes or means something else; not when one is added. */
enum { CTL_FORMAT_VERSION = 1 };

/* From now on what is printed is YAML: a document for what would be a line of JSON. */
void ctl_json_as_yaml(void);

/* Prints JSON, or a part of it, that a server may have written: what is not printable is escaped,
 * since it may go to a terminal. All of stdout's JSON goes through this. */
void ctl_json_put(const char *json);

/* Prints an object that a server has said, with that version in it, and the end of the line. 0; or
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

/* A list that is printed as it comes: the object's beginning, with an array of that key; what is in
 * it; and the end. */
void ctl_json_list(const char *key);
/* json: a value that is JSON already. */
void ctl_json_list_item(bool first, const char *json);
/* An object that a server has said, which says what it is. 0 or -EBADMSG. */
int ctl_json_list_resource(bool first, const char *kind, const char *object,
                           struct base_errbuf *err);
void ctl_json_list_end(void);
/* With another array behind it; items: JSON values, with commas between them. */
void ctl_json_list_end_with(const char *key, const char *items);

/* With members behind it, JSON as the writer makes them; "": none. */
void ctl_json_list_end_more(const char *members);
/* One line of a list that is watched: an object that a server has said, with what became of it, and
 * what it is unless that is NULL. 0 or -EBADMSG. */
int ctl_json_print_change(const char *change, const char *kind, const char *object,
                          struct base_errbuf *err);

#endif
