/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/print_table.h"

#include <errno.h>
#include <libsmartcols.h>
#include <stdlib.h>

struct ctl_table {
    struct libscols_table *scols;
    size_t columns;
    int status;
};

int ctl_table_new(const char *const *headings, size_t count, struct ctl_table **out)
{
    struct ctl_table *t = calloc(1, sizeof *t);
    if (t == NULL)
        return -ENOMEM;
    t->columns = count;
    t->scols = scols_new_table();
    if (t->scols == NULL) {
        free(t);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count && t->status == 0; i++)
        if (scols_table_new_column(t->scols, headings[i], 0, i + 1 == count ? SCOLS_FL_WRAP : 0) ==
            NULL)
            t->status = -ENOMEM;
    if (t->status != 0) {
        ctl_table_free(t);
        return -ENOMEM;
    }
    *out = t;
    return 0;
}

void ctl_table_free(struct ctl_table *table)
{
    if (table == NULL)
        return;
    scols_unref_table(table->scols);
    free(table);
}

void ctl_table_row(struct ctl_table *table, const char *const *cells)
{
    struct libscols_line *line = scols_table_new_line(table->scols, NULL);
    if (line == NULL)
        table->status = -ENOMEM;
    for (size_t i = 0; i < table->columns && table->status == 0; i++)
        table->status = scols_line_set_data(line, i, cells[i]);
}

int ctl_table_print(struct ctl_table *table)
{
    return table->status != 0 ? table->status : scols_print_table(table->scols);
}
