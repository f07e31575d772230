/* SPDX-License-Identifier: Apache-2.0 */
/* The lives of this metaserver among those that share a store: a process is one, and the file
 * member-life in its data_dir says which were the last ones. */
#ifndef METAD_LIFE_H
#define METAD_LIFE_H

#include "metaserver/store_etcd.h"

/* Draws a life and writes it there, and locks the file as long as this process lives: so those
 * that had it are over. former: the newest first, with a blank between each two, as many as there
 * is room for; "" if there was none, or none that makes sense. Once in a process; blocks. 0;
 * -EBUSY: another process has the directory; -errno. Each with a sentence. */
int meta_life_begin(const char *data_dir, char life[META_STORE_ETCD_LIFE_BYTES],
                    char former[META_STORE_ETCD_FORMER_BYTES], struct base_errbuf *err);

#endif
