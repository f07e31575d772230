/* SPDX-License-Identifier: Apache-2.0 */
/* What a store holds as a text, and back: whatever kind of store it came from or goes to.
 *
 * Lines of JSON: what it is, then a node, a resource or an entry of the trail each, and last how
 * many lines there were before it and their SHA-256. Of tokens it holds hashes, and of regions that
 * are published nothing: what grants them is no operator's, and agents publish again what they have
 * when a store was replaced. One thread. */
#ifndef METASERVER_BACKUP_H
#define METASERVER_BACKUP_H

#include "base/text.h"
#include "metaserver/store.h"

enum { META_BACKUP_BYTES_MAX = 1 << 30 };

struct meta_backup_counts {
    uint64_t nodes, resources, changes;
    uint64_t tokens;   /* of the resources */
    uint64_t revision; /* its last; 0: none */
    uint64_t time_ms;  /* when it was made, since 1970 */
};

/* Appends all that is in the store. -errno and a sentence. */
int meta_backup_write(struct meta_store *store, uint64_t wall_ms, struct base_text *out,
                      struct meta_backup_counts *counts, struct base_errbuf *err);
/* Who restores, and beyond what. */
struct meta_backup_restorer {
    const char *who;   /* for the trail */
    uint64_t wall_ms;  /* now, since 1970 */
    uint64_t above;    /* the last revision that is known to have been used; 0: none */
    uint64_t revision; /* out: of the restore's own entry in the trail */
};
/* Puts a text that was written so in place of what is in the store, all of it or nothing, and adds
 * that to the trail, with a revision that no change can have had since the backup was made: those
 * who know one of them must not take a later change for it. -EBADMSG: it is none, not whole, or was
 * changed. */
int meta_backup_restore(struct meta_store *store, const char *text, size_t length,
                        struct meta_backup_restorer *by, struct meta_backup_counts *counts,
                        struct base_errbuf *err);

#endif
