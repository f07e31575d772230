/* SPDX-License-Identifier: Apache-2.0 */
/* What of the settings is in force, as metaservers are told. Control thread. */
#ifndef CONTROL_APPLIED_REPORT_H
#define CONTROL_APPLIED_REPORT_H

#include <stdint.h>

#include "follow.h"

struct agent;
struct base_text;

/* What was seen of the settings and is not in force; empty: nothing. */
void agent_desired_why(const struct agent *a, char why[DESIRED_WHY]);
void agent_desired_metrics(const struct agent *a, struct base_text *t);
/* Now and then, and at once when something has changed that metaservers are told. */
void agent_report_step(struct agent *a);
/* When what a metaserver did not take is told it again. */
uint64_t agent_report_due_ns(const struct agent *a);

#endif
