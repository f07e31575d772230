/* SPDX-License-Identifier: Apache-2.0 */
/* What is said and heard in exchange_rig.h: each time by a few words too (message/one_note.h),
 * where that is so, and compared. */
#ifndef UNIT_AGENT_LANE_EXCHANGE_ONE_NOTE_H
#define UNIT_AGENT_LANE_EXCHANGE_ONE_NOTE_H

#include "exchange_rig.h"
#include "message/one_note.h"

/* What either way may change of one peer. */
struct one_state {
    struct exchange x;
    struct message_peer c;
    struct stream_receiver r; /* whose news come first, if there are any */
};

static inline void keep_state(struct one_state *s, const struct exchange *x,
                              const struct message_peer *c, const struct stream_receiver *r)
{
    memcpy(&s->x, x, sizeof *x);
    memcpy(&s->c, c, sizeof *c);
    if (r != NULL)
        memcpy(&s->r, r, sizeof *r);
}

static inline void put_state(const struct one_state *s, struct exchange *x, struct message_peer *c,
                             struct stream_receiver *r)
{
    memcpy(x, &s->x, sizeof *x);
    memcpy(c, &s->c, sizeof *c);
    if (r != NULL)
        memcpy(r, &s->r, sizeof *r);
}

static inline bool state_is(const struct one_state *s, const struct exchange *x,
                            const struct message_peer *c, const struct stream_receiver *r)
{
    return memcmp(&s->x.bank, &x->bank, sizeof x->bank) == 0 &&
           memcmp(&s->x.dues, &x->dues, sizeof x->dues) == 0 && memcmp(&s->c, c, sizeof *c) == 0 &&
           (r == NULL || memcmp(&s->r, r, sizeof *r) == 0);
}

/* By a few words and field by field it is the same, and leaves the same; or by a few words it is
 * not said, and leaves all as it was. Returns how many bytes. */
static inline size_t say(struct exchange *x, struct message_peer *c, uint8_t *bytes)
{
    struct stream_receiver *r = TAILQ_FIRST(&c->news);
    static struct one_state before, after;
    struct schema_datagram said;
    uint8_t one[SCHEMA_DATAGRAM_ONE_BYTES];
    keep_state(&before, x, c, r);
    const bool is_one = TAILQ_NEXT(c, by_due) == NULL && lane_exchange_say_one(x, c, one);
    if (is_one)
        keep_state(&after, x, c, r);
    else
        MUST(state_is(&before, x, c, r));
    put_state(&before, x, c, r);
    lane_exchange_say(x, c, &said);
    const size_t n = schema_datagram_write(&said, bytes);
    w.said_one += is_one;
    MUST(!is_one || (n == sizeof one && memcmp(bytes, one, n) == 0 && state_is(&after, x, c, r)));
    return n;
}

static inline bool is_same_note(const struct schema_note *a, const struct schema_note *b)
{
    return a->stream == b->stream && a->number == b->number && a->wait_us == b->wait_us &&
           a->kind == b->kind && a->status == b->status && a->aside == b->aside;
}

/* Likewise what is heard. */
static inline struct message_peer *hear(struct exchange *x, const struct schema_datagram *d)
{
    static struct one_state before, after;
    struct message_peer *c = lane_exchange_find(x, d->from_gid, d->from_incarnation);
    uint8_t bytes[1024];
    bool is_one = false;
    if (c != NULL && schema_datagram_write(d, bytes) == SCHEMA_DATAGRAM_ONE_BYTES) {
        struct schema_note n;
        keep_state(&before, x, c, NULL);
        is_one = lane_exchange_hear_one(x, c, bytes, w.now_ns, &n);
        MUST(is_one ? is_same_note(&n, &d->note[0]) : state_is(&before, x, c, NULL));
        keep_state(&after, x, c, NULL);
        put_state(&before, x, c, NULL);
    }
    w.heard_one += is_one;
    struct message_peer *heard = lane_exchange_hear(x, d, w.now_ns);
    MUST(!is_one || (heard == c && state_is(&after, x, c, NULL)));
    if (heard != NULL)
        lane_exchange_learn_one(heard, d);
    return heard;
}

#endif
