/* SPDX-License-Identifier: Apache-2.0 */
/* What the lane keeps for messages (docs/messages.md). Private to agent/lane, and the lane
 * thread's. What is done with it is in schedule/sends.h (SENDs) and receive/ (what comes). */
#ifndef LANE_MESSAGE_STATE_H
#define LANE_MESSAGE_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "agent/lane_messages.h"
#include "message/guests.h"
#include "message/message_exchange.h"
#include "message/ports.h"
#include "message/sure_sends.h"
#include "lane_state.h"
#include "near_state.h"
#include "session_state.h"
#include "transmit/wr.h"
#include "usual_stream.h"

struct fab_ah;
struct vqp;

/* Of a VQP; all of them are given back in one step when it ends. */
enum { PORTS_EACH = 16, UD_POSTED = 8 /* receives for datagrams, at once */ };

/* Of a VQP that sends messages, or hears some. */
struct vqp_messages {
    struct stream_sender sender;
    struct near_sends near;
    uint32_t share;  /* whose part its place is of */
    struct vqp *q;   /* NULL: it was destroyed, and some of its SENDs are out yet */
    uint32_t out;    /* SENDs that the device has */
    uint32_t bad;    /* of those that are kept, how many have ended badly */
    uint8_t rewinds; /* when none is, those that are kept come before the queue again */
    uint8_t failed;  /* enum schema_reason: its SENDs end so */
    uint8_t active;  /* in the list of those that wait for a word */
    uint8_t sought;  /* so often its peer's number was looked up anew, since it is silent */
    /* Whom its SENDs are for; to_kind: enum schema_send_to, 0: nobody. */
    uint8_t to_kind;
    uint32_t to_tenant;
    uint64_t to, secret;             /* secret: of a counter */
    struct schema_message_like like; /* what its last run said; of another stream: of none */
    /* What is back, in order: SENDs that are not acknowledged, and behind these BACK_HELD. */
    struct wr_queue kept;
    struct wr_queue receives; /* posted, and not taken */
    uint64_t taken;           /* of these, so many for large messages */
    /* Large SENDs (schedule/large_sends.h). */
    uint8_t has_larges;              /* all from large_first on that have gone are large */
    uint8_t let_go;                  /* the stream has ended over there: none is READ any more */
    uint32_t large_first, large_end; /* end: one past the last that was ever announced */
    uint32_t large_generation;       /* of what was lent when one was announced last */
    uint64_t first_ns;               /* when the first was, or one before it was acknowledged */
    uint32_t ports;                  /* that it hears: the first of their list (message/ports.h) */
    uint32_t port_count;             /* PORTS_EACH at the most */
    uint32_t guests;            /* whom it hears there besides: their list (message/guests.h) */
    struct hearer_asides aside; /* of these receives */
    uint64_t unmet_ns;          /* when its own tenant last found no receive; 0: never */
    uint64_t roomless_ns;       /* since when there is no room to know its peer; 0: there is */
    uint32_t next_free;         /* place + 1 */
    TAILQ_ENTRY(vqp_messages) by_active;
};

/* What the device has given back of receives and datagrams. */
struct arrival {
    uint32_t what; /* as in its wr_id */
    uint32_t bytes;
    bool ended_well, has_grh;
};

enum arrival_kind { ARRIVAL_RECEIVE, ARRIVAL_DATAGRAM, ARRIVAL_SENT };
enum { ARRIVAL_LIVES = 64 /* of the UD queue pair, which are told from each other */ };
#define ARRIVAL_WR_ID(kind, life, place)                                                           \
    ((uint64_t)UINT32_MAX << 32 | (uint64_t)(kind) << 30 | (uint64_t)(life) << 24 |                \
     (uint64_t)(place))
static inline enum arrival_kind arrival_kind(uint32_t what)
{
    return (enum arrival_kind)(what >> 30);
}
static inline uint32_t arrival_life(uint32_t what)
{
    return what >> 24 & (ARRIVAL_LIVES - 1);
}
static inline uint32_t arrival_place(uint32_t what)
{
    return what & 0xffffff;
}

/* Of a peer's place. */
struct peer_handle {
    struct fab_ah *ah; /* the lane's until its end; NULL: there is none */
    uint8_t gid[16];   /* whom it leads to, or was asked for */
    uint64_t again_ns; /* not asked for again before */
    uint8_t fails;
    uint8_t asked; /* enum handle_asked */
    uint8_t out;   /* datagrams that the device has */
};
enum handle_asked { HANDLE_UNASKED, HANDLE_ASKED, HANDLE_ASKED_BEFORE /* of another address */ };

