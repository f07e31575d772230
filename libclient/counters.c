/* SPDX-License-Identifier: Apache-2.0 */
/* Counters: the lane has them, and shows in its page what they say. */
#include "counters.h"

#include <kedge_notify.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "receive.h"
#include "request.h"
#include "schema/counter.h"

static_assert(KEDGE_COUNTERS == SCHEMA_COUNTERS &&
                  KEDGE_COUNTER_TOKEN_MAX == SCHEMA_COUNTER_TOKEN_TEXT,
              "what the header promises");

struct kedge_counter {
    struct kedge_session *session;
    struct kedge_counter *next, **link; /* in the session's list */
    uint64_t name, secret;
};

static void free_counter(struct kedge_counter *c)
{
    *c->link = c->next;
    if (c->next != NULL)
        c->next->link = c->link;
    explicit_bzero(c, sizeof *c);
    free(c);
}

void client_counters_free(struct kedge_session *s)
{
    while (s->counters != NULL)
        free_counter(s->counters);
}

static int check_agent(struct kedge_session *s)
{
    const int status = client_messages_check(s);
    if (status != 0 || (s->features & SCHEMA_FEATURE_NOTIFY) != 0)
        return status;
    return client_fail_text(-EOPNOTSUPP,
                            "the agent is of before counters: run a newer kedge-agentd");
}

/* ---- its owner's */

static int make_counter(struct kedge_session *s, struct kedge_counter *c)
{
    struct client_reply reply;
    struct schema_sq_desc d = {.op = SCHEMA_OP_COUNTER_NEW};
    const int status = client_request(s, &d, &reply);
    if (client_has_no_room(s, status))
        return client_fail(status, "the session has %d counters: destroy some", SCHEMA_COUNTERS);
    if (status != 0)
        return status;
    if (reply.value[0] == 0 || schema_counter_number(reply.value[0]) >= SCHEMA_COUNTERS)
        return client_fail_text(-EPROTO, "the agent's answer makes no sense");
    *c = (struct kedge_counter){.session = s,
                                .next = s->counters,
                                .link = &s->counters,
                                .name = reply.value[0],
                                .secret = reply.value[1]};
    if (c->next != NULL)
        c->next->link = &c->next;
    s->counters = c;
    return 0;
}

int kedge_counter_create(struct kedge_session *s, struct kedge_counter **out)
{
    if (client_is_null(s) || client_is_null(out))
        return -EINVAL;
    int status = check_agent(s);
    if (status != 0)
        return status;
    struct kedge_counter *c = malloc(sizeof *c);
    if (c == NULL)
        return client_fail_text(-ENOMEM, "no memory for a counter");
    status = make_counter(s, c);
    if (status != 0)
        free(c);
    else
        *out = c;
    return status;
}

int kedge_counter_destroy(struct kedge_counter *c)
{
    struct client_reply unused;
    if (client_is_null(c))
        return -EINVAL;
    int status = client_usable(c->session);
    struct schema_sq_desc d = {.op = SCHEMA_OP_COUNTER_FREE, .counter = {.name = c->name}};
    if (status == 0)
        status = client_request(c->session, &d, &unused);
    if (status != -EPERM && status != -ETIMEDOUT)
        free_counter(c);
    return status;
}

int kedge_counter_export(const struct kedge_counter *c, char *text, size_t size)
{
    if (client_is_null(c) || client_is_null(text))
        return -EINVAL;
    const int status = client_usable(c->session);
    if (status != 0)
        return status;
    if (size < KEDGE_COUNTER_TOKEN_MAX)
        return client_fail(-ENOSPC, "a counter's token takes %d bytes", KEDGE_COUNTER_TOKEN_MAX);
    struct schema_counter_token t = {
        .pool = c->session->pool, .name = c->name, .secret = c->secret};
    client_gid(c->session, t.gid);
    schema_counter_token_format(&t, text);
    return 0;
}

/* ---- what it says */

static uint64_t load_value(const struct kedge_session *s, uint32_t number)
{
    return atomic_load_explicit(&s->ro->counter[number], memory_order_acquire);
}

int kedge_counter_read(const struct kedge_counter *c, uint64_t *value)
{
    if (client_is_null(c) || client_is_null(value))
        return -EINVAL;
    const uint64_t now = load_value(c->session, schema_counter_number(c->name));
    const int status = client_usable(c->session); /* else this may be a zero */
    if (status == 0)
        *value = now;
    return status;
}

static bool is_raised(struct kedge_session *s, uint32_t number)
{
    return load_value(s, number) >= s->counter_wanted;
}

int kedge_counter_wait(struct kedge_counter *c, uint64_t value, int timeout_ms)
{
    if (client_is_null(c))
        return -EINVAL;
    struct kedge_session *s = c->session;
    const uint32_t number = schema_counter_number(c->name);
    const uint64_t until =
        timeout_ms < 0 ? UINT64_MAX : base_clock_ns() + (uint64_t)timeout_ms * BASE_NS_PER_MS;
    if (*s->alive == 0)
        return client_usable(s);
    s->counter_wanted = value;
    for (;;) {
        if (is_raised(s, number) && !client_is_taken_back(s))
            return 1;
        int status = client_usable(s);
        if (status == 0)
            status = client_sleep(s, is_raised, number, until);
        if (status == 0)
            continue;
        if (is_raised(s, number) && !client_is_taken_back(s))
            return 1;
        return status == -ETIMEDOUT ? 0 : status;
    }
}

/* ---- who raises it */

int kedge_connect_counter(struct kedge_vqp *q, const char *text)
{
    struct schema_counter_token t;
    if (client_is_null(q) || client_is_null(text))
        return -EINVAL;
    struct kedge_session *s = q->session;
    int status = check_agent(s);
    if (status != 0)
        return status;
    if (schema_counter_token_parse(text, &t) != 0)
        return client_fail_text(-EINVAL, "the text is no counter's token as kedge_counter_export() "
                                         "writes it, or it is damaged");
    if (t.pool != s->pool)
        return client_fail(-EXDEV,
                           "the counter is in pool number %u and this session in %u, which are "
                           "kept apart: both workers must be of one pool",
                           t.pool, s->pool);
    status = client_vqp_connect(q, t.gid, s->pool);
    if (status != 0)
        return status;
    q->to_kind = SCHEMA_SEND_TO_COUNTER;
    q->to = t.name;
    q->secret = t.secret;
    return 0;
}
