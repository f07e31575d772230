/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../connector_made.h"
#include "base/error.h"
#include "fabric/fault.h"

enum { SQ_DEPTH = 16 };

static int fill(void *user, void *bytes, size_t count)
{
    struct world *w = user;
    if (w->same_psn && count == sizeof(uint32_t)) {
        memcpy(bytes, &(uint32_t){4711}, count);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
        ((uint8_t *)bytes)[i] = (uint8_t)(w->random >> 56);
    }
    return 0;
}

static void call(struct fab *fab, struct fab_ctl *ctl)
{
    ck_assert_int_eq(fab_call(fab, ctl), 0);
}

static struct fab_pd *make_pd(struct fab *fab)
{
    struct fab_ctl c = {.kind = FAB_ALLOC_PD};
    call(fab, &c);
    return c.pd.x;
}

static void open_fab(struct world *w, struct node *n, uint8_t last)
{
    /* soft takes no address and no queue pair without it. */
    struct fab_open_attr attr = {
        .device = w->dir,
        .gid = {0xfd, [15] = last},
        .service = {
            .service_level = 3, .traffic_class = 104, .flow_label = 0x12345, .pkey_index = 2}};
    struct fault_plan plan = {.seed = last,
                              .loss_ppm = w->loss_ppm,
                              .packet_life_ns = w->packet_life_ns,
                              .no_atomics = w->no_atomics,
                              .resets_are_final = w->resets_are_final,
                              .numbers_return = w->numbers_return,
                              .stuck_ppm = w->stuck_ppm,
                              .now_ns = &w->now_ns};
    struct base_errbuf err = {""};
    struct fab *soft = NULL;
    ck_assert_msg(fab_soft.open(&attr, &soft, &err) == 0, "%s", err.text);
    ck_assert_int_eq(fault_open(soft, &plan, &n->fab), 0);
}

static uint32_t or_default(uint32_t value, uint32_t instead)
{
    return value != 0 ? value : instead;
}

static void start_connector(struct world *w, struct node *n, uint32_t incarnation)
{
    struct base_errbuf err = {""};
    struct connector_config config = {
        .pool = 1,
        .incarnation = incarnation,
        .initiators = or_default(n->config.initiators, WANTED),
        .responders = n->only_asks ? 0 : or_default(n->config.responders, WANTED),
        .ahead = or_default(n->config.ahead, 4),
        .first = n->config.first,
        .wanted = WANTED,
        .handshakes = or_default(n->config.handshakes, 8),
        .sq_depth = SQ_DEPTH,
        .sge = 1,
        .timeout = 8,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .retry_ns = 5000000,
        .silence_ns = 2000000000,
        .idle_ns = or_default((uint32_t)n->config.idle_ns, 1000000000),
        .drain_ns = 100000000,
        .begun_ns = w->now_ns,
        .gone_ns = &n->gone_ns,
    };
    struct connector_resources r = {
        .fab = n->fab, .pd = n->pd, .system_pd = n->system_pd, .cq = n->cq, .srq = n->srq};
    ck_assert_msg(connector_made(&config, &r, fill, w, &n->c, &err) == 0, "%s", err.text);
}

static struct fab_srq *make_srq(const struct node *n)
{
    struct fab_ctl c = {.kind = FAB_CREATE_SRQ,
                        .srq = {.pd = n->pd, .max_wr = WANTED, .max_sge = 1}};
    call(n->fab, &c);
    return c.srq.x;
}

void node_start(struct world *w, uint32_t i, uint32_t incarnation)
{
    struct node *n = &w->node[i];
    n->world = w;
    open_fab(w, n, (uint8_t)(i + 1));
    n->pd = make_pd(n->fab);
    n->system_pd = make_pd(n->fab);
    struct fab_ctl cq = {.kind = FAB_CREATE_CQ, .cq = {.cqe = WANTED * SQ_DEPTH}};
    call(n->fab, &cq);
    n->cq = cq.cq.x;
    n->srq = w->has_srq ? make_srq(n) : NULL;
    ck_assert_int_eq(fab_mem_alloc(4096, "node", &n->mem), 0);
    struct fab_ctl mr = {.kind = FAB_REG_MR,
                         .mr = {.pd = n->pd,
                                .mem = &n->mem,
                                .length = n->mem.size,
                                .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                          IBV_ACCESS_REMOTE_WRITE}};
    call(n->fab, &mr);
    n->mr = mr.mr.x;
    ((char *)n->mem.addr)[0] = (char)('A' + i);
    memset(n->came, 0, sizeof n->came);
    start_connector(w, n, incarnation);
}

static void destroy(struct fab *fab, enum fab_ctl_kind kind, void *x)
{
    struct fab_ctl c = {.kind = kind};
    c.pd.x = x; /* every kind names its object first */
    call(fab, &c);
}

void node_kill(struct world *w, uint32_t i)
{
    struct node *n = &w->node[i];
    if (n->c == NULL)
        return;
    connector_free(n->c);
    n->c = NULL;
    destroy(n->fab, FAB_DEREG_MR, n->mr);
    if (n->srq != NULL)
        destroy(n->fab, FAB_DESTROY_SRQ, n->srq);
    destroy(n->fab, FAB_DESTROY_CQ, n->cq);
    destroy(n->fab, FAB_FREE_PD, n->pd);
    destroy(n->fab, FAB_FREE_PD, n->system_pd);
    fab_mem_free(&n->mem);
    ck_assert_int_eq(fab_close(n->fab), 0); /* nothing was left behind */
}

