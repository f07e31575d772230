/* SPDX-License-Identifier: Apache-2.0 */
/* Metaservers of one store, of which any may be asked: where the first cannot be, the next is, as
 * etcdctl does with its endpoints. Plain struct, one thread. */
#ifndef CTL_SERVERS_H
#define CTL_SERVERS_H

#include <stddef.h>

#include "base/error.h"

enum { CTL_SERVERS_MAX = 8, CTL_SERVER_BYTES = 512 };

struct ctl_servers {
    size_t count, at; /* `at`: the one that is asked */
    char url[CTL_SERVERS_MAX][CTL_SERVER_BYTES];
};

/* What a list says, whose parts have commas between them and may have blanks around: each a URL, or
 * "unix:" and a path. 0 and *out, of which the first is asked; or -EINVAL and a sentence that
 * begins with what the list is of. */
int ctl_servers_parse(const char *of, const char *list, struct ctl_servers *out,
                      struct base_errbuf *err);
/* Whether that would be 0. */
int ctl_server_check(const char *of, const char *list, struct base_errbuf *err);

#endif
