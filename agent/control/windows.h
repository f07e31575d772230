/* SPDX-License-Identifier: Apache-2.0 */
/* Admission windows: what is in force. Control thread. */
#ifndef CONTROL_WINDOWS_H
#define CONTROL_WINDOWS_H

#include <stdint.h>

#include "control/config.h"

struct agent;
struct agentd_config;
struct agentd_desired;
struct base_errbuf;
struct base_text;
struct pool;

/* In force: what the file says and what the metaservers say, both hold. */
struct agentd_limits windows_device(const struct agent *a);
struct agentd_limits windows_destination(const struct agent *a);
/* Those that are for one destination each hold from the next windows_apply() on. */
void windows_take(struct agent *a, const struct agentd_desired *s);
/* Tells the lanes what the settings say, and what is in force of each tenant. */
void windows_apply(struct agent *a);
/* Each tick: the parts of the device's window go to the lanes that have something to do. */
void windows_rebalance(struct agent *a);
uint64_t windows_due_ns(const struct agent *a);
/* A tenant (its index + 1) of which nothing is left: what was counted of it. */
void windows_forget_tenant(struct agent *a, uint32_t tenant);
/* The file has been read again; of what has changed in it windows and tenants' tokens alone come
 * into force. 0; or -errno and a sentence: all stays as it was. */
int windows_reload(struct agent *a, const struct agentd_config *fresh, struct base_errbuf *err);
/* admin_windows.c: a member of the status's object; and metrics. */
void windows_status(struct agent *a, struct base_text *t);
/* Of a pool's object: its lane's part of the device's window. */
void windows_pool_status(const struct pool *p, struct base_text *t);
void windows_metrics(struct agent *a, struct base_text *t);

#endif
