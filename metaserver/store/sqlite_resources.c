/* SPDX-License-Identifier: Apache-2.0 */
/* Settings and the trail of their changes, in SQLite. */
#include <errno.h>

#include "sqlite_private.h"

/* Binding fails for want of memory alone, and NULL is bound as NULL. */
static int bind_text(struct sqlite *s, enum sqlite_statement which, int at, const char *text)
{
    return sqlite3_bind_text(s->statement[which], at, text, -1, SQLITE_STATIC);
}

static int bind_number(struct sqlite *s, enum sqlite_statement which, int at, uint64_t number)
{
    return sqlite3_bind_int64(s->statement[which], at, (sqlite3_int64)number);
}

int meta_sqlite_put_resource(struct sqlite *s, const struct meta_store_resource *resource)
{
    const int rc = bind_text(s, PUT_SETTING, 1, resource->kind) |
                   bind_text(s, PUT_SETTING, 2, resource->name) |
                   bind_number(s, PUT_SETTING, 3, resource->revision) |
                   bind_text(s, PUT_SETTING, 4, resource->body);
    return rc == SQLITE_OK ? meta_sqlite_run(s, PUT_SETTING) : SQLITE_NOMEM;
}

static int put_or_drop(struct sqlite *s, const struct meta_store_change *c)
{
    if (c->after != NULL) {
        const struct meta_store_resource resource = {c->kind, c->name, c->revision,
                                                     c->resource != NULL ? c->resource : c->after};
        return meta_sqlite_put_resource(s, &resource);
    }
    const int rc = bind_text(s, DROP_SETTING, 1, c->kind) | bind_text(s, DROP_SETTING, 2, c->name);
    return rc == SQLITE_OK ? meta_sqlite_run(s, DROP_SETTING) : SQLITE_NOMEM;
}

int meta_sqlite_add_event(struct sqlite *s, const struct meta_store_change *c)
{
    const int rc = bind_number(s, PUT_EVENT, 1, c->revision) |
                   bind_number(s, PUT_EVENT, 2, c->time_ms) | bind_text(s, PUT_EVENT, 3, c->who) |
                   bind_text(s, PUT_EVENT, 4, c->kind) | bind_text(s, PUT_EVENT, 5, c->name) |
                   bind_text(s, PUT_EVENT, 6, c->before) | bind_text(s, PUT_EVENT, 7, c->after);
    return rc == SQLITE_OK ? meta_sqlite_run(s, PUT_EVENT) : SQLITE_NOMEM;
}

static int add_event(struct sqlite *s, const struct meta_store_change *c)
{
    int rc = meta_sqlite_add_event(s, c);
    if (rc != SQLITE_OK || c->forget == 0)
        return rc;
    rc = bind_number(s, FORGET_EVENTS, 1, c->forget);
    return rc == SQLITE_OK ? meta_sqlite_run(s, FORGET_EVENTS) : SQLITE_NOMEM;
}

/* Somebody may copy the file without its log. Who reads it (a backup) is not waited for: then it is
 * done after another change, or when the store is closed. */
void meta_sqlite_settle(struct sqlite *s)
{
    if (!s->unsettled)
        return;
    sqlite3_busy_timeout(s->db, 0);
    s->unsettled =
        sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) != SQLITE_OK;
    sqlite3_busy_timeout(s->db, SQLITE_BUSY_MS);
}

int meta_sqlite_last_event(struct sqlite *s, uint64_t *out)
{
    sqlite3_stmt *last = s->statement[LAST_EVENT];
    int rc = sqlite3_step(last);
    if (rc == SQLITE_ROW)
        *out = (uint64_t)sqlite3_column_int64(last, 0); /* NULL is 0 */
    sqlite3_reset(last);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

int meta_sqlite_change(struct sqlite *s, const struct meta_store_change *change, uint64_t last,
                       uint64_t *revision)
{
    struct meta_store_change own = *change;
    if (own.revision <= last)
        own.revision = last + 1;
    int rc = put_or_drop(s, &own);
    if (rc == SQLITE_OK)
        rc = add_event(s, &own);
    *revision = own.revision;
    return rc;
}

static const char *column_text(sqlite3_stmt *row, int column)
{
    return (const char *)sqlite3_column_text(row, column);
}

static uint64_t column_number(sqlite3_stmt *row, int column)
{
    sqlite3_int64 value = sqlite3_column_int64(row, column);
    return value < 0 ? 0 : (uint64_t)value;
}

static int give_setting(sqlite3_stmt *row, const struct meta_store_visitor *visitor)
{
    struct meta_store_resource resource = {.kind = column_text(row, 0),
                                           .name = column_text(row, 1),
                                           .revision = column_number(row, 2),
                                           .body = column_text(row, 3)};
    if (resource.kind == NULL || resource.name == NULL || resource.body == NULL)
        return -ENOMEM; /* the schema has no NULL there */
    return visitor->resource(visitor->user, &resource);
}

static int give_change(sqlite3_stmt *row, const struct meta_store_visitor *visitor)
{
    struct meta_store_change change = {.revision = column_number(row, 0),
                                       .time_ms = column_number(row, 1),
                                       .who = column_text(row, 2),
                                       .kind = column_text(row, 3),
                                       .name = column_text(row, 4),
                                       .before = column_text(row, 5),
                                       .after = column_text(row, 6)};
    if (change.who == NULL || change.kind == NULL || change.name == NULL)
        return -ENOMEM;
    return visitor->change(visitor->user, &change);
}

static int visit_rows(struct sqlite *s, enum sqlite_statement which,
                      int (*give)(sqlite3_stmt *row, const struct meta_store_visitor *visitor),
                      const struct meta_store_visitor *visitor, struct base_errbuf *err)
{
    sqlite3_stmt *load = s->statement[which];
    int rc, status = 0;
    while (status == 0 && (rc = sqlite3_step(load)) == SQLITE_ROW)
        status = give(load, visitor);
    if (status == 0 && rc != SQLITE_DONE)
        status = meta_sqlite_failed(s, rc, err);
    sqlite3_reset(load);
    return status;
}

int meta_sqlite_load_resources(struct meta_store *store, const struct meta_store_visitor *visitor,
                               struct base_errbuf *err)
{
    struct sqlite *s = (struct sqlite *)store;
    int status = visit_rows(s, LOAD_SETTINGS, give_setting, visitor, err);
    if (status == 0)
        status = meta_sqlite_load_names(s, visitor, err);
    return status != 0 ? status : visit_rows(s, LOAD_EVENTS, give_change, visitor, err);
}
