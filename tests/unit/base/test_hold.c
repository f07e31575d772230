/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "../check_main.h"
#include "../collapse.h"
#include "base/hold.h"

static const size_t HUGE_PAGE = 2u << 20;

START_TEST(nobody_makes_huge_pages_of_what_is_held)
{
    struct iovec map[2];
    int fd[2];
    const int possible = collapse_possible();
    if (possible != 0) {
        printf("skip: huge pages of what is held: %s\n", strerror(-possible));
        return;
    }
    for (int i = 0; i < 2; i++) {
        map[i].iov_len = 8192;
        ck_assert_int_eq(
            base_memfd_new("kedge-test", 8192, BASE_MEMFD_READ, &fd[i], &map[i].iov_base), 0);
    }
    const int hold = base_hold_new(map, 2);
    ck_assert_int_ge(hold, 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_ne(collapse_try(fd[i], 8192), 0);
    close(hold);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(collapse_try(fd[i], 8192), 0);
        munmap(map[i].iov_base, 8192);
        close(fd[i]);
    }
}
END_TEST

START_TEST(as_much_is_held_as_a_pipe_has_room_for)
{
    struct iovec map = {.iov_len = (BASE_HOLD_PAGES + 1) * HUGE_PAGE};
    map.iov_base = mmap(NULL, map.iov_len, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert(map.iov_base != MAP_FAILED);
    ck_assert_int_eq(base_hold_new(&map, 1), -E2BIG);
    map.iov_len = BASE_HOLD_PAGES * HUGE_PAGE;
    const int hold = base_hold_new(&map, 1);
    ck_assert_int_ge(hold, 0);
    close(hold);
    map.iov_len = 0;
    ck_assert_int_eq(base_hold_new(&map, 1), -EINVAL);
    munmap(map.iov_base, (BASE_HOLD_PAGES + 1) * HUGE_PAGE);
}
END_TEST

START_TEST(a_page_of_a_file_that_is_emptied_is_kept_until_the_hold_is_closed)
{
    struct iovec map = {.iov_len = 8192};
    int fd;
    ck_assert_int_eq(base_hold_try(), 0);
    ck_assert_int_eq(base_memfd_new("kedge-test", 8192, BASE_MEMFD_WRITE, &fd, &map.iov_base), 0);
    memset(map.iov_base, 0x5a, map.iov_len);
    const int hold = base_hold_new(&map, 1);
    ck_assert_int_ge(hold, 0);
    char byte = 0;
    ck_assert_int_eq(base_memfd_empty(fd), 0);
    ck_assert_int_eq(*(char *)map.iov_base, 0);
    ck_assert_int_eq(read(hold, &byte, 1), 1); /* the page that was there has it still */
    ck_assert_int_eq(byte, 0x5a);
    close(hold);
    munmap(map.iov_base, map.iov_len);
    close(fd);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(nobody_makes_huge_pages_of_what_is_held)                                                     \
    T(as_much_is_held_as_a_pipe_has_room_for)                                                      \
    T(a_page_of_a_file_that_is_emptied_is_kept_until_the_hold_is_closed)
KEDGE_CHECK_MAIN("holds", TESTS)
