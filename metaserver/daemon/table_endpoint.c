/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/table_endpoint.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "base/random.h"
#include "fabric/iova.h"
#include "fabric/limits.h"
#include "fabric/providers.h"
#include "metaserver/table_responders.h"

enum { CQ_ROOM = 4 }; /* of the DC target, where nothing completes */

static int open_fabric(struct meta_table_endpoint *e, const struct meta_config *config,
                       struct base_errbuf *err)
{
    struct fab_open_attr attr = {.device = config->device[0] != '\0' ? config->device : NULL,
                                 .port = (uint8_t)config->port,
                                 .service = config->service};
    const struct fab_provider *provider = fab_provider_find(config->provider, err);
    memcpy(attr.gid, config->gid, sizeof attr.gid);
    return provider != NULL ? provider->open(&attr, &e->fab, err) : -EINVAL;
}

/* One control operation; what it is, for the sentence. */
static int call_fabric(struct meta_table_endpoint *e, struct fab_ctl *ctl, const char *what,
                       struct base_errbuf *err)
{
    int status = fab_call(e->fab, ctl);
    if (status == 0)
        return 0;
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    struct base_errbuf why;
    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    (void)fab_limit_explain(status, limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur,
                            ", or lower max_endpoints", &why);
    return base_err(err, status, "%s failed: %.400s", what, why.text);
}

struct fab_ctl meta_table_endpoint_target(const struct meta_table_endpoint *e, uint64_t dc_key)
{
    return (struct fab_ctl){.kind = FAB_CREATE_DCT,
                            .dct = {.pd = e->pd,
                                    .cq = e->cq,
                                    .srq = e->srq,
                                    .dc_key = dc_key,
                                    .access = IBV_ACCESS_REMOTE_READ}};
}

static int make_target(struct meta_table_endpoint *e, struct base_errbuf *err)
{
    struct fab_ctl srq = {.kind = FAB_CREATE_SRQ, .srq = {.pd = e->pd, .max_wr = 1, .max_sge = 1}};
    int status = call_fabric(e, &srq, "creating a shared receive queue", err);
    if (status != 0)
        return status;
    e->srq = srq.srq.x;
    uint64_t dc_key;
    status = base_random_bytes(&dc_key, sizeof dc_key);
    if (status != 0)
        return base_err(err, status, "there are no random numbers: %s", strerror(-status));
    struct fab_ctl dct = meta_table_endpoint_target(e, dc_key);
    status = call_fabric(e, &dct, "creating a DC target", err);
    e->dct = dct.dct.x;
    return status;
}

/* Where no former life of this process had its table: keys may come back (iova.h). */
static int choose_address(const struct fab_mem *mem, size_t bytes, uint64_t *iova,
                          struct base_errbuf *err)
{
    struct fab_iova all;
    uint64_t random;
    int status = base_random_bytes(&random, sizeof random);
    if (status != 0)
        return base_err(err, status, "no random numbers: %s", strerror(-status));
    fab_iova_init(&all, random);
    return fab_iova_take(&all, FAB_IOVA_TABLE, mem, 0, bytes, iova);
}

/* Each responder's comes back when it breaks, all of them perhaps before anybody looks. */
static uint32_t room_for_receives(const struct fab_caps *caps, uint64_t max_endpoints)
{
    const uint64_t all = 2 * max_endpoints; /* with as many further lanes */
    const uint64_t most = caps->max_qp < all ? caps->max_qp : all;
    const uint64_t cqe = CQ_ROOM + META_RESPONDERS_SPARES + most;
    return caps->max_cqe != 0 && caps->max_cqe < cqe ? caps->max_cqe : (uint32_t)cqe;
}

