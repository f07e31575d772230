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
#include "bounds.h"
#include "prewarm.h"
#include "probe/probe.h"
#include "table_initiators.h"

enum { SCRATCH_SPANS = 256, SMALLS = 1024 };

static int call_fabric(struct agent_device *d, struct fab_ctl *ctl)
{
    return fab_call(d->fab, ctl);
}

static int alloc_pd(struct agent_device *d, const struct fab_service *service, struct fab_pd **out)
{
    struct fab_ctl c = {.kind = FAB_ALLOC_PD, .pd.service = service};
    int status = call_fabric(d, &c);
    if (status == 0)
        *out = c.pd.x;
    return status;
}

static int reg_mr(struct agent_device *d, struct fab_pd *pd, const struct fab_mem *mem,
                  unsigned access, struct fab_mr **out)
{
    struct fab_ctl c = {.kind = FAB_REG_MR,
                        .mr = {.pd = pd, .mem = mem, .length = mem->size, .access = access}};
    int status = call_fabric(d, &c);
    if (status == 0)
        *out = c.mr.x;
    return status;
}

/* What the device does not take inline is copied there; nobody else's key reaches it. */
static int make_small(struct agent_device *d)
{
    if (d->fab->caps.max_inline >= SCHEMA_MAX_INLINE)
        return 0;
    int status = fab_mem_alloc(SMALLS * SCHEMA_MAX_INLINE, "kedge-small", &d->small);
    return status == 0 ? reg_mr(d, d->pd, &d->small, 0, &d->small_mr) : status;
}

/* The seed and the generation are what peers will work out from this node's endpoint record. */
static void init_mr_table(const struct pool *p, struct agent_table *table)
{
    const struct agent_device *d = &p->device;
    struct schema_endpoint_record r = {
        .pool = p->number, .incarnation = p->incarnation, .udqpn_slots = d->mr_log2 << 24};
    memcpy(r.gid, d->fab->caps.gid, sizeof r.gid);
    struct schema_table_desc desc = schema_mr_table_desc(&r);
    schema_table_init(&table->table, SCHEMA_TABLE_MRS, table->memory.addr, d->mr_log2, desc.seed,
                      desc.generation);
}

/* At an address of its own: a pool that is made again has its table where nothing of its former
 * life is, whatever keys the device gives. */
static int table_registration(struct pool *p, const struct agent_table *table, struct fab_ctl *out)
{
    *out = (struct fab_ctl){.kind = FAB_REG_MR,
                            .mr = {.pd = p->device.pd,
                                   .mem = &table->memory,
                                   .length = table->memory.size,
                                   .access = IBV_ACCESS_REMOTE_READ}};
    return fab_iova_take(&p->agent->iova, FAB_IOVA_TABLE, &table->memory, 0, table->memory.size,
                         &out->mr.iova);
}

/* Of which nothing is registered (any more). */
static void free_table(void *user)
{
    struct agent_table *table = user;
    fab_mem_free(&table->memory);
    free(table);
}

static void retire_table(struct pool *p, struct agent_table *table)
{
    if (table != NULL)
        fab_retire_then(p->device.fab, FAB_DEREG_MR, table->mr, &p->fab_ops, free_table, table);
}

/* Of which nothing is registered yet, as *c will; NULL and -errno. */
static struct agent_table *new_table(struct pool *p, struct fab_ctl *c, int *status)
{
    struct agent_table *table = calloc(1, sizeof *table);
    *status = table != NULL ? 0 : -ENOMEM;
    if (table == NULL)
        return NULL;
    *status =
        fab_mem_alloc(schema_table_bytes(p->device.mr_log2), "kedge-mr-table", &table->memory);
    if (*status == 0)
        *status = table_registration(p, table, c);
    if (*status == 0)
        return table;
    free_table(table);
    return NULL;
}

static void take_table(struct pool *p, struct agent_table *table, struct fab_mr *mr)
{
    struct agent_device *d = &p->device;
    table->mr = mr;
    init_mr_table(p, table);
    BASE_ASSERT(d->table_before == NULL);
    d->table_before = d->table;
    d->table = table;
}

static int make_table(struct pool *p)
{
    struct fab_ctl c;
    int status;
    struct agent_table *table = new_table(p, &c, &status);
    if (table == NULL)
        return status;
    status = call_fabric(&p->device, &c);
    if (status == 0)
        take_table(p, table, c.mr.x);
    else
        free_table(table);
    return status;
}

/* A table that is being registered for a pool that has one. */
struct retable {
    struct fab_ctl ctl; /* first */
    struct pool *pool;
    struct agent_table *table;
};

