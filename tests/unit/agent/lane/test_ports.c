/* SPDX-License-Identifier: Apache-2.0 */
/* Ports are of tenants, and of one VQP at a time. */
#include "message/ports.h"

#include <errno.h>
#include <stdbool.h>

#include "../../check_main.h"
#include "base/random.h"

enum { MOST = 37, TENANTS = 3, NUMBERS = 20, SESSIONS = 4, STEPS = 20000 };

static struct ports p;

static void begin(void)
{
    ck_assert_int_eq(lane_ports_init(&p, MOST, 99), 0);
}

START_TEST(a_number_of_two_tenants_is_two_ports)
{
    begin();
    ck_assert_int_eq(lane_port_bind(&p, 1, 80, 5, 7), 0);
    ck_assert_ptr_null(lane_port_find(&p, 2, 80));
    ck_assert_int_eq(lane_port_bind(&p, 2, 80, 6, 8), 0);
    ck_assert_uint_eq(lane_port_find(&p, 1, 80)->session, 5);
    ck_assert_uint_eq(lane_port_find(&p, 2, 80)->vqp, 8);
    lane_ports_free(&p);
}
END_TEST

START_TEST(a_port_that_somebody_has_is_refused_until_it_is_given_back)
{
    begin();
    ck_assert_int_eq(lane_port_bind(&p, 1, 80, 5, 7), 0);
    ck_assert_int_eq(lane_port_bind(&p, 1, 80, 5, 7), -EALREADY);
    ck_assert_int_eq(lane_port_bind(&p, 1, 80, 5, 8), -EADDRINUSE);
    ck_assert_int_eq(lane_port_bind(&p, 1, 80, 6, 7), -EADDRINUSE);
    lane_port_unbind(&p, 1, 80);
    ck_assert_ptr_null(lane_port_find(&p, 1, 80));
    ck_assert_int_eq(lane_port_bind(&p, 1, 80, 6, 7), 0);
    lane_ports_free(&p);
}
END_TEST

START_TEST(there_are_so_many_and_who_gives_one_back_makes_room_for_one)
{
    begin();
    for (uint32_t i = 0; i < MOST; i++)
        ck_assert_int_eq(lane_port_bind(&p, 1, i, 0, 0), 0);
    ck_assert_int_eq(lane_port_bind(&p, 1, MOST, 0, 0), -EDQUOT);
    lane_port_unbind(&p, 1, MOST); /* nobody has it */
    ck_assert_int_eq(lane_port_bind(&p, 1, MOST, 0, 0), -EDQUOT);
    lane_port_unbind(&p, 1, 3);
    ck_assert_int_eq(lane_port_bind(&p, 1, MOST, 0, 0), 0);
    ck_assert_int_eq(lane_port_bind(&p, 1, 3, 0, 0), -EDQUOT);
    lane_ports_free(&p);
}
END_TEST

START_TEST(whatever_is_bound_and_given_back_is_found_as_a_plain_list_finds_it)
{
    struct {
        bool used;
        uint32_t session;
    } model[TENANTS][NUMBERS] = {{{false, 0}}};
    uint32_t used = 0;
    struct base_prng prng;
    base_prng_seed(&prng, 11);
    begin();
    for (int i = 0; i < STEPS; i++) {
        const uint32_t tenant = (uint32_t)base_prng_next(&prng) % TENANTS;
        const uint32_t number = (uint32_t)base_prng_next(&prng) % NUMBERS;
        const uint32_t session = (uint32_t)base_prng_next(&prng) % SESSIONS;
        if (base_prng_next(&prng) % 2 == 0) {
            const int want =
                model[tenant][number].used
                    ? (model[tenant][number].session == session ? -EALREADY : -EADDRINUSE)
                : used == MOST ? -EDQUOT
                               : 0;
            ck_assert_int_eq(lane_port_bind(&p, tenant, number, session, 1), want);
            if (want == 0) {
                model[tenant][number].used = true;
                model[tenant][number].session = session;
                used++;
            }
        } else {
            lane_port_unbind(&p, tenant, number);
            used -= model[tenant][number].used;
            model[tenant][number].used = false;
        }
        const struct port *found = lane_port_find(&p, tenant, number);
        ck_assert_int_eq(found != NULL, model[tenant][number].used);
        if (found != NULL)
            ck_assert_uint_eq(found->session, model[tenant][number].session);
        ck_assert_uint_eq(p.used, used);
    }
    lane_ports_free(&p);
}
END_TEST

START_TEST(a_vqp_that_goes_gives_back_its_own_ports_and_no_others)
{
    uint32_t first[2] = {0, 0};
    begin();
    for (uint32_t i = 0; i < MOST; i++) {
        ck_assert_int_eq(lane_port_bind(&p, 1, i, 5, (uint16_t)(i % 2)), 0);
        lane_port_join(&p, 1, i, &first[i % 2]);
    }
    ck_assert_uint_eq(lane_ports_unbind_all(&p, &first[1]), MOST / 2);
    ck_assert_uint_eq(first[1], 0);
    ck_assert_uint_eq(lane_ports_unbind_all(&p, &first[1]), 0);
    for (uint32_t i = 0; i < MOST; i++)
        ck_assert_int_eq(lane_port_find(&p, 1, i) != NULL, i % 2 == 0);
    for (uint32_t i = 1; i < MOST; i += 2) { /* and the other list is whole, whoever has these */
        ck_assert_int_eq(lane_port_bind(&p, 2, i, 6, 1), 0);
        lane_port_join(&p, 2, i, &first[1]);
    }
    ck_assert_uint_eq(lane_ports_unbind_all(&p, &first[0]), MOST - MOST / 2);
    ck_assert_uint_eq(p.used, MOST / 2);
    lane_ports_free(&p);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_number_of_two_tenants_is_two_ports)                                                        \
    T(a_port_that_somebody_has_is_refused_until_it_is_given_back)                                  \
    T(there_are_so_many_and_who_gives_one_back_makes_room_for_one)                                 \
    T(a_vqp_that_goes_gives_back_its_own_ports_and_no_others)                                      \
    T(whatever_is_bound_and_given_back_is_found_as_a_plain_list_finds_it)
KEDGE_CHECK_MAIN("agent.lane.ports", TESTS)
