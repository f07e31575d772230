/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon of a metaserver asks for where its settings name etcd, which no simulated one
 * does: there is no network here but the device's. */
#include <errno.h>

#include "metaserver/store_etcd.h"

int meta_store_etcd(const struct meta_store_etcd_config *config, struct meta_store **out,
                    struct base_errbuf *err)
{
    (void)config, (void)out;
    return base_err(err, -ENOTSUP, "there is no etcd in a simulation");
}

int meta_store_etcd_watch(const struct meta_store_etcd_config *config,
                          struct meta_store_watch **out, struct base_errbuf *err)
{
    (void)config, (void)out;
    return base_err(err, -ENOTSUP, "there is no etcd in a simulation");
}

int meta_store_etcd_draw(char out[META_STORE_ETCD_LIFE_BYTES], struct base_errbuf *err)
{
    (void)out;
    return base_err(err, -ENOTSUP, "there is no etcd in a simulation");
}

int meta_store_etcd_check(const struct meta_store_etcd_config *config, struct base_errbuf *err)
{
    (void)config;
    return base_err(err, -ENOTSUP, "there is no etcd in a simulation");
}
