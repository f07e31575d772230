/* SPDX-License-Identifier: Apache-2.0 */
/* The reason for the table: an agent finds an endpoint with one READ over DC while the metaserver's
 * process is stopped. The metaserver is a child that registers a node and stops itself. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "metaserver/table_endpoint.h"

#define ENTRIES 1024

struct told {
    struct meta_service_endpoint endpoint;
    struct schema_table_desc desc;
};

static void node_gid(uint8_t gid[16], uint8_t number)
{
    memset(gid, 0, 16);
    gid[0] = 0xfd;
    gid[15] = number;
}

/* Tells the parent where its table is, stops, and when continued ends. */
static int metaserver(const char *device, int out)
{
    static struct meta_config config;
    struct meta_table_endpoint endpoint = {.fab = NULL};
    struct meta_directory_limits limits = {16, ENTRIES, BASE_NS_PER_S, BASE_NS_PER_S};
    struct meta_registration r = {.id = "n", .incarnation = 6, .endpoint_count = 1};
    struct base_errbuf err;
    struct told told;
    snprintf(config.provider, sizeof config.provider, "soft");
    snprintf(config.device, sizeof config.device, "%s", device);
    size_t bytes = schema_table_bytes(schema_table_log2_slots(ENTRIES));
    if (meta_table_endpoint_init(&endpoint, &config, bytes, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    struct meta_directory *meta = meta_directory_new(&limits, endpoint.mem.addr, 0x5eed, 0x77);
    r.endpoint[0] = (struct schema_endpoint_record){.flags = SCHEMA_RECORD_LIVE | SCHEMA_RECORD_DC,
                                                    .incarnation = 6,
                                                    .dctn_mtu = 5u << 24 | 0x123,
                                                    .dc_key = 0x1122334455667788};
    node_gid(r.endpoint[0].gid, 1);
    meta_directory_apply(meta, &r, 0);
    told.endpoint = meta_table_endpoint_describe(&endpoint);
    told.desc = *meta_directory_table(meta);
    if (write(out, &told, sizeof told) != sizeof told)
        return 1;
    raise(SIGSTOP);
    meta_directory_free(meta);
    meta_table_endpoint_fini(&endpoint);
    return 0;
}

struct agent {
    struct fab *fab;
    struct fab_pd *pd;
    struct fab_mem mem;
    struct fab_mr *mr;
    struct fab_cq *cq;
    struct fab_qp *dci;
    struct fab_ah *ah;
};

static struct fab_ctl call(struct fab *fab, struct fab_ctl ctl)
{
    ck_assert_int_eq(fab_call(fab, &ctl), 0);
    return ctl;
}

static void modify(struct agent *a, struct ibv_qp_attr attr, int mask)
{
    call(a->fab,
         (struct fab_ctl){.kind = FAB_MODIFY_QP,
                          .modify = {.x = a->dci, .attr = attr, .mask = mask | IBV_QP_STATE}});
}

static void open_agent(struct agent *a, const char *device, const uint8_t metaserver_gid[16])
{
    struct fab_open_attr attr = {.device = device};
    struct base_errbuf err;
    node_gid(attr.gid, 2);
    ck_assert_msg(fab_soft.open(&attr, &a->fab, &err) == 0, "%s", err.text);
    ck_assert_int_eq(fab_mem_alloc(4096, "span", &a->mem), 0);
    a->pd = call(a->fab, (struct fab_ctl){.kind = FAB_ALLOC_PD}).pd.x;
    a->mr = call(a->fab, (struct fab_ctl){.kind = FAB_REG_MR,
                                          .mr = {.pd = a->pd,
                                                 .mem = &a->mem,
                                                 .length = 4096,
                                                 .access = IBV_ACCESS_LOCAL_WRITE}})
                .mr.x;
    a->cq = call(a->fab, (struct fab_ctl){.kind = FAB_CREATE_CQ, .cq = {.cqe = 8}}).cq.x;
    a->dci = call(a->fab, (struct fab_ctl){.kind = FAB_CREATE_QP,
                                           .qp = {.pd = a->pd,
                                                  .type = FAB_QP_DCI,
                                                  .send_cq = a->cq,
                                                  .recv_cq = a->cq,
                                                  .cap = {.send_wr = 4, .send_sge = 1}}})
                 .qp.x;
    modify(a, fab_init_attr(a->fab), IBV_QP_PKEY_INDEX | IBV_QP_PORT);
    modify(a, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = a->fab->caps.mtu},
           IBV_QP_PATH_MTU);
    modify(a,
           (struct ibv_qp_attr){
               .qp_state = IBV_QPS_RTS, .timeout = 10, .retry_cnt = 1, .max_rd_atomic = 1},
           IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC);
    struct ibv_ah_attr ah = fab_address(a->fab, metaserver_gid, 0);
    a->ah =
        call(a->fab, (struct fab_ctl){.kind = FAB_CREATE_AH, .ah = {.pd = a->pd, .attr = ah}}).ah.x;
}

static void close_agent(struct agent *a)
{
    call(a->fab, (struct fab_ctl){.kind = FAB_DESTROY_AH, .ah.x = a->ah});
    call(a->fab, (struct fab_ctl){.kind = FAB_DESTROY_QP, .qp.x = a->dci});
    call(a->fab, (struct fab_ctl){.kind = FAB_DESTROY_CQ, .cq.x = a->cq});
    call(a->fab, (struct fab_ctl){.kind = FAB_DEREG_MR, .mr.x = a->mr});
    call(a->fab, (struct fab_ctl){.kind = FAB_FREE_PD, .pd.x = a->pd});
    fab_mem_free(&a->mem);
    ck_assert_int_eq(fab_close(a->fab), 0);
}

/* The status of one operation on the metaserver's table. */
static enum ibv_wc_status operate(struct agent *a, const struct told *told,
                                  enum ibv_wr_opcode opcode, uint64_t key, uint64_t offset)
{
    struct ibv_sge sge = {(uintptr_t)a->mem.addr, SCHEMA_TABLE_SPAN_BYTES, a->mr->lkey};
    struct fab_wr wr = {.sg_list = &sge,
                        .num_sge = 1,
                        .opcode = opcode,
                        .send_flags = IBV_SEND_SIGNALED,
                        .key.rkey = told->endpoint.table_rkey,
                        .remote_addr = told->endpoint.table_addr + offset,
                        .ah = a->ah,
                        .dest_qpn = told->endpoint.dct_number,
                        .dc_key = key};
    struct fab_wr *bad;
    struct ibv_wc wc;
    int n = 0;
    ck_assert_int_eq(fab_post_send(a->dci, &wr, &bad), 0);
    for (uint64_t end = base_clock_ns() + 5 * BASE_NS_PER_S; n == 0 && base_clock_ns() < end;)
        n = fab_poll(a->cq, 1, &wc);
    ck_assert_int_eq(n, 1);
    return wc.status;
}

static int lookup(struct agent *a, const struct told *told, uint8_t number,
                  struct schema_endpoint_record *out)
{
    uint8_t gid[16];
    node_gid(gid, number);
    uint64_t home = schema_endpoint_home(&told->desc, gid, 0);
    ck_assert_int_eq(
        operate(a, told, IBV_WR_RDMA_READ, told->endpoint.dc_key, home * SCHEMA_RECORD_BYTES),
        IBV_WC_SUCCESS);
    return schema_endpoint_find(&told->desc, a->mem.addr, gid, 0, out);
}

static pid_t start(const char *device, struct told *told)
{
    int ends[2], status;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(metaserver(device, ends[1]));
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], told, sizeof *told), sizeof *told);
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
    ck_assert(WIFSTOPPED(status));
    return child;
}

