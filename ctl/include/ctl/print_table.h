/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of texts, printed as a table: the one place of rdmactl that knows libsmartcols. */
#ifndef CTL_TABLE_H
#define CTL_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct ctl_table;

/* headings: count of them, borrowed. 0, or -ENOMEM. */
int ctl_table_new(const char *const *headings, size_t count, struct ctl_table **out);
void ctl_table_free(struct ctl_table *table); /* NULL is allowed */
/* One row: a text for each column, copied. Errors stick until the table is printed. */
void ctl_table_row(struct ctl_table *table, const char *const *cells);
/* To standard output. 0 or -errno. */
int ctl_table_print(struct ctl_table *table);

#endif
