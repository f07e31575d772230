/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups: an endpoint that is unknown, or whose record is old, or a region's name, is looked up
 * with one READ of a metaserver's table (KRCore Algorithm 1); of a second one's beside it when the
 * first is silent. */
#include "resolve/lookup.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "schema/peers.h"
#include "lane_state.h"
#include "resolve/endpoint.h"
#include "resolve/flow.h"
#include "resolve/flow_news.h"
#include "resolve/name_lookup.h"
#include "resolve/path.h"
#include "resolve/peer_room.h"
#include "resolve/relay.h"
#include "session_state.h"
#include "transmit/operation.h"
#include "transmit/own_read.h"
#include "transmit/physical_qp.h"
#include "transmit/wr.h"

enum {
    TRIES = 3,
    SILENCES = 6, /* doublings */
    PAUSES = 5,   /* likewise */
    NO_METASERVER = LANE_MAX_METASERVERS
};
static_assert(LANE_MAX_METASERVERS <= 16, "struct lookup: awaited_by");
static const uint64_t SILENCE_NS = 50000000; /* a silent metaserver is asked again, then later */
static const uint64_t AGAIN_NS = 1000000;    /* until there may be room for a READ */
static const uint64_t PAUSE_NS = 2000000;    /* before all are asked again for what is awaited */

/* From when on a lookup has its time: not while no queue pair may be used yet. */
static uint64_t begin_of(const struct lane *l)
{
    return l->now_ns < l->res.rest_until_ns ? l->res.rest_until_ns : l->now_ns;
}

/* It did not answer for as long as the device repeats a READ: not for want of one packet. */
static void note_silence(struct lane *l, uint32_t metaserver)
{
    struct silence *s = &l->silence[metaserver];
    if (l->now_ns < s->until_ns) /* heard of already */
        return;
    s->last_ns = s->last_ns == 0                       ? SILENCE_NS
                 : s->last_ns < SILENCE_NS << SILENCES ? 2 * s->last_ns
                                                       : s->last_ns;
    s->until_ns = l->now_ns + s->last_ns;
}

bool lane_lookup_may_ask(const struct lane *l, uint32_t metaserver)
{
    return l->now_ns >= l->silence[metaserver].until_ns;
}

bool lane_lookup_has_whom_to_ask(const struct lane *l)
{
    for (uint32_t i = 0; i < l->metaservers; i++)
        if (lane_lookup_may_ask(l, i))
            return true;
    return false;
}

/* ---- READs */

static struct physical_qp *phys_to(struct lane *l, uint32_t metaserver)
{
    return l->config.rc ? l->metaserver_phys[metaserver] : &l->phys[l->system_phys];
}

/* With rc one whose queue pair broke has another one in its next list. */
static bool is_there(struct lane *l, uint32_t metaserver)
{
    return !l->config.rc || phys_to(l, metaserver) != NULL || l->metaserver[metaserver].relayed;
}

static struct lookup_span endpoint_span(const struct lane *l, const struct lane_metaserver *m,
                                        const struct lookup *k)
{
    const uint32_t home = schema_endpoint_home(&m->table, k->key, l->config.pool);
    return (struct lookup_span){.addr = m->table.addr + (uint64_t)home * SCHEMA_RECORD_BYTES,
                                .rkey = m->table.rkey,
                                .bytes = SCHEMA_TABLE_SPAN_BYTES};
}

static void count_read(struct lane *l, const struct lookup *k, struct lookup_read *r)
{
    r->read_ns = l->now_ns;
    if (k->name != NULL)
        COUNT(l, name_reads, 1);
    else
        COUNT(l, endpoint_reads, 1);
}

static struct lookup_span span_of(const struct lane *l, const struct lane_metaserver *m,
                                  struct lookup *k)
{
    return k->name != NULL ? lane_name_span(m, k->name) : endpoint_span(l, m, k);
}

/* By the first lane: what it was posted for is known again when it is back. Apart from its caller,
 * whose own READs it would make dearer. False: this tenant's may have no more now. */
