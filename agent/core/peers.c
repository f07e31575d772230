/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints: what the lane knows of them, looking unknown ones up with one READ of a metaserver's
 * table (KRCore Algorithm 1, its DCCache), and the ways to those in use. */
#include <errno.h>
#include <string.h>

#include "internal.h"
#include "schema/peers.h"

enum {
    LOOKUPS = 64,
    TRIES = 3,
    LOOKUPS_DOUBTED = 10, /* as long as so many lookups may take, a doubt lasts */
};
static const uint64_t DEAD_NS = 100000000; /* until a path is asked for again */

struct kedge_peer *peer_shared(struct kedge_lane *l, uint32_t slot)
{
    const struct kedge_peers_header *h = l->res.peers;
    return (struct kedge_peer *)((uint8_t *)l->res.peers + h->peers_offset) + slot;
}

/* ---- connections, with rc
 * ------------------------------------------------------------------------------------------- */

void flow_lost_link(struct kedge_lane *l, struct flow *f)
{
    f->link = NULL;
    l->draining -= f->draining;
    f->draining = 0;
    l->links--;
    COUNT(l, links, -1);
    l->changed = 1;
}

void flow_drop_link(struct kedge_lane *l, struct flow *f)
{
    struct phys *p = f->link;
    lane_event(l, &(struct kedge_lane_event){.kind = KEDGE_EVENT_DROP_PATH, .path.qp = p->qp});
    wire_close(l, p);
    flow_lost_link(l, f);
}

/* ---- paths
 * ------------------------------------------------------------------------------------------- */

/* All connections are in use: the one that was used longest ago goes, at once when nothing is out
 * on it; else when all that is has come back. False: not yet. */
static bool evict_link(struct kedge_lane *l)
{
    struct flow *idle = NULL, *busy = NULL;
    if (l->draining > 0)
        return false;
    for (uint32_t i = 0; i < l->phys_room; i++) {
        struct flow *f = l->phys[i].flow;
        if (f == NULL)
            continue;
        struct flow **best = f->outstanding == 0 ? &idle : &busy;
        if (f->news) /* its own have waited for it, and come first */
            l->changed = 1;
        else if (*best == NULL || f->used_ns < (*best)->used_ns)
            *best = f;
    }
    if (idle != NULL) {
        flow_drop_link(l, idle);
    } else if (busy != NULL) {
        busy->draining = 1;
        l->draining++;
    }
    COUNT(l, links_evicted, idle != NULL || busy != NULL);
    return idle != NULL;
}

static void ask_for_path(struct kedge_lane *l, struct flow *f)
{
    const struct peer *p = &l->peers[f->peer_slot];
    const struct kedge_peer *shared = peer_shared(l, f->peer_slot);
    struct kedge_lane_event event = {.kind = KEDGE_EVENT_WANT_PATH,
                                     .want_path = {.flow = (uint32_t)(f - l->flows),
                                                   .incarnation = shared->incarnation,
                                                   .ud_qpn = p->ud_qpn,
                                                   .ud_qkey = p->ud_qkey,
                                                   .mtu = (enum ibv_mtu)p->mtu,
                                                   .lid = p->lid}};
    memcpy(event.want_path.gid, shared->gid, 16);
    f->want_path = 1;
    l->paths_asked++;
    lane_event(l, &event);
}

/* Its record was looked up, and it is the same life still: dead, for those who waited for that. A
 * doubt that nobody waited about is forgotten. */
static bool is_confirmed(struct kedge_lane *l, struct flow *f)
{
    f->doubted = 0;
    if (l->now_ns - f->doubted_ns > LOOKUPS_DOUBTED * l->config.lookup_timeout_ns)
        return false;
    f->dead_until_ns = l->now_ns + f->dead_ns;
    flow_news(l, f);
    return true;
}

bool flow_has_path(struct kedge_lane *l, struct flow *f)
{
    if (f->doubted && is_confirmed(l, f))
        return false;
    if (f->ah != NULL || (f->link != NULL && !f->draining))
        return true;
    if (f->want_path || f->link != NULL || l->paths_asked == LANE_PATHS)
        return false;
    if (l->config.rc) {
        if (l->links == l->config.max_links && !evict_link(l))
            return false;
        l->links++;
    }
    ask_for_path(l, f);
    return false;
}

void flow_take_path(struct kedge_lane *l, struct flow *f, const struct kedge_command *c)
{
    const struct kedge_lane_path *path = &c->path.path;
    f->want_path = 0;
    l->paths_asked--;
    l->changed |= l->wanting;
    f->used_ns = l->now_ns;
    flow_news(l, f);
    if (path->ah == NULL && path->qp == NULL) {
        l->links -= l->config.rc;
        flow_doubt(l, f, DEAD_NS);
        COUNT(l, paths_failed, 1);
        return;
    }
    f->ah = path->ah;
    f->link = path->qp != NULL ? wire_open(l, path->qp, f) : NULL;
    COUNT(l, links, f->link != NULL);
}

/* ---- signs of life
 * --------------------------------------------------------------------------------------- */

