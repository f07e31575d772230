/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver asks of this node's workers, leases and status, on the stream that the agent
 * follows: a line {"ask": {...}} (schema/openapi.yaml), decoded. No I/O. Any thread. */
#ifndef CONTROL_QUESTION_H
#define CONTROL_QUESTION_H

#include <stdbool.h>
#include <stddef.h>

#include "control/lease_ids.h"
#include "base/error.h"

enum {
    AGENT_QUESTION_ID_BYTES = 16 + 1,
    AGENT_QUESTION_TEXT = 64,   /* of a tenant's name */
    AGENT_QUESTION_BYTES = 4096 /* of a line */
};

/* Texts are as the admin socket's path and queries have them, and as little checked; "": absent. */
struct agent_question {
    char id[AGENT_QUESTION_ID_BYTES]; /* 16 of 0-9, a-f */
    bool revoke;                      /* else look */
    enum agent_question_of {
        AGENT_QUESTION_WORKERS,
        AGENT_QUESTION_LEASES,
        AGENT_QUESTION_STATUS /* the agent's own */
    } of;
    bool force;
    char item[AGENT_ID_BYTES], worker[AGENT_ID_BYTES];
    char cursor[AGENT_QUESTION_TEXT], tenant[AGENT_QUESTION_TEXT];
    char limit[8];
};

/* Whether a line of the stream is a question, and no configuration. */
bool agent_line_is_question(const char *line, size_t length);

/* Or asks this agent to renew its lease now: the line {"renew": true}; or many agents, each at a
 * moment of its own: {"renew": "soon"}. */
bool agent_line_is_renewal(const char *line, size_t length);
bool agent_renewal_is_of_many(const char *line, size_t length);

/* 0 and *out. -EINVAL and a sentence: it makes no sense, or asks for more than this agent knows of,
 * which might be to revoke less; out->id is "" if there is nobody to tell. */
int agent_question_decode(const char *line, size_t length, struct agent_question *out,
                          struct base_errbuf *why);

#endif
