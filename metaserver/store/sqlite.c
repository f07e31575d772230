/* SPDX-License-Identifier: Apache-2.0 */
/* The default store: one SQLite file, WAL, synchronous=FULL, so that what was answered survives a
 * power cut.
 *
 * A lock file beside it keeps a second metaserver out; the database itself stays readable for
 * others (a backup by `sqlite3 FILE .backup` is fine while the metaserver runs). */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/sql.h"
#include "sqlite_private.h"

#define APPLICATION_ID 0x4b4d4554
#define PRINT_WORDS    (2 * META_STORE_NODE_ENDPOINTS)
#define TRY_BYTES      (256 << 10) /* three bodies of the largest request, and pages about them */

static const char *const sql[STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
    [PUT_NODE] = "INSERT INTO nodes (id, incarnation, identity, expired, prints) "
                 "VALUES (?1, ?2, ?3, ?4, ?5) "
                 "ON CONFLICT (id) DO UPDATE SET incarnation = excluded.incarnation, "
                 "identity = excluded.identity, expired = excluded.expired, "
                 "prints = excluded.prints "
                 "WHERE excluded.incarnation >= nodes.incarnation",
    [DROP_ENDPOINTS] = "DELETE FROM endpoints WHERE node = ?1",
    [PUT_ENDPOINT] = "INSERT OR REPLACE INTO endpoints (gid, pool, node) VALUES (?2, ?3, ?1)",
    [DROP_LIFE] = "DELETE FROM endpoints WHERE node = (SELECT id FROM nodes WHERE id = ?1 AND "
                  "incarnation <= ?2)",
    [EXPIRE_NODE] = "UPDATE nodes SET expired = 1 WHERE id = ?1 AND incarnation <= ?2",
    [REMOVE_NODE] = "DELETE FROM nodes WHERE id = ?1 AND incarnation <= ?2",
    [LOAD_NODES] = "SELECT id, incarnation, identity, expired, prints FROM nodes ORDER BY id",
    [LOAD_ENDPOINTS] = "SELECT gid, pool FROM endpoints WHERE node = ?1 ORDER BY gid, pool",
    [PUT_SETTING] = "INSERT OR REPLACE INTO settings (kind, name, revision, body) "
                    "VALUES (?1, ?2, ?3, ?4)",
    [DROP_SETTING] = "DELETE FROM settings WHERE kind = ?1 AND name = ?2",
    [PUT_EVENT] = "INSERT INTO events (revision, time_ms, who, kind, name, before, after) "
                  "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [LAST_EVENT] = "SELECT max(revision) FROM events",
    [FORGET_EVENTS] = "DELETE FROM events WHERE revision <= ?1",
    [LOAD_SETTINGS] = "SELECT kind, name, revision, body FROM settings ORDER BY kind, name",
    [LOAD_EVENTS] = "SELECT revision, time_ms, who, kind, name, before, after FROM events "
                    "ORDER BY revision",
    [FIND_LIFE] = "SELECT 1 FROM nodes WHERE id = ?1 AND incarnation <= ?2 AND expired = 0",
    [FIND_NAME] = "SELECT tenant, name, node, incarnation, token FROM names "
                  "WHERE tenant = ?1 AND name = ?2",
    [PUT_NAME] = "INSERT OR REPLACE INTO names (tenant, name, node, incarnation, token) "
                 "VALUES (?1, ?2, ?3, ?4, ?5)",
    [DROP_NAME] = "DELETE FROM names WHERE tenant = ?1 AND name = ?2 AND node = ?3 AND "
                  "incarnation = ?4 AND token = ?5",
    [LOAD_NAMES] = "SELECT tenant, name, node, incarnation, token FROM names "
                   "ORDER BY tenant, name",
};

