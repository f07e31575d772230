/* SPDX-License-Identifier: Apache-2.0 */
/* Phases of entries: whoever goes by them alone sees what was published, all of it and no more,
 * whatever stood in the ring before. */
#include "schema/phase.h"

#include <stdlib.h>
#include <string.h>

#include "../check_main.h"

enum { PLACES = 64, BEFORE_WRAP = 150, INDICES = 300 }; /* 2^32 is in the middle of the latter */
#define FIRST (UINT32_MAX - BEFORE_WRAP)

static const uint32_t sizes[] = {2, 4, PLACES};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static struct schema_session_rw rw;
static struct schema_session_ro ro;
static struct schema_sq_desc sq[PLACES];
static struct schema_cqe cq[PLACES];

/* A ring of one of the two kinds, as its writer and its reader have it. */
struct ring {
    void (*put)(uint32_t at);            /* an entry, whole */
    void (*put_bytes)(uint32_t at, int); /* what may stand behind one: bytes of somebody's */
    void (*publish)(uint32_t mask, uint32_t first, uint32_t end);
    uint32_t (*count)(uint32_t index, uint32_t mask); /* places by its phase; 0: not there */
    uint32_t (*tail)(void);
};

static void put_descriptor(uint32_t at)
{
    sq[at] = (struct schema_sq_desc){.op = SCHEMA_OP_WRITE, .slots = 6};
}

static void put_payload(uint32_t at, int byte)
{
    memset(&sq[at], byte, sizeof sq[at]);
}

static void publish_slots(uint32_t mask, uint32_t first, uint32_t end)
{
    schema_sq_publish(&rw, sq, mask, first, end);
}

static uint32_t read_slots_tail(void)
{
    return atomic_load(&rw.sq_tail);
}

/* As the lane: of several the tail says how many. */
static uint32_t count_slots(uint32_t index, uint32_t mask)
{
    const uint8_t slots = sq[index & mask].slots;
    if (!schema_slots_phase_is(slots, index, mask))
        return 0;
    return (slots & SCHEMA_SLOTS_MORE) != 0 ? read_slots_tail() - index : 1;
}

static void put_completion(uint32_t at)
{
    cq[at] = (struct schema_cqe){.wr_id = 7};
}

static void put_sender(uint32_t at, int byte)
{
    memset(&cq[at], byte, sizeof cq[at]);
}

static void publish_places(uint32_t mask, uint32_t first, uint32_t end)
{
    schema_cq_publish(&ro, cq, mask, first, end);
}

static uint32_t count_places(uint32_t index, uint32_t mask)
{
    const uint32_t stretch = cq[index & mask].stretch;
    return schema_stretch_phase_is(stretch, index, mask) ? stretch >> SCHEMA_STRETCH_COUNT : 0;
}

static uint32_t read_places_tail(void)
{
    return atomic_load(&ro.cq_tail);
}

static const struct ring rings[] = {
    {put_descriptor, put_payload, publish_slots, count_slots, read_slots_tail},
    {put_completion, put_sender, publish_places, count_places, read_places_tail},
};
enum { RINGS = sizeof rings / sizeof rings[0] };

static void begin(void)
{
    memset(sq, 0, sizeof sq);
    memset(cq, 0, sizeof cq);
}

static void check_all(void (*check)(const struct ring *r, uint32_t size))
{
    for (uint32_t kind = 0; kind < RINGS; kind++)
        for (uint32_t n = 0; n < SIZES; n++)
            check(&rings[kind], sizes[n]);
}

START_TEST(the_phase_of_a_place_is_another_one_in_the_next_round_at_2_to_the_32_too)
{
    for (uint32_t n = 0; n < SIZES; n++)
        for (uint32_t i = 0; i < INDICES; i++) {
            const uint32_t phase = schema_phase(FIRST + i, sizes[n] - 1);
            ck_assert_uint_ge(phase, 1);
            ck_assert_uint_le(phase, 2); /* 0 is memory that nobody has written */
            ck_assert_uint_ne(phase, schema_phase(FIRST + i + sizes[n], sizes[n] - 1));
        }
}
END_TEST

static void check_singles(const struct ring *r, uint32_t size)
{
    const uint32_t mask = size - 1;
    begin();
    for (uint32_t i = FIRST; i != FIRST + INDICES; i++) {
        ck_assert_uint_eq(r->count(i, mask), 0);
        r->put(i & mask);
        ck_assert_uint_eq(r->count(i, mask), 0);
        r->publish(mask, i, i + 1);
        ck_assert_uint_eq(r->count(i, mask), 1);
        ck_assert_uint_eq(r->count(i + 1, mask), 0);
        ck_assert_uint_eq(r->tail(), i + 1);
    }
}

START_TEST(one_is_there_when_it_was_published_and_the_next_one_is_not)
{
    check_all(check_singles);
}
END_TEST

