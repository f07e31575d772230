/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool has of the device when it begins: one control operation after another, of which
 * nobody waits for any. Between two of them the loop does what else there is to do. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "bounds.h"
#include "device.h"
#include "device_objects.h"
#include "fabric/limits.h"
#include "lane_setup.h"
#include "mr_table.h"
#include "pool.h"
#include "pool_start.h"
#include "prewarm.h"
#include "table_initiators.h"

enum {
    SCRATCH_SPANS = 256,
    SMALLS = 1024,
    SERVICE_PARTS = 4 /* the first, in which the device may not take the service */
};

/* ---- its parts */

static int make_domains(void *pool, uint32_t over, struct fab_ctl *ctl)
{
    struct pool *p = pool;
    struct agent_device *d = &p->device;
    if (over == 0) {
        *ctl = (struct fab_ctl){.kind = FAB_ALLOC_PD, .pd.service = &p->prewarm.service};
        return 1;
    }
    if (over == 1) {
        d->pd = ctl->pd.x;
        *ctl = (struct fab_ctl){.kind = FAB_ALLOC_PD};
        return 1;
    }
    d->system_pd = ctl->pd.x;
    return 0;
}

static int register_memory(struct fab_pd *pd, const struct fab_mem *mem, unsigned access,
                           struct fab_ctl *ctl)
{
    *ctl = (struct fab_ctl){.kind = FAB_REG_MR,
                            .mr = {.pd = pd, .mem = mem, .length = mem->size, .access = access}};
    return 1;
}

/* Where what is READ of others' tables is put. */
static int make_scratch(void *pool, uint32_t over, struct fab_ctl *ctl)
{
    struct pool *p = pool;
    struct agent_device *d = &p->device;
    int status = 0;
    if (over == 0)
        status = fab_mem_alloc(SCRATCH_SPANS * LANE_SCRATCH_BYTES, "kedge-scratch", &d->scratch);
    if (status != 0)
        return status;
    if (over == 0)
        return register_memory(d->pd, &d->scratch, IBV_ACCESS_LOCAL_WRITE, ctl);
    if (over == 1) {
        d->scratch_mr = ctl->mr.x;
        return register_memory(d->system_pd, &d->scratch, IBV_ACCESS_LOCAL_WRITE, ctl);
    }
    d->scratch_system_mr = ctl->mr.x;
    return 0;
}

/* What the device does not take inline is copied there; nobody else's key reaches it. */
static int make_small(void *pool, uint32_t over, struct fab_ctl *ctl)
{
    struct pool *p = pool;
    struct agent_device *d = &p->device;
    if (over > 0) {
        d->small_mr = ctl->mr.x;
        return 0;
    }
    if (d->fab->caps.max_inline >= SCHEMA_MAX_INLINE)
        return 0;
    const int status = fab_mem_alloc(SMALLS * SCHEMA_MAX_INLINE, "kedge-small", &d->small);
    return status == 0 ? register_memory(d->pd, &d->small, 0, ctl) : status;
}

static const char MESSAGES_FAILED[] = "making what messages need failed";

/* What is of the endpoint its first lane has, and it goes last. */
static int join_domains(void *pool, uint32_t over, struct fab_ctl *ctl)
{
    struct pool *p = pool;
    (void)over, (void)ctl;
    p->device.pd = pool_endpoint(p)->device.pd;
    p->device.system_pd = pool_endpoint(p)->device.system_pd;
    return 0;
}

