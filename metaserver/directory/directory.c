/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "directory_private.h"
#include "fingerprint.h"

/* Agents renew at a third of their lease: half of it without any is late. */
enum { LATE_PART = 2 };

struct key {
    const uint8_t *gid;
    uint16_t pool;
};

const char *meta_node_state_name(enum meta_node_state state)
{
    static const char *const names[] = {"free", "waiting", "live", "lapsed", "expired"};
    return names[state];
}

static int compare_id(const void *user, uint32_t item, const void *key)
{
    const struct node *nodes = user;
    return strcmp(nodes[item].id, key);
}

static int compare_key(const void *user, uint32_t item, const void *key)
{
    const struct endpoint *e = (const struct endpoint *)user + item;
    const struct key *k = key;
    int order = memcmp(e->gid, k->gid, sizeof e->gid);
    return order != 0 ? order : (int)e->pool - (int)k->pool;
}

struct meta_directory *meta_directory_new(const struct meta_directory_limits *limits, void *memory,
                                          uint64_t seed, uint64_t generation)
{
    struct meta_directory *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    BASE_ASSERT(limits->max_nodes >= 1 && limits->max_nodes <= 1u << 24);
    m->limits = *limits;
    m->nodes = calloc(limits->max_nodes, sizeof *m->nodes);
    m->endpoints = calloc(limits->max_endpoints, sizeof *m->endpoints);
    m->by_id.items = calloc(limits->max_nodes, sizeof *m->by_id.items);
    m->by_key.items = calloc(limits->max_endpoints, sizeof *m->by_key.items);
    m->reach = meta_reach_new(limits->max_nodes, limits->node_lease_ns / LATE_PART);
    if (m->reach == NULL || m->nodes == NULL || m->endpoints == NULL || m->by_id.items == NULL ||
        m->by_key.items == NULL) {
        meta_directory_free(m);
        return NULL;
    }
    m->by_id.compare = compare_id;
    m->by_id.user = m->nodes;
    m->by_key.compare = compare_key;
    m->by_key.user = m->endpoints;
    for (uint32_t i = 0; i < limits->max_nodes; i++)
        m->nodes[i].next = i + 1 < limits->max_nodes ? i + 1 : NONE;
    for (uint32_t i = 0; i < limits->max_endpoints; i++)
        m->endpoints[i].next = i + 1 < limits->max_endpoints ? i + 1 : NONE;
    for (int i = 0; i < LISTS; i++)
        m->lists[i].first = m->lists[i].last = NONE;
    schema_table_init(&m->table, SCHEMA_TABLE_ENDPOINTS, memory,
                      schema_table_log2_slots(limits->max_endpoints), seed, generation);
    return m;
}

void meta_directory_free(struct meta_directory *m)
{
    if (m == NULL)
        return;
    meta_reach_free(m->reach);
    free(m->nodes);
    free(m->endpoints);
    free(m->by_id.items);
    free(m->by_key.items);
    free(m);
}

const struct schema_table_desc *meta_directory_table(const struct meta_directory *m)
{
    return &m->table.desc;
}

struct meta_directory_counts meta_directory_count(const struct meta_directory *m)
{
    return (struct meta_directory_counts){
        .nodes = m->by_id.count,
        .waiting = m->in_state[META_NODE_WAITING],
        .live = m->in_state[META_NODE_LIVE],
        .expired = m->in_state[META_NODE_LAPSED] + m->in_state[META_NODE_EXPIRED],
        .endpoints = m->by_key.count,
        .published = m->table.live,
        .awaited = m->table.awaited,
        .max_endpoints = m->limits.max_endpoints,
    };
}

void meta_directory_share(struct meta_directory *m)
{
    m->shared = true;
}

/* ---- states and lists */

static int list_of(enum meta_node_state state)
{
    static const int lists[] = {-1, LEASED, LEASED, UNSAVED, SAVED};
    return lists[state];
}

