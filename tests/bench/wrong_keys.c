/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <kedge.h>

#include "isolation.h"

enum { BYTES = 64, AT_A_TIME = 16, STEP_US = 200 };

struct guesser {
    struct kedge_session *s;
    struct kedge_vqp *q;
    void *memory;
    uint32_t lkey, key;
};

static int attach(const struct perf_options *o, const uint8_t gid[16], struct guesser *g,
                  struct base_errbuf *err)
{
    uint64_t retries = 0;
    int status = perf_open(o->socket, &g->s, &retries, err);
    if (status == 0)
        status = kedge_alloc(g->s, BYTES, &g->memory, &g->lkey);
    if (status == 0)
        status = kedge_vqp_create(g->s, NULL, &g->q);
    if (status == 0)
        status = kedge_connect(g->q, gid);
    return status == 0 || err->text[0] != '\0' ? status : perf_failed(status, "guessing", err);
}

static int peer_gid(const struct perf_options *o, uint8_t gid[16], struct base_errbuf *err)
{
    struct kedge_session_info info;
    struct kedge_session *peer;
    uint64_t retries = 0;
    int status =
        perf_open(o->peer_socket != NULL ? o->peer_socket : o->socket, &peer, &retries, err);
    if (status != 0)
        return status;
    kedge_session_query(peer, &info);
    memcpy(gid, info.gid, sizeof info.gid);
    kedge_close(peer);
    return 0;
}

/* Some guesses; the first error ends the connection, so it is made again before the next. */
static void guess(struct guesser *g, const uint8_t gid[16], struct neighbour *shared)
{
    struct ibv_wc wc[AT_A_TIME];
    (void)kedge_connect(g->q, gid);
    for (int i = 0; i < AT_A_TIME; i++) {
        struct ibv_sge sge = {.addr = (uintptr_t)g->memory, .length = BYTES, .lkey = g->lkey};
        struct ibv_send_wr wr = {.sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_READ,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {.remote_addr = 4096, .rkey = ++g->key | 1u << 31}},
                           *bad;
        if (kedge_post_send(g->q, &wr, &bad) != 0)
            break;
        atomic_fetch_add(&shared->posted, 1);
    }
    (void)kedge_wait(g->s, 1);
    for (int n; (n = kedge_poll(g->s, AT_A_TIME, wc)) > 0;)
        for (int i = 0; i < n; i++)
            atomic_fetch_add(&shared->failed, wc[i].status != IBV_WC_SUCCESS);
}

_Noreturn void wrong_keys_run(const struct perf_options *o, struct neighbour *shared)
{
    struct guesser g = {.key = (uint32_t)getpid()};
    uint8_t gid[16];
    int status = peer_gid(o, gid, &shared->err);
    if (status == 0)
        status = attach(o, gid, &g, &shared->err);
    atomic_store(&shared->status, status);
    while (status == 0) {
        int mode = atomic_load(&shared->mode);
        if (mode == OVER)
            _exit(0);
        if (mode == BUSY)
            guess(&g, gid, shared);
        else
            usleep(STEP_US);
        if (kedge_session_status(g.s) != 0) {
            kedge_close(g.s);
            status = attach(o, gid, &g, &shared->err);
        }
        atomic_store(&shared->now, mode);
    }
    _exit(1);
}
