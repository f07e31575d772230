/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a region that another worker exported, several times, and prints its text and how long each
 * step took.
 *
 *   read_region TOKEN */
/* For clock_gettime(), also where the compiler is told a plain standard of C. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <kedge.h>

enum { READS = 8, MAX_BYTES = 4096 };

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* 0; a negated error number, of which kedge_last_error() has the sentence; or 1. */
static int read_once(struct kedge_session *s, struct kedge_vqp *q, const struct kedge_remote *from,
                     struct ibv_sge *sge)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .sg_list = sge,
                             .num_sge = 1,
                             .wr.rdma = {.remote_addr = from->addr, .rkey = from->rkey}};
    struct ibv_send_wr *bad;
    struct ibv_wc wc;
    int status = kedge_post_send(q, &wr, &bad);
    if (status != 0)
        return status;
    do
        status = kedge_poll(s, 1, &wc);
    while (status == 0);
    if (status < 0)
        return status;
    if (wc.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "read_region: the READ failed: %s%s%s\n", kedge_wc_status_str(wc.status),
                wc.vendor_err != 0 ? ": " : "",
                wc.vendor_err != 0 ? kedge_reason_str(wc.vendor_err) : "");
        return 1; /* said already */
    }
    return 0;
}

static int read_remote(struct kedge_session *s, const char *token)
{
    struct kedge_remote from;
    struct kedge_vqp *q;
    struct ibv_sge sge;
    void *memory;
    int status = kedge_import(s, token, &from);
    if (status == 0)
        status = kedge_vqp_create(s, NULL, &q);
    if (status == 0)
        status = kedge_alloc(s, MAX_BYTES, &memory, &sge.lkey);
    if (status != 0)
        return status;
    double begin = now_us();
    status = kedge_connect(q, from.gid);
    if (status != 0)
        return status;
    printf("connect %.2f us, the first in this process\n", now_us() - begin);
    sge.addr = (uintptr_t)memory;
    sge.length = from.length < MAX_BYTES ? (uint32_t)from.length : MAX_BYTES;
    for (int i = 0; i < READS && status == 0; i++) {
        begin = now_us();
        status = read_once(s, q, &from, &sge);
        if (status == 0)
            printf("read %u bytes %.2f us\n", sge.length, now_us() - begin);
    }
    if (status == 0)
        printf("%.*s\n", (int)strnlen(memory, sge.length), (const char *)memory);
    return status;
}

int main(int argc, char **argv)
{
    struct kedge_session *s = NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: read_region TOKEN\n");
        return 2;
    }
    int status = kedge_open(NULL, &s);
    if (status == 0)
        status = read_remote(s, argv[1]);
    if (status < 0)
        fprintf(stderr, "read_region: %s\n", kedge_last_error());
    kedge_close(s);
    return status == 0 ? 0 : 1;
}
