/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver has known of a store that it shares: by it a store that was put back to an
 * older state is told, and no token that was deleted since lives again. A token that the store has,
 * of a revision that was known, and that was not there as such, is one that came back. Any
 * thread. */
#ifndef METASERVER_KNOWN_H
#define METASERVER_KNOWN_H

#include "base/error.h"
#include "base/text.h"
#include "metaserver/resources.h"

enum {
    META_KNOWN_STORE_BYTES = 33,  /* as in struct meta_store */
    META_KNOWN_TEXT_MAX = 8 << 20 /* of as many tokens as there may be, and more */
};

/* So that whatever the file says there are revisions above it. */
#define META_KNOWN_REVISION_MAX (INT64_C(1) << 62)

struct meta_known {
    char store[META_KNOWN_STORE_BYTES]; /* which store it was */
    uint64_t generation;                /* and how often it had been replaced as a whole */
    uint64_t revision;                  /* the newest that was known */
    uint32_t count;
    struct meta_known_token {
        char name[META_RESOURCE_NAME_BYTES];
        uint64_t revision;
    } * token; /* that were there, by name; owned */
};

/* Those of s, but for tokens that are void already; the rest is the caller's to say. 0; -ENOMEM. */
int meta_known_of(const struct meta_resources *s, struct meta_known *out);
void meta_known_fini(struct meta_known *k); /* all zero is allowed */

/* As JSON, and from it. 0; -EINVAL and a sentence: it is no such text; -ENOMEM. */
void meta_known_write(struct base_text *out, const struct meta_known *k);
int meta_known_read(const char *text, size_t length, struct meta_known *out,
                    struct base_errbuf *err);

/* Makes every token of s void that came back: no secret belongs to it any more. How many. */
uint32_t meta_known_void(const struct meta_known *k, struct meta_resources *s);

#endif
