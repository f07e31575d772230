/* SPDX-License-Identifier: Apache-2.0 */
#include "deviations.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_NAME                                                                                    \
    "an RC packet names no sender but the GID (IBTA 9.2), and both queue pairs have one GID and "  \
    "one PSN here"
#define ONE_THREAD "all its devices are in one process, and on one thread"

/* rxe: seen on Linux 6.1 with rdma-core 44. */
static struct deviation {
    const char *where, *test, *reason;
    bool left_out;
} deviations[] = {
    {"verbs", "a_peer_that_is_connected_to_somebody_else_keeps_silent", NO_NAME, false},
    {"sim", "a_peer_that_is_connected_to_somebody_else_keeps_silent", NO_NAME, false},
    {"sim-repeat", "the_largest_datagram_arrives_and_a_larger_one_is_an_error",
     "a datagram may come twice", false},
    {"sim", "nothing_touches_memory_after_its_deregistration_is_done", ONE_THREAD, false},
    {"sim", "a_sleeper_that_arms_and_polls_again_misses_nothing", ONE_THREAD, false},
    {"sim", "another_process_is_read_and_written", ONE_THREAD, false},
    {"sim", "the_first_request_to_a_stopped_process_completes", ONE_THREAD, false},
    {"sim", "requests_to_a_killed_process_end_with_a_retry_error", ONE_THREAD, false},
    {"sim", "a_process_that_dies_before_the_first_request_is_a_retry_error", ONE_THREAD, false},
    {"sim", "a_send_that_waits_for_a_receive_ends_when_the_receiver_dies", ONE_THREAD, false},
    {"sim", "two_processes_that_fetch_and_add_lose_nothing", ONE_THREAD, false},
    {"sim", "initiators_that_are_killed_in_the_middle_leave_the_target_usable", ONE_THREAD, false},
    {"sim", "a_node_that_starts_again_is_another_one", ONE_THREAD, false},
    {"rxe", "a_move_to_err_flushes_what_is_queued_and_what_is_posted_later",
     "a receive posted in ERR stays: librxe does not tell the kernel of receives", false},
    {"rxe", "an_access_error_breaks_the_responders_side_of_rc_with_an_event",
     "the responder's queue pair goes to ERR and flushes, but without an event", false},
    {"rxe", "a_local_error_leaves_the_other_side_whole",
     "an unknown lkey of a WRITE is a LOC_QP_OP_ERR, not a LOC_PROT_ERR", false},
    {"rxe", "local_ranges_must_lie_in_a_region_of_the_queue_pairs_domain",
     "an unknown or foreign lkey of a WRITE is a LOC_QP_OP_ERR, not a LOC_PROT_ERR", false},
    {"rxe", "a_receive_with_a_bad_key_is_an_error_on_both_sides",
     "an unknown lkey is a LOC_QP_OP_ERR at the receiver, not a LOC_PROT_ERR", false},
    {"rxe", "a_receive_into_a_deregistered_region_is_refused",
     "a gone lkey is a LOC_QP_OP_ERR at the receiver, not a LOC_PROT_ERR", false},
    {"rxe", "a_message_longer_than_its_receive_is_an_error_on_both_sides",
     "a SEND that is too long is a REM_OP_ERR and a LOC_QP_OP_ERR, not a REM_INV_REQ_ERR and a "
     "LOC_LEN_ERR",
     false},
    {"rxe", "a_misaligned_atomic_is_refused",
     "librxe refuses it when it is posted, with -EINVAL and no completion", false},
    {"rxe", "an_error_wakes_who_waits_for_solicited_ones",
     "a send's error is no solicited event, though the manual of ibv_req_notify_cq has it so",
     false},
    {"rxe", "a_receiver_that_is_late_does_not_use_up_the_other_retries",
     "its time-outs go on while it waits for a receiver that is not ready, and in some runs use up "
     "retry_cnt",
     false},
    {"rxe", "fenced_requests_are_sent_again_until_their_peer_is_ready",
     "a fenced READ or atomic that is sent again waits for itself, for ever: rxe_wqe_is_fenced() "
     "counts its own first try",
     false},
};

enum { DEVIATIONS = sizeof deviations / sizeof deviations[0] };

static const char *provider_of_run = "", *driver_of_run = "";

void deviations_of(const char *provider, const char *driver)
{
    if (getenv("KEDGE_CONFORMANCE_ALL") != NULL)
        return;
    provider_of_run = provider;
    driver_of_run = driver != NULL ? driver : "";
}

bool deviates(const char *test)
{
    for (size_t i = 0; i < DEVIATIONS; i++) {
        struct deviation *d = &deviations[i];
        if (strcmp(d->test, test) != 0 ||
            (strcmp(d->where, provider_of_run) != 0 && strcmp(d->where, driver_of_run) != 0))
            continue;
        d->left_out = true;
        return true;
    }
    return false;
}

unsigned deviations_report(void)
{
    unsigned count = 0;
    for (size_t i = 0; i < DEVIATIONS; i++)
        if (deviations[i].left_out) {
            count++;
            printf("left out on %s: %s: %s\n", deviations[i].where, deviations[i].test,
                   deviations[i].reason);
        }
    return count;
}
