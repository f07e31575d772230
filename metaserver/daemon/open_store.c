/* SPDX-License-Identifier: Apache-2.0 */
#include "open_store.h"

#include <stdio.h>

int meta_daemon_open_store(const struct meta_config *config, bool to_read, struct meta_store **out,
                           struct base_errbuf *err)
{
    char path[META_CONFIG_TEXT_BYTES + sizeof "/metad.db"];
    snprintf(path, sizeof path, "%s/metad.db", config->data_dir);
    return to_read ? meta_store_sqlite_reader(path, out, err) : meta_store_sqlite(path, out, err);
}
