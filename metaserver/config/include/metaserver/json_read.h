/* SPDX-License-Identifier: Apache-2.0 */
/* Reading JSON objects strictly, and saying where they are wrong: what the
 * decoders of resources and of agents' requests share. */
#ifndef METASERVER_JSON_READ_H
#define METASERVER_JSON_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metaserver/violation.h"
#include "schema/resources.h"

#define META_JSON_MAX_BYTES 65536 /* of a body */

/* Where the decoder is: what is written before a field's name. */
struct json_at {
    struct meta_violation *violation;
    char prefix[40];
};

/* -EINVAL, with the sentence about that field. */
int meta_json_bad(const struct json_at *at, const char *field, const char *detail);
/* An object, whole, without duplicate keys. 0 and *out (json_decref() it), or as meta_json_bad().
 */
int meta_json_parse(const void *body, size_t bytes, const struct json_at *at, json_t **out);
/* Refuses what is not among names (NULL-terminated). */
int meta_json_only(const struct json_at *at, json_t *object, const char *const *names);
/* Refuses what is no field of that kind, and not among `more` (NULL-terminated). */
int meta_json_only_fields(const struct json_at *at, json_t *object, const struct resource_table *t,
                          const char *const *more);
/* The fields of a kind into its struct. stored: a selector may be missing. */
int meta_json_fields(const struct json_at *at, json_t *object, const struct resource_table *t,
                     bool stored, void *out);
/* What an agent says: an object with nothing but names, of which `incarnation` is a node's. 0, *out
 * (json_decref() it) and *incarnation, or as meta_json_bad(). */
int meta_json_parse_agents(const void *body, size_t bytes, const struct json_at *at,
                           const char *const *names, json_t **out, uint32_t *incarnation);
/* A number within bounds. A field that is not there leaves *out as it is, unless it is required. */
int meta_json_number(const struct json_at *at, json_t *object, const char *name, bool required,
                     uint64_t min, uint64_t max, uint64_t *out);
/* A string of less than size bytes, with its NUL, likewise. */
int meta_json_text(const struct json_at *at, json_t *object, const char *name, char *out,
                   size_t size);
/* A GID of some endpoint, likewise. */
int meta_json_gid(const struct json_at *at, json_t *object, const char *name, bool required,
                  uint8_t out[16]);

#endif
