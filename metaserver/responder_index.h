/* SPDX-License-Identifier: Apache-2.0 */
/* Whose the kept readers are: a number for each (node, pool), in their order. One thread. */
#ifndef METASERVER_RESPONDER_INDEX_H
#define METASERVER_RESPONDER_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "index.h"
#include "metaserver/store.h"

#define READER_NONE UINT32_MAX

struct reader_owner {
    char id[KEDGE_STORE_ID_BYTES];
    uint16_t pool;
};

struct reader_index {
    struct kedge_index index;
    struct reader_owner *owner; /* by number */
};

/* Numbers are below capacity. 0 or -ENOMEM, with what reader_index_fini() frees. */
int reader_index_init(struct reader_index *x, uint32_t capacity);
void reader_index_fini(struct reader_index *x);
void reader_index_clear(struct reader_index *x);

bool reader_index_has(const struct reader_index *x, const char *id, uint16_t pool);
/* Returns the number that was there for them, or READER_NONE. */
uint32_t reader_index_put(struct reader_index *x, const char *id, uint16_t pool, uint32_t number);
/* The place of the first one that is not before (id, pool 0). */
uint32_t reader_index_place(const struct reader_index *x, const char *id);
/* Whose the number at a place is; NULL: there are no more. Borrowed until the next change. */
const struct reader_owner *reader_index_at(const struct reader_index *x, uint32_t place);
/* Takes it out, and returns it: the next one has its place then. */
uint32_t reader_index_take(struct reader_index *x, uint32_t place);

#endif