void world_open(struct world *w, uint32_t nodes)
{
    w->now_ns = 1000000000;
    w->random = 7;
    w->nodes = nodes;
    /* Not by its pid, which a test that was killed, and left its own, may have had. */
    snprintf(w->dir, sizeof w->dir, "/dev/shm/kedge-connect-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(w->dir));
    for (uint32_t i = 0; i < nodes; i++)
        node_start(w, i, 100);
}

void world_close(struct world *w)
{
    for (uint32_t i = 0; i < w->nodes; i++)
        node_kill(w, i);
    pid_t child = fork();
    if (child == 0) {
        execlp("rm", "rm", "-rf", w->dir, (char *)NULL);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

uint64_t node_step(struct world *w, uint32_t i)
{
    struct node *n = &w->node[i];
    struct connector_event e;
    (void)fab_run(n->fab);
    const uint64_t due_ns = connector_step(n->c, w->now_ns);
    while (connector_event(n->c, &e)) {
        ck_assert_uint_lt(e.tag, WORLD_EVENTS);
        ck_assert(!n->came[e.tag]);
        n->came[e.tag] = true;
        n->event[e.tag] = e;
    }
    return due_ns;
}

void world_run(struct world *w, uint32_t ms)
{
    for (uint32_t m = 0; m < ms; m++) {
        w->now_ns += 1000000;
        for (uint32_t i = 0; i < w->nodes; i++)
            if (w->node[i].c != NULL)
                (void)node_step(w, i);
    }
}

struct connector_peer peer_of(const struct world *w, uint32_t i)
{
    const struct node *n = &w->node[i];
    struct connector_peer p = {.incarnation = 100, .ud_qpn = 1};
    memcpy(p.gid, (uint8_t[16]){0xfd, [15] = (uint8_t)(i + 1)}, 16);
    if (n->c != NULL) {
        p.ud_qpn = connector_ud_qpn(n->c);
        p.ud_qkey = connector_ud_qkey(n->c);
        p.lid = n->fab->caps.lid;
    }
    return p;
}

void ask(struct world *w, uint32_t from, uint32_t to, uint32_t tag)
{
    struct connector_peer p = peer_of(w, to);
    w->node[from].came[tag] = false;
    connector_connect(w->node[from].c, &p, tag);
}

int await(struct world *w, uint32_t node, uint32_t tag)
{
    for (int i = 0; i < 20000 && !w->node[node].came[tag]; i++)
        world_run(w, 1);
    ck_assert(w->node[node].came[tag]);
    return w->node[node].event[tag].status;
}

static enum ibv_wc_status carry_out(struct world *w, struct node *n, struct fab_wr *wr)
{
    struct fab_wr *bad;
    struct ibv_wc wc;
    ck_assert_int_eq(fab_post_send(n->event[wr->wr_id].qp, wr, &bad), 0);
    for (int i = 0; i < 2000; i++) {
        if (fab_poll(n->cq, 1, &wc) == 1) {
            ck_assert_uint_eq(wc.wr_id, wr->wr_id);
            return wc.status;
        }
        world_run(w, 1);
        usleep(100); /* the device's own time-outs are of the real clock */
    }
    ck_abort_msg("no completion");
}

enum ibv_wc_status read_through(struct world *w, uint32_t from, uint32_t to, uint32_t tag)
{
    return read_bytes(w, from, to, tag, 8);
}

enum ibv_wc_status read_bytes(struct world *w, uint32_t from, uint32_t to, uint32_t tag,
                              uint32_t bytes)
{
    struct node *n = &w->node[from], *m = &w->node[to];
    struct ibv_sge sge = {
        .addr = (uintptr_t)n->mem.addr + 64, .length = bytes, .lkey = n->mr->lkey};
    struct fab_wr wr = {.wr_id = tag,
                        .sg_list = &sge,
                        .num_sge = 1,
                        .opcode = IBV_WR_RDMA_READ,
                        .send_flags = IBV_SEND_SIGNALED,
                        .key.rkey = m->mr->rkey,
                        .remote_addr = m->mr->addr};
    ((char *)n->mem.addr)[64] = 0;
    const enum ibv_wc_status status = carry_out(w, n, &wr);
    if (status == IBV_WC_SUCCESS)
        ck_assert_int_eq(((char *)n->mem.addr)[64], 'A' + (int)to);
    return status;
}

enum ibv_wc_status write_through(struct world *w, uint32_t from, uint32_t to, uint32_t tag,
                                 char byte)
{
    struct node *n = &w->node[from], *m = &w->node[to];
    struct ibv_sge sge = {.addr = (uintptr_t)n->mem.addr + 64, .length = 1, .lkey = n->mr->lkey};
    struct fab_wr wr = {.wr_id = tag,
                        .sg_list = &sge,
                        .num_sge = 1,
                        .opcode = IBV_WR_RDMA_WRITE,
                        .send_flags = IBV_SEND_SIGNALED,
                        .key.rkey = m->mr->rkey,
                        .remote_addr = m->mr->addr + 128};
    ((char *)n->mem.addr)[64] = byte;
    const enum ibv_wc_status status = carry_out(w, n, &wr);
    if (status == IBV_WC_SUCCESS)
        ck_assert_int_eq(((char *)m->mem.addr)[128], byte);
    return status;
}

struct connector_stats stats_of(const struct world *w, uint32_t i)
{
    struct connector_stats s;
    connector_stats(w->node[i].c, &s);
    return s;
}
