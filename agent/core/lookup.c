/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups: an endpoint that is unknown, or whose record is old, is looked up with one READ of a
 * metaserver's table (KRCore Algorithm 1); of a second one's beside it when the first is silent. */
#include "lookup.h"

#include <errno.h>
#include <string.h>

#include "internal.h"
#include "schema/peers.h"

enum {
    READS = 2 * LANE_LOOKUPS,
    TRIES = 3,
    SILENCES = 6, /* doublings */
};
static const uint64_t SILENCE_NS = 50000000; /* a silent metaserver is asked again, then later */

static struct lookup *find_lookup(struct kedge_lane *l, const uint8_t gid[16])
{
    struct lookup *unused = NULL;
    for (int i = 0; i < LANE_LOOKUPS; i++) {
        struct lookup *k = &l->lookups[i];
        if (k->used && memcmp(k->gid, gid, 16) == 0)
            return k;
        if (!k->used && unused == NULL)
            unused = k;
    }
    return unused;
}

/* It did not answer for as long as the device repeats a READ: not for want of one packet. */
static void silence(struct kedge_lane *l, uint32_t metaserver)
{
    struct silence *s = &l->silence[metaserver];
    if (l->now_ns < s->until_ns) /* heard of already */
        return;
    s->last_ns = s->last_ns == 0                       ? SILENCE_NS
                 : s->last_ns < SILENCE_NS << SILENCES ? 2 * s->last_ns
                                                       : s->last_ns;
    s->until_ns = l->now_ns + s->last_ns;
}

bool lookup_may_ask(const struct kedge_lane *l, uint32_t metaserver)
{
    return l->now_ns >= l->silence[metaserver].until_ns;
}

bool lookup_has_whom_to_ask(const struct kedge_lane *l)
{
    for (uint32_t i = 0; i < l->metaservers; i++)
        if (lookup_may_ask(l, i))
            return true;
    return false;
}

bool lookup_is_under_way(const struct kedge_lane *l, const uint8_t gid[16])
{
    for (int i = 0; i < LANE_LOOKUPS; i++)
        if (l->lookups[i].used && memcmp(l->lookups[i].gid, gid, 16) == 0)
            return true;
    return false;
}

static bool post_read(struct kedge_lane *l, struct lookup *k, struct lookup_read *r)
{
    const struct kedge_lane_metaserver *m = &l->metaserver[r->metaserver];
    struct phys *p = l->config.rc ? l->metaserver_phys[r->metaserver] : &l->phys[l->system_phys];
    struct wr *w = wire_has_room(p) ? wire_own_wr(l) : NULL;
    if (w == NULL)
        return false;
    w->kind = WR_ENDPOINT_READ;
    w->flow = NULL;
    w->index = (uint32_t)(r - l->lookup_reads);
    w->signaled = 1;
    w->sge[0] = (struct ibv_sge){.addr = (uintptr_t)l->res.scratch.addr +
                                         (uint64_t)r->scratch * KEDGE_TABLE_WINDOW_BYTES,
                                 .length = KEDGE_TABLE_WINDOW_BYTES,
                                 .lkey = l->res.scratch_system_lkey};
    uint32_t home = kedge_endpoint_home(&m->table, k->gid, l->config.pool);
    w->fab =
        (struct kedge_fab_wr){.sg_list = w->sge,
                              .num_sge = 1,
                              .opcode = IBV_WR_RDMA_READ,
                              .key.rkey = m->table.rkey,
                              .remote_addr = m->table.addr + (uint64_t)home * KEDGE_RECORD_BYTES,
                              .ah = m->ah,
                              .dest_qpn = m->dctn,
                              .dc_key = m->dc_key};
    wire_chain(l, p, w);
    r->read_ns = l->now_ns;
    COUNT(l, endpoint_reads, 1);
    return true;
}

static void release_read(struct kedge_lane *l, struct lookup_read *r)
{
    scratch_give(l, r->scratch);
    r->used = 0;
}

