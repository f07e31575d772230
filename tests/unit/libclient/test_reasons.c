/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker is told of why a request failed. */
#include <kedge.h>
#include <string.h>

#include "../check_main.h"
#include "schema/reason.h"

enum { UNUSED = 16 /* a number that no agent gives */ };

START_TEST(of_a_failed_request_it_is_known_whether_it_was_never_sent)
{
    struct ibv_wc wc = {.status = IBV_WC_RETRY_EXC_ERR};
    ck_assert_int_eq(kedge_never_sent(&wc), 0);
    for (wc.vendor_err = SCHEMA_REASON_DESCRIPTOR; wc.vendor_err <= SCHEMA_REASON_BATCHES;
         wc.vendor_err++)
        ck_assert_int_eq(kedge_never_sent(&wc),
                         wc.vendor_err != SCHEMA_REASON_UNDER_WAY && wc.vendor_err != UNUSED);
    ck_assert_int_eq(kedge_never_sent(&wc), 0); /* a reason that this library does not know */
    wc = (struct ibv_wc){.status = IBV_WC_SUCCESS, .vendor_err = SCHEMA_REASON_PEER_DOWN};
    ck_assert_int_eq(kedge_never_sent(&wc), 0);
    /* With these statuses nothing else tells, and the words say it too. */
    static const uint32_t never[] = {SCHEMA_REASON_PEER_DOWN, SCHEMA_REASON_STALE_PEER,
                                     SCHEMA_REASON_BEHIND, SCHEMA_REASON_LEASE};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        ck_assert_int_eq(strncmp(kedge_reason_str(never[i]), "never sent: ", 12), 0);
    ck_assert_ptr_nonnull(strstr(kedge_wc_status_str(IBV_WC_RETRY_EXC_ERR), "unless the reason"));
    ck_assert_ptr_nonnull(strstr(kedge_wc_status_str(IBV_WC_WR_FLUSH_ERR), "unless its reason"));
}
END_TEST

START_TEST(a_reason_that_this_library_does_not_know_is_called_so)
{
    static const char newer[] = "a reason newer than this library";
    for (uint32_t i = 0; i <= SCHEMA_REASON_BATCHES; i++)
        ck_assert_int_eq(strcmp(kedge_reason_str(i), newer) == 0, i == UNUSED);
    ck_assert_str_eq(kedge_reason_str(SCHEMA_REASON_BATCHES + 1), newer);
    ck_assert_str_eq(kedge_reason_str(UINT32_MAX), newer);
}
END_TEST

/* Of quotas, windows and clocks the agent says so, of which the request knows nothing. */
START_TEST(a_request_that_this_node_refuses_is_not_blamed_where_its_reason_says_why)
{
    const char *text = kedge_wc_status_str(IBV_WC_LOC_QP_OP_ERR);
    ck_assert_ptr_nonnull(strstr(text, "its reason says why"));
    ck_assert_ptr_null(strstr(text, "makes no sense"));
    ck_assert_ptr_nonnull(strstr(kedge_reason_str(SCHEMA_REASON_QUOTA_VQPS), "raised where"));
}
END_TEST

#define TESTS(T)                                                                                   \
    T(of_a_failed_request_it_is_known_whether_it_was_never_sent)                                   \
    T(a_request_that_this_node_refuses_is_not_blamed_where_its_reason_says_why)                    \
    T(a_reason_that_this_library_does_not_know_is_called_so)
KEDGE_CHECK_MAIN("libkedge reasons", TESTS)
