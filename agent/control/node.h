/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the node is cordoned or drained. Control thread. */
#ifndef CONTROL_NODE_H
#define CONTROL_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/desired.h"

struct agent;
struct agent_node_config;
struct base_text;

struct node_state {
    struct agent_node_config desired;
    uint64_t end_ns; /* draining: when the sessions that are left are ended; UINT64_MAX: never */
};

void agent_node_apply(struct agent *a, const struct agent_node_config *desired);
/* Now and then: ends what has had its time. */
void agent_node_tick(struct agent *a);
uint64_t agent_node_due_ns(const struct agent *a);
/* Whether no new workers are taken, and the sentence that says so. */
bool agent_node_refuses(const struct agent *a, char *text, size_t size);
/* A member of the status's object; and metrics. */
void agent_node_status(const struct agent *a, struct base_text *t);
void agent_node_metrics(const struct agent *a, struct base_text *t);

#endif
