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
static void append_escaped(struct kedge_text *t, const char *value, bool label)
{
    for (; *value != '\0'; value++) {
        if (*value == '\\')
            kedge_text_append(t, "\\\\", 2);
        else if (*value == '\n')
            kedge_text_append(t, "\\n", 2);
        else if (*value == '"' && label)
            kedge_text_append(t, "\\\"", 2);
        else
            kedge_text_append(t, value, 1);
    }
}

void kedge_metric_head(struct kedge_text *t, const char *name, enum kedge_metric_type type,
                       const char *help)
{
    static const char *const types[] = {"counter", "gauge"};
    KEDGE_ASSERT(is_name(name));
    kedge_text_printf(t, "# HELP %s ", name);
    append_escaped(t, help, false);
    kedge_text_printf(t, "\n# TYPE %s %s\n", name, types[type]);
}

/* name {labels} and a blank. */
static void append_series(struct kedge_text *t, const char *name,
                          const struct kedge_metric_label *labels, size_t count)
{
    KEDGE_ASSERT(is_name(name));
    kedge_text_printf(t, "%s", name);
    const char *before = "{";
    for (size_t i = 0; i < count; i++) {
        KEDGE_ASSERT(is_name(labels[i].name));
        kedge_text_printf(t, "%s%s=\"", before, labels[i].name);
        append_escaped(t, labels[i].value, true);
        kedge_text_append(t, "\"", 1);
        before = ",";
    }
    kedge_text_printf(t, "%s ", before[0] == ',' ? "}" : "");
}

void kedge_metric_u64(struct kedge_text *t, const char *name,
                      const struct kedge_metric_label *labels, size_t count, uint64_t value)
{
    append_series(t, name, labels, count);
    kedge_text_printf(t, "%" PRIu64 "\n", value);
}

void kedge_metric_double(struct kedge_text *t, const char *name,
                         const struct kedge_metric_label *labels, size_t count, double value)
{
    append_series(t, name, labels, count);
    if (isnan(value))
        kedge_text_printf(t, "NaN\n");
    else if (isinf(value))
        kedge_text_printf(t, value > 0 ? "+Inf\n" : "-Inf\n");
    else
        kedge_text_printf(t, "%.17g\n", value);
}

void kedge_metric_one(struct kedge_text *t, const char *name, enum kedge_metric_type type,
                      const char *help, uint64_t value)
{
    kedge_metric_head(t, name, type, help);
    kedge_metric_u64(t, name, NULL, 0, value);
}

void kedge_metric_build_info(struct kedge_text *t, const char *name)
{
    const struct kedge_metric_label label[] = {{"version", KEDGE_VERSION},
                                               {"commit", kedge_version_commit()}};
    kedge_metric_head(t, name, KEDGE_METRIC_GAUGE, "Always 1; its labels say what is running.");
    kedge_metric_u64(t, name, label, 2, 1);
}
