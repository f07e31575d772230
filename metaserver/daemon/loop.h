/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-metad's one thread: the HTTP server, the fabric's control operations, time and signals, in
 * libuv. */
#ifndef METASERVER_LOOP_H
#define METASERVER_LOOP_H

#include "fabric/fabric.h"
#include "metaserver/config_file.h"
#include "metaserver/service.h"
#include "metaserver/store_worker.h"

/* Serves until SIGTERM or SIGINT. When it listens it says so on standard output, in one line with
 * the port. fab, and the worker to which the service's world submits, are borrowed. In the end the
 * service's responders are stopped, and nothing is with the worker. 0; -EINPROGRESS and a sentence:
 * something still is, since the disk does not answer, and the process can only end; or another
 * -errno and a sentence when it could not begin, or the device is gone. */
int meta_daemon_serve(const struct meta_config *config, const char *config_path,
                      struct meta_service *service, struct meta_store_worker *worker,
                      struct fab *fab, struct base_errbuf *err);

/* Stops them, and runs the fabric until it has nothing of them any more. Blocks on the device. */
void meta_daemon_stop_responders(struct meta_responders *r, struct fab *fab);

#endif
