/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-metad's settings: one table says name, type, default, bounds and help of each. One thread.
 */
#ifndef METASERVER_CONFIG_H
#define METASERVER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "fabric/service.h"

#define KEDGE_METAD_TEXT 256 /* bytes of a text setting, with the NUL */

struct kedge_metad_config {
    /* [metaserver] */
    char listen[KEDGE_METAD_TEXT];
    char admin_socket[KEDGE_METAD_TEXT];
    bool tokens_needed; /* access: "tokens", or "open" */
    char data_dir[KEDGE_METAD_TEXT];
    char log_level[KEDGE_METAD_TEXT];
    uint64_t max_nodes, max_endpoints, connections, max_watches, reader_watches, events;
    uint64_t client_connections, token_connections; /* of one address, of one token */
    uint64_t client_rate;                           /* requests a second of either; 0: no bound */
    char hosts[KEDGE_METAD_TEXT];                   /* as base/http/server.h has them */
    uint64_t node_lease_ns, forget_after_ns;
    /* [fabric] */
    char provider[KEDGE_METAD_TEXT];
    char device[KEDGE_METAD_TEXT];
    uint64_t port;   /* 0: the first that is up */
    uint8_t gid[16]; /* zero: the provider chooses */
    struct kedge_fab_service service;
};

/* The defaults, then what the file says (path NULL: no file). -errno and a sentence that names the
 * line. */
int kedge_metad_configure(const char *path, struct kedge_metad_config *out,
                          struct kedge_errbuf *err);

/* The table, for --help. */
void kedge_metad_config_help(FILE *out);

#endif
