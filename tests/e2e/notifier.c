/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that write and say so, for notify.sh. Not installed. The agent is $KEDGE_SOCKET's.
 *
 *   hear PORT                  has a region of BLOCKS blocks, hears a port, and looks at each
 *                              message whether all blocks have its number; answers it
 *   lists GID PORT REGION N    N times: lists of WRITEs to all blocks, batches, and WRITEs with
 *                              immediate, in turns, each with its number; waits for the answer
 *   owner                      has such a region, and a counter; prints what that says when it has
 *                              changed, until killed. Sleeps in kedge_counter_wait()
 *   poller                     likewise, in poll(), by kedge_arm() and kedge_session_notices()
 *   raise COUNTER REGION N     N lists of WRITEs that raise it, AHEAD of them at a time; prints
 *                              "N raised", or how many were and with what the next one ended
 *   fail COUNTER REGION AT     a list whose WRITE number AT has no region, and one more behind it
 *   forge COUNTER              raises it by the token with another secret
 *
 * Those that are written to print "hears GID", "region TOKEN" and "counter TOKEN" first. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kedge_batch.h>
#include <kedge_notify.h>

#include "base/clock.h"
#include "base/text.h"
#include "schema/counter.h"

enum { BLOCKS = 16, BLOCK = 512, BYTES = BLOCKS * BLOCK, AHEAD = 8, PATIENCE_MS = 20000 };

static struct kedge_session *session;
static struct kedge_session_info info;
static uint8_t *memory; /* AHEAD times BYTES */
static uint32_t lkey;

static _Noreturn void die(const char *what)
{
    printf("%s: %s\n", what, kedge_last_error());
    exit(1);
}

static void must(int status, const char *what)
{
    if (status < 0)
        die(what);
}

static uint32_t number_of(const char *text)
{
    uint64_t n = 0;
    if (base_parse_u64(text, 0, UINT32_MAX, &n) != 0) {
        printf("no number: %s\n", text);
        exit(2);
    }
    return (uint32_t)n;
}

static void begin(void)
{
    void *at;
    must(kedge_open(NULL, &session), "open");
    kedge_session_query(session, &info);
    must(kedge_alloc(session, (size_t)AHEAD * BYTES, &at, &lkey), "memory");
    memory = at;
}

static struct kedge_vqp *new_vqp(void)
{
    struct kedge_vqp *q;
    must(kedge_vqp_create(session, NULL, &q), "queue pair");
    return q;
}

static struct kedge_remote import(const char *token)
{
    struct kedge_remote remote;
    must(kedge_import(session, token, &remote), "import");
    return remote;
}

/* Whom peers write to. */
static void lend(void)
{
    char token[KEDGE_TOKEN_MAX];
    struct kedge_mr *mr;
    must(
        kedge_reg_mr(session, memory, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &mr),
        "region");
    must(kedge_mr_export(mr, token, sizeof token), "token");
    printf("region %s\n", token);
}

/* ---- hearing */

static void check_blocks(uint32_t number)
{
    for (uint32_t i = 0; i < BYTES; i += BLOCK) {
        uint32_t first, last;
        memcpy(&first, memory + i, sizeof first);
        memcpy(&last, memory + i + BLOCK - sizeof last, sizeof last);
        if (first != number || last != number) {
            printf("block %u has %u and %u, and the message says %u\n", i / BLOCK, first, last,
                   number);
            exit(1);
        }
    }
}

static void post_receive(struct kedge_vqp *q, uint64_t wr_id)
{
    struct ibv_recv_wr wr = {.wr_id = wr_id};
    must(kedge_post_recv(q, &wr, NULL), "receive");
}

