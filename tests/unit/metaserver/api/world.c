/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/provider.h"
#include "fabric/providers.h"

#define NODES 16
/* As long as on SoftRoCE: numbers of queue pairs rest, which settling lets them do. */
#define PACKET_LIFE_NS 700000000ull
#define METASERVER     0xff /* its number */

static struct fab_ctl call(struct fab *fab, struct fab_ctl ctl)
{
    ck_assert_int_eq(fab_call(fab, &ctl), 0);
    return ctl;
}

static void number_gid(uint8_t gid[16], uint8_t number)
{
    memset(gid, 0, 16);
    gid[0] = 0xfd;
    gid[15] = number;
}

/* Of who has this number: on rxe, several have the same. */
static void device_gid(uint8_t gid[16], uint8_t number)
{
    const uint8_t rxe[16] = {
        [10] = 0xff, 0xff, 10, 0, 1, (uint8_t)(number == METASERVER ? 1 : 2 + number % 3)};
    if (getenv("KEDGE_TEST_RXE") != NULL)
        memcpy(gid, rxe, sizeof rxe);
    else
        number_gid(gid, number);
}

static struct fab *open_device(const char *directory, uint8_t number)
{
    const char *rxe = getenv("KEDGE_TEST_RXE");
    struct fab_open_attr attr = {.device = rxe != NULL ? rxe : directory};
    struct base_errbuf err;
    struct fab *fab;
    const struct fab_provider *provider = fab_provider_find(rxe != NULL ? "verbs" : "soft", &err);
    device_gid(attr.gid, number);
    if (rxe == NULL) /* soft takes no address and no queue pair without it */
        attr.service = (struct fab_service){
            .service_level = 3, .traffic_class = 104, .flow_label = 0x12345, .pkey_index = 2};
    ck_assert_msg(provider != NULL && provider->open(&attr, &fab, &err) == 0, "%s", err.text);
    return fab;
}

/* ---- the metaserver */

static void on_answer(void *token, const struct meta_service_answer *answer,
                      const struct base_text *body)
{
    struct reply *reply = token;
    ck_assert_int_eq(reply->status, META_SERVICE_LATER);
    ck_assert_int_eq(body->error, 0);
    reply->status = answer->status;
    snprintf(reply->body, sizeof reply->body, "%s", base_text_str(body));
    if (answer->status >= 400)
        ck_assert_str_eq(answer->content_type, "application/problem+json");
}

static bool is_gone(void *token)
{
    return ((const struct reply *)token)->gone;
}

