/* SPDX-License-Identifier: Apache-2.0 */
/* The device and all that is made on it ahead of time: two protection domains, queue pairs
 * (queues.c), the MR table that peers READ. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "address_change.h"
#include "agent.h"
#include "agent/connector.h"
#include "base/assert.h"
#include "device.h"
#include "device_events.h"
#include "device_objects.h"
#include "fabric/fault.h"
#include "fabric/limits.h"
#include "fabric/providers.h"
#include "fabric/retire.h"
#include "mr_table.h"
#include "bounds.h"
#include "prewarm.h"
#include "probe/probe.h"
#include "table_initiators.h"

uint64_t agentd_device_lock_limit(struct world *w)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    (void)w;
    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    return limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : UINT64_MAX;
}

void agentd_device_settle(struct world *w, struct pool *p)
{
    struct fab *fab = p->agent->fab;
    (void)w;
    while (p->fab_ops > 0) {
        const struct device_opening *o = &p->device.opening;
        const uint32_t kind = o->is_under_way ? o->ctl.kind : fab_retiring(fab);
        atomic_store(&fab->waits_for, kind != 0 ? kind : UINT32_MAX); /* any other */
        if (fab_run(fab) == 0)
            fab_wait(fab);
    }
    if (fab != NULL)
        atomic_store(&fab->waits_for, 0);
}

static void say_unused(const struct agent *a)
{
    if (a->config.connections_per_peer > 1 && !a->rc && !a->hybrid)
        base_log(BASE_LOG_WARN,
                 "connections_per_peer is of connections, and this agent uses DC alone: no peer "
                 "has any (transport = rc or hybrid in [fabric] makes them)",
                 "connections_per_peer=%llu", (unsigned long long)a->config.connections_per_peer);
}

static int choose_transport(struct agent *a, struct base_errbuf *err)
{
    const struct fab_caps *caps = &a->fab->caps;
    const char *wanted = a->config.transport;
    const bool has_dc = caps->transports & FAB_DC;
    const bool has_rc = (caps->transports & (FAB_RC | FAB_UD)) == (FAB_RC | FAB_UD);
    const bool hybrid = strcmp(wanted, "hybrid") == 0;
    a->rc = strcmp(wanted, "rc") == 0 || ((hybrid || strcmp(wanted, "auto") == 0) && !has_dc);
    a->hybrid = hybrid && has_dc && has_rc;
    if (!a->rc && has_dc && caps->atomics && !caps->dc_atomics)
        base_log(BASE_LOG_WARN,
                 "this device has atomics over RC and none over DC: regions and requests with "
                 "atomics are refused (with transport = rc in [fabric] of all agents there are)",
                 "device=\"%s\"", a->config.device);
    say_unused(a);
    if (a->rc ? has_rc : has_dc)
        return 0;
    const char *why = caps->dc_why;
    return base_err(err, -EOPNOTSUPP,
                    "this device has no %s transport%s%s: set transport = auto in [fabric] "
                    "(rdmactl doctor says what the device has)",
                    a->rc ? "RC with UD" : "DC", a->rc || why[0] == '\0' ? "" : ": ",
                    a->rc ? "" : why);
}

static int break_on_purpose(struct agent *a, struct base_errbuf *err)
{
    struct fault_plan plan;
    int status = fault_plan_parse(a->config.fault, &plan, err);
    if (status == 0)
        status = fault_open(a->fab, &plan, &a->fab);
    if (status == 0)
        base_log(BASE_LOG_WARN, "faults are injected: this agent is for tests", "fault=\"%s\"",
                 a->config.fault);
    return status;
}

/* What keeps a former record from reaching whoever has its place now is that addresses never come
 * back (iova.h). A device that registered at others would not say so: it is tried. */
static int begin_addresses(struct agent *a, struct base_errbuf *err)
{
    uint64_t random;
    int status = world_random(a->world, &random, sizeof random);
    if (status != 0)
        return base_err(err, status, "no random numbers: %s", strerror(-status));
    fab_iova_init(&a->iova, random);
    return probe_addresses(a->fab, err);
}

int agentd_fabric_open(struct agent *a, struct base_errbuf *err)
{
    struct fab_open_attr attr = {.device = a->config.device[0] != '\0' ? a->config.device : NULL,
                                 .port = (uint8_t)a->config.port,
                                 .service = a->config.service,
                                 .dci_streams = (uint8_t)a->config.dci_streams,
                                 .model = a->config.model[0] != '\0' ? a->config.model : NULL};
    const struct fab_provider *provider = fab_provider_find(a->config.provider, err);
    memcpy(attr.gid, a->config.gid, sizeof attr.gid);
    int status = provider != NULL ? provider->open(&attr, &a->fab, err) : -EINVAL;
    if (status == 0)
        status = begin_addresses(a, err);
    if (status == 0 && a->config.fault[0] != '\0')
        status = break_on_purpose(a, err);
    if (status != 0)
        return status;
    fab_port_watch_init(&a->port, a->fab, agent_device_port_changed, a);
    return choose_transport(a, err);
}