static __attribute__((noinline)) bool have_relayed(struct lane *l, struct lookup *k,
                                                   struct lookup_read *r)
{
    const struct lane_metaserver *m = &l->metaserver[r->metaserver];
    if (!relays_may_want(&l->lookups.relays, k->tenant))
        return false;
    const struct lookup_span span = span_of(l, m, k);
    lane_relay_want(l, m, k->name != NULL ? m->names.generation : m->table.generation, &span,
                    r->scratch, (uint32_t)(r - l->lookups.all_reads));
    count_read(l, k, r);
    return true;
}

static bool post_read(struct lane *l, struct lookup *k, struct lookup_read *r)
{
    const struct lane_metaserver *m = &l->metaserver[r->metaserver];
    struct physical_qp *p = phys_to(l, r->metaserver);
    struct wr *w = lane_physical_qp_has_room(p) ? lane_own_read_take(l) : NULL;
    if (w == NULL) /* who has it relayed has no queue pair there, and others are not asked more */
        return m->relayed && have_relayed(l, k, r);
    w->op = operation_of(SCHEMA_OP_READ);
    w->kind = WR_LOOKUP_READ;
    w->flow = NULL;
    w->index = (uint32_t)(r - l->lookups.all_reads);
    w->signaled = 1;
    const struct lookup_span span = span_of(l, m, k);
    w->sge[0] = (struct ibv_sge){.addr = (uintptr_t)lane_scratch_at(l, r->scratch),
                                 .length = span.bytes,
                                 .lkey = l->res.scratch_system_lkey};
    w->fab = (struct fab_wr){.sg_list = w->sge,
                             .num_sge = 1,
                             .opcode = w->op->opcode,
                             .key.rkey = span.rkey,
                             .remote_addr = span.addr,
                             .ah = m->ah,
                             .dest_qpn = m->dctn,
                             .dc_key = m->dc_key};
    lane_physical_qp_chain(l, p, w);
    count_read(l, k, r);
    return true;
}

/* It is in no list. */
static void release_read(struct lane *l, struct lookup_read *r)
{
    lane_scratch_give(l, r->scratch);
    LIST_INSERT_HEAD(&l->lookups.free_reads, r, one);
}

/* 0; -EAGAIN: there is no room, for a moment; -ENOTCONN: none. */
static int begin_read(struct lane *l, struct lookup *k, uint32_t metaserver)
{
    struct lookup_read *r = LIST_FIRST(&l->lookups.free_reads);
    const int64_t scratch = r != NULL ? lane_scratch_take(l, k->tenant) : -1;
    if (scratch < 0)
        return -EAGAIN;
    LIST_REMOVE(r, one);
    *r = (struct lookup_read){
        .metaserver = (uint8_t)metaserver, .lookup = k, .scratch = (uint32_t)scratch};
    if (!post_read(l, k, r)) {
        release_read(l, r);
        return is_there(l, metaserver) ? -EAGAIN : -ENOTCONN;
    }
    LIST_INSERT_HEAD(&k->reads, r, one);
    k->hedge_ns = l->now_ns + l->config.lookup_hedge_ns;
    return 0;
}

static bool has_table(const struct lane *l, const struct lookup *k, uint32_t metaserver)
{
    return k->name == NULL || lane_metaserver_has_names(&l->metaserver[metaserver]);
}

/* The next metaserver that can be asked, or could be if there were room, which it waits for. False:
 * there is none. With DC all are READ through one queue pair, which one that is silent breaks: then
 * the others are asked when it is repaired. */
static bool ask_one(struct lane *l, struct lookup *k)
{
    uint32_t full = NO_METASERVER;
    for (; k->next < l->metaservers; k->next++) {
        if (!lane_lookup_may_ask(l, k->next) || !has_table(l, k, k->next))
            continue;
        const int status = begin_read(l, k, k->next);
        if (status == 0) {
            k->next++;
            return true;
        }
        if (status == -EAGAIN && full == NO_METASERVER)
            full = k->next;
    }
    if (full == NO_METASERVER)
        return false;
    k->next = (uint8_t)full;
    k->hedge_ns = l->now_ns + AGAIN_NS;
    return true;
}

/* In the last third whoever uses it has it READ again. */
static void good_for(struct peer *p, uint64_t since_ns, uint64_t ns)
{
    p->expires_ns = since_ns + ns;
    p->renew_us = (uint32_t)(ns / 3000);
}

