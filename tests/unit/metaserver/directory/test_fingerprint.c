/* SPDX-License-Identifier: Apache-2.0 */
/* What tells a process from another one of its node and incarnation. */
#include "../../check_main.h"
#include "fingerprint.h"

enum { COUNT = 2 };

static struct meta_registration registration(void)
{
    struct meta_registration r = {.incarnation = 10, .endpoint_count = COUNT};
    for (uint32_t i = 0; i < COUNT; i++)
        r.endpoint[i] =
            (struct schema_endpoint_record){.pool = (uint16_t)i,
                                            .flags = SCHEMA_RECORD_LIVE | SCHEMA_RECORD_DC,
                                            .incarnation = 10,
                                            .dctn_mtu = 5u << 24 | (0x100 + i),
                                            .dc_key = 7 + i,
                                            .mr_table_addr_lo = 0x1000,
                                            .mr_table_rkey = 5};
    return r;
}

static bool matches(const struct meta_registration *a, const struct meta_registration *b)
{
    struct meta_store_fingerprint known, claimed;
    meta_fingerprint_of(a, &known);
    meta_fingerprint_of(b, &claimed);
    return meta_store_fingerprint_matches(&known, &claimed);
}

/* A target broke, or the port or the P_Key moved: its device, or a subnet manager, had it do so. */
START_TEST(a_process_may_be_reached_in_another_way_in_all_its_endpoints)
{
    const struct meta_registration known = registration();
    struct meta_registration r = known;
    for (uint32_t i = 0; i < COUNT; i++) {
        r.endpoint[i].dctn_mtu = 4u << 24 | 0x777;
        r.endpoint[i].udqpn_slots = 0x888;
        r.endpoint[i].lid = 9;
    }
    ck_assert(matches(&known, &r));
}
END_TEST

START_TEST(another_one_has_other_keys_or_another_table)
{
    const struct meta_registration known = registration();
    struct meta_registration r = known;
    for (uint32_t i = 0; i < COUNT; i++) {
        ck_assert(matches(&known, &r)); /* as long as one endpoint is what it was */
        r.endpoint[i].dc_key ^= 1;
    }
    ck_assert(!matches(&known, &r));
    r = known;
    for (uint32_t i = 0; i < COUNT; i++)
        r.endpoint[i].mr_table_rkey++;
    ck_assert(!matches(&known, &r));
    r = known;
    for (uint32_t i = 0; i < COUNT; i++)
        r.endpoint[i].mr_table_addr_lo++;
    ck_assert(!matches(&known, &r));
    r = known;
    for (uint32_t i = 0; i < COUNT; i++)
        r.endpoint[i].ud_qkey++;
    ck_assert(!matches(&known, &r));
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_process_may_be_reached_in_another_way_in_all_its_endpoints)                                \
    T(another_one_has_other_keys_or_another_table)
KEDGE_CHECK_MAIN("metaserver fingerprint", TESTS)
