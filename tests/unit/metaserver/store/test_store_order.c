/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver has done and what it hears, as one sequence. */
#include "metaserver/store_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"

static struct meta_store_order order;
static struct meta_store_job jobs[4];
static char told[256]; /* "news 5, job 6": in the order in which it was told */

static void tell(const char *what, uint64_t at)
{
    const size_t used = strlen(told);
    snprintf(told + used, sizeof told - used, "%s%s %d", used > 0 ? ", " : "", what, (int)at);
}

static void on_heard(void *user, const struct meta_store_heard *heard)
{
    (void)user;
    tell(heard->kind == META_STORE_HEARD_SNAPSHOT ? "snapshot" : "news", heard->at);
}

static void on_done(struct meta_store_job *job)
{
    tell("job", job->outcome.at);
}

static void setup_order(void)
{
    told[0] = '\0';
    memset(jobs, 0, sizeof jobs);
    meta_store_order_init(&order, on_heard, NULL);
}

static void teardown_order(void)
{
    meta_store_order_fini(&order);
}

static void begin_job(int i)
{
    jobs[i].done = on_done;
    meta_store_order_add(&order, &jobs[i]);
}

/* The store is done with it. */
static void end_job(int i, uint64_t at)
{
    jobs[i].outcome.at = at;
    jobs[i].done(&jobs[i]);
}

static void hear(enum meta_store_heard_kind kind, uint64_t at)
{
    struct meta_store_heard *h = calloc(1, sizeof *h);
    ck_assert_ptr_nonnull(h);
    h->kind = kind;
    h->at = at;
    meta_store_order_put(&order, h);
}

static void run_order(uint64_t now)
{
    while (meta_store_order_run(&order, now))
        ;
}

START_TEST(what_was_done_is_told_between_what_came_before_and_what_came_behind)
{
    setup_order();
    begin_job(0);
    hear(META_STORE_HEARD_NEWS, 4);
    run_order(1);
    ck_assert_str_eq(told, ""); /* the job may have come before */
    end_job(0, 5);
    hear(META_STORE_HEARD_NEWS, 5);
    hear(META_STORE_HEARD_NEWS, 6);
    run_order(1);
    ck_assert_str_eq(told, "news 4, job 5, news 6");
    teardown_order();
}
END_TEST

START_TEST(what_the_store_does_not_say_is_waited_for_no_longer_than_that)
{
    setup_order();
    begin_job(0);
    end_job(0, 5);
    hear(META_STORE_HEARD_NEWS, 4);
    run_order(1);
    run_order(META_STORE_ORDER_NS);
    ck_assert_str_eq(told, "news 4");
    run_order(1 + META_STORE_ORDER_NS);
    ck_assert_str_eq(told, "news 4, job 5");
    teardown_order();
}
END_TEST

/* It was done to what the store held before: whoever applies it behind the snapshot has what is
 * not there. */
START_TEST(what_was_done_to_a_store_that_was_put_back_is_told_before_what_it_holds_now)
{
    setup_order();
    hear(META_STORE_HEARD_SNAPSHOT, 8);
    run_order(1);
    begin_job(0);
    begin_job(1);
    end_job(0, 10);
    end_job(1, 12);
    hear(META_STORE_HEARD_SNAPSHOT, 3);
    hear(META_STORE_HEARD_NEWS, 4);
    run_order(1);
    ck_assert_str_eq(told, "snapshot 8, job 10, job 12, snapshot 3, news 4");
    begin_job(2);
    end_job(2, 5);
    hear(META_STORE_HEARD_NEWS, 5);
    run_order(1);
    ck_assert_str_eq(told + strlen(told) - strlen("news 4, job 5"), "news 4, job 5");
    teardown_order();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_was_done_is_told_between_what_came_before_and_what_came_behind)                         \
    T(what_the_store_does_not_say_is_waited_for_no_longer_than_that)                               \
    T(what_was_done_to_a_store_that_was_put_back_is_told_before_what_it_holds_now)
KEDGE_CHECK_MAIN("metaserver store order", TESTS)
