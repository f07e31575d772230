/* SPDX-License-Identifier: Apache-2.0 */
/* A metaserver's own address moves, goes and comes back. The device is the test's, and answers when
 * it wants. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "address_watch.h"
#include "base/clock.h"
#include "fabric/provider.h"

static const uint8_t own_gid[16] = {0xfd, [15] = 7};

static struct {
    struct meta_address_watch watch;
    struct fab fab;
    struct fab_ops ops;
    struct fab_ctl *asked;
    uint32_t moves, waits;
} w;

static void submit(struct fab *fab, struct fab_ctl *ctl)
{
    (void)fab;
    ck_assert_ptr_null(w.asked);
    ck_assert_int_eq(ctl->kind, FAB_QUERY_ADDRESS);
    ck_assert_mem_eq(ctl->address.gid, own_gid, 16);
    w.asked = ctl;
}

static void answer_with(int status, struct fab_own_address now)
{
    struct fab_ctl *ctl = w.asked;
    ck_assert_ptr_nonnull(ctl);
    w.asked = NULL;
    ctl->status = status;
    ctl->address.now = now;
    ctl->done(ctl);
}

static int run(struct fab *fab)
{
    (void)fab;
    return 0;
}

static void wait_for(struct fab *fab)
{
    (void)fab;
    w.waits++;
    answer_with(-ECANCELED, (struct fab_own_address){.has_gid = true, .sgid_index = 9});
}

static void moved(void *user)
{
    ck_assert_ptr_eq(user, &w);
    w.moves++;
}

static void begin(void)
{
    memset(&w, 0, sizeof w);
    w.ops = (struct fab_ops){.submit = submit, .run = run, .wait = wait_for};
    w.fab = (struct fab){.ops = &w.ops, .caps = {.sgid_index = 2, .lid = 5}};
    memcpy(w.fab.caps.gid, own_gid, 16);
    w.watch = (struct meta_address_watch){.fab = &w.fab, .moved = moved, .user = &w};
}

static void sees(bool has_gid, uint8_t index, uint16_t lid)
{
    answer_with(0, (struct fab_own_address){
                       .active = true, .has_gid = has_gid, .sgid_index = index, .lid = lid});
}

static void expect(uint32_t moves, uint8_t index, uint16_t lid)
{
    ck_assert_uint_eq(w.moves, moves);
    ck_assert_uint_eq(w.fab.caps.sgid_index, index);
    ck_assert_uint_eq(w.fab.caps.lid, lid);
}

START_TEST(it_is_asked_for_now_and_then_and_when_there_is_news)
{
    begin();
    meta_address_watch_tick(&w.watch, 10 * BASE_NS_PER_S);
    meta_address_watch_tick(&w.watch, 11 * BASE_NS_PER_S); /* which it is still */
    sees(true, 2, 5);
    expect(0, 2, 5);
    meta_address_watch_tick(&w.watch, 11 * BASE_NS_PER_S);
    ck_assert_ptr_null(w.asked);
    meta_address_watch_tick(&w.watch, 12 * BASE_NS_PER_S);
    meta_address_watch_look(&w.watch); /* news while it is asked for */
    sees(true, 2, 5);
    meta_address_watch_tick(&w.watch, 12 * BASE_NS_PER_S);
    sees(true, 2, 5);
    meta_address_watch_look(&w.watch);
    sees(true, 2, 5);
    expect(0, 2, 5);
}
END_TEST

START_TEST(one_that_moves_is_said_once)
{
    static const struct {
        uint8_t index;
        uint16_t lid;
    } to[] = {{9, 5}, {2, 6}};
    for (unsigned i = 0; i < sizeof to / sizeof to[0]; i++) {
        begin();
        for (int k = 0; k < 2; k++) {
            meta_address_watch_look(&w.watch);
            sees(true, to[i].index, to[i].lid);
            expect(1, to[i].index, to[i].lid);
        }
        ck_assert_mem_eq(w.fab.caps.gid, own_gid, 16);
    }
}
END_TEST

START_TEST(one_that_is_gone_has_moved_when_it_is_back_elsewhere_alone)
{
    begin();
    meta_address_watch_look(&w.watch);
    sees(false, 0, 0);
    expect(0, 2, 5);
    ck_assert(w.watch.gone);
    meta_address_watch_look(&w.watch);
    sees(true, 2, 0); /* the subnet manager has not said its LID yet */
    expect(0, 2, 5);
    ck_assert(!w.watch.gone);
    meta_address_watch_look(&w.watch);
    sees(true, 3, 5);
    expect(1, 3, 5);
}
END_TEST

START_TEST(a_device_that_does_not_say_changes_nothing)
{
    begin();
    meta_address_watch_look(&w.watch);
    answer_with(-EIO, (struct fab_own_address){.sgid_index = 9});
    expect(0, 2, 5);
    ck_assert(!w.watch.gone);
}
END_TEST

START_TEST(the_end_waits_for_what_is_asked_and_hears_nothing_of_it)
{
    begin();
    meta_address_watch_stop(&w.watch);
    ck_assert_uint_eq(w.waits, 0);
    w.watch.stopping = false;
    meta_address_watch_look(&w.watch);
    meta_address_watch_stop(&w.watch);
    ck_assert_uint_eq(w.waits, 1);
    expect(0, 2, 5);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(it_is_asked_for_now_and_then_and_when_there_is_news)                                         \
    T(one_that_moves_is_said_once)                                                                 \
    T(one_that_is_gone_has_moved_when_it_is_back_elsewhere_alone)                                  \
    T(a_device_that_does_not_say_changes_nothing)                                                  \
    T(the_end_waits_for_what_is_asked_and_hears_nothing_of_it)
KEDGE_CHECK_MAIN("metad.address_watch", TESTS)
