/* SPDX-License-Identifier: Apache-2.0 */
#include "query_streams.h"

#include <errno.h>
#include <stdio.h>

#include "agent.h"
#include "agent_query.h"
#include "base/clock.h"
#include "bounds.h"
#include "control/question.h"
#include "control/world_log.h"
#include "due.h"
#include "metaserver_call.h"
#include "pool.h"
#include "prefer.h"
#include "register.h"

enum {
    LINE_BYTES = 4096,       /* a question */
    TRY_UNKNOWN_MS = 300000, /* an older metaserver, which has no such streams */
};

static uint32_t number_of(const struct query_stream *s)
{
    return (uint32_t)(s - s->agent->query_stream);
}

static int take_line(void *user, const char *text, size_t length)
{
    struct query_stream *s = user;
    s->backoff_ms = STREAM_TRY_MS;
    if (agent_line_is_renewal(text, length))
        agent_registrations_renew(s->agent, number_of(s), agent_renewal_is_of_many(text, length));
    else if (agent_line_is_question(text, length))
        agent_query_take(s->agent, number_of(s), text, length);
    return 0;
}

static void try_later(struct query_stream *s, bool late)
{
    s->call = 0;
    s->try_ns = agent_stream_next_ns(s->agent, &s->backoff_ms, late);
}

static void on_end(void *user, const struct http_answer *answer)
{
    struct query_stream *s = user;
    struct agent *a = s->agent;
    if (answer->status == -ECANCELED && a->stopping)
        return;
    world_log(a->world, BASE_LOG_DEBUG, "no more questions from here",
              "metaserver=\"%s\" status=%d why=\"%s\"", a->config.metaserver[number_of(s)],
              answer->status, answer->why);
    /* Its token was deleted, or changed; or its store, put back, does not have the node. */
    if (answer->status == 401 || answer->status == 403 || answer->status == 404)
        agent_registrations_doubt(a, number_of(s));
    if (answer->status == 400)
        s->backoff_ms = TRY_UNKNOWN_MS;
    try_later(s, answer->status == -ETIMEDOUT);
}

static void begin_stream(struct query_stream *s)
{
    struct agent *a = s->agent;
    char url[METASERVER_URL_BYTES];
    snprintf(url, sizeof url, "%s/v1/nodes/%s/configuration?watch=1&answers=only",
             a->config.metaserver[number_of(s)], a->config.node);
    struct http_call c = agent_metaserver_call(a, NULL, url, 0);
    c.timeout_ms = UINT32_MAX;
    c.silence_timeout_ms = STREAM_SILENCE_MS;
    c.max_response_bytes = LINE_BYTES;
    c.on_line = take_line;
    if (world_call(a->world, &c, on_end, s, &s->call) != 0)
        try_later(s, false);
}

/* One that is registered but silent has a stream still, if it had one. */
static bool is_wanted(const struct agent *a, uint32_t i)
{
    const struct follow *f = &a->follow;
    const bool is_followed = f->metaserver == i && (f->call != 0 || a->config.metaservers == 1);
    return f->begun && !is_followed && agent_prefer_is_sound(&a->pools[0]->registration[i]);
}

uint64_t agent_query_streams_due_ns(const struct agent *a)
{
    uint64_t due_ns = DUE_NEVER;
    for (uint32_t i = 0; i < a->config.metaservers; i++)
        due_ns = due_first(due_ns, due_if(a->query_stream[i].call == 0 && is_wanted(a, i),
                                          a->query_stream[i].try_ns));
    return due_ns;
}

void agent_query_streams_tick(struct agent *a)
{
    const uint64_t now_ns = world_now_ns(a->world);
    for (uint32_t i = 0; i < a->config.metaservers; i++) {
        struct query_stream *s = &a->query_stream[i];
        if (s->call != 0 || !is_wanted(a, i) || now_ns < s->try_ns)
            continue;
        s->agent = a;
        s->backoff_ms = s->backoff_ms == 0 ? STREAM_TRY_MS : s->backoff_ms;
        begin_stream(s);
    }
}

void agent_query_stream_end(struct agent *a, uint32_t metaserver)
{
    struct query_stream *s = &a->query_stream[metaserver];
    if (s->call != 0)
        (void)world_cancel(a->world, s->call);
    *s = (struct query_stream){.agent = s->agent};
}

void agent_query_streams_stop(struct agent *a)
{
    for (uint32_t i = 0; i < a->config.metaservers; i++)
        agent_query_stream_end(a, i);
}
