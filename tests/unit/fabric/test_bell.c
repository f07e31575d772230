/* SPDX-License-Identifier: Apache-2.0 */
/* A bell is readable from when it is rung until it is heard, and never afterwards: whoever rings
 * while it is heard is heard the next time. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "../check_main.h"
#include "fabric/bell.h"

static bool is_readable(const struct fab_bell *b)
{
    struct pollfd fd = {.fd = b->fd, .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

START_TEST(it_is_readable_until_it_is_heard)
{
    struct fab_bell b;
    ck_assert_int_eq(fab_bell_open(&b), 0);
    ck_assert(!is_readable(&b));
    fab_bell_hear(&b);
    for (int rings = 1; rings <= 3; rings++) {
        for (int i = 0; i < rings; i++)
            fab_bell_ring(&b);
        ck_assert(is_readable(&b));
        fab_bell_hear(&b);
        ck_assert(!is_readable(&b));
    }
    close(b.fd);
}
END_TEST

/* Between its being counted and its being written: there is nothing to hear yet, and it is heard
 * when it is there. */
START_TEST(who_is_counted_and_has_not_written_yet_is_heard_later)
{
    const uint64_t one = 1;
    struct fab_bell b;
    ck_assert_int_eq(fab_bell_open(&b), 0);
    atomic_fetch_add(&b.rung, 1); /* one begins to ring, and another one rings */
    fab_bell_ring(&b);
    fab_bell_hear(&b);
    ck_assert(!is_readable(&b));
    ck_assert_int_eq(write(b.fd, &one, sizeof one), sizeof one);
    ck_assert(is_readable(&b));
    fab_bell_hear(&b);
    ck_assert(!is_readable(&b));
    close(b.fd);
}
END_TEST

enum { RINGERS = 3, TIMES = 20000 };
struct tower {
    struct fab_bell bell;
    _Atomic uint32_t told;
};

static void *ring(void *arg)
{
    struct tower *t = arg;
    for (int i = 0; i < TIMES; i++) {
        atomic_fetch_add(&t->told, 1);
        fab_bell_ring(&t->bell);
    }
    return NULL;
}

START_TEST(nobody_is_missed_of_many_who_ring_at_once)
{
    struct tower t = {.told = 0};
    pthread_t thread[RINGERS];
    uint32_t seen = 0;
    ck_assert_int_eq(fab_bell_open(&t.bell), 0);
    for (int i = 0; i < RINGERS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, ring, &t), 0);
    while (seen < RINGERS * TIMES) { /* asleep when nothing is readable: a lost ring is for ever */
        struct pollfd fd = {.fd = t.bell.fd, .events = POLLIN};
        ck_assert_int_eq(poll(&fd, 1, 10000), 1);
        fab_bell_hear(&t.bell);
        seen = atomic_load(&t.told);
    }
    for (int i = 0; i < RINGERS; i++)
        pthread_join(thread[i], NULL);
    fab_bell_hear(&t.bell);
    ck_assert(!is_readable(&t.bell));
    close(t.bell.fd);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(it_is_readable_until_it_is_heard)                                                            \
    T(who_is_counted_and_has_not_written_yet_is_heard_later)                                       \
    T(nobody_is_missed_of_many_who_ring_at_once)
KEDGE_CHECK_MAIN("fabric.bell", TESTS)
