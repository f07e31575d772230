/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that prepares and posts batches: for batches.sh. Not installed. The agent is
 * $KEDGE_SOCKET's.
 *
 *   kedge-batcher own               prints the token of a region of BYTES, and waits to be killed
 *   kedge-batcher data TOKEN        writes and reads it by batches, and looks at each byte
 *   kedge-batcher cancel TOKEN      cancels one in the middle, and posts it again
 *   kedge-batcher limits TOKEN      what cannot be prepared or posted
 *   kedge-batcher endless TOKEN     posts one after the other, until it is killed
 *
 * BATCHER_ROUNDS is how often the second and, four times as often, the third do so (5).
 *
 * Says what went wrong, and ends with 1, at the first thing that did. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kedge_batch.h>

enum {
    BYTES = 1 << 20,
    PIECE = 64,
    COUNT = BYTES / PIECE,
    WAIT_MS = 60000,
    STRIDE = 7919 /* of descriptors that are in no order: no factor of COUNT */
};

static struct kedge_session *s;
static struct kedge_vqp *q;
static struct kedge_remote remote;
static uint8_t *memory;
static uint32_t lkey;
static struct kedge_batch_desc desc[KEDGE_BATCH_MOST];

static _Noreturn void give_up(const char *what)
{
    printf("%s: %s\n", what, kedge_last_error());
    exit(1);
}

static void expect(int is, const char *what)
{
    if (!is)
        give_up(what);
}

static void open_session(void)
{
    expect(kedge_open(NULL, &s) == 0, "open");
    expect(kedge_alloc(s, 2 * BYTES, (void **)&memory, &lkey) == 0, "alloc");
}

static void reach(const char *token)
{
    open_session();
    expect(kedge_import(s, token, &remote) == 0, "import");
    expect(kedge_vqp_create(s, NULL, &q) == 0, "vqp");
    expect(kedge_connect(q, remote.gid) == 0, "connect");
}

static _Noreturn void own(void)
{
    char text[KEDGE_TOKEN_MAX];
    struct kedge_mr *mr;
    open_session();
    expect(kedge_reg_mr(s, memory, BYTES, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE, &mr) ==
               0,
           "register");
    expect(kedge_mr_export(mr, text, sizeof text) == 0, "export");
    puts(text);
    fflush(stdout);
    for (;;)
        pause();
}

static struct kedge_batch *prepare(enum ibv_wr_opcode opcode, size_t n, uint64_t step,
                                   size_t local_at)
{
    struct kedge_batch *b;
    for (size_t i = 0; i < n; i++) {
        const uint64_t at = i * step % COUNT * PIECE;
        desc[i] = (struct kedge_batch_desc){
            .opcode = opcode,
            .rkey = remote.rkey,
            .local = {.addr = (uintptr_t)memory + local_at + at, .length = PIECE, .lkey = lkey},
            .remote_addr = remote.addr + at};
    }
    if (kedge_batch_prepare(s, desc, n, &b) != 0)
        give_up("prepare");
    memset(desc, 0xff, sizeof desc); /* which is the caller's to do */
    return b;
}

static unsigned rounds(void)
{
    const char *n = getenv("BATCHER_ROUNDS");
    return n != NULL ? (unsigned)strtoul(n, NULL, 10) : 5;
}

static struct ibv_wc finish(uint64_t wr_id)
{
    struct ibv_wc wc;
    int n;
    while ((n = kedge_poll(s, 1, &wc)) == 0)
        expect(kedge_wait(s, WAIT_MS) == 1, "wait");
    expect(n == 1, "poll");
    if (wc.wr_id != wr_id || wc.opcode != KEDGE_WC_BATCH) {
        printf("completion %llu came, of opcode %u\n", (unsigned long long)wc.wr_id, wc.opcode);
        exit(1);
    }
    return wc;
}

static void carry_out(struct kedge_batch *b, uint64_t wr_id, size_t n)
{
    struct kedge_batch_state is;
    expect(kedge_batch_post(q, b, wr_id) == 0, "post");
    const struct ibv_wc wc = finish(wr_id);
    expect(kedge_batch_status(b, &is) == 0, "status");
    if (wc.status == IBV_WC_SUCCESS && !is.posted && is.done == n && is.failed == n)
        return;
    printf("batch %llu: %s, %s, %u of %zu done\n", (unsigned long long)wr_id,
           kedge_wc_status_str(wc.status), kedge_reason_str(wc.vendor_err), is.done, n);
    exit(1);
}

static uint8_t byte_at(size_t i, unsigned round)
{
    return (uint8_t)(i * 31 + i / PIECE * 7 + round * 101);
}

