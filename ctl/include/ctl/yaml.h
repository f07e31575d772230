/* SPDX-License-Identifier: Apache-2.0 */
/* YAML in and out, as far as JSON has it too: mappings, lists, texts, integers, true, false and
 * null of the core schema of YAML 1.2. The one place that knows libyaml is yaml.c. Any thread. */
#ifndef CTL_YAML_H
#define CTL_YAML_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

enum {
    CTL_YAML_DEPTH = 16, /* of mappings and lists in each other */
    CTL_YAML_DOCUMENTS = 1024,
};

struct json_t;

/* The documents of a text, as an array, the caller's to json_decref(). Anchors, aliases, tags, a
 * key that is there twice and what is deeper than that are refused, so that what is read is no
 * larger than the text. 0; -EINVAL and where it is wrong; -ENOMEM. */
int ctl_yaml_read(const char *text, size_t bytes, struct json_t **out, struct base_errbuf *err);

/* A JSON value as a document. Texts that another YAML reader might take for something else have
 * quotes, and what is not printable is escaped. 0; -EBADMSG: it is no JSON; -ENOMEM. */
int ctl_yaml_print(const char *json, FILE *to);

#endif
