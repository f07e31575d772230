/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../check_main.h"
#include "../collapse.h"
#include "base/fds.h"
#include "base/hold.h"
#include "fabric/fabric.h"

static const size_t HUGE_PAGE = 2u << 20;

static bool is_zero(const struct fab_mem *m)
{
    const uint8_t *at = m->addr;
    return at[0] == 0 && memcmp(at, at + 1, m->size - 1) == 0;
}

START_TEST(memory_is_zeroed_sealed_and_of_whole_pages)
{
    struct fab_mem m;
    ck_assert_int_eq(fab_mem_alloc(5000, "mem", &m), 0);
    ck_assert_uint_eq(m.size, 8192);
    ck_assert(is_zero(&m));
    ck_assert(!m.huge);
    ck_assert_int_ne(ftruncate(m.fd, 0), 0);
    ck_assert_int_eq(errno, EPERM);
    fab_mem_free(&m);
    ck_assert_int_eq(fab_mem_alloc(0, "mem", &m), -EINVAL);
}
END_TEST

START_TEST(zeroing_leaves_nothing_and_goes_round_every_mapping)
{
    struct fab_mem m;
    ck_assert_int_eq(fab_mem_alloc(HUGE_PAGE, "mem", &m), 0);
    void *other = mmap(NULL, m.size, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
    ck_assert_ptr_ne(other, MAP_FAILED);
    memset(other, 0x5a, m.size);
    ck_assert_int_eq(fab_mem_zero(&m), 0);
    ck_assert(is_zero(&m));
    ck_assert_int_eq(((uint8_t *)other)[77], 0);
    munmap(other, m.size);
    fab_mem_free(&m);
}
END_TEST

/* That the host has none is played by a file that has become shorter, which nobody can do with one
 * of fab_mem_alloc(). */
START_TEST(zeroing_what_has_holes_that_no_page_is_left_for_is_an_error)
{
    struct fab_mem m = {.size = HUGE_PAGE, .fd = memfd_create("mem", MFD_CLOEXEC)};
    ck_assert_int_eq(ftruncate(m.fd, (off_t)m.size), 0);
    m.addr = mmap(NULL, m.size, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
    ck_assert_ptr_ne(m.addr, MAP_FAILED);
    ck_assert_int_eq(fab_mem_zero(&m), 0);
    ck_assert_int_eq(ftruncate(m.fd, (off_t)m.size / 2), 0);
    ck_assert_int_eq(fab_mem_zero(&m), -ENOMEM);
    fab_mem_free(&m);
}
END_TEST

START_TEST(huge_pages_are_used_where_there_are_some_and_missed_by_nobody_where_not)
{
    struct fab_mem m;
    ck_assert_int_eq(fab_mem_alloc_huge(HUGE_PAGE, "mem", &m), 0);
    if (!m.huge)
        printf("skip: no huge page is free here (/proc/sys/vm/nr_hugepages): only the fallback "
               "was seen\n");
    ck_assert_uint_eq(m.size, HUGE_PAGE);
    ck_assert(is_zero(&m));
    memset(m.addr, 0x5a, m.size);
    ck_assert_int_eq(fab_mem_zero(&m), 0);
    ck_assert(is_zero(&m));
    ck_assert_int_ne(ftruncate(m.fd, 0), 0);
    fab_mem_free(&m);
    ck_assert_int_eq(fab_mem_alloc_huge(4096, "mem", &m), 0);
    ck_assert(!m.huge);
    ck_assert_uint_eq(m.size, 4096);
    fab_mem_free(&m);
}
END_TEST

START_TEST(memory_that_is_unwanted_before_it_is_made_is_not_made)
{
    _Atomic bool unwanted = true;
    struct fab_mem m = {.fd = -1};
    ck_assert_int_eq(fab_mem_alloc_lent(64 * HUGE_PAGE, "mem", false, &unwanted, &m), -ECANCELED);
    ck_assert_int_eq(fab_mem_alloc_lent(64 * HUGE_PAGE, "mem", true, &unwanted, &m), -ECANCELED);
    ck_assert_int_eq(m.fd, -1);
    unwanted = false;
    ck_assert_int_eq(fab_mem_alloc_lent(20 * HUGE_PAGE, "mem", false, &unwanted, &m), 0);
    ck_assert_uint_eq(m.size, 20 * HUGE_PAGE); /* more than one piece */
    ck_assert(is_zero(&m));
    fab_mem_free(&m);
}
END_TEST

/* ---- in pieces: what the linker puts in the place of the calls counts them */

enum { ON_END = 4 /* pieces */ };

static struct {
    off_t most; /* bytes of one call that takes or gives pages */
    uint32_t calls, yields;
    bool sparse; /* it takes none: what is large takes no time, and no memory */
} seen;

int __real_fallocate(int fd, int mode, off_t offset, off_t bytes);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes);
int __wrap_sched_yield(void);

int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    if (seen.sparse)
        return ftruncate(fd, offset + bytes);
    ck_assert_uint_lt(seen.calls, ON_END * (seen.yields + 1));
    if (bytes > seen.most)
        seen.most = bytes;
    const int status = __real_fallocate(fd, mode, offset, bytes);
    seen.calls += status == 0;
    return status;
}

