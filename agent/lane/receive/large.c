/* SPDX-License-Identifier: Apache-2.0 */
#include "receive/large.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "receive/port_admission.h"
#include "receive/usual_messages.h"
#include "request/cutting.h"
#include "request/reply.h"
#include "resolve/endpoint.h"
#include "resolve/lookup.h"
#include "schedule/vqp.h"
#include "session_state.h"
#include "transmit/cut.h"

enum {
    AGAIN_US = 1000, /* for whom a READ has failed: his region may be another one by then */
    TOGETHER = 8,    /* of a stream */
    LEFT = 8 /* places, to its tenant's other streams: with fewer only one of each is READ */
};

int lane_larges_new(struct lane *l, uint32_t places)
{
    struct messages *m = l->messages;
    TAILQ_INIT(&m->large_used);
    m->larges = calloc(places, sizeof m->larges[0]);
    if (lane_places_init(&m->large_places, places, l->config.max_tenants) != 0 || m->larges == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i + 1 < places; i++)
        m->larges[i].next_free = i + 2;
    m->free_large = 1;
    return 0;
}

void lane_larges_free(struct lane *l)
{
    lane_places_free(&l->messages->large_places);
    free(l->messages->larges);
}

bool lane_large_has_room(const struct lane *l, const struct vqp *q, uint32_t tenant)
{
    return l->messages->free_large != 0 && q->session->vqp_places > q->session->max_vqps &&
           lane_places_may_take(&l->messages->large_places, q->session->tenant_slot + 1) &&
           lane_admission_has_large(l, q, tenant);
}

/* ---- what becomes of it */

/* Its stream is there: nothing has forgotten it. */
static bool has_stream(const struct large_read *g)
{
    return g->stream->life == g->life;
}

/* Its sender waits for it: nothing has ended the stream, and all before it are taken yet. */
static bool is_awaited(const struct large_read *g)
{
    const struct stream_receiver *r = g->stream;
    return has_stream(g) && !r->ended && lane_exchange_goes_on(r, g->number);
}

static struct session *session_of(const struct lane *l, const struct large_read *g)
{
    return &l->sessions[g->session];
}

/* The VQP that hears it. NULL: it is gone. */
static struct vqp *find_hearer(const struct lane *l, const struct large_read *g)
{
    struct session *s = session_of(l, g);
    struct vqp *q = &s->vqps[g->hears];
    return s->state == SESSION_LIVE && q->gen == g->hears_gen && q->messages != NULL ? q : NULL;
}

/* That VQP is there, and its sender's tenant may still reach it. */
static bool is_heard(const struct lane *l, const struct large_read *g)
{
    const struct vqp *q = find_hearer(l, g);
    return q != NULL && lane_admission_of(l, q, g->from_tenant).admitted;
}

/* It is what its worker has posted. */
static struct wr *take_receive(struct large_read *g)
{
    struct wr *w = g->receive;
    w->op = operation_of(SCHEMA_OP_RECV);
    w->fab = (struct fab_wr){.opcode = w->op->opcode, .sg_list = w->sge, .num_sge = g->num_sge};
    memcpy(w->sge, g->sge, sizeof g->sge);
    w->special = 0;
    w->refused = w->ended = w->back = 0;
    w->remote_addr = g->taken;
    w->length = 0;
    w->vkey = 0;
    w->flow = NULL;
    w->vqp = g->hears;
    w->vqp_gen = g->hears_gen;
    return w;
}

/* What is out of it there is so no more. */
static void count_read(struct lane *l, const struct large_read *g)
{
    struct session *s = session_of(l, g);
    s->own[g->own - s->max_vqps].bytes -= g->reads;
}

static void leave_own(struct lane *l, struct large_read *g)
{
    struct session *s = session_of(l, g);
    if (g->own != 0 && --s->own[g->own - s->max_vqps].count == 0 && has_stream(g))
        g->stream->own = 0;
    g->own = 0;
}

static void free_place(struct lane *l, struct large_read *g)
{
    struct messages *m = l->messages;
    leave_own(l, g);
    TAILQ_REMOVE(&m->large_used, g, by_use);
    lane_places_give(&m->large_places, g->share);
    *g = (struct large_read){.next_free = m->free_large};
    m->free_large = (uint32_t)(g - m->larges) + 1;
}

