/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-metad's one thread: the HTTP server, the fabric's control operations, time and signals, in
 * libuv. */
#ifndef METASERVER_LOOP_H
#define METASERVER_LOOP_H

#include "fabric/fabric.h"
#include "metaserver/config_file.h"
#include "metaserver/service.h"

/* Serves until SIGTERM or SIGINT. When it listens it says so on standard output, in one line with
 * the port. fab is borrowed. In the end the service's responders are stopped. 0; or -errno and a
 * sentence when it could not begin. */
int meta_daemon_serve(const struct meta_config *config, const char *config_path,
                      struct meta_service *service, struct fab *fab, struct base_errbuf *err);

/* Stops them, and runs the fabric until it has nothing of them any more. Blocks on the device. */
void meta_daemon_stop_responders(struct meta_responders *r, struct fab *fab);

#endif
