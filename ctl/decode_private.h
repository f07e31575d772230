/* SPDX-License-Identifier: Apache-2.0 */
/* Between decode_resources.c, decode_events.c, decode_nodes.c and decode_manifest.c: JSON in and
 * out. */
#ifndef CTL_DECODE_PRIVATE_H
#define CTL_DECODE_PRIVATE_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "ctl/resources.h"

/* An object, the caller's to json_decref(). 0 or -EBADMSG. */
int ctl_json_load(const char *body, size_t bytes, json_t **out, struct base_errbuf *err);
/* Appends an object. 0 or -ENOMEM. */
int ctl_json_dump(json_t *object, struct base_text *out, struct base_errbuf *err);
/* A resource as it was answered (NULL: there is none), without name and revision: what is PUT. The
 * caller's to json_decref(). *revision is 0 if there is none. 0, -EBADMSG or -ENOMEM. */
int ctl_json_body(const char *body, size_t bytes, json_t **out, uint64_t *revision,
                  struct base_errbuf *err);
/* Sizes, times and durations that are texts, such as "4GiB" and "30d", become what the server
 * takes. 0; or -EINVAL: one is no such. */
int ctl_json_units(const struct resource_table *kind, json_t *object, struct base_errbuf *err);
/* Adds items to a field of the object that is a list, or takes them away. 0, -EINVAL: there would
 * be too many; -EBADMSG; -ENOMEM. */
int ctl_edit_list(const struct resource_field *field, json_t *root, json_t *delta, bool add,
                  struct base_errbuf *err);
/* The value of a field as it is shown (NULL: of one that is not known here); an array is a list
 * with commas. */
void ctl_show_value(json_t *value, const struct resource_field *field, char *out, size_t size);
/* The array of a page, and its cursor. The page is the caller's to json_decref(). 0 or -EBADMSG. */
int ctl_json_page(const char *body, size_t bytes, const char *of, json_t **root, json_t **array,
                  char *next, size_t size, struct base_errbuf *err);

#endif
