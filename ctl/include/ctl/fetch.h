/* SPDX-License-Identifier: Apache-2.0 */
/* GETs from the metaserver and from the local agent. Blocks, 5 s at most. */
#ifndef CTL_FETCH_H
#define CTL_FETCH_H

#include "base/http/client.h"
#include "ctl/options.h"

/* From the metaserver. 0 and a 2xx answer in *out (fini it), or -errno with a sentence that says
 * what to do; an HTTP error becomes the errno of its row. */
int ctl_fetch_server(const struct ctl_options *o, const char *path, struct kedge_http_result *out,
                     struct kedge_errbuf *err);
/* The same from the agent's admin socket. */
int ctl_fetch_agent(const struct ctl_options *o, const char *path, struct kedge_http_result *out,
                    struct kedge_errbuf *err);

/* text as a part of a URL's path or query. -EMSGSIZE when it does not fit. */
int ctl_percent_encode(const char *text, char *out, size_t size);

#endif