int meta_sqlite_run(struct sqlite *s, enum sqlite_statement which)
{
    int rc = sqlite3_step(s->statement[which]);
    sqlite3_reset(s->statement[which]);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int run_with_id(struct sqlite *s, enum sqlite_statement which, const char *id)
{
    int rc = sqlite3_bind_text(s->statement[which], 1, id, -1, SQLITE_STATIC);
    return rc == SQLITE_OK ? meta_sqlite_run(s, which) : rc;
}

/* Commits if rc is SQLITE_OK, else (also if that fails) rolls back. */
static int end_transaction(struct sqlite *s, int rc, struct base_errbuf *err)
{
    if (rc == SQLITE_OK)
        rc = meta_sqlite_run(s, COMMIT);
    if (rc == SQLITE_OK)
        return 0;
    int status = meta_sqlite_failed(s, rc, err);
    if (!sqlite3_get_autocommit(s->db))
        meta_sqlite_run(s, ROLLBACK);
    return status;
}

static int put_endpoints(struct sqlite *s, const struct meta_store_node *node)
{
    int rc = run_with_id(s, DROP_ENDPOINTS, node->id);
    for (uint32_t i = 0; i < node->endpoint_count && rc == SQLITE_OK; i++) {
        sqlite3_stmt *put = s->statement[PUT_ENDPOINT];
        rc = sqlite3_bind_blob(put, 2, node->endpoint[i].gid, 16, SQLITE_STATIC);
        if (rc == SQLITE_OK)
            rc = sqlite3_bind_int(put, 3, node->endpoint[i].pool);
        if (rc == SQLITE_OK)
            rc = run_with_id(s, PUT_ENDPOINT, node->id);
    }
    return rc;
}

/* Borrows `out`, which is of PRINT_WORDS. */
static int bind_prints(sqlite3_stmt *put, const struct meta_store_fingerprint *p, uint32_t *out)
{
    for (uint32_t i = 0; i < p->count; i++) {
        out[2 * i] = htole32(p->print[i].key);
        out[2 * i + 1] = htole32(p->print[i].body);
    }
    return sqlite3_bind_blob(put, 5, out, (int)(p->count * sizeof p->print[0]), SQLITE_STATIC);
}

/* In a transaction that was begun. SQLITE_OK, SQLITE_DONE (a newer incarnation is stored) or
 * another code. */
static int put_node(struct sqlite *s, const struct meta_store_node *node)
{
    sqlite3_stmt *put = s->statement[PUT_NODE];
    uint32_t prints[PRINT_WORDS];
    sqlite3_bind_int64(put, 2, node->incarnation);
    sqlite3_bind_int64(put, 3, node->fingerprint.identity);
    sqlite3_bind_int(put, 4, node->expired);
    bind_prints(put, &node->fingerprint, prints);
    int rc = run_with_id(s, PUT_NODE, node->id);
    if (rc == SQLITE_OK && sqlite3_changes(s->db) == 0)
        return SQLITE_DONE;
    return rc == SQLITE_OK ? put_endpoints(s, node) : rc;
}

static int put_item(struct sqlite *s, const struct meta_store_item *item)
{
    switch (item->kind) {
    case META_STORE_NODE:
        return put_node(s, &item->node);
    case META_STORE_RESOURCE:
        return meta_sqlite_put_resource(s, &item->resource);
    case META_STORE_CHANGE:
        return meta_sqlite_add_event(s, &item->change);
    case META_STORE_NAME:
        return meta_sqlite_put_name(s, &item->name);
    }
    return SQLITE_MISUSE;
}

static int sqlite_replace(struct meta_store *store, meta_store_next *next, void *user,
                          struct base_errbuf *err)
{
    struct sqlite *s = (struct sqlite *)store;
    struct meta_store_item item;
    int status = 0, rc = meta_sqlite_run(s, BEGIN);
    if (rc != SQLITE_OK)
        return meta_sqlite_failed(s, rc, err);
    rc = sqlite3_exec(s->db,
                      "DELETE FROM endpoints; DELETE FROM nodes; DELETE FROM settings; "
                      "DELETE FROM events; DELETE FROM names",
                      NULL, NULL, NULL);
    while (rc == SQLITE_OK && (status = next(user, &item, err)) == 1)
        rc = put_item(s, &item);
    if (status < 0) {
        meta_sqlite_run(s, ROLLBACK);
        return status;
    }
    status = end_transaction(s, rc, err);
    s->unsettled |= status == 0;
    meta_sqlite_settle(s);
    return status;
}

/* ---- transactions */

/* Codes beside SQLite's, of what a transaction finds. */
enum { LATER_LIFE = -1, OTHER_CHANGE = -2, NAME_REFUSED = -3 };

/* A statement about one life, and what is before it of its endpoints. */
static int run_with_life(struct sqlite *s, enum sqlite_statement which,
                         const struct meta_store_life *life)
{
    int rc = sqlite3_bind_int64(s->statement[DROP_LIFE], 2, life->incarnation);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(s->statement[which], 2, life->incarnation);
    if (rc == SQLITE_OK)
        rc = run_with_id(s, DROP_LIFE, life->id);
    return rc == SQLITE_OK ? run_with_id(s, which, life->id) : rc;
}

static int change_nodes(struct sqlite *s, const struct meta_store_txn *txn,
                        struct meta_store_outcome *out)
{
    int rc = SQLITE_OK;
    for (uint32_t i = 0; i < txn->remove_count && rc == SQLITE_OK; i++) {
        rc = run_with_life(s, REMOVE_NODE, &txn->remove[i]);
        out->removed += rc == SQLITE_OK && sqlite3_changes(s->db) > 0;
    }
    for (uint32_t i = 0; i < txn->expire_count && rc == SQLITE_OK; i++)
        rc = run_with_life(s, EXPIRE_NODE, &txn->expire[i]);
    out->expire_count = txn->expire_count;
    for (uint32_t i = 0; i < txn->put_count && rc == SQLITE_OK; i++) {
        struct meta_store_put *put = &txn->puts[i];
        rc = put_node(s, put->node);
        if (rc != SQLITE_DONE)
            continue;
        put->status =
            base_err(&put->err, -ESTALE, "a newer incarnation of %s is stored", put->node->id);
        rc = txn->put_count == 1 ? LATER_LIFE : SQLITE_OK; /* nothing of it was written */
    }
    out->put_count = txn->put_count;
    return rc;
}

static int change_all(struct sqlite *s, const struct meta_store_txn *txn,
                      struct meta_store_outcome *out)
{
    uint64_t last = 0;
    int rc = SQLITE_OK;
    if (txn->compare || txn->change != NULL)
        rc = meta_sqlite_last_event(s, &last);
    if (rc == SQLITE_OK && txn->compare && last != txn->last)
        return OTHER_CHANGE;
    if (rc == SQLITE_OK)
        rc = change_nodes(s, txn, out);
    if (rc == SQLITE_OK && txn->change != NULL)
        rc = meta_sqlite_change(s, txn->change, last, &out->revision);
    if (rc == SQLITE_OK)
        rc = meta_sqlite_change_names(s, txn, &out->status, &out->err);
    return rc == SQLITE_OK && out->status != 0 ? NAME_REFUSED : rc;
}

static int sqlite_commit(struct meta_store *store, const struct meta_store_txn *txn,
                         struct meta_store_outcome *out)
{
    struct sqlite *s = (struct sqlite *)store;
    int rc = meta_sqlite_run(s, BEGIN);
    if (rc != SQLITE_OK)
        return meta_sqlite_failed(s, rc, &out->err);
    rc = change_all(s, txn, out);
    if (rc == LATER_LIFE || rc == OTHER_CHANGE || rc == NAME_REFUSED)
        meta_sqlite_run(s, ROLLBACK);
    if (rc == NAME_REFUSED)
        return out->status;
    if (rc == LATER_LIFE) {
        out->err = txn->puts[0].err;
        return txn->puts[0].status;
    }
    if (rc == OTHER_CHANGE)
        return base_err(&out->err, -EREMCHG, "another program has changed %s", s->path);
    const int status = end_transaction(s, rc, &out->err);
    /* What is replaced or deleted may have allowed more. */
    s->unsettled |= status == 0 && txn->change != NULL && txn->change->before != NULL;
    if (txn->change != NULL)
        meta_sqlite_settle(s);
    return status;
}

/* ---- loading */

/* Whoever edits the file by hand may write what does not fit: that is damage, not a crash. */
static int load_endpoints(struct sqlite *s, struct meta_store_node *node)
{
    sqlite3_stmt *load = s->statement[LOAD_ENDPOINTS];
    int rc = sqlite3_bind_text(load, 1, node->id, -1, SQLITE_STATIC);
    if (rc != SQLITE_OK)
        return rc;
    while ((rc = sqlite3_step(load)) == SQLITE_ROW) {
        int pool = sqlite3_column_int(load, 1);
        if (node->endpoint_count == META_STORE_NODE_ENDPOINTS ||
            sqlite3_column_bytes(load, 0) != 16 || pool < 0 || pool > UINT16_MAX) {
            rc = SQLITE_CORRUPT;
            break;
        }
        struct meta_store_endpoint *e = &node->endpoint[node->endpoint_count++];
        memcpy(e->gid, sqlite3_column_blob(load, 0), sizeof e->gid);
        e->pool = (uint16_t)pool;
    }
    sqlite3_reset(load);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int load_prints(sqlite3_stmt *load, struct meta_store_fingerprint *p)
{
    const char *blob = sqlite3_column_blob(load, 4);
    int bytes = sqlite3_column_bytes(load, 4), each = (int)sizeof p->print[0];
    if (bytes % each != 0 || bytes / each > META_STORE_NODE_ENDPOINTS)
        return SQLITE_CORRUPT;
    p->count = (uint32_t)(bytes / each);
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t words[2];
        memcpy(words, blob + i * sizeof words, sizeof words);
        p->print[i] = (struct meta_store_print){le32toh(words[0]), le32toh(words[1])};
    }
    return SQLITE_OK;
}

static int load_node(struct sqlite *s, struct meta_store_node *node)
{
    sqlite3_stmt *load = s->statement[LOAD_NODES];
    sqlite3_int64 incarnation = sqlite3_column_int64(load, 1);
    const unsigned char *id = sqlite3_column_text(load, 0);
    int bytes = sqlite3_column_bytes(load, 0);
    if (id == NULL || bytes < 1 || bytes >= META_STORE_ID_BYTES || incarnation < 1 ||
        incarnation > UINT32_MAX)
        return SQLITE_CORRUPT;
    *node =
        (struct meta_store_node){.incarnation = (uint32_t)incarnation,
                                 .fingerprint.identity = (uint32_t)sqlite3_column_int64(load, 2),
                                 .expired = sqlite3_column_int(load, 3) != 0};
    memcpy(node->id, id, (size_t)bytes);
    int rc = load_prints(load, &node->fingerprint);
    return rc == SQLITE_OK ? load_endpoints(s, node) : rc;
}

static int sqlite_load(struct meta_store *store, meta_store_visit *visit, void *user,
                       struct base_errbuf *err)
{
    struct sqlite *s = (struct sqlite *)store;
    sqlite3_stmt *load = s->statement[LOAD_NODES];
    int rc, status = 0;
    while (status == 0 && (rc = sqlite3_step(load)) == SQLITE_ROW) {
        struct meta_store_node node;
        rc = load_node(s, &node);
        status = rc == SQLITE_OK ? visit(user, &node) : meta_sqlite_failed(s, rc, err);
    }
    if (status == 0 && rc != SQLITE_DONE)
        status = meta_sqlite_failed(s, rc, err);
    sqlite3_reset(load);
    return status;
}

/* Whether there is room for the largest transaction. The log reuses what one that failed has got of
 * the disk, so that a smaller one says nothing. */
static int try_room(const struct sqlite *s, struct base_errbuf *err)
{
    char path[sizeof s->path + 8];
    snprintf(path, sizeof path, "%s-try", s->path);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return meta_sqlite_open_error(s->path, errno, err);
    (void)unlink(path);
    const int error = posix_fallocate(fd, 0, TRY_BYTES);
    close(fd);
    return error == 0 ? 0 : meta_sqlite_open_error(s->path, error, err);
}

/* A page of the file is written as it is. */
static int try_write(struct sqlite *s, struct base_errbuf *err)
{
    char same[64];
    snprintf(same, sizeof same, "PRAGMA user_version = %u", schema_sql_migration_count);
    int rc = meta_sqlite_run(s, BEGIN);
    if (rc != SQLITE_OK)
        return meta_sqlite_failed(s, rc, err);
    rc = sqlite3_exec(s->db, same, NULL, NULL, NULL);
    return end_transaction(s, rc, err);
}

static int sqlite_check(struct meta_store *store, bool write, struct base_errbuf *err)
{
    struct sqlite *s = (struct sqlite *)store;
    int rc = sqlite3_step(s->statement[LOAD_NODES]);
    sqlite3_reset(s->statement[LOAD_NODES]);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return meta_sqlite_failed(s, rc, err);
    const int status = write ? try_room(s, err) : 0;
    return write && status == 0 ? try_write(s, err) : status;
}

/* Makes it for who has the database, if that is us or we may give it away: whoever begins with the
 * database has to be able to open it. -1: there is none, and errno says why. */
static int make_lock(const struct sqlite *s, const char *path)
{
    struct stat st;
    if (stat(s->path, &st) != 0)
        return -1;
    errno = ENOENT;
    if (geteuid() != 0 && geteuid() != st.st_uid)
        return -1;
    const int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && geteuid() == 0 && fchown(fd, st.st_uid, st.st_gid) != 0) {
        (void)unlink(path);
        close(fd);
        errno = ENOENT;
        return -1;
    }
    return fd;
}

