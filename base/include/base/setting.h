/* SPDX-License-Identifier: Apache-2.0 */
/* A setting of a program's file, as manual pages and examples are held against it; and how the
 * range of one is written there. No state. Any thread. */
#ifndef BASE_SETTING_H
#define BASE_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

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

/* Setting i of a program; false: there are not so many. */
typedef bool (*base_setting_row)(size_t i, struct base_setting *out);

/* Of a file where a section begins: 0, or -EINVAL and which sections there are. */
int base_setting_check_section(base_setting_row row, const char *section, struct base_errbuf *what);
/* -EINVAL, and of a key that its section has not where it belongs. program: whose --help has all.
 */
int base_setting_refuse(base_setting_row row, const char *program, const char *section,
                        const char *key, struct base_errbuf *what);

/* A node's own GID, which others are to reach: 0, or -EINVAL and what it must be. */
int base_setting_gid(const char *value, uint8_t gid[16], struct base_errbuf *must);

/* "1 to 1024", "64KiB to 4GiB", "0 to 60s". Where the end is out of anybody's reach: "64KiB or
 * more", or "" from 0 on. Returns out. */
const char *base_range_format(enum base_unit unit, uint64_t min, uint64_t max,
                              char out[BASE_RANGE_TEXT]);

#endif