/* max_qp 0: as many as it has. */
static void open_world(struct world *w, uint32_t max_readers, uint32_t max_qp,
                       uint64_t packet_life_ns)
{
    struct meta_directory_limits limits = {NODES, NODES, WORLD_LEASE, 100 * BASE_NS_PER_S};
    const struct fault_plan none = {.seed = 1, .packet_life_ns = packet_life_ns};
    size_t bytes = schema_table_bytes(schema_table_log2_slots(NODES));
    struct base_errbuf err;
    memset(w, 0, sizeof *w);
    snprintf(w->device, sizeof w->device, "/dev/shm/kedge-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(w->device));
    ck_assert_int_eq(fault_open(open_device(w->device, METASERVER), &none, &w->fab), 0);
    if (max_qp != 0)
        w->fab->caps.max_qp = max_qp;
    ck_assert_int_eq(fab_mem_alloc(bytes, "table", &w->mem), 0);
    w->pd = call(w->fab, (struct fab_ctl){.kind = FAB_ALLOC_PD}).pd.x;
    w->mr = call(w->fab, (struct fab_ctl){.kind = FAB_REG_MR,
                                          .mr = {.pd = w->pd,
                                                 .mem = &w->mem,
                                                 .length = bytes,
                                                 .access = IBV_ACCESS_REMOTE_READ}})
                .mr.x;
    w->s.directory = meta_directory_new(&limits, w->mem.addr, 0x5eed, 0x77);
    w->s.resources = meta_resources_new(16);
    w->s.store = meta_store_memory(NULL);
    test_world_init(&w->world, w->s.store);
    w->s.world = &w->world.base;
    w->s.node_lease_ns = WORLD_LEASE;
    w->s.endpoint.table_addr = w->mr->addr;
    w->s.endpoint.table_rkey = w->mr->rkey;
    device_gid(w->s.endpoint.gid, METASERVER);
    w->s.answer = on_answer;
    w->s.gone = is_gone;
    w->now = BASE_NS_PER_S;
    w->chan = call(w->fab, (struct fab_ctl){.kind = FAB_CREATE_CHAN}).chan.x;
    w->cq =
        call(w->fab, (struct fab_ctl){.kind = FAB_CREATE_CQ, .cq = {.cqe = 64, .chan = w->chan}})
            .cq.x;
    ck_assert_msg(meta_responders_new(w->s.world, w->pd, w->cq, max_readers, true, w->now,
                                      &w->s.responders, &err) == 0,
                  "%s", err.text);
}

void world_open(struct world *w, uint32_t max_readers)
{
    open_world(w, max_readers, 0, PACKET_LIFE_NS);
}

void world_open_small(struct world *w, uint32_t max_readers, uint32_t max_qp)
{
    open_world(w, max_readers, max_qp, PACKET_LIFE_NS);
}

void world_open_resting(struct world *w, uint32_t max_readers, uint64_t packet_life_ns)
{
    open_world(w, max_readers, 0, packet_life_ns);
}

void world_stop(struct world *w)
{
    meta_responders_stop(w->s.responders);
    while (!meta_responders_stopped(w->s.responders))
        if (fab_run(w->fab) == 0)
            fab_wait(w->fab);
}

const char *world_hear_broken(struct world *w)
{
    struct pollfd told = {.fd = w->chan->fd, .events = POLLIN};
    ck_assert_uint_ne(meta_responders_due_ns(w->s.responders), 0);
    ck_assert_int_eq(poll(&told, 1, 30000), 1);
    fab_chan_drain(w->chan);
    meta_responders_hear(w->s.responders);
    ck_assert_uint_eq(meta_responders_due_ns(w->s.responders), 0);
    return meta_responders_broken(w->s.responders);
}

/* Closing the device fails if a queue pair is left over. */
void world_close(struct world *w)
{
    char path[96];
    world_stop(w);
    meta_responders_free(w->s.responders);
    call(w->fab, (struct fab_ctl){.kind = FAB_DESTROY_CQ, .cq.x = w->cq});
    call(w->fab, (struct fab_ctl){.kind = FAB_DESTROY_CHAN, .chan.x = w->chan});
    meta_directory_free(w->s.directory);
    meta_resources_free(w->s.resources);
    meta_store_close(w->s.store);
    call(w->fab, (struct fab_ctl){.kind = FAB_DEREG_MR, .mr.x = w->mr});
    call(w->fab, (struct fab_ctl){.kind = FAB_FREE_PD, .pd.x = w->pd});
    fab_mem_free(&w->mem);
    ck_assert_int_eq(fab_close(w->fab), 0);
    snprintf(path, sizeof path, "%s/device", w->device);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(w->device), 0);
}

/* Whatever the device and the store have to say. */
static struct meta_responders_counts run_once(struct world *w)
{
    struct pollfd fd = {.fd = fab_ctl_fd(w->fab), .events = POLLIN};
    if (fab_run(w->fab) == 0)
        (void)poll(&fd, 1, 10);
    test_world_settle(&w->world, &w->s, w->now);
    return meta_responders_count(w->s.responders);
}

void world_run(struct world *w)
{
    struct meta_responders_counts c;
    do
        c = run_once(w);
    while (c.all > c.kept + c.spare + c.resting);
}

/* Those that rest, as on a real network, are told that their time is over: leases' clock stands. */
static void let_rest(struct world *w)
{
    w->rested_ns += w->fab->caps.time_wait_ns;
    meta_responders_tick(w->s.responders, w->now + w->rested_ns);
}

void world_settle(struct world *w)
{
    struct meta_responders_counts c;
    do {
        c = run_once(w);
        if (c.resting > 0)
            let_rest(w);
    } while (c.asked > 0 || c.all > c.kept + c.spare);
}

void world_ask(struct world *w, const char *method, const char *path, const char *body,
               struct reply *out)
{
    struct meta_service_request request = {.method = method,
                                           .path = path,
                                           .content_type = "application/json",
                                           .shown.authorization = w->authorization,
                                           .shown.local = w->authorization == NULL,
                                           .body = body,
                                           .body_bytes = strlen(body),
                                           .token = out};
    struct meta_service_answer answer;
    struct base_text text;
    *out = (struct reply){.status = META_SERVICE_LATER};
    base_text_init(&text, sizeof out->body * 8);
    meta_service_handle(&w->s, &request, w->now, &text, &answer);
    if (answer.status != META_SERVICE_LATER)
        on_answer(out, &answer, &text);
    if (w->s.writes.first != NULL)
        test_world_settle(&w->world, &w->s, w->now);
    base_text_fini(&text);
}