/* What is known goes on for a while; not for long if the endpoint is silent. */
static void go_on_with(struct lane *l, struct peer *p)
{
    bool answers = p->flow == NULL || p->flow->heard_ns != 0;
    good_for(p, l->now_ns, answers ? l->config.node_lease_ns / 4 : SILENCE_NS);
}

/* Whether what is known of an endpoint goes on, although a metaserver does not know it or is
 * behind: that one has restarted, and will be told. */
static bool is_known_better(const struct peer *p, int status)
{
    return status == -ESTALE || (status == -ENOENT && p->flow != NULL && p->flow->heard_ns != 0);
}

/* Its answer says the rest. */
static void end_with(struct lane *l, struct lookup *k, int status)
{
    k->answer.status = status;
    k->answer.of_name = k->name != NULL;
    if (status == -EHOSTUNREACH)
        COUNT(l, lookups_failed, 1);
    lane_lookup_end(l, k);
    l->changed |= l->wanting;
}

static void conclude_endpoint(struct lane *l, struct lookup *k, int status)
{
    uint32_t known_slot, known_gen;
    const bool known =
        schema_peers_find(l->res.peers, k->key, l->config.pool, &known_slot, &known_gen) == 0;
    struct peer *p = known ? &l->peers[known_slot] : NULL;
    if (known && is_known_better(p, status)) {
        go_on_with(l, p);
        status = 0;
        k->answer.slot = known_slot;
        k->answer.gen = known_gen;
    } else if (status == -ESTALE) {
        status = -ENOENT;
    }
    if (known) {
        p->refreshing = 0;
        lane_flows_notify(l, known_slot); /* also of the life before, whose VQPs follow or fail */
        if (status == -ENOENT) {          /* it has left */
            lane_peer_room_leave(l, known_slot);
        } else if (status != 0) { /* nobody to ask: what is known goes on */
            go_on_with(l, p);
        }
    }
    end_with(l, k, status);
}

/* What was found is in its answer, unless status says that nothing was. */
static void conclude_lookup(struct lane *l, struct lookup *k, int status)
{
    if (k->name == NULL)
        conclude_endpoint(l, k, status);
    else
        end_with(l, k, status == -ESTALE ? -ENOENT : status);
}

/* The metaserver has its node from its store, and nothing of the endpoint: -EUNATCH, others may
 * have it; -ESTALE: what is known here is not of an earlier life. */
static int compare_awaited(struct lane *l, const struct lookup *k,
                           const struct schema_endpoint_record *r)
{
    uint32_t slot, gen;
    const bool known = schema_peers_find(l->res.peers, k->key, l->config.pool, &slot, &gen) == 0;
    return known && lane_peer_shared(l, slot)->incarnation >= r->incarnation ? -ESTALE : -EUNATCH;
}

/* By which an endpoint can be reached from here. */
static uint16_t ways_of(const struct lane *l)
{
    return l->config.rc       ? SCHEMA_RECORD_RC
           : l->config.hybrid ? SCHEMA_RECORD_RC | SCHEMA_RECORD_DC
                              : SCHEMA_RECORD_DC;
}

/* 0 and its place; -ESTALE: an earlier life than we know, this metaserver is behind; -ENOENT;
 * -EOPNOTSUPP; -EBUSY: there may be room for it in a moment; -EINPROGRESS: in another pass;
 * -ENOSPC. */
