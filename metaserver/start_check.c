/* SPDX-License-Identifier: Apache-2.0 */
#include "start_check.h"

#include <errno.h>
#include <sys/resource.h>

#include "base/http/server.h"
#include "base/place.h"
#include "fabric/providers.h"

#define SPARE_FDS 128 /* beside the connections: those that are being closed, too */

/* As many descriptors as connections need, as far as that is allowed. */
static int raise_open_files(const struct kedge_metad_config *config, struct kedge_errbuf *err)
{
    struct rlimit limit;
    rlim_t wanted = config->connections + SPARE_FDS;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return 0;
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < wanted)
        return kedge_err(err, -EMFILE,
                         "%llu connections need %llu open files but %llu are allowed: lower "
                         "connections, or raise LimitNOFILE",
                         (unsigned long long)config->connections, (unsigned long long)wanted,
                         (unsigned long long)limit.rlim_max);
    limit.rlim_cur = wanted;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    return 0;
}

int metad_start_check(const struct kedge_metad_config *config, struct kedge_errbuf *err)
{
    int status = kedge_fab_provider_find(config->provider, err) != NULL ? 0 : -EINVAL;
    if (status == 0 && config->listen[0] != '\0')
        status = kedge_http_listen_check(config->listen, "listen", err);
    if (status == 0)
        status = raise_open_files(config, err);
    if (status == 0)
        status = kedge_place_directory(config->data_dir, "the directory", "data_dir", err);
    if (status == 0 && config->admin_socket[0] != '\0')
        status = kedge_place_socket(config->admin_socket, "admin_socket", err);
    return status;
}