int __wrap_sched_yield(void)
{
    seen.yields++;
    return 0;
}

/* On a busy host each time costs milliseconds, so that they are no more than need be. */
static void look_at_yields(uint32_t pieces)
{
    ck_assert_uint_ge(seen.yields, pieces / ON_END - 1);
    ck_assert_uint_le(seen.yields, pieces / ON_END + 1);
    seen.calls = seen.yields = 0;
}

START_TEST(others_have_the_processor_between_small_pieces_of_what_takes_long)
{
    enum { PIECE = 256 << 10, PIECES = 80 };
    struct fab_mem m;
    memset(&seen, 0, sizeof seen);
    ck_assert_int_eq(fab_mem_alloc((size_t)PIECES * PIECE, "mem", &m), 0);
    ck_assert_uint_eq(seen.calls, PIECES);
    ck_assert_int_le(seen.most, PIECE);
    look_at_yields(PIECES);
    memset(m.addr, 0x5a, m.size);
    ck_assert_int_eq(fab_mem_zero(&m), 0);
    ck_assert(is_zero(&m));
    look_at_yields(PIECES);
    const int file = fab_mem_leave(&m);
    look_at_yields(PIECES);
    ck_assert_int_eq(base_memfd_empty(file), 0);
    ck_assert_uint_ge(seen.yields, PIECES / ON_END - 1);
    ck_assert_uint_eq(seen.calls, PIECES);
    ck_assert_int_le(seen.most, PIECE);
    close(file);
}
END_TEST

/* Another process maps it. */
static uint8_t *lend(const struct fab_mem *m)
{
    uint8_t *other = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    ck_assert(other != MAP_FAILED);
    memset(other, 0x5a, m->size);
    return other;
}

static blkcnt_t blocks_of(const struct fab_mem *m)
{
    struct stat st;
    ck_assert_int_eq(fstat(m->fd, &st), 0);
    return st.st_blocks;
}

static void empty(struct fab_mem *m)
{
    const struct fab_mem left = {.fd = fab_mem_leave(m)};
    ck_assert_ptr_null(m->addr);
    ck_assert_int_eq(base_memfd_empty(left.fd), 0);
    ck_assert_int_eq(blocks_of(&left), 0);
    close(left.fd);
}

START_TEST(memory_that_is_emptied_has_no_pages_left_whoever_maps_it)
{
    struct fab_mem m;
    ck_assert_int_eq(fab_mem_alloc(HUGE_PAGE, "mem", &m), 0);
    uint8_t *other = lend(&m);
    empty(&m);
    ck_assert_int_eq(other[77], 0);
    munmap(other, HUGE_PAGE);
}
END_TEST

/* What a worker is lent: small pages are kept whole, huge ones cannot be. */
START_TEST(memory_that_is_lent_says_whether_others_can_punch_holes_in_it)
{
    struct fab_mem m;
    const int status = base_memfd_try_whole();
    ck_assert_int_eq(fab_mem_alloc_lent(HUGE_PAGE, "mem", false, NULL, &m), 0);
    ck_assert_int_eq(m.whole, status == 0);
    if (status != 0)
        printf("skip: holes in what is lent: %s\n", strerror(-status));
    ck_assert_int_eq(
        __real_fallocate(m.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, HUGE_PAGE),
        m.whole ? -1 : 0);
    uint8_t *other = lend(&m); /* it is mapped all the same, and zeroed */
    ck_assert_int_eq(fab_mem_zero(&m), 0);
    ck_assert(is_zero(&m));
    munmap(other, HUGE_PAGE);
    empty(&m);
}
END_TEST

START_TEST(nobody_makes_huge_pages_of_memory_that_is_lent)
{
    enum { PAGES = 3 };
    struct fab_mem m;
    const int possible = collapse_possible();
    memset(&seen, 0, sizeof seen);
    ck_assert_int_eq(fab_mem_alloc_lent(PAGES * HUGE_PAGE, "mem", false, NULL, &m), 0);
    ck_assert_uint_eq(m.holds, 1);
    const int hold = m.hold[0];
    if (possible != 0)
        printf("skip: huge pages of what is lent: %s\n", strerror(-possible));
    for (int i = 0; possible == 0 && i < PAGES; i++)
        ck_assert_int_ne(collapse_try_at(m.fd, (size_t)i * HUGE_PAGE, m.size), 0);
    empty(&m);
    ck_assert_int_eq(fcntl(hold, F_GETFD), -1);
    memset(&seen, 0, sizeof seen);
    ck_assert_int_eq(fab_mem_alloc_lent(HUGE_PAGE, "mem", false, NULL, &m), 0);
    fab_mem_free(&m);
    ck_assert_int_eq(fcntl(hold, F_GETFD), -1);
}
END_TEST

static bool is_held(const struct fab_mem *m)
{
    char byte;
    return read(m->hold[0], &byte, 1) == 1;
}

