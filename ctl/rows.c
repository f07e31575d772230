/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/json.h"
#include "ctl/news.h"
#include "ctl/print_table.h"

enum { MORE_BYTES = 4 << 20 };

/* ---- kept */

void ctl_rows_init(struct ctl_rows *rows, void *user)
{
    *rows = (struct ctl_rows){.user = user};
    base_text_init(&rows->more, MORE_BYTES);
}

static void free_row(struct ctl_row *row)
{
    free(row->id);
    free(row->json);
    for (size_t i = 0; i < CTL_ROW_CELLS; i++)
        free(row->cell[i]);
    *row = (struct ctl_row){.json = NULL};
}

void ctl_rows_fini(struct ctl_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        free_row(&rows->row[i]);
    free(rows->row);
    base_text_fini(&rows->more);
    rows->row = NULL;
    rows->count = 0;
}

void ctl_rows_head(struct ctl_rows *rows, const char *const *heading, size_t columns)
{
    rows->columns = columns < CTL_ROW_CELLS ? columns : CTL_ROW_CELLS;
    memcpy(rows->heading, heading, rows->columns * sizeof heading[0]);
}

static int grow_rows(struct ctl_rows *rows)
{
    const size_t room = rows->room > 0 ? 2 * rows->room : 16;
    struct ctl_row *grown =
        rows->count < rows->room ? rows->row : realloc(rows->row, room * sizeof *grown);
    if (grown == NULL)
        return -ENOMEM;
    rows->room = rows->count < rows->room ? rows->room : room;
    rows->row = grown;
    return 0;
}

void ctl_rows_add(struct ctl_rows *rows, const char *id, const char *json, const char *const *cell)
{
    if (rows->error != 0 || (rows->error = grow_rows(rows)) != 0)
        return;
    struct ctl_row row = {.id = strdup(id), .json = strdup(json)};
    bool whole = row.id != NULL && row.json != NULL;
    for (size_t i = 0; i < rows->columns; i++) {
        row.cell[i] = strdup(cell[i] != NULL ? cell[i] : "");
        whole = whole && row.cell[i] != NULL;
    }
    rows->row[rows->count] = row;
    if (whole)
        rows->count++;
    else
        free_row(&row);
    rows->error = whole ? 0 : -ENOMEM;
}

static int fill_rows(const struct ctl_options *o, const struct ctl_list *list,
                     struct ctl_rows *rows, struct base_errbuf *err)
{
    int status = list->fill(o, rows, err);
    if (status == 0 && rows->error != 0)
        status = base_err(err, rows->error, "out of memory");
    return status == 0 && o->sort_by != NULL ? ctl_rows_sort(rows, o->sort_by, err) : status;
}

/* ---- printed once */

static int print_table(const struct ctl_rows *rows, struct base_errbuf *err)
{
    struct ctl_table *table;
    int status = ctl_table_new(rows->heading, rows->columns, &table);
    for (size_t i = 0; i < rows->count && status == 0; i++)
        ctl_table_row(table, (const char *const *)rows->row[i].cell);
    if (status == 0) {
        status = ctl_table_print(table);
        ctl_table_free(table);
    }
    return status == 0 ? 0 : base_err(err, status, "printing failed: %s", strerror(-status));
}

static int print_json(const struct ctl_list *list, const struct ctl_rows *rows,
                      struct base_errbuf *err)
{
    int status = 0;
    ctl_json_list(list->plural);
    for (size_t i = 0; i < rows->count && status == 0; i++)
        if (list->says_kind)
            status = ctl_json_list_resource(i == 0, list->kind, rows->row[i].json, err);
        else
            ctl_json_list_item(i == 0, rows->row[i].json);
    ctl_json_list_end_more(base_text_str(&rows->more));
    return status;
}

/* ---- printed again and again */

/* As wide as what was first shown: what comes later may be wider. */
struct watched {
    size_t width[CTL_ROW_CELLS];
};

static void measure_rows(const struct ctl_rows *rows, struct watched *w)
{
    for (size_t k = 0; k < rows->columns; k++) {
        w->width[k] = strlen(rows->heading[k]);
        for (size_t i = 0; i < rows->count; i++)
            if (strlen(rows->row[i].cell[k]) > w->width[k])
                w->width[k] = strlen(rows->row[i].cell[k]);
    }
}

static void print_cells(const struct ctl_rows *rows, const struct watched *w, const char *change,
                        const char *const *cell)
{
    printf("%-7s", change);
    for (size_t k = 0; k < rows->columns; k++)
        printf("  %-*s", k + 1 < rows->columns ? (int)w->width[k] : 0, cell[k]);
    puts("");
}

static int print_change(const struct ctl_options *o, const struct ctl_list *list,
                        const struct ctl_rows *rows, const struct watched *w, const char *change,
                        const struct ctl_row *row, struct base_errbuf *err)
{
    if (o->json)
        return ctl_json_print_change(change, list->says_kind ? list->kind : NULL, row->json, err);
    print_cells(rows, w, change, (const char *const *)row->cell);
    return 0;
}

