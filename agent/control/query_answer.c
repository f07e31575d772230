/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to who asks: the admin socket's at once, a metaserver's in a request of our own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "admin_handlers.h"
#include "agent_query.h"
#include "base/error.h"
#include "base/json_writer.h"
#include "base/problem.h"
#include "control/world_log.h"
#include "bounds.h"
#include "metaserver_call.h"
#include "register.h"

enum {
    ANSWER_BYTES = 256 << 10, /* as metaservers take it */
    ENVELOPE_BYTES = 64,      /* around it */
};

void agent_query_forget(struct agent_query *q)
{
    for (struct agent_query **at = &q->agent->asked.list; *at != NULL; at = &(*at)->next)
        if (*at == q) {
            *at = q->next;
            q->agent->asked.count--;
            q->agent->asked.of[q->metaserver]--;
            break;
        }
    free(q);
}

static void on_told(void *user, const struct http_answer *answer)
{
    struct agent_query *q = user;
    if (answer->status != 204) {
        q->agent->asked.unanswered++;
        world_log(q->agent->world, BASE_LOG_DEBUG, "an answer was not taken",
                  "status=%d why=\"%s\"", answer->status,
                  answer->status < 0 ? answer->why : answer->body);
    }
    agent_query_forget(q);
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
    struct http_call c = agent_metaserver_call(a, "PUT", url, CALL_MS);
    c.body = base_text_str(&t);
    c.body_length = t.length;
    const bool told = t.error == 0 && world_call(a->world, &c, on_told, q, NULL) == 0;
    base_text_fini(&t);
    if (told)
        return;
    a->asked.unanswered++;
    agent_query_forget(q);
}

bool agent_asker_is_gone(struct asker by)
{
    return by.request != NULL && world_is_gone(by.world, by.request);
}

void agent_asker_refuse(struct asker by, int errnum, const char *detail)
{
    const struct base_error *row = base_error_of(errnum);
    struct base_text t;
    if (by.request != NULL) {
        world_refuse(by.world, by.request, errnum, detail);
        return;
    }
    base_text_init(&t, ANSWER_BYTES - ENVELOPE_BYTES);
    base_problem_write(&t, row->http, row->title, detail);
    send_answer(by.asked, row->http, t.error == 0 ? base_text_str(&t) : "{}");
    base_text_fini(&t);
}

void agent_asker_reply(struct agent *a, struct asker by, int status)
{
    const struct base_text *t = &a->answer;
    if (t->error != 0) {
        agent_asker_refuse(by, t->error, NULL);
    } else if (by.request != NULL) {
        const struct admin_answer answer = {
            .status = status, .body = base_text_str(t), .length = t->length};
        world_answer(by.world, by.request, &answer);
    } else if (t->length > ANSWER_BYTES - ENVELOPE_BYTES) {
        agent_asker_refuse(by, EMSGSIZE,
                           "that is more than an answer may have: ask for fewer at a time, or on "
                           "the node's host");
    } else {
        send_answer(by.asked, status, base_text_str(t));
    }
}

void agent_admin_refuse_method(struct agent *a, struct world_request *r, const char *allow)
{
    struct base_text t;
    char detail[64];
    snprintf(detail, sizeof detail, "here it can be one of %s", allow);
    base_text_init(&t, 512);
    base_problem_write(&t, 405, "method not allowed", detail);
    const struct admin_answer answer = {.status = 405,
                                        .content_type = BASE_PROBLEM_TYPE,
                                        .body = base_text_str(&t),
                                        .length = t.length,
                                        .allow = allow};
    world_answer(a->world, r, &answer);
    base_text_fini(&t);
}