static void unlink_node(struct meta_directory *m, struct node *n)
{
    int list = list_of(n->state);
    if (list < 0)
        return;
    *(n->prev == NONE ? &m->lists[list].first : &m->nodes[n->prev].next) = n->next;
    *(n->next == NONE ? &m->lists[list].last : &m->nodes[n->next].prev) = n->prev;
}

static void link_node(struct meta_directory *m, struct node *n)
{
    int list = list_of(n->state);
    uint32_t item = (uint32_t)(n - m->nodes);
    if (list < 0)
        return;
    n->prev = m->lists[list].last;
    n->next = NONE;
    *(n->prev == NONE ? &m->lists[list].first : &m->nodes[n->prev].next) = item;
    m->lists[list].last = item;
}

/* The only place that changes a node's state; also puts it at the end of its list, as of now. */
void meta_directory_move_node(struct meta_directory *m, struct node *n, enum meta_node_state to,
                              uint64_t now)
{
    static const bool allowed[][META_NODE_EXPIRED + 1] = {
        [META_NODE_FREE] = {[META_NODE_WAITING] = true, /* restored, or registered elsewhere */
                            [META_NODE_LIVE] = true,    /* registered */
                            [META_NODE_EXPIRED] = true /* restored as such */},
        [META_NODE_WAITING] = {[META_NODE_WAITING] = true, /* another life is elsewhere */
                               [META_NODE_LIVE] = true,    /* registered again */
                               [META_NODE_LAPSED] = true,  /* its agent never came */
                               [META_NODE_EXPIRED] = true, /* the store has it */
                               [META_NODE_FREE] = true /* removed */},
        [META_NODE_LIVE] = {[META_NODE_WAITING] = true, /* another life is elsewhere */
                            [META_NODE_LIVE] = true,    /* renewed, registered again */
                            [META_NODE_LAPSED] = true,  /* silent */
                            [META_NODE_EXPIRED] = true, /* the store has it */
                            [META_NODE_FREE] = true /* removed */},
        [META_NODE_LAPSED] = {[META_NODE_WAITING] = true, /* it is heard of elsewhere */
                              [META_NODE_LIVE] = true,    /* came back */
                              [META_NODE_EXPIRED] = true, /* the store has it */
                              [META_NODE_FREE] = true /* removed */},
        [META_NODE_EXPIRED] = {[META_NODE_WAITING] = true, /* came back elsewhere */
                               [META_NODE_LIVE] = true,    /* came back */
                               [META_NODE_EXPIRED] = true, /* another life did as well */
                               [META_NODE_FREE] = true /* forgotten, removed */},
    };
    BASE_ASSERT(allowed[n->state][to]);
    unlink_node(m, n);
    m->in_state[n->state] -= n->state != META_NODE_FREE;
    n->state = to;
    n->since = now;
    n->elsewhere &= to == META_NODE_LAPSED;
    m->in_state[to] += to != META_NODE_FREE;
    link_node(m, n);
    if (to == META_NODE_LIVE)
        meta_reach_seen(m->reach, (uint32_t)(n - m->nodes), now);
    if (to == META_NODE_WAITING)
        meta_directory_await_endpoints(m, n);
}

struct node *meta_directory_find_node(const struct meta_directory *m, const char *id)
{
    bool found;
    uint32_t at = meta_index_find(&m->by_id, id, &found);
    return found ? &m->nodes[m->by_id.items[at]] : NULL;
}

struct node *meta_directory_add_node(struct meta_directory *m, const char *id)
{
    bool found;
    uint32_t at = meta_index_find(&m->by_id, id, &found), item = m->free_node;
    BASE_ASSERT(!found && item != NONE);
    struct node *n = &m->nodes[item];
    m->free_node = n->next;
    *n = (struct node){.endpoints = NONE, .prev = NONE, .next = NONE};
    memcpy(n->id, id, strnlen(id, sizeof n->id - 1));
    meta_index_insert(&m->by_id, at, item);
    return n;
}

/* ---- endpoints */

struct endpoint *meta_directory_find_endpoint(const struct meta_directory *m, const uint8_t gid[16],
                                              uint16_t pool)
{
    bool found;
    uint32_t at = meta_index_find(&m->by_key, &(struct key){gid, pool}, &found);
    return found ? &m->endpoints[m->by_key.items[at]] : NULL;
}

