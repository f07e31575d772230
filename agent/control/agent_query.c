/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of metaservers: answered as the admin socket would. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin_counters.h"
#include "agent_query.h"
#include "base/error.h"
#include "base/metrics.h"
#include "control/question.h"
#include "revocations.h"

enum {
    /* Questions at a time, of one metaserver and of all, until their answers have come: of more we
     * say nothing, since saying so would take as much. A metaserver keeps to fewer. */
    ASKED_MAX = 16,
    ASKED_OF_ALL = 64,
};

static const char *text_or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

static void answer_question(struct agent *a, struct agent_query *q,
                            const struct agent_question *question)
{
    const struct held_request request = {.by = {.world = a->world, .asked = q},
                                         .id = text_or_null(question->item),
                                         .limit = text_or_null(question->limit),
                                         .cursor = text_or_null(question->cursor),
                                         .tenant = text_or_null(question->tenant),
                                         .worker = text_or_null(question->worker),
                                         .force = question->force ? "1" : NULL};
    base_text_reset(&a->answer);
    if (question->revoke && question->of != AGENT_QUESTION_LEASES) {
        agent_asker_refuse(request.by, ENOTSUP, "nothing but leases can be revoked");
    } else if (question->revoke) {
        (void)agent_leases_revoke(a, &request);
    } else if (question->of == AGENT_QUESTION_STATUS) {
        agent_status_print(a, &a->answer);
        agent_asker_reply(a, request.by, 200);
    } else {
        agent_leases_look(a, &request, question->of == AGENT_QUESTION_LEASES);
    }
}

void agent_query_take(struct agent *a, uint32_t metaserver, const char *line, size_t length)
{
    struct agent_question question;
    struct base_errbuf why;
    const int status = agent_question_decode(line, length, &question, &why);
    const bool room = a->asked.of[metaserver] < ASKED_MAX && a->asked.count < ASKED_OF_ALL &&
                      question.id[0] != '\0';
    struct agent_query *q = room ? calloc(1, sizeof *q) : NULL;
    a->asked.questions++;
    if (q == NULL) {
        a->asked.unanswered++;
        return;
    }
    q->agent = a;
    q->metaserver = metaserver;
    memcpy(q->id, question.id, sizeof q->id);
    q->next = a->asked.list;
    a->asked.list = q;
    a->asked.count++;
    a->asked.of[metaserver]++;
    if (status != 0)
        agent_asker_refuse((struct asker){.world = a->world, .asked = q}, EINVAL, why.text);
    else
        answer_question(a, q, &question);
}

void agent_query_stop(struct agent *a)
{
    agent_leases_forget_asked(a);
    while (a->asked.list != NULL)
        agent_query_forget(a->asked.list);
}

void agent_query_metrics(const struct agent *a, struct base_text *t)
{
    base_metric_one(t, "kedge_agent_queries_total", BASE_METRIC_COUNTER,
                    "Queries of metaservers about workers and leases.", a->asked.questions);
    base_metric_one(t, "kedge_agent_queries_unanswered_total", BASE_METRIC_COUNTER,
                    "Those whose answers were not taken, or that got none.", a->asked.unanswered);
    base_metric_one(t, "kedge_agent_queries_open", BASE_METRIC_GAUGE,
                    "Those whose answers have not come yet.", a->asked.count);
}
