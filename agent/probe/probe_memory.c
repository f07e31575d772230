/* SPDX-License-Identifier: Apache-2.0 */
/* What registering costs, against copying; and what a registration goes on pinning. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bed.h"

enum { SIZES = 7, LARGEST = 16 << 20, ROUNDS = 7, ROUNDS_LARGE = 3, LARGE = 1 << 20, HOLE = 65536 };

static const struct {
    uint32_t bytes;
    const char *reg_name, *copy_name;
} sizes[SIZES] = {{4 << 10, "register_4KiB_ns", "copy_4KiB_ns"},
                  {16 << 10, "register_16KiB_ns", "copy_16KiB_ns"},
                  {64 << 10, "register_64KiB_ns", "copy_64KiB_ns"},
                  {256 << 10, "register_256KiB_ns", "copy_256KiB_ns"},
                  {1 << 20, "register_1MiB_ns", "copy_1MiB_ns"},
                  {4 << 20, "register_4MiB_ns", "copy_4MiB_ns"},
                  {16 << 20, "register_16MiB_ns", "copy_16MiB_ns"}};

/* Both medians for one size. */
static int measure_size(struct bed *b, struct fab_mem mem[2], uint32_t bytes, uint64_t *reg_ns,
                        uint64_t *copy_ns)
{
    struct bed_times reg = {.count = 0}, copy = {.count = 0};
    const unsigned rounds = bytes >= LARGE ? ROUNDS_LARGE : ROUNDS;
    for (unsigned i = 0; i < rounds; i++) {
        struct fab_mr *mr;
        uint64_t start = base_clock_ns();
        int status = probe_bed_register(b, &mem[0], 0, bytes, probe_bed_access(b), &mr);
        if (status == 0)
            status = probe_bed_deregister(b, mr);
        if (status != 0)
            return status;
        uint64_t end = base_clock_ns();
        probe_bed_time(&reg, end - start);
        memcpy(mem[1].addr, mem[0].addr, bytes);
        probe_bed_time(&copy, base_clock_ns() - end);
    }
    *reg_ns = probe_bed_median(&reg);
    *copy_ns = probe_bed_median(&copy);
    return 0;
}

static void check_registration(struct bed *b, struct probe_check *c)
{
    struct fab_mem mem[2] = {{.fd = -1}, {.fd = -1}};
    uint64_t reg = 0, copy = 0;
    uint32_t threshold = 0; /* from here on registering was cheaper each time */
    char size[PROBE_DURATION], reg_text[PROBE_DURATION], copy_text[PROBE_DURATION];
    int status = fab_mem_alloc(LARGEST, "kedge-probe-a", &mem[0]);
    if (status == 0)
        status = fab_mem_alloc(LARGEST, "kedge-probe-b", &mem[1]);
    if (probe_bed_succeeded(c, "getting 2 x 16 MiB of memory", status, NULL)) {
        memset(mem[0].addr, 1, LARGEST);
        memset(mem[1].addr, 2, LARGEST);
    }
    for (int i = 0; i < SIZES && status == 0; i++) {
        status = measure_size(b, mem, sizes[i].bytes, &reg, &copy);
        if (status == 0) {
            probe_number(c, sizes[i].reg_name, reg);
            probe_number(c, sizes[i].copy_name, copy);
            threshold = reg >= copy ? 0 : threshold != 0 ? threshold : sizes[i].bytes;
        } else {
            snprintf(reg_text, sizeof reg_text, "%s", probe_size(sizes[i].bytes, size));
            char what[80];
            snprintf(what, sizeof what, "registering %s", reg_text);
            (void)probe_bed_succeeded(c, what, status, NULL);
        }
    }
    if (!b->report->stuck) {
        fab_mem_free(&mem[0]);
        fab_mem_free(&mem[1]);
    }
    if (status != 0)
        return;
    probe_number(c, "cheaper_from_bytes", threshold);
    probe_duration(reg, reg_text);
    probe_duration(copy, copy_text);
    if (threshold != 0)
        probe_ok(c,
                 "registering and deregistering is cheaper than copying from %s on (16 MiB: %s "
                 "against %s)",
                 probe_size(threshold, size), reg_text, copy_text);
    else
        probe_ok(c,
                 "registering and deregistering is never cheaper than copying up to 16 MiB (there: "
                 "%s against %s)",
                 reg_text, copy_text);
}

void probe_registration(struct bed *b)
{
    static const struct bed_case cases[] = {{"registering", PROBE_FOR_NOTHING, check_registration}};
    probe_bed_run(b, cases, 1);
}

/* ---- punched holes */

static int read_back(struct bed *b, const struct fab_mr *mr, struct ibv_wc *wc)
{
    struct bed_steps steps;
    struct bed_wr w;
    int status = probe_bed_raise_pair(b, b->rc, false, &steps);
    if (status != 0)
        return status;
    probe_bed_fill(b, &w, IBV_WR_RDMA_READ, 0, 0, HOLE);
    w.wr.key.rkey = mr->rkey;
    w.wr.remote_addr = mr->addr;
    memset(b->near, 0x11, HOLE);
    return probe_bed_do(b, b->rc[0], &w, wc);
}

static void holes_in(struct bed *b, struct probe_check *c, struct fab_mem *mem,
                     const struct fab_mr *mr)
{
    struct ibv_wc wc;
    if (fallocate(mem->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, HOLE) != 0) {
        probe_skip(c, "this kernel punches no holes here: %s", strerror(errno));
        return;
    }
    memset(mem->addr, 0, HOLE); /* as a careful owner would */
    int status = read_back(b, mr, &wc);
    if (!probe_bed_succeeded(c, "a READ of memory that was punched", status, &wc))
        return;
    uint64_t old = 0;
    for (uint32_t i = 0; i < HOLE; i++)
        old += b->near[i] == 0xa5;
    probe_number(c, "bytes", HOLE);
    probe_number(c, "old_bytes", old);
    if (old != 0)
        probe_ok(c,
                 "memory that was punched and zeroed is still READ with its old bytes, since the "
                 "registration pins the old pages: so Kedge deregisters memory before it changes "
                 "hands, and does not rely on zeroing");
    else
        probe_ok(c, "memory that was punched and zeroed is READ as zeroes here; Kedge deregisters "
                    "memory before it changes hands all the same");
}

static void check_holes(struct bed *b, struct probe_check *c)
{
    struct fab_mem mem = {.fd = -1};
    struct fab_mr *mr = NULL;
    if (!b->rc_connects) {
        probe_skip(c, "not tried: queue pairs cannot be connected (rc.connect)");
        return;
    }
    int status = fab_mem_alloc(HOLE, "kedge-probe-hole", &mem);
    if (status == 0) {
        memset(mem.addr, 0xa5, HOLE);
        status = probe_bed_register(b, &mem, 0, HOLE, probe_bed_access(b), &mr);
    }
    if (probe_bed_succeeded(c, "registering 64 KiB", status, NULL))
        holes_in(b, c, &mem, mr);
    if (mr != NULL)
        status = probe_bed_deregister(b, mr);
    if (mr == NULL || status == 0)
        fab_mem_free(&mem);
}

void probe_holes(struct bed *b)
{
    static const struct bed_case cases[] = {{"punched holes", PROBE_FOR_NOTHING, check_holes}};
    probe_bed_run(b, cases, 1);
}
