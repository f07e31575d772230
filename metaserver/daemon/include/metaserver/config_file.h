/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-metad's settings: one table says name, type, default, bounds and help of each. One thread.
 */
#ifndef METASERVER_CONFIG_FILE_H
#define METASERVER_CONFIG_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/setting.h"
#include "fabric/network_service.h"

#define META_CONFIG_TEXT_BYTES 256 /* bytes of a text setting, with the NUL */

struct meta_config {
    /* [metaserver] */
    char listen[META_CONFIG_TEXT_BYTES];
    char admin_socket[META_CONFIG_TEXT_BYTES];
    bool tokens_needed;                     /* access: "tokens", or "open" */
    char advertise[META_CONFIG_TEXT_BYTES]; /* "": listen says it */
    /* TLS of `listen`; "": none, or without that. */
    char cert_file[META_CONFIG_TEXT_BYTES], key_file[META_CONFIG_TEXT_BYTES];
    char trusted_ca_file[META_CONFIG_TEXT_BYTES], client_crl_file[META_CONFIG_TEXT_BYTES];
    bool client_cert_auth;
    bool allow_plain_tokens;
    char data_dir[META_CONFIG_TEXT_BYTES];
    char zone[META_CONFIG_TEXT_BYTES];
    char log_level[META_CONFIG_TEXT_BYTES], log_format[META_CONFIG_TEXT_BYTES];
    uint64_t max_nodes, max_endpoints, max_names, connections, max_watches, reader_watches, events;
    uint64_t client_connections, token_connections; /* of one address (0: a part), of one token */
    uint64_t client_rate;                           /* requests a second of either; 0: no bound */
    char hosts[META_CONFIG_TEXT_BYTES];             /* as base/http/server.h has them */
    uint64_t node_lease_ns, forget_after_ns;
    /* [store] */
    bool store_shared; /* kind: "etcd", or "sqlite" */
    char member[META_CONFIG_TEXT_BYTES];
    char store_endpoints[META_CONFIG_TEXT_BYTES];
    char store_prefix[META_CONFIG_TEXT_BYTES];
    char store_user[META_CONFIG_TEXT_BYTES], store_password_file[META_CONFIG_TEXT_BYTES];
    char store_ca[META_CONFIG_TEXT_BYTES], store_cert[META_CONFIG_TEXT_BYTES];
    char store_key[META_CONFIG_TEXT_BYTES];
    /* [fabric] */
    char provider[META_CONFIG_TEXT_BYTES];
    char device[META_CONFIG_TEXT_BYTES];
    uint64_t port;   /* 0: the first that is up */
    uint8_t gid[16]; /* zero: the provider chooses */
    struct fab_service service;
};

/* The defaults, then what the file says (path NULL: no file). -errno and a sentence that names the
 * line. */
int meta_config_read(const char *path, struct meta_config *out, struct base_errbuf *err);

/* How many connections those have together who show no token, and of them one address. */
unsigned meta_config_anonymous(const struct meta_config *config);
unsigned meta_config_of_address(const struct meta_config *config);

/* The table, for --help. */
void meta_config_print_help(FILE *out);
/* The i-th row of it, for what is held against it. False: there are no more. */
bool meta_config_setting(size_t i, struct base_setting *out);

#endif