/* In any order, and one that is adjacent: each byte is where it belongs, and none beside. */
static void check_data(uint64_t step)
{
    struct kedge_batch *out = prepare(IBV_WR_RDMA_WRITE, COUNT, step, 0),
                       *back = prepare(IBV_WR_RDMA_READ, COUNT, step, BYTES);
    for (unsigned round = 0; round < rounds(); round++) {
        for (size_t i = 0; i < BYTES; i++)
            memory[i] = byte_at(i, round);
        memset(memory + BYTES, 0, BYTES);
        carry_out(out, 2 * round, COUNT);
        memset(memory, 0xee, BYTES);
        carry_out(back, 2 * round + 1, COUNT);
        for (size_t i = 0; i < BYTES; i++)
            if (memory[BYTES + i] != byte_at(i, round) || memory[i] != 0xee) {
                printf("byte %zu is wrong\n", i);
                exit(1);
            }
    }
    expect(kedge_batch_destroy(out) == 0 && kedge_batch_destroy(back) == 0, "destroy");
}

static int cancel(void)
{
    struct kedge_batch *b = prepare(IBV_WR_RDMA_READ, KEDGE_BATCH_MOST, STRIDE, 0);
    struct kedge_batch_state is;
    unsigned cut = 0;
    for (unsigned i = 0; i < 4 * rounds(); i++) {
        expect(kedge_batch_cancel(b) == 0, "cancel of nothing");
        expect(kedge_batch_post(q, b, i) == 0, "post");
        expect(kedge_batch_post(q, b, i) == -EBUSY, "posted twice");
        expect(kedge_batch_destroy(b) == -EBUSY, "destroyed while posted");
        expect(kedge_batch_cancel(b) == 0, "cancel");
        const struct ibv_wc wc = finish(i);
        expect(kedge_batch_status(b, &is) == 0 && !is.posted, "status");
        if (wc.status == IBV_WC_SUCCESS)
            continue;
        cut++;
        if (wc.status != IBV_WC_WR_FLUSH_ERR || is.done >= is.count || is.failed != is.done ||
            kedge_never_sent(&wc)) {
            printf("cancelled: %s, %u done\n", kedge_wc_status_str(wc.status), is.done);
            return 1;
        }
    }
    carry_out(b, 99, KEDGE_BATCH_MOST); /* the queue pair goes on */
    printf("%u of %u were cancelled in the middle\n", cut, 4 * rounds());
    return 0;
}

static int limits(void)
{
    struct kedge_batch *b[KEDGE_BATCHES + 1], *whole;
    int n = 0, status = 0;
    whole = prepare(IBV_WR_RDMA_READ, 1, 1, 0);
    expect(kedge_batch_destroy(whole) == 0, "destroy");
    expect(kedge_batch_prepare(s, desc, 0, &whole) == -EINVAL, "none");
    expect(kedge_batch_prepare(s, desc, KEDGE_BATCH_MOST + 1, &whole) == -EINVAL, "too many");
    expect(kedge_batch_prepare(s, desc, 10, &whole) == -EINVAL, "nonsense");
    expect(strstr(kedge_last_error(), "descs[0]") != NULL, "which");
    for (; n <= KEDGE_BATCHES && status == 0; n++) {
        desc[0] = (struct kedge_batch_desc){
            .opcode = IBV_WR_RDMA_READ,
            .rkey = remote.rkey,
            .local = {.addr = (uintptr_t)memory, .length = 8, .lkey = lkey},
            .remote_addr = remote.addr};
        status = kedge_batch_prepare(s, desc, 1, &b[n]);
    }
    expect(status == -EDQUOT && n == KEDGE_BATCHES + 1, "33 batches");
    puts(kedge_last_error());
    expect(kedge_batch_destroy(b[7]) == 0, "destroy");
    b[7] = prepare(IBV_WR_RDMA_READ, 1000, 1, 0);
    carry_out(b[7], 1, 1000);
    desc[0] =
        (struct kedge_batch_desc){.opcode = IBV_WR_RDMA_WRITE,
                                  .rkey = remote.rkey + 1,
                                  .local = {.addr = (uintptr_t)memory, .length = 8, .lkey = lkey},
                                  .remote_addr = remote.addr};
    expect(kedge_batch_destroy(b[8]) == 0 && kedge_batch_prepare(s, desc, 1, &b[8]) == 0,
           "wrong key");
    expect(kedge_batch_post(q, b[8], 2) == 0, "post");
    struct kedge_batch_state is;
    const struct ibv_wc wc = finish(2);
    expect(kedge_batch_status(b[8], &is) == 0, "status");
    expect(wc.status == IBV_WC_REM_ACCESS_ERR && is.failed == 0 && is.done == 0 &&
               is.status == wc.status,
           "a key that nobody gave");
    kedge_close(s); /* with all of them */
    return 0;
}

static _Noreturn void endless(void)
{
    struct kedge_batch *b = prepare(IBV_WR_RDMA_WRITE, KEDGE_BATCH_MOST, STRIDE, 0);
    puts("posts");
    fflush(stdout);
    for (uint64_t i = 0;; i++)
        carry_out(b, i, KEDGE_BATCH_MOST);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "own") == 0)
        own();
    if (argc != 3)
        return 2;
    reach(argv[2]);
    if (strcmp(argv[1], "cancel") == 0)
        return cancel();
    if (strcmp(argv[1], "limits") == 0)
        return limits();
    if (strcmp(argv[1], "endless") == 0)
        endless();
    check_data(1);
    check_data(STRIDE);
    kedge_close(s);
    return 0;
}