static void hear(const char *port)
{
    char gid[INET6_ADDRSTRLEN];
    struct kedge_vqp *q = new_vqp();
    must(kedge_bind(q, number_of(port)), "bind");
    for (uint64_t i = 0; i < 8; i++)
        post_receive(q, i);
    lend();
    printf("hears %s\n", inet_ntop(AF_INET6, info.gid, gid, sizeof gid));
    fflush(stdout);
    for (;;) {
        struct kedge_msg m;
        struct ibv_wc wc;
        while (kedge_poll(session, 1, &wc) == 1)
            if (wc.status != IBV_WC_SUCCESS)
                exit(1);
        if (kedge_pop_msgs(session, 1, &m) != 1) {
            must(kedge_wait(session, -1), "wait");
            continue;
        }
        if (m.wc.status != IBV_WC_SUCCESS || (m.wc.wc_flags & IBV_WC_WITH_IMM) == 0 ||
            (m.wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && m.wc.byte_len != BYTES)) {
            printf("a receive ended with %d, opcode %d, %u bytes\n", (int)m.wc.status,
                   (int)m.wc.opcode, m.wc.byte_len);
            exit(1);
        }
        check_blocks(m.wc.imm_data);
        post_receive(q, m.wc.wr_id);
        struct ibv_send_wr answer = {.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = m.wc.imm_data};
        must(kedge_post_send(m.from, &answer, NULL), "answer");
    }
}

/* ---- writing */

/* A list of all blocks at `at`, whose last is to be followed by what is behind it. */
struct list {
    struct ibv_send_wr wr[BLOCKS + 1];
    struct ibv_sge sge[BLOCKS];
};

static void fill(uint8_t *at, uint32_t number)
{
    for (uint32_t i = 0; i < BYTES; i += sizeof number)
        memcpy(at + i, &number, sizeof number);
}

static void make_list(struct list *l, const struct kedge_remote *to, uint8_t *at)
{
    *l = (struct list){.wr[BLOCKS] = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}};
    for (uint32_t i = 0; i < BLOCKS; i++) {
        l->sge[i] =
            (struct ibv_sge){.addr = (uintptr_t)at + i * BLOCK, .length = BLOCK, .lkey = lkey};
        l->wr[i] =
            (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE,
                                 .sg_list = &l->sge[i],
                                 .num_sge = 1,
                                 .wr.rdma = {.remote_addr = to->addr + i * BLOCK, .rkey = to->rkey},
                                 .next = &l->wr[i + 1]};
    }
}

static struct ibv_wc next_completion(void)
{
    struct ibv_wc wc;
    while (kedge_poll(session, 1, &wc) != 1)
        if (kedge_wait(session, PATIENCE_MS) != 1)
            die("no completion");
    return wc;
}

static void expect_well(const char *what, uint64_t wr_id, int opcode)
{
    const struct ibv_wc wc = next_completion();
    if (wc.status == IBV_WC_SUCCESS && wc.wr_id == wr_id && (int)wc.opcode == opcode)
        return;
    printf("%s: %d, %s, request %llu, opcode %d\n", what, (int)wc.status,
           kedge_reason_str(wc.vendor_err), (unsigned long long)wc.wr_id, (int)wc.opcode);
    exit(1);
}

static void write_list(struct kedge_vqp *q, const struct kedge_remote *to, uint32_t number)
{
    struct list l;
    struct ibv_send_wr *bad;
    make_list(&l, to, memory);
    l.wr[BLOCKS].opcode = IBV_WR_SEND_WITH_IMM;
    l.wr[BLOCKS].imm_data = number;
    l.wr[BLOCKS].wr_id = number;
    must(kedge_post_notify(q, l.wr, &bad), "list");
    expect_well("a list", number, IBV_WC_SEND);
}

static void write_one(struct kedge_vqp *q, const struct kedge_remote *to, uint32_t number)
{
    struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = BYTES, .lkey = lkey};
    struct ibv_send_wr wr = {.wr_id = number,
                             .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                             .send_flags = IBV_SEND_SIGNALED,
                             .imm_data = number,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .wr.rdma = {.remote_addr = to->addr, .rkey = to->rkey}};
    must(kedge_post_send(q, &wr, NULL), "WRITE with immediate");
    expect_well("a WRITE with immediate", number, IBV_WC_RDMA_WRITE);
}

