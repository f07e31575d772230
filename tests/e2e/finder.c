/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that looks up a region by its name, and the node that has it, again and again, until it
 * is killed: for faults.sh. Not installed. The agent is $KEDGE_SOCKET's.
 *
 *   kedge-finder NAME NODE
 *
 * The region's text is the number of its owner's life. A line each time: "lookup: LIFE", or what
 * became of it instead, and "; node: connected", or "; node: not". It ends with a line that begins
 * with "WENT BACK" when a life is read that is older than one that was read before, or a region is
 * found again that another one of the name has taken the place of and was read. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kedge.h>

enum { PATIENCE_MS = 60000, MOST = 4096, PAUSE_US = 30000, MOST_FORMER = 1024 };

struct finder {
    struct kedge_session *s;
    const char *name, *node;
    char *memory;
    uint32_t lkey;
    bool has_read;
    struct kedge_remote read, former[MOST_FORMER];
    unsigned formers;
    unsigned long long life;
};

static bool is_same(const struct kedge_remote *a, const struct kedge_remote *b)
{
    return memcmp(a->gid, b->gid, sizeof a->gid) == 0 && a->addr == b->addr && a->rkey == b->rkey;
}

static bool was_replaced(const struct finder *f, const struct kedge_remote *found)
{
    for (unsigned i = 0; i < f->formers; i++)
        if (is_same(&f->former[i], found))
            return true;
    return false;
}

/* What is read there is the newest from now on. */
static int note_read(struct finder *f, const struct kedge_remote *found)
{
    const unsigned long long life = strtoull(f->memory, NULL, 10);
    if (life == 0 || life < f->life) {
        printf("WENT BACK: life %s is read after %llu\n", f->memory, f->life);
        return 1;
    }
    if (f->has_read && !is_same(&f->read, found)) {
        if (f->formers == MOST_FORMER) {
            puts("too many regions");
            return 1;
        }
        f->former[f->formers++] = f->read;
    }
    f->has_read = true;
    f->read = *found;
    f->life = life;
    printf("lookup: %llu", life);
    return 0;
}

static int read_region(struct finder *f, struct kedge_vqp *q, const struct kedge_remote *found)
{
    struct ibv_sge to = {
        .addr = (uintptr_t)f->memory, .length = (uint32_t)found->length, .lkey = f->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .sg_list = &to,
                             .num_sge = 1,
                             .wr.rdma = {.remote_addr = found->addr, .rkey = found->rkey}};
    struct ibv_send_wr *bad;
    struct ibv_wc wc;
    memset(f->memory, 0, MOST + 1);
    if (kedge_post_send(q, &wr, &bad) != 0) {
        printf("found, and no READ: %s\n", kedge_last_error());
        return 1;
    }
    const int status = kedge_wait(f->s, PATIENCE_MS);
    if (status != 1 || kedge_poll(f->s, 1, &wc) != 1) {
        printf("found, and no answer to its READ: %s\n", status < 0 ? kedge_last_error() : "");
        return 1;
    }
    if (wc.status == IBV_WC_SUCCESS)
        return note_read(f, found);
    printf("found: %s", kedge_wc_status_str(wc.status));
    return 0;
}

static int find_region(struct finder *f)
{
    struct kedge_remote found;
    struct kedge_vqp *q;
    if (kedge_lookup(f->s, f->name, &found) != 0) {
        printf("lookup: none (%s)", kedge_last_error());
        return 0;
    }
    if (was_replaced(f, &found)) {
        printf("WENT BACK: a region before that of life %llu is found\n", f->life);
        return 1;
    }
    if (found.length > MOST || kedge_vqp_create(f->s, NULL, &q) != 0) {
        puts("no queue pair");
        return 1;
    }
    int status = 0;
    if (kedge_connect(q, found.gid) != 0)
        printf("found: not connected (%s)", kedge_last_error());
    else
        status = read_region(f, q, &found);
    kedge_vqp_destroy(q);
    return status;
}

static int find_node(struct finder *f)
{
    struct kedge_vqp *q;
    if (kedge_vqp_create(f->s, NULL, &q) != 0) {
        puts("; no queue pair");
        return 1;
    }
    if (kedge_connect_node(q, f->node) == 0)
        puts("; node: connected");
    else
        printf("; node: not (%s)\n", kedge_last_error());
    kedge_vqp_destroy(q);
    return 0;
}

int main(int argc, char **argv)
{
    static struct finder f;
    int status = argc == 3 ? 0 : 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (status == 0) {
        f.name = argv[1];
        f.node = argv[2];
    }
    if (status == 0 && (kedge_open(NULL, &f.s) != 0 ||
                        kedge_alloc(f.s, MOST + 1, (void **)&f.memory, &f.lkey) != 0)) {
        printf("not attached: %s\n", kedge_last_error());
        status = 1;
    }
    while (status == 0 && kedge_session_status(f.s) == 0) {
        status = find_region(&f);
        if (status == 0)
            status = find_node(&f);
        usleep(PAUSE_US);
    }
    if (status == 0)
        printf("ended: %s\n", kedge_last_error());
    kedge_close(f.s);
    return 1;
}
