/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/assert.h"
#include "base/clock.h"
#include "control/clock_check.h"

enum { PART = 1000, CRYSTAL_PART = 10000 };
static const uint64_t LEAST_NS = BASE_NS_PER_MS;

void agent_clock_check_init(struct clock_check *c, uint64_t lease_ns)
{
    *c = (struct clock_check){.state = CLOCK_UNKNOWN, .lease_ns = lease_ns};
}

const char *agent_clock_check_name(const struct clock_check *c)
{
    static const char *const names[] = {"unknown", "trusted", "doubted"};
    return names[c->state];
}

/* ---- what two looks say */

static int64_t elapsed_between(uint64_t later, uint64_t earlier)
{
    return (int64_t)(later - earlier);
}

/* By how much the two clocks may differ after so long. One that is in doubt has to be better than
 * one that is not, by so little that the slewing that is advised (500 ppm, beside what corrects the
 * crystal) ends a doubt. */
static int64_t allowed_drift(const struct clock_check *c, int64_t elapsed_ns, bool crystal)
{
    const uint64_t elapsed = elapsed_ns > 0 ? (uint64_t)elapsed_ns : 0;
    uint64_t most = (elapsed > c->lease_ns ? elapsed : c->lease_ns) / PART;
    if (most < LEAST_NS)
        most = LEAST_NS;
    if (c->state == CLOCK_DOUBTED)
        most = most / 4 * 3;
    return (int64_t)(most + (crystal ? elapsed / CRYSTAL_PART : 0));
}

/* What was found out: CLOCK_NO_LIE, or by how much it is wrong, in how long. */
struct finding {
    enum clock_lie lie;
    uint64_t off_ns, over_ns;
};

/* Whether b can be true after a. */
static struct finding compare_looks(const struct clock_check *c, const struct clock_look *a,
                                    const struct clock_look *b, bool crystal)
{
    const int64_t other = elapsed_between(b->other_ns, a->other_ns);
    const int64_t host_least = elapsed_between(b->before_ns, a->after_ns);
    const int64_t host_most = elapsed_between(b->after_ns, a->before_ns);
    const int64_t most = allowed_drift(c, other > host_most ? other : host_most, crystal);
    const int64_t slow = other - host_most, fast = host_least - other;
    if (slow <= most && fast <= most)
        return (struct finding){.lie = CLOCK_NO_LIE};
    return (struct finding){.lie = slow > most ? CLOCK_SLOW : CLOCK_FAST,
                            .off_ns = (uint64_t)(slow > most ? slow : fast),
                            .over_ns = (uint64_t)(host_most > 0 ? host_most : 0)};
}

/* The first of the looks that contradicts this one. */
static struct finding compare_all(const struct clock_check *c, const struct clock_witness *w,
                                  const struct clock_look *look, bool crystal)
{
    struct finding found = {.lie = CLOCK_NO_LIE};
    for (uint32_t i = 0; i < w->count && found.lie == CLOCK_NO_LIE; i++)
        found = compare_looks(c, &w->look[i], look, crystal);
    return found;
}

static void forget_looks(struct clock_witness *w)
{
    w->count = w->next = 0;
}

/* They are so far apart that together they reach back two leases. */
static void keep_look(const struct clock_check *c, struct clock_witness *w,
                      const struct clock_look *look)
{
    const uint64_t apart_ns = c->lease_ns / (CLOCK_LOOKS / 2);
    const struct clock_look *last = &w->look[(w->next + CLOCK_LOOKS - 1) % CLOCK_LOOKS];
    if (w->count > 0 && look->before_ns - last->before_ns < apart_ns)
        return;
    w->look[w->next] = *look;
    w->next = (w->next + 1) % CLOCK_LOOKS;
    w->count += w->count < CLOCK_LOOKS;
}

/* ---- states */

static void move_state(struct clock_check *c, enum clock_state to)
{
    static const bool moves[3][3] = {
        /*                  from: UNKNOWN TRUSTED DOUBTED, to the column's */
        [CLOCK_UNKNOWN] = {false, true, true}, /* it agrees; it lies */
        [CLOCK_TRUSTED] = {true, false, true}, /* the device is silent; it lies */
        [CLOCK_DOUBTED] = {true, true, false}, /* grace is over, without the device and with it */
    };
    BASE_ASSERT(moves[c->state][to]);
    c->state = to;
}

/* A doubt that the device has raised stays its own, which only the device ends, when the kernel's
 * clock lies too meanwhile. */
static void doubt_clock(struct clock_check *c, const struct finding *found, uint64_t now_ns)
{
    const bool is_devices = c->state == CLOCK_DOUBTED && c->lie != CLOCK_STEERED;
    if (!is_devices || found->lie != CLOCK_STEERED) {
        c->lie = found->lie;
        c->off_ns = found->off_ns;
        c->over_ns = found->over_ns;
    }
    if (now_ns > c->lied_ns)
        c->lied_ns = now_ns;
    c->agrees_ns = 0;
    if (c->state == CLOCK_DOUBTED)
        return;
    c->lies++;
    move_state(c, CLOCK_DOUBTED);
}

/* The moments come out of order: what the device said is heard after a look at the kernel's clock
 * that was made later. So nothing is subtracted here. */
