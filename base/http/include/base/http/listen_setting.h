/* SPDX-License-Identifier: Apache-2.0 */
/* The setting that says where a server listens. Any thread. */
#ifndef BASE_HTTP_LISTEN_SETTING_H
#define BASE_HTTP_LISTEN_SETTING_H

#include "base/error.h"

/* Whether `listen` is written as an address can be, and this host has it. 0, or -errno (-EINVAL:
 * written wrong) and a sentence that names the setting. Whether the port is free is found out by
 * http_server_new() alone. */
int http_listen_check(const char *listen, const char *setting, struct base_errbuf *err);

#endif