static const struct fab_series_part FURTHER_DC[] = {
    {join_domains, NULL},
    {agentd_queues_make_cq, NULL},
    {agentd_queues_make_initiators, NULL},
    {make_scratch, NULL},
    {make_small, NULL},
};
static const struct fab_series_part FURTHER_HYBRID[] = {
    {join_domains, NULL},
    {agentd_queues_make_cq, NULL},
    {agentd_queues_make_initiators, NULL},
    {agentd_queues_make_connector, NULL},
    {make_scratch, NULL},
    {make_small, NULL},
};
static const struct fab_series_part FURTHER_RC[] = {
    {join_domains, NULL},
    {agentd_queues_make_cq, NULL},
    {agentd_queues_make_connector, NULL},
    {agent_table_initiators_make, NULL},
    {make_scratch, NULL},
    {make_small, NULL},
};
static const struct fab_series_part DC[] = {
    {make_domains, NULL},
    {agentd_queues_make_cq, NULL},
    {agentd_queues_make_initiators, NULL},
    {agentd_queues_make_target, NULL},
    {make_scratch, NULL},
    {agentd_mr_table_make, NULL},
    {make_small, NULL},
    {agent_messages_make, MESSAGES_FAILED},
};
static const struct fab_series_part HYBRID[] = {
    {make_domains, NULL},
    {agentd_queues_make_cq, NULL},
    {agentd_queues_make_initiators, NULL},
    {agentd_queues_make_target, NULL},
    {agentd_queues_make_connector, NULL},
    {make_scratch, NULL},
    {agentd_mr_table_make, NULL},
    {make_small, NULL},
    {agent_messages_make, MESSAGES_FAILED},
};
static const struct fab_series_part RC[] = {
    {make_domains, NULL},
    {agentd_queues_make_cq, NULL},
    {agentd_queues_make_srq, NULL},
    {agentd_queues_make_connector, NULL},
    {agent_table_initiators_make, NULL},
    {make_scratch, NULL},
    {agentd_mr_table_make, NULL},
    {make_small, NULL},
    {agent_messages_make, MESSAGES_FAILED},
};

/* ---- what is said of it */

/* The limit that bites most users first, named before it does. */
static int explain_failure(const struct pool *p, int status, struct base_errbuf *err)
{
    struct base_errbuf said = *err, why;
    const char *what = said.text[0] != '\0' ? said.text : "making queue pairs and memory failed";
    (void)agent_device_why(p->world, status, &why);
    if (status == -ENOMEM && agentd_device_lock_limit(p->world) != UINT64_MAX)
        return base_err(err, status, "%.120s: %.380s", what, why.text);
    if (status == -EIO)
        return base_err(err, status,
                        "%.200s: the device takes no commands any more: was it removed, or is its "
                        "driver gone? See the kernel's log (dmesg)",
                        what);
    if (fab_limit_advice(status)[0] != '\0')
        return base_err(err, status, "%.200s: %s", what, fab_limit_advice(status));
    return base_err(err, status, "%.200s: %s (lower %s or max_mrs in [pool])", what,
                    strerror(-status), p->device.rc ? "connections, responders" : "dcis, spares");
}

/* The lane's thread and its completion queue. lane_cpu is of the own pool's lanes alone. */
static void place_lane(struct pool *p)
{
    const struct fab_caps *caps = &p->device.fab->caps;
    const uint64_t cpu = agent_lane_cpu(p);
    cpu_set_t allowed, beside;
    CPU_ZERO(&allowed);
    (void)sched_getaffinity(0, sizeof allowed, &allowed);
    fab_cpus_of_node(caps->numa_node, &beside);
    p->device.placement = fab_place(&allowed, &beside, cpu, p->place, caps->comp_vectors);
    if (p->device.placement.bound)
        base_log(BASE_LOG_INFO, "a lane is bound to CPUs",
                 "pool=\"%s\" lane=%u cpus=%d beside_device=%d numa_node=%d comp_vector=%u",
                 p->name, p->lane_number, CPU_COUNT(&p->device.placement.cpus),
                 p->device.placement.beside, caps->numa_node, p->device.placement.comp_vector);
}

enum { MOST_PRIORITY = 7 };

/* What is said of the pool, beside what the device was opened with. */
static int check_service(const struct pool *p, struct base_errbuf *err)
{
    const uint32_t level = p->prewarm.service.service_level;
    if (!p->agent->fab->caps.is_ethernet || level <= MOST_PRIORITY)
        return 0;
    return base_err(err, -EDOM,
                    "service_level %u: on Ethernet it is a priority, 0 to %d: set it to one", level,
                    MOST_PRIORITY);
}