static void write_batch(struct kedge_vqp *q, struct kedge_batch *b, uint32_t number)
{
    struct ibv_send_wr last = {.wr_id = number,
                               .opcode = IBV_WR_SEND_WITH_IMM,
                               .send_flags = IBV_SEND_SIGNALED,
                               .imm_data = number};
    must(kedge_batch_post(q, b, 1), "batch");
    must(kedge_post_send(q, &last, NULL), "SEND behind it");
    expect_well("a batch", 1, KEDGE_WC_BATCH);
    expect_well("a SEND behind it", number, IBV_WC_SEND);
}

static struct kedge_batch *prepare(const struct kedge_remote *to)
{
    struct kedge_batch_desc descs[BLOCKS];
    struct kedge_batch *b;
    for (uint32_t i = 0; i < BLOCKS; i++)
        descs[i] = (struct kedge_batch_desc){
            .opcode = IBV_WR_RDMA_WRITE,
            .rkey = to->rkey,
            .local = {.addr = (uintptr_t)memory + i * BLOCK, .length = BLOCK, .lkey = lkey},
            .remote_addr = to->addr + i * BLOCK};
    must(kedge_batch_prepare(session, descs, BLOCKS, &b), "batch");
    return b;
}

static void write_lists(const char *gid_text, const char *port, const char *token, uint32_t count)
{
    uint8_t gid[16];
    struct kedge_vqp *q = new_vqp();
    const struct kedge_remote to = import(token);
    if (inet_pton(AF_INET6, gid_text, gid) != 1)
        exit(2);
    must(kedge_connect_port(q, gid, number_of(port)), "connect");
    struct kedge_batch *b = prepare(&to);
    for (uint32_t i = 0; i < 4; i++)
        post_receive(q, i);
    for (uint32_t number = 1; number <= count; number++) {
        struct kedge_msg m;
        fill(memory, number);
        if (number % 3 == 0)
            write_batch(q, b, number);
        else if (number % 3 == 1)
            write_list(q, &to, number);
        else
            write_one(q, &to, number);
        while (kedge_pop_msgs(session, 1, &m) != 1)
            if (kedge_wait(session, PATIENCE_MS) != 1)
                die("no answer");
        if (m.wc.status != IBV_WC_SUCCESS || m.wc.imm_data != number) {
            printf("the answer to %u has %u\n", number, m.wc.imm_data);
            exit(1);
        }
        post_receive(q, m.wc.wr_id);
    }
    printf("%u were whole\n", count);
}

/* ---- counters */

static struct kedge_counter *show_counter(void)
{
    char text[KEDGE_COUNTER_TOKEN_MAX];
    struct kedge_counter *c;
    lend();
    must(kedge_counter_create(session, &c), "counter");
    must(kedge_counter_export(c, text, sizeof text), "counter's token");
    printf("counter %s\n", text);
    fflush(stdout);
    return c;
}

static void say_value(const struct kedge_counter *c, uint64_t *value)
{
    must(kedge_counter_read(c, value), "counter");
    printf("says %llu\n", (unsigned long long)*value);
    fflush(stdout);
}

static void own(void)
{
    struct kedge_counter *c = show_counter();
    for (uint64_t value = 0;;) {
        must(kedge_counter_wait(c, value + 1, -1), "wait");
        say_value(c, &value);
    }
}

static void own_and_poll(void)
{
    struct kedge_counter *c = show_counter();
    const int fd = kedge_fd(session);
    uint64_t value = 0;
    must(fd, "descriptor");
    must(kedge_session_notices(session), "notices");
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const int armed = kedge_arm(session);
        must(armed, "arm");
        if (armed == 0 && poll(&p, 1, -1) < 0)
            exit(1);
        if ((kedge_session_notices(session) & KEDGE_NOTICE_COUNTER) != 0)
            say_value(c, &value);
    }
}