static int learn_record(struct lane *l, const struct lookup *k,
                        const struct schema_endpoint_record *r, uint32_t *slot, uint32_t *gen)
{
    uint32_t log2_slots = r->udqpn_slots >> 24;
    if (log2_slots > 30) /* not a table; do not compute with it */
        return -ENOENT;
    if (!(r->flags & ways_of(l)))
        return -EOPNOTSUPP; /* it is reached in another way than this node can */
    const bool is_known = schema_peers_find(l->res.peers, r->gid, r->pool, slot, gen) == 0;
    const uint32_t before = is_known ? *gen : 0; /* another life of it has another one */
    const int64_t room = is_known ? *slot : lane_peer_room_find(l, k->tenant);
    if (room < 0)
        return room == -EAGAIN ? -EBUSY : (int)room;
    const int64_t at =
        schema_peers_put(l->res.peers, (uint32_t)room, r->gid, r->pool, r->incarnation);
    if (at < 0)
        return -ENOSPC;
    if (!is_known)
        lane_peer_room_take(l, (uint32_t)at, k->tenant);
    const struct schema_peer *shared = lane_peer_shared(l, (uint32_t)at);
    struct peer *p = &l->peers[at];
    *slot = (uint32_t)at;
    *gen = shared->gen;
    if (r->incarnation != shared->incarnation)
        return -ESTALE;
    const uint8_t mtu = (uint8_t)(r->dctn_mtu >> 24);
    const bool outlived = p->used && *gen == before && p->outlived;
    const bool elsewhere = p->used && (p->lid != r->lid || p->mtu != mtu);
    *p = (struct peer){.used = 1,
                       .tenant = p->tenant,
                       .outlived = outlived,
                       .flow = p->used ? p->flow : NULL,
                       .first_gen = p->used ? p->first_gen : shared->gen,
                       .dc_key = r->dc_key,
                       .dctn = r->dctn_mtu & 0xffffff,
                       .mtu = mtu,
                       .has_dc = (r->flags & SCHEMA_RECORD_DC) != 0,
                       .has_rc = (r->flags & SCHEMA_RECORD_RC) != 0,
                       .ud_qpn = r->udqpn_slots & 0xffffff,
                       .ud_qkey = r->ud_qkey,
                       .lid = r->lid,
                       .mr_addr = (uint64_t)r->mr_table_addr_hi << 32 | r->mr_table_addr_lo,
                       .mr_rkey = r->mr_table_rkey,
                       .mr_log2 = (uint8_t)(r->udqpn_slots >> 24)};
    good_for(p, k->read_ns, l->config.node_lease_ns);
    if (elsewhere)
        lane_flows_outdate(l, *slot);
    return 0;
}

/* All are asked once more, a little later each time: agents register with a metaserver that has
 * just begun within seconds. Not if nobody waits for it: whose record is old comes again; nor
 * where lookups are short, so that others wait for its place. */
static bool begin_round(struct lane *l, struct lookup *k)
{
    if (k->awaited_by == 0 || k->crowded || l->now_ns >= k->patience_ns ||
        TAILQ_EMPTY(&k->groups) || lane_places_are_short(&l->lookups.places))
        return false;
    const uint64_t pause_ns = PAUSE_NS << k->rounds;
    k->rounds += k->rounds < PAUSES;
    k->absent = k->behind = k->next = 0;
    k->hedge_ns = l->now_ns + pause_ns;
    k->deadline_ns = k->hedge_ns + l->config.lookup_timeout_ns;
    COUNT(l, lookups_awaited, 1);
    return true;
}

/* Nobody is left to ask: what those said that answered. */
static void give_up(struct lane *l, struct lookup *k)
{
    if (begin_round(l, k))
        return;
    const int status = k->crowded           ? -ENOSPC
                       : k->awaited_by != 0 ? -EUNATCH
                       : k->behind          ? -ESTALE
                       : k->absent          ? -ENOENT
                                            : -EHOSTUNREACH;
    conclude_lookup(l, k, status);
}

/* A metaserver gave nothing, or less than another one may know: the next one, or the end. */
static void ask_next(struct lane *l, struct lookup *k)
{
    if (!ask_one(l, k) && LIST_EMPTY(&k->reads))
        give_up(l, k);
}

/* What its span says: 0 and its answer, where the endpoint, or the region, is; -EAGAIN: it was
 * being written. */
static int look_into(struct lane *l, struct lookup *k, const struct lookup_read *r)
{
    struct schema_endpoint_record record;
    const struct lane_metaserver *m = &l->metaserver[r->metaserver];
    const void *span = lane_scratch_at(l, r->scratch);
    k->read_ns = r->read_ns;
    if (k->name != NULL)
        return lane_name_look_into(l, m, k->name, span, &k->answer.name);
    const int status = schema_endpoint_find(&m->table, span, k->key, l->config.pool, &record);
    return status == 0          ? learn_record(l, k, &record, &k->answer.slot, &k->answer.gen)
           : status == -EUNATCH ? compare_awaited(l, k, &record)
                                : status;
}

