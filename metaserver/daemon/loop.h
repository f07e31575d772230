/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-metad's one thread: the HTTP server, the fabric's control operations, time and signals, in
 * libuv. */
#ifndef METASERVER_LOOP_H
#define METASERVER_LOOP_H

#include "metaserver/config_file.h"
#include "process.h"

/* Serves until SIGTERM or SIGINT. When it listens it says so on standard output, in one line with
 * the port. In the end the store is closed, the service's responders are stopped, and
 * meta_process_stop_device() has begun. 0; -EINPROGRESS and a sentence: the store still has
 * something, since the disk does not answer, and the process can only end; or another -errno and a
 * sentence when it could not begin, or the device is gone. */
int meta_daemon_serve(const struct meta_config *config, const char *config_path,
                      struct meta_process *process, struct base_errbuf *err);

#endif
