/* SPDX-License-Identifier: Apache-2.0 */
#include "start_check.h"

#include <errno.h>

#include "base/fds.h"
#include "base/http/server.h"
#include "base/place.h"
#include "fabric/providers.h"

#define SPARE_FDS 128 /* beside the connections: those that are being closed, too */

int meta_start_check(const struct meta_config *config, struct base_errbuf *err)
{
    int status = fab_provider_find(config->provider, err) != NULL ? 0 : -EINVAL;
    if (status == 0 && config->listen[0] != '\0')
        status = http_listen_check(config->listen, "listen", err);
    if (status == 0)
        status = base_fds_provide(config->connections + SPARE_FDS, config->connections,
                                  "connections", "connections", err);
    if (status == 0)
        status = base_place_directory(config->data_dir, "the directory", "data_dir", err);
    if (status == 0 && config->admin_socket[0] != '\0')
        status = base_place_socket(config->admin_socket, "admin_socket", err);
    return status;
}
