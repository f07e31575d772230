/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/version.h"

/* [a-zA-Z_:][a-zA-Z0-9_:]* without the colon, which is for recording rules. */
static bool is_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return name[0] != '\0' && !(name[0] >= '0' && name[0] <= '9') &&
           name[strspn(name, allowed)] == '\0';
}

/* Label values escape the quote, help texts do not. */
static void append_escaped(struct base_text *t, const char *value, bool label)
{
    for (; *value != '\0'; value++) {
        if (*value == '\\')
            base_text_append(t, "\\\\", 2);
        else if (*value == '\n')
            base_text_append(t, "\\n", 2);
        else if (*value == '"' && label)
            base_text_append(t, "\\\"", 2);
        else
            base_text_append(t, value, 1);
    }
}

void base_metric_head(struct base_text *t, const char *name, enum base_metric_type type,
                      const char *help)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    BASE_ASSERT(is_name(name));
    base_text_printf(t, "# HELP %s ", name);
    append_escaped(t, help, false);
    base_text_printf(t, "\n# TYPE %s %s\n", name, types[type]);
}

/* name {labels} and a blank. */
static void append_series(struct base_text *t, const char *name,
                          const struct base_metric_label *labels, size_t count)
{
    BASE_ASSERT(is_name(name));
    base_text_printf(t, "%s", name);
    const char *before = "{";
    for (size_t i = 0; i < count; i++) {
        BASE_ASSERT(is_name(labels[i].name));
        base_text_printf(t, "%s%s=\"", before, labels[i].name);
        append_escaped(t, labels[i].value, true);
        base_text_append(t, "\"", 1);
        before = ",";
    }
    base_text_printf(t, "%s ", before[0] == ',' ? "}" : "");
}

void base_metric_u64(struct base_text *t, const char *name, const struct base_metric_label *labels,
                     size_t count, uint64_t value)
{
    append_series(t, name, labels, count);
    base_text_printf(t, "%" PRIu64 "\n", value);
}

void base_metric_double(struct base_text *t, const char *name,
                        const struct base_metric_label *labels, size_t count, double value)
{
    append_series(t, name, labels, count);
    if (isnan(value))
        base_text_printf(t, "NaN\n");
    else if (isinf(value))
        base_text_printf(t, value > 0 ? "+Inf\n" : "-Inf\n");
    else
        base_text_printf(t, "%.17g\n", value);
}

void base_metric_one(struct base_text *t, const char *name, enum base_metric_type type,
                     const char *help, uint64_t value)
{
    base_metric_head(t, name, type, help);
    base_metric_u64(t, name, NULL, 0, value);
}

void base_metric_build_info(struct base_text *t, const char *name)
{
    const struct base_metric_label label[] = {{"version", KEDGE_VERSION},
                                              {"commit", base_version_commit()}};
    base_metric_head(t, name, BASE_METRIC_GAUGE, "Always 1; its labels say what is running.");
    base_metric_u64(t, name, label, 2, 1);
}
