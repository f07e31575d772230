/* SPDX-License-Identifier: Apache-2.0 */
/* What `list` shows: rows, each as cells of a table and as JSON; sorted, printed, and with --watch
 * shown again when they change. One thread. */
#ifndef CTL_ROWS_H
#define CTL_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "ctl/options.h"

enum { CTL_ROW_CELLS = 40 };

struct ctl_row {
    char *id;                  /* owned: tells it from the others */
    char *json;                /* owned: an object */
    char *cell[CTL_ROW_CELLS]; /* owned */
};

struct ctl_rows {
    struct ctl_row *row; /* owned */
    size_t count, room, columns;
    const char *heading[CTL_ROW_CELLS];
    int error;             /* sticks: -ENOMEM */
    struct base_text more; /* members of the JSON behind the list, or "" */
    void *user;            /* of fill() and finish() */
};

struct ctl_list {
    const char *kind;   /* "tenant" */
    const char *plural; /* the list's member in JSON */
    bool says_kind;     /* rows in JSON get a member that says it */
    const char *events; /* what tells of changes, as for ctl_news_open(); NULL: nothing does */
    /* Adds all rows. 0 or -errno. */
    int (*fill)(const struct ctl_options *o, struct ctl_rows *rows, struct base_errbuf *err);
    /* Says on standard output that there is none; NULL: a table without rows does. */
    void (*say_none)(const struct ctl_options *o);
    /* When all is printed; or NULL. Its status is the command's. */
    int (*finish)(const struct ctl_options *o, struct ctl_rows *rows, struct base_errbuf *err);
    /* In place of asking again; or NULL. */
    int (*watch)(const struct ctl_options *o, struct ctl_rows *rows, struct base_errbuf *err);
};

/* The list command: 0 or -errno. With --watch it returns only when it cannot go on. */
int ctl_list_run(const struct ctl_options *o, const struct ctl_list *list, void *user,
                 struct base_errbuf *err);

void ctl_rows_init(struct ctl_rows *rows, void *user);
void ctl_rows_fini(struct ctl_rows *rows);
/* Headings that stay as long as the rows. */
void ctl_rows_head(struct ctl_rows *rows, const char *const *heading, size_t columns);
/* Copies them. */
void ctl_rows_add(struct ctl_rows *rows, const char *id, const char *json, const char *const *cell);
/* By a member of their JSON, "fabric.state"; with a '-' before it the greatest first. Numbers are
 * compared as such, lists by their lengths; what has none comes last. 0; -EINVAL: no row has it. */
int ctl_rows_sort(struct ctl_rows *rows, const char *by, struct base_errbuf *err);

/* A row's JSON without what changes as time goes by, such as age_ms: the caller's to free. NULL: no
 * memory, or it is no object. */
char *ctl_row_steady(const char *json);

#endif