bool says(const struct reply *reply, const char *text)
{
    return strstr(reply->body, text) != NULL;
}

/* ---- an agent */

static void modify(const struct reader *a, struct ibv_qp_attr attr, int mask)
{
    call(a->fab,
         (struct fab_ctl){.kind = FAB_MODIFY_QP,
                          .modify = {.x = a->qp, .attr = attr, .mask = mask | IBV_QP_STATE}});
}

static void make_qp(struct reader *a)
{
    a->qp = call(a->fab, (struct fab_ctl){.kind = FAB_CREATE_QP,
                                          .qp = {.pd = a->pd,
                                                 .type = FAB_QP_RC,
                                                 .send_cq = a->cq,
                                                 .recv_cq = a->cq,
                                                 .cap = {.send_wr = 4, .send_sge = 1}}})
                .qp.x;
    a->psn = a->qp->qpn & 0xffff;
    modify(a, fab_init_attr(a->fab), IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

void reader_open(struct reader *a, const struct world *w, uint8_t number)
{
    *a = (struct reader){.fab = open_device(w->device, number), .number = number, .node = number};
    ck_assert_int_eq(fab_mem_alloc(4096, "span", &a->mem), 0);
    a->pd = call(a->fab, (struct fab_ctl){.kind = FAB_ALLOC_PD}).pd.x;
    a->mr = call(a->fab, (struct fab_ctl){.kind = FAB_REG_MR,
                                          .mr = {.pd = a->pd,
                                                 .mem = &a->mem,
                                                 .length = 4096,
                                                 .access = IBV_ACCESS_LOCAL_WRITE}})
                .mr.x;
    a->cq = call(a->fab, (struct fab_ctl){.kind = FAB_CREATE_CQ, .cq = {.cqe = 8}}).cq.x;
    make_qp(a);
}

void reader_renew(struct reader *a)
{
    call(a->fab, (struct fab_ctl){.kind = FAB_DESTROY_QP, .qp.x = a->qp});
    make_qp(a);
}

void reader_close(struct reader *a)
{
    call(a->fab, (struct fab_ctl){.kind = FAB_DESTROY_QP, .qp.x = a->qp});
    call(a->fab, (struct fab_ctl){.kind = FAB_DESTROY_CQ, .cq.x = a->cq});
    call(a->fab, (struct fab_ctl){.kind = FAB_DEREG_MR, .mr.x = a->mr});
    call(a->fab, (struct fab_ctl){.kind = FAB_FREE_PD, .pd.x = a->pd});
    fab_mem_free(&a->mem);
    ck_assert_int_eq(fab_close(a->fab), 0);
}

void reader_put(struct world *w, const struct reader *a, uint32_t incarnation, struct reply *out)
{
    char path[32], text[BASE_GID_TEXT];
    uint8_t gid[16];
    struct base_text body;
    base_text_init(&body, 4096);
    device_gid(gid, a->number);
    snprintf(path, sizeof path, "/v1/nodes/n%u", a->node);
    base_text_printf(&body, "{\"incarnation\":%u,\"endpoints\":[", incarnation);
    for (unsigned pool = 0; pool == 0 || pool < a->pools; pool++)
        base_text_printf(&body,
                         "%s{\"gid\":\"fd00::%x\",\"pool\":%u,\"transports\":[\"rc\"],"
                         "\"ud_qpn\":5,\"ud_qkey\":1,\"mtu\":1024}",
                         pool > 0 ? "," : "", a->node, pool + a->calls);
    base_text_printf(&body, "],\"reader\":{\"gid\":\"%s\",\"qpn\":%u,\"psn\":%u,\"mtu\":1024",
                     base_gid_format(gid, text), a->qp->qpn, a->psn);
    if (a->pools > 0)
        base_text_printf(&body, ",\"pool\":%u", a->pool + a->calls);
    if (a->lane > 0)
        base_text_printf(&body, ",\"lane\":%u", a->lane);
    base_text_printf(&body, "}}");
    world_ask(w, "PUT", path, base_text_str(&body), out);
    base_text_fini(&body);
}

void reader_connect(struct reader *a, const struct reply *reply)
{
    uint8_t gid[16];
    device_gid(gid, METASERVER);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_1024,
                               .min_rnr_timer = 12,
                               .ah_attr = fab_address(a->fab, gid, 0)};
    const char *rc = strstr(reply->body, "\"rc\":{");
    ck_assert_msg(rc != NULL, "%s", reply->body);
    ck_assert_int_eq(sscanf(rc, "\"rc\":{\"qpn\":%u,\"psn\":%u}", &attr.dest_qp_num, &attr.rq_psn),
                     2);
    ck_assert_uint_le(attr.rq_psn, 0xffffff);
    modify(a, attr,
           IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    modify(a,
           (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .timeout = 17, /* 0.5 s; a busy guest stands still */
                                .retry_cnt = 1,
                                .sq_psn = a->psn,
                                .max_rd_atomic = 1},
           IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC);
}

enum ibv_wc_status reader_try(struct reader *a, const struct world *w, enum ibv_wr_opcode opcode,
                              uint8_t number)
{
    const struct schema_table_desc *desc = meta_directory_table(w->s.directory);
    uint8_t gid[16];
    number_gid(gid, number);
    uint64_t home = schema_endpoint_home(desc, gid, 0);
    struct ibv_sge sge = {(uintptr_t)a->mem.addr, SCHEMA_TABLE_SPAN_BYTES, a->mr->lkey};
    struct fab_wr wr = {.sg_list = &sge,
                        .num_sge = 1,
                        .opcode = opcode,
                        .send_flags = IBV_SEND_SIGNALED,
                        .key.rkey = w->s.endpoint.table_rkey,
                        .remote_addr = w->s.endpoint.table_addr + home * SCHEMA_RECORD_BYTES};
    struct fab_wr *bad;
    struct ibv_wc wc;
    int n = 0;
    ck_assert_int_eq(fab_post_send(a->qp, &wr, &bad), 0);
    while (n == 0)
        n = fab_poll(a->cq, 1, &wc);
    ck_assert_int_eq(n, 1);
    return wc.status;
}

bool reader_finds(struct reader *a, const struct world *w, uint8_t number)
{
    struct schema_endpoint_record record;
    uint8_t gid[16];
    number_gid(gid, number);
    ck_assert_int_eq(reader_try(a, w, IBV_WR_RDMA_READ, number), IBV_WC_SUCCESS);
    return schema_endpoint_find(meta_directory_table(w->s.directory), a->mem.addr, gid, 0,
                                &record) == 0;
}

void reader_join(struct world *w, struct reader *a, uint32_t incarnation, int status)
{
    struct reply reply;
    reader_put(w, a, incarnation, &reply);
    ck_assert_int_eq(reply.status, META_SERVICE_LATER);
    world_settle(w);
    ck_assert_msg(reply.status == status, "%d %s", reply.status, reply.body);
    reader_connect(a, &reply);
}

struct meta_responders_counts world_readers(const struct world *w)
{
    return meta_responders_count(w->s.responders);
}

/* ---- a queue pair that is held back */

static struct fab_ops device_ops;
static const struct fab_ops *real_ops;
static struct fab_ctl *held;
static bool holds;

static void submit_or_hold(struct fab *fab, struct fab_ctl *ctl)
{
    bool connects = ctl->kind == FAB_MODIFY_QP && ctl->modify.attr.qp_state == IBV_QPS_RTR;
    if (!holds || !connects) {
        real_ops->submit(fab, ctl);
        return;
    }
    holds = false;
    held = ctl;
}

void world_hold(struct world *w)
{
    real_ops = w->fab->ops;
    device_ops = *real_ops;
    device_ops.submit = submit_or_hold;
    w->fab->ops = &device_ops;
    held = NULL;
    holds = true;
}

void world_wait_held(struct world *w)
{
    for (int after = 0; held == NULL || after < 200; after += held != NULL) { /* ms */
        (void)fab_run(w->fab);
        test_world_settle(&w->world, &w->s, w->now);
        if (world_readers(w).resting > 0)
            let_rest(w);
        usleep(1000);
    }
}

void world_release(struct world *w)
{
    w->fab->ops = real_ops;
    real_ops->submit(w->fab, held);
}

/* ---- nodes that go */

void world_delete_node(struct world *w)
{
    struct reply reply;
    world_ask(w, "DELETE", "/v1/nodes/n1", "", &reply);
    ck_assert_int_eq(reply.status, 204);
}

void world_expire_node(struct world *w)
{
    w->now += WORLD_LEASE;
    meta_service_tick(&w->s, w->now, 0);
    test_world_settle(&w->world, &w->s, w->now);
}

void world_put_node_without(struct world *w)
{
    struct reply reply;
    w->s.endpoint.dct_number = 9;
    world_ask(w, "PUT", "/v1/nodes/n1",
              "{\"incarnation\":6,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":0,"
              "\"transports\":[\"rc\"],\"ud_qpn\":5,\"ud_qkey\":1,\"mtu\":1024}]}",
              &reply);
    ck_assert_int_eq(reply.status, 200);
}
