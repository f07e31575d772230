/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of the metaserver that the agent follows, and the answers to them: what the admin
 * socket would say, sent as a request of our own. */
#include "agent_query.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/question.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/http/client.h"
#include "base/http/server.h" /* http_problem() */
#include "base/json_writer.h"
#include "base/metrics.h"
#include "leases.h"

enum {
    /* Questions at a time, until their answers have come: of more we say nothing, since saying so
     * would take as much. A metaserver keeps to fewer. */
    ASKED_MAX = 8,
    ANSWER_BYTES = 256 << 10, /* as metaservers take it */
    ENVELOPE_BYTES = 64,      /* around it */
};

struct agent_query {
    struct agent *agent;
    struct agent_query *next;
    uint32_t metaserver; /* that asks */
    char id[AGENTD_QUESTION_ID_BYTES];
};

/* ---- answers ------------------------------------------------------------------------------- */

static void forget_question(struct agent_query *q)
{
    for (struct agent_query **at = &q->agent->asked.list; *at != NULL; at = &(*at)->next)
        if (*at == q) {
            *at = q->next;
            q->agent->asked.count--;
            break;
        }
    free(q);
}

static void on_told(void *user, const struct http_answer *answer)
{
    struct agent_query *q = user;
    if (answer->status != 204) {
        q->agent->asked.unanswered++;
        base_log(BASE_LOG_DEBUG, "an answer was not taken", "status=%d why=\"%s\"", answer->status,
                 answer->status < 0 ? answer->why : answer->body);
    }
    forget_question(q);
}

/* Sends the answer, and forgets the question when it has come. body: a JSON object. */
static void send_answer(struct agent_query *q, int status, const char *body)
{
    struct agent *a = q->agent;
    struct base_text t;
    char url[METASERVER_URL_BYTES];
    base_text_init(&t, ANSWER_BYTES);
    base_json_object(&t, NULL);
    base_json_i64(&t, "status", status);
    base_json_raw(&t, "body", body);
    base_json_object_end(&t);
    snprintf(url, sizeof url, "%s/v1/nodes/%s/answers/%s", a->config.metaserver[q->metaserver],
             a->config.node, q->id);
    struct http_call c = metaserver_call(a, "PUT", url, CALL_MS);
    c.body = base_text_str(&t);
    c.body_length = t.length;
    const bool told = t.error == 0 && world_call(a->world, &c, on_told, q, NULL) == 0;
    base_text_fini(&t);
    if (told)
        return;
    a->asked.unanswered++;
    forget_question(q);
}

bool asker_is_gone(struct asker by)
{
    return by.request != NULL && world_is_gone(by.world, by.request);
}

void asker_refuse(struct asker by, int errnum, const char *detail)
{
    const struct base_error *row = base_error_of(errnum);
    struct base_text t;
    if (by.request != NULL) {
        world_refuse(by.world, by.request, errnum, detail);
        return;
    }
    base_text_init(&t, ANSWER_BYTES - ENVELOPE_BYTES);
    http_problem(&t, row->http, row->title, detail);
    send_answer(by.asked, row->http, t.error == 0 ? base_text_str(&t) : "{}");
    base_text_fini(&t);
}

void asker_reply(struct agent *a, struct asker by, int status)
{
    const struct base_text *t = &a->answer;
    if (t->error != 0) {
        asker_refuse(by, t->error, NULL);
    } else if (by.request != NULL) {
        const struct admin_answer answer = {
            .status = status, .body = base_text_str(t), .length = t->length};
        world_answer(by.world, by.request, &answer);
    } else if (t->length > ANSWER_BYTES - ENVELOPE_BYTES) {
        asker_refuse(by, EMSGSIZE, "ask for fewer at a time");
    } else {
        send_answer(by.asked, status, base_text_str(t));
    }
}

/* ---- questions ----------------------------------------------------------------------------- */

static const char *text_or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

static void answer_question(struct agent *a, struct agent_query *q,
                            const struct agentd_question *question)
{
    const struct held_request request = {.by = {.world = a->world, .asked = q},
                                         .id = text_or_null(question->item),
                                         .limit = text_or_null(question->limit),
                                         .cursor = text_or_null(question->cursor),
                                         .tenant = text_or_null(question->tenant),
                                         .worker = text_or_null(question->worker),
                                         .force = question->force ? "1" : NULL};
    base_text_reset(&a->answer);
    if (!question->revoke)
        leases_look(a, &request, question->leases);
    else if (question->leases)
        (void)leases_revoke(a, &request);
    else
        asker_refuse(request.by, ENOTSUP, "workers cannot be revoked, but their leases can");
}

void agent_query_take(struct agent *a, const char *line, size_t length)
{
    struct agentd_question question;
    struct base_errbuf why;
    const int status = agentd_question_decode(line, length, &question, &why);
    const bool room = a->asked.count < ASKED_MAX && question.id[0] != '\0';
    struct agent_query *q = room ? calloc(1, sizeof *q) : NULL;
    a->asked.questions++;
    if (q == NULL) {
        a->asked.unanswered++;
        return;
    }
    q->agent = a;
    q->metaserver = a->follow.metaserver;
    memcpy(q->id, question.id, sizeof q->id);
    q->next = a->asked.list;
    a->asked.list = q;
    a->asked.count++;
    if (status != 0)
        asker_refuse((struct asker){.world = a->world, .asked = q}, EINVAL, why.text);
    else
        answer_question(a, q, &question);
}

void agent_query_stop(struct agent *a)
{
    leases_forget_asked(a);
    while (a->asked.list != NULL)
        forget_question(a->asked.list);
}

void agent_query_metrics(const struct agent *a, struct base_text *t)
{
    base_metric_one(t, "kedge_agent_questions_total", BASE_METRIC_COUNTER,
                    "Questions of metaservers about workers and leases.", a->asked.questions);
    base_metric_one(t, "kedge_agent_questions_unanswered_total", BASE_METRIC_COUNTER,
                    "Those whose answers were not taken, or that got none.", a->asked.unanswered);
    base_metric_one(t, "kedge_agent_questions_open", BASE_METRIC_GAUGE,
                    "Those whose answers have not come yet.", a->asked.count);
}
