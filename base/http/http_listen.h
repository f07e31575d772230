/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets, and sentences that say why there is none. */
#ifndef BASE_HTTP_LISTEN_H
#define BASE_HTTP_LISTEN_H

#include <stdint.h>

#include "base/http/server.h"

/* Non-blocking and close-on-exec, the caller's. 0, *fd and *port; or -errno and a sentence. */
int http_listen_tcp(const struct http_server_config *config, int *fd, uint16_t *port,
                    struct base_errbuf *err);

/* Replaces a socket file that nobody listens on. */
int http_listen_unix(const struct http_server_config *config, int *fd, struct base_errbuf *err);

#endif
