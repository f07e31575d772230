/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided operations, on RC and on DC alike. Each round has bytes of its own, so that a round
 * that did nothing is not taken for one that did. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "bed.h"

enum { SMALL = 8, CHAIN = 16, PIECES = 32 /* at most */ };

/* A round's request, timed; false: the check says why. */
static bool do_round(struct bed *b, const struct bed_path *p, struct probe_check *c,
                     struct bed_wr *w, const char *what, struct bed_times *t)
{
    struct ibv_wc wc;
    probe_bed_address(b, p, w);
    uint64_t start = base_clock_ns();
    int status = probe_bed_do(b, *p->qp, w, &wc);
    uint64_t end = base_clock_ns();
    probe_bed_time(t, end - start);
    return probe_bed_succeeded(c, what, status, &wc);
}

static void wrong_bytes(struct probe_check *c, const char *what, unsigned round)
{
    probe_fail(c, "send this report: the device says that it is done and it is not",
               "%s completed in round %u, but the bytes are not those that were sent", what, round);
}

void probe_bed_try_read(struct bed *b, const struct bed_path *p, struct probe_check *c)
{
    struct bed_times t = {.count = 0};
    struct bed_wr w;
    for (unsigned i = 0; i < BED_ROUNDS; i++) {
        memset(b->far, (int)(i + 1), SMALL);
        memset(b->near, 0, SMALL);
        probe_bed_fill(b, &w, IBV_WR_RDMA_READ, 0, 0, SMALL);
        if (!do_round(b, p, c, &w, "a READ of 8 bytes", &t))
            return;
        if (memcmp(b->near, b->far, SMALL) != 0) {
            wrong_bytes(c, "a READ", i);
            return;
        }
    }
    probe_bed_tell_times(c, "8 bytes", &t);
}

void probe_bed_try_write(struct bed *b, const struct bed_path *p, struct probe_check *c,
                         bool inlined)
{
    struct bed_times t = {.count = 0};
    struct bed_wr w;
    const char *what = inlined ? "an inline WRITE of 8 bytes" : "a WRITE of 8 bytes";
    if (inlined && (*p->qp)->cap.inline_bytes < SMALL) {
        probe_skip(c, "the device has no inline data");
        return;
    }
    for (unsigned i = 0; i < BED_ROUNDS; i++) {
        memset(b->near, (int)(i + 1), SMALL);
        memset(b->far, 0, SMALL);
        probe_bed_fill(b, &w, IBV_WR_RDMA_WRITE, 0, 0, SMALL);
        if (inlined) {
            w.wr.send_flags |= IBV_SEND_INLINE;
            w.sge.addr = (uintptr_t)b->near;
            w.sge.lkey = 0;
        }
        if (!do_round(b, p, c, &w, what, &t))
            return;
        if (memcmp(b->near, b->far, SMALL) != 0) {
            wrong_bytes(c, what, i);
            return;
        }
    }
    probe_bed_tell_times(c, "8 bytes", &t);
}

/* The far number must be what the last round left, and the old one must come back. */
static bool atomic_went_well(struct bed *b, struct probe_check *c, const char *what, uint64_t old,
                             uint64_t new)
{
    uint64_t near, far;
    memcpy(&near, b->near, sizeof near);
    memcpy(&far, b->far, sizeof far);
    if (near == old && far == new)
        return true;
    probe_fail(c, "send this report",
               "%s completed, but gave back 0x%llx and left 0x%llx instead of 0x%llx and 0x%llx",
               what, (unsigned long long)near, (unsigned long long)far, (unsigned long long)old,
               (unsigned long long)new);
    return false;
}

static bool has_atomics(const struct bed *b, const struct bed_path *p, struct probe_check *c)
{
    const struct fab_caps *caps = &b->fab->caps;
    const bool has = p->dct != NULL ? caps->dc_atomics : caps->atomics;
    if (!has)
        probe_skip(c, "the device has no atomics%s", caps->atomics ? " over DC" : "");
    return has;
}

void probe_bed_try_add(struct bed *b, const struct bed_path *p, struct probe_check *c)
{
    struct bed_times t = {.count = 0};
    struct bed_wr w;
    uint64_t number = 0x0102030405060708;
    if (!has_atomics(b, p, c))
        return;
    memcpy(b->far, &number, sizeof number);
    for (unsigned i = 0; i < BED_ROUNDS; i++) {
        probe_bed_fill(b, &w, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, SMALL);
        w.wr.compare_add = i + 3;
        if (!do_round(b, p, c, &w, "a FETCH_ADD", &t) ||
            !atomic_went_well(b, c, "a FETCH_ADD", number, number + i + 3))
            return;
        number += i + 3;
    }
    probe_bed_tell_times(c, "8 bytes", &t);
}

void probe_bed_try_swap(struct bed *b, const struct bed_path *p, struct probe_check *c)
{
    struct bed_times t = {.count = 0};
    struct bed_wr w;
    uint64_t number = 0x1122334455667788;
    if (!has_atomics(b, p, c))
        return;
    memcpy(b->far, &number, sizeof number);
    for (unsigned i = 0; i < BED_ROUNDS; i++) {
        bool hits = i % 2 == 0;
        probe_bed_fill(b, &w, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 0, SMALL);
        w.wr.compare_add = hits ? number : ~number;
        w.wr.swap = number + 1;
        if (!do_round(b, p, c, &w, "a CMP_SWAP", &t) ||
            !atomic_went_well(b, c, "a CMP_SWAP", number, hits ? number + 1 : number))
            return;
        number += hits;
    }
    probe_bed_tell_times(c, "8 bytes, with and without a match", &t);
}