static void run(enum ibv_wr_opcode opcode, uint64_t wrong_key, uint64_t past_end)
{
    char device[] = "/dev/shm/kedge-test-XXXXXX", path[64];
    struct agent a;
    struct told told;
    struct schema_endpoint_record out;
    ck_assert_ptr_nonnull(mkdtemp(device));
    pid_t child = start(device, &told);
    open_agent(&a, device, told.endpoint.gid);
    if (opcode == IBV_WR_RDMA_READ && wrong_key == 0 && past_end == 0) {
        ck_assert_int_eq(lookup(&a, &told, 1, &out), 0);
        ck_assert_uint_eq(out.dc_key, 0x1122334455667788);
        ck_assert_uint_eq(out.incarnation, 6);
        ck_assert_int_eq(lookup(&a, &told, 3, &out), -ENOENT);
    } else {
        ck_assert_int_ne(operate(&a, &told, opcode, told.endpoint.dc_key ^ wrong_key, past_end),
                         IBV_WC_SUCCESS);
    }
    close_agent(&a);
    int status;
    kill(child, SIGCONT);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    snprintf(path, sizeof path, "%s/device", device);
    unlink(path);
    ck_assert_int_eq(rmdir(device), 0);
}

START_TEST(an_endpoint_is_found_with_one_read_while_the_metaserver_is_stopped)
{
    run(IBV_WR_RDMA_READ, 0, 0);
}
END_TEST

START_TEST(the_table_cannot_be_written)
{
    run(IBV_WR_RDMA_WRITE, 0, 0);
}
END_TEST

START_TEST(the_table_cannot_be_read_past_its_end)
{
    run(IBV_WR_RDMA_READ, 0, schema_table_bytes(schema_table_log2_slots(ENTRIES)));
}
END_TEST

START_TEST(the_table_cannot_be_read_with_another_dc_key)
{
    run(IBV_WR_RDMA_READ, 1, 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_endpoint_is_found_with_one_read_while_the_metaserver_is_stopped)                          \
    T(the_table_cannot_be_written)                                                                 \
    T(the_table_cannot_be_read_past_its_end)                                                       \
    T(the_table_cannot_be_read_with_another_dc_key)
KEDGE_CHECK_MAIN("metaserver table read", TESTS)
