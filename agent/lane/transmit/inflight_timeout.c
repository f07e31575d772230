/* SPDX-License-Identifier: Apache-2.0 */
/* What is out for too long, on a device that keeps no deadlines, ends before bound is over
 * (docs/leases.md#what-stands-in-a-queue-pair).
 *
 * No request is stamped with its time. The lane looks OVERDUE_LOOKS times in bound_ns, notes when
 * that was and how far each queue pair's ring was filled, and so knows of any request between which
 * two looks it was posted. Looks may come late; they are compared by their times, not counted.
 *
 * There may be thousands of connections: they are looked at in parts, one after the other, each as
 * often as that, so that no look is long. */
#include "transmit/inflight_timeout.h"

#include <errno.h>
#include <stdlib.h>

#include "lane_state.h"
#include "transmit/lane_events.h"
#include "transmit/physical_qp.h"

static const uint64_t LATE_NS = 10000000; /* a lane that runs is not as late as that */

enum { PART_LEAST = 64, PARTS_MOST = 32 /* queue pairs of a part; parts */ };

int lane_inflight_new(struct lane *l)
{
    const uint32_t parts = (l->phys_room + PART_LEAST - 1) / PART_LEAST;
    l->look_due_ns = l->config.end_overdue ? 0 : LANE_NEVER;
    l->await_due_ns = LANE_NEVER;
    l->look_parts = parts < PARTS_MOST ? parts : PARTS_MOST;
    l->looks = calloc(l->look_parts, sizeof l->looks[0]);
    if (l->looks == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < OVERDUE_LOOKS; i++) {
        l->seen[i] = calloc(l->phys_room, sizeof l->seen[i][0]);
        if (l->seen[i] == NULL)
            return -ENOMEM;
    }
    return 0;
}

void lane_inflight_free(struct lane *l)
{
    for (uint32_t i = 0; i < OVERDUE_LOOKS; i++)
        free(l->seen[i]);
    free(l->looks);
}

static uint64_t period_ns(const struct lane *l)
{
    return l->config.bound_ns / OVERDUE_LOOKS;
}

/* The first that was not handed over yet, or that will be posted next. It never goes back: what the
 * device refuses is taken back down to here at most, and a place that is used again goes on. */
static uint32_t handed_over(const struct physical_qp *p)
{
    return p->chain != NULL ? physical_qp_first_of(p->chain) : p->tail;
}

/* Where a part begins; where the last one ends. */
static uint32_t begin_of(const struct lane *l, uint32_t part)
{
    return (uint32_t)((uint64_t)l->phys_room * part / l->look_parts);
}

static void note_look(struct lane *l, uint32_t part)
{
    struct inflight_check_all *k = &l->looks[part];
    k->last = (k->last + 1) % OVERDUE_LOOKS;
    k->ns[k->last] = l->now_ns;
    for (uint32_t i = begin_of(l, part); i < begin_of(l, part + 1); i++)
        l->seen[k->last][i] = handed_over(&l->phys[i]);
}

/* What was posted right after such a look would be out for longer than bound at the look after the
 * next: not waited for, since the next may come late. */
static bool is_old(const struct lane *l, uint64_t look_ns)
{
    return look_ns + l->config.bound_ns < l->now_ns + 2 * period_ns(l);
}

/* The first look that is not old, the present one at least. What was posted before it may have been
 * out since one that is. */
static uint32_t after_old(const struct lane *l, const struct inflight_check_all *k)
{
    uint32_t look = k->last;
    for (uint32_t i = 1; i < OVERDUE_LOOKS; i++) {
        const uint32_t before = (look + OVERDUE_LOOKS - 1) % OVERDUE_LOOKS;
        if (is_old(l, k->ns[before]))
            break;
        look = before;
    }
    return look;
}

/* The control side tells the device to end it. Neither may do so: it is given up then, as one that
 * broke is. */
static void ask_for_end(struct lane *l, struct physical_qp *p, enum lane_event_kind why)
{
    struct lane_event event = {.kind = why, .qp = p->qp};
    p->overdue = OVERDUE_ENDED;
    lane_event_push(l, &event);
    l->did++; /* so that the control side hears of it */
    lane_physical_qp_await(l, p);
}

static void report_overdue(struct lane *l, struct physical_qp *p)
{
    COUNT(l, qp_overdue, 1);
    ask_for_end(l, p, LANE_EVENT_QP_OVERDUE);
}

static bool is_overdue(const struct lane *l, uint32_t i, uint32_t look)
{
    const struct physical_qp *p = &l->phys[i];
    return p->overdue != OVERDUE_ENDED && (int32_t)(l->seen[look][i] - p->head) > 0;
}

/* Of those without a queue pair nothing is out. False: none. */
static bool has_overdue(const struct lane *l, uint32_t part)
{
    const uint32_t look = after_old(l, &l->looks[part]);
    for (uint32_t i = begin_of(l, part); i < begin_of(l, part + 1); i++)
        if (is_overdue(l, i, look))
            return true;
    return false;
}

