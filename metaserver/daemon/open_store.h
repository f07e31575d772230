/* SPDX-License-Identifier: Apache-2.0 */
/* Which store the settings name, and where: for the daemon, and for commands beside it. Nothing
 * else here knows of what kind it is. The main thread's; blocks. */
#ifndef METAD_OPEN_STORE_H
#define METAD_OPEN_STORE_H

#include "metaserver/config_file.h"
#include "metaserver/store_watch.h"

/* The caller's, to be given to meta_store_close(). to_read: as it is at one moment, while a
 * metaserver may write to it; nothing is made, and what would write fails. 0; or -errno and a
 * sentence, and *out is what it was. */
int meta_daemon_open_store(const struct meta_config *config, bool to_read, struct meta_store **out,
                           struct base_errbuf *err);
/* Before the daemon opens a store that is shared: no other process has its data_dir from now on,
 * and the former one that had it is over, whatever etcd still takes it for. */
int meta_daemon_begin_life(const struct meta_config *config, struct base_errbuf *err);
/* Whether the settings make sense, and what they name on this host: of etcd none is asked. */
int meta_daemon_check_store(const struct meta_config *config, struct base_errbuf *err);
/* This metaserver's name among others, and what they are told of it. */
void meta_daemon_describe(const struct meta_config *config, struct meta_store_member *out);
/* How what others do to a store that is shared is heard; NULL if it is not. Likewise. */
int meta_daemon_open_watch(const struct meta_config *config, struct meta_store_watch **out,
                           struct base_errbuf *err);

#endif