static bool begin_read(struct kedge_lane *l, struct lookup *k, uint32_t metaserver)
{
    struct lookup_read *r = l->lookup_reads, *end = r + READS;
    while (r < end && r->used)
        r++;
    const int64_t scratch = r < end ? scratch_take(l) : -1;
    if (scratch < 0)
        return false;
    *r = (struct lookup_read){.used = 1,
                              .metaserver = (uint8_t)metaserver,
                              .lookup = (uint8_t)(k - l->lookups),
                              .scratch = (uint32_t)scratch,
                              .number = k->number};
    if (!post_read(l, k, r)) {
        release_read(l, r);
        return false;
    }
    k->out++;
    k->hedge_ns = l->now_ns + l->config.lookup_hedge_ns;
    return true;
}

/* The next metaserver that can be asked. */
static bool ask_one(struct kedge_lane *l, struct lookup *k)
{
    while (k->next < l->metaservers) {
        const uint32_t metaserver = k->next++;
        if (lookup_may_ask(l, metaserver) && begin_read(l, k, metaserver))
            return true;
    }
    return false;
}

/* In the last third whoever uses it has it READ again. */
static void good_for(struct peer *p, uint64_t since_ns, uint64_t ns)
{
    p->expires_ns = since_ns + ns;
    p->renew_us = (uint32_t)(ns / 3000);
}

/* What is known goes on for a while; not for long if the endpoint is silent. */
static void go_on_with(struct kedge_lane *l, struct peer *p)
{
    bool answers = p->flow == NULL || p->flow->proven;
    good_for(p, l->now_ns, answers ? l->config.node_lease_ns / 4 : SILENCE_NS);
}

/* A metaserver does not know the endpoint, but that answers: it has restarted, and will be told. */
static bool is_known_better(struct kedge_lane *l, const struct lookup *k, uint32_t *slot,
                            uint32_t *gen)
{
    if (kedge_peers_find(l->res.peers, k->gid, l->config.pool, slot, gen) != 0)
        return false;
    struct peer *p = &l->peers[*slot];
    if (p->flow == NULL || !p->flow->proven)
        return false;
    go_on_with(l, p);
    return true;
}

/* Tells everybody who waits. A READ of it that comes back later is nobody's. */
static void conclude(struct kedge_lane *l, struct lookup *k, int status, uint32_t slot,
                     uint32_t gen)
{
    uint32_t known_slot, known_gen;
    if (status == -ENOENT && is_known_better(l, k, &slot, &gen))
        status = 0;
    if (status == -ESTALE &&
        (status = kedge_peers_find(l->res.peers, k->gid, l->config.pool, &slot, &gen)) == 0)
        go_on_with(l, &l->peers[slot]);
    for (struct session *s = k->waiting, *next; s != NULL; s = next) {
        next = s->next_waiting;
        s->next_waiting = NULL;
        session_reply(l, s, status, status == -EHOSTUNREACH ? KEDGE_REASON_LOOKUP : 0, slot, gen,
                      NULL);
    }
    k->waiting = NULL;
    if (kedge_peers_find(l->res.peers, k->gid, l->config.pool, &known_slot, &known_gen) == 0) {
        struct peer *p = &l->peers[known_slot];
        p->refreshing = 0;
        flows_news(l, known_slot); /* also of the life before, whose VQPs follow or fail */
        if (status == -ENOENT) {   /* it has left */
            kedge_peers_remove(l->res.peers, known_slot);
            p->used = 0;
            COUNT(l, peers, -1);
        } else if (status != 0) { /* nobody to ask: what is known goes on */
            go_on_with(l, p);
        }
    }
    if (status == -EHOSTUNREACH)
        COUNT(l, lookups_failed, 1);
    k->used = 0;
    l->changed |= l->wanting;
}

/* Room for one more: a peer goes with which nobody has anything to do. */
static bool evict_peer(struct kedge_lane *l)
{
    for (uint32_t i = 0; i < l->config.max_peers; i++) {
        uint32_t slot = l->peer_hand;
        l->peer_hand = slot + 1 == l->config.max_peers ? 0 : slot + 1;
        struct peer *p = &l->peers[slot];
        if (!p->used || p->refreshing || !flows_leave(l, slot))
            continue;
        kedge_peers_remove(l->res.peers, slot);
        l->peers[slot] = (struct peer){0};
        l->peer_hand = slot;
        COUNT(l, peers, -1);
        return true;
    }
    return false;
}

/* 0 and its place; -ESTALE: an earlier life than we know, this metaserver is behind; -ENOENT;
 * -EOPNOTSUPP; -ENOSPC. */