void probe_bed_try_chain(struct bed *b, const struct bed_path *p, struct probe_check *c)
{
    struct bed_wr w[CHAIN];
    struct bed_times t = {.count = 0};
    struct ibv_wc wc;
    for (unsigned round = 0; round < BED_ROUNDS / 4; round++) {
        memset(b->far, 0, CHAIN * SMALL);
        for (unsigned i = 0; i < CHAIN; i++) {
            memset(b->near + i * SMALL, (int)(round + i + 1), SMALL);
            probe_bed_fill(b, &w[i], IBV_WR_RDMA_WRITE, i * SMALL, i * SMALL, SMALL);
            probe_bed_address(b, p, &w[i]);
            w[i].wr.send_flags = i + 1 < CHAIN ? 0 : IBV_SEND_SIGNALED;
            w[i].wr.next = i + 1 < CHAIN ? &w[i + 1].wr : NULL;
        }
        uint64_t start = base_clock_ns();
        int status = probe_bed_post(*p->qp, &w[0]);
        if (status == 0)
            status = probe_bed_wait(b->cq, w[CHAIN - 1].wr.wr_id, b->wait_ns, &wc);
        probe_bed_time(&t, base_clock_ns() - start);
        if (!probe_bed_succeeded(c, "a list of 16 WRITEs", status, &wc))
            return;
        if (memcmp(b->near, b->far, CHAIN * SMALL) != 0) {
            wrong_bytes(c, "a list of 16 WRITEs", round);
            return;
        }
    }
    probe_bed_tell_times(c, "16 WRITEs of 8 bytes with one doorbell and one completion", &t);
}

/* Where byte i of them is: in every other block, backwards. */
static uint32_t piece_byte(uint32_t pieces, uint32_t i)
{
    return 2 * (pieces - 1 - i / SMALL) * SMALL + i % SMALL;
}

/* A READ or WRITE of pieces of two registrations in turn; false: the check says why. */
static bool move_pieces(struct bed *b, const struct bed_path *p, struct probe_check *c, bool reads,
                        const struct fab_mr *other, uint32_t pieces)
{
    struct ibv_sge sge[PIECES];
    struct bed_wr w;
    struct ibv_wc wc;
    char what[32];
    snprintf(what, sizeof what, "a %s of %u pieces", reads ? "READ" : "WRITE", pieces);
    memset(b->near, 0, (size_t)2 * pieces * SMALL);
    memset(b->far, 0, (size_t)pieces * SMALL);
    for (uint32_t i = 0; i < pieces * SMALL; i++)
        *(reads ? &b->far[i] : &b->near[piece_byte(pieces, i)]) = (uint8_t)(i + 1);
    for (uint32_t i = 0; i < pieces; i++) {
        const struct fab_mr *mr = i % 2 == 0 ? b->near_mr : other;
        sge[i] = (struct ibv_sge){
            .addr = mr->addr + piece_byte(pieces, i * SMALL), .length = SMALL, .lkey = mr->lkey};
    }
    probe_bed_fill(b, &w, reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 0, 0, 0);
    probe_bed_address(b, p, &w);
    w.wr.sg_list = sge;
    w.wr.num_sge = (int)pieces;
    const int status = probe_bed_do(b, *p->qp, &w, &wc);
    bool moved = status == 0 && wc.status == IBV_WC_SUCCESS;
    for (uint32_t i = 0; i < pieces * SMALL && moved; i++)
        moved = b->far[i] == (uint8_t)(i + 1) && b->near[piece_byte(pieces, i)] == (uint8_t)(i + 1);
    if (!moved)
        probe_fail(c, "set `merge = no` in [pool], and send this report", "%s %s%s", what,
                   status != 0 ? "failed: " : "completed, with ",
                   status != 0                   ? strerror(-status)
                   : wc.status != IBV_WC_SUCCESS ? probe_bed_wc_name(wc.status)
                                                 : "other bytes than were sent");
    return moved;
}

/* What the lane makes of adjacent requests: as many pieces as it asks for. */
void probe_bed_try_merged(struct bed *b, const struct bed_path *p, struct probe_check *c)
{
    const uint32_t asked = b->settings->most_sge, has = (*p->qp)->cap.send_sge;
    const uint32_t least = asked != 0 && asked < has ? asked : has;
    const uint32_t pieces = least < PIECES ? least : PIECES;
    struct fab_mr *other;
    if (pieces < 2) {
        probe_skip(c, "the device takes one piece of memory in a request");
        return;
    }
    const int status = probe_bed_register(b, &b->mem, 0, BED_HALF, IBV_ACCESS_LOCAL_WRITE, &other);
    if (!probe_bed_succeeded(c, "registering memory a second time", status, NULL))
        return;
    const bool moved =
        move_pieces(b, p, c, false, other, pieces) && move_pieces(b, p, c, true, other, pieces);
    const int gone = probe_bed_deregister(b, other);
    if (!moved || !probe_bed_succeeded(c, "deregistering that memory", gone, NULL))
        return;
    probe_number(c, "pieces", pieces);
    probe_ok(c, "%u pieces of two registrations in one WRITE, and in one READ", pieces);
}
