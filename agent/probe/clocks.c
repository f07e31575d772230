/* SPDX-License-Identifier: Apache-2.0 */
/* Leases are counted by this host's clock: whether anything can tell that it is wrong, and whether
 * it is so now. */
#include <errno.h>
#include <stdlib.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bed.h"

enum { LOOK_MS = 400, ALLOWED_PPM = 1000, CRYSTAL_PPM = 100, MILLION = 1000000 };

/* Two moments on the host's clock, between which another one was looked at. */
struct look {
    uint64_t before_ns, after_ns, other_ns;
};

static uint64_t now_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * BASE_NS_PER_S + (uint64_t)t.tv_nsec;
}

static struct look look_at_kernel(void)
{
    struct look l = {.before_ns = now_of(CLOCK_MONOTONIC)};
    l.other_ns = now_of(CLOCK_MONOTONIC_RAW);
    l.after_ns = now_of(CLOCK_MONOTONIC);
    return l;
}

/* By how many millionths the other clock is faster than the host's, the least of what it can be. */
static int64_t faster_ppm(const struct look *a, const struct look *b)
{
    const int64_t other = (int64_t)(b->other_ns - a->other_ns);
    const int64_t most = (int64_t)(b->after_ns - a->before_ns);
    const int64_t least = (int64_t)(b->before_ns - a->after_ns);
    if (other >= least && other <= most)
        return 0;
    return (other > most ? other - most : other - least) * MILLION / (least > 0 ? least : 1);
}

/* What the kernel was told to correct the clock by (USER_HZ is 100). */
static uint64_t steered_ppm(void)
{
    struct timex t = {.modes = 0};
    if (adjtimex(&t) < 0)
        return 0;
    return (uint64_t)labs(t.freq / 65536 + (t.tick - 10000) * 100);
}

static int read_device(struct bed *b, struct fab_clock *out)
{
    struct fab_ctl c = {.kind = FAB_QUERY_CLOCK};
    int status = probe_bed_call(b, &c);
    if (status == 0)
        *out = c.clock;
    return status;
}

static void tell_drift(struct probe_check *c, int64_t device_ppm, int64_t kernel_ppm,
                       bool has_device)
{
    probe_number(c, "steered_by_ppm", steered_ppm());
    probe_number(c, "off_kernels_ppm", (uint64_t)llabs(kernel_ppm));
    if (has_device)
        probe_number(c, "off_devices_ppm", (uint64_t)llabs(device_ppm));
    if (llabs(kernel_ppm) > ALLOWED_PPM)
        probe_warn(c,
                   "let chrony step the clock when it starts (makestep) and slew it by no more "
                   "than `maxslewrate 500`; until then an agent here reaches only regions that "
                   "hardware guards",
                   "the kernel steers this host's clock by %lld ppm, and leases allow for %d",
                   llabs(kernel_ppm), ALLOWED_PPM);
    else if (llabs(device_ppm) > ALLOWED_PPM + CRYSTAL_PPM)
        probe_warn(c,
                   "ask who runs this machine whether it is stopped or moved while it works, and "
                   "see `chronyc tracking`; until then an agent here reaches only regions that "
                   "hardware guards",
                   "this host's clock and the device's differ by %lld ppm, and leases allow for %d",
                   llabs(device_ppm), ALLOWED_PPM);
    else if (has_device)
        probe_ok(c, "this host's clock agrees with the device's: an agent finds out when the "
                    "machine was stopped, or its clock is steered too fast");
    else
        probe_ok(c, "the device has no clock that can be read, so that nobody finds out when this "
                    "machine was stopped: here KEDGE_MR_LEASE_ONLY, and regions of older agents, "
                    "are for machines that never are");
}

static uint64_t to_ns(uint64_t ticks, uint64_t hz)
{
    return (uint64_t)((unsigned __int128)ticks * BASE_NS_PER_S / hz);
}

static void check_clocks(struct bed *b, struct probe_check *c)
{
    struct fab_clock first = {.hz = 0}, second = {.hz = 0};
    struct look device = {.before_ns = 0};
    int64_t device_ppm = 0;
    const struct look kernel = look_at_kernel();
    int status = read_device(b, &first);
    const bool has_device = status == 0;
    if (status != 0 && status != -EOPNOTSUPP &&
        !probe_bed_succeeded(c, "reading the device's clock", status, NULL))
        return;
    usleep(LOOK_MS * 1000);
    if (has_device) {
        status = read_device(b, &second);
        if (!probe_bed_succeeded(c, "reading the device's clock again", status, NULL))
            return;
        const uint64_t mask = first.bits >= 64 ? UINT64_MAX : (1ull << first.bits) - 1;
        const struct look then = {.before_ns = second.before_ns,
                                  .after_ns = second.after_ns,
                                  .other_ns =
                                      to_ns((second.ticks - first.ticks) & mask, second.hz)};
        device = (struct look){.before_ns = first.before_ns, .after_ns = first.after_ns};
        device_ppm = faster_ppm(&device, &then);
        probe_number(c, "device_hz", first.hz);
        probe_number(c, "device_bits", first.bits);
    }
    const struct look later = look_at_kernel();
    tell_drift(c, device_ppm, faster_ppm(&kernel, &later), has_device);
}

void probe_clocks(struct bed *b)
{
    static const struct bed_case cases[] = {{"clocks", PROBE_FOR_NOTHING, check_clocks}};
    probe_bed_run(b, cases, 1);
}