int meta_table_endpoint_init(struct meta_table_endpoint *e, const struct meta_config *config,
                             size_t bytes, struct base_errbuf *err)
{
    int status = open_fabric(e, config, err);
    if (status != 0)
        return status;
    if (!(e->fab->caps.transports & (FAB_DC | FAB_RC)))
        return base_err(err, -EOPNOTSUPP,
                        "the device has neither DC nor RC, which the table is read through: "
                        "choose another `device`");
    status = fab_mem_alloc(bytes, "kedge-endpoints", &e->mem);
    if (status != 0)
        return base_err(err, status, "no memory for a table of %zu bytes (%s): lower max_endpoints",
                        bytes, strerror(-status));
    struct fab_ctl pd = {.kind = FAB_ALLOC_PD};
    status = call_fabric(e, &pd, "allocating a protection domain", err);
    if (status != 0)
        return status;
    e->pd = pd.pd.x;
    struct fab_ctl mr = {
        .kind = FAB_REG_MR,
        .mr = {.pd = e->pd, .mem = &e->mem, .length = bytes, .access = IBV_ACCESS_REMOTE_READ}};
    status = choose_address(&e->mem, bytes, &mr.mr.iova, err);
    if (status != 0)
        return status;
    status = call_fabric(e, &mr, "registering the table", err);
    if (status != 0)
        return status;
    e->mr = mr.mr.x;
    struct fab_ctl chan = {.kind = FAB_CREATE_CHAN};
    status = call_fabric(e, &chan, "creating a completion channel", err);
    if (status != 0)
        return status;
    e->chan = chan.chan.x;
    struct fab_ctl cq = {
        .kind = FAB_CREATE_CQ,
        .cq = {.cqe = room_for_receives(&e->fab->caps, config->max_endpoints), .chan = e->chan}};
    status = call_fabric(e, &cq, "creating a completion queue", err);
    if (status != 0)
        return status;
    e->cq = cq.cq.x;
    return e->fab->caps.transports & FAB_DC ? make_target(e, err) : 0;
}

static void undo_call(struct meta_table_endpoint *e, struct fab_ctl *ctl, const char *what)
{
    int status = fab_call(e->fab, ctl);
    if (status != 0)
        base_log(BASE_LOG_WARN, "closing the fabric", "object=\"%s\" error=\"%s\"", what,
                 strerror(-status));
}

void meta_table_endpoint_give_back(struct meta_table_endpoint *e)
{
    const struct meta_table_endpoint had = *e;
    e->dct = NULL;
    e->srq = NULL;
    e->cq = NULL;
    e->chan = NULL;
    e->mr = NULL;
    e->pd = NULL;
    if (had.dct != NULL)
        undo_call(e, &(struct fab_ctl){.kind = FAB_DESTROY_DCT, .dct.x = had.dct}, "DC target");
    if (had.srq != NULL)
        undo_call(e, &(struct fab_ctl){.kind = FAB_DESTROY_SRQ, .srq.x = had.srq},
                  "shared receive queue");
    if (had.cq != NULL)
        undo_call(e, &(struct fab_ctl){.kind = FAB_DESTROY_CQ, .cq.x = had.cq}, "completion queue");
    if (had.chan != NULL)
        undo_call(e, &(struct fab_ctl){.kind = FAB_DESTROY_CHAN, .chan.x = had.chan},
                  "completion channel");
    if (had.mr != NULL)
        undo_call(e, &(struct fab_ctl){.kind = FAB_DEREG_MR, .mr.x = had.mr}, "table");
    if (had.pd != NULL)
        undo_call(e, &(struct fab_ctl){.kind = FAB_FREE_PD, .pd.x = had.pd}, "protection domain");
}

void meta_table_endpoint_fini(struct meta_table_endpoint *e)
{
    meta_table_endpoint_give_back(e);
    if (e->mem.addr != NULL)
        fab_mem_free(&e->mem);
    if (e->fab != NULL)
        (void)fab_close(e->fab);
    memset(e, 0, sizeof *e);
}

struct meta_service_endpoint meta_table_endpoint_describe(const struct meta_table_endpoint *e)
{
    struct meta_service_endpoint out = {.lid = e->fab->caps.lid,
                                        .table_addr = e->mr->addr,
                                        .table_rkey = e->mr->rkey,
                                        .names_addr = e->mr->addr + e->names_offset};
    if (e->dct != NULL) {
        out.dct_number = e->dct->dctn;
        out.dc_key = e->dct->dc_key;
    }
    memcpy(out.gid, e->fab->caps.gid, sizeof out.gid);
    return out;
}
