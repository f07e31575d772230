/* SPDX-License-Identifier: Apache-2.0 */
/* Registering memory that workers are lent, of which a pipe holds pages: a kernel that has to move
 * them first (ZONE_MOVABLE, CMA) cannot, and says ENOMEM. */
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "../check_main.h"

#include "dc_bed.h"
#include "verbs/objects.h"

enum { BYTES = 4 << 20 };

static struct fab_mem mem;
static struct ibv_mr pinned;
static unsigned asked; /* the kernel was */
static bool movable;   /* what is there has to be moved before it is pinned */
static bool poor;      /* there is no memory left in any case */

/* A page of it is in the pipe: which is looked at, and not taken. */
static bool is_held(void)
{
    int bytes = 0;
    return mem.holds > 0 && ioctl(mem.hold[0], FIONREAD, &bytes) == 0 && bytes > 0;
}

struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                       unsigned access);

struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                       unsigned access)
{
    (void)pd, (void)addr, (void)length, (void)iova, (void)access;
    asked++;
    if (!poor && !(movable && is_held()))
        return &pinned;
    errno = ENOMEM;
    return NULL;
}

static struct fab_ctl registration(struct dc_bed *b, size_t length)
{
    return (struct fab_ctl){
        .kind = FAB_REG_MR,
        .mr = {
            .pd = &b->vpd.base, .mem = &mem, .length = length, .access = IBV_ACCESS_LOCAL_WRITE}};
}

static void begin(struct dc_bed *b)
{
    asked = 0;
    movable = poor = false;
    dc_bed_open(b);
    ck_assert_int_eq(fab_mem_alloc_lent(BYTES, "mem", false, NULL, &mem), 0);
    ck_assert(is_held());
}

static void end(struct dc_bed *b, struct fab_mr *mr)
{
    if (mr != NULL) {
        atomic_fetch_sub(&b->vpd.users, 1);
        free(mr);
    }
    fab_mem_free(&mem);
    dc_bed_close(b);
}

START_TEST(held_memory_that_must_move_is_let_go_registered_and_held_again)
{
    struct dc_bed b;
    begin(&b);
    movable = true;
    struct fab_ctl ctl = registration(&b, BYTES);
    ck_assert_int_eq(verbs_mr_register(&ctl), 0);
    ck_assert_uint_eq(asked, 2);
    ck_assert(is_held());
    end(&b, ctl.mr.x);
}
END_TEST

START_TEST(a_want_of_memory_is_told_and_leaves_it_held)
{
    struct dc_bed b;
    begin(&b);
    poor = true;
    struct fab_ctl ctl = registration(&b, BYTES);
    ck_assert_int_eq(verbs_mr_register(&ctl), -ENOMEM);
    ck_assert(is_held());
    end(&b, NULL);
}
END_TEST

/* The whole is registered then, by which it is where it can stay. */
START_TEST(memory_of_which_a_part_is_registered_stays_held)
{
    struct dc_bed b;
    begin(&b);
    movable = true;
    struct fab_ctl ctl = registration(&b, BYTES / 2);
    ck_assert_int_eq(verbs_mr_register(&ctl), -ENOMEM);
    ck_assert_uint_eq(asked, 1);
    ck_assert(is_held());
    end(&b, NULL);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(held_memory_that_must_move_is_let_go_registered_and_held_again)                              \
    T(a_want_of_memory_is_told_and_leaves_it_held)                                                 \
    T(memory_of_which_a_part_is_registered_stays_held)
KEDGE_CHECK_MAIN("fabric.verbs_memory", TESTS)
