/* SPDX-License-Identifier: Apache-2.0 */
/* What agents answer of their workers, their leases and themselves, as JSON. Agents are not
 * believed: what they say is of their own node, and within bounds. Any thread. */
#ifndef METASERVER_AGENT_PROXY_JSON_H
#define METASERVER_AGENT_PROXY_JSON_H

#include "base/text.h"
#include "metaserver/json_read.h"
#include "metaserver/resources.h"

enum {
    PROXY_ITEM_BYTES = 2048, /* of one worker or lease, as it is shown */
    PROXY_CURSOR_BYTES = 64, /* of an agent's own cursor */
    PROXY_DETAIL_BYTES = 400,
};

/* What was asked, and of whom. */
struct proxy_query {
    const char *node;
    bool leases;                                                     /* else workers */
    enum { PROXY_LIST, PROXY_ONE, PROXY_REVOKE, PROXY_STATUS } what; /* STATUS: of the agent */
    uint64_t limit;                                                  /* of a list */
    const char *id; /* of one, as the agent has it */
};

struct proxy_answer {
    int status;                      /* 200, 202; or what an error has */
    char detail[PROXY_DETAIL_BYTES]; /* of an error; "": it says nothing */
    uint32_t count;                  /* of a list: how many were appended */
    char next[PROXY_CURSOR_BYTES];   /* likewise: the agent's cursor; "": there are no more */
};

/* PUT /v1/nodes/{id}/answers/{query}: {"status": ..., "body": {...}}. Appends what it says to
 * out: of a list its items, with commas between them and before the first one if `more`; else the
 * object, which is an agent's status as it is, but that it has to be of the node that was asked.
 * Ids begin with the node's then ("n1:3-9f01ab34"), and the node is the one that was asked. 0, or
 * -EINVAL and the violation, and nothing is appended. */
int meta_proxy_json_answer(const void *body, size_t bytes, const struct proxy_query *query,
                           bool more, struct base_text *out, struct proxy_answer *answer,
                           struct meta_violation *violation);

#endif
