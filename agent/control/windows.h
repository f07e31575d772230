/* SPDX-License-Identifier: Apache-2.0 */
/* Admission windows: what is in force. Control thread. */
#ifndef CONTROL_WINDOWS_H
#define CONTROL_WINDOWS_H

#include <stdint.h>

#include "control/config.h"

struct agent;
struct agent_config;
struct agent_desired;
struct base_errbuf;
struct base_text;
struct pool;

/* In force: what the file says and what the metaservers say, both hold. */
struct agent_limits agent_windows_device(const struct agent *a);
struct agent_limits agent_windows_destination(const struct agent *a);
/* Those that are for one destination each hold from the next agent_windows_apply() on. */
void agent_windows_take(struct agent *a, const struct agent_desired *s);
/* Tells the lanes what the settings say, and what is in force of each tenant. */
void agent_windows_apply(struct agent *a);
/* Each tick: the parts of the device's window go to the lanes that have something to do. */
void agent_windows_rebalance(struct agent *a);
uint64_t agent_windows_due_ns(const struct agent *a);
/* A tenant (its index + 1) has its first session in a lane of that pool, or its last is over: the
 * lanes where it has some share its window. */
void agent_windows_share_tenant(struct pool *endpoint, uint32_t tenant);
/* A tenant (its index + 1) of which nothing is left: what was counted of it. */
void agent_windows_forget_tenant(struct agent *a, uint32_t tenant);
/* The file has been read again; of what has changed in it windows and tenants' tokens alone come
 * into force. 0; or -errno and a sentence: all stays as it was. */
int agent_windows_reload(struct agent *a, const struct agent_config *fresh,
                         struct base_errbuf *err);
/* admin_windows.c: a member of the status's object; and metrics. */
void agent_windows_status(struct agent *a, struct base_text *t);
/* Of a lane's object: its part of the device's window; and of its pool's: that of all its lanes. */
void agent_windows_lane_status(const struct pool *p, struct base_text *t);
void agent_windows_pool_status(const struct pool *endpoint, struct base_text *t);
void agent_windows_metrics(struct agent *a, struct base_text *t);

#endif
