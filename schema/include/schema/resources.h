/* SPDX-License-Identifier: Apache-2.0 */
/* What operators put and get: one table for each kind of resource, in schema/resources/. From its
 * rows come the metaserver's and the agent's codecs and validation of numbers, rdmactl's keys,
 * columns, help and completion; schema/openapi.yaml and rdmactl(1) are held against it by
 * tests/unit/schema/test_resources.c. No I/O, no state. Any thread. */
#ifndef SCHEMA_RESOURCES_H
#define SCHEMA_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "schema/resources/pool.h"
#include "schema/resources/tenant.h"
#include "schema/resources/window.h"

enum resource_kind {
    RESOURCE_TENANT,
    RESOURCE_WINDOW,
    RESOURCE_TOKEN,
    RESOURCE_NODE,
    RESOURCE_POOL,
    RESOURCE_KINDS
};

/* How a field is written in JSON, and in words. From FIELD_WORD on an empty word takes it
 * away. */
enum field_type {
    FIELD_BOUND, /* an integer; 0, or left out: no bound */
    FIELD_SIZE,  /* likewise, of bytes; in words with a unit or without */
    FIELD_UIDS,  /* 1000,2000-2999 */
    FIELD_WORD,
    FIELD_WORDS,    /* several, with commas */
    FIELD_TIME,     /* 2027-01-31T00:00:00Z; in words from now on too, such as 30d */
    FIELD_COUNT,    /* an integer of which 0 is one; or left out */
    FIELD_LABELS,   /* zone=a,rack=7 */
    FIELD_BOOL,     /* true or false */
    FIELD_SELECTOR, /* labels of nodes, or "all"; it has to be said */
};

enum {
    RESOURCE_FIELDS_MAX = 20,
    RESOURCE_MUST_BYTES = 64,
};

#define RESOURCE_NUMBER_MAX   (UINT64_C(1) << 53)  /* what every JSON reader holds exactly */
#define RESOURCE_GRACE_MAX_MS UINT64_C(9007199254) /* as many ns fit into that: 104 days */
#define RESOURCE_UNSAID       UINT64_MAX           /* a FIELD_COUNT that is left out */

struct resource_field {
    const char *name; /* in JSON, and KEY of `rdmactl KIND set NAME KEY=VALUE` */
    enum field_type type;
    bool is_number;    /* a member of the kind's struct of numbers, at this place: */
    size_t at;         /* bytes; 0 of others */
    uint64_t min, max; /* of integers; beside 0 of FIELD_BOUND and FIELD_SIZE */
    const char *heading;
    bool wide;        /* a column of -o wide alone */
    const char *help; /* a line of `rdmactl KIND --help` */
};

struct resource_table {
    const char *name;   /* "tenant" */
    const char *plural; /* of its path and its lists */
    const char *suffix; /* of its path, behind the name */
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

/* `numbers` is a kind's struct of numbers, such as struct pool_numbers. Its f->name: */
uint64_t *resource_number(const struct resource_field *f, void *numbers);
uint64_t resource_number_of(const struct resource_field *f, const void *numbers);
/* All left out. */
void resource_numbers_clear(const struct resource_table *t, void *numbers);
/* Whether one may be that: a FIELD_COUNT from min to max or left out, another 0 or from min to
 * max. */
bool resource_number_is_right(const struct resource_field *f, uint64_t value);
/* What it must be, "must be a number from 1 to 1024"; of a bound the end that is of use. Returns
 * out. */
const char *resource_number_must(const struct resource_field *f, char out[RESOURCE_MUST_BYTES]);
/* The first one that is not right, or NULL. */
const struct resource_field *resource_numbers_check(const struct resource_table *t,
                                                    const void *numbers);
/* Appends "name":value as a member for each number but for a FIELD_COUNT that is left out. */
void resource_numbers_write(struct base_text *out, const struct resource_table *t,
                            const void *numbers);

/* Rows: NUMBER(name, type, min, max, heading, column, help) is a member of the kind's struct of
 * numbers, OTHER(name, type, heading, column, help) what the kind's own code reads and writes. */
#define RESOURCE_MEMBER(name, type, min, max, heading, column, help) uint64_t name;
#define RESOURCE_NO_MEMBER(name, type, heading, column, help)

struct tenant_numbers {
    TENANT_FIELDS(RESOURCE_MEMBER, RESOURCE_NO_MEMBER)
};
struct window_numbers {
    WINDOW_FIELDS(RESOURCE_MEMBER, RESOURCE_NO_MEMBER)
};
struct pool_numbers {
    POOL_FIELDS(RESOURCE_MEMBER, RESOURCE_NO_MEMBER)
};

#endif
