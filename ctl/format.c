/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/format.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#define SECOND_MS UINT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS   (60 * MINUTE_MS)
#define DAY_MS    (24 * HOUR_MS)

/* Each unit is `of` times the one before. */
struct unit {
    const char *name;
    uint64_t of;
};

static const char *format_exactly(uint64_t amount, const struct unit *units, size_t count,
                                  char out[CTL_AMOUNT_BYTES])
{
    size_t i = 0;
    while (i + 1 < count && amount != 0 && amount % units[i + 1].of == 0)
        amount /= units[++i].of;
    snprintf(out, CTL_AMOUNT_BYTES, "%" PRIu64 "%s", amount, units[i].name);
    return out;
}

const char *ctl_format_size(uint64_t bytes, char out[CTL_AMOUNT_BYTES])
{
    static const struct unit units[] = {
        {"", 1}, {"KiB", 1024}, {"MiB", 1024}, {"GiB", 1024}, {"TiB", 1024}};
    return format_exactly(bytes, units, sizeof units / sizeof units[0], out);
}

const char *ctl_format_rounded(uint64_t bytes, char out[CTL_AMOUNT_BYTES])
{
    static const char *const names[] = {"", "KiB", "MiB", "GiB", "TiB"};
    uint64_t unit = 1;
    size_t i = 0;
    while (i + 1 < sizeof names / sizeof names[0] && bytes / unit >= 1024) {
        unit *= 1024;
        i++;
    }
    if (i == 0 || bytes % unit == 0)
        snprintf(out, CTL_AMOUNT_BYTES, "%" PRIu64 "%s", bytes / unit, names[i]);
    else
        snprintf(out, CTL_AMOUNT_BYTES, "%" PRIu64 ".%" PRIu64 "%s", bytes / unit,
                 bytes % unit * 10 / unit, names[i]);
    return out;
}

const char *ctl_format_duration(uint64_t ms, char out[CTL_AMOUNT_BYTES])
{
    static const struct unit units[] = {{"ms", 1}, {"s", 1000}, {"m", 60}, {"h", 60}, {"d", 24}};
    if (ms == 0)
        snprintf(out, CTL_AMOUNT_BYTES, "0");
    else
        (void)format_exactly(ms, units, sizeof units / sizeof units[0], out);
    return out;
}

const char *ctl_format_age(uint64_t ms, char out[CTL_AMOUNT_BYTES])
{
    /* From so long on it is said in a unit, and, where there is one below, with the rest in that.
     */
    static const struct {
        uint64_t from, unit, below;
        const char *name, *name_below;
    } steps[] = {
        {8 * DAY_MS, DAY_MS, 0, "d", ""},        {2 * DAY_MS, DAY_MS, HOUR_MS, "d", "h"},
        {8 * HOUR_MS, HOUR_MS, 0, "h", ""},      {3 * HOUR_MS, HOUR_MS, MINUTE_MS, "h", "m"},
        {10 * MINUTE_MS, MINUTE_MS, 0, "m", ""}, {2 * MINUTE_MS, MINUTE_MS, SECOND_MS, "m", "s"},
        {10 * SECOND_MS, SECOND_MS, 0, "s", ""}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (ms < steps[i].from)
            continue;
        const uint64_t whole = ms / steps[i].unit;
        const uint64_t rest = steps[i].below != 0 ? ms % steps[i].unit / steps[i].below : 0;
        if (rest == 0)
            snprintf(out, CTL_AMOUNT_BYTES, "%" PRIu64 "%s", whole, steps[i].name);
        else
            snprintf(out, CTL_AMOUNT_BYTES, "%" PRIu64 "%s%" PRIu64 "%s", whole, steps[i].name,
                     rest, steps[i].name_below);
        return out;
    }
    if (ms >= SECOND_MS)
        snprintf(out, CTL_AMOUNT_BYTES, "%" PRIu64 ".%" PRIu64 "s", ms / SECOND_MS,
                 ms % SECOND_MS / 100);
    else
        snprintf(out, CTL_AMOUNT_BYTES, "%" PRIu64 "ms", ms);
    return out;
}