/* By the lock of whoever has the database to write, which is shared with others that read. */
static int sqlite_check_idle(struct meta_store *store, struct base_errbuf *err)
{
    struct sqlite *s = (struct sqlite *)store;
    char path[sizeof s->path + 8];
    if (s->lock_fd >= 0)
        return 0;
    snprintf(path, sizeof path, "%s-lock", s->path);
    s->lock_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (s->lock_fd < 0 && errno != ENOENT)
        return meta_sqlite_open_error(path, errno, err);
    if (s->lock_fd < 0) /* one that was brought here has none, and so nobody has it */
        s->lock_fd = make_lock(s, path);
    if (s->lock_fd < 0)
        return 0;
    if (flock(s->lock_fd, LOCK_SH | LOCK_NB) == 0)
        return 0;
    close(s->lock_fd);
    s->lock_fd = -1;
    return base_err(err, -EBUSY, "a metaserver runs with the store %s: stop it and try again",
                    s->path);
}

static void sqlite_close(struct meta_store *store)
{
    struct sqlite *s = (struct sqlite *)store;
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(s->statement[i]);
    sqlite3_close(s->db);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    free(s);
}

static const struct meta_store_ops sqlite_ops = {
    .name = "sqlite",
    .close = sqlite_close,
    .load = sqlite_load,
    .check = sqlite_check,
    .commit = sqlite_commit,
    .load_resources = meta_sqlite_load_resources,
    .replace = sqlite_replace,
    .check_idle = sqlite_check_idle,
};

