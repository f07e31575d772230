/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a transaction, given what is stored: as metaserver/store/memory_store.c does it,
 * but that others live in the same store. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "etcd_private.h"

struct meta_etcd_subject *meta_etcd_find_subject(struct meta_etcd_decision *d, const char *id)
{
    for (uint32_t i = 0; i < d->subject_count; i++)
        if (strcmp(d->subject[i].id, id) == 0)
            return &d->subject[i];
    return NULL;
}

/* The node, unless it has a later life, or nobody can read which; or NULL. */
static struct meta_etcd_subject *find_life(struct meta_etcd_decision *d,
                                           const struct meta_store_life *life)
{
    struct meta_etcd_subject *s = meta_etcd_find_subject(d, life->id);
    return s != NULL && s->there && !s->senseless && s->now.node.incarnation <= life->incarnation
               ? s
               : NULL;
}

/* Returns how many nodes went. */
static uint32_t remove_life(struct meta_etcd_decision *d, const struct meta_store_life *life)
{
    struct meta_etcd_subject *s = find_life(d, life);
    if (s == NULL)
        return 0;
    s->there = s->silent = false;
    return 1;
}

/* ---- votes */

static const struct meta_etcd_member *find_member(const struct meta_etcd_decision *d,
                                                  const char *name)
{
    for (uint32_t i = 0; i < d->member_count; i++)
        if (strcmp(d->members[i].member.name, name) == 0)
            return &d->members[i];
    return NULL;
}

static bool has_voted(const struct meta_etcd_silent *said, const struct meta_etcd_member *m)
{
    for (uint32_t i = 0; i < said->count; i++)
        if (strcmp(said->by[i].name, m->member.name) == 0 && strcmp(said->by[i].life, m->life) == 0)
            return true;
    return false;
}

/* Votes of those who do not live, or live again, count no more. Ours is added. */
static void add_vote(const struct meta_etcd_decision *d, struct meta_etcd_subject *s)
{
    const struct meta_etcd_member *own = find_member(d, d->member);
    struct meta_etcd_silent *said = &s->said;
    uint32_t kept = 0;
    if (!s->silent || said->incarnation != s->now.node.incarnation)
        said->count = 0;
    for (uint32_t i = 0; i < said->count; i++) {
        const struct meta_etcd_member *m = find_member(d, said->by[i].name);
        if (m != NULL && m != own && strcmp(m->life, said->by[i].life) == 0)
            said->by[kept++] = said->by[i];
    }
    if (kept == META_STORE_MEMBERS_MAX) /* of members there are no more, and we are another one */
        kept--;
    struct meta_etcd_vote *vote = &said->by[kept++];
    snprintf(vote->name, sizeof vote->name, "%s", d->member);
    snprintf(vote->life, sizeof vote->life, "%s", own != NULL ? own->life : "-");
    said->count = kept;
    said->incarnation = s->now.node.incarnation;
    s->silent = true;
}

static bool is_senseless(struct meta_etcd_decision *d, const struct meta_store_life *life)
{
    const struct meta_etcd_subject *s = meta_etcd_find_subject(d, life->id);
    return s != NULL && s->senseless;
}

/* Whether of all that are to expire or to be forgotten nobody can read what is stored. */
static bool are_all_senseless(struct meta_etcd_decision *d)
{
    const struct meta_store_txn *txn = d->txn;
    bool all = d->expire_count + txn->remove_count > 0;
    for (uint32_t i = 0; i < d->expire_count; i++)
        all = all && is_senseless(d, &txn->expire[i]);
    for (uint32_t i = 0; i < txn->remove_count; i++)
        all = all && is_senseless(d, &txn->remove[i]);
    return all;
}

/* Expires it, if each living member says so. False: one has not, or what they say cannot be
 * stored, so that it is looked at again after another lease. */
static bool expire_life(struct meta_etcd_decision *d, const struct meta_store_life *life)
{
    struct meta_etcd_subject *s = find_life(d, life);
    if (is_senseless(d, life))
        return false;
    if (s == NULL || s->now.node.expired)
        return true;
    add_vote(d, s);
    for (uint32_t i = 0; i < d->member_count; i++)
        if (strcmp(d->members[i].member.name, d->member) != 0 &&
            !has_voted(&s->said, &d->members[i]))
            return false;
    s->silent = false;
    s->now.node.expired = true;
    s->now.former_count = s->now.node.endpoint_count;
    memcpy(s->now.former, s->now.node.endpoint, sizeof s->now.former);
    s->now.node.endpoint_count = 0;
    return true;
}

/* ---- who registers */

static bool has_endpoint(const struct meta_store_node *n, const struct meta_store_endpoint *e)
{
    for (uint32_t i = 0; i < n->endpoint_count; i++)
        if (n->endpoint[i].pool == e->pool && memcmp(n->endpoint[i].gid, e->gid, 16) == 0)
            return true;
    return false;
}

bool meta_etcd_is_wanted(const struct meta_etcd_decision *d, uint32_t puts,
                         const struct meta_store_endpoint *e)
{
    for (uint32_t i = 0; i < puts; i++)
        if (d->txn->puts[i].status == 0 && has_endpoint(d->txn->puts[i].node, e))
            return true;
    return false;
}

/* An endpoint is owned as long as its owner is not expired and has it. The claims are those of the
 * i-th registration. */
