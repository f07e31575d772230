/* SPDX-License-Identifier: Apache-2.0 */
/* What a VQP waits for: one thing at a time, each in its place. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../check_main.h"
#include "schedule/vqp.h"
#include "schedule/wait.h"
#include "session_state.h"

START_TEST(each_reason_has_a_place_and_a_vqp_comes_and_goes)
{
    struct lane_memory memory = {0};
    struct session session = {.memory = &memory};
    struct vqp q = {.session = &session};
    unsigned used[WAIT_PLACES] = {0};
    ck_assert_int_eq(vqp_wait_places[WAIT_NOTHING], PLACE_NONE);
    for (int why = WAIT_NOTHING + 1; why < VQP_WAITS; why++) {
        ck_assert_int_ne(vqp_wait_places[why], PLACE_NONE);
        used[vqp_wait_places[why]]++;
        lane_vqp_wait_move(&q, (enum vqp_wait)why);
        ck_assert_int_eq(q.wait, why);
        ck_assert_uint_eq(memory.shown.waits[why], 1);
        lane_vqp_wait_move(&q, WAIT_NOTHING);
        ck_assert_uint_eq(memory.shown.waits[why], 0);
    }
    ck_assert_uint_eq(used[PLACE_ROOM], 1);
    ck_assert_uint_eq(used[PLACE_WINDOW], LANE_WINDOW_SCOPES);
}
END_TEST

/* Whether a move ends the process: in a child, since an assertion does. */
static bool is_refused(enum vqp_wait from, enum vqp_wait to)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        struct lane_memory memory = {0};
        struct session session = {.memory = &memory};
        struct vqp q = {.session = &session, .wait = (uint8_t)from};
        (void)close(STDERR_FILENO);
        lane_vqp_wait_move(&q, to);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

START_TEST(it_leaves_one_place_before_it_goes_to_another)
{
    ck_assert(!is_refused(WAIT_NOTHING, WAIT_ROOM));
    ck_assert(!is_refused(WAIT_ROOM, WAIT_NOTHING));
    ck_assert(is_refused(WAIT_RECORD, WAIT_PATH));
    ck_assert(is_refused(WAIT_RECORD, WAIT_FLOW));
    ck_assert(is_refused(WAIT_FLOW, WAIT_ROOM));
    ck_assert(is_refused(WAIT_ROOM, WAIT_DEVICE_WINDOW));
    ck_assert(is_refused(WAIT_DEVICE_WINDOW, WAIT_NEWS));
}
END_TEST

#define TESTS(T)                                                                                   \
    T(each_reason_has_a_place_and_a_vqp_comes_and_goes)                                            \
    T(it_leaves_one_place_before_it_goes_to_another)
KEDGE_CHECK_MAIN("agent.lane.wait", TESTS)
