/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker hears beside completions. */
#include "request.h"

#include <stdatomic.h>

static bool are_withdrawn(struct kedge_session *s)
{
    bool any = false;
    if (s->withdrawals > 0)
        client_collect(s);
    for (const struct kedge_mr *mr = s->mrs; mr != NULL; mr = mr->next) {
        if (mr->begun && !mr->gone)
            return false;
        any |= mr->begun;
    }
    return any;
}

static bool is_news(struct kedge_session *s)
{
    const uint32_t drains = atomic_load_explicit(&s->ro->drains, memory_order_acquire);
    if (drains == 0)
        s->told.drains = 0;
    return (drains != 0 && s->told.drains == 0) ||
           atomic_load_explicit(&s->ro->revoked, memory_order_acquire) != s->told.revoked ||
           atomic_load_explicit(&s->ro->raised, memory_order_acquire) != s->told.raised ||
           (!s->told.withdrawn && are_withdrawn(s));
}

/* A session that was taken back has no other news than its end. */
bool client_has_notice(struct kedge_session *s)
{
    return s->told.wanted && is_news(s) && !client_is_taken_back(s);
}

void client_told(struct kedge_session *s)
{
    s->told.drains = atomic_load_explicit(&s->ro->drains, memory_order_acquire);
    s->told.revoked = atomic_load_explicit(&s->ro->revoked, memory_order_acquire);
    s->told.raised = atomic_load_explicit(&s->ro->raised, memory_order_acquire);
    s->told.withdrawn |= are_withdrawn(s);
}

int kedge_session_notices(struct kedge_session *s)
{
    if (client_is_null(s))
        return -EINVAL;
    int status = client_usable(s);
    if (status != 0)
        return status;
    s->told.wanted = true;
    client_told(s);
    if (client_is_taken_back(s))
        return client_usable(s);
    const bool revoked = s->told.revoked != s->told.revoked_shown;
    const bool raised = s->told.raised != s->told.raised_shown;
    s->told.revoked_shown = s->told.revoked;
    s->told.raised_shown = s->told.raised;
    return (s->told.drains != 0 ? KEDGE_NOTICE_DRAIN : 0) | (revoked ? KEDGE_NOTICE_REVOKED : 0) |
           (raised ? KEDGE_NOTICE_COUNTER : 0) | (are_withdrawn(s) ? KEDGE_NOTICE_WITHDRAWN : 0);
}
