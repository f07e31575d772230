/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of nodes, and what selects nodes by them: key=value pairs. No I/O. Any thread. */
#ifndef METASERVER_LABELS_H
#define METASERVER_LABELS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    KEDGE_LABELS_MAX = 16,
    KEDGE_LABEL_CHARS = 63, /* of a key, and of a value */
    KEDGE_LABELS_BYTES = 512,
};

/* "key=value,key=value", by key, each once; neither has a ',' or a '=' in it. "": none. */
struct kedge_labels {
    char text[KEDGE_LABELS_BYTES];
};

/* One of them, and where the next one begins. */
struct kedge_label {
    char key[KEDGE_LABEL_CHARS + 1], value[KEDGE_LABEL_CHARS + 1];
    const char *next;
};

/* 1 to 63 of A-Z, a-z, 0-9, '.', '_', '-' and '/', with a letter or digit at both ends. */
bool kedge_label_is_key(const char *text);
/* The same without '/', or nothing at all. */
bool kedge_label_is_value(const char *text);

/* Adds one. 0; -EINVAL: it is no key, or no value; -EEXIST: the key is there; -ENOSPC: there are
 * KEDGE_LABELS_MAX, or they have no room together. */
int kedge_labels_add(struct kedge_labels *labels, const char *key, const char *value);
/* "key=value,..." in any order, at least one; 0, or as above, -EINVAL for what is no pair. */
int kedge_labels_parse(const char *text, struct kedge_labels *out);
/* The one at *at (labels->text first, then ->next). False: there is none. */
bool kedge_labels_next(const char *at, struct kedge_label *out);
/* Whether all of `wanted` are among them; of none they always are. */
bool kedge_labels_match(const struct kedge_labels *labels, const struct kedge_labels *wanted);

#endif
