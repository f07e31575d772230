/* SPDX-License-Identifier: Apache-2.0 */
/* How long a worker pauses between two turns. */
#include "base/clock.h"
#include "random.h"
#include "worker_state.h"

enum {
    RUN_PPM = 5000, /* of turns as many follow at once, */
    RUN_TURNS = 50, /* each after this part of the usual pause: */
    RUN_PART = 30,
    LONGS_S = 20, /* without a success */
};

/* The mean of a pause. Who has posted more than it is to takes longer ones, until that is made up
 * for, and who has posted less shorter ones; of that more than two bursts is forgotten. */
static uint64_t choose_pause(struct play_worker *w)
{
    const int64_t each = (int64_t)w->settings.operation_ns, burst = each * BURST_MOST;
    if (each == 0)
        return w->settings.pause_ns;
    w->credit_ns += (int64_t)(play_now_ns() - w->paused_ns) -
                    (int64_t)(w->count.posted - w->paused_posted) * each;
    w->paused_ns = play_now_ns();
    w->paused_posted = w->count.posted;
    if (w->credit_ns > 2 * burst)
        w->credit_ns = 2 * burst;
    return w->credit_ns > burst    ? w->settings.pause_ns / 2
           : w->credit_ns < -burst ? w->settings.pause_ns / 3 * 4
                                   : w->settings.pause_ns;
}

/* However seldom it posts, who has had no success for long tries again soon: in the end each is
 * to have had one. */
static uint64_t draw_pause(struct play_worker *w)
{
    const uint64_t ns = play_random_wait(&w->random, choose_pause(w));
    const bool longs = w->settings.operation_ns != 0 &&
                       w->count.last_success_ns + LONGS_S * BASE_NS_PER_S < play_now_ns();
    return longs && ns > BASE_NS_PER_S ? BASE_NS_PER_S : ns;
}

void play_worker_pause(struct play_worker *w)
{
    const uint64_t ns = draw_pause(w);
    if (w->run > 0)
        w->run--;
    else if (play_random_happens(&w->random, RUN_PPM))
        w->run = RUN_TURNS;
    const uint64_t until_ns = play_now_ns() + (w->run > 0 ? ns / RUN_PART : ns);
    w->called = false;
    w->pauses = true;
    while (!w->called && !w->told_to_stop && play_now_ns() < until_ns)
        (void)play_process_wait(until_ns);
    w->pauses = false;
}
