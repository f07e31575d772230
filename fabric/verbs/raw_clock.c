/* SPDX-License-Identifier: Apache-2.0 */
/* The device's free-running clock: a counter behind a page of the device that libmlx5 and libmlx4
 * have mapped (others answer with EOPNOTSUPP, and so do these where the kernel gives no such page).
 */
#include <errno.h>

#include "base/clock.h"
#include "verbs/verbs.h"

enum { TRIES = 4, GOOD_NS = 20000, HZ_OF_KHZ = 1000, SURE_BITS = 41 };

/* The mask promises too much: mlx5_ib says 63 bits of every device, while mlx5_core's own clock
 * takes 41 of the same counter (mlx4 takes 48), and what is narrower than it says seems to go back
 * each time that it wraps: a doubt of the host's clock every 37 minutes at 1 GHz. Fewer bits than
 * there are do no harm but that a pause of exactly so many whole wraps, of 37 minutes each, is not
 * seen. */
static uint8_t bits_of(uint64_t mask)
{
    const int bits = mask == 0 ? 64 : 64 - __builtin_clzll(mask);
    return (uint8_t)(bits < SURE_BITS ? bits : SURE_BITS);
}

/* They do not change while the device is open, and asking is a call of the kernel, or of firmware:
 * too dear for each look. */
void verbs_clock_describe(struct verbs_fab *f)
{
    struct ibv_device_attr_ex attr = {.comp_mask = 0};
    f->clock_hz = 0;
    if (ibv_query_device_ex(f->context, NULL, &attr) != 0)
        return;
    f->clock_hz = attr.hca_core_clock * HZ_OF_KHZ;
    f->clock_bits = bits_of(attr.completion_timestamp_mask);
}

/* The counter itself comes in the nanoseconds' place, with no seconds. */
static int read_once(struct verbs_fab *f, struct fab_clock *out)
{
    struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    out->before_ns = base_clock_ns();
    const int status = ibv_query_rt_values_ex(f->context, &values);
    out->after_ns = base_clock_ns();
    if (status != 0)
        return status > 0 ? -status : status;
    if (!(values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK))
        return -EOPNOTSUPP;
    out->ticks =
        (uint64_t)values.raw_clock.tv_sec * BASE_NS_PER_S + (uint64_t)values.raw_clock.tv_nsec;
    out->ticks &= (1ull << out->bits) - 1;
    return 0;
}

/* Of a few tries the one that took least: its reader may have stood still in the others. */
int verbs_clock_query(struct verbs_fab *f, struct fab_ctl *ctl)
{
    struct fab_clock clock = {.hz = f->clock_hz, .bits = f->clock_bits};
    struct fab_clock best = {.after_ns = UINT64_MAX};
    int status = clock.hz == 0 ? -EOPNOTSUPP : 0;
    for (int i = 0; status == 0 && i < TRIES; i++) {
        status = read_once(f, &clock);
        if (status == 0 && clock.after_ns - clock.before_ns < best.after_ns - best.before_ns)
            best = clock;
        if (status == 0 && clock.after_ns - clock.before_ns < GOOD_NS)
            break;
    }
    if (status == 0)
        ctl->clock = best;
    return status;
}
