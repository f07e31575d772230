/* SPDX-License-Identifier: Apache-2.0 */
#include "reader.h"

#include <errno.h>
#include <string.h>

enum { BYTES = 8, SPIN_US = 20, WAIT_MS = 60000 };

int perf_target_open(const struct perf_options *o, struct perf_target *out, uint64_t *retries,
                     struct base_errbuf *err)
{
    const char *socket = o->peer_socket != NULL ? o->peer_socket : o->socket;
    struct perf_target t;
    struct kedge_mr *mr;
    void *memory;
    uint32_t lkey;
    int status = perf_open(socket, &t.s, retries, err);
    if (status != 0)
        return status;
    status = kedge_alloc(t.s, BYTES, &memory, &lkey);
    if (status == 0) {
        perf_pattern(memory, BYTES);
        status = kedge_reg_mr(t.s, memory, BYTES, IBV_ACCESS_REMOTE_READ, &mr);
    }
    if (status == 0)
        status = kedge_mr_export(mr, t.token, sizeof t.token);
    if (status != 0) {
        perf_failed(status, "exporting the target's memory", err);
        perf_target_close(&t);
        return status;
    }
    *out = t;
    return 0;
}

void perf_target_close(struct perf_target *t)
{
    kedge_close(t->s);
}

int perf_reader_attach(struct perf_reader *r, struct base_errbuf *err)
{
    return perf_open(r->socket, &r->s, &r->retries, err);
}

int perf_reader_memory(struct perf_reader *r, struct base_errbuf *err)
{
    int status = kedge_alloc(r->s, BYTES, &r->memory, &r->lkey);
    return status == 0 ? 0 : perf_failed(status, "memory", err);
}

int perf_reader_import(struct perf_reader *r, struct base_errbuf *err)
{
    int status = kedge_import(r->s, r->token, &r->remote);
    return status == 0 ? 0 : perf_failed(status, "importing the target's token", err);
}

int perf_reader_connect(struct perf_reader *r, struct base_errbuf *err)
{
    int status = kedge_vqp_create(r->s, NULL, &r->q);
    if (status == 0)
        status = kedge_connect(r->q, r->remote.gid);
    return status == 0 ? 0 : perf_failed(status, "connecting", err);
}

/* Polls for as long as a sleep would cost, then sleeps: whoever polls on takes the processor from
 * those that it waits for, where these are few. */
static int one_completion(struct kedge_session *s, struct ibv_wc *wc)
{
    uint64_t until = base_clock_ns() + SPIN_US * BASE_NS_PER_US;
    int n;
    do
        n = kedge_poll(s, 1, wc);
    while (n == 0 && base_clock_ns() < until);
    while (n == 0) {
        n = kedge_wait(s, WAIT_MS);
        if (n == 0)
            return -ETIMEDOUT;
        if (n > 0)
            n = kedge_poll(s, 1, wc);
    }
    return n;
}

int perf_reader_read(struct perf_reader *r, struct base_errbuf *err)
{
    struct ibv_sge sge = {.addr = (uintptr_t)r->memory, .length = BYTES, .lkey = r->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = r->remote.addr, .rkey = r->remote.rkey}},
                       *bad;
    struct ibv_wc wc;
    int status = kedge_post_send(r->q, &wr, &bad);
    if (status != 0)
        return perf_failed(status, "posting", err);
    int n = one_completion(r->s, &wc);
    if (n == -ETIMEDOUT)
        return base_err(err, n, "the READ did not complete within %d s", WAIT_MS / 1000);
    if (n < 0)
        return perf_failed(n, "waiting", err);
    if (wc.status != IBV_WC_SUCCESS)
        return perf_failed_with(&wc, "the READ", err);
    return 0;
}

int perf_reader_post(struct perf_reader *r, uint64_t wr_id, uint64_t at, uint32_t size,
                     struct base_errbuf *err)
{
    struct ibv_sge sge = {.addr = (uintptr_t)r->memory + at, .length = size, .lkey = r->lkey};
    struct ibv_send_wr wr = {.wr_id = wr_id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = r->remote.addr, .rkey = r->remote.rkey}},
                       *bad;
    const int status = kedge_post_send(r->q, &wr, &bad);
    return status == 0 ? 0 : perf_failed(status, "posting", err);
}

int perf_reader_check(const struct perf_reader *r, struct base_errbuf *err)
{
    if (perf_pattern_holds(r->memory, 0, BYTES))
        return 0;
    return base_err(err, -EBADMSG, "the READ brought other bytes than the target has");
}

void perf_reader_close(struct perf_reader *r)
{
    kedge_close(r->s);
    r->s = NULL;
}