struct endpoint *meta_directory_add_endpoint(struct meta_directory *m, struct node *n,
                                             const uint8_t gid[16], uint16_t pool)
{
    bool found;
    uint32_t at = meta_index_find(&m->by_key, &(struct key){gid, pool}, &found);
    uint32_t item = m->free_endpoint;
    BASE_ASSERT(!found && item != NONE);
    struct endpoint *e = &m->endpoints[item];
    m->free_endpoint = e->next;
    *e = (struct endpoint){
        .pool = pool, .node = (uint32_t)(n - m->nodes), .next = n->endpoints, .slot = -1};
    memcpy(e->gid, gid, sizeof e->gid);
    n->endpoints = item;
    meta_index_insert(&m->by_key, at, item);
    m->changes++;
    return e;
}

static struct schema_endpoint_record key_of(const struct endpoint *e)
{
    struct schema_endpoint_record record = {.pool = e->pool};
    memcpy(record.gid, e->gid, sizeof record.gid);
    return record;
}

/* Takes it out of the table, where nothing says any more that it is awaited either. */
static void withdraw_endpoint(struct meta_directory *m, struct endpoint *e)
{
    const struct schema_endpoint_record record = key_of(e);
    const int64_t slot = schema_table_remove(&m->table, &record);
    BASE_ASSERT(e->slot < 0 || slot == e->slot);
    e->slot = -1;
}

void meta_directory_await_endpoints(struct meta_directory *m, const struct node *n)
{
    for (uint32_t i = n->endpoints; i != NONE; i = m->endpoints[i].next) {
        struct schema_endpoint_record record = key_of(&m->endpoints[i]);
        record.incarnation = n->incarnation;
        if (m->endpoints[i].slot < 0)
            schema_table_await(&m->table, &record);
    }
}

void meta_directory_drop_endpoint(struct meta_directory *m, uint32_t *link)
{
    uint32_t item = *link;
    struct endpoint *e = &m->endpoints[item];
    withdraw_endpoint(m, e);
    bool found;
    uint32_t at = meta_index_find(&m->by_key, &(struct key){e->gid, e->pool}, &found);
    BASE_ASSERT(found);
    meta_index_remove(&m->by_key, at);
    *link = e->next;
    e->next = m->free_endpoint;
    m->free_endpoint = item;
    m->changes++;
}

void meta_directory_drop_endpoints(struct meta_directory *m, struct node *n)
{
    while (n->endpoints != NONE)
        meta_directory_drop_endpoint(m, &n->endpoints);
}

static const struct schema_endpoint_record *record_at(const struct meta_directory *m, int64_t slot)
{
    return (const struct schema_endpoint_record *)(m->table.slots +
                                                   (size_t)slot * SCHEMA_RECORD_BYTES);
}

/* ---- registering */

int meta_directory_restore(struct meta_directory *m, const struct meta_store_node *node,
                           uint64_t now)
{
    if (m->free_node == NONE || m->by_key.count + node->endpoint_count > m->limits.max_endpoints)
        return -ENOSPC;
    if (meta_directory_find_node(m, node->id) != NULL)
        return -EEXIST;
    for (uint32_t i = 0; i < node->endpoint_count; i++)
        if (meta_directory_find_endpoint(m, node->endpoint[i].gid, node->endpoint[i].pool) != NULL)
            return -EEXIST;
    struct node *n = meta_directory_add_node(m, node->id);
    n->incarnation = node->incarnation;
    n->fingerprint = node->fingerprint;
    for (uint32_t i = 0; i < node->endpoint_count; i++)
        meta_directory_add_endpoint(m, n, node->endpoint[i].gid, node->endpoint[i].pool);
    meta_directory_move_node(m, n, node->expired ? META_NODE_EXPIRED : META_NODE_WAITING, now);
    return 0;
}

