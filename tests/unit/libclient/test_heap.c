/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "../check_main.h"
#include "base/random.h"
#include "arena_heap.h"

enum { GRANULES = 256, BYTES = GRANULES * CLIENT_HEAP_GRANULE };

START_TEST(random_allocations_agree_with_a_model)
{
    struct client_heap h;
    struct base_prng prng;
    uint16_t owner[GRANULES] = {0}; /* by granule; 0: free */
    int64_t offsets[GRANULES + 1];
    memset(offsets, -1, sizeof offsets);
    base_prng_seed(&prng, 42);
    ck_assert_int_eq(client_heap_init(&h, BYTES), 0);
    for (int step = 0; step < 200000; step++) {
        uint32_t id = 1 + (uint32_t)base_prng_below(&prng, GRANULES);
        if (offsets[id] >= 0) {
            ck_assert_int_eq(client_heap_free(&h, (uint64_t)offsets[id]), 0);
            ck_assert_int_eq(client_heap_free(&h, (uint64_t)offsets[id]), -EINVAL);
            for (uint32_t g = 0; g < GRANULES; g++)
                owner[g] = owner[g] == id ? 0 : owner[g];
            offsets[id] = -1;
            continue;
        }
        uint64_t size = 1 + base_prng_below(&prng, 1ull << (2 + base_prng_below(&prng, 12)));
        uint32_t wanted = (uint32_t)((size + 63) / 64), run = 0, longest = 0;
        for (uint32_t g = 0; g < GRANULES; g++) {
            run = owner[g] == 0 ? run + 1 : 0;
            longest = run > longest ? run : longest;
        }
        int64_t at = client_heap_alloc(&h, size);
        ck_assert_int_eq(at >= 0, longest >= wanted);
        if (at < 0)
            continue;
        ck_assert_int_eq(at % 64, 0);
        ck_assert_int_le(at / 64 + wanted, GRANULES);
        for (uint32_t g = 0; g < wanted; g++) {
            ck_assert_uint_eq(owner[at / 64 + g], 0);
            owner[at / 64 + g] = (uint16_t)id;
        }
        offsets[id] = at;
    }
    for (uint32_t id = 1; id <= GRANULES; id++)
        if (offsets[id] >= 0)
            ck_assert_int_eq(client_heap_free(&h, (uint64_t)offsets[id]), 0);
    ck_assert_int_eq(client_heap_alloc(&h, BYTES), 0);
    client_heap_fini(&h);
}
END_TEST

START_TEST(what_is_no_block_is_not_freed)
{
    struct client_heap h;
    ck_assert_int_eq(client_heap_init(&h, BYTES + 63), 0);
    int64_t at = client_heap_alloc(&h, 640);
    ck_assert_int_ge(at, 0);
    for (uint64_t offset = 0; offset < 2 * BYTES; offset++)
        if (offset != (uint64_t)at)
            ck_assert_int_eq(client_heap_free(&h, offset), -EINVAL);
    ck_assert_int_eq(client_heap_free(&h, (uint64_t)at), 0);
    ck_assert_int_eq(client_heap_alloc(&h, BYTES + 1), -ENOMEM);
    ck_assert_int_eq(client_heap_alloc(&h, 0), -ENOMEM);
    client_heap_fini(&h);
    ck_assert_int_eq(client_heap_init(&h, 63), -EINVAL);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(random_allocations_agree_with_a_model)                                                       \
    T(what_is_no_block_is_not_freed)
KEDGE_CHECK_MAIN("libclient heap", TESTS)
