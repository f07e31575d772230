/* SPDX-License-Identifier: Apache-2.0 */
/* What may become of a region's lease, and what ends the process. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../check_main.h"
#include "request/lease_moves.h"

enum { STATES = LANE_LEASE_REVOKED + 1 };

static const struct {
    enum lane_lease_state from;
    enum lease_event event;
    enum lane_lease_state to;
} allowed[] = {
    {LANE_LEASE_NONE, LEASE_PUBLISHED, LANE_LEASE_LIVE},
    {LANE_LEASE_LIVE, LEASE_WITHDRAWN, LANE_LEASE_WITHDRAWING},
    /* a worker gave it back, whatever the operator has begun */
    {LANE_LEASE_WITHDRAWING, LEASE_RETURNED, LANE_LEASE_WITHDRAWING},
    {LANE_LEASE_WAITING, LEASE_RETURNED, LANE_LEASE_WITHDRAWING},
    {LANE_LEASE_WITHDRAWING, LEASE_LET_GO, LANE_LEASE_WAITING},
    /* the operator revoked it, and its worker has not given it back */
    {LANE_LEASE_WAITING, LEASE_GONE, LANE_LEASE_REVOKED},
    /* its session ends: one time for all that it has */
    {LANE_LEASE_WITHDRAWING, LEASE_ENDED, LANE_LEASE_WITHDRAWING},
    {LANE_LEASE_WAITING, LEASE_ENDED, LANE_LEASE_WITHDRAWING},
    {LANE_LEASE_REVOKED, LEASE_ENDED, LANE_LEASE_WITHDRAWING},
    {LANE_LEASE_WITHDRAWING, LEASE_FREED, LANE_LEASE_NONE},
    {LANE_LEASE_WAITING, LEASE_FREED, LANE_LEASE_NONE},
    {LANE_LEASE_REVOKED, LEASE_FREED, LANE_LEASE_NONE},
};
enum { ALLOWED = sizeof allowed / sizeof allowed[0] };

static bool is_allowed(int from, int event)
{
    for (int i = 0; i < ALLOWED; i++)
        if (allowed[i].from == (enum lane_lease_state)from &&
            allowed[i].event == (enum lease_event)event)
            return true;
    return false;
}

/* Whether a move ends the process: in a child, since an assertion does. */
static bool is_refused(int from, int event)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        struct lane_lease lease = {.state = (enum lane_lease_state)from};
        (void)close(STDERR_FILENO);
        lane_lease_move(&lease, (enum lease_event)event);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

START_TEST(each_event_leads_where_it_should)
{
    for (int i = 0; i < ALLOWED; i++) {
        struct lane_lease lease = {.state = allowed[i].from, .number = 7};
        lane_lease_move(&lease, allowed[i].event);
        ck_assert_msg(lease.state == allowed[i].to, "from %d by %d to %d, not %d", allowed[i].from,
                      allowed[i].event, lease.state, allowed[i].to);
        ck_assert_uint_eq(lease.number, 7);
    }
}
END_TEST

START_TEST(what_peers_can_find_is_not_freed_and_no_other_move_is_made)
{
    ck_assert(is_refused(LANE_LEASE_LIVE, LEASE_FREED));
    for (int from = 0; from < STATES; from++)
        for (int event = 0; event < LEASE_EVENTS; event++)
            ck_assert_msg(is_refused(from, event) != is_allowed(from, event), "from %d by %d", from,
                          event);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(each_event_leads_where_it_should)                                                            \
    T(what_peers_can_find_is_not_freed_and_no_other_move_is_made)
KEDGE_CHECK_MAIN("agent.lane.lease_moves", TESTS)
