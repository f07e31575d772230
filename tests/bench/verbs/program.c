/* SPDX-License-Identifier: Apache-2.0 */
/* From the completion queue to the first READ, and the peer that serves it. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/random.h"
#include "private.h"

enum { CQ_ENTRIES = 16, SEND_SLOTS = 16 };

static const struct {
    const char *name, *key;
} steps[BENCH_STEPS] = {
    [BENCH_DEVICE] = {"list devices, open, port, GID", "device"},
    [BENCH_PD] = {"protection domain", "pd"},
    [BENCH_CQ] = {"completion queue", "cq"},
    [BENCH_MR] = {"register 2 MiB", "mr"},
    [BENCH_QP] = {"queue pair", "qp"},
    [BENCH_INIT] = {"INIT", "init"},
    [BENCH_EXCHANGE] = {"exchange over TCP", "exchange"},
    [BENCH_RTR] = {"RTR", "rtr"},
    [BENCH_RTS] = {"RTS", "rts"},
    [BENCH_READY] = {"wait for the peer's RTR", "ready"},
    [BENCH_READ] = {"first READ of 8 bytes", "read"},
};

const char *bench_step_name(enum bench_step step)
{
    return steps[step].name;
}

const char *bench_step_key(enum bench_step step)
{
    return steps[step].key;
}

/* What one connection takes; zero: not made yet. */
struct objects {
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    uint32_t psn;
    int socket;
};

static int transfer(int socket, void *bytes, size_t length, bool out)
{
    for (size_t done = 0; done < length;) {
        char *at = (char *)bytes + done;
        ssize_t n = out ? send(socket, at, length - done, MSG_NOSIGNAL)
                        : recv(socket, at, length - done, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0 ? -EPIPE : -errno;
        done += (size_t)n;
    }
    return 0;
}

static void describe(const struct bench_program *p, const struct objects *o,
                     struct bench_address *out)
{
    *out = (struct bench_address){.qpn = o->qp->qp_num,
                                  .psn = o->psn,
                                  .lid = p->port_attr.lid,
                                  .rkey = o->mr->rkey,
                                  .addr = (uintptr_t)p->buffer};
    memcpy(out->gid, p->gid, 16);
    memcpy(&out->word, p->buffer, sizeof out->word);
}

static int make_cq(struct bench_program *p, struct objects *o, struct base_errbuf *err)
{
    errno = 0;
    o->cq = ibv_create_cq(p->context, CQ_ENTRIES, NULL, NULL, 0);
    return o->cq != NULL ? 0 : bench_failed(err, "creating a completion queue", errno);
}

static int make_mr(struct bench_program *p, struct objects *o, struct base_errbuf *err)
{
    errno = 0;
    o->mr = ibv_reg_mr(p->pd, p->buffer, BENCH_BUFFER_BYTES,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    return o->mr != NULL ? 0 : bench_failed(err, "registering memory", errno);
}

static int make_qp(struct bench_program *p, struct objects *o, struct base_errbuf *err)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = o->cq,
        .recv_cq = o->cq,
        .cap = {.max_send_wr = SEND_SLOTS, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC};
    errno = 0;
    o->qp = ibv_create_qp(p->pd, &attr);
    if (o->qp == NULL)
        return bench_failed(err, "creating a queue pair", errno);
    return bench_draw_psn(&o->psn, err);
}

static int exchange(struct bench_program *p, struct objects *o, uint16_t port,
                    struct bench_address *peer, struct base_errbuf *err)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    struct bench_address own;
    int one = 1;
    describe(p, o, &own);
    o->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (o->socket < 0 || connect(o->socket, (struct sockaddr *)&to, sizeof to) != 0)
        return bench_failed(err, "connecting to the peer over TCP", errno);
    (void)setsockopt(o->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int status = transfer(o->socket, &own, sizeof own, true);
    if (status == 0)
        status = transfer(o->socket, peer, sizeof *peer, false);
    return status == 0 ? 0 : bench_failed(err, "the exchange with the peer", -status);
}

static int wait_ready(struct objects *o, struct base_errbuf *err)
{
    char ready;
    int status = transfer(o->socket, &ready, 1, false);
    return status == 0 ? 0 : bench_failed(err, "waiting for the peer", -status);
}

static int first_read(struct bench_program *p, struct objects *o, const struct bench_address *peer,
                      struct base_errbuf *err)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)p->buffer, .length = sizeof peer->word, .lkey = o->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = peer->addr, .rkey = peer->rkey}},
                       *bad;
    struct ibv_wc wc;
    int n = 0, status = ibv_post_send(o->qp, &wr, &bad);
    if (status != 0)
        return bench_failed(err, "posting the READ", status);
    while (n == 0)
        n = ibv_poll_cq(o->cq, 1, &wc);
    if (n < 0 || wc.status != IBV_WC_SUCCESS)
        return base_err(err, -EIO, "the READ failed: %s",
                        n < 0 ? "the queue cannot be polled" : ibv_wc_status_str(wc.status));
    if (memcmp(p->buffer, &peer->word, sizeof peer->word) != 0)
        return base_err(err, -EIO, "the READ brought other bytes than the peer's");
    return 0;
}

