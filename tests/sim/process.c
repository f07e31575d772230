/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "fiber.h"
#include "os.h"
#include "random.h"

enum { WAKE_LEAST_NS = 500, WAKE_MOST_NS = 5000, MILLION = 1000000 };

struct play_process *play_process;

/* ---- clocks */

static uint64_t elapsed_at(const struct play_host *h, uint64_t now_ns, int32_t ppm)
{
    if (now_ns < h->clock_at_ns)
        return 0;
    const uint64_t since = now_ns - h->clock_at_ns;
    const __int128 more = (__int128)since * ppm / MILLION;
    return since + (uint64_t)(int64_t)more;
}

uint64_t play_host_ns(const struct play_host *h, uint64_t now_ns)
{
    return h->clock_began_ns + elapsed_at(h, now_ns, h->clock_ppm + h->steer_ppm);
}

uint64_t play_host_raw_ns(const struct play_host *h)
{
    return h->raw_began_ns + elapsed_at(h, play_now_ns(), h->clock_ppm);
}

uint64_t play_host_due(const struct play_host *h, uint64_t host_ns)
{
    if (host_ns == PLAY_NEVER)
        return PLAY_NEVER;
    if (host_ns <= h->clock_began_ns)
        return h->clock_at_ns;
    const uint64_t since = host_ns - h->clock_began_ns;
    uint64_t due = h->clock_at_ns +
                   (uint64_t)((__int128)since * MILLION / (MILLION + h->clock_ppm + h->steer_ppm));
    while (play_host_ns(h, due) < host_ns)
        due++;
    return due;
}

uint64_t play_host_now_ns(const struct play_host *h)
{
    return play_host_ns(h, play_now_ns());
}

uint64_t play_host_wall_ms(const struct play_host *h)
{
    return h->wall_ms + (play_host_now_ns(h) - h->clock_began_ns) / BASE_NS_PER_MS;
}

/* All that its clocks have said so far stays. */
static void begin_from_now(struct play_host *h)
{
    const uint64_t now_ns = play_now_ns(), host_ns = play_host_now_ns(h);
    h->wall_ms = play_host_wall_ms(h);
    h->raw_began_ns = play_host_raw_ns(h);
    h->clock_began_ns = host_ns;
    if (h->clock_at_ns < now_ns)
        h->clock_at_ns = now_ns;
}

void play_host_set_speed(struct play_host *h, int32_t ppm)
{
    begin_from_now(h);
    h->clock_ppm = ppm;
}

void play_host_steer(struct play_host *h, int32_t ppm)
{
    begin_from_now(h);
    h->steer_ppm = ppm;
}

void play_host_suspend(struct play_host *h, uint64_t until_ns, bool stops_clock)
{
    const uint64_t now_ns = play_now_ns();
    begin_from_now(h);
    if (until_ns > h->still_until_ns)
        h->still_until_ns = until_ns;
    if (stops_clock && until_ns > h->clock_at_ns) {
        for (struct play_process *p = h->processes; p != NULL; p = p->next)
            play_events_delay_of(&p->owner, until_ns - h->clock_at_ns);
        h->clock_at_ns = until_ns;
    }
    for (struct play_process *p = h->processes; p != NULL && now_ns < until_ns; p = p->next)
        play_process_pause(p, until_ns);
}

void play_host_step_wall(struct play_host *h, int64_t ms)
{
    begin_from_now(h);
    h->wall_ms = ms < 0 && (uint64_t)-ms > h->wall_ms ? 0 : h->wall_ms + (uint64_t)ms;
}

void play_host_boot(struct play_host *h, uint64_t ns)
{
    begin_from_now(h);
    h->clock_at_ns = play_now_ns();
    h->still_until_ns = 0;
    h->clock_began_ns = h->raw_began_ns = ns;
}

/* ---- processes */

struct play_process *play_process_enter(struct play_process *p)
{
    struct play_process *before = play_process;
    play_process = p;
    return before;
}

void play_process_leave(struct play_process *before)
{
    play_process = before;
}

static void run_process(void *user)
{
    struct play_process *p = user, *before = play_process_enter(p);
    p->waits = false;
    p->clock_reads = 0;
    p->ended = play_fiber_enter(p->fiber);
    play_process_leave(before);
}

struct play_process *play_process_new(struct play_host *host, const char *name, uint64_t seed,
                                      void (*run)(void *user), void *user)
{
    struct play_process *p = calloc(1, sizeof *p);
    if (p == NULL || (p->fiber = play_fiber_new(run, user)) == NULL) {
        free(p);
        return NULL;
    }
    p->host = host;
    p->user = user;
    (void)snprintf(p->name, sizeof p->name, "%.15s/%.15s", host->name, name);
    p->random = play_random_of(seed, p->name, play_now_ns());
    p->moves = play_random_of(seed, p->name, ~play_now_ns());
    p->wake = (struct play_event){.happen = run_process, .user = p, .owner = &p->owner};
    p->waits = true;
    p->next = host->processes;
    if (p->next != NULL)
        p->next->link = &p->next;
    p->link = &host->processes;
    host->processes = p;
    play_process_pause(p, host->still_until_ns);
    play_process_wake(p);
    return p;
}

void play_process_kill(struct play_process *p)
{
    BASE_ASSERT(play_process == NULL);
    if (p->killed != NULL)
        p->killed(p, p->user);
    *p->link = p->next;
    if (p->next != NULL)
        p->next->link = p->link;
    play_events_cancel_of(&p->owner);
    play_fiber_free(p->fiber);
    os_drop_all(p);
    free(p);
}

void play_process_pause(struct play_process *p, uint64_t until_ns)
{
    if (until_ns > p->owner.paused_until_ns)
        p->owner.paused_until_ns = until_ns;
}

bool play_process_wait(uint64_t until_ns)
{
    struct play_process *p = play_process;
    if (!p->woken) {
        p->waits = true;
        play_event_at(&p->wake, until_ns);
        play_fiber_leave();
    }
    p->clock_reads = 0;
    const bool woken = p->woken;
    p->woken = false;
    return woken;
}

void play_process_wake(struct play_process *p)
{
    if (p->woken)
        return;
    p->woken = true;
    if (p->waits)
        play_event_after(&p->wake, play_random_between(&p->random, WAKE_LEAST_NS, WAKE_MOST_NS));
}

void play_process_sleep(uint64_t ns)
{
    const uint64_t until_ns = play_now_ns() + ns;
    while (play_now_ns() < until_ns)
        (void)play_process_wait(until_ns);
}