static int check_claims(struct meta_etcd_decision *d, uint32_t i,
                        const struct meta_etcd_claim *claim, struct base_errbuf *err)
{
    const struct meta_store_node *node = d->txn->puts[i].node;
    for (uint32_t k = 0; k < node->endpoint_count; k++) {
        const struct meta_store_endpoint *e = &node->endpoint[k];
        const struct meta_etcd_subject *owner = meta_etcd_find_subject(d, claim[k].owner);
        char gid[BASE_GID_TEXT];
        if (claim[k].senseless || (owner != NULL && owner->senseless))
            return base_err(err, -EUCLEAN,
                            "who has the endpoint %s of pool %u makes no sense in etcd",
                            base_gid_format(e->gid, gid), e->pool);
        if (meta_etcd_is_wanted(d, i, e))
            return base_err(err, -EEXIST, "the endpoint %s of pool %u is another node's",
                            base_gid_format(e->gid, gid), e->pool);
        if (owner == NULL || !owner->there || strcmp(owner->id, node->id) == 0 ||
            owner->now.node.expired || !has_endpoint(&owner->now.node, e))
            continue;
        return base_err(err, -EEXIST, "the endpoint %s of pool %u is node %s's, which is alive",
                        base_gid_format(e->gid, gid), e->pool, owner->id);
    }
    return 0;
}

/* Whether its life may be registered. */
static int check_life(struct meta_etcd_decision *d, const struct meta_store_node *node,
                      struct base_errbuf *err)
{
    const struct meta_etcd_subject *s = meta_etcd_find_subject(d, node->id);
    if (s->senseless)
        return base_err(err, -EUCLEAN, "what etcd holds of %s makes no sense: remove its key",
                        s->id);
    if (s->was_there && s->was.node.incarnation > node->incarnation)
        return base_err(err, -ESTALE, "a newer incarnation of %s is stored", node->id);
    if (s->was_there && !s->was.node.expired && s->was.node.incarnation == node->incarnation &&
        !meta_store_fingerprint_matches(&s->was.node.fingerprint, &node->fingerprint))
        return base_err(err, -ESTALE, "another process has registered as %s", node->id);
    return 0;
}

static void put_node(struct meta_etcd_decision *d, uint32_t i, const struct meta_etcd_claim *claim)
{
    struct meta_store_put *put = &d->txn->puts[i];
    put->status = check_claims(d, i, claim, &put->err);
    if (put->status != 0)
        return;
    struct meta_etcd_subject *s = meta_etcd_find_subject(d, put->node->id);
    s->there = true;
    s->silent = false;
    s->now = (struct meta_etcd_node){.node = *put->node};
}

static void put_nodes(struct meta_etcd_decision *d)
{
    const struct meta_etcd_claim *claim = d->claim;
    for (uint32_t i = 0; i < d->put_count; i++) {
        if (d->txn->puts[i].status == 0)
            put_node(d, i, claim);
        claim += d->txn->puts[i].node->endpoint_count;
    }
}

/* What refuses the only one refuses all. */
static int status_of_one(const struct meta_store_txn *txn, struct base_errbuf *err)
{
    if (txn->put_count != 1 || txn->puts->status == 0)
        return 0;
    *err = txn->puts->err;
    return txn->puts->status;
}

/* ---- names of regions */

uint32_t meta_etcd_name_count(const struct meta_store_txn *txn)
{
    return txn->withdraw_count + (txn->publish != NULL);
}

const struct meta_store_name *meta_etcd_name_at(const struct meta_store_txn *txn, uint32_t i)
{
    return i < txn->withdraw_count ? &txn->withdraw[i] : txn->publish;
}

/* After all else that the transaction does to nodes. */
static bool is_alive(struct meta_etcd_decision *d, const struct meta_store_name *name)
{
    const struct meta_etcd_subject *s = meta_etcd_find_subject(d, name->node);
    return s != NULL && s->there && !s->now.node.expired &&
           s->now.node.incarnation <= name->incarnation;
}

static int check_published(struct meta_etcd_decision *d, struct base_errbuf *err)
{
    const struct meta_store_name *name = d->txn->publish;
    const struct meta_etcd_named *known = &d->named[d->txn->withdraw_count];
    return meta_store_name_check(name, is_alive(d, name), known->there ? &known->was : NULL,
                                 known->there && is_alive(d, &known->was), err);
}

int meta_etcd_decide(struct meta_etcd_decision *d, struct meta_store_outcome *out)
{
    const struct meta_store_txn *txn = d->txn;
    if (txn->compare && d->last != txn->last)
        return base_err(&out->err, -EREMCHG, "another change came before");
    for (uint32_t i = 0; i < d->put_count; i++) {
        txn->puts[i].err.text[0] = '\0';
        txn->puts[i].status = check_life(d, txn->puts[i].node, &txn->puts[i].err);
    }
    const int status = status_of_one(txn, &out->err);
    if (status != 0)
        return status;
    if (txn->put_count == 0 && are_all_senseless(d)) {
        out->err = d->senseless;
        return -EUCLEAN;
    }
    for (uint32_t i = 0; i < txn->remove_count; i++)
        out->removed += remove_life(d, &txn->remove[i]);
    for (uint32_t i = 0; i < d->expire_count; i++)
        if (!expire_life(d, &txn->expire[i]))
            out->heard_elsewhere[i / 64] |= UINT64_C(1) << i % 64;
    out->expire_count = d->expire_count;
    if (txn->change != NULL)
        out->revision = txn->change->revision > d->last ? txn->change->revision : d->last + 1;
    out->put_count = d->put_count;
    put_nodes(d);
    const int refused = status_of_one(txn, &out->err);
    return refused == 0 && txn->publish != NULL ? check_published(d, &out->err) : refused;
}