static void give_back(struct objects *o)
{
    if (o->socket >= 0)
        close(o->socket);
    if (o->qp != NULL)
        (void)ibv_destroy_qp(o->qp);
    if (o->mr != NULL)
        (void)ibv_dereg_mr(o->mr);
    if (o->cq != NULL)
        (void)ibv_destroy_cq(o->cq);
}

static int do_step(struct bench_program *p, struct objects *o, enum bench_step step, uint16_t port,
                   struct bench_address *peer, struct base_errbuf *err)
{
    switch (step) {
    case BENCH_CQ:
        return make_cq(p, o, err);
    case BENCH_MR:
        return make_mr(p, o, err);
    case BENCH_QP:
        return make_qp(p, o, err);
    case BENCH_INIT:
        return bench_to_init(p, o->qp, IBV_ACCESS_REMOTE_READ, err);
    case BENCH_EXCHANGE:
        return exchange(p, o, port, peer, err);
    case BENCH_RTR:
        return bench_to_rtr(p, o->qp, peer, 1, err);
    case BENCH_RTS:
        return bench_to_rts(o->qp, o->psn, 1, err);
    case BENCH_READY:
        return wait_ready(o, err);
    case BENCH_READ:
        return first_read(p, o, peer, err);
    default:
        return 0;
    }
}

int bench_program_connect(struct bench_program *p, uint16_t port, uint64_t step_ns[BENCH_STEPS],
                          uint8_t peer_gid[16], struct base_errbuf *err)
{
    struct objects o = {.socket = -1};
    struct bench_address peer = {.qpn = 0};
    int status = 0;
    memset(p->buffer, 0, sizeof peer.word);
    uint64_t begin = base_clock_fast_ns(&p->clock);
    for (int step = BENCH_CQ; status == 0 && step < BENCH_STEPS; step++) {
        status = do_step(p, &o, (enum bench_step)step, port, &peer, err);
        uint64_t now = base_clock_fast_ns(&p->clock);
        step_ns[step] = now - begin;
        begin = now;
    }
    give_back(&o);
    memcpy(peer_gid, peer.gid, 16);
    return status;
}

/* One program, with a queue pair that is in INIT already; gone when it closes. */
static int serve_one(struct bench_program *p, struct objects *o, int listen_fd,
                     struct base_errbuf *err)
{
    struct bench_address own, other;
    int one = 1;
    char byte = 'r';
    describe(p, o, &own);
    o->socket = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (o->socket < 0)
        return bench_failed(err, "accepting a connection", errno);
    (void)setsockopt(o->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int status = transfer(o->socket, &other, sizeof other, false);
    if (status == 0)
        status = transfer(o->socket, &own, sizeof own, true);
    if (status != 0)
        return bench_failed(err, "the exchange with the program", -status);
    status = bench_to_rtr(p, o->qp, &other, 1, err);
    if (status != 0)
        return status;
    (void)transfer(o->socket, &byte, 1, true);
    (void)transfer(o->socket, &byte, 1, false); /* until it closes */
    return 0;
}

int bench_program_serve(struct bench_program *p, int listen_fd, int told_fd,
                        struct base_errbuf *err)
{
    static const char prepared[] = "prepared\n";
    struct objects o = {.socket = -1};
    int status = base_random_bytes(p->buffer, sizeof(uint64_t));
    if (status != 0)
        return bench_failed(err, "drawing a random number", -status);
    status = make_cq(p, &o, err);
    if (status == 0)
        status = make_mr(p, &o, err);
    while (status == 0) {
        status = make_qp(p, &o, err);
        if (status == 0)
            status = bench_to_init(p, o.qp, IBV_ACCESS_REMOTE_READ, err);
        if (status == 0 && write(told_fd, prepared, sizeof prepared - 1) < 0)
            status = bench_failed(err, "telling that it is prepared", errno);
        if (status == 0)
            status = serve_one(p, &o, listen_fd, err);
        if (o.socket >= 0)
            close(o.socket);
        if (o.qp != NULL)
            (void)ibv_destroy_qp(o.qp);
        o.socket = -1;
        o.qp = NULL;
    }
    give_back(&o);
    return status;
}
