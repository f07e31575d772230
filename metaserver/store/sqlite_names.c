/* SPDX-License-Identifier: Apache-2.0 */
/* Names of regions, in SQLite. */
#include <errno.h>
#include <stdio.h>

#include "sqlite_private.h"

/* Binding fails for want of memory alone. */
static int bind_key(struct sqlite *s, enum sqlite_statement which,
                    const struct meta_store_name *name)
{
    sqlite3_stmt *x = s->statement[which];
    return sqlite3_bind_text(x, 1, name->tenant, -1, SQLITE_STATIC) |
           sqlite3_bind_text(x, 2, name->name, -1, SQLITE_STATIC);
}

static int bind_all(struct sqlite *s, enum sqlite_statement which,
                    const struct meta_store_name *name)
{
    sqlite3_stmt *x = s->statement[which];
    return bind_key(s, which, name) | sqlite3_bind_text(x, 3, name->node, -1, SQLITE_STATIC) |
           sqlite3_bind_int64(x, 4, name->incarnation) |
           sqlite3_bind_text(x, 5, name->grant, -1, SQLITE_STATIC);
}

int meta_sqlite_put_name(struct sqlite *s, const struct meta_store_name *name)
{
    return bind_all(s, PUT_NAME, name) == SQLITE_OK ? meta_sqlite_run(s, PUT_NAME) : SQLITE_NOMEM;
}

static int drop_name(struct sqlite *s, const struct meta_store_name *name)
{
    return bind_all(s, DROP_NAME, name) == SQLITE_OK ? meta_sqlite_run(s, DROP_NAME) : SQLITE_NOMEM;
}

/* Whether its owner lives. SQLITE_OK or a code. */
static int find_life(struct sqlite *s, const struct meta_store_name *name, bool *lives)
{
    sqlite3_stmt *find = s->statement[FIND_LIFE];
    int rc = sqlite3_bind_text(find, 1, name->node, -1, SQLITE_STATIC) |
             sqlite3_bind_int64(find, 2, name->incarnation);
    if (rc != SQLITE_OK)
        return SQLITE_NOMEM;
    rc = sqlite3_step(find);
    *lives = rc == SQLITE_ROW;
    sqlite3_reset(find);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static bool copy_column(sqlite3_stmt *row, int column, char *out, size_t room)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text != NULL && (size_t)snprintf(out, room, "%s", text) < room;
}

/* False: what is stored is no name, or there is no memory. */
static bool read_row(sqlite3_stmt *row, struct meta_store_name *out)
{
    out->incarnation = (uint32_t)sqlite3_column_int64(row, 3);
    return copy_column(row, 0, out->tenant, sizeof out->tenant) &&
           copy_column(row, 1, out->name, sizeof out->name) &&
           copy_column(row, 2, out->node, sizeof out->node) &&
           copy_column(row, 4, out->grant, sizeof out->grant);
}

static int find_name(struct sqlite *s, const struct meta_store_name *name,
                     struct meta_store_name *out, bool *found)
{
    sqlite3_stmt *find = s->statement[FIND_NAME];
    if (bind_key(s, FIND_NAME, name) != SQLITE_OK)
        return SQLITE_NOMEM;
    int rc = sqlite3_step(find);
    *found = rc == SQLITE_ROW;
    if (*found && !read_row(find, out))
        rc = SQLITE_CORRUPT;
    sqlite3_reset(find);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int publish_name(struct sqlite *s, const struct meta_store_name *name, int *status,
                        struct base_errbuf *err)
{
    struct meta_store_name known;
    bool lives = false, found = false, known_lives = false;
    int rc = find_life(s, name, &lives);
    if (rc == SQLITE_OK)
        rc = find_name(s, name, &known, &found);
    if (rc == SQLITE_OK && found)
        rc = find_life(s, &known, &known_lives);
    if (rc != SQLITE_OK)
        return rc;
    *status = meta_store_name_check(name, lives, found ? &known : NULL, known_lives, err);
    return *status == 0 ? meta_sqlite_put_name(s, name) : SQLITE_OK;
}

int meta_sqlite_change_names(struct sqlite *s, const struct meta_store_txn *txn, int *status,
                             struct base_errbuf *err)
{
    int rc = SQLITE_OK;
    *status = 0;
    for (uint32_t i = 0; i < txn->withdraw_count && rc == SQLITE_OK; i++)
        rc = drop_name(s, &txn->withdraw[i]);
    if (rc == SQLITE_OK && txn->publish != NULL)
        rc = publish_name(s, txn->publish, status, err);
    return rc;
}

int meta_sqlite_load_names(struct sqlite *s, const struct meta_store_visitor *visitor,
                           struct base_errbuf *err)
{
    sqlite3_stmt *load = s->statement[LOAD_NAMES];
    int rc = SQLITE_DONE, status = 0;
    while (visitor->name != NULL && status == 0 && (rc = sqlite3_step(load)) == SQLITE_ROW) {
        struct meta_store_name name;
        if (!read_row(load, &name)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        status = visitor->name(visitor->user, &name);
    }
    if (status == 0 && rc != SQLITE_DONE)
        status = meta_sqlite_failed(s, rc, err);
    sqlite3_reset(load);
    return status;
}