static void on_table(struct fab_ctl *ctl)
{
    const struct retable r = *(struct retable *)ctl;
    r.pool->fab_ops--;
    free(ctl);
    if (r.ctl.status == 0 && !r.pool->stopping) {
        take_table(r.pool, r.table, r.ctl.mr.x);
    } else if (r.ctl.status == 0) {
        r.table->mr = r.ctl.mr.x;
        retire_table(r.pool, r.table);
    } else {
        free_table(r.table);
    }
    address_step_done(r.pool, WORLD_DEVICE_TABLE, r.ctl.status);
}

static int begin_table(struct pool *p)
{
    int status = -ENOMEM;
    struct retable *r = calloc(1, sizeof *r);
    if (r != NULL)
        r->table = new_table(p, &r->ctl, &status);
    if (r == NULL || r->table == NULL) {
        free(r);
        return status;
    }
    r->pool = p;
    r->ctl.done = on_table;
    p->fab_ops++;
    fab_submit(p->device.fab, &r->ctl);
    return 0;
}

static int make_memory(struct pool *p)
{
    struct agent_device *d = &p->device;
    d->mr_log2 = schema_table_log2_slots((uint32_t)p->config->max_mrs);
    int status =
        fab_mem_alloc(SCRATCH_SPANS * SCHEMA_TABLE_SPAN_BYTES, "kedge-scratch", &d->scratch);
    if (status == 0)
        status = reg_mr(d, d->pd, &d->scratch, IBV_ACCESS_LOCAL_WRITE, &d->scratch_mr);
    if (status == 0)
        status =
            reg_mr(d, d->system_pd, &d->scratch, IBV_ACCESS_LOCAL_WRITE, &d->scratch_system_mr);
    if (status == 0)
        status = make_table(p);
    return status == 0 ? make_small(d) : status;
}

uint64_t device_lock_limit(struct world *w)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    (void)w;
    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    return limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : UINT64_MAX;
}

void device_settle(struct world *w, struct pool *p)
{
    struct fab *fab = p->agent->fab;
    (void)w;
    while (p->fab_ops > 0) {
        const uint32_t kind = fab_retiring(fab);
        atomic_store(&fab->waits_for, kind != 0 ? kind : UINT32_MAX); /* any other */
        if (fab_run(fab) == 0)
            fab_wait(fab);
    }
    if (fab != NULL)
        atomic_store(&fab->waits_for, 0);
}

