/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"
#include "metaserver/liveness.h"

static struct meta_liveness *l;

static void add(const char *node, uint32_t incarnation, enum meta_liveness_state state)
{
    struct meta_liveness_event e = {.incarnation = incarnation, .state = state};
    snprintf(e.node, sizeof e.node, "%s", node);
    meta_liveness_add(l, &e);
}

/* "a/5/live:1 ..." of what is there after a position: with how often it happened. */
static const char *all(uint64_t position)
{
    static char text[8192];
    const struct meta_liveness_event *e;
    size_t used = 0;
    text[0] = '\0';
    while ((e = meta_liveness_after(l, position)) != NULL) {
        ck_assert_uint_gt(e->position, position);
        position = e->position;
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s/%u/%s:%u", used > 0 ? " " : "",
                             e->node, e->incarnation, meta_liveness_state_name(e->state), e->times);
        ck_assert_uint_lt(used, sizeof text);
    }
    return text;
}

START_TEST(events_come_in_their_order_after_a_position)
{
    l = meta_liveness_new(4, 9);
    ck_assert_uint_eq(meta_liveness_newest(l), 0);
    ck_assert_str_eq(all(0), "");
    add("a", 5, META_LIVENESS_LIVE);
    add("b", 5, META_LIVENESS_LIVE);
    add("a", 5, META_LIVENESS_EXPIRED);
    ck_assert_str_eq(all(0), "a/5/live:1 b/5/live:1 a/5/expired:1");
    ck_assert_str_eq(all(1), "b/5/live:1 a/5/expired:1");
    ck_assert_str_eq(all(meta_liveness_newest(l)), "");
    ck_assert(meta_liveness_has(l, 0) && meta_liveness_has(l, 3) && !meta_liveness_has(l, 4));
    ck_assert_uint_eq(meta_liveness_generation(l), 9);
    meta_liveness_free(l);
}
END_TEST

START_TEST(what_happens_again_takes_the_place_of_what_it_was)
{
    l = meta_liveness_new(4, 9);
    for (int i = 0; i < 1000; i++) {
        add("a", 5, META_LIVENESS_LIVE);
        add("a", 5, META_LIVENESS_EXPIRED);
    }
    ck_assert_str_eq(all(0), "a/5/live:1000 a/5/expired:1000");
    ck_assert_uint_eq(meta_liveness_dropped(l), 0);
    ck_assert(meta_liveness_has(l, 17)); /* it was told anew since */
    meta_liveness_free(l);
}
END_TEST

/* With the same incarnation again and again, or with new ones. */
START_TEST(a_node_that_comes_and_goes_takes_bounded_room_of_others)
{
    char name[16];
    l = meta_liveness_new(64 + META_LIVENESS_OF_NODE, 9);
    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof name, "n%d", i);
        add(name, 1, META_LIVENESS_LIVE);
    }
    for (uint32_t i = 1; i < 5000; i++) {
        add("flaps", i, META_LIVENESS_LIVE);
        add("flaps", i, META_LIVENESS_REMOVED);
    }
    ck_assert_uint_eq(meta_liveness_dropped(l), 0);
    ck_assert_uint_eq(meta_liveness_newest(l), 64 + 2 * 4999);
    ck_assert_str_eq(all(64), "flaps/4996/live:1 flaps/4996/removed:1 flaps/4997/live:1 "
                              "flaps/4997/removed:1 flaps/4998/live:1 flaps/4998/removed:1 "
                              "flaps/4999/live:1 flaps/4999/removed:1");
    ck_assert_ptr_nonnull(strstr(all(0), "n0/1/live:1 n1/1/live:1 "));
    meta_liveness_free(l);
}
END_TEST

START_TEST(when_there_is_no_room_the_oldest_goes_and_whoever_lacks_it_is_told)
{
    char name[16];
    l = meta_liveness_new(16, 9);
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "n%d", i);
        add(name, 1, META_LIVENESS_EXPIRED);
    }
    ck_assert_uint_eq(meta_liveness_dropped(l), 1000 - 16);
    ck_assert(!meta_liveness_has(l, 1000 - 17) && meta_liveness_has(l, 1000 - 16));
    ck_assert_str_eq(all(996), "n996/1/expired:1 n997/1/expired:1 n998/1/expired:1 "
                               "n999/1/expired:1");
    ck_assert(strncmp(all(0), "n984/1/expired:1 ", 17) == 0);
    meta_liveness_free(l);
}
END_TEST

/* Against a list that is kept without any of that. */
START_TEST(it_holds_what_a_plain_list_holds)
{
    enum { NODES = 12, ROOM = 24, STEPS = 4000 };
    static struct {
        unsigned node, incarnation, state, times;
        uint64_t position;
    } list[ROOM + 1];
    size_t count = 0;
    uint64_t seed = 7;
    l = meta_liveness_new(ROOM, 9);
    for (uint64_t step = 1; step <= STEPS; step++) {
        char name[16];
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned node = (unsigned)(seed >> 33) % NODES, state = (unsigned)(seed >> 41) % 3;
        unsigned incarnation = 1 + (unsigned)(seed >> 49) % 5, times = 1, others = 0;
        for (size_t i = count; i-- > 0;) {
            bool same = list[i].node == node && list[i].incarnation == incarnation &&
                        list[i].state == state;
            if (same)
                times = list[i].times + 1;
            if (same || (list[i].node == node && ++others >= META_LIVENESS_OF_NODE))
                memmove(&list[i], &list[i + 1], (--count - i) * sizeof list[0]);
        }
        if (count == ROOM)
            memmove(&list[0], &list[1], --count * sizeof list[0]);
        list[count].node = node, list[count].incarnation = incarnation, list[count].state = state;
        list[count].times = times, list[count++].position = step;
        snprintf(name, sizeof name, "n%u", node);
        add(name, incarnation, (enum meta_liveness_state)state);
        const struct meta_liveness_event *e = meta_liveness_after(l, 0);
        for (size_t i = 0; i < count; i++, e = meta_liveness_after(l, e->position)) {
            ck_assert_ptr_nonnull(e);
            ck_assert_uint_eq(e->position, list[i].position);
            ck_assert_uint_eq(e->times, list[i].times);
        }
        ck_assert_ptr_null(e);
    }
    meta_liveness_free(l);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(events_come_in_their_order_after_a_position)                                                 \
    T(what_happens_again_takes_the_place_of_what_it_was)                                           \
    T(a_node_that_comes_and_goes_takes_bounded_room_of_others)                                     \
    T(when_there_is_no_room_the_oldest_goes_and_whoever_lacks_it_is_told)                          \
    T(it_holds_what_a_plain_list_holds)
KEDGE_CHECK_MAIN("liveness", TESTS)
