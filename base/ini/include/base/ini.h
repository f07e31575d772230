/* SPDX-License-Identifier: Apache-2.0 */
/* A program's settings file: INI, read once at its start. Every error names the file and the line.
 * The one home of libinih. One thread, at start-up: libinih's limits are global. */
#ifndef BASE_INI_H
#define BASE_INI_H

#include <stdio.h>

#include "base/error.h"

enum {
    BASE_INI_LINE = 4093,  /* bytes that a line may have */
    BASE_INI_SECTION = 48, /* bytes of a section's name that set() is sure to get whole */
};

/* One setting, in the file's order; value is "" when there is none. Or where a section begins, also
 * one that has no setting: key and value are NULL. 0, or -EINVAL and what is wrong with it, without
 * the place. */
typedef int (*base_ini_set)(void *user, const char *section, const char *key, const char *value,
                            struct base_errbuf *what);

/* Gives every setting of the file to set(), until the first error: 0, or -errno and a sentence. */
int base_ini_read(const char *path, base_ini_set set, void *user, struct base_errbuf *err);
/* The same of a file that is open already, which stays the caller's; path is for sentences. */
int base_ini_read_file(FILE *file, const char *path, base_ini_set set, void *user,
                       struct base_errbuf *err);

#endif
