/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon's settings file: INI, read once at its start. Every error names the file and the line.
 * The one home of libinih. One thread, at start-up: libinih's limits are global. */
#ifndef BASE_INI_H
#define BASE_INI_H

#include "base/error.h"

enum { KEDGE_INI_LINE = 4093 /* bytes that a line may have */ };

/* One setting, in the file's order; value is "" when there is none. 0, or -EINVAL and what is wrong
 * with it, without the place. */
typedef int (*kedge_ini_set)(void *user, const char *section, const char *key, const char *value,
                             struct kedge_errbuf *what);

/* Gives every setting of the file to set(), until the first error: 0, or -errno and a sentence. */
int kedge_ini_read(const char *path, kedge_ini_set set, void *user, struct kedge_errbuf *err);

#endif
