/* SPDX-License-Identifier: Apache-2.0 */
/* Between sqlite.c (opening, nodes), sqlite_resources.c (resources and the trail), sqlite_names.c
 * (names of regions) and sqlite_error.c (what errors mean). */
#ifndef METASERVER_STORE_SQLITE_PRIVATE_H
#define METASERVER_STORE_SQLITE_PRIVATE_H

#include <sqlite3.h>

#include "metaserver/store.h"

enum { SQLITE_BUSY_MS = 250 }; /* the longest wait for somebody else's transaction */

enum sqlite_statement {
    BEGIN,
    COMMIT,
    ROLLBACK,
    PUT_NODE,
    DROP_ENDPOINTS,
    PUT_ENDPOINT,
    DROP_LIFE,
    EXPIRE_NODE,
    REMOVE_NODE,
    LOAD_NODES,
    LOAD_ENDPOINTS,
    PUT_SETTING,
    DROP_SETTING,
    PUT_EVENT,
    LAST_EVENT,
    FORGET_EVENTS,
    LOAD_SETTINGS,
    LOAD_EVENTS,
    FIND_LIFE,
    FIND_NAME,
    PUT_NAME,
    DROP_NAME,
    LOAD_NAMES,
    STATEMENTS,
};

struct sqlite {
    struct meta_store base;
    sqlite3 *db;
    sqlite3_stmt *statement[STATEMENTS];
    int lock_fd;
    bool unsettled; /* the file alone, without its log, still gives rights that were taken away */
    char path[512];
};

/* A directory is where the database should be: -EISDIR and a sentence. */
int meta_sqlite_is_directory(const char *path, struct base_errbuf *err);
/* What the errno of opening it means: -errno and a sentence. */
int meta_sqlite_open_error(const char *path, int errnum, struct base_errbuf *err);
/* What SQLite says, as an errno and a sentence with the way out. */
int meta_sqlite_failed(const struct sqlite *s, int rc, struct base_errbuf *err);
/* Runs a statement that returns no rows; its parameters have been bound. SQLITE_OK or a code. */
int meta_sqlite_run(struct sqlite *s, enum sqlite_statement which);

/* In a transaction that was begun. SQLITE_OK or a code. */

/* The last revision of the trail; 0: there is none. */
int meta_sqlite_last_event(struct sqlite *s, uint64_t *out);
/* Sets or removes a resource and adds to the trail, above the last revision. */
int meta_sqlite_change(struct sqlite *s, const struct meta_store_change *change, uint64_t last,
                       uint64_t *revision);
/* Writes one of those. */
int meta_sqlite_put_resource(struct sqlite *s, const struct meta_store_resource *resource);
int meta_sqlite_add_event(struct sqlite *s, const struct meta_store_change *change);
/* Takes names back, and publishes one: SQLITE_OK, a code, or *status is not 0 and what a commit
 * has. */
int meta_sqlite_change_names(struct sqlite *s, const struct meta_store_txn *txn, int *status,
                             struct base_errbuf *err);
int meta_sqlite_put_name(struct sqlite *s, const struct meta_store_name *name);
int meta_sqlite_load_names(struct sqlite *s, const struct meta_store_visitor *visitor,
                           struct base_errbuf *err);
/* Empties the log into the file, if that is due and nobody reads it just now. */
void meta_sqlite_settle(struct sqlite *s);
int meta_sqlite_load_resources(struct meta_store *store, const struct meta_store_visitor *visitor,
                               struct base_errbuf *err);

#endif
