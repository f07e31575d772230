/* SPDX-License-Identifier: Apache-2.0 */
#include "start_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fds.h"
#include "base/http/client.h"
#include "base/http/listen_setting.h"
#include "base/place.h"
#include "fabric/providers.h"
#include "open_store.h"
#include "tls_watch.h"

#define TLS_FDS   3   /* of a connection: and a pair of sockets between it and the server */
#define SPARE_FDS 128 /* beside the connections: those that are being closed, too */
#define TLS_SPARE 320 /* and of TLS those that end, and that send their last answer */

static int check_fabric(const struct meta_config *config, struct base_errbuf *err)
{
    const struct fab_provider *provider = fab_provider_find(config->provider, err);
    if (provider == NULL)
        return -EINVAL;
    return provider->check == NULL
               ? 0
               : provider->check(config->device[0] != '\0' ? config->device : NULL, err);
}

/* An unreadable file of the certificates' is found before anything is changed. */
static int check_tls(const struct meta_config *config, struct base_errbuf *err)
{
    struct http_tls *tls;
    int status = meta_tls_open(config, &tls, err);
    if (status == 0)
        http_tls_free(tls);
    return status;
}

int meta_start_check(const struct meta_config *config, struct base_errbuf *err)
{
    const bool tls = config->cert_file[0] != '\0';
    const uint64_t fds_each = tls ? TLS_FDS : 1, spare = SPARE_FDS + (tls ? TLS_SPARE : 0);
    int status = check_fabric(config, err);
    if (status == 0 && config->listen[0] != '\0')
        status = http_listen_check(config->listen, "listen", err);
    if (status == 0)
        status = check_tls(config, err);
    if (status == 0)
        status = meta_daemon_check_store(config, err);
    if (status == 0)
        status = base_fds_provide(config->connections * fds_each + spare, config->connections,
                                  "connections", "connections", err);
    if (status == 0)
        status = base_place_directory(config->data_dir, "the directory", "data_dir", err);
    if (status == 0 && config->admin_socket[0] != '\0')
        status = base_place_socket(config->admin_socket, "admin_socket", err);
    return status;
}

bool meta_start_shows_etcd_nothing(const struct meta_config *config)
{
    char url[META_CONFIG_TEXT_BYTES];
    if (!config->store_shared || config->store_user[0] != '\0' || config->store_cert[0] != '\0')
        return false;
    for (const char *at = config->store_endpoints; *at != '\0';) {
        const size_t blanks = strspn(at, " ,"), length = strcspn(at + blanks, " ,");
        snprintf(url, sizeof url, "%.*s", (int)length, at + blanks);
        if (length > 0 && !http_url_is_loopback(url))
            return true;
        at += blanks + length;
    }
    return false;
}
