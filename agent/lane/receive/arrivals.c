/* SPDX-License-Identifier: Apache-2.0 */
#include "receive/arrivals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "message_state.h"
#include "receive/port_admission.h"
#include "receive/large.h"
#include "receive/message_datagrams.h"
#include "receive/near_messages.h"
#include "receive/usual_messages.h"
#include "request/lending.h"
#include "request/raises.h"
#include "request/reply.h"
#include "schedule/sends.h"
#include "schedule/vqp.h"
#include "session_state.h"

/* So long after what its sender says of it by datagram a message is taken up at the latest: it is
 * seen within SEEN_NS, and then waits behind others, of which a pass takes up some alone. */
static const uint64_t TAKEN_NS = 50 * SEEN_NS;

enum {
    SWEEP = 16,              /* peers, in a millisecond */
    ALONE = 64 * 1024,       /* bytes that are copied in a pass, and the rest of a message */
    SHARED = 16 * 1024,      /* likewise, while another session is polled */
    NEAR_ALONE = 256 * 1024, /* near ones, of the one session that is polled */
    RNR_WAIT_US = 200,       /* for who finds no buffer posted */
    LARGES = 64,             /* messages that are READ */
    POSTED = 16              /* receives, at once */
};

/* ---- receives */

static uint64_t receive_offset(uint32_t place)
{
    return (uint64_t)place * LANE_RECEIVE_BYTES;
}

static const uint8_t *receive_at(const struct lane *l, uint32_t place)
{
    return (const uint8_t *)l->res.messages.memory.addr + receive_offset(place);
}

/* Those that the device does not have. What it does not take now is tried again when more come, or
 * at the next look. */
static void post_receives(struct lane *l)
{
    const struct lane_messages *r = &l->res.messages;
    struct messages *m = l->messages;
    struct ibv_sge sge[POSTED];
    struct fab_recv_wr wr[POSTED], *bad = NULL;
    while (m->unposted_count > 0) {
        const uint32_t n = m->unposted_count < POSTED ? m->unposted_count : POSTED;
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t place = m->unposted[m->unposted_count - 1 - i];
            sge[i] = (struct ibv_sge){.addr = r->iova + receive_offset(place),
                                      .length = LANE_RECEIVE_BYTES,
                                      .lkey = r->lkey};
            wr[i] = (struct fab_recv_wr){.wr_id = ARRIVAL_WR_ID(ARRIVAL_RECEIVE, 0, place),
                                         .next = i + 1 < n ? &wr[i + 1] : NULL,
                                         .sg_list = &sge[i],
                                         .num_sge = 1};
        }
        const int status = fab_post_srq_recv(r->srq, wr, &bad);
        const uint32_t taken = status == 0 ? n : (uint32_t)(bad - wr);
        lane_exchange_posted(&m->exchange, taken);
        m->unposted_count -= taken;
        if (status != 0)
            return;
    }
}

/* A few that the device does not have may wait for others: where it has far more than all peers
 * together have been promised, nobody has less for it. */
static bool may_wait(const struct messages *m)
{
    const struct credit_bank *b = &m->exchange.bank;
    return m->unposted_count < POSTED && b->posted >= 2 * (b->promised + POSTED);
}

/* ---- making */

/* As many places as there are shares at least, and two. */
static uint32_t at_least(const struct lane *l, uint32_t places)
{
    const uint32_t least = lane_admission_shares(l) + 2;
    return places < least ? least : places;
}

static int make_exchange(struct lane *l)
{
    const struct lane_messages *r = &l->res.messages;
    const struct lane_config *c = &l->config;
    struct exchange_config config = {.incarnation = c->incarnation,
                                     .pool = c->pool,
                                     .lid = l->res.fab->caps.lid,
                                     .qpn = r->ud->qpn,
                                     .qkey = r->ud_qkey,
                                     .peers = r->peers,
                                     .receivers = at_least(l, r->streams),
                                     .shares = lane_admission_shares(l),
                                     .guests = lane_admission_guests(l, at_least(l, r->ports)),
                                     .bound_ns = c->bound_ns + c->slack_ns,
                                     .seen_ns = c->bound_ns < TAKEN_NS ? c->bound_ns : TAKEN_NS,
                                     .ask_ns = r->ask_ns,
                                     .idle_ns = 100 * r->ask_ns,
                                     .forget_ns = 60000000000,
                                     .refused_ns = r->refused_ns};
    memcpy(config.gid, c->gid, sizeof config.gid);
    int status = lane_exchange_init(&l->messages->exchange, &config, 0);
    if (status == 0)
        status = lane_ports_init(&l->messages->ports, at_least(l, r->ports), 0);
    return status == 0 ? lane_guests_init(&l->messages->guests, at_least(l, r->ports)) : status;
}

