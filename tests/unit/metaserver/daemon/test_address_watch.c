/* SPDX-License-Identifier: Apache-2.0 */
/* A metaserver's own address, and its P_Key, move, go and come back. The device is the test's, and
 * answers when it wants. */
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
    struct fab_pd pd;
    struct fab_ctl *asked;
    uint32_t moves, waits, news;
} w;

static void submit(struct fab *fab, struct fab_ctl *ctl)
{
    (void)fab;
    ck_assert_ptr_null(w.asked);
    if (ctl->kind == FAB_QUERY_PKEY) {
        ck_assert_uint_eq(ctl->pkey.pkey, w.pd.pkey);
    } else {
        ck_assert_int_eq(ctl->kind, FAB_QUERY_ADDRESS);
        ck_assert_mem_eq(ctl->address.gid, own_gid, 16);
    }
    w.asked = ctl;
}

static void answer_with(int status, struct fab_own_address now)
{
    struct fab_ctl *ctl = w.asked;
    ck_assert_ptr_nonnull(ctl);
    ck_assert_int_eq(ctl->kind, FAB_QUERY_ADDRESS);
    w.asked = NULL;
    ctl->status = status;
    ctl->address.now = now;
    ctl->done(ctl);
}

/* The table has it there; -1: not at all. */
static void find_pkey(int index)
{
    struct fab_ctl *ctl = w.asked;
    ck_assert_ptr_nonnull(ctl);
    ck_assert_int_eq(ctl->kind, FAB_QUERY_PKEY);
    w.asked = NULL;
    ctl->status = 0;
    ctl->pkey.there = index >= 0;
    ctl->pkey.index = (uint16_t)(index >= 0 ? index : 0);
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

static void news(void *user)
{
    ck_assert_ptr_eq(user, &w);
    w.news++;
}

static void begin(void)
{
    memset(&w, 0, sizeof w);
    w.ops = (struct fab_ops){.submit = submit, .run = run, .wait = wait_for};
    w.fab = (struct fab){.ops = &w.ops, .caps = {.sgid_index = 2, .lid = 5}};
    memcpy(w.fab.caps.gid, own_gid, 16);
    w.watch = (struct meta_address_watch){.fab = &w.fab, .moved = moved, .news = news, .user = &w};
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

static void begin_with_pkey(void)
{
    begin();
    w.pd = (struct fab_pd){.fab = &w.fab, .service.pkey_index = 3, .pkey = 0x8001};
    w.watch.pd = &w.pd;
}

static void look_and_find(int index)
{
    meta_address_watch_look(&w.watch);
    sees(true, 2, 5);
    find_pkey(index);
    ck_assert_ptr_null(w.asked);
}

START_TEST(a_pkey_that_moves_is_followed_and_said_once)
{
    begin_with_pkey();
    look_and_find(3);
    expect(0, 2, 5);
    for (int k = 0; k < 2; k++) {
        look_and_find(7);
        expect(1, 2, 5);
        ck_assert_uint_eq(w.pd.service.pkey_index, 7);
    }
    meta_address_watch_look(&w.watch); /* both at once are one move */
    sees(true, 9, 5);
    find_pkey(3);
    expect(2, 9, 5);
    ck_assert_uint_eq(w.pd.service.pkey_index, 3);
    ck_assert_uint_eq(w.news, 0);
}
END_TEST

START_TEST(a_pkey_that_is_gone_is_said_and_waited_for)
{
    char why[256];
    begin_with_pkey();
    for (int k = 0; k < 2; k++)
        look_and_find(-1);
    ck_assert_uint_eq(w.news, 1);
    meta_address_watch_why(&w.watch, why, sizeof why);
    ck_assert_ptr_nonnull(strstr(why, "P_Key 0x8001 is not in the table of port"));
    ck_assert_uint_eq(w.pd.service.pkey_index, 3);
    look_and_find(5);
    ck_assert_uint_eq(w.news, 2);
    expect(1, 2, 5);
    meta_address_watch_why(&w.watch, why, sizeof why);
    ck_assert_str_eq(why, "");
}
END_TEST

/* What is away on InfiniBand no command of the host brings back. */
START_TEST(why_nobody_reads_the_table_is_said_with_a_way_out_of_that_network)
{
    static const struct {
        bool ethernet;
        const char *of_gid, *of_port;
    } networks[] = {{true, "`ip addr`", "`ip link`"}, {false, "subnet manager", "`sminfo`"}};
    for (int i = 0; i < 2; i++) {
        char why[256];
        begin();
        w.fab.caps.is_ethernet = networks[i].ethernet;
        meta_address_watch_look(&w.watch);
        sees(false, 0, 0);
        meta_address_watch_why(&w.watch, why, sizeof why);
        ck_assert_ptr_nonnull(strstr(why, "has not the GID fd00::7 any more"));
        ck_assert_ptr_nonnull(strstr(why, networks[i].of_gid));
        meta_address_watch_port(&w.watch, true);
        meta_address_watch_why(&w.watch, why, sizeof why);
        ck_assert_ptr_nonnull(strstr(why, networks[i].of_port));
        meta_address_watch_look(&w.watch);
        sees(true, 2, 5); /* and the port is up */
        meta_address_watch_why(&w.watch, why, sizeof why);
        ck_assert_str_eq(why, "");
        ck_assert_uint_eq(w.news, 4);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(it_is_asked_for_now_and_then_and_when_there_is_news)                                         \
    T(one_that_moves_is_said_once)                                                                 \
    T(one_that_is_gone_has_moved_when_it_is_back_elsewhere_alone)                                  \
    T(a_device_that_does_not_say_changes_nothing)                                                  \
    T(the_end_waits_for_what_is_asked_and_hears_nothing_of_it)                                     \
    T(a_pkey_that_moves_is_followed_and_said_once)                                                 \
    T(a_pkey_that_is_gone_is_said_and_waited_for)                                                  \
    T(why_nobody_reads_the_table_is_said_with_a_way_out_of_that_network)
KEDGE_CHECK_MAIN("metad.address_watch", TESTS)
