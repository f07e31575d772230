/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of nodes, and what selects nodes by them: key=value pairs. No I/O. Any thread. */
#ifndef SCHEMA_LABELS_H
#define SCHEMA_LABELS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    RESOURCE_LABELS_MAX = 16,
    RESOURCE_LABEL_CHARS = 63, /* of a key, and of a value */
    RESOURCE_LABELS_BYTES = 512,
};

/* "key=value,key=value", by key, each once; neither has a ',' or a '=' in it. "": none. */
struct resource_labels {
    char text[RESOURCE_LABELS_BYTES];
};

/* One of them, and where the next one begins. */
struct resource_label {
    char key[RESOURCE_LABEL_CHARS + 1], value[RESOURCE_LABEL_CHARS + 1];
    const char *next;
};

/* 1 to 63 of A-Z, a-z, 0-9, '.', '_', '-' and '/', with a letter or digit at both ends. */
bool resource_label_is_key(const char *text);
/* The same without '/', or nothing at all. */
bool resource_label_is_value(const char *text);

/* Adds one. 0; -EINVAL: it is no key, or no value; -EEXIST: the key is there; -ENOSPC: there are
 * RESOURCE_LABELS_MAX, or they have no room together. */
int resource_labels_add(struct resource_labels *labels, const char *key, const char *value);
/* "key=value,..." in any order, at least one; 0, or as above, -EINVAL for what is no pair. */
int resource_labels_parse(const char *text, struct resource_labels *out);
/* The one at *at (labels->text first, then ->next). False: there is none. */
bool resource_labels_next(const char *at, struct resource_label *out);
/* Whether all of `wanted` are among them; of none they always are. */
bool resource_labels_match(const struct resource_labels *labels,
                           const struct resource_labels *wanted);

#endif