/* The device alone knows which there are. */
static int refuse_service(const struct pool *p, struct base_errbuf *err)
{
    char service[FAB_SERVICE_TEXT];
    return base_err(err, -EINVAL,
                    "the device takes no queue pair with %s: does its port's table have that "
                    "P_Key (/sys/class/infiniband), and its kernel service levels with DC?",
                    fab_service_format(&p->prewarm.service, service));
}

static int check_lease(const struct pool *p, struct base_errbuf *err)
{
    const struct agent_device *d = &p->device;
    const uint64_t least = d->bound_ns + d->fab->caps.slack_ns;
    if (p->mr_lease_ns > least)
        return 0;
    return base_err(
        err, -EDOM,
        "%s is too short for this device: a posted operation may still be "
        "executed for %llu ms "
        "(set %s to %llums or more, or lower ack_timeout in [fabric])",
        pool_is_own(p) ? "mr_lease" : "mr_lease_ms", (unsigned long long)(least / 1000000),
        pool_is_own(p) ? "mr_lease in [pool]" : "it", (unsigned long long)(least / 1000000 + 1));
}

/* ---- its course */

static const struct fab_series_part *choose_parts(const struct pool *p, uint32_t *count)
{
#define PARTS(parts)                                                                               \
    {                                                                                              \
        parts, sizeof parts / sizeof parts[0]                                                      \
    }
    static const struct {
        const struct fab_series_part *part;
        uint32_t count;
    } parts[2][3] = {{PARTS(DC), PARTS(HYBRID), PARTS(RC)},
                     {PARTS(FURTHER_DC), PARTS(FURTHER_HYBRID), PARTS(FURTHER_RC)}};
#undef PARTS
    const uint32_t transport = p->device.rc ? 2 : p->device.hybrid ? 1 : 0;
    *count = parts[p->first != NULL][transport].count;
    return parts[p->first != NULL][transport].part;
}

/* What is made when the pool is to go stays, for its end. */
static int next_operation(struct pool *p, struct fab_ctl *ctl)
{
    struct device_opening *o = &p->device.opening;
    uint32_t count;
    const struct fab_series_part *parts = choose_parts(p, &count);
    const int next = fab_series_next(&o->series, parts, count, p, ctl);
    return next >= 0 && (p->stopping || p->agent->stopping) ? -ECANCELED : next;
}

static int explain_end(struct pool *p, int status)
{
    struct base_errbuf *err = &p->device.opening.err;
    const bool of_service = p->device.opening.series.part < SERVICE_PARTS;
    if (status == -EINVAL && of_service && agent_prewarm_has_own_service(p))
        return refuse_service(p, err);
    return explain_failure(p, status, err);
}

static void on_made(struct fab_ctl *ctl);

/* With the operation that is over, or none yet. */
static void go_on(struct pool *p)
{
    struct device_opening *o = &p->device.opening;
    const int next = next_operation(p, &o->ctl);
    if (next > 0) {
        o->ctl.done = on_made;
        o->ctl.user = p;
        p->fab_ops++;
        fab_submit(p->device.fab, &o->ctl);
        return;
    }
    o->is_under_way = false;
    agent_pool_device_opened(p, next == 0 ? 0 : explain_end(p, next), &o->err);
}

static void on_made(struct fab_ctl *ctl)
{
    struct pool *p = ctl->user;
    p->fab_ops--;
    go_on(p);
}

int agentd_device_open(struct pool *p, struct base_errbuf *err)
{
    struct agent_device *d = &p->device;
    d->fab = p->agent->fab;
    d->rc = p->agent->rc;
    d->hybrid = p->agent->hybrid;
    place_lane(p);
    d->bound_ns = fab_bound_ns(&d->fab->caps, (uint8_t)p->config->ack_timeout, ACK_RETRIES);
    int status = check_service(p, err);
    if (status == 0)
        status = check_lease(p, err);
    if (status != 0)
        return status;
    agentd_queues_reckon(p);
    d->opening.is_under_way = true;
    go_on(p);
    return 0;
}