START_TEST(of_a_descriptor_the_lane_has_its_slots_beside_the_phase)
{
    begin();
    put_descriptor(2);
    publish_slots(3, 2, 3);
    ck_assert_uint_eq(sq[2].slots & SCHEMA_SLOTS_COUNT, 6);
    ck_assert_uint_eq(sq[2].slots & SCHEMA_SLOTS_MORE, 0);
    put_descriptor(3);
    publish_slots(3, 3, 5);
    ck_assert_uint_eq(sq[3].slots & SCHEMA_SLOTS_COUNT, 6);
    ck_assert_uint_eq(sq[3].slots & SCHEMA_SLOTS_MORE, SCHEMA_SLOTS_MORE);
}
END_TEST

/* Whatever it was, in the place of what is published next. */
static void check_stale_bytes(const struct ring *r, uint32_t size)
{
    const uint32_t mask = size - 1;
    for (int byte = 0; byte < 256; byte++)
        for (uint32_t i = FIRST + BEFORE_WRAP - 2 * mask; i != 2 * mask; i++) {
            begin();
            for (uint32_t at = 0; at <= mask; at++)
                r->put_bytes(at, byte);
            r->put(i & mask);
            r->publish(mask, i, i + 1);
            ck_assert_uint_eq(r->count(i, mask), 1);
            ck_assert_uint_eq(r->count(i + 1, mask), 0);
        }
}

START_TEST(bytes_of_a_former_round_are_no_entry)
{
    check_all(check_stale_bytes);
}
END_TEST

/* The place of the next one is the first's, which is still to be taken. */
static void check_full_ring(const struct ring *r, uint32_t size)
{
    for (uint32_t first = FIRST + BEFORE_WRAP - size; first != 2 * size; first++) {
        begin();
        for (uint32_t i = first; i != first + size; i++) {
            r->put(i & (size - 1));
            r->publish(size - 1, i, i + 1);
        }
        for (uint32_t i = first; i != first + size; i++)
            ck_assert_uint_eq(r->count(i, size - 1), 1);
        ck_assert_uint_eq(r->count(first + size, size - 1), 0);
        for (uint32_t i = first + size; i != first + 2 * size; i++)
            r->put(i & (size - 1));
        r->publish(size - 1, first + size, first + 2 * size); /* all at once */
        ck_assert_uint_eq(r->count(first + size, size - 1), size);
        ck_assert_uint_eq(r->count(first + 2 * size, size - 1), 0);
    }
}

START_TEST(a_full_ring_leaves_its_first_entry_as_it_is)
{
    check_all(check_full_ring);
}
END_TEST

/* Where one is the whole ring, it is its own next one. */
START_TEST(a_completion_ring_of_one_place_has_it_again_and_again)
{
    begin();
    for (uint32_t i = FIRST; i != FIRST + INDICES; i++) {
        ck_assert_uint_eq(count_places(i, 0), 0);
        put_completion(0);
        publish_places(0, i, i + 1);
        ck_assert_uint_eq(count_places(i, 0), 1);
        ck_assert_uint_eq(count_places(i + 1, 0), 0);
    }
}
END_TEST

/* Some published together, each with some bytes behind it, and taken some together: the reader goes
 * by phases from one publication to the next. */
static void check_reader(const struct ring *r, uint32_t size)
{
    uint32_t head = FIRST, tail = FIRST, ends[PLACES], begun = 0, taken = 0;
    begin();
    srand(1);
    for (int step = 0; step < 20000; step++) {
        const uint32_t room = size - (tail - head);
        if (rand() % 2 == 0 && room > 0) {
            const uint32_t count = 1 + (uint32_t)rand() % room;
            r->put(tail & (size - 1));
            for (uint32_t i = 1; i < count; i++)
                if (rand() % 2 == 0)
                    r->put((tail + i) & (size - 1));
                else
                    r->put_bytes((tail + i) & (size - 1), rand() % 256);
            r->publish(size - 1, tail, tail + count);
            tail += count;
            ends[begun++ % PLACES] = tail;
            ck_assert_uint_eq(r->tail(), tail);
            continue;
        }
        const uint32_t found = r->count(head, size - 1);
        if (begun == taken) {
            ck_assert_uint_eq(found, 0);
            continue;
        }
        ck_assert_uint_ge(found, ends[taken % PLACES] - head);
        head = ends[taken++ % PLACES];
    }
    ck_assert_uint_lt(head, FIRST); /* it was at 2^32 */
}

START_TEST(a_reader_finds_each_publication_and_nothing_else)
{
    check_all(check_reader);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_phase_of_a_place_is_another_one_in_the_next_round_at_2_to_the_32_too)                    \
    T(one_is_there_when_it_was_published_and_the_next_one_is_not)                                  \
    T(of_a_descriptor_the_lane_has_its_slots_beside_the_phase)                                     \
    T(bytes_of_a_former_round_are_no_entry)                                                        \
    T(a_full_ring_leaves_its_first_entry_as_it_is)                                                 \
    T(a_completion_ring_of_one_place_has_it_again_and_again)                                       \
    T(a_reader_finds_each_publication_and_nothing_else)
KEDGE_CHECK_MAIN("phase", TESTS)
