/* SPDX-License-Identifier: Apache-2.0 */
#include "message/message_stream.h"

#include <errno.h>

#include "base/assert.h"

/* ---- the receiver's side */

enum stream_verdict lane_stream_in_judge(const struct stream_in *s, uint32_t number)
{
    const uint32_t ahead = number - s->next;
    if (ahead == 0)
        return STREAM_NEXT;
    if (ahead < STREAM_OPEN)
        return STREAM_AHEAD;
    return s->next - number <= STREAM_OPEN ? STREAM_SEEN : STREAM_STRANGE;
}

/* ---- the sender's side */

uint32_t lane_stream_out_add(struct stream_out *s)
{
    BASE_ASSERT(lane_stream_out_has_room(s));
    return s->end++;
}

bool lane_stream_out_may_post(const struct stream_out *s, uint64_t now_ns)
{
    return s->next != s->end && now_ns >= s->again_ns && (!s->one_by_one || s->next == s->first);
}

void lane_stream_out_posted(struct stream_out *s, uint64_t now_ns)
{
    BASE_ASSERT(s->next != s->end);
    if (s->posted == s->first)
        s->moved_ns = now_ns;
    else if (s->next == s->first)
        s->moved_ns += now_ns - s->heard_ns;
    if (s->next == s->first) {
        s->heard_ns = now_ns;
        s->asked = 0;
    }
    if (s->next++ == s->posted)
        s->posted = s->next;
}

void lane_stream_out_posted_all(struct stream_out *s, uint32_t count, uint64_t now_ns)
{
    BASE_ASSERT(s->next == s->end && s->end - s->first + count <= STREAM_OPEN);
    if (s->next == s->first) {
        s->heard_ns = s->moved_ns = now_ns;
        s->asked = 0;
    }
    s->end += count;
    s->next = s->posted = s->end;
}

void lane_stream_out_lost(struct stream_out *s, uint32_t number)
{
    if (number - s->first < s->next - s->first)
        s->next = number;
}

/* How many of those that were posted are before `number`; or -EPROTO. */
static int count_taken(const struct stream_out *s, uint32_t number)
{
    const uint32_t count = number - s->first;
    if (count > s->posted - s->first)
        return s->first - number <= STREAM_OPEN ? 0 : -EPROTO;
    return (int)count;
}

int lane_stream_out_taken(struct stream_out *s, uint32_t next, uint64_t now_ns)
{
    const int count = count_taken(s, next);
    if (count < 0)
        return count;
    s->heard_ns = now_ns;
    s->asked = 0;
    if (count == 0)
        return 0;
    if (s->next - s->first < (uint32_t)count) /* it went back, and what was out has arrived */
        s->next = next;
    s->first = next;
    s->moved_ns = now_ns;
    s->one_by_one = false;
    s->refused_ns = 0;
    s->again_ns = 0;
    return count;
}

int lane_stream_out_refused(struct stream_out *s, uint32_t number, uint64_t wait_ns,
                            uint64_t now_ns)
{
    const int count = lane_stream_out_taken(s, number, now_ns);
    if (count < 0 || number != s->first || number == s->posted)
        return count;
    s->next = number;
    s->one_by_one = true;
    s->again_ns = now_ns + wait_ns;
    if (s->refused_ns == 0)
        s->refused_ns = now_ns;
    return count;
}

int lane_stream_out_reads(struct stream_out *s, uint32_t number, uint64_t now_ns)
{
    const int count = lane_stream_out_taken(s, number, now_ns);
    if (count >= 0 && number == s->first && s->next != s->first) {
        s->refused_ns = 0;
        s->moved_ns = now_ns;
    }
    return count;
}

int lane_stream_out_answered(struct stream_out *s, uint32_t next, uint64_t now_ns)
{
    const int count = lane_stream_out_taken(s, next, now_ns);
    if (count >= 0 && next == s->first)
        s->next = next;
    return count;
}

enum stream_due lane_stream_out_look(struct stream_out *s, const struct stream_patience *patience,
                                     uint64_t now_ns, uint64_t *due_ns)
{
    *due_ns = UINT64_MAX;
    if (s->first == s->posted && s->next == s->end)
        return STREAM_WAITS;
    if (s->refused_ns != 0 && now_ns - s->refused_ns >= patience->refused_ns)
        return STREAM_STARVED;
    if (s->next == s->first) { /* nothing of it is out */
        const uint64_t starved_ns = s->refused_ns + patience->refused_ns;
        *due_ns = s->refused_ns != 0 && starved_ns < s->again_ns ? starved_ns : s->again_ns;
        return STREAM_WAITS;
    }
    if (now_ns - s->moved_ns >= lane_stream_stuck_ns(patience))
        return STREAM_STARVED;
    const uint32_t doublings = s->asked < STREAM_DOUBLES ? s->asked : STREAM_DOUBLES;
    const uint64_t ask_ns =
        s->heard_ns + ((patience->ask_ns << (doublings + 1)) - patience->ask_ns);
    if (now_ns < ask_ns) {
        *due_ns = ask_ns;
        return STREAM_WAITS;
    }
    if (s->asked >= patience->questions)
        return STREAM_GONE;
    s->asked++;
    *due_ns = now_ns + patience->ask_ns;
    return STREAM_ASKS;
}