/* The least loaded of the ordinary DCIs, beginning with the one it had: a change of target costs a
 * reconnection. Some of them are for endpoints that have not shown that they are alive: a worker
 * that posts to one dead endpoint after the other keeps these busy with retries, and only these. */
static void choose_dci(struct kedge_lane *l, struct flow *f)
{
    uint32_t ordinary = l->res.dcis > 1 ? l->res.dcis - 1 : 1, unproven = ordinary / 2;
    uint32_t from = f->proven ? 0 : ordinary - unproven,
             to = f->proven ? ordinary - unproven : ordinary;
    if (unproven == 0) {
        from = 0;
        to = ordinary;
    }
    uint32_t best = f->dci >= from && f->dci < to ? f->dci : from;
    for (uint32_t i = from; i < to; i++) {
        const struct phys *p = &l->phys[l->dci[i]], *q = &l->phys[l->dci[best]];
        if ((q->broken && !p->broken) || (!p->broken && p->tail - p->head < q->tail - q->head))
            best = i;
    }
    f->dci = f->suspect ? l->res.dcis - 1 : best;
}

void flow_posted(struct kedge_lane *l, struct flow *f)
{
    f->used_ns = l->now_ns;
    if (f->outstanding++ == 0)
        f->since_ns = l->now_ns;
}

/* It may have restarted: asked for before it is used again, and not when its record would lapse. */
static void look_up_again(struct kedge_lane *l, const struct flow *f)
{
    struct peer *p = &l->peers[f->peer_slot];
    if (p->flow == f && p->expires_ns > l->now_ns)
        p->expires_ns = l->now_ns;
}

void flow_doubt(struct kedge_lane *l, struct flow *f, uint64_t dead_ns)
{
    f->doubted = 1;
    f->doubted_ns = l->now_ns;
    f->dead_ns = dead_ns;
    look_up_again(l, f);
}

void flow_completed(struct kedge_lane *l, struct flow *f, enum sign sign)
{
    f->outstanding--;
    if (f->draining && f->outstanding == 0)
        flow_drop_link(l, f);
    if (sign == SIGN_SILENCE) {
        f->proven = 0;
        look_up_again(l, f);
    }
    if (sign != SIGN_LIFE) {
        if (f->outstanding == 0) /* it is not stuck any more */
            flow_news(l, f);
        return;
    }
    f->proven = 1;
    f->doubted = 0;
    f->since_ns = l->now_ns;
    if (f->suspect) {
        f->suspect = 0;
        flow_news(l, f);
        COUNT(l, suspects, -1);
    }
}

/* How long what is out takes at the port's rate. */
static uint64_t transfer_ns(const struct kedge_lane *l)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < l->phys_room; i++)
        bytes += l->phys[i].bytes;
    return l->config.port_rate == 0 ? 0 : bytes * 1000 / l->config.port_rate * 1000;
}

/* Whether nothing may be posted to it now: it is silent, and what is out already is enough to find
 * out when it speaks again. Picks the DCI where something may be. With rc its connection is its
 * own, and what waits there is in nobody's way. */
bool flow_is_stuck(struct kedge_lane *l, struct flow *f)
{
    if (l->config.rc)
        return false;
    if (!f->suspect && f->outstanding > 0 && l->now_ns >= l->trust_ns &&
        l->now_ns - f->since_ns > l->config.suspect_ns &&
        l->now_ns - f->since_ns > l->config.suspect_ns + transfer_ns(l)) {
        f->suspect = 1;
        COUNT(l, suspects, 1);
    }
    if (f->outstanding == 0)
        choose_dci(l, f);
    return f->suspect && f->outstanding > 0;
}

/* ---- lookups
 * ----------------------------------------------------------------------------------------- */

static struct lookup *find_lookup(struct kedge_lane *l, const uint8_t gid[16])
{
    struct lookup *unused = NULL;
    for (int i = 0; i < LOOKUPS; i++) {
        struct lookup *k = &l->lookups[i];
        if (k->used && !k->over && memcmp(k->gid, gid, 16) == 0)
            return k;
        if (!k->used && unused == NULL)
            unused = k;
    }
    return unused;
}

