/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stddef.h>

#include "control/waiting.h"

void agent_waiting_add(struct waiting *r, struct waiter *w)
{
    if (w->in)
        return;
    w->in = true;
    w->newer = NULL;
    w->older = r->newest;
    *(r->newest != NULL ? &r->newest->newer : &r->oldest) = w;
    r->newest = w;
    r->count++;
    r->of[w->share]++;
}

void agent_waiting_leave(struct waiting *r, struct waiter *w)
{
    if (!w->in)
        return;
    *(w->older != NULL ? &w->older->newer : &r->oldest) = w->newer;
    *(w->newer != NULL ? &w->newer->older : &r->newest) = w->older;
    w->in = false;
    r->count--;
    r->of[w->share]--;
}

static uint32_t count_uid(const struct waiting *r, const struct waiter *w)
{
    uint32_t n = 0;
    for (const struct waiter *at = r->oldest; at != NULL; at = at->newer)
        n += at->share == w->share && at->uid == w->uid;
    return n;
}

/* The oldest of w's share, or of w's uid in it, that can be given up, be it that its answer is held
 * back: who shows a right token is not told from who guesses until he is let in. */
static struct waiter *find_oldest(const struct waiting *r, const struct waiter *w, bool of_uid)
{
    for (struct waiter *at = r->oldest; at != NULL; at = at->newer)
        if (at->share == w->share && !at->stays && (!of_uid || at->uid == w->uid))
            return at;
    return NULL;
}

/* Likewise of the largest share. */
static struct waiter *find_of_largest(const struct waiting *r)
{
    struct waiter *found = NULL;
    for (struct waiter *at = r->oldest; at != NULL; at = at->newer)
        if (!at->stays && (found == NULL || r->of[at->share] > r->of[found->share]))
            found = at;
    return found;
}

int agent_waiting_enter(struct waiting *r, uint64_t max_sessions, struct waiter *w,
                        struct waiter **goes)
{
    const bool stranger = w->share == WAITING_SHARE_STRANGERS;
    const uint32_t share = WAITING_OF(max_sessions) / (stranger ? 2 : 1);
    struct waiter *found = NULL;
    bool full = true;
    if (r->of[w->share] > share) /* those that it gave up are not closed yet */
        return -EAGAIN;
    if (stranger && count_uid(r, w) >= share / 2)
        found = find_oldest(r, w, true);
    else if (r->of[w->share] >= share)
        found = find_oldest(r, w, false);
    else if (r->count >= WAITING_ALL_OF(max_sessions))
        found = find_of_largest(r);
    else
        full = false;
    if (full && found == NULL)
        return -EAGAIN;
    agent_waiting_add(r, w);
    *goes = found;
    return 0;
}
