/* SPDX-License-Identifier: Apache-2.0 */
/* --since: a time, or how long ago. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "ctl/since.h"

/* "2026-11-28T14:27:14.664Z", "2026-11-28T14:27:14+01:00" -> ms since 1970. -EINVAL. */
static int parse_time(const char *text, int64_t *out_ms)
{
    struct tm tm = {.tm_sec = 0};
    unsigned hours = 0, minutes = 0, scale = 100;
    int64_t ms = 0;
    char zone[8], midnight[24];
    if (strlen(text) == strlen("0000-00-00")) { /* a day, from its begin on */
        snprintf(midnight, sizeof midnight, "%sT00:00:00Z", text);
        text = midnight;
    }
    if (strspn(text, "0123456789-T:.Z+") != strlen(text) || strlen(text) < strlen("0000-00-00T00"))
        return -EINVAL;
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    if (end == NULL || end - text != 19)
        return -EINVAL;
    if (*end == '.' && end[1] >= '0' && end[1] <= '9')
        for (end++; *end >= '0' && *end <= '9'; end++, scale /= 10)
            ms += (*end - '0') * (int64_t)scale;
    snprintf(zone, sizeof zone, "%.7s", end);
    const bool offset = strlen(zone) == 6 && (zone[0] == '+' || zone[0] == '-') &&
                        strspn(zone + 1, "0123456789") == 2 && zone[3] == ':' &&
                        sscanf(zone + 1, "%2u:%2u", &hours, &minutes) == 2;
    if (!offset && strcmp(zone, "Z") != 0)
        return -EINVAL;
    const int64_t seconds = (int64_t)hours * 3600 + (int64_t)minutes * 60;
    *out_ms = ((int64_t)timegm(&tm) - (zone[0] == '-' ? -seconds : seconds)) * 1000 + ms;
    return 0;
}

int ctl_since_parse(const char *text, char out[CTL_SINCE_BYTES], struct base_errbuf *err)
{
    uint64_t ago_ns;
    int64_t ms;
    struct tm tm;
    if (base_parse_duration(text, &ago_ns) == 0)
        ms = (int64_t)base_clock_wall_ms() - (int64_t)(ago_ns / BASE_NS_PER_MS);
    else if (parse_time(text, &ms) != 0)
        return base_err(err, -EINVAL,
                        "--since must be a duration such as 10m or 1w2d, or a time such as "
                        "2027-01-31T00:00:00Z or 2027-01-31, not \"%.40s\"",
                        text);
    const time_t seconds = ms < 0 ? 0 : (time_t)(ms / 1000);
    if (gmtime_r(&seconds, &tm) == NULL ||
        strftime(out, CTL_SINCE_BYTES, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        return base_err(err, -EINVAL, "--since: there is no such time");
    const size_t used = strlen(out);
    snprintf(out + used, CTL_SINCE_BYTES - used, ".%03d", ms < 0 ? 0 : (int)(ms % 1000));
    return 0;
}