/* The limit that bites most users first, named before it does. */
static int explain_failure(const struct pool *p, int status, struct base_errbuf *err)
{
    struct base_errbuf said = *err, why;
    const char *what = said.text[0] != '\0' ? said.text : "making queue pairs and memory failed";
    (void)device_why(p->world, status, &why);
    if (status == -ENOMEM && device_lock_limit(p->world) != UINT64_MAX)
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

static int choose_transport(struct agent *a, struct base_errbuf *err)
{
    const struct fab_caps *caps = &a->fab->caps;
    const char *wanted = a->config.transport;
    const bool has_dc = caps->transports & FAB_DC;
    const bool has_rc = (caps->transports & (FAB_RC | FAB_UD)) == (FAB_RC | FAB_UD);
    a->rc = strcmp(wanted, "rc") == 0 || (strcmp(wanted, "auto") == 0 && !has_dc);
    if (!a->rc && has_dc && caps->atomics && !caps->dc_atomics)
        base_log(BASE_LOG_WARN,
                 "this device has atomics over RC and none over DC: regions and requests with "
                 "atomics are refused (with transport = rc in [fabric] of all agents there are)",
                 "device=\"%s\"", a->config.device);
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

int fabric_open(struct agent *a, struct base_errbuf *err)
{
    struct fab_open_attr attr = {.device = a->config.device[0] != '\0' ? a->config.device : NULL,
                                 .port = (uint8_t)a->config.port,
                                 .service = a->config.service,
                                 .dci_streams = (uint8_t)a->config.dci_streams};
    const struct fab_provider *provider = fab_provider_find(a->config.provider, err);
    memcpy(attr.gid, a->config.gid, sizeof attr.gid);
    int status = provider != NULL ? provider->open(&attr, &a->fab, err) : -EINVAL;
    if (status == 0)
        status = begin_addresses(a, err);
    if (status == 0 && a->config.fault[0] != '\0')
        status = break_on_purpose(a, err);
    if (status != 0)
        return status;
    fab_port_watch_init(&a->port, a->fab, device_port_changed, a);
    return choose_transport(a, err);
}

bool fabric_close(struct agent *a)
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

/* The lane's thread and its completion queue. lane_cpu is of the own pool's alone. */
static void place_lane(struct pool *p)
{
    const struct fab_caps *caps = &p->device.fab->caps;
    const uint64_t cpu = p->place == 0 ? p->config->lane_cpu : AGENTD_ANY_CPU;
    cpu_set_t allowed, beside;
    CPU_ZERO(&allowed);
    (void)sched_getaffinity(0, sizeof allowed, &allowed);
    fab_cpus_of_node(caps->numa_node, &beside);
    p->device.placement = fab_place(&allowed, &beside, cpu, p->place, caps->comp_vectors);
    if (p->device.placement.bound)
        base_log(BASE_LOG_INFO, "a lane is bound to CPUs",
                 "pool=\"%s\" cpus=%d beside_device=%d numa_node=%d comp_vector=%u", p->name,
                 CPU_COUNT(&p->device.placement.cpus), p->device.placement.beside, caps->numa_node,
                 p->device.placement.comp_vector);
}

enum { MOST_PRIORITY = 7 };

/* What is said of the pool, beside what the device was opened with. */
static int check_service(const struct pool *p, struct base_errbuf *err)
{
    const uint32_t level = p->prewarm.service.service_level;
    if (!p->agent->fab->caps.is_ethernet || level <= MOST_PRIORITY)
        return 0;
    return base_err(err, -EINVAL,
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

static int open_device(struct pool *p, struct base_errbuf *err)
{
    struct agent_device *d = &p->device;
    d->fab = p->agent->fab;
    d->rc = p->agent->rc;
    place_lane(p);
    int status = check_service(p, err);
    if (status != 0)
        return status;
    status = alloc_pd(d, &p->prewarm.service, &d->pd);
    if (status == 0)
        status = alloc_pd(d, NULL, &d->system_pd);
    if (status == 0)
        status = queues_make(p, err);
    if (status == -EINVAL && prewarm_has_own_service(p))
        return refuse_service(p, err);
    if (status == 0)
        status = make_memory(p);
    if (status != 0)
        return explain_failure(p, status, err);
    d->bound_ns = fab_bound_ns(&d->fab->caps, (uint8_t)p->config->ack_timeout, ACK_RETRIES);
    uint64_t least = d->bound_ns + d->fab->caps.slack_ns;
    if (p->mr_lease_ns <= least)
        return base_err(
            err, -EINVAL,
            "%s is too short for this device: a posted operation may still be "
            "executed for %llu ms "
            "(set %s to %llums or more, or lower ack_timeout in [fabric])",
            p->place == 0 ? "mr_lease" : "mr_lease_ms", (unsigned long long)(least / 1000000),
            p->place == 0 ? "mr_lease in [pool]" : "it", (unsigned long long)(least / 1000000 + 1));
    return 0;
}

/* Initiators elsewhere of which nobody has heard may go on for that long. */
static void leave_numbers(struct pool *p)
{
    const uint64_t gone_ns = world_now_ns(p->world) + p->device.bound_ns;
    if (p->agent->numbers_gone_ns < gone_ns)
        p->agent->numbers_gone_ns = gone_ns;
}

/* What each needs comes behind it. */
static void retire_objects(struct pool *p)
{
    struct agent_device *d = &p->device;
    uint32_t *ops = &p->fab_ops;
    if (d->fab == NULL)
        return;
    leave_numbers(p);
    table_initiators_stop(p);
    queues_retire(p);
    fab_retire(d->fab, FAB_DEREG_MR, d->small_mr, ops);
    fab_retire(d->fab, FAB_DEREG_MR, d->scratch_mr, ops);
    fab_retire(d->fab, FAB_DEREG_MR, d->scratch_system_mr, ops);
    retire_table(p, d->table);
    retire_table(p, d->table_before);
    fab_retire(d->fab, FAB_FREE_PD, d->pd, ops);
    fab_retire(d->fab, FAB_FREE_PD, d->system_pd, ops);
}

static void close_device(struct pool *p)
{
    struct agent_device *d = &p->device;
    if (d->fab == NULL)
        return;
    connector_free(d->connector);
    fab_mem_free(&d->small);
    fab_mem_free(&d->scratch);
    *d = (struct agent_device){0};
}

int device_do(struct world *w, enum world_device_step step, struct pool *p, struct base_errbuf *err)
{
    (void)w;
    switch (step) {
    case WORLD_DEVICE_OPEN:
        return open_device(p, err);
    case WORLD_DEVICE_RETIRE:
        retire_objects(p);
        return 0;
    case WORLD_DEVICE_CLOSE:
        close_device(p);
        return 0;
    case WORLD_DEVICE_TARGET:
        return queues_retarget(p);
    case WORLD_DEVICE_TABLE:
        return begin_table(p);
    case WORLD_DEVICE_DROP:
        retire_table(p, p->device.table_before);
        p->device.table_before = NULL;
        return 0;
    case WORLD_DEVICE_LEAVE:
        fab_retire(p->device.fab, FAB_DESTROY_DCT, p->device.dct, &p->fab_ops);
        p->device.dct = NULL;
        return 0;
    }
    return -EINVAL;
}
