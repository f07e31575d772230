/* SPDX-License-Identifier: Apache-2.0 */
/* What operators put and get: one table for each kind of resource, in schema/resources/. From its
 * rows come the structs below, their codecs and validation at metaservers and agents (the reading
 * half is schema/resource_read.h), rdmactl's keys, columns, help and completion.
 * schema/openapi.yaml and rdmactl(1) are held against them by tests/unit/schema. No I/O, no state.
 * Any thread. */
#ifndef SCHEMA_RESOURCES_H
#define SCHEMA_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "schema/labels.h"
#include "schema/resources/node.h"
#include "schema/resources/pool.h"
#include "schema/resources/tenant.h"
#include "schema/resources/token.h"
#include "schema/resources/window.h"

enum resource_kind {
    RESOURCE_TENANT,
    RESOURCE_WINDOW,
    RESOURCE_TOKEN,
    RESOURCE_NODE,
    RESOURCE_POOL,
    RESOURCE_KINDS
};

enum {
    RESOURCE_TENANT_NAME_MAX = 31, /* characters */
    RESOURCE_WINDOW_NAME_MAX = 63,
    RESOURCE_TOKEN_NAME_MAX = 63,
    RESOURCE_NODE_NAME_MAX = 63,
    RESOURCE_POOL_NAME_MAX = 31,
    RESOURCE_TENANTS_MAX = 64, /* of a cluster */
    RESOURCE_WINDOWS_MAX = 256,
    RESOURCE_POOLS_MAX = 64,
    RESOURCE_UIDS_MAX = 32, /* ranges of a FIELD_UIDS */
    RESOURCE_GIDS_MAX = 16, /* of a FIELD_GIDS: as many endpoints as a node has */
    RESOURCE_TEXT_MAX = 127,
    RESOURCE_FIELDS_MAX = 32,
    RESOURCE_MUST_BYTES = 128,
};

/* How a field is written in JSON, and in words, and what it is in its kind's struct: an integer is
 * a uint64_t among its `numbers`. From FIELD_CHOICE on an empty word takes it away. */
enum field_type {
    FIELD_BOUND,      /* an integer; 0, or left out: no bound */
    FIELD_SIZE,       /* likewise, of bytes; in words with a unit or without */
    FIELD_UIDS,       /* 1000,2000-2999; left out: none. struct resource_uids */
    FIELD_SELECTOR,   /* labels of nodes, or "all"; it has to be said. struct resource_labels */
    FIELD_CHOICE,     /* one of some words; it has to be said. An enum */
    FIELD_REFERENCE,  /* a name of another resource. A text, of which "" is none */
    FIELD_GID,        /* of one endpoint. 16 bytes, of which all 0 are none */
    FIELD_TEXT,       /* of up to RESOURCE_TEXT_MAX bytes. A text */
    FIELD_REFERENCES, /* names, with commas. struct resource_names */
    FIELD_GIDS,       /* likewise. struct resource_gids */
    FIELD_TIME,       /* 2027-01-31T00:00:00Z; in words from now on too, such as 30d. ms since
                       * 1970 in a uint64_t, of which 0 is none */
    FIELD_COUNT,      /* an integer of which 0 is one; or left out */
    FIELD_POWER,      /* likewise, a power of two */
    FIELD_PERIOD,     /* likewise, of milliseconds; in words with a unit or without */
    FIELD_LABELS,     /* zone=a,rack=7. struct resource_labels */
    FIELD_BOOL,       /* true or false. A bool */
};

#define RESOURCE_NUMBER_MAX   (UINT64_C(1) << 53)  /* what every JSON reader holds exactly */
#define RESOURCE_GRACE_MAX_MS UINT64_C(9007199254) /* as many ns fit into that: 104 days */
#define RESOURCE_UNSAID       UINT64_MAX           /* a FIELD_COUNT or _PERIOD that is left out */

struct resource_field {
    const char *name; /* in JSON, and KEY of `rdmactl KIND set NAME KEY=VALUE` */
    enum field_type type;
    bool is_number;           /* a member of the kind's struct of numbers */
    size_t at, bytes;         /* where it is in the kind's struct */
    uint64_t min, max;        /* of integers; beside 0 of those that may be none */
    const char *const *words; /* of a FIELD_CHOICE, in the order of its enum, then NULL */
    enum resource_kind of;    /* of a FIELD_REFERENCE or _REFERENCES */
    bool last;                /* in JSON behind all that are not */
    const char *heading;
    bool wide;        /* a column of -o wide alone */
    const char *help; /* a line of `rdmactl KIND --help`; of a choice behind its words */
};

struct resource_table {
    const char *name;   /* "tenant" */
    const char *plural; /* of its path and its lists */
    const char *suffix; /* of its path, behind the name */
    const char *called; /* "name" or "id": what its name is */
    uint32_t name_max;  /* characters of that */
    size_t bytes;       /* of its struct */
    bool secret;        /* its creation shows a secret, so that nothing else creates it */
    size_t fields;
    const struct resource_field *field;
};

const struct resource_table *resource_table(enum resource_kind kind);
/* "tenant", "window", "token", "node" or "pool"; NULL: there is no such kind. */
const struct resource_table *resource_table_find(const char *name);
/* By its plural, likewise. */
const struct resource_table *resource_table_of_list(const char *plural);
/* The field of that name, or NULL. */
const struct resource_field *resource_field_find(const struct resource_table *t, const char *name);
/* The field that is written after this one (NULL: the first one), or NULL. */
const struct resource_field *resource_field_next(const struct resource_table *t,
                                                 const struct resource_field *f);
/* Whether it has to be said. */
bool resource_field_is_required(const struct resource_field *f);
/* "device", of RESOURCE_WINDOW_DEVICE: words is a field's. The place of a word, or -EINVAL. */
int resource_word_find(const char *const *words, const char *word);
/* The words with commas and "or" between them, each within `quote`. Returns out. */
const char *resource_words_text(const char *const *words, const char *quote,
                                char out[RESOURCE_MUST_BYTES]);
extern const char *const resource_window_scopes[], *const resource_token_scopes[];

/* `numbers` is a kind's struct of numbers, such as struct pool_numbers, with which the kind's
 * struct begins. Returns where its f->name is. */
uint64_t *resource_number(const struct resource_field *f, void *numbers);
/* All left out. */
void resource_numbers_clear(const struct resource_table *t, void *numbers);
/* Whether one may be that: of its type, from min to max; or what stands for none, or for left out.
 */
bool resource_number_is_right(const struct resource_field *f, uint64_t value);
/* What it must be, "must be an integer from 1 to 1024"; of one that may be none the end that is of
 * use. Returns out. */
const char *resource_number_must(const struct resource_field *f, char out[RESOURCE_MUST_BYTES]);
/* The first one that is not right, or NULL. */
const struct resource_field *resource_numbers_check(const struct resource_table *t,
                                                    const void *numbers);

/* `resource` is a kind's struct, such as struct resource_pool. All left out. */
void resource_clear(const struct resource_table *t, void *resource);
/* Appends "name":value as a member for each field, but for those that are left out; bounds, what
 * is true or false, labels and uids always. */
void resource_write(struct base_text *out, const struct resource_table *t, const void *resource);
/* Whether all fields say the same. Lists are to be in order. */
bool resource_same(const struct resource_table *t, const void *a, const void *b);

#include "schema/resources/structs.h"

/* What operators say of a node, as far as it is right by itself. NULL; or the field that is not,
 * and in *detail what it must be. */
const char *resource_node_check(const struct resource_node *node, const char **detail);

#endif
