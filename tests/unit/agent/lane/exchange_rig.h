/* SPDX-License-Identifier: Apache-2.0 */
/* Two exchanges and the senders of each. For tests that include it once. */
#ifndef UNIT_AGENT_LANE_EXCHANGE_RIG_H
#define UNIT_AGENT_LANE_EXCHANGE_RIG_H

#include <check.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/random.h"
#include "message/message_exchange.h"

enum { SIDES = 2, SENDERS = 5, WIRE = 512, RECEIVES = 16, OUT = 12, STEP_NS = 20000 };

enum { BOUND_NS = 1000000, SEEN_NS = 5 * STEP_NS };

struct on_wire { /* a message; or a datagram */
    uint8_t to;
    uint8_t from_sender;
    uint32_t from_peer; /* the place of `to`'s, where it was posted */
    uint64_t broke_ns;  /* its queue pair did, and it is under way all the same; 0: it did not */
    struct schema_message message;
    struct schema_datagram datagram;
};

struct side {
    struct exchange x;
    struct stream_sender sender[SENDERS];
    struct message_peer *peer;
    uint32_t total[SENDERS], done[SENDERS]; /* as a sender; done: acknowledged */
    uint32_t first[SENDERS];                /* the number of the first that is not */
    uint32_t heard[SENDERS];                /* as a receiver: of the other's */
    uint8_t failed[SENDERS];
};

static struct {
    struct base_prng prng;
    uint64_t now_ns;
    struct side side[SIDES];
    struct on_wire message[WIRE], datagram[WIRE];
    uint32_t messages, datagrams;
    uint32_t lossy, refusing; /* of 100 */
    bool lies;                /* what comes is not what the other side says */
    bool slow;                /* a message is under way for long */
    uint32_t most_wire, lost, repeated;
    uint32_t said_one, heard_one; /* by a few words (one_note.h) */
} w;

/* Check writes a line for each of its own, also where it holds. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg("%s", #condition);                                                        \
    } while (0)

static inline uint32_t draw(uint32_t below)
{
    return (uint32_t)(base_prng_next(&w.prng) % below);
}

static inline bool happens(uint32_t of_100)
{
    return draw(100) < of_100;
}

static inline struct exchange_config config_of(uint8_t side, uint32_t incarnation)
{
    return (struct exchange_config){.gid = {0xfd, [15] = side},
                                    .incarnation = incarnation,
                                    .pool = 1,
                                    .qpn = 10u + side,
                                    .qkey = 20,
                                    .peers = 4,
                                    .receivers = 8,
                                    .shares = 2,
                                    .bound_ns = BOUND_NS,
                                    .seen_ns = SEEN_NS,
                                    .ask_ns = 200000,
                                    .idle_ns = 5000000,
                                    .forget_ns = 1000000000};
}

static inline void meet(uint8_t side)
{
    struct side *s = &w.side[side];
    const struct exchange_config *other = &w.side[1 - side].x.config;
    s->peer = lane_exchange_know(&s->x, other->gid, other->incarnation, w.now_ns);
    ck_assert_ptr_nonnull(s->peer);
    s->peer->qpn = other->qpn;
}

static inline void begin(uint64_t seed, uint32_t lossy, uint32_t refusing)
{
    memset(&w, 0, sizeof w);
    base_prng_seed(&w.prng, seed);
    w.now_ns = 1;
    w.lossy = lossy;
    w.refusing = refusing;
    for (uint8_t i = 0; i < SIDES; i++) {
        const struct exchange_config config = config_of(i, 100);
        ck_assert_int_eq(lane_exchange_init(&w.side[i].x, &config, base_prng_next(&w.prng)), 0);
        lane_exchange_posted(&w.side[i].x, RECEIVES);
    }
    for (uint8_t i = 0; i < SIDES; i++) {
        meet(i);
        for (uint32_t t = 0; t < SENDERS; t++) {
            w.side[i].sender[t].name = base_prng_next(&w.prng) | 1;
            lane_sender_address(&w.side[i].x, &w.side[i].sender[t], w.side[i].peer);
        }
    }
}

static inline void end(void)
{
    for (uint32_t i = 0; i < SIDES; i++)
        lane_exchange_free(&w.side[i].x);
}

#endif