static int learn(struct kedge_lane *l, const struct lookup *k,
                 const struct kedge_endpoint_record *r, uint32_t *slot, uint32_t *gen)
{
    uint32_t log2_slots = r->udqpn_slots >> 24;
    if (log2_slots > 30) /* not a table; do not compute with it */
        return -ENOENT;
    if (!(r->flags & (l->config.rc ? KEDGE_RECORD_RC : KEDGE_RECORD_DC)))
        return -EOPNOTSUPP; /* it is reached in another way than this node can */
    int64_t at = kedge_peers_put(l->res.peers, l->peer_hand, r->gid, r->pool, r->incarnation);
    if (at == -ENOSPC && evict_peer(l))
        at = kedge_peers_put(l->res.peers, l->peer_hand, r->gid, r->pool, r->incarnation);
    if (at < 0)
        return -ENOSPC;
    const struct kedge_peer *shared = peer_shared(l, (uint32_t)at);
    struct peer *p = &l->peers[at];
    *slot = (uint32_t)at;
    *gen = shared->gen;
    l->peer_hand = *slot + 1 == l->config.max_peers ? 0 : *slot + 1;
    if (r->incarnation != shared->incarnation)
        return -ESTALE;
    if (!p->used)
        COUNT(l, peers, 1);
    *p = (struct peer){.used = 1,
                       .flow = p->used ? p->flow : NULL,
                       .first_gen = p->used ? p->first_gen : shared->gen,
                       .dc_key = r->dc_key,
                       .dctn = r->dctn_mtu & 0xffffff,
                       .mtu = (uint8_t)(r->dctn_mtu >> 24),
                       .ud_qpn = r->udqpn_slots & 0xffffff,
                       .ud_qkey = r->ud_qkey,
                       .lid = r->lid,
                       .mr_addr = (uint64_t)r->mr_table_addr_hi << 32 | r->mr_table_addr_lo,
                       .mr_rkey = r->mr_table_rkey,
                       .mr_log2 = (uint8_t)(r->udqpn_slots >> 24)};
    good_for(p, k->read_ns, l->config.node_lease_ns);
    return 0;
}

/* Nobody is left to ask: what those said that answered. */
static void give_up(struct kedge_lane *l, struct lookup *k)
{
    conclude(l, k, k->behind ? -ESTALE : k->absent ? -ENOENT : -EHOSTUNREACH, 0, 0);
}

/* A metaserver gave nothing, or less than another one may know: the next one, or the end. */
static void ask_next(struct kedge_lane *l, struct lookup *k)
{
    if (!ask_one(l, k) && k->out == 0)
        give_up(l, k);
}

/* What its window says: 0 and where the endpoint is; -EAGAIN: it was being written. */
static int look_into(struct kedge_lane *l, struct lookup *k, const struct lookup_read *r,
                     uint32_t *slot, uint32_t *gen)
{
    struct kedge_endpoint_record record;
    const void *window =
        (const uint8_t *)l->res.scratch.addr + (uint64_t)r->scratch * KEDGE_TABLE_WINDOW_BYTES;
    int status = kedge_endpoint_find(&l->metaserver[r->metaserver].table, window, k->gid,
                                     l->config.pool, &record);
    k->read_ns = r->read_ns;
    return status == 0 ? learn(l, k, &record, slot, gen) : status;
}

void lookup_heard(struct kedge_lane *l, uint32_t metaserver, enum ibv_wc_status answer)
{
    if (answer == IBV_WC_SUCCESS)
        l->silence[metaserver] = (struct silence){.heard_ns = l->now_ns};
    else if (answer != IBV_WC_WR_FLUSH_ERR) /* which another's failure brings too */
        silence(l, metaserver);
}