void meta_directory_durable(const struct meta_registration *r, struct meta_store_node *out)
{
    *out = (struct meta_store_node){.incarnation = r->incarnation,
                                    .endpoint_count = r->endpoint_count};
    meta_fingerprint_of(r, &out->fingerprint);
    memcpy(out->id, r->id, sizeof out->id);
    for (uint32_t i = 0; i < r->endpoint_count; i++) {
        memcpy(out->endpoint[i].gid, r->endpoint[i].gid, sizeof out->endpoint[i].gid);
        out->endpoint[i].pool = r->endpoint[i].pool;
    }
}

/* Whether the endpoints that are not in the table yet find slots. */
static int check_room(const struct meta_directory *m, const struct meta_registration *r,
                      struct meta_verdict *verdict)
{
    uint32_t taken[META_STORE_NODE_ENDPOINTS], count = 0, added = 0;
    for (uint32_t i = 0; i < r->endpoint_count; i++) {
        const struct schema_endpoint_record *record = &r->endpoint[i];
        const struct endpoint *e = meta_directory_find_endpoint(m, record->gid, record->pool);
        added += e == NULL;
        verdict->endpoint = i;
        if (m->by_key.count + added > m->limits.max_endpoints)
            return -ENOSPC;
        if (e != NULL && e->slot >= 0)
            continue;
        const int64_t slot = schema_table_place(&m->table, record, taken, count);
        if (slot < 0)
            return -ENOSPC;
        taken[count++] = (uint32_t)slot;
    }
    return 0;
}

static struct meta_store_life life_of(const struct node *n)
{
    struct meta_store_life life = {.incarnation = n->incarnation};
    memcpy(life.id, n->id, sizeof life.id);
    return life;
}

int meta_directory_check(const struct meta_directory *m, const struct meta_registration *r,
                         struct meta_verdict *verdict)
{
    const struct node *n = meta_directory_find_node(m, r->id);
    struct meta_store_fingerprint fingerprint;
    meta_fingerprint_of(r, &fingerprint);
    *verdict = (struct meta_verdict){.created = n == NULL};
    BASE_ASSERT(r->endpoint_count >= 1 && r->endpoint_count <= META_STORE_NODE_ENDPOINTS);
    if (n != NULL) {
        verdict->known_incarnation = n->incarnation;
        if (r->incarnation < n->incarnation ||
            (r->incarnation == n->incarnation &&
             !meta_store_fingerprint_matches(&n->fingerprint, &fingerprint)))
            return -ESTALE;
    }
    for (uint32_t i = 0; i < r->endpoint_count; i++) {
        const struct endpoint *e =
            meta_directory_find_endpoint(m, r->endpoint[i].gid, r->endpoint[i].pool);
        if (e == NULL || &m->nodes[e->node] == n)
            continue;
        verdict->endpoint = i;
        memcpy(verdict->owner, m->nodes[e->node].id, sizeof verdict->owner);
        return -EEXIST;
    }
    int status = check_room(m, r, verdict);
    if (status != 0)
        return status;
    if (n == NULL && m->free_node == NONE) {
        verdict->endpoint = UINT32_MAX;
        if (m->lists[SAVED].first == NONE)
            return -ENOSPC;
        verdict->evict = life_of(&m->nodes[m->lists[SAVED].first]);
    }
    verdict->write = n == NULL || n->incarnation != r->incarnation ||
                     n->fingerprint.identity != fingerprint.identity ||
                     n->fingerprint.count != fingerprint.count || n->state == META_NODE_LAPSED ||
                     n->state == META_NODE_EXPIRED || n->voted;
    return 0;
}

static bool is_in(const struct meta_registration *r, const struct endpoint *e)
{
    for (uint32_t i = 0; i < r->endpoint_count; i++)
        if (e->pool == r->endpoint[i].pool &&
            memcmp(e->gid, r->endpoint[i].gid, sizeof e->gid) == 0)
            return true;
    return false;
}

