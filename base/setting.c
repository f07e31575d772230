/* SPDX-License-Identifier: Apache-2.0 */
#include "base/setting.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/clock.h"

enum { AMOUNT_TEXT = 24 };

/* With the largest unit of which it is so many. */
static const char *format_amount(enum base_unit unit, uint64_t value, char out[AMOUNT_TEXT])
{
    static const struct {
        enum base_unit of;
        const char *name;
        uint64_t size;
    } units[] = {
        {BASE_UNIT_BYTES, "TiB", UINT64_C(1) << 40},
        {BASE_UNIT_BYTES, "GiB", UINT64_C(1) << 30},
        {BASE_UNIT_BYTES, "MiB", UINT64_C(1) << 20},
        {BASE_UNIT_BYTES, "KiB", UINT64_C(1) << 10},
        {BASE_UNIT_NS, "d", 24 * 3600 * BASE_NS_PER_S},
        {BASE_UNIT_NS, "h", 3600 * BASE_NS_PER_S},
        {BASE_UNIT_NS, "s", BASE_NS_PER_S},
        {BASE_UNIT_NS, "ms", BASE_NS_PER_MS},
    };
    for (size_t i = 0; i < sizeof units / sizeof units[0] && value != 0; i++)
        if (units[i].of == unit && value % units[i].size == 0) {
            snprintf(out, AMOUNT_TEXT, "%" PRIu64 "%s", value / units[i].size, units[i].name);
            return out;
        }
    snprintf(out, AMOUNT_TEXT, "%" PRIu64, value);
    return out;
}

const char *base_range_format(enum base_unit unit, uint64_t min, uint64_t max,
                              char out[BASE_RANGE_TEXT])
{
    char from[AMOUNT_TEXT], to[AMOUNT_TEXT];
    const bool endless = unit != BASE_UNIT_NS && max >= UINT64_C(1)
                                                            << (unit == BASE_UNIT_BYTES ? 40 : 30);
    format_amount(unit, min, from);
    if (!endless)
        snprintf(out, BASE_RANGE_TEXT, "%s to %s", from, format_amount(unit, max, to));
    else
        snprintf(out, BASE_RANGE_TEXT, "%s%s", min > 0 ? from : "", min > 0 ? " or more" : "");
    return out;
}