/* Before all that were never taken, and in the order in which those were that were. */
static void post_again(struct vqp_messages *t, struct wr *w)
{
    struct wr *before = NULL;
    for (struct wr *at = t->receives.head;
         at != NULL && at->remote_addr != 0 && at->remote_addr < w->remote_addr; at = at->next)
        before = at;
    if (before != NULL)
        queue_insert_behind(&t->receives, before, w);
    else
        queue_push_front(&t->receives, w);
}

/* The receive is posted again, before all others. */
static void give_back(struct lane *l, struct large_read *g)
{
    struct vqp *q = find_hearer(l, g);
    struct wr *w = take_receive(g);
    if (q != NULL)
        post_again(q->messages, w);
    else
        lane_session_complete(l, w, IBV_WC_WR_FLUSH_ERR, 0);
    free_place(l, g);
}

/* It is not READ to its end: its sender announces it again, if it is still there, and what is
 * behind it. */
static void give_up(struct lane *l, struct large_read *g)
{
    struct stream_receiver *r = g->stream;
    const bool heard = is_heard(l, g);
    if (is_awaited(g)) {
        lane_exchange_stop(r, g->number, heard ? SCHEMA_NOTE_REFUSED : SCHEMA_NOTE_FAILED, AGAIN_US,
                           heard ? 0 : IBV_WC_REM_OP_ERR);
        COUNT(l, messages_refused, 1);
    }
    leave_own(l, g);
    if (has_stream(g))
        lane_exchange_left(&l->messages->exchange, r);
    give_back(l, g);
}

static bool may_go_on(const struct lane *l, const struct large_read *g)
{
    return is_awaited(g) && is_heard(l, g);
}

static void deliver_large(struct lane *l, struct large_read *g)
{
    struct stream_receiver *r = g->stream;
    struct session *s = session_of(l, g);
    struct schema_cqe_sender sender = {
        .incarnation = r->from->incarnation, .tenant = g->from_tenant, .vqp = g->name};
    g->state = LARGE_DELIVERS;
    leave_own(l, g);
    if (r->in.next != g->number || !lane_session_has_two_places(s))
        return;
    memcpy(sender.gid, r->from->gid, sizeof sender.gid);
    struct wr *w = take_receive(g);
    w->length = g->length;
    lane_session_deliver(l, w, g->with_imm, g->imm, &sender);
    lane_exchange_took(&l->messages->exchange, r);
    lane_exchange_left(&l->messages->exchange, r);
    COUNT(l, messages_received, 1);
    COUNT(l, messages_large, 1);
    free_place(l, g);
}

/* ---- reading */