bool lane_inflight_check(struct lane *l)
{
    const uint64_t step_ns = period_ns(l) / l->look_parts;
    bool overdue = false;
    l->looked_parts = 0;
    if (l->now_ns < l->look_due_ns)
        return false;
    /* After a pause all, once. */
    while (l->looked_parts < l->look_parts && l->now_ns >= l->look_due_ns) {
        note_look(l, l->look_part); /* first: what this pass posts was not out before it */
        overdue |= has_overdue(l, l->look_part);
        l->look_part = l->look_part + 1 == l->look_parts ? 0 : l->look_part + 1;
        l->look_due_ns += step_ns;
        l->looked_parts++;
    }
    if (l->look_due_ns <= l->now_ns)
        l->look_due_ns = l->now_ns + step_ns;
    return overdue;
}

void lane_inflight_end_overdue(struct lane *l)
{
    for (uint32_t n = 1; n <= l->looked_parts; n++) {
        const uint32_t part = (l->look_part + l->look_parts - n) % l->look_parts;
        const uint32_t look = after_old(l, &l->looks[part]);
        for (uint32_t i = begin_of(l, part); i < begin_of(l, part + 1); i++)
            if (is_overdue(l, i, look))
                report_overdue(l, &l->phys[i]);
    }
}

/* ---- what a broken queue pair does not give back */

/* One stream's error does not end the others: the device may serve them for as long as it likes. So
 * it is told to end the queue pair, which gives them back, before that is given up. */
static bool may_live(const struct lane *l, const struct physical_qp *p)
{
    return l->config.streams && p->overdue != OVERDUE_ENDED;
}

void lane_inflight_retire(struct lane *l, struct physical_qp *p)
{
    if (p->head == p->tail) {
        lane_physical_qp_abandon(l, p);
        return;
    }
    if (p->broken == BROKEN_NOT)
        ask_for_end(l, p, LANE_EVENT_QP_RETIRED);
}

void lane_inflight_retire_qp(struct lane *l, const struct fab_qp *qp)
{
    for (uint32_t i = 0; i < l->phys_room; i++)
        if (l->phys[i].qp == qp && !l->phys[i].broken)
            lane_inflight_retire(l, &l->phys[i]);
}

void lane_inflight_destroyed(struct lane *l, const struct fab_qp *qp)
{
    for (uint32_t i = 0; i < l->phys_room; i++)
        if (l->phys[i].qp == qp && l->phys[i].broken == BROKEN_FAILING)
            lane_physical_qp_abandon(l, &l->phys[i]);
}

/* The lane comes here much later than it was to. Its host may have stood still, and with it the
 * device and whoever tells that to end a queue pair: neither had any of that time. It looks often,
 * so that no stop that matters is taken for time that it waited. */
static bool comes_late(const struct lane *l)
{
    return l->now_ns - l->await_due_ns > physical_qp_await_ns(l) + LATE_NS;
}

/* What it waited for p counts up to when it last looked, and on from now. */
static void leave_out_stop(const struct lane *l, struct physical_qp *p)
{
    const uint32_t looked_us = physical_qp_us(l->await_due_ns - physical_qp_await_ns(l));
    const int32_t waited_us = (int32_t)(looked_us - p->failing_us);
    p->failing_us = physical_qp_us(l->now_ns) - (uint32_t)(waited_us > 0 ? waited_us : 0);
}

static void wait_on(struct lane *l, uint64_t rest_ns)
{
    const uint64_t part_ns = physical_qp_await_ns(l);
    const uint64_t due_ns = l->now_ns + (rest_ns < part_ns ? rest_ns : part_ns);
    if (due_ns < l->await_due_ns)
        l->await_due_ns = due_ns;
}

/* By then nothing of it is tried any more, on any device where it is in ERR. */
void lane_inflight_give_up(struct lane *l)
{
    const uint64_t bound_ns = l->config.bound_ns;
    const bool late = comes_late(l);
    for (uint32_t i = 0; late && i < l->phys_room; i++)
        if (l->phys[i].broken == BROKEN_FAILING)
            leave_out_stop(l, &l->phys[i]);
    l->await_due_ns = LANE_NEVER;
    for (uint32_t i = 0; i < l->phys_room; i++) {
        struct physical_qp *p = &l->phys[i];
        if (p->broken != BROKEN_FAILING)
            continue;
        const uint64_t since_ns = (physical_qp_us(l->now_ns) - p->failing_us) * 1000ull;
        if (since_ns + 1000 > bound_ns && may_live(l, p)) {
            report_overdue(l, p);
            lane_physical_qp_await_longer(l, p);
        } else if (since_ns + 1000 > bound_ns)
            lane_physical_qp_abandon(l, p);
        else
            wait_on(l, bound_ns - since_ns);
    }
}

uint64_t lane_inflight_next(const struct lane *l)
{
    for (uint32_t i = 0; l->look_due_ns < l->await_due_ns && i < l->phys_room; i++)
        if (l->phys[i].head != l->phys[i].tail && l->phys[i].overdue != OVERDUE_ENDED)
            return l->look_due_ns;
    return l->await_due_ns;
}
