/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that go, and those that stay behind. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kedge.h>

#include "base/clock.h"
#include "hostile.h"
#include "schema/record.h"

enum {
    CHILD_MS = 300,
    MEMORY = 65536,
    ARENAS_KEPT = 32, /* more than arenas_ahead */
    LEFT_MOST = 400,  /* two descriptors each */
    TAKEN_MS = 20000, /* the agent has so long to take the last one's memory back */
};

/* Keeps what it maps, scribbles, and looks for others' bytes. */
static _Noreturn void stay_behind(struct hostile *h, struct raw *r)
{
    h->until_ns = base_clock_ns() + CHILD_MS * BASE_NS_PER_MS;
    for (h->did = 1; !hostile_over(h); h->did++) {
        hostile_fill(h, r->rw, sizeof *r->rw);
        hostile_fill(h, r->ring, 4096);
        raw_ring(r);
        hostile_look_for_secret(r->arena, r->arena_bytes);
        memset(r->arena, HOSTILE_STAIN, r->arena_bytes);
    }
    _exit(0);
}

/* What was scribbled into memory that waits for its tenant's next workers goes when it is given
 * back once more: the next attack does not know of it. */
static void take_all_once(struct hostile *h)
{
    struct raw r[ARENAS_KEPT];
    for (int i = 0; i < ARENAS_KEPT; i++)
        raw_open(h, &r[i]);
    for (int i = 0; i < ARENAS_KEPT; i++)
        raw_close(&r[i]);
}

void attack_accomplice(struct hostile *h)
{
    h->stained = true;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    while (!hostile_over(h)) {
        pid_t first = fork();
        if (first == 0) { /* attaches, forks, goes; what is left is a process without a session */
            struct raw r;
            raw_open(h, &r);
            (void)raw_connect(&r);
            pid_t second = fork();
            if (second == 0)
                stay_behind(h, &r);
            _exit(second > 0 ? 0 : 1);
        }
        int status = 1;
        if (first < 0 || waitpid(first, &status, 0) != first || status != 0)
            hostile_fail("a child failed (status %d)", status);
        h->did++;
        usleep(5000);
    }
    while (waitpid(-1, NULL, 0) > 0) /* whoever still scribbles */
        ;
    take_all_once(h);
}

/* The rings' pages that it still keeps somebody from having, in bytes. */
static uint64_t bytes_kept(const struct raw *kept, uint32_t count)
{
    static const int RINGS[] = {SCHEMA_FD_RW, SCHEMA_FD_RO};
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof RINGS / sizeof RINGS[0]; k++) {
            struct stat st;
            if (fstat(kept[i].fd[RINGS[k]], &st) != 0)
                hostile_fail("fstat: %s", strerror(errno));
            bytes += (uint64_t)st.st_blocks * 512;
        }
    return bytes;
}

/* Its sessions are over, and what they had is nobody's: it must be the host's again. */
void attack_leaver(struct hostile *h)
{
    static struct raw kept[LEFT_MOST];
    uint32_t count = 0;
    do {
        raw_open(h, &kept[count]);
        (void)raw_connect(&kept[count]);
        close(kept[count].socket);
        close(kept[count].fd[SCHEMA_FD_DOORBELL]);
        close(kept[count].fd[SCHEMA_FD_PEERS]);
        close(kept[count].fd[SCHEMA_FD_ARENA]);
        munmap((void *)(uintptr_t)kept[count].peers, kept[count].peers_bytes);
        munmap(kept[count].arena, kept[count].arena_bytes);
        count++;
        h->did++;
    } while (!hostile_over(h) && count < LEFT_MOST);
    const uint64_t end = base_clock_ns() + TAKEN_MS * BASE_NS_PER_MS;
    while (bytes_kept(kept, count) > 0 && base_clock_ns() < end)
        usleep(1000);
    if (bytes_kept(kept, count) > 0)
        hostile_fail("%llu bytes of %u sessions that are over stay allocated",
                     (unsigned long long)bytes_kept(kept, count), count);
    for (uint32_t i = 0; i < count; i++) {
        if (atomic_load(&kept[i].ro->magic) != 0 || atomic_load(&kept[i].rw->sq_tail) != 0)
            hostile_fail("memory that was taken back is not zeros");
        munmap(kept[i].rw, kept[i].rw_bytes);
        munmap((void *)(uintptr_t)kept[i].ro, kept[i].ro_bytes);
        close(kept[i].fd[SCHEMA_FD_RW]);
        close(kept[i].fd[SCHEMA_FD_RO]);
    }
}

/* What it leaves can be nobody's until the lease of its region is over, and it comes again at once.
 */
void attack_quitter(struct hostile *h)
{
    while (!hostile_over(h)) {
        struct raw r;
        const int status = raw_try(h->socket, &r);
        if (status != 0) {
            if (status != -EAGAIN && status != -EDQUOT)
                hostile_fail("attaching: %s", strerror(-status));
            h->errors++;
            usleep(1000);
            continue;
        }
        struct schema_sq_desc reg = {
            .op = SCHEMA_OP_REG_MR,
            .reg_mr = {.length = r.arena_bytes / 2, .access = SCHEMA_RECORD_READ}};
        if (raw_ask(&r, &reg, NULL) != 0)
            hostile_fail("registering own memory failed");
        raw_close(&r);
        h->did++;
    }
}

/* All that a worker can do, over and over. */
static _Noreturn void work(const struct hostile *h)
{
    const struct kedge_open_attr attr = {.socket = h->socket};
    for (;;) {
        struct kedge_session *s;
        struct kedge_session_info info;
        struct kedge_mr *mr;
        struct kedge_vqp *q;
        struct ibv_send_wr *bad;
        struct ibv_wc wc[16];
        struct ibv_sge sge;
        void *memory;
        char token[KEDGE_TOKEN_MAX];
        if (kedge_open(&attr, &s) != 0)
            continue;
        kedge_session_query(s, &info);
        if (kedge_alloc(s, MEMORY, &memory, &sge.lkey) == 0 &&
            kedge_reg_mr(s, memory, MEMORY / 2, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
                         &mr) == 0 &&
            kedge_mr_export(mr, token, sizeof token) == 0 && kedge_vqp_create(s, NULL, &q) == 0 &&
            kedge_connect(q, info.gid) == 0) {
            sge.addr = (uintptr_t)memory + MEMORY / 2;
            sge.length = MEMORY / 2;
            struct ibv_send_wr wr = {
                .opcode = IBV_WR_RDMA_WRITE,
                .send_flags = IBV_SEND_SIGNALED,
                .sg_list = &sge,
                .num_sge = 1,
                .wr.rdma = {.remote_addr = (uintptr_t)memory, .rkey = kedge_mr_rkey(mr)}};
            for (int i = 0; i < 100; i++) {
                (void)kedge_post_send(q, &wr, &bad);
                (void)kedge_poll(s, 16, wc);
            }
            (void)kedge_dereg_mr(mr);
        }
        kedge_close(s);
    }
}

void attack_dies(struct hostile *h)
{
    while (!hostile_over(h)) {
        pid_t pid = fork();
        if (pid == 0)
            work(h);
        if (pid < 0)
            hostile_fail("no child");
        usleep((useconds_t)(hostile_random(h) % 4000));
        kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        h->did++;
    }
}