enum ud_state {
    UD_WORKS,
    UD_FAILING, /* what it had comes back */
    UD_BROKEN   /* the control side has it */
};

TAILQ_HEAD(active_vqps, vqp_messages);
TAILQ_HEAD(lending_list, session);
struct large_read;
TAILQ_HEAD(large_list, large_read);

struct messages {
    struct exchange exchange;
    struct ports ports;
    struct guests guests;
    struct vqp_messages *vqps;
    uint32_t vqp_count, free_vqp;
    uint64_t asides; /* numbers of set_aside */
    /* of tenants: their slots + 1 */
    struct places vqp_places, port_places, guest_places, header_places;
    struct active_vqps actives;
    struct near_list nears;
    struct usual_stream usual[USUAL_STREAMS]; /* by their names */
    struct arrival *arrivals;                 /* a ring, of `arrivals_most` */
    uint32_t arrived, arrival_at, arrivals_most;
    uint32_t *header_free, header_count; /* places for headers of SENDs that are out */
    uint64_t looked_ns, away_ns;         /* sends.c: the clock of patience */
    uint32_t *unposted, unposted_count;  /* receives that the device does not have */
    uint8_t ud_state, ud_life;           /* enum ud_state */
    /* Receives that the UD queue pair has, and that it does not have. */
    uint32_t ud_in, ud_unposted_count, ud_unposted[UD_POSTED];
    uint64_t ud_failed_ns;
    uint32_t send_free[LANE_DATAGRAMS_OUT], send_count;
    uint32_t sent_by[LANE_DATAGRAMS_OUT]; /* of those that are out: whose handle */
    struct peer_handle *handles;          /* of each peer's place */
    uint32_t handle_hand;                 /* those from here on are of the former address */
    struct lending_list lendings;         /* of whose lending there is something to do */
    /* receive/large.c: places, of tenants; those that are used, in the order of coming; READs that
     * are over, and free places. */
    struct large_read *larges;
    struct places large_places;
    struct large_list large_used;
    struct wr_queue pulled;
    uint32_t free_large;
};

/* Of messages there is something to do behind the poll of this pass, or of the next one. */
static inline void messages_wait(struct lane *l)
{
    l->messages_due = 1;
    l->did++;
}

/* A READ of a large message is over so, and neither queued nor out. */
static inline void messages_pulled(struct lane *l, struct wr *w, enum ibv_wc_status status)
{
    w->ended = (uint8_t)status;
    queue_push(&l->messages->pulled, w);
    messages_wait(l);
}

/* Of what a session lends there is something to do. */
static inline void messages_list_lending(struct lane *l, struct session *s)
{
    if (!s->lending.listed)
        TAILQ_INSERT_TAIL(&l->messages->lendings, s, by_lending);
    s->lending.listed = 1;
    messages_wait(l);
}

/* A datagram's place is free. */
static inline void messages_sent(struct messages *m, uint32_t place)
{
    m->send_free[m->send_count++] = place;
    m->handles[m->sent_by[place]].out--;
}

/* A completion whose wr_id is one of those. What is left of a queue pair that was given back is of
 * no use, and there is no room for it. False: there is nothing to do for it any more, as for most
 * datagrams that have gone. */
static inline bool messages_take(struct messages *m, const struct ibv_wc *wc)
{
    const uint32_t what = (uint32_t)wc->wr_id;
    if (arrival_kind(what) != ARRIVAL_RECEIVE && arrival_life(what) != m->ud_life)
        return false;
    if (arrival_kind(what) == ARRIVAL_SENT && wc->status == IBV_WC_SUCCESS &&
        m->ud_state == UD_WORKS) {
        messages_sent(m, arrival_place(what));
        return lane_exchange_due(&m->exchange) != NULL; /* who may have waited for its place */
    }
    uint32_t at = m->arrival_at + m->arrived++;
    at = at < m->arrivals_most ? at : at - m->arrivals_most;
    m->arrivals[at] = (struct arrival){.what = (uint32_t)wc->wr_id,
                                       .bytes = wc->byte_len,
                                       .ended_well = wc->status == IBV_WC_SUCCESS,
                                       .has_grh = (wc->wc_flags & IBV_WC_GRH) != 0};
    return true;
}

#endif
