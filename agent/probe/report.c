/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

void probe_report_fini(struct probe_report *r)
{
    fab_devices_fini(&r->devices);
}

struct probe_check *probe_begin(struct probe_report *r, const char *name, enum probe_need need)
{
    BASE_ASSERT(r->checks < PROBE_CHECKS); /* there are fewer in the source */
    struct probe_check *c = &r->check[r->checks++];
    *c = (struct probe_check){.name = name, .need = need, .result = PROBE_SKIPPED};
    snprintf(c->found, sizeof c->found, "not tried");
    return c;
}

#define SAY(c, result_)                                                                            \
    do {                                                                                           \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        vsnprintf((c)->found, sizeof(c)->found, format, args);                                     \
        va_end(args);                                                                              \
        (c)->result = result_;                                                                     \
    } while (0)

void probe_ok(struct probe_check *c, const char *format, ...)
{
    SAY(c, PROBE_OK);
}

void probe_skip(struct probe_check *c, const char *format, ...)
{
    SAY(c, PROBE_SKIPPED);
}

void probe_warn(struct probe_check *c, const char *advice, const char *format, ...)
{
    SAY(c, PROBE_WARNING);
    snprintf(c->advice, sizeof c->advice, "%s", advice);
}

void probe_fail(struct probe_check *c, const char *advice, const char *format, ...)
{
    SAY(c, PROBE_FAILED);
    snprintf(c->advice, sizeof c->advice, "%s", advice);
}

void probe_advise(struct probe_check *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->advice, sizeof c->advice, format, args);
    va_end(args);
}

void probe_number(struct probe_check *c, const char *name, uint64_t value)
{
    /* What is beyond, "unlimited" usually, many JSON readers refuse. */
    if (c->numbers < PROBE_NUMBERS)
        c->number[c->numbers++] =
            (struct probe_number){name, value < INT64_MAX ? value : INT64_MAX};
}

const struct probe_check *probe_find(const struct probe_report *r, const char *name)
{
    for (unsigned i = 0; i < r->checks; i++)
        if (strcmp(r->check[i].name, name) == 0)
            return &r->check[i];
    return NULL;
}

const char *probe_duration(uint64_t ns, char out[PROBE_DURATION])
{
    if (ns < 1000)
        snprintf(out, PROBE_DURATION, "%llu ns", (unsigned long long)ns);
    else if (ns < 1000000)
        snprintf(out, PROBE_DURATION, "%.1f us", (double)ns / 1e3);
    else if (ns < 1000000000)
        snprintf(out, PROBE_DURATION, "%.1f ms", (double)ns / 1e6);
    else
        snprintf(out, PROBE_DURATION, "%.2f s", (double)ns / 1e9);
    return out;
}

const char *probe_size(uint64_t bytes, char out[PROBE_DURATION])
{
    const uint64_t kib = 1024, mib = kib * kib;
    if (bytes >= 10 * mib || (bytes >= mib && bytes % mib == 0))
        snprintf(out, PROBE_DURATION, "%llu MiB", (unsigned long long)((bytes + mib - 1) / mib));
    else
        snprintf(out, PROBE_DURATION, "%llu KiB", (unsigned long long)((bytes + kib - 1) / kib));
    return out;
}

/* The first check that failed and that a transport cannot do without. */
static const struct probe_check *find_obstacle(const struct probe_report *r, enum probe_need need)
{
    for (unsigned i = 0; i < r->checks; i++)
        if (r->check[i].result == PROBE_FAILED && (r->check[i].need & need) != 0)
            return &r->check[i];
    return NULL;
}

void probe_judge(const struct probe_report *r, struct probe_verdict *out)
{
    const struct probe_check *rc = find_obstacle(r, PROBE_FOR_RC),
                             *dc = find_obstacle(r, PROBE_FOR_DC);
    const struct probe_check *peer = find_obstacle(r, PROBE_FOR_PEER);
    const struct probe_check *memlock = probe_find(r, PROBE_MEMLOCK);
    const char *condition = memlock != NULL && memlock->result == PROBE_WARNING
                                ? ", once more memory may be locked"
                                : "";
    bool has_dc = (r->transports & FAB_DC) != 0;
    *out = (struct probe_verdict){.usable = rc == NULL && !r->stuck && r->transports != 0};
    out->dc = out->usable && has_dc && dc == NULL;
    if (rc != NULL)
        snprintf(out->sentence, sizeof out->sentence,
                 "Kedge cannot run on this device, because %s failed: %s", rc->name, rc->found);
    else if (!out->usable)
        snprintf(out->sentence, sizeof out->sentence, "Kedge cannot run on this device, because %s",
                 r->stuck ? "a call into it did not come back (see the kernel's log: dmesg)"
                          : "none was opened");
    else if (out->dc)
        snprintf(out->sentence, sizeof out->sentence, "Kedge can run on this device%s: RC and DC",
                 condition);
    else if (has_dc)
        snprintf(out->sentence, sizeof out->sentence,
                 "Kedge can run on this device%s: RC, with transport = rc in [fabric]. DC does not "
                 "work, because %s failed: %s",
                 condition, dc->name, dc->found);
    else
        snprintf(out->sentence, sizeof out->sentence,
                 "Kedge can run on this device%s: RC (no DC: %s)", condition, r->no_dc);
    if (!out->usable || peer == NULL)
        return;
    out->usable = out->dc = false;
    snprintf(out->sentence, sizeof out->sentence,
             "Kedge can run on this device%s, but not with the other node, because %s failed: %s",
             condition, peer->name, peer->found);
}