void meta_directory_apply(struct meta_directory *m, const struct meta_registration *r, uint64_t now)
{
    struct node *n = meta_directory_find_node(m, r->id);
    if (n == NULL)
        n = meta_directory_add_node(m, r->id);
    if (n->incarnation != r->incarnation) {
        n->report = (struct meta_report){.revision = 0};
        meta_reach_drop(m->reach, (uint32_t)(n - m->nodes));
    }
    n->incarnation = r->incarnation;
    n->voted = false;
    meta_fingerprint_of(r, &n->fingerprint);
    for (uint32_t i = 0; i < r->endpoint_count; i++) {
        const struct schema_endpoint_record *record = &r->endpoint[i];
        struct endpoint *e = meta_directory_find_endpoint(m, record->gid, record->pool);
        if (e == NULL)
            e = meta_directory_add_endpoint(m, n, record->gid, record->pool);
        e->slot = schema_table_put(&m->table, record);
        BASE_ASSERT(e->slot >= 0);
    }
    for (uint32_t *link = &n->endpoints; *link != NONE;) {
        if (is_in(r, &m->endpoints[*link]))
            link = &m->endpoints[*link].next;
        else
            meta_directory_drop_endpoint(m, link);
    }
    meta_directory_move_node(m, n, META_NODE_LIVE, now);
}

int meta_directory_check_live(const struct node *n, uint32_t incarnation, uint32_t *known)
{
    if (n == NULL)
        return -ENOENT;
    *known = n->incarnation;
    if (incarnation < n->incarnation)
        return -ESTALE;
    return incarnation > n->incarnation || n->state != META_NODE_LIVE || n->voted ? -EUNATCH : 0;
}

int meta_directory_renew(struct meta_directory *m, const char *id, uint32_t incarnation,
                         uint64_t now, uint32_t *known)
{
    struct node *n = meta_directory_find_node(m, id);
    int status = meta_directory_check_live(n, incarnation, known);
    if (status == 0)
        meta_directory_move_node(m, n, META_NODE_LIVE, now);
    return status;
}

int meta_directory_remove(struct meta_directory *m, const char *id)
{
    struct node *n = meta_directory_find_node(m, id);
    bool found;
    if (n == NULL)
        return -ENOENT;
    meta_reach_drop(m->reach, (uint32_t)(n - m->nodes));
    meta_directory_drop_endpoints(m, n);
    uint32_t at = meta_index_find(&m->by_id, id, &found);
    meta_index_remove(&m->by_id, at);
    meta_directory_move_node(m, n, META_NODE_FREE, 0);
    n->next = m->free_node;
    m->free_node = (uint32_t)(n - m->nodes);
    return 0;
}

/* ---- time */

uint32_t meta_directory_lapse(struct meta_directory *m, uint64_t now,
                              void (*each)(void *user, const struct meta_lapse *lapse), void *user)
{
    uint32_t lapsed = 0;
    while (meta_directory_next_lapse(m) <= now) {
        struct node *n = &m->nodes[m->lists[LEASED].first];
        if (each != NULL)
            each(user,
                 &(struct meta_lapse){n->id, n->incarnation, n->state, n->since, n->elsewhere});
        meta_reach_drop(m->reach, (uint32_t)(n - m->nodes));
        for (uint32_t i = n->endpoints; m->shared && i != NONE; i = m->endpoints[i].next)
            withdraw_endpoint(m, &m->endpoints[i]);
        if (!m->shared)
            meta_directory_drop_endpoints(m, n);
        meta_directory_move_node(m, n, META_NODE_LAPSED, now);
        lapsed++;
    }
    meta_reach_expire(m->reach, now);
    return lapsed;
}

/* The node, if that life of it is in that state; or NULL. */
static struct node *find_life(const struct meta_directory *m, const struct meta_store_life *life,
                              enum meta_node_state state)
{
    struct node *n = meta_directory_find_node(m, life->id);
    return n != NULL && n->state == state && n->incarnation == life->incarnation ? n : NULL;
}

uint32_t meta_directory_lapsed(const struct meta_directory *m, struct meta_store_life *lives,
                               uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = m->lists[UNSAVED].first; i != NONE && count < n; i = m->nodes[i].next)
        lives[count++] = life_of(&m->nodes[i]);
    return count;
}

