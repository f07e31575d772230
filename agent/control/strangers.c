/* SPDX-License-Identifier: Apache-2.0 */
#include "control/strangers.h"

#include <stddef.h>

#include "base/clock.h"

/* Its entry, which is a new one where it had none; NULL: all are of uids that are kept out. */
static struct stranger *find_stranger(struct strangers *r, uid_t uid)
{
    struct stranger *oldest = NULL;
    for (struct stranger *s = r->at; s < r->at + r->known; s++) {
        if (s->uid == uid)
            return s;
        if (s->out_until == 0 && (oldest == NULL || s->since_ns < oldest->since_ns))
            oldest = s;
    }
    if (r->known < STRANGERS_KNOWN)
        oldest = &r->at[r->known++];
    if (oldest != NULL)
        *oldest = (struct stranger){.uid = uid};
    return oldest;
}

bool agent_strangers_refused(struct strangers *r, uid_t uid, uint64_t now_ns)
{
    struct stranger *s = find_stranger(r, uid);
    if (s == NULL || s->out_until != 0) /* it had come before, and waited to be accepted */
        return false;
    if (s->refusals == 0 || now_ns - s->since_ns >= BASE_NS_PER_S) {
        s->refusals = 0;
        s->since_ns = now_ns;
    }
    if (++s->refusals < STRANGER_REFUSALS)
        return false;
    s->out_until = now_ns + STRANGER_OUT_S * BASE_NS_PER_S;
    r->kept_out++;
    return true;
}

bool agent_strangers_let_in(struct strangers *r, uint64_t now_ns,
                            bool (*is_stranger)(void *user, uid_t uid), void *user)
{
    bool any = false;
    for (struct stranger *s = r->at; s < r->at + r->known; s++) {
        if (s->out_until == 0 ||
            (now_ns < s->out_until && (is_stranger == NULL || is_stranger(user, s->uid))))
            continue;
        *s = (struct stranger){.uid = s->uid, .since_ns = now_ns};
        any = true;
    }
    return any;
}

uint32_t agent_strangers_out(const struct strangers *r, uid_t uids[STRANGERS_KNOWN])
{
    uint32_t count = 0;
    for (const struct stranger *s = r->at; s < r->at + r->known; s++)
        if (s->out_until != 0)
            uids[count++] = s->uid;
    return count;
}