/* That one awaits it is forgotten when it says something else itself, and not in the next round: it
 * may have died since, and the others may not know the node. By its number: it is the same one when
 * it was started again, and has another table. */
static void note_answer(const struct lane *l, struct lookup *k, uint8_t metaserver, int status)
{
    if (metaserver == NO_METASERVER) /* it has said nothing */
        return;
    const uint16_t one = (uint16_t)(1u << l->metaserver[metaserver].number);
    k->absent |= status == -ENOENT;
    k->behind |= status == -ESTALE;
    if (status == -EUNATCH)
        k->awaited_by |= one;
    else if (status == -ENOENT || status == -ESTALE)
        k->awaited_by &= (uint16_t)~one;
}

void lane_lookup_heard(struct lane *l, uint32_t metaserver, enum ibv_wc_status answer)
{
    if (answer == IBV_WC_SUCCESS)
        l->silence[metaserver] = (struct silence){.heard_ns = l->now_ns};
    else if (answer != IBV_WC_WR_FLUSH_ERR) /* which another's failure brings too */
        note_silence(l, metaserver);
}

void lane_lookup_done(struct lane *l, uint32_t number, enum ibv_wc_status answer)
{
    struct lookup_read *r = &l->lookups.all_reads[number];
    struct lookup *k = r->lookup;
    int status = -EHOSTUNREACH;
    if (r->metaserver != NO_METASERVER)
        lane_lookup_heard(l, r->metaserver, answer);
    if (k == NULL) {
        release_read(l, r);
        return;
    }
    if (answer == IBV_WC_SUCCESS && r->metaserver != NO_METASERVER) {
        status = look_into(l, k, r);
        k->crowded |= status == -EBUSY || status == -EINPROGRESS;
        if (status == -EAGAIN && ++r->tries < TRIES && post_read(l, k, r))
            return;
        if (status == -EINPROGRESS && post_read(l, k, r))
            return;
    }
    LIST_REMOVE(r, one);
    release_read(l, r);
    if (answer == IBV_WC_WR_FLUSH_ERR && r->metaserver < k->next) /* another's failure: once more */
        k->next = r->metaserver;
    if (status == -EBUSY || status == -EINPROGRESS) { /* it is asked again in a moment */
        k->next = r->metaserver;
        k->hedge_ns = l->now_ns + AGAIN_NS;
        return;
    }
    note_answer(l, k, r->metaserver, status);
    if (status == -EHOSTUNREACH || status == -EAGAIN || status == -ENOENT || status == -ESTALE ||
        status == -EUNATCH)
        ask_next(l, k);
    else
        conclude_lookup(l, k, status);
}

/* One that was not posted: the first lane has no room for it, or its queue pair broke. */
static void take_back(struct lane *l, struct lookup_read *r, int status)
{
    struct lookup *k = r->lookup;
    if (k != NULL)
        LIST_REMOVE(r, one);
    release_read(l, r);
    if (k == NULL)
        return;
    if (status == -EAGAIN) {
        k->next = r->metaserver < k->next ? r->metaserver : k->next;
        k->hedge_ns = l->now_ns + AGAIN_NS;
    } else {
        ask_next(l, k);
    }
}

void lane_lookup_relayed(struct lane *l, uint32_t number, int status)
{
    lane_relay_answered(l, l->lookups.all_reads[number].scratch);
    if (status < 0)
        take_back(l, &l->lookups.all_reads[number], status);
    else
        lane_lookup_done(l, number, (enum ibv_wc_status)status);
    l->changed |= l->wanting;
}

/* Records that were READ of the one are records of the other. */
static bool is_same_table(const struct lane_metaserver *a, const struct lane_metaserver *b)
{
    return a->number == b->number && a->table.seed == b->table.seed &&
           a->table.generation == b->table.generation && a->table.log2_slots == b->table.log2_slots;
}

/* Where the one that was at `place` is in the list now. */
static uint8_t place_now(const struct lane *l, const struct lane_metaserver *before, uint8_t place)
{
    for (uint32_t i = 0; place != NO_METASERVER && i < l->metaservers; i++)
        if (is_same_table(&l->metaserver[i], &before[place]))
            return (uint8_t)i;
    return NO_METASERVER;
}

