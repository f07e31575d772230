/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "../check_main.h"
#include "base/random.h"
#include "schema/peers.h"

static void *table(uint32_t max_peers)
{
    uint64_t bytes = (schema_peers_bytes(max_peers) + 63) / 64 * 64;
    void *memory = aligned_alloc(64, bytes);
    memset(memory, 0, bytes);
    schema_peers_format(memory, max_peers, 0x5eed);
    return memory;
}

struct gid {
    uint8_t bytes[16];
};

static struct gid gid_of(uint32_t n)
{
    struct gid g = {{0xfd}};
    memcpy(g.bytes + 12, &n, sizeof n);
    return g;
}

static int find(const void *memory, uint32_t n, uint16_t pool, uint32_t *slot, uint32_t *gen)
{
    return schema_peers_find(memory, gid_of(n).bytes, pool, slot, gen);
}

static int64_t put(void *memory, uint32_t n, uint32_t incarnation)
{
    return schema_peers_put(memory, 0, gid_of(n).bytes, 1, incarnation);
}

START_TEST(what_was_put_is_found_by_gid_and_pool)
{
    void *t = table(8);
    uint32_t slot = 99, gen = 99;
    ck_assert_int_eq(find(t, 1, 1, &slot, &gen), -ENOENT);
    ck_assert_uint_eq(slot, 99);
    ck_assert_int_eq(schema_peers_put(t, 5, gid_of(1).bytes, 1, 10), 5);
    ck_assert_int_eq(find(t, 1, 1, &slot, &gen), 0);
    ck_assert_uint_eq(slot, 5);
    ck_assert_uint_eq(gen, 1);
    ck_assert_int_eq(find(t, 1, 2, &slot, &gen), -ENOENT);
    ck_assert_int_eq(find(t, 2, 1, &slot, &gen), -ENOENT);
    free(t);
}
END_TEST

START_TEST(the_generation_changes_with_the_incarnation_and_with_the_key)
{
    void *t = table(1);
    uint32_t slot, gen;
    ck_assert_int_eq(put(t, 1, 10), 0);
    ck_assert_int_eq(put(t, 1, 10), 0);
    ck_assert_int_eq(put(t, 1, 9), 0);
    ck_assert_int_eq(find(t, 1, 1, &slot, &gen), 0);
    ck_assert_uint_eq(gen, 1);
    ck_assert_int_eq(put(t, 1, 11), 0);
    ck_assert_int_eq(find(t, 1, 1, &slot, &gen), 0);
    ck_assert_uint_eq(gen, 2);
    ck_assert_int_eq(put(t, 2, 1), -ENOSPC);
    schema_peers_remove(t, 0);
    schema_peers_remove(t, 0);
    ck_assert_int_eq(find(t, 1, 1, &slot, &gen), -ENOENT);
    ck_assert_int_eq(put(t, 2, 1), 0);
    ck_assert_int_eq(find(t, 2, 1, &slot, &gen), 0);
    ck_assert_uint_eq(gen, 3);
    free(t);
}
END_TEST

START_TEST(a_full_table_finds_all_and_forgets_what_was_removed)
{
    enum { MAX = 5000 };
    void *t = table(MAX);
    uint32_t slot, gen;
    for (uint32_t n = 0; n < MAX; n++)
        ck_assert_int_ge(put(t, n, 1), 0);
    ck_assert_int_eq(put(t, MAX, 1), -ENOSPC);
    for (uint32_t n = 0; n < MAX; n += 2) {
        ck_assert_int_eq(find(t, n, 1, &slot, &gen), 0);
        schema_peers_remove(t, slot);
    }
    for (uint32_t n = 0; n < MAX; n++)
        ck_assert_int_eq(find(t, n, 1, &slot, &gen), n % 2 == 0 ? -ENOENT : 0);
    for (uint32_t n = 0; n < MAX; n += 2)
        ck_assert_int_ge(put(t, MAX + n, 1), 0);
    ck_assert_int_eq(put(t, 0, 1), -ENOSPC);
    free(t);
}
END_TEST

