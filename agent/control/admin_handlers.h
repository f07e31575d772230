/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to the admin socket: their beginning and end. Control thread. */
#ifndef CONTROL_ADMIN_HANDLERS_H
#define CONTROL_ADMIN_HANDLERS_H

struct agent;
struct world_request;

/* Before anything is asked, and after that. */
void agent_admin_init(struct agent *a);
void agent_admin_fini(struct agent *a);
/* 405. */
void agent_admin_refuse_method(struct agent *a, struct world_request *r, const char *allow);

#endif