static void step_check(struct clock_check *c, uint64_t now_ns)
{
    const bool silent = c->heard_ns == 0 || now_ns > c->heard_ns + CLOCK_SILENT_NS;
    if (silent)
        c->agrees_ns = 0;
    const bool agrees = c->agrees_ns != 0 && now_ns >= c->agrees_ns + CLOCK_AGREE_NS;
    const uint64_t grace_ns = CLOCK_GRACE_NS + 4 * c->lease_ns;
    const bool gone = c->gone_ns != 0 && now_ns >= c->gone_ns + grace_ns;
    switch (c->state) {
    case CLOCK_UNKNOWN:
        if (agrees)
            move_state(c, CLOCK_TRUSTED);
        return;
    case CLOCK_TRUSTED:
        if (silent)
            move_state(c, CLOCK_UNKNOWN);
        return;
    case CLOCK_DOUBTED: /* of which the one that saw it has to say that it is over, if it can */
        if (now_ns < c->lied_ns + grace_ns)
            return;
        if (agrees || c->lie == CLOCK_STEERED || gone)
            move_state(c, agrees ? CLOCK_TRUSTED : CLOCK_UNKNOWN);
        return;
    }
}

/* ---- the device's */

enum heard { HEARD, HEARD_FIRST, HEARD_RESTART };

/* Takes the counter's value, which wraps. What was not looked at for half of a wrap, by the host's
 * clock, begins anew; a counter that went on by more than that meanwhile went back. One of another
 * rate is another device's: the machine was moved. */
static enum heard count_ticks(struct clock_check *c, const struct fab_clock *seen)
{
    const uint64_t mask = seen->bits >= 64 ? UINT64_MAX : (1ull << seen->bits) - 1;
    const uint64_t more = (seen->ticks - c->ticks) & mask, since = seen->before_ns - c->heard_ns;
    const unsigned __int128 half_ns =
        (unsigned __int128)(mask / 2) * BASE_NS_PER_S / (seen->hz != 0 ? seen->hz : 1);
    const bool first = c->heard_ns == 0, other = !first && seen->hz != c->hz;
    const bool late = !first && since > half_ns;
    c->heard_ns = seen->before_ns;
    c->ticks = seen->ticks;
    c->hz = seen->hz;
    c->total = first || other || late || more > mask / 2 ? 0 : c->total + more;
    if (other)
        return HEARD_RESTART;
    if (first || late)
        return HEARD_FIRST;
    return more > mask / 2 ? HEARD_RESTART : HEARD;
}

void agent_clock_check_device(struct clock_check *c, const struct fab_clock *seen)
{
    struct clock_witness *w = &c->device;
    struct finding found = {.lie = CLOCK_NO_LIE};
    c->gone_ns = 0;
    if (seen->hz == 0 || seen->after_ns - seen->before_ns > CLOCK_BLUR_NS)
        return;
    const enum heard heard = count_ticks(c, seen);
    const struct clock_look look = {
        .before_ns = seen->before_ns,
        .after_ns = seen->after_ns,
        .other_ns = (uint64_t)((unsigned __int128)c->total * BASE_NS_PER_S / seen->hz)};
    if (heard == HEARD_RESTART)
        found.lie = CLOCK_RESTARTED;
    if (heard != HEARD)
        forget_looks(w), c->agrees_ns = 0;
    if (heard == HEARD_FIRST && c->state == CLOCK_TRUSTED) /* nobody looked, and it may have lied */
        move_state(c, CLOCK_UNKNOWN);
    if (found.lie == CLOCK_NO_LIE)
        found = compare_all(c, w, &look, true);
    if (found.lie != CLOCK_NO_LIE) {
        forget_looks(w);
        doubt_clock(c, &found, seen->after_ns);
    }
    keep_look(c, w, &look);
    if (c->agrees_ns == 0)
        c->agrees_ns = seen->after_ns;
    step_check(c, seen->after_ns);
}

void agent_clock_check_gone(struct clock_check *c, uint64_t now_ns)
{
    if (c->gone_ns == 0)
        c->gone_ns = now_ns;
    step_check(c, now_ns);
}

/* ---- the kernel's */

void agent_clock_check_kernel(struct clock_check *c, const struct clock_look *look, uint64_t now_ns)
{
    struct clock_witness *w = &c->kernel;
    if (look->after_ns - look->before_ns <= CLOCK_BLUR_NS) {
        struct finding found = compare_all(c, w, look, false);
        if (found.lie != CLOCK_NO_LIE) {
            found.lie = CLOCK_STEERED;
            forget_looks(w);
            doubt_clock(c, &found, now_ns);
        }
        keep_look(c, w, look);
    }
    step_check(c, now_ns);
}

/* ---- in words */

void agent_clock_check_why(const struct clock_check *c, char *text, size_t size)
{
    const double off_ms = (double)c->off_ns / 1e6, over_ms = (double)c->over_ns / 1e6;
    text[0] = '\0';
    switch (c->lie) {
    case CLOCK_NO_LIE:
        return;
    case CLOCK_SLOW:
        snprintf(text, size,
                 "the device's clock counted %.1f ms more than this host's did in %.1f ms: the "
                 "hypervisor stopped or moved this machine, or its clock runs slow (drain a node "
                 "before its machine is stopped; see `chronyc tracking`)",
                 off_ms, over_ms);
        return;
    case CLOCK_FAST:
        snprintf(text, size,
                 "the device's clock counted %.1f ms less than this host's did in %.1f ms: the "
                 "device was reset, or the host's clock runs fast (see `chronyc tracking`)",
                 off_ms, over_ms);
        return;
    case CLOCK_RESTARTED:
        snprintf(text, size,
                 "the device's clock went back, or has another rate: the device was reset, or the "
                 "machine was moved to another one (drain a node before that)");
        return;
    case CLOCK_STEERED:
        snprintf(text, size,
                 "the kernel's clock is steered: it differs by %.1f ms in %.1f ms from the one "
                 "that nobody steers (let chrony step it when it starts, `makestep`, and slew it "
                 "by no more than `maxslewrate 500`)",
                 off_ms, over_ms);
        return;
    }
}