static int make_shares(struct lane *l)
{
    const struct lane_messages *r = &l->res.messages;
    struct messages *m = l->messages;
    const uint32_t tenants = l->config.max_tenants;
    if (LANE_HEADERS <= tenants + 1)
        return -EINVAL;
    int status = lane_places_init(&m->vqp_places, at_least(l, r->vqps), tenants);
    if (status == 0)
        status = lane_places_init(&m->port_places, at_least(l, r->ports), tenants);
    if (status == 0)
        status = lane_places_init(&m->guest_places, at_least(l, r->ports), tenants);
    if (status == 0)
        status = lane_places_init(&m->header_places, LANE_HEADERS, tenants);
    return status;
}

static int make_places(struct lane *l)
{
    const struct lane_messages *r = &l->res.messages;
    struct messages *m = l->messages;
    const uint32_t vqps = at_least(l, r->vqps);
    m->vqp_count = vqps;
    m->vqps = calloc(vqps, sizeof m->vqps[0]);
    m->arrivals_most = r->receives + LANE_DATAGRAMS_IN + LANE_DATAGRAMS_OUT;
    m->arrivals = calloc(m->arrivals_most, sizeof m->arrivals[0]);
    m->header_free = calloc(LANE_HEADERS, sizeof m->header_free[0]);
    m->unposted = calloc(r->receives, sizeof m->unposted[0]);
    m->nears.tenants = calloc(l->config.max_tenants, sizeof m->nears.tenants[0]);
    m->handles = calloc(r->peers, sizeof m->handles[0]);
    if (m->vqps == NULL || m->arrivals == NULL || m->header_free == NULL || m->handles == NULL ||
        m->unposted == NULL || m->nears.tenants == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < l->config.max_tenants; i++)
        TAILQ_INIT(&m->nears.tenants[i].vqps);
    for (uint32_t i = 0; i + 1 < vqps; i++)
        m->vqps[i].next_free = i + 2;
    m->free_vqp = 1;
    while (m->header_count < LANE_HEADERS) {
        m->header_free[m->header_count] = m->header_count;
        m->header_count++;
    }
    return make_shares(l);
}

int lane_messages_new(struct lane *l)
{
    const struct lane_messages *r = &l->res.messages;
    if (r->srq == NULL)
        return 0;
    if (r->receives == 0 || r->receives > LANE_RECEIVES_MOST || r->peers == 0 ||
        r->memory.size < lane_messages_bytes(r->receives) || l->config.max_sessions > 1 << 16)
        return -EINVAL;
    l->messages = calloc(1, sizeof *l->messages);
    if (l->messages == NULL)
        return -ENOMEM;
    TAILQ_INIT(&l->messages->actives);
    TAILQ_INIT(&l->messages->lendings);
    TAILQ_INIT(&l->messages->nears.waiting);
    int status = make_places(l);
    if (status == 0)
        status = lane_larges_new(l, at_least(l, LARGES));
    return status == 0 ? make_exchange(l) : status;
}

void lane_messages_begin(struct lane *l)
{
    uint64_t random[2] = {0};
    (void)l->random_fill(l->random_user, random, sizeof random);
    lane_exchange_seed(&l->messages->exchange, random);
    l->messages->ports.seed = random[1];
    for (uint32_t i = l->res.messages.receives; i > 0; i--)
        l->messages->unposted[l->messages->unposted_count++] = i - 1;
    post_receives(l);
    lane_datagrams_begin(l);
}

void lane_messages_free(struct lane *l)
{
    struct messages *m = l->messages;
    if (m == NULL)
        return;
    lane_exchange_free(&m->exchange);
    lane_larges_free(l);
    lane_ports_free(&m->ports);
    lane_guests_free(&m->guests);
    lane_places_free(&m->vqp_places);
    lane_places_free(&m->port_places);
    lane_places_free(&m->guest_places);
    lane_places_free(&m->header_places);
    free(m->vqps);
    free(m->arrivals);
    free(m->header_free);
    free(m->unposted);
    free(m->handles);
    free(m->nears.tenants);
    free(m);
    l->messages = NULL;
}