/* Of a shared store it is so whatever it has come to be here meanwhile. */
void meta_directory_expire(struct meta_directory *m, const struct meta_store_life *life,
                           uint64_t now)
{
    struct node *n = meta_directory_find_node(m, life->id);
    const bool is_it = n != NULL && n->incarnation == life->incarnation &&
                       (m->shared ? n->state != META_NODE_EXPIRED : n->state == META_NODE_LAPSED);
    if (!is_it)
        return;
    meta_directory_drop_endpoints(m, n);
    meta_directory_move_node(m, n, META_NODE_EXPIRED, now);
}

uint32_t meta_directory_forgettable(const struct meta_directory *m, uint64_t now,
                                    struct meta_store_life *lives, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = m->lists[SAVED].first; i != NONE && count < n; i = m->nodes[i].next) {
        if (now - m->nodes[i].since < m->limits.forget_ns)
            break;
        lives[count++] = life_of(&m->nodes[i]);
    }
    return count;
}

void meta_directory_forget(struct meta_directory *m, const struct meta_store_life *life)
{
    if (find_life(m, life, META_NODE_EXPIRED) != NULL)
        (void)meta_directory_remove(m, life->id);
}

uint64_t meta_directory_next_lapse(const struct meta_directory *m)
{
    uint32_t first = m->lists[LEASED].first;
    return first == NONE ? UINT64_MAX : m->nodes[first].since + m->limits.node_lease_ns;
}

uint64_t meta_directory_next_forgettable(const struct meta_directory *m)
{
    const uint32_t first = m->lists[SAVED].first;
    return first == NONE ? UINT64_MAX : m->nodes[first].since + m->limits.forget_ns;
}

uint64_t meta_directory_due(const struct meta_directory *m)
{
    const uint64_t lapse = meta_directory_next_lapse(m), expiry = meta_reach_next_expiry(m->reach);
    return lapse < expiry ? lapse : expiry;
}

uint64_t meta_directory_changes(const struct meta_directory *m)
{
    return m->changes;
}

/* ---- showing */

static void show_node(const struct meta_directory *m, const struct node *n, uint64_t now,
                      struct meta_node_view *out)
{
    *out = (struct meta_node_view){.incarnation = n->incarnation, .state = n->state};
    memcpy(out->id, n->id, sizeof out->id);
    uint64_t end = n->since + m->limits.node_lease_ns;
    if (list_of(n->state) == LEASED && end > now)
        out->expires_in_ns = end - now;
    if (n->state == META_NODE_LIVE) {
        out->report = n->report;
        meta_reach_show(m->reach, (uint32_t)(n - m->nodes), now, &out->reach);
    }
    for (uint32_t i = n->endpoints; i != NONE; i = m->endpoints[i].next) {
        const struct endpoint *e = &m->endpoints[i];
        uint32_t k = out->endpoint_count++;
        memcpy(out->endpoint[k].gid, e->gid, sizeof e->gid);
        out->endpoint[k].pool = e->pool;
        if (e->slot >= 0) {
            const struct schema_endpoint_record *record = record_at(m, e->slot);
            out->endpoint[k].flags = record->flags;
            out->endpoint[k].mtu = (uint16_t)(128u << (record->dctn_mtu >> 24));
            out->endpoint[k].incarnation = record->incarnation;
        }
    }
}

int meta_directory_show(const struct meta_directory *m, const char *id, uint64_t now,
                        struct meta_node_view *out)
{
    const struct node *n = meta_directory_find_node(m, id);
    if (n == NULL)
        return -ENOENT;
    show_node(m, n, now, out);
    return 0;
}

int meta_directory_after(const struct meta_directory *m, const char *after, uint64_t now,
                         struct meta_node_view *out)
{
    bool found;
    uint32_t at = meta_index_find(&m->by_id, after, &found) + (found ? 1 : 0);
    if (at >= m->by_id.count)
        return -ENOENT;
    show_node(m, &m->nodes[m->by_id.items[at]], now, out);
    return 0;
}