START_TEST(a_peer_that_is_being_written_counts_as_unknown)
{
    void *t = table(4);
    const struct schema_peers_header *h = t;
    uint32_t slot, gen;
    ck_assert_int_eq(put(t, 1, 1), 0);
    struct schema_peer *p = (struct schema_peer *)((uint8_t *)t + h->peers_offset);
    atomic_fetch_add(&p->seq, 1);
    ck_assert_int_eq(find(t, 1, 1, &slot, &gen), -ENOENT);
    atomic_fetch_add(&p->seq, 1);
    ck_assert_int_eq(find(t, 1, 1, &slot, &gen), 0);
    free(t);
}
END_TEST

START_TEST(a_header_that_leads_outside_is_refused)
{
    uint64_t bytes = schema_peers_bytes(100);
    void *t = table(100);
    struct schema_peers_header *h = t, good = *h;
    ck_assert_int_eq(schema_peers_check(t, bytes), 0);
    ck_assert_int_eq(schema_peers_check(t, bytes + 4096), 0);
    ck_assert_int_eq(schema_peers_check(t, bytes - 1), -EPROTO);
    ck_assert_int_eq(schema_peers_check(t, 3), -EPROTO);
#define REFUSED(change)                                                                            \
    do {                                                                                           \
        change;                                                                                    \
        ck_assert_int_eq(schema_peers_check(t, bytes), -EPROTO);                                   \
        *h = good;                                                                                 \
    } while (0)
    REFUSED(h->magic++);
    REFUSED(h->version++);
    REFUSED(h->max_peers++);
    REFUSED(h->max_peers = 0);
    REFUSED(h->max_peers = UINT32_MAX);
    REFUSED(h->log2_index++);
    REFUSED(h->log2_index = 0);
    REFUSED(h->log2_index = 64);
    REFUSED(h->index_offset = 0);
    REFUSED(h->index_offset += 4);
    REFUSED(h->index_offset = UINT64_MAX - 63);
    REFUSED(h->peers_offset += 64);
    REFUSED(h->peers_offset -= 64);
    REFUSED(h->peers_offset = UINT64_MAX - 63);
    REFUSED(h->bytes++);
#undef REFUSED
    free(t);
}
END_TEST

/* The writer moves two keys through one slot; a reader that finds a key must have its generation:
 * odd ones are key 1's, even ones key 2's. */
struct race {
    void *table;
    _Atomic int stop;
    uint64_t found;
};

static void *read_for_ever(void *argument)
{
    struct race *r = argument;
    uint32_t slot, gen;
    while (!atomic_load(&r->stop) || r->found == 0) {
        for (uint32_t n = 1; n <= 2; n++)
            if (find(r->table, n, 1, &slot, &gen) == 0) {
                if (slot != 0 || gen % 2 != n % 2)
                    return "a torn peer was believed";
                r->found++;
            }
    }
    return NULL;
}

START_TEST(readers_never_believe_a_torn_peer)
{
    struct race r = {.table = table(1)};
    pthread_t reader;
    void *result;
    ck_assert_int_eq(pthread_create(&reader, NULL, read_for_ever, &r), 0);
    for (int i = 0; i < 200000; i++) {
        ck_assert_int_eq(put(r.table, i % 2 == 0 ? 1 : 2, 1), 0);
        if (i != 199999)
            schema_peers_remove(r.table, 0);
    }
    atomic_store(&r.stop, 1);
    pthread_join(reader, &result);
    ck_assert_msg(result == NULL, "%s", (const char *)result);
    free(r.table);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_was_put_is_found_by_gid_and_pool)                                                       \
    T(the_generation_changes_with_the_incarnation_and_with_the_key)                                \
    T(a_full_table_finds_all_and_forgets_what_was_removed)                                         \
    T(a_peer_that_is_being_written_counts_as_unknown)                                              \
    T(a_header_that_leads_outside_is_refused)                                                      \
    T(readers_never_believe_a_torn_peer)
KEDGE_CHECK_MAIN("schema peers", TESTS)