/* ---- messages */

/* It says that a WRITE is there, as verbs do of one with an immediate. */
static void become_written(const struct schema_message *m, struct wr *receive)
{
    static const struct operation written = {.kind = OPERATION_RECEIVE,
                                             .completion = IBV_WC_RECV_RDMA_WITH_IMM};
    receive->op = &written;
    receive->length = m->written;
}

/* It is the next one of its stream. */
static void deliver_message(struct lane *l, struct stream_receiver *r, struct vqp *q,
                            const struct schema_message *m, const uint8_t *payload)
{
    struct exchange *x = &l->messages->exchange;
    if (q == NULL) {
        lane_exchange_fail(x, r, IBV_WC_REM_OP_ERR);
        return;
    }
    struct session *s = q->session;
    struct wr *receive = q->messages->receives.head;
    if (!lane_admission_is_foreign(q, m->from_tenant))
        lane_aside_hear(&r->aside, &q->messages->aside, r->in.next);
    struct schema_part parts[SCHEMA_PARTS_MOST];
    if (m->parts != 0 && schema_parts_read(payload, m, parts) != 0) {
        lane_exchange_fail(x, r, IBV_WC_REM_OP_ERR);
        return;
    }
    const bool has_receive = lane_admission_has_receive(l, q->messages, r);
    const bool has_room = has_receive && lane_session_has_two_places(s);
    if (!has_room && !lane_admission_is_foreign(q, m->from_tenant))
        lane_admission_unmet(l, q, has_receive);
    if (!has_room || lane_admission_yields(l, q, m->from_tenant) ||
        (m->parts != 0 && !lane_large_has_room(l, q, m->from_tenant))) {
        COUNT(l, messages_refused, 1);
        if (receive != NULL && m->parts == 0) /* nothing goes behind a large one */
            lane_aside_renew(&r->aside, r->in.next);
        lane_exchange_refuse(x, r, RNR_WAIT_US);
        return;
    }
    (void)queue_pop(&q->messages->receives);
    if (!receive_holds(receive, m->length)) {
        lane_exchange_fail(x, r, IBV_WC_REM_INV_REQ_ERR);
        lane_session_complete(l, receive, IBV_WC_LOC_LEN_ERR, SCHEMA_REASON_LONG);
        return;
    }
    if (m->parts != 0) {
        lane_large_begin(l, r, q, receive, m, parts);
        return;
    }
    struct schema_cqe_sender sender = {
        .incarnation = r->from->incarnation, .tenant = m->from_tenant, .vqp = m->stream};
    memcpy(sender.gid, r->from->gid, sizeof sender.gid);
    receive_copy(s, receive, payload, m->length);
    receive->length = m->length;
    if (m->of_write)
        become_written(m, receive);
    lane_usual_learn(l, m, r, q, &sender);
    lane_session_deliver(l, receive, m->with_imm, m->imm, &sender);
    lane_exchange_took(x, r);
    COUNT(l, messages_received, 1);
}

/* It comes behind large ones of its stream, which are READ. One that cannot be READ with them is
 * dropped: its sender hears so when those are over. */
static void join_large(struct lane *l, struct stream_receiver *r, struct vqp *q,
                       const struct schema_message *m, const uint8_t *payload)
{
    struct schema_part parts[SCHEMA_PARTS_MOST];
    if (!lane_large_may_join(l, r, q, m) || schema_parts_read(payload, m, parts) != 0) {
        lane_exchange_stop(r, m->number, SCHEMA_NOTE_ANSWER, 0, 0);
        return;
    }
    lane_large_begin(l, r, q, queue_pop(&q->messages->receives), m, parts);
}

/* A counter takes no receive of a worker's. */
static void take_raise(struct lane *l, const struct schema_message *m)
{
    struct exchange *x = &l->messages->exchange;
    struct session *owner = NULL;
    struct counter *c = lane_counter_find(l, m, &owner);
    struct stream_receiver *r =
        lane_exchange_arrive(x, m, c != NULL ? owner->tenant_slot + 1 : 0, 0, l->now_ns);
    if (r == NULL)
        return;
    if (r->reads > 0) {
        lane_exchange_stop(r, m->number, SCHEMA_NOTE_ANSWER, 0, 0);
        return;
    }
    if (c == NULL) {
        lane_exchange_fail(x, r, IBV_WC_REM_OP_ERR);
        return;
    }
    lane_counter_raise(l, owner, c);
    lane_exchange_took(x, r);
    COUNT(l, messages_received, 1);
}

