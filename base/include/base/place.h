/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this process could use a place in the file system, before it does. Any thread. */
#ifndef BASE_PLACE_H
#define BASE_PLACE_H

#include "base/error.h"

/* Whether directory is one in which this process may make files. 0, or -errno and a sentence that
 * calls it `what` ("the state directory") and names the setting that says it. */
int base_place_directory(const char *directory, const char *what, const char *setting,
                         struct base_errbuf *err);
/* Whether a Unix socket could be made at path: its length, and its directory. The same errors. */
int base_place_socket(const char *path, const char *setting, struct base_errbuf *err);

#endif