/* ---- opening */

static int take_lock(struct sqlite *s, struct base_errbuf *err)
{
    char path[sizeof s->path + 8];
    snprintf(path, sizeof path, "%s-lock", s->path);
    s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->lock_fd < 0)
        return meta_sqlite_open_error(path, errno, err);
    if (flock(s->lock_fd, LOCK_EX | LOCK_NB) != 0)
        return base_err(err, -EBUSY,
                        "%s is in use by another metaserver: stop that one, or name another data "
                        "directory",
                        s->path);
    /* Makes the database itself private before SQLite would make it readable. */
    int fd = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return meta_sqlite_open_error(s->path, errno, err);
    close(fd);
    return 0;
}

static int read_pragma(sqlite3 *db, const char *query, int *out)
{
    sqlite3_stmt *statement;
    int rc = sqlite3_prepare_v2(db, query, -1, &statement, NULL);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        *out = sqlite3_column_int(statement, 0);
        rc = SQLITE_OK;
    }
    sqlite3_finalize(statement);
    return rc;
}

/* Whose database it is: this version's, or an older one's, which may hold nothing yet. */
static int check_maker(struct sqlite *s, int *version, struct base_errbuf *err)
{
    int application = 0, rc = read_pragma(s->db, "PRAGMA user_version", version);
    if (rc == SQLITE_OK)
        rc = read_pragma(s->db, "PRAGMA application_id", &application);
    if (rc != SQLITE_OK)
        return meta_sqlite_failed(s, rc, err);
    if (*version != 0 && application != APPLICATION_ID)
        return base_err(err, -EINVAL,
                        "%s is another program's database: name another data directory", s->path);
    if (*version < 0 || (unsigned)*version > schema_sql_migration_count)
        return base_err(err, -EPROTO,
                        "%s was made by a newer kedge-metad (version %d, this one knows %u): run "
                        "that one",
                        s->path, *version, schema_sql_migration_count);
    return 0;
}

