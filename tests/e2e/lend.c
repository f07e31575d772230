/* SPDX-License-Identifier: Apache-2.0 */
/* Two workers that show whether memory is its owner's own once it was given back. Not installed.
 * The agent is $KEDGE_SOCKET's.
 *
 *   owner ordinary|fenced|lease-only
 *                     lends a region and prints its token; at a line of its input gives it back,
 *                     prints how long that took, and watches the memory; at the end of its input
 *                     prints "untouched", or how many bytes were written there since
 *   writer TOKEN      writes all over that region, with as many requests under way as it may have,
 *                     and connects again after each failure, until it is killed; a line for each
 *                     change of what came */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kedge.h>

#include "base/clock.h"

enum { BYTES = 1 << 20, PIECE = 64 << 10, OUT = 16, OWNERS = 0xa5, WRITERS = 0x5a };

static int fail(const char *what)
{
    printf("%s: %s\n", what, kedge_last_error());
    return 1;
}

static uint64_t ms_since(uint64_t begin)
{
    return (base_clock_ns() - begin) / BASE_NS_PER_MS;
}

/* ---- the owner */

static int give_back(struct kedge_mr *mr)
{
    int status;
    do
        status = kedge_dereg_mr(mr);
    while (status == -ETIMEDOUT);
    return status;
}

static unsigned count_others(const volatile uint8_t *memory)
{
    unsigned others = 0;
    for (int i = 0; i < BYTES; i++)
        others += memory[i] != OWNERS;
    return others;
}

static int owner(struct kedge_session *s, const char *kind)
{
    const int more = strcmp(kind, "fenced") == 0       ? KEDGE_MR_FENCED
                     : strcmp(kind, "lease-only") == 0 ? KEDGE_MR_LEASE_ONLY
                                                       : 0;
    char token[KEDGE_TOKEN_MAX], line[16];
    struct kedge_mr *mr;
    uint8_t *memory;
    uint32_t lkey;
    if (kedge_alloc(s, BYTES, (void **)&memory, &lkey) != 0 ||
        kedge_reg_mr(s, memory, BYTES, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | more,
                     &mr) != 0 ||
        kedge_mr_export(mr, token, sizeof token) != 0)
        return fail("lending");
    puts(token);
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL)
        return 2;
    uint64_t begin = base_clock_ns();
    if (give_back(mr) != 0)
        return fail("giving back");
    memset(memory, OWNERS, BYTES);
    printf("returned in %llu ms\n", (unsigned long long)ms_since(begin));
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL)
        ;
    unsigned others = count_others(memory);
    if (others == 0)
        puts("untouched");
    else
        printf("%u bytes were written there after it was given back\n", others);
    return 0;
}

/* ---- the writer */

struct writer {
    struct kedge_session *s;
    struct kedge_vqp *q;
    struct kedge_remote to;
    struct ibv_sge from;
    uint64_t at;
    unsigned out;
};

static void connect_patiently(struct writer *w)
{
    if (w->q != NULL)
        (void)kedge_vqp_destroy(w->q);
    w->q = NULL;
    w->out = 0;
    while (kedge_vqp_create(w->s, NULL, &w->q) != 0 || kedge_connect(w->q, w->to.gid) != 0) {
        if (w->q != NULL)
            (void)kedge_vqp_destroy(w->q);
        w->q = NULL;
        usleep(10000);
    }
}

static void post_all(struct writer *w)
{
    while (w->out < OUT) {
        struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .sg_list = &w->from,
                                 .num_sge = 1,
                                 .wr.rdma = {.remote_addr = w->to.addr + w->at,
                                             .rkey = w->to.rkey}},
                           *bad;
        if (kedge_post_send(w->q, &wr, &bad) != 0)
            return;
        w->at = (w->at + PIECE) % BYTES;
        w->out++;
    }
}

static int writer(struct kedge_session *s, const char *token)
{
    struct writer w = {.s = s};
    struct ibv_wc wc, last = {.status = IBV_WC_GENERAL_ERR};
    const uint64_t begin = base_clock_ns();
    uint8_t *memory;
    uint32_t lkey;
    if (kedge_import(s, token, &w.to) != 0 || kedge_alloc(s, PIECE, (void **)&memory, &lkey) != 0)
        return fail("beginning");
    memset(memory, WRITERS, PIECE);
    w.from = (struct ibv_sge){.addr = (uintptr_t)memory, .length = PIECE, .lkey = lkey};
    for (connect_patiently(&w);;) {
        post_all(&w);
        if (kedge_wait(s, 1000) < 0 || kedge_session_status(s) != 0)
            return fail("ended");
        while (kedge_poll(s, 1, &wc) == 1) {
            w.out -= w.out > 0;
            if (wc.status != last.status)
                printf("%llu ms: status %d\n", (unsigned long long)ms_since(begin), (int)wc.status);
            fflush(stdout);
            last = wc;
            if (wc.status != IBV_WC_SUCCESS) {
                usleep(20000); /* its guesses are counted */
                connect_patiently(&w);
            }
        }
    }
}

int main(int argc, char **argv)
{
    struct kedge_session *s;
    if (argc != 3 || (strcmp(argv[1], "owner") != 0 && strcmp(argv[1], "writer") != 0))
        return 2;
    if (kedge_open(NULL, &s) != 0)
        return fail("not attached");
    return strcmp(argv[1], "owner") == 0 ? owner(s, argv[2]) : writer(s, argv[2]);
}
