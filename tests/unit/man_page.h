/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the source tree that tables are held against. A test that includes this is built with
 * KEDGE_SOURCE_DIR. */
#ifndef TESTS_UNIT_MAN_PAGE_H
#define TESTS_UNIT_MAN_PAGE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"

/* A file, whole; the caller's to free. */
static inline char *read_source(const char *path)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s/%s", KEDGE_SOURCE_DIR, path);
    FILE *file = fopen(whole, "r");
    ck_assert_msg(file != NULL, "%s", whole);
    char *text = calloc(1, 1 << 20);
    const size_t bytes = fread(text, 1, (1 << 20) - 1, file);
    ck_assert(bytes > 0 && bytes < (1 << 20) - 1);
    fclose(file);
    return text;
}

/* The item of a word, up to the next one; the caller's to free. Its head is a line
 * (".It Cm dcis , spares") or what is between ".It Xo" and ".Xc". NULL: there is none. */
static inline char *cut_item(const char *page, const char *word)
{
    const size_t length = strlen(word);
    for (const char *head = strstr(page, "\n.It "); head != NULL;
         head = strstr(head + 1, "\n.It ")) {
        const bool is_long = strncmp(head, "\n.It Xo", 7) == 0;
        const char *end = is_long ? strstr(head, "\n.Xc") : strchr(head + 1, '\n');
        for (const char *at = head; (at = strstr(at + 1, word)) != NULL && at < end;) {
            if (at[-1] != ' ' || (at[length] != ' ' && at[length] != '\n'))
                continue;
            const char *next = strstr(end, "\n.It "), *last = strstr(end, "\n.El");
            next = next == NULL || last < next ? last : next;
            return strndup(head, (size_t)(next - head));
        }
    }
    return NULL;
}

/* From a heading, such as "\n.Ss Section pool\n", to the next one; the caller's to free. */
static inline char *cut_page_section(const char *page, const char *heading)
{
    const char *begin = strstr(page, heading);
    ck_assert_msg(begin != NULL, "%s", heading);
    const char *end = begin + 1;
    while (*end != '\0' && strncmp(end, "\n.Ss ", 5) != 0 && strncmp(end, "\n.Sh ", 5) != 0)
        end++;
    return strndup(begin, (size_t)(end - begin));
}

#endif
