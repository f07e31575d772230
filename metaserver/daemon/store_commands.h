/* SPDX-License-Identifier: Apache-2.0 */
/* `kedge-metad backup FILE`, `restore FILE` and `store copy OTHER`. */
#ifndef METASERVER_STORE_COMMANDS_H
#define METASERVER_STORE_COMMANDS_H

#include "metaserver/config_file.h"

/* Writes what the store holds to a new file (or over it, when it is whole), whether a metaserver
 * runs or not; "-": to the standard output. -errno and a sentence. */
int meta_command_backup(const struct meta_config *config, const char *file,
                        struct base_errbuf *err);
/* Puts that in place of what the store holds, which is written to before-restore.jsonl beside it
 * first. No metaserver may run on it. Likewise. */
int meta_command_restore(const struct meta_config *config, const char *file,
                         struct base_errbuf *err);
/* Puts all that the settings' store holds into the one that the settings in another file name,
 * which must be empty. Likewise. */
int meta_command_copy(const struct meta_config *config, const char *file, struct base_errbuf *err);

#endif
