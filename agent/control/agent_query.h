/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks for workers and leases: a program at the admin socket, or a metaserver on behalf of a
 * client of its own. Both get the same answers. Control thread. */
#ifndef CONTROL_AGENT_QUERY_H
#define CONTROL_AGENT_QUERY_H

#include "agent.h"
#include "control/admin.h"
#include "control/question.h"

/* A metaserver's question whose answer has not come yet. */
struct agent_query {
    struct agent *agent;
    struct agent_query *next;
    uint32_t metaserver; /* that asks */
    char id[AGENT_QUESTION_ID_BYTES];
};

/* One of the two, until it has its answer; neither: it has, or is gone. */
struct asker {
    struct world *world;           /* the agent's */
    struct world_request *request; /* of the admin socket */
    struct agent_query *asked;
};

/* What is asked for. Texts as the admin socket's path and query have them; NULL: absent. */
struct held_request {
    struct asker by;
    const char *id;
    const char *limit, *cursor, *tenant, *worker, *force;
};

static inline bool asker_waits(struct asker by)
{
    return by.request != NULL || by.asked != NULL;
}

/* Takes it off the list, and frees it. */
void agent_query_forget(struct agent_query *q);
/* query_answer.c. Whether it is known to have gone. */
bool agent_asker_is_gone(struct asker by);
/* Answers, once, with a->answer; or with an error, of either sign, and a sentence or NULL. */
void agent_asker_reply(struct agent *a, struct asker by, int status);
void agent_asker_refuse(struct asker by, int errnum, const char *detail);

/* A line of a metaserver's stream that is a question: it is that one's to be answered. */
void agent_query_take(struct agent *a, uint32_t metaserver, const char *line, size_t length);
/* Forgets those that have no answer yet: there is nobody to tell any more. */
void agent_query_stop(struct agent *a);
void agent_query_metrics(const struct agent *a, struct base_text *t);

#endif
