/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "resources_private.h"

static size_t bytes_of(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

/* Puts the text there and goes on behind it. Outside of strings, which have none, the ends of lines
 * mean nothing in JSON, and in a stream each object is a line. */
static const char *keep_text(char **at, const char *text)
{
    char *to = *at;
    if (text == NULL)
        return NULL;
    memcpy(to, text, strlen(text) + 1);
    *at += strlen(text) + 1;
    for (char *p = to; *p != '\0'; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' ';
    return to;
}

int meta_foreign_copy(const struct meta_foreign_entry *entry, struct meta_foreign_entry **out)
{
    struct meta_foreign_entry *own =
        malloc(sizeof *own + bytes_of(entry->kind) + bytes_of(entry->name) +
               bytes_of(entry->before) + bytes_of(entry->after));
    if (own == NULL)
        return -ENOMEM;
    char *at = (char *)(own + 1);
    own->kind = keep_text(&at, entry->kind);
    own->name = keep_text(&at, entry->name);
    own->before = keep_text(&at, entry->before);
    own->after = keep_text(&at, entry->after);
    *out = own;
    return 0;
}
