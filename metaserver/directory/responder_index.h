/* SPDX-License-Identifier: Apache-2.0 */
/* Whose the kept responders are: a number for each (node, pool, lane), in their order. One thread.
 */
#ifndef METASERVER_RESPONDER_INDEX_H
#define METASERVER_RESPONDER_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "index.h"
#include "metaserver/store.h"

#define RESPONDER_NONE UINT32_MAX

struct responder_owner {
    char id[META_STORE_ID_BYTES];
    uint16_t pool;
    uint8_t lane; /* of it: 0 is the first */
};

struct responder_index {
    struct meta_index index;
    struct responder_owner *owner; /* by number */
};

/* Numbers are below capacity. 0 or -ENOMEM, with what meta_responder_index_fini() frees. */
int meta_responder_index_init(struct responder_index *x, uint32_t capacity);
void meta_responder_index_fini(struct responder_index *x);
void meta_responder_index_clear(struct responder_index *x);

bool meta_responder_index_has(const struct responder_index *x, const char *id, uint16_t pool,
                              uint8_t lane);
/* Its place, or RESPONDER_NONE. */
uint32_t meta_responder_index_find(const struct responder_index *x, const char *id, uint16_t pool,
                                   uint8_t lane);
/* Returns the number that was there for them, or RESPONDER_NONE. */
uint32_t meta_responder_index_put(struct responder_index *x, const char *id, uint16_t pool,
                                  uint8_t lane, uint32_t number);
/* The place of the first one that is not before (id, pool 0). */
uint32_t meta_responder_index_place(const struct responder_index *x, const char *id);
/* Whose the number at a place is; NULL: there are no more. Borrowed until the next change. */
const struct responder_owner *meta_responder_index_at(const struct responder_index *x,
                                                      uint32_t place);
/* Takes it out, and returns it: the next one has its place then. */
uint32_t meta_responder_index_take(struct responder_index *x, uint32_t place);

#endif
