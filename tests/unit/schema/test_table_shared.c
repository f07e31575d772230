/* SPDX-License-Identifier: Apache-2.0 */
/* One MR table that several threads write: each puts and removes records of its own keys, as lanes
 * of one pool do, in a table that is so small that all of them want the same slots. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "../check_main.h"
#include "schema/table.h"

enum {
    WRITERS = 4,
    LOG2_SLOTS = 5,
    SLOTS = (1 << LOG2_SLOTS) + SCHEMA_TABLE_SPAN - 1,
    KEYS = 16,    /* of each writer: all of them would not fit */
    TURNS = 20000 /* of each */
};

static _Alignas(64) uint8_t memory[SLOTS * SCHEMA_RECORD_BYTES];
static _Atomic uint8_t owners[SLOTS];
static struct writer {
    _Alignas(64) struct schema_table table;
    uint32_t number;
    bool has[KEYS];
    uint32_t value[KEYS], puts, full;
} writers[WRITERS];

static struct schema_mr_record record_of(const struct writer *w, uint32_t key, uint32_t value)
{
    return (struct schema_mr_record){.vkey = w->number << 29 | (key + 1) * 0x9e37u,
                                     .tenant = w->number,
                                     .length = value,
                                     .raddr = value ^ UINT64_MAX,
                                     .flags = SCHEMA_RECORD_LIVE | SCHEMA_RECORD_READ};
}

static void begin(void)
{
    memset(memory, 0, sizeof memory);
    memset((void *)owners, 0, sizeof owners);
    memset(writers, 0, sizeof writers);
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i].number = i;
        schema_table_init(&writers[i].table, SCHEMA_TABLE_MRS, memory, LOG2_SLOTS, 0x5eed, 77);
        schema_table_share(&writers[i].table, owners, (uint8_t)(i + 1));
    }
    ck_assert_uint_eq(schema_table_owners(LOG2_SLOTS), SLOTS);
}

/* What a writer has put is there, with what it has put last, whatever the others do. */
static bool is_right(const struct writer *w, uint32_t key)
{
    struct schema_mr_record now = record_of(w, key, 0);
    const bool there = schema_table_get(&w->table, &now, &now);
    return there == w->has[key] &&
           (!there || (now.length == w->value[key] && now.raddr == (now.length ^ UINT64_MAX)));
}

static bool take_turn(struct writer *w, uint32_t turn, uint32_t random)
{
    const uint32_t key = (random >> 16) % KEYS;
    const struct schema_mr_record r = record_of(w, key, turn);
    if (!is_right(w, key))
        return false;
    if (w->has[key] && (random & 0x100) != 0) {
        w->has[key] = false;
        return schema_table_remove(&w->table, &r) >= 0;
    }
    if (schema_table_put(&w->table, &r) >= 0) {
        w->has[key] = true;
        w->value[key] = turn;
        w->puts++;
    } else {
        w->full++;
        return !w->has[key]; /* its own slot is never another's */
    }
    return true;
}

static void *write_on(void *writer)
{
    struct writer *w = writer;
    uint32_t random = 12345 + w->number;
    for (uint32_t turn = 1; turn <= TURNS; turn++) {
        random = random * 1103515245u + 12345u;
        if (!take_turn(w, turn, random))
            return w;
    }
    return NULL;
}

static void check_end(void)
{
    uint32_t live = 0, taken = 0, has = 0;
    for (uint32_t i = 0; i < WRITERS; i++) {
        live += writers[i].table.live;
        for (uint32_t k = 0; k < KEYS; k++) {
            ck_assert(is_right(&writers[i], k));
            has += writers[i].has[k];
        }
    }
    for (uint32_t i = 0; i < SLOTS; i++)
        taken += atomic_load(&owners[i]) != 0;
    ck_assert_uint_eq(live, has);
    ck_assert_uint_eq(taken, has); /* no slot is lost */
}

START_TEST(threads_that_write_one_table_lose_nothing_and_take_no_slot_of_another)
{
    pthread_t thread[WRITERS];
    uint32_t full = 0;
    begin();
    for (uint32_t i = 0; i < WRITERS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, write_on, &writers[i]), 0);
    for (uint32_t i = 0; i < WRITERS; i++) {
        void *wrong;
        pthread_join(thread[i], &wrong);
        ck_assert_ptr_null(wrong);
        ck_assert_uint_gt(writers[i].puts, TURNS / 10);
        full += writers[i].full;
    }
    ck_assert_uint_gt(full, 0); /* they were in each other's way */
    check_end();
}
END_TEST

/* The next key, from that one on, whose records live in one span with those of all others. */
static uint32_t next_key(const struct writer *w, uint32_t vkey)
{
    while (schema_mr_home(&w->table.desc, vkey) != 3)
        vkey++;
    return vkey;
}

/* By turns in one thread: what is left free is another's, and only then. */
START_TEST(a_slot_goes_from_one_writer_to_another)
{
    begin();
    struct writer *a = &writers[0], *b = &writers[1];
    struct schema_mr_record last = record_of(a, 0, 1), other = record_of(b, 0, 9), fifth;
    for (int n = 0; n < SCHEMA_TABLE_SPAN; n++) {
        last.vkey = next_key(a, last.vkey + 1);
        ck_assert_int_ge(schema_table_put(&a->table, &last), 0);
        if (n == 5)
            fifth = last;
    }
    other.vkey = next_key(b, other.vkey);
    ck_assert_int_lt(schema_table_put(&b->table, &other), 0);
    ck_assert(!schema_table_get(&b->table, &fifth, NULL)); /* that is not its own */
    ck_assert_int_lt(schema_table_remove(&b->table, &fifth), 0);
    const int64_t slot = schema_table_remove(&a->table, &fifth);
    ck_assert_int_ge(slot, 0);
    ck_assert_int_eq(schema_table_put(&b->table, &other), slot);
    ck_assert_int_lt(schema_table_put(&a->table, &fifth), 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(threads_that_write_one_table_lose_nothing_and_take_no_slot_of_another)                       \
    T(a_slot_goes_from_one_writer_to_another)
KEDGE_CHECK_MAIN("schema.table_shared", TESTS)