static bool post_read(struct kedge_lane *l, struct lookup *k)
{
    const struct kedge_lane_metaserver *m = &l->metaserver[k->metaserver];
    struct phys *p = l->config.rc ? l->metaserver_phys[k->metaserver] : &l->phys[l->system_phys];
    struct wr *w = wire_has_room(p) ? wire_own_wr(l) : NULL;
    if (w == NULL)
        return false;
    w->kind = WR_ENDPOINT_READ;
    w->flow = NULL;
    w->index = (uint32_t)(k - l->lookups);
    w->signaled = 1;
    w->sge[0] = (struct ibv_sge){.addr = (uintptr_t)l->res.scratch.addr +
                                         (uint64_t)k->scratch * KEDGE_TABLE_WINDOW_BYTES,
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
    k->in_flight = 1;
    k->read_ns = l->now_ns;
    COUNT(l, endpoint_reads, 1);
    return true;
}

/* From this metaserver on, the first that can be asked. */
static bool post_somewhere(struct kedge_lane *l, struct lookup *k)
{
    for (; k->metaserver < l->metaservers; k->metaserver++)
        if (post_read(l, k))
            return true;
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
    good_for(p, l->now_ns, answers ? l->config.node_lease_ns / 4 : l->config.lookup_timeout_ns);
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

/* Tells everybody who waits. The slot is free when its READ is back too. */
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
        if (p->flow != NULL) /* also of the life before, whose VQPs follow or fail */
            flow_news(l, p->flow);
        if (status == -ENOENT) { /* it has left */
            kedge_peers_remove(l->res.peers, known_slot);
            p->used = 0;
            COUNT(l, peers, -1);
        } else if (status != 0) { /* nobody to ask: what is known goes on */
            go_on_with(l, p);
        }
    }
    if (status == -EHOSTUNREACH)
        COUNT(l, lookups_failed, 1);
    if (!k->in_flight) {
        scratch_give(l, k->scratch);
        k->used = 0;
    }
    k->over = 1;
    l->changed |= l->wanting;
}

/* Room for one more: a peer goes with which nobody has anything to do. */
static bool evict_peer(struct kedge_lane *l)
{
    for (uint32_t i = 0; i < l->config.max_peers; i++) {
        uint32_t slot = l->peer_hand;
        l->peer_hand = slot + 1 == l->config.max_peers ? 0 : slot + 1;
        struct peer *p = &l->peers[slot];
        if (!p->used || p->refreshing || (p->flow != NULL && !flow_leave(l, p)))
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
    if (!k->absent && !k->behind)
        l->no_metaserver_until_ns = l->now_ns + l->config.lookup_timeout_ns;
    conclude(l, k, k->behind ? -ESTALE : k->absent ? -ENOENT : -EHOSTUNREACH, 0, 0);
}

/* The present metaserver gave nothing, or less than another one may know: the next one, or the end.
 */
static void ask_next(struct kedge_lane *l, struct lookup *k)
{
    k->tries = 0;
    k->metaserver++;
    if (l->now_ns >= k->deadline_ns || !post_somewhere(l, k))
        give_up(l, k);
}

void lookup_done(struct kedge_lane *l, struct wr *w, enum ibv_wc_status answer)
{
    struct lookup *k = &l->lookups[w->index];
    struct kedge_endpoint_record record;
    uint32_t slot = 0, gen = 0;
    k->in_flight = 0;
    if (k->over || k->metaserver >= l->metaservers) {
        if (!k->over)
            conclude(l, k, -EHOSTUNREACH, 0, 0);
        else
            scratch_give(l, k->scratch);
        k->used = 0;
        return;
    }
    if (answer != IBV_WC_SUCCESS) {
        ask_next(l, k);
        return;
    }
    const void *window =
        (const uint8_t *)l->res.scratch.addr + (uint64_t)k->scratch * KEDGE_TABLE_WINDOW_BYTES;
    int status = kedge_endpoint_find(&l->metaserver[k->metaserver].table, window, k->gid,
                                     l->config.pool, &record);
    if (status == -EAGAIN) {
        if (++k->tries >= TRIES || !post_read(l, k))
            ask_next(l, k);
        return;
    }
    if (status == 0)
        status = learn(l, k, &record, &slot, &gen);
    k->absent |= status == -ENOENT;
    k->behind |= status == -ESTALE;
    if (status == -ENOENT || status == -ESTALE)
        ask_next(l, k);
    else
        conclude(l, k, status, slot, gen);
}

static int start_lookup(struct kedge_lane *l, struct session *s, const uint8_t gid[16])
{
    if (l->metaservers == 0 || l->now_ns < l->no_metaserver_until_ns)
        return -EHOSTUNREACH;
    struct lookup *k = find_lookup(l, gid);
    if (k == NULL)
        return -EAGAIN;
    if (!k->used) {
        int64_t scratch = scratch_take(l);
        if (scratch < 0)
            return -EAGAIN;
        *k = (struct lookup){.used = 1,
                             .scratch = (uint32_t)scratch,
                             .deadline_ns = l->now_ns + l->config.lookup_timeout_ns};
        memcpy(k->gid, gid, 16);
        if (!post_somewhere(l, k)) {
            scratch_give(l, k->scratch);
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
        if (l->peers[*slot].expires_ns > l->now_ns || l->now_ns < l->no_metaserver_until_ns)
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

void lookups_due(struct kedge_lane *l)
{
    for (int i = 0; i < LOOKUPS; i++) {
        struct lookup *k = &l->lookups[i];
        if (!k->used || k->over || l->now_ns < k->deadline_ns)
            continue;
        give_up(l, k);
    }
}

void lookups_forget(struct kedge_lane *l, const struct session *s)
{
    for (int i = 0; i < LOOKUPS; i++)
        for (struct session **at = &l->lookups[i].waiting; *at != NULL; at = &(*at)->next_waiting)
            if (*at == s) {
                *at = s->next_waiting;
                break;
            }
}
