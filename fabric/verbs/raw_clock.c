/* SPDX-License-Identifier: Apache-2.0 */
/* The device's free-running clock: a counter behind a page of the device that libmlx5 and libmlx4
 * have mapped (others answer with EOPNOTSUPP, and so do these where the kernel gives no such page).
 */
#include <errno.h>

#include "base/clock.h"
#include "verbs/verbs.h"

enum { TRIES = 4, GOOD_NS = 20000, HZ_OF_KHZ = 1000 };

static uint8_t bits_of(uint64_t mask)
{
    return mask == 0 ? 64 : (uint8_t)(64 - __builtin_clzll(mask));
}

/* What the counter is: its rate and its width, which do not change while the device is open. */
static int describe(struct verbs_fab *f, struct kedge_fab_clock *out)
{
    struct ibv_device_attr_ex attr = {.comp_mask = 0};
    const int status = -ibv_query_device_ex(f->context, NULL, &attr);
    if (status != 0)
        return status;
    if (attr.hca_core_clock == 0)
        return -EOPNOTSUPP;
    out->hz = attr.hca_core_clock * HZ_OF_KHZ;
    out->bits = bits_of(attr.completion_timestamp_mask);
    return 0;
}

/* The counter itself comes in the nanoseconds' place, with no seconds. */
static int read_once(struct verbs_fab *f, struct kedge_fab_clock *out)
{
    struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    out->before_ns = kedge_clock_ns();
    const int status = ibv_query_rt_values_ex(f->context, &values);
    out->after_ns = kedge_clock_ns();
    if (status != 0)
        return status > 0 ? -status : status;
    if (!(values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK))
        return -EOPNOTSUPP;
    out->ticks =
        (uint64_t)values.raw_clock.tv_sec * KEDGE_NS_PER_S + (uint64_t)values.raw_clock.tv_nsec;
    return 0;
}

/* Of a few tries the one that took least: its reader may have stood still in the others. */
int verbs_clock_query(struct verbs_fab *f, struct kedge_fab_ctl *ctl)
{
    struct kedge_fab_clock clock = {.hz = 0}, best = {.after_ns = UINT64_MAX};
    int status = describe(f, &clock);
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