bool agentd_fabric_close(struct agent *a)
{
    const int status = a->fab != NULL ? fab_close(a->fab) : 0;
    if (status == -ETIMEDOUT)
        base_log(BASE_LOG_ERROR,
                 "the device does not answer, and is not closed: it is left to the kernel",
                 "device=\"%s\" waited_ms=%d", a->config.device, FAB_CLOSE_MS);
    else if (status != 0)
        base_log(BASE_LOG_ERROR, "the device cannot be closed: objects of it are left",
                 "device=\"%s\" error=\"%s\"", a->config.device, strerror(-status));
    a->fab = NULL;
    return status == 0;
}

static void note_gone(struct agent *a, uint64_t bound_ns)
{
    const uint64_t gone_ns = world_now_ns(a->world) + bound_ns;
    if (a->numbers_gone_ns < gone_ns)
        a->numbers_gone_ns = gone_ns;
}

/* Of one of those pools, or of any other. */
static void on_number_gone(void *user)
{
    struct agent *a = user;
    uint64_t bound_ns = 0;
    for (uint32_t i = 0; i < POOLS; i++)
        if (a->pools[i] != NULL && a->pools[i]->device.leaves_ns > bound_ns)
            bound_ns = a->pools[i]->device.leaves_ns;
    note_gone(a, bound_ns);
}

/* Initiators elsewhere of which nobody has heard may go on for bound; not towards a pool that never
 * served, and may be tried every few seconds. That counts from when the device has destroyed each,
 * which may be long after it was to. */
static void leave_numbers(struct pool *p)
{
    const bool served = p->start.stage == START_OVER && p->start.status == 0;
    p->device.leaves_ns = served ? p->device.bound_ns : 0;
    p->agent->fab->number_gone = on_number_gone;
    p->agent->fab->number_user = p->agent;
    note_gone(p->agent, p->device.leaves_ns);
}

/* What each needs comes behind it. */
static void retire_objects(struct pool *p)
{
    struct agent_device *d = &p->device;
    uint32_t *ops = &p->fab_ops;
    if (d->fab == NULL)
        return;
    leave_numbers(p);
    agent_table_initiators_stop(p);
    agent_messages_retire(p);
    agentd_queues_retire(p);
    fab_retire(d->fab, FAB_DEREG_MR, d->small_mr, ops);
    fab_retire(d->fab, FAB_DEREG_MR, d->scratch_mr, ops);
    fab_retire(d->fab, FAB_DEREG_MR, d->scratch_system_mr, ops);
    agentd_mr_table_retire(p, d->table);
    agentd_mr_table_retire(p, d->table_before);
    if (p->first != NULL) /* whose first lane has them still */
        return;
    fab_retire(d->fab, FAB_FREE_PD, d->pd, ops);
    fab_retire(d->fab, FAB_FREE_PD, d->system_pd, ops);
}

static void close_device(struct pool *p)
{
    struct agent_device *d = &p->device;
    if (d->fab == NULL)
        return;
    connector_free(d->connector);
    agent_messages_close(p);
    fab_mem_free(&d->small);
    fab_mem_free(&d->scratch);
    *d = (struct agent_device){0};
}

int agentd_device_do(struct world *w, enum world_device_step step, struct pool *p,
                     struct base_errbuf *err)
{
    (void)w;
    switch (step) {
    case WORLD_DEVICE_OPEN:
        return agentd_device_open(p, err);
    case WORLD_DEVICE_RETIRE:
        retire_objects(p);
        return 0;
    case WORLD_DEVICE_CLOSE:
        close_device(p);
        return 0;
    case WORLD_DEVICE_TARGET:
        return agentd_queues_retarget(p);
    case WORLD_DEVICE_TABLE:
        return agentd_mr_table_begin(p);
    case WORLD_DEVICE_DROP:
        agentd_mr_table_retire(p, p->device.table_before);
        p->device.table_before = NULL;
        return 0;
    case WORLD_DEVICE_LEAVE:
        agentd_queues_leave_former(p);
        fab_retire(p->device.fab, FAB_DESTROY_DCT, p->device.dct, &p->fab_ops);
        p->device.dct = NULL;
        return 0;
    case WORLD_DEVICE_FORMER:
        agentd_queues_leave_former(p);
        return 0;
    }
    return -EINVAL;
}