static void take_message(struct lane *l, const struct arrival *a, uint32_t place)
{
    struct exchange *x = &l->messages->exchange;
    const uint8_t *at = receive_at(l, place);
    struct schema_message m;
    l->messages->unposted[l->messages->unposted_count++] = place;
    if (a->ended_well && lane_usual_take(l, a, at))
        return;
    if (!a->ended_well || schema_message_read(at, a->bytes, &m) != 0) {
        lane_exchange_stray(x);
    } else if (m.kind == SCHEMA_MESSAGE_TO_COUNTER) {
        take_raise(l, &m);
    } else {
        struct admission from = {.admitted = false};
        struct vqp *q = lane_admission_find(l, &m, &from);
        COUNT(l, messages_unadmitted, q == NULL);
        struct stream_receiver *r = lane_exchange_arrive(x, &m, from.share, from.guest, l->now_ns);
        if (r != NULL && r->reads > 0)
            join_large(l, r, q, &m, at + SCHEMA_MESSAGE_BYTES);
        else if (r != NULL)
            deliver_message(l, r, q, &m, at + SCHEMA_MESSAGE_BYTES);
    }
}

/* ---- */

static void set_gauge(_Atomic uint64_t *gauge, uint64_t value)
{
    atomic_store_explicit(gauge, value, memory_order_relaxed);
}

/* In each pass, what no look may find at odds. */
static inline void show_credits(struct lane *l)
{
    const struct credit_bank *b = &l->messages->exchange.bank;
    set_gauge(&l->counters.receives_posted, b->posted);
    set_gauge(&l->counters.credits_granted, b->promised);
}

static void show_all(struct lane *l)
{
    const struct exchange *x = &l->messages->exchange;
    show_credits(l);
    set_gauge(&l->counters.messages_stray, x->strays);
    set_gauge(&l->counters.message_peers, x->used);
    set_gauge(&l->counters.port_guests, l->messages->guests.used);
}

void lane_arrivals_go_on(struct lane *l)
{
    struct messages *m = l->messages;
    const bool is_alone = l->active_count <= 1;
    const uint32_t most = is_alone ? ALONE : SHARED;
    const uint32_t near = m->nears.bytes < most / 2 ? (uint32_t)m->nears.bytes : most / 2;
    uint32_t bytes = 0;
    l->messages_due = 0;
    for (; m->arrived > 0 && bytes < most - near; m->arrived--) {
        const struct arrival a = m->arrivals[m->arrival_at];
        m->arrival_at = m->arrival_at + 1 < m->arrivals_most ? m->arrival_at + 1 : 0;
        if (arrival_kind(a.what) == ARRIVAL_RECEIVE)
            take_message(l, &a, arrival_place(a.what));
        else
            lane_datagrams_take(l, &a);
        bytes += a.bytes;
        l->did++;
    }
    if (m->unposted_count > 0 && !may_wait(m))
        post_receives(l);
    if (near > 0)
        lane_near_go_on(l, (is_alone ? NEAR_ALONE : most) -
                               (bytes < most - near ? bytes : most - near));
    if (m->arrived > 0 || m->nears.bytes > 0)
        messages_wait(l);
    if (m->pulled.head != NULL)
        lane_larges_go_on(l);
    if (!TAILQ_EMPTY(&m->lendings))
        lane_lendings_go_on(l);
    if (lane_exchange_due(&m->exchange) != NULL)
        lane_datagrams_say(l);
    show_credits(l);
}

void lane_arrivals_look(struct lane *l)
{
    if (l->messages->unposted_count > 0)
        post_receives(l);
    lane_sends_look(l);
    lane_larges_look(l);
    lane_lendings_go_on(l);
    lane_exchange_sweep(&l->messages->exchange, l->now_ns, SWEEP);
    lane_datagrams_look(l);
    lane_datagrams_say(l);
    show_all(l);
}

void lane_arrivals_readdress(struct lane *l)
{
    lane_exchange_readdress(&l->messages->exchange, l->config.gid, l->config.incarnation,
                            l->res.fab->caps.lid);
    lane_sends_readdress(l);
    lane_datagrams_readdress(l);
}