void lookup_done(struct kedge_lane *l, struct wr *w, enum ibv_wc_status answer)
{
    struct lookup_read *r = &l->lookup_reads[w->index];
    struct lookup *k = &l->lookups[r->lookup];
    uint32_t slot = 0, gen = 0;
    int status = -EHOSTUNREACH;
    lookup_heard(l, r->metaserver, answer);
    if (!k->used || k->number != r->number) {
        release_read(l, r);
        return;
    }
    if (answer == IBV_WC_SUCCESS && r->metaserver < l->metaservers) {
        status = look_into(l, k, r, &slot, &gen);
        if (status == -EAGAIN && ++r->tries < TRIES && post_read(l, k, r))
            return;
    }
    release_read(l, r);
    k->out--;
    k->absent |= status == -ENOENT;
    k->behind |= status == -ESTALE;
    if (status == -EHOSTUNREACH || status == -EAGAIN || status == -ENOENT || status == -ESTALE)
        ask_next(l, k);
    else
        conclude(l, k, status, slot, gen);
}

static int start_lookup(struct kedge_lane *l, struct session *s, const uint8_t gid[16])
{
    if (!lookup_has_whom_to_ask(l))
        return -EHOSTUNREACH;
    struct lookup *k = find_lookup(l, gid);
    if (k == NULL || l->scratch_count == 0)
        return -EAGAIN;
    if (!k->used) {
        *k = (struct lookup){.used = 1,
                             .number = ++l->lookup_number,
                             .deadline_ns = l->now_ns + l->config.lookup_timeout_ns};
        memcpy(k->gid, gid, 16);
        if (!ask_one(l, k)) {
            k->used = 0;
            return -EHOSTUNREACH;
        }
    }
    if (s != NULL) {
        s->next_waiting = k->waiting;
        k->waiting = s;
    }
    return -EINPROGRESS;
}

int peer_connect(struct kedge_lane *l, struct session *s, const uint8_t gid[16], uint32_t *slot,
                 uint32_t *gen)
{
    if (kedge_peers_find(l->res.peers, gid, l->config.pool, slot, gen) == 0) {
        if (l->peers[*slot].expires_ns > l->now_ns || !lookup_has_whom_to_ask(l))
            return 0;
    }
    return start_lookup(l, s, gid);
}

bool peer_is_same(struct kedge_lane *l, uint32_t slot, uint32_t gen)
{
    const uint32_t now = peer_shared(l, slot)->gen;
    return now - gen <= now - l->peers[slot].first_gen;
}

bool peer_is_fresh(struct kedge_lane *l, uint32_t slot)
{
    struct peer *p = &l->peers[slot];
    /* Not subtracted: the host may not have run for so long. */
    if (p->expires_ns > l->now_ns + p->renew_us * 1000ull)
        return true;
    if (!p->refreshing) {
        int status = start_lookup(l, NULL, peer_shared(l, slot)->gid);
        if (status == -EHOSTUNREACH) /* with no metaserver, what is known goes on */
            go_on_with(l, p);
        p->refreshing = status == -EINPROGRESS;
    }
    return p->expires_ns > l->now_ns;
}

/* Its metaservers have had the time in which the device repeats a READ. */
static void end_lookup(struct kedge_lane *l, struct lookup *k)
{
    for (int i = 0; i < READS; i++)
        if (l->lookup_reads[i].used && l->lookup_reads[i].number == k->number)
            silence(l, l->lookup_reads[i].metaserver);
    give_up(l, k);
}

void lookups_due(struct kedge_lane *l)
{
    for (int i = 0; i < LANE_LOOKUPS; i++) {
        struct lookup *k = &l->lookups[i];
        if (!k->used)
            continue;
        if (l->now_ns >= k->deadline_ns) {
            end_lookup(l, k);
        } else if (l->now_ns >= k->hedge_ns) {
            k->hedge_ns = l->now_ns + l->config.lookup_hedge_ns;
            (void)ask_one(l, k);
        }
    }
}

uint64_t lookups_next(const struct kedge_lane *l)
{
    uint64_t due = LANE_NEVER;
    for (int i = 0; i < LANE_LOOKUPS; i++) {
        const struct lookup *k = &l->lookups[i];
        const uint64_t next =
            k->hedge_ns < k->deadline_ns && k->next < l->metaservers ? k->hedge_ns : k->deadline_ns;
        if (k->used && next < due)
            due = next;
    }
    return due;
}

void lookups_forget(struct kedge_lane *l, const struct session *s)
{
    for (int i = 0; i < LANE_LOOKUPS; i++)
        for (struct session **at = &l->lookups[i].waiting; *at != NULL; at = &(*at)->next_waiting)
            if (*at == s) {
                *at = s->next_waiting;
                break;
            }
}