/* Of one that is reached in another way now nothing is known yet. */
static void move_silences(struct lane *l, const struct lane_metaserver *before)
{
    struct silence now[LANE_MAX_METASERVERS] = {{0}};
    for (uint32_t i = 0; i < LANE_MAX_METASERVERS; i++) {
        const uint8_t at =
            before[i].table.log2_slots != 0 ? place_now(l, before, (uint8_t)i) : NO_METASERVER;
        if (at != NO_METASERVER && before[i].ah == l->metaserver[at].ah &&
            before[i].qp == l->metaserver[at].qp)
            now[at] = l->silence[i];
    }
    memcpy(l->silence, now, sizeof now);
}

void lane_lookups_set_metaservers(struct lane *l, const struct lane_metaserver *before)
{
    struct lookup *k;
    move_silences(l, before);
    for (uint32_t i = 0; i < l->lookups.reads; i++)
        l->lookups.all_reads[i].metaserver =
            place_now(l, before, l->lookups.all_reads[i].metaserver);
    LIST_FOREACH(k, &l->lookups.used, in_use)
        k->next = 0; /* whoever is there now can be asked */
}

int lane_lookup_start(struct lane *l, struct session *s, const uint8_t key[16],
                      const struct lookup_name *name, uint32_t tenant)
{
    if (!lane_lookup_has_whom_to_ask(l))
        return -EHOSTUNREACH;
    struct lookup *k = lane_lookup_find(l, key, name != NULL);
    if (k == NULL) {
        k = lane_lookup_begin(l, key, name, tenant);
        if (k == NULL)
            return -EAGAIN;
        k->deadline_ns = begin_of(l) + l->config.lookup_timeout_ns;
        k->patience_ns = begin_of(l) + l->config.lookup_awaited_ns;
        if (!ask_one(l, k)) {
            lane_lookup_end(l, k);
            return -EHOSTUNREACH;
        }
    }
    if (s != NULL)
        lane_lookup_wait(l, k, s);
    return -EINPROGRESS;
}

int lane_peer_connect(struct lane *l, struct session *s, const uint8_t gid[16], uint32_t *slot,
                      uint32_t *gen)
{
    if (schema_peers_find(l->res.peers, gid, l->config.pool, slot, gen) == 0) {
        if (l->peers[*slot].expires_ns > l->now_ns || !lane_lookup_has_whom_to_ask(l))
            return 0;
    }
    return lane_lookup_start(l, s, gid, NULL, s != NULL ? s->tenant_slot + 1 : 0);
}

bool lane_peer_refresh(struct lane *l, uint32_t slot, uint32_t tenant)
{
    struct peer *p = &l->peers[slot];
    if (!p->refreshing) {
        int status = lane_lookup_start(l, NULL, lane_peer_shared(l, slot)->gid, NULL, tenant);
        if (status == -EHOSTUNREACH) /* with no metaserver, what is known goes on */
            go_on_with(l, p);
        p->refreshing = status == -EINPROGRESS;
    }
    return p->expires_ns > l->now_ns;
}

/* Its metaservers have had the time in which the device repeats a READ. */
static void end_lookup(struct lane *l, struct lookup *k)
{
    const struct lookup_read *r;
    LIST_FOREACH(r, &k->reads, one)
        if (r->metaserver != NO_METASERVER && !k->crowded) /* else that READ has only been posted */
            note_silence(l, r->metaserver);
    give_up(l, k);
}

void lane_lookups_due(struct lane *l)
{
    for (struct lookup *k = LIST_FIRST(&l->lookups.used), *next; k != NULL; k = next) {
        next = LIST_NEXT(k, in_use);
        if (l->now_ns >= k->deadline_ns) {
            end_lookup(l, k);
        } else if (l->now_ns >= k->hedge_ns) {
            k->hedge_ns = l->now_ns + l->config.lookup_hedge_ns;
            ask_next(l, k);
        }
    }
}

uint64_t lane_lookups_next(const struct lane *l)
{
    const struct lookup *k;
    uint64_t due = LANE_NEVER;
    LIST_FOREACH(k, &l->lookups.used, in_use) {
        const uint64_t next =
            k->hedge_ns < k->deadline_ns && k->next < l->metaservers ? k->hedge_ns : k->deadline_ns;
        due = next < due ? next : due;
    }
    return due;
}
