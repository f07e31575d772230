/* SPDX-License-Identifier: Apache-2.0 */
/* A setting of a program's file, as manual pages and examples are held against it; and how the
 * range of one is written there. No state. Any thread. */
#ifndef BASE_SETTING_H
#define BASE_SETTING_H

#include <stdint.h>

enum { BASE_RANGE_TEXT = 64 };

enum base_unit {
    BASE_UNIT_NONE,
    BASE_UNIT_BYTES,
    BASE_UNIT_NS,
};

struct base_setting {
    const char *section, *key;
    const char *initial;         /* NULL: it depends on the host */
    char range[BASE_RANGE_TEXT]; /* "": it has none, or none that anybody would reach */
};

/* "1 to 1024", "64KiB to 4GiB", "0 to 60s". Where the end is out of anybody's reach: "64KiB or
 * more", or "" from 0 on. Returns out. */
const char *base_range_format(enum base_unit unit, uint64_t min, uint64_t max,
                              char out[BASE_RANGE_TEXT]);

#endif