static struct kedge_vqp *connect_to(const char *counter)
{
    struct kedge_vqp *q = new_vqp();
    must(kedge_connect_counter(q, counter), "connect");
    return q;
}

static void say_end(const struct ibv_wc *wc)
{
    printf("ended with %d as %s: %s\n", (int)wc->status,
           wc->opcode == IBV_WC_RDMA_WRITE ? "a WRITE" : "a SEND",
           kedge_reason_str(wc->vendor_err));
}

static void raise_some(const char *counter, const char *region, uint32_t count)
{
    struct kedge_vqp *q = connect_to(counter);
    const struct kedge_remote to = import(region);
    const uint64_t begun_ns = base_clock_ns();
    uint32_t posted = 0, done = 0;
    while (done < count) {
        for (; posted < count && posted - done < AHEAD; posted++) {
            struct list l;
            struct ibv_send_wr *bad;
            make_list(&l, &to, memory + (size_t)(posted % AHEAD) * BYTES);
            l.wr[BLOCKS].wr_id = posted;
            must(kedge_post_notify(q, l.wr, &bad), "list");
        }
        const struct ibv_wc wc = next_completion();
        if (wc.status != IBV_WC_SUCCESS) {
            printf("%u raised\n", done);
            say_end(&wc);
            printf("after %llu ms\n",
                   (unsigned long long)((base_clock_ns() - begun_ns) / BASE_NS_PER_MS));
            return;
        }
        done++;
        if (done == 200 && count > 1000) { /* one that is to be killed */
            printf("goes on\n");
            fflush(stdout);
        }
    }
    printf("%u raised\n", done);
}

static void fail(const char *counter, const char *region, uint32_t at)
{
    struct kedge_vqp *q = connect_to(counter);
    const struct kedge_remote to = import(region);
    for (int i = 0; i < 2; i++) {
        struct list l;
        struct ibv_send_wr *bad;
        make_list(&l, &to, memory);
        if (i == 0)
            l.wr[at].wr.rdma.remote_addr += 2 * (uint64_t)BYTES;
        l.wr[BLOCKS].wr_id = 70 + (uint64_t)i;
        must(kedge_post_notify(q, l.wr, &bad), "list");
    }
    for (uint64_t i = 0; i < 2; i++) {
        const struct ibv_wc wc = next_completion();
        printf("%llu ", (unsigned long long)wc.wr_id);
        say_end(&wc);
    }
    struct ibv_wc wc;
    if (kedge_wait(session, 200) == 1 && kedge_poll(session, 1, &wc) == 1)
        printf("and one more completion\n");
}

static void forge(const char *counter)
{
    struct schema_counter_token t;
    char text[SCHEMA_COUNTER_TOKEN_TEXT];
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    if (schema_counter_token_parse(counter, &t) != 0)
        exit(2);
    t.secret ^= 1;
    schema_counter_token_format(&t, text);
    must(kedge_post_send(connect_to(text), &wr, NULL), "send");
    const struct ibv_wc wc = next_completion();
    say_end(&wc);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    begin();
    if (strcmp(what, "hear") == 0 && argc == 3)
        hear(argv[2]);
    else if (strcmp(what, "lists") == 0 && argc == 6)
        write_lists(argv[2], argv[3], argv[4], number_of(argv[5]));
    else if (strcmp(what, "owner") == 0)
        own();
    else if (strcmp(what, "poller") == 0)
        own_and_poll();
    else if (strcmp(what, "raise") == 0 && argc == 5)
        raise_some(argv[2], argv[3], number_of(argv[4]));
    else if (strcmp(what, "fail") == 0 && argc == 5)
        fail(argv[2], argv[3], number_of(argv[4]));
    else if (strcmp(what, "forge") == 0 && argc == 3)
        forge(argv[2]);
    else
        return 2;
    kedge_close(session);
    return 0;
}