/* Often it is where it was. */
static const struct ctl_row *find_row(const struct ctl_rows *rows, size_t place, const char *id)
{
    if (place < rows->count && strcmp(rows->row[place].id, id) == 0)
        return &rows->row[place];
    for (size_t i = 0; i < rows->count; i++)
        if (strcmp(rows->row[i].id, id) == 0)
            return &rows->row[i];
    return NULL;
}

/* NULL: it is as it was. */
static const char *change_of(const struct ctl_row *before, const struct ctl_row *now)
{
    if (before == NULL)
        return "added";
    if (strcmp(before->json, now->json) == 0)
        return NULL;
    char *a = ctl_row_steady(before->json), *b = ctl_row_steady(now->json);
    const bool same = a != NULL && b != NULL && strcmp(a, b) == 0;
    free(a);
    free(b);
    return same ? NULL : "changed";
}

/* What is new, what has changed, and what is gone. */
static int print_changes(const struct ctl_options *o, const struct ctl_list *list,
                         const struct ctl_rows *before, const struct ctl_rows *now,
                         const struct watched *w, struct base_errbuf *err)
{
    int status = 0;
    for (size_t i = 0; i < now->count && status == 0; i++) {
        const struct ctl_row *row = &now->row[i];
        const char *change = change_of(find_row(before, i, row->id), row);
        if (change != NULL)
            status = print_change(o, list, now, w, change, row, err);
    }
    for (size_t i = 0; i < before->count && status == 0; i++) {
        const struct ctl_row *row = &before->row[i];
        if (find_row(now, i, row->id) == NULL)
            status = print_change(o, list, before, w, "deleted", row, err);
    }
    if (status == 0 && fflush(stdout) != 0)
        status = base_err(err, -EIO, "standard output cannot be written");
    return status;
}

static int print_first(const struct ctl_options *o, const struct ctl_list *list,
                       const struct ctl_rows *rows, struct watched *w, struct base_errbuf *err)
{
    int status = 0;
    measure_rows(rows, w);
    if (!o->json)
        print_cells(rows, w, "CHANGE", rows->heading);
    for (size_t i = 0; i < rows->count && status == 0; i++)
        status = print_change(o, list, rows, w, o->json ? "listed" : "", &rows->row[i], err);
    if (status == 0 && fflush(stdout) != 0)
        status = base_err(err, -EIO, "standard output cannot be written");
    return status;
}

static int watch_rows(const struct ctl_options *o, const struct ctl_list *list,
                      struct ctl_news **news, struct ctl_rows *rows, struct base_errbuf *err)
{
    struct watched w;
    int status = print_first(o, list, rows, &w, err);
    while (status == 0) {
        struct ctl_rows now;
        status = ctl_news_wait(*news, err);
        if (status != 0)
            status = ctl_news_again(o, list->events, news, err);
        if (status != 0)
            return status;
        ctl_rows_init(&now, rows->user);
        status = fill_rows(o, list, &now, err);
        if (status == 0)
            status = print_changes(o, list, rows, &now, &w, err);
        ctl_rows_fini(rows);
        *rows = now;
    }
    return status;
}

static int watch_list(const struct ctl_options *o, const struct ctl_list *list,
                      struct ctl_rows *rows, struct base_errbuf *err)
{
    struct ctl_news *news; /* from before they are fetched, so that nothing is missed */
    int status = ctl_news_open(o, list->events, &news, err);
    if (status != 0)
        return status;
    if (list->events == NULL)
        fprintf(stderr, "rdmactl: nothing tells of changes of %s: they are asked for every %d s\n",
                list->plural, CTL_NEWS_POLL_MS / 1000);
    status = fill_rows(o, list, rows, err);
    if (status == 0)
        status = watch_rows(o, list, &news, rows, err);
    ctl_news_close(news);
    return status;
}

int ctl_list_run(const struct ctl_options *o, const struct ctl_list *list, void *user,
                 struct base_errbuf *err)
{
    struct ctl_rows rows;
    int status;
    ctl_rows_init(&rows, user);
    if (o->watch && list->watch == NULL) {
        status = watch_list(o, list, &rows, err);
        ctl_rows_fini(&rows);
        return status;
    }
    status = fill_rows(o, list, &rows, err);
    if (status == 0 && o->json)
        status = print_json(list, &rows, err);
    else if (status == 0 && rows.count == 0 && list->say_none != NULL)
        list->say_none(o);
    else if (status == 0)
        status = print_table(&rows, err);
    if (status == 0 && list->finish != NULL)
        status = list->finish(o, &rows, err);
    if (status == 0 && o->watch)
        status = list->watch(o, &rows, err);
    ctl_rows_fini(&rows);
    return status;
}
