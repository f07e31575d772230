/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: what a VQP sends arrives once and in order, whatever becomes of the queue pairs that
 * carry it (docs/messages.md#a-stream). Private to agent/lane, and the lane thread's.
 *
 * Messages of a stream are numbered from 0 on, modulo 2^32, and fewer than STREAM_OPEN of them are
 * not acknowledged at a time. What carries them, and what is said of them, may be lost, repeated
 * and late. Pure: times are given. */
#ifndef LANE_MESSAGE_STREAM_H
#define LANE_MESSAGE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

enum { STREAM_OPEN = 1 << 16 };

/* ---- the receiver's side */

struct stream_in {
    uint32_t next; /* all before it were taken */
};

enum stream_verdict {
    STREAM_NEXT,   /* it is to be taken, or refused: stream_in_taken() */
    STREAM_SEEN,   /* it was taken before: its sender has not heard that, and is told again */
    STREAM_AHEAD,  /* one before it is missing, or was refused: it will come again */
    STREAM_STRANGE /* no sender that keeps to this could have sent it */
};
enum stream_verdict lane_stream_in_judge(const struct stream_in *s, uint32_t number);
static inline void lane_stream_in_taken(struct stream_in *s)
{
    s->next++;
}

/* ---- the sender's side */

struct stream_out {
    uint32_t first;    /* all before it are acknowledged */
    uint32_t next;     /* to be posted, first or again */
    uint32_t posted;   /* all before it have been posted at least once */
    uint32_t end;      /* how many there are */
    bool one_by_one;   /* the first was refused: nothing goes behind it until it is acknowledged */
    uint64_t again_ns; /* nothing goes before that */
    uint64_t refused_ns; /* since when the first is refused; 0: it is not */
    uint64_t heard_ns;   /* when something was last heard, or the first one posted */
    uint64_t moved_ns;   /* when some were last acknowledged, or the first one was first posted */
    uint32_t asked;      /* so often since */
};

/* How long to wait for a word, and how often to ask: doubled each time. */
struct stream_patience {
    uint64_t ask_ns;     /* until the first question */
    uint32_t questions;  /* that are not answered, and then the peer is gone */
    uint64_t refused_ns; /* for so long a receiver may have no buffer */
};

enum { STREAM_DOUBLES = 10 /* times, and questions are as far apart from then on */ };
/* How long a peer may say nothing. */
static inline uint64_t lane_stream_patience_ns(const struct stream_patience *p)
{
    const uint32_t doublings = p->questions < STREAM_DOUBLES ? p->questions : STREAM_DOUBLES;
    return (p->ask_ns << (doublings + 1)) - p->ask_ns;
}

/* How long it may say anything but that it has taken something: more than it takes to say nothing,
 * and to have no buffer, one behind the other. */
static inline uint64_t lane_stream_stuck_ns(const struct stream_patience *p)
{
    return 2 * (lane_stream_patience_ns(p) + p->refused_ns);
}

static inline bool lane_stream_out_has_room(const struct stream_out *s)
{
    return s->end - s->first < STREAM_OPEN;
}
/* There is one more. Returns its number. There is room. */
uint32_t lane_stream_out_add(struct stream_out *s);
/* Whether s->next may go now. */
bool lane_stream_out_may_post(const struct stream_out *s, uint64_t now_ns);
/* It was posted. */
void lane_stream_out_posted(struct stream_out *s, uint64_t now_ns);
/* So many more, which have gone at once. There is room, and all before them were posted. */
void lane_stream_out_posted_all(struct stream_out *s, uint32_t count, uint64_t now_ns);
/* The one with that number may not have arrived: its queue pair broke. */
void lane_stream_out_lost(struct stream_out *s, uint32_t number);
/* The receiver has taken all before `next`. Returns how many of them are over now, from the former
 * s->first on; or -EPROTO: they were never sent. What was said earlier says nothing new. */
int lane_stream_out_taken(struct stream_out *s, uint32_t next, uint64_t now_ns);
/* The receiver has taken all before it, and has no buffer for it now: so many of them are over, and
 * it goes again after wait_ns. Likewise. */
int lane_stream_out_refused(struct stream_out *s, uint32_t number, uint64_t wait_ns,
                            uint64_t now_ns);

/* The receiver has taken all before it, and READs that one: whoever waited for a buffer has one.
 * Likewise. */
int lane_stream_out_reads(struct stream_out *s, uint32_t number, uint64_t now_ns);
/* Asked, the receiver says that it has taken all before it: those from it on were dropped, since
 * they came ahead of one that was missing, and go again. One that was only late comes twice.
 * Likewise. */
int lane_stream_out_answered(struct stream_out *s, uint32_t next, uint64_t now_ns);

enum stream_due {
    STREAM_WAITS,  /* nothing is to be done */
    STREAM_ASKS,   /* the receiver is to be asked what it has */
    STREAM_GONE,   /* it says nothing: what is out fails */
    STREAM_STARVED /* it has had no buffer, or taken nothing, for too long */
};
/* What is to be done now; a question counts as asked. *due_ns: when to look again; UINT64_MAX. */
enum stream_due lane_stream_out_look(struct stream_out *s, const struct stream_patience *patience,
                                     uint64_t now_ns, uint64_t *due_ns);

#endif