static uint32_t lower_of(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

/* Where bytes go from the first that are not here, `most` of them at most, in no more pieces than a
 * request may have. Returns how many bytes that is. */
static uint32_t take_places(const struct session *s, const struct large_read *g, uint32_t most,
                            struct schema_sge *sge, uint32_t *count)
{
    const uint32_t pieces = s->caps->max_sge < SCHEMA_MAX_SGE ? s->caps->max_sge : SCHEMA_MAX_SGE;
    uint64_t skip = g->done;
    uint32_t bytes = 0;
    *count = 0;
    for (int i = 0; i < g->num_sge && *count < pieces && bytes < most; i++) {
        const struct ibv_sge *from = &g->sge[i];
        if (skip >= from->length) {
            skip -= from->length;
            continue;
        }
        const uint32_t length = lower_of(from->length - skip, most - bytes);
        sge[(*count)++] =
            (struct schema_sge){.offset = from->addr + skip, .length = length, .arena = from->lkey};
        bytes += length;
        skip = 0;
    }
    return bytes;
}

/* Of the part that has the first byte which is not here. */
static void read_next(struct lane *l, struct large_read *g)
{
    struct session *s = session_of(l, g);
    struct wr *w = g->receive;
    struct schema_sge sge[SCHEMA_MAX_SGE];
    uint32_t skip = g->done, part = 0, count;
    while (skip >= g->part[part].length)
        skip -= g->part[part++].length;
    g->reads = take_places(s, g, g->part[part].length - skip, sge, &count);
    BASE_ASSERT(g->reads > 0 && part < g->parts);
    w->op = operation_of(SCHEMA_OP_READ);
    w->fab = (struct fab_wr){.opcode = w->op->opcode, .sg_list = w->sge};
    w->special = SPECIAL_CUT | SPECIAL_PULL;
    w->refused = w->ended = 0;
    wr_part(w);
    w->index = (uint32_t)(g - l->messages->larges);
    w->remote_addr = g->part[part].addr + skip;
    w->vkey = g->part[part].vkey;
    w->length = g->reads;
    w->vqp = g->own;
    w->vqp_gen = s->vqps[g->own].gen;
    lane_cut_begin_pull(l, w, sge, count);
    g->state = LARGE_READS;
    s->own[g->own - s->max_vqps].bytes += g->reads;
    lane_vqp_submit(l, &s->vqps[g->own], w);
}

/* One that goes to that life of an endpoint already, or any that is free. NULL: none is. */
static struct vqp *choose_own(struct session *s, uint32_t slot, uint32_t gen)
{
    struct vqp *free_one = NULL;
    for (uint32_t i = s->max_vqps; i < s->vqp_places; i++) {
        struct vqp *q = &s->vqps[i];
        if (s->own[i - s->max_vqps].count > 0)
            continue;
        if (q->state == VQP_CONNECTED && q->peer_slot == slot && q->peer_gen == gen)
            return q;
        free_one = free_one != NULL ? free_one : q;
    }
    return free_one;
}

/* Where those before it are READ, as soon as no more than a piece is out there with it, so that
 * nobody's requests stand behind more than that; or where nothing is. NULL: it waits. */
static struct vqp *find_own(struct session *s, const struct large_read *g, uint32_t slot,
                            uint32_t gen)
{
    const uint32_t own = g->stream->own;
    if (g->number != g->stream->begins)
        return NULL;
    if (own == 0)
        return choose_own(s, slot, gen);
    struct vqp *q = &s->vqps[own];
    const bool is_same = q->state != VQP_ERROR && q->peer_slot == slot && q->peer_gen == gen;
    const uint64_t bytes = s->own[own - s->max_vqps].bytes;
    return is_same && (bytes == 0 || bytes + g->length <= CUT_PULL) ? q : NULL;
}

/* 0 and where its sender's endpoint is known; -EINPROGRESS: it is looked up; else it cannot be. */
static int find_endpoint(struct lane *l, const struct large_read *g, uint32_t *slot, uint32_t *gen)
{
    const struct message_peer *c = g->stream->from;
    const struct session *s = session_of(l, g);
    if (schema_peers_find(l->res.peers, c->gid, l->config.pool, slot, gen) == 0) {
        const uint32_t known = lane_peer_shared(l, *slot)->incarnation;
        if (known == c->incarnation)
            return 0;
        if ((int32_t)(known - c->incarnation) > 0)
            return -ESTALE;
    }
    const int status = lane_lookup_start(l, NULL, c->gid, NULL, s->tenant_slot + 1);
    return status == -EAGAIN ? -EINPROGRESS : status;
}

static void begin_reading(struct lane *l, struct large_read *g)
{
    struct session *s = session_of(l, g);
    uint32_t slot, gen;
    const int status = find_endpoint(l, g, &slot, &gen);
    if (status != 0) {
        if (status != -EINPROGRESS || l->now_ns - g->since_ns >= 2 * l->config.lookup_timeout_ns)
            give_up(l, g);
        return;
    }
    struct vqp *q = find_own(s, g, slot, gen);
    if (q == NULL)
        return;
    if (s->own[q->index - s->max_vqps].count++ == 0 &&
        (q->state != VQP_CONNECTED || q->peer_slot != slot || q->peer_gen != gen))
        lane_vqp_open_own(l, s, q, slot, gen);
    g->own = g->stream->own = (uint16_t)q->index;
    g->stream->begins++;
    read_next(l, g);
}

static uint64_t name_reader(const struct vqp *q, uint32_t gen)
{
    return (uint64_t)q->session->id << 32 | (uint64_t)q->index << 16 | gen;
}

bool lane_large_may_join(struct lane *l, const struct stream_receiver *r, const struct vqp *q,
                         const struct schema_message *m)
{
    const struct messages *all = l->messages;
    if (q == NULL || m->parts == 0 || r->reads >= TOGETHER || all->free_large == 0 ||
        lane_places_left(&all->large_places, q->session->tenant_slot + 1) < LEFT)
        return false;
    const struct wr_queue *receives = &q->messages->receives;
    const struct wr *receive = receives->head;
    if (lane_admission_is_foreign(q, m->from_tenant) && receives->count <= r->reads)
        return false; /* a guest's stream takes no more of them than it leaves to others */
    return lane_admission_has_receive(l, q->messages, r) && receive_holds(receive, m->length) &&
           r->reader == name_reader(q, receive->vqp_gen) &&
           lane_session_has_two_places(q->session) && !lane_admission_yields(l, q, m->from_tenant);
}

/* Which of those that were taken it is: as before, if it was. */
static uint64_t take_number(struct vqp_messages *t, const struct wr *receive)
{
    return receive->remote_addr != 0 ? receive->remote_addr : ++t->taken;
}

void lane_large_begin(struct lane *l, struct stream_receiver *r, struct vqp *q, struct wr *receive,
                      const struct schema_message *m, const struct schema_part *parts)
{
    struct messages *all = l->messages;
    struct large_read *g = &all->larges[all->free_large - 1];
    const uint32_t share = q->session->tenant_slot + 1;
    const bool has_place = lane_places_take(&all->large_places, share);
    BASE_ASSERT(has_place);
    all->free_large = g->next_free;
    *g = (struct large_read){.receive = receive,
                             .stream = r,
                             .life = r->life,
                             .name = r->name,
                             .number = m->number,
                             .taken = take_number(q->messages, receive),
                             .session = q->session->id,
                             .share = share,
                             .hears = (uint16_t)q->index,
                             .hears_gen = receive->vqp_gen,
                             .with_imm = m->with_imm,
                             .parts = m->parts,
                             .imm = m->imm,
                             .from_tenant = m->from_tenant,
                             .length = m->length,
                             .num_sge = receive->fab.num_sge,
                             .since_ns = l->now_ns};
    memcpy(g->part, parts, m->parts * sizeof parts[0]);
    memcpy(g->sge, receive->sge, sizeof g->sge);
    TAILQ_INSERT_TAIL(&all->large_used, g, by_use);
    if (r->reads == 0) {
        r->begins = m->number;
        r->reader = name_reader(q, receive->vqp_gen);
    }
    lane_exchange_reads(r);
    begin_reading(l, g);
}

/* ---- later */

static void look_at(struct lane *l, struct large_read *g)
{
    if (!may_go_on(l, g)) {
        if (g->state == LARGE_READS)
            g->receive->refused = SCHEMA_REASON_CANCELLED; /* no more of it than is out */
        else
            give_up(l, g);
    } else if (g->state == LARGE_FINDS) {
        begin_reading(l, g);
    } else if (g->state == LARGE_DELIVERS) {
        deliver_large(l, g);
    }
}

void lane_larges_look(struct lane *l)
{
    struct large_read *g = TAILQ_FIRST(&l->messages->large_used);
    for (struct large_read *next; g != NULL; g = next) {
        next = TAILQ_NEXT(g, by_use);
        look_at(l, g);
    }
}

static void take_read(struct lane *l, struct large_read *g, enum ibv_wc_status status)
{
    count_read(l, g);
    if (status != IBV_WC_SUCCESS || !may_go_on(l, g)) {
        give_up(l, g);
        return;
    }
    g->done += g->reads;
    if (g->done < g->length)
        read_next(l, g);
    else
        deliver_large(l, g);
}

/* A VQP of its session's is free, or has less out, and one before it may have been delivered: who
 * waits for that has it at once. */
void lane_larges_go_on(struct lane *l)
{
    struct messages *m = l->messages;
    for (uint32_t n = m->pulled.count; n > 0; n--) {
        struct wr *w = queue_pop(&m->pulled);
        const enum ibv_wc_status status = (enum ibv_wc_status)w->ended;
        BASE_ASSERT(m->larges[w->index].receive == w);
        w->ended = 0;
        take_read(l, &m->larges[w->index], status);
    }
    struct large_read *g = TAILQ_FIRST(&m->large_used);
    for (struct large_read *next; g != NULL; g = next) {
        next = TAILQ_NEXT(g, by_use);
        if (g->state != LARGE_READS)
            look_at(l, g);
    }
}
