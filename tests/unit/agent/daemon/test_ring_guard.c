/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that takes pages of its ring away. That there is no memory for others is played by a
 * file that has become shorter: the kernel's answer to whoever touches it is the same. */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../check_main.h"
#include "ring_guard.h"

enum { PAGE = 4096, PAGES = 4, BYTES = PAGE * PAGES };

static int new_file(void)
{
    const int fd = memfd_create("ring", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, BYTES), 0);
    return fd;
}

static uint8_t *map_ring(int fd)
{
    uint8_t *ring = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(ring, MAP_FAILED);
    memset(ring, 0x5a, BYTES);
    return ring;
}

static struct ring_guard *guard(void *ring)
{
    struct ring_guard *g;
    ck_assert_int_eq(agentd_ring_guard_new(ring, BYTES, &g), 0);
    ck_assert_ptr_nonnull(g);
    return g;
}

static void touch(const uint8_t *at)
{
    (void)*(const volatile uint8_t *)at;
}

static bool can_be_read(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

START_TEST(pages_that_cannot_be_had_again_are_zeros_and_end_nothing)
{
    agentd_ring_guard_start();
    int fd = new_file();
    uint8_t *ring = map_ring(fd), *other = map_ring(new_file());
    struct ring_guard *g = guard(other), *h = guard(ring);
    ck_assert(!can_be_read(agentd_ring_guard_fd()));
    ck_assert_int_eq(ftruncate(fd, 2 * (off_t)PAGE), 0);
    ck_assert_uint_eq(*(volatile uint8_t *)(ring + PAGE), 0x5a);
    ck_assert_uint_eq(*(volatile uint8_t *)(ring + 3 * PAGE + 7), 0);
    for (int i = 0; i < BYTES; i++) {
        ck_assert_uint_eq(ring[i], 0); /* all of it, from then on */
        ck_assert_uint_eq(other[i], 0x5a);
    }
    ck_assert(can_be_read(agentd_ring_guard_fd()));
    agentd_ring_guard_report();
    ck_assert(!can_be_read(agentd_ring_guard_fd()));
    agentd_ring_guard_drop(h);
    agentd_ring_guard_drop(g);
}
END_TEST

START_TEST(the_next_ring_has_the_guard_of_one_that_went)
{
    agentd_ring_guard_start();
    int fd = new_file();
    uint8_t *ring = map_ring(new_file());
    struct ring_guard *g = guard(ring);
    agentd_ring_guard_drop(g);
    agentd_ring_guard_drop(NULL);
    uint8_t *next = map_ring(fd);
    ck_assert_ptr_eq(guard(next), g);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    touch(next);
    ck_assert_uint_eq(ring[0], 0x5a);
}
END_TEST

static void touch_what_is_no_ring(void)
{
    int fd = new_file();
    uint8_t *ring = map_ring(fd);
    agentd_ring_guard_drop(guard(ring));
    if (ftruncate(fd, 0) == 0)
        touch(ring);
}

static void send_signal(void)
{
    (void)guard(map_ring(new_file()));
    (void)kill(getpid(), SIGBUS);
}

static bool survives(void (*what)(void))
{
    int how;
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        agentd_ring_guard_start();
        what();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    return WIFEXITED(how) && WEXITSTATUS(how) == 0; /* a sanitizer exits with another status */
}

START_TEST(any_other_bus_error_ends_the_process_as_it_did)
{
    ck_assert(!survives(touch_what_is_no_ring));
    ck_assert(!survives(send_signal));
}
END_TEST

START_TEST(a_process_without_the_handler_has_no_guards)
{
    struct ring_guard *g = (struct ring_guard *)&g;
    ck_assert_int_eq(agentd_ring_guard_new(&g, sizeof g, &g), 0);
    ck_assert_ptr_null(g);
    agentd_ring_guard_drop(g);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(pages_that_cannot_be_had_again_are_zeros_and_end_nothing)                                    \
    T(the_next_ring_has_the_guard_of_one_that_went)                                                \
    T(any_other_bus_error_ends_the_process_as_it_did)                                              \
    T(a_process_without_the_handler_has_no_guards)
KEDGE_CHECK_MAIN("agent.daemon.ring_guard", TESTS)
