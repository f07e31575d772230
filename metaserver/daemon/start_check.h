/* SPDX-License-Identifier: Apache-2.0 */
/* What can be known of the settings before the store and the device are opened and anything is
 * taken: `--check-config` and the start ask the same. The main thread's. */
#ifndef METASERVER_START_CHECK_H
#define METASERVER_START_CHECK_H

#include "metaserver/config_file.h"

/* 0; -EINVAL: the settings are wrong, and to begin again would change nothing; another -errno: the
 * host lacks something that may come (a directory, a limit). A sentence with the way out in *err.
 * Raises the limit of open files as far as it needs to. */
int meta_start_check(const struct meta_config *config, struct base_errbuf *err);
/* Whether etcd is on a network, and is shown neither a password nor a certificate: if it takes what
 * it is told all the same, it takes that from everybody who reaches it. */
bool meta_start_shows_etcd_nothing(const struct meta_config *config);

#endif