/* One transaction for each step, so that an interrupted upgrade goes on where it was. */
static int migrate_schema(struct sqlite *s, struct base_errbuf *err)
{
    int version = 0, rc, status = check_maker(s, &version, err);
    if (status != 0)
        return status;
    for (unsigned i = (unsigned)version; i < schema_sql_migration_count; i++) {
        char set[64];
        snprintf(set, sizeof set, "PRAGMA user_version = %u; COMMIT", i + 1);
        rc = sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_exec(s->db, schema_sql_migrations[i], NULL, NULL, NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_exec(s->db, set, NULL, NULL, NULL);
        if (rc != SQLITE_OK)
            return meta_sqlite_failed(s, rc, err);
    }
    return 0;
}

static int prepare_all(struct sqlite *s, struct base_errbuf *err)
{
    for (int i = 0; i < STATEMENTS; i++) {
        int rc = sqlite3_prepare_v3(s->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &s->statement[i],
                                    NULL);
        if (rc != SQLITE_OK)
            return meta_sqlite_failed(s, rc, err);
    }
    return 0;
}

static int open_database(struct sqlite *s, struct base_errbuf *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int rc = sqlite3_open_v2(s->path, &s->db, flags, NULL);
    if (rc != SQLITE_OK)
        return meta_sqlite_failed(s, rc, err);
    sqlite3_busy_timeout(s->db, SQLITE_BUSY_MS);
    rc = sqlite3_exec(s->db,
                      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; "
                      "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF",
                      NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return meta_sqlite_failed(s, rc, err);
    int status = migrate_schema(s, err);
    return status != 0 ? status : prepare_all(s, err);
}

static int open_to_read(struct sqlite *s, struct base_errbuf *err)
{
    int version = 0;
    if (access(s->path, F_OK) != 0)
        return base_err(err, -errno, "there is no store %s: set data_dir", s->path);
    /* Its log has an index in shared memory, which readers write to as well. */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int rc = sqlite3_open_v2(s->path, &s->db, flags, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(s->db, SQLITE_BUSY_MS);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(s->db, "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF", NULL, NULL,
                          NULL);
    if (rc != SQLITE_OK)
        return meta_sqlite_failed(s, rc, err);
    int status = check_maker(s, &version, err);
    if (status == 0 && version != (int)schema_sql_migration_count)
        status =
            base_err(err, -EPROTO,
                     "%s was made by an older kedge-metad (version %d, this one knows %u): use "
                     "that one, or start this one with it once",
                     s->path, version, schema_sql_migration_count);
    if (status == 0)
        status = prepare_all(s, err);
    if (status != 0)
        return status;
    rc = sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL); /* what is read first decides the moment */
    return rc == SQLITE_OK ? 0 : meta_sqlite_failed(s, rc, err);
}

static int open_store(const char *path, bool to_read, struct meta_store **out,
                      struct base_errbuf *err)
{
    struct sqlite *s = calloc(1, sizeof *s);
    if (s == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    s->base.ops = &sqlite_ops;
    s->lock_fd = -1;
    int status = 0;
    if (strchr(path, '/') == NULL)
        status = base_err(err, -EINVAL, "the data directory must be named with a /");
    else if ((size_t)snprintf(s->path, sizeof s->path, "%s", path) >= sizeof s->path)
        status = base_err(err, -ENAMETOOLONG, "the data directory's name is too long");
    if (status == 0 && !to_read)
        status = take_lock(s, err);
    if (status == 0)
        status = to_read ? open_to_read(s, err) : open_database(s, err);
    if (status != 0) {
        sqlite_close(&s->base);
        return status;
    }
    *out = &s->base;
    return 0;
}

int meta_store_sqlite(const char *path, struct meta_store **out, struct base_errbuf *err)
{
    return open_store(path, false, out, err);
}

int meta_store_sqlite_reader(const char *path, struct meta_store **out, struct base_errbuf *err)
{
    return open_store(path, true, out, err);
}
