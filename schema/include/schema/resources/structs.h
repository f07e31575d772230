/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds' structs, made from their tables: the second half of schema/resources.h, which includes
 * it. A row is one of these:
 *
 * - NUMBER(name, type, min, max, heading, column, help): an integer;
 * - CHOICE(name, enum, place, heading, column, help);
 * - REFERENCE(name, type, kind, place, heading, column, help), of one resource or of several;
 * - OTHER(name, type, place, heading, column, help).
 *
 * place: IN_ORDER, or LAST in JSON. column: NARROW, or WIDE: with -o wide alone. */
#ifndef SCHEMA_RESOURCES_STRUCTS_H
#define SCHEMA_RESOURCES_STRUCTS_H

#include <stdbool.h>
#include <stdint.h>

/* The enums of choices. */
#define RESOURCE_WORD_CONSTANT(constant, word) constant,
enum resource_window_scope { RESOURCE_WINDOW_SCOPES(RESOURCE_WORD_CONSTANT) };
enum resource_token_scope { RESOURCE_TOKEN_SCOPES(RESOURCE_WORD_CONSTANT) };

/* Both ends are included. */
struct resource_uid_range {
    uint32_t first, last;
};
struct resource_uids {
    uint32_t count;
    struct resource_uid_range range[RESOURCE_UIDS_MAX];
};
struct resource_gids {
    uint32_t count;
    uint8_t gid[RESOURCE_GIDS_MAX][16];
};
/* Of tenants: nothing else is listed so. */
struct resource_names {
    uint32_t count;
    char name[RESOURCE_TENANTS_MAX][RESOURCE_TENANT_NAME_MAX + 1];
};

#define RESOURCE_MEMBER_FIELD_UIDS(name)             struct resource_uids name;
#define RESOURCE_MEMBER_FIELD_SELECTOR(name)         struct resource_labels name;
#define RESOURCE_MEMBER_FIELD_LABELS(name)           struct resource_labels name;
#define RESOURCE_MEMBER_FIELD_GID(name)              uint8_t name[16];
#define RESOURCE_MEMBER_FIELD_GIDS(name)             struct resource_gids name;
#define RESOURCE_MEMBER_FIELD_TEXT(name)             char name[RESOURCE_TEXT_MAX + 1];
#define RESOURCE_MEMBER_FIELD_TIME(name)             uint64_t name;
#define RESOURCE_MEMBER_FIELD_BOOL(name)             bool name;
#define RESOURCE_MEMBER_FIELD_REFERENCE(name, kind)  char name[RESOURCE_##kind##_NAME_MAX + 1];
#define RESOURCE_MEMBER_FIELD_REFERENCES(name, kind) struct resource_names name;

#define RESOURCE_OTHER(name, type, ...)           RESOURCE_MEMBER_##type(name)
#define RESOURCE_CHOICE(name, words, ...)         enum words name;
#define RESOURCE_REFERENCE(name, type, kind, ...) RESOURCE_MEMBER_##type(name, kind)
#define RESOURCE_NUMBER(name, ...)                uint64_t name;
#define RESOURCE_NOTHING(...)

/* A kind's fields that are numbers, and those that are not. */
#define RESOURCE_NUMBERS(fields)                                                                   \
    fields(RESOURCE_NUMBER, RESOURCE_NOTHING, RESOURCE_NOTHING, RESOURCE_NOTHING)
#define RESOURCE_OTHERS(fields)                                                                    \
    fields(RESOURCE_NOTHING, RESOURCE_CHOICE, RESOURCE_REFERENCE, RESOURCE_OTHER)

struct tenant_numbers {
    RESOURCE_NUMBERS(TENANT_FIELDS)
};
struct window_numbers {
    RESOURCE_NUMBERS(WINDOW_FIELDS)
};
struct node_numbers {
    RESOURCE_NUMBERS(NODE_FIELDS)
};
struct pool_numbers {
    RESOURCE_NUMBERS(POOL_FIELDS)
};

struct resource_tenant {
    struct tenant_numbers numbers; /* bounds; 0: none of its own */
    RESOURCE_OTHERS(TENANT_FIELDS)
};
/* What may be in flight; 0: no bound. Of destinations, one alone may be named: a node, which need
 * not be known, or a GID; and the pool in which it is a destination. */
struct resource_window {
    struct window_numbers numbers;
    RESOURCE_OTHERS(WINDOW_FIELDS)
};
struct resource_token {
    RESOURCE_OTHERS(TOKEN_FIELDS)
};
/* What an operator says of a node, apart from what its agent registers: it need not be registered.
 * Cordoned: its agent takes no new workers. Draining: cordoned, and those that it has go; by
 * themselves, or when grace_ms is over; left out: they may finish. */
struct resource_node {
    struct node_numbers numbers;
    RESOURCE_OTHERS(NODE_FIELDS)
};
/* A pool of the nodes with all of its labels. Of its numbers what is left out each node's own file
 * says; but `number`, which then is not chosen yet, and `grace_ms`: workers may finish. */
struct resource_pool {
    struct pool_numbers numbers;
    RESOURCE_OTHERS(POOL_FIELDS)
};

#endif
