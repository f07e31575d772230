/* SPDX-License-Identifier: Apache-2.0 */
/* Writes metrics in Prometheus' text exposition format (version 0.0.4) into a text.
 *
 * The caller gives all samples of one family after its head. Names and label names are ours (they
 * are asserted); label values may be anything and are escaped. Errors stick in the text. */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* The Content-Type of such a text. */
#define BASE_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* A histogram's series are written by latency.h. */
enum base_metric_type { BASE_METRIC_COUNTER, BASE_METRIC_GAUGE, BASE_METRIC_HISTOGRAM };

struct base_metric_label {
    const char *name;
    const char *value;
};

/* # HELP and # TYPE. */
void base_metric_head(struct base_text *t, const char *name, enum base_metric_type type,
                      const char *help);
/* Head and one sample without labels. */
void base_metric_one(struct base_text *t, const char *name, enum base_metric_type type,
                     const char *help, uint64_t value);
/* A gauge of 1 whose label says which version of Kedge this is, as Prometheus wants to join it. */
void base_metric_build_info(struct base_text *t, const char *name);
/* One sample; labels may be NULL when count is 0. */
void base_metric_u64(struct base_text *t, const char *name, const struct base_metric_label *labels,
                     size_t count, uint64_t value);
void base_metric_double(struct base_text *t, const char *name,
                        const struct base_metric_label *labels, size_t count, double value);
#endif
