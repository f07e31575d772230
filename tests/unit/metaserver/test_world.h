/* SPDX-License-Identifier: Apache-2.0 */
/* A metaserver's world for tests: a wall clock that the test sets, a seeded generator, the log on
 * stderr, and a store that takes its time (store_late.h): test_world_settle() lets it come to an
 * end. */
#ifndef TESTS_UNIT_METASERVER_TEST_WORLD_H
#define TESTS_UNIT_METASERVER_TEST_WORLD_H

#include <string.h>

#include "base/random.h"
#include "metaserver/service.h"
#include "metaserver/store_late.h"
#include "metaserver/world.h"

struct test_world {
    struct meta_world base;
    uint64_t wall_ms;
    struct base_prng prng;
    struct meta_store_late store;
    int fail; /* the errno of the next random bytes; 0: they come */
};

static uint64_t test_world_wall(struct meta_world *w)
{
    return ((struct test_world *)w)->wall_ms;
}

static int test_world_random(struct meta_world *w, void *bytes, size_t n)
{
    struct test_world *t = (struct test_world *)w;
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)base_prng_next(&t->prng);
    return -t->fail;
}

static void test_world_log(struct meta_world *w, enum base_log_level level, const char *event,
                           const char *format, va_list args)
{
    (void)w;
    base_log_v(level, event, format, args);
}

static void test_world_submit(struct meta_world *w, struct meta_store_job *job)
{
    meta_store_late_submit(&((struct test_world *)w)->store, job);
}

static inline void test_world_init(struct test_world *t, struct meta_store *store)
{
    static const struct meta_world_ops ops = {test_world_wall, test_world_random, test_world_log,
                                              test_world_submit};
    *t = (struct test_world){.base.ops = &ops};
    base_prng_seed(&t->prng, 1);
    meta_store_late_init(&t->store, store, 1);
}

/* Until nothing is with the store, or waits for it. */
static inline void test_world_settle(struct test_world *t, struct meta_service *s, uint64_t now)
{
    for (meta_service_advance(s, now); s->writes.first != NULL; meta_service_advance(s, now))
        meta_store_late_step(&t->store);
}

#endif
