/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's admin socket. Control thread. */
#ifndef DAEMON_ADMIN_HTTP_H
#define DAEMON_ADMIN_HTTP_H

#include "control/admin.h"

struct loop_world;

extern const struct world_admin_ops ADMIN_OPS;

/* 0; or -errno and a sentence. */
int agentd_admin_listen(struct loop_world *w, struct base_errbuf *err);
/* Before the loop ends. Nothing if it does not listen. */
void agentd_admin_stop(struct loop_world *w);

#endif
