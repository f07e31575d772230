/* SPDX-License-Identifier: Apache-2.0 */
#include "base/setting.h"

#include <inttypes.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

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

int base_setting_check_section(base_setting_row row, const char *section, struct base_errbuf *what)
{
    struct base_setting s;
    char sections[200] = "";
    size_t used = 0;
    const char *last = "";
    for (size_t i = 0; row(i, &s); i++) {
        if (strcmp(s.section, section) == 0)
            return 0;
        if (strcmp(s.section, last) != 0 && used < sizeof sections)
            used += (size_t)snprintf(sections + used, sizeof sections - used, "%s[%s]",
                                     used > 0 ? ", " : "", s.section);
        last = s.section;
    }
    return base_err(what, -EINVAL, "there is no section [%.60s]: those that there are: %s", section,
                    sections);
}

int base_setting_refuse(base_setting_row row, const char *program, const char *section,
                        const char *key, struct base_errbuf *what)
{
    struct base_setting s;
    for (size_t i = 0; row(i, &s); i++) {
        if (strcmp(s.key, key) != 0)
            continue;
        if (section[0] == '\0')
            return base_err(what, -EINVAL,
                            "%.60s stands before the first section: it is one of [%s]", key,
                            s.section);
        return base_err(what, -EINVAL, "there is no setting %.60s in [%.60s]: it is one of [%s]",
                        key, section, s.section);
    }
    if (section[0] == '\0')
        return base_err(what, -EINVAL,
                        "there is no setting %.60s, which stands before the first section: see %s "
                        "--help for those that are",
                        key, program);
    return base_err(what, -EINVAL,
                    "there is no setting %.60s in [%.60s]: see %s --help for those that are", key,
                    section, program);
}

int base_setting_gid(const char *value, uint8_t gid[16], struct base_errbuf *must)
{
    uint8_t parsed[16];
    if (base_gid_parse(value, parsed) != 0 || parsed[0] == 0xff)
        return base_err(must, -EINVAL, "must be a unicast IPv6 address");
    memcpy(gid, parsed, sizeof parsed);
    return 0;
}