START_TEST(memory_that_is_lent_may_move_for_a_while)
{
    struct fab_mem m, plain;
    ck_assert_int_eq(fab_mem_alloc_lent(2 * HUGE_PAGE, "mem", false, NULL, &m), 0);
    const int hold = m.hold[0];
    ck_assert(fab_mem_let_move(&m));
    ck_assert_int_eq(fcntl(hold, F_SETFL, O_NONBLOCK), 0);
    ck_assert(!is_held(&m));
    ck_assert_int_eq(fab_mem_hold_again(&m), 0);
    ck_assert_int_eq(fcntl(hold, F_GETFD), FD_CLOEXEC);
    for (int i = 0; i < 2; i++)
        ck_assert(is_held(&m)); /* one page of each */
    ck_assert(!is_held(&m));
    fab_mem_free(&m);
    ck_assert_int_eq(fcntl(hold, F_GETFD), -1);
    ck_assert_int_eq(fab_mem_alloc(HUGE_PAGE, "mem", &plain), 0);
    ck_assert(!fab_mem_let_move(&plain));
    fab_mem_free(&plain);
}
END_TEST

/* Of what is larger than one pipe has room for too. */
START_TEST(nobody_makes_huge_pages_of_large_memory_that_is_lent)
{
    struct fab_mem m;
    const size_t last = BASE_HOLD_PAGES * HUGE_PAGE;
    const int possible = collapse_possible(), before = dup(0);
    seen.sparse = true;
    ck_assert_int_eq(fab_mem_alloc_lent(last + HUGE_PAGE, "mem", false, NULL, &m), 0);
    seen.sparse = false;
    ck_assert_uint_eq(m.holds, 2);
    ck_assert_int_eq(m.whole, base_memfd_try_whole() == 0);
    if (possible != 0)
        printf("skip: huge pages of large memory that is lent: %s\n", strerror(-possible));
    ck_assert(possible != 0 || collapse_try_at(m.fd, 0, m.size) != 0);
    ck_assert(possible != 0 || collapse_try_at(m.fd, last, m.size) != 0);
    fab_mem_free(&m);
    close(before);
    const int after = dup(0);
    ck_assert_int_eq(after, before); /* nothing is left open */
    close(after);
}
END_TEST

/* There is no descriptor for what holds it. */
START_TEST(others_punch_no_holes_in_memory_that_is_lent_and_cannot_be_held)
{
    struct rlimit before, none;
    struct fab_mem m;
    const int lowest = dup(0);
    close(lowest);
    memset(&seen, 0, sizeof seen);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = (rlim_t)lowest + 1, .rlim_max = before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert_int_eq(fab_mem_alloc_lent(HUGE_PAGE, "mem", false, NULL, &m), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert(!m.whole);
    ck_assert_uint_eq(m.holds, 0);
    if (base_memfd_try_whole() != 0)
        printf("skip: holes in what cannot be held\n");
    else
        ck_assert_int_ne(
            __real_fallocate(m.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, HUGE_PAGE), 0);
    fab_mem_free(&m);
}
END_TEST

/* A host has few of them, and whoever left would have them for as long as he lives. */
START_TEST(huge_pages_that_are_emptied_are_free_for_others_whoever_maps_them)
{
    struct fab_mem m;
    ck_assert_int_eq(fab_mem_alloc_huge(2 * HUGE_PAGE, "mem", &m), 0);
    if (m.huge) {
        uint8_t *other = lend(&m);
        ck_assert_int_gt(blocks_of(&m), 0);
        empty(&m);
        munmap(other, 2 * HUGE_PAGE);
    } else {
        printf("skip: no two huge pages are free here (/proc/sys/vm/nr_hugepages): that they are "
               "emptied was not seen\n");
        fab_mem_free(&m);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(memory_is_zeroed_sealed_and_of_whole_pages)                                                  \
    T(zeroing_leaves_nothing_and_goes_round_every_mapping)                                         \
    T(zeroing_what_has_holes_that_no_page_is_left_for_is_an_error)                                 \
    T(huge_pages_are_used_where_there_are_some_and_missed_by_nobody_where_not)                     \
    T(memory_that_is_unwanted_before_it_is_made_is_not_made)                                       \
    T(others_have_the_processor_between_small_pieces_of_what_takes_long)                           \
    T(memory_that_is_emptied_has_no_pages_left_whoever_maps_it)                                    \
    T(nobody_makes_huge_pages_of_memory_that_is_lent)                                              \
    T(memory_that_is_lent_may_move_for_a_while)                                                    \
    T(nobody_makes_huge_pages_of_large_memory_that_is_lent)                                        \
    T(others_punch_no_holes_in_memory_that_is_lent_and_cannot_be_held)                             \
    T(memory_that_is_lent_says_whether_others_can_punch_holes_in_it)                               \
    T(huge_pages_that_are_emptied_are_free_for_others_whoever_maps_them)

KEDGE_CHECK_MAIN("fabric.mem", TESTS)
