/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes a transaction is about; and what is decided without reading what is stored of them.
 */
#include <stdio.h>
#include <string.h>

#include "etcd_private.h"

enum {
    FIXED_OPS = 4,        /* what every transaction reads: the root, the fence, `last`, members */
    GUESS_PAUSE_MAX = 63, /* transactions, between guesses that are refused */
};

bool meta_etcd_add_subject(struct meta_etcd_decision *d, const char *id, uint32_t most)
{
    if (meta_etcd_find_subject(d, id) != NULL)
        return true;
    if (d->subject_count >= most)
        return false;
    struct meta_etcd_subject *s = &d->subject[d->subject_count++];
    memset(s, 0, sizeof *s);
    snprintf(s->id, sizeof s->id, "%s", id);
    return true;
}

/* As many as have room in what is read: each its node, who is said to be silent, and its endpoints.
 */
static void gather_puts(struct meta_etcd_decision *d)
{
    const struct meta_store_txn *txn = d->txn;
    uint32_t ops = FIXED_OPS;
    for (d->put_count = 0; d->put_count < d->put_most; d->put_count++) {
        const struct meta_store_node *node = txn->puts[d->put_count].node;
        ops += 2 + node->endpoint_count;
        if (d->put_count > 0 && ops > META_ETCD_OPS_MAX)
            return;
        meta_etcd_add_subject(d, node->id, META_STORE_PUTS_MAX);
    }
}

void meta_etcd_gather_subjects(struct meta_etcd_decision *d)
{
    const struct meta_store_txn *txn = d->txn;
    d->subject_count = d->expire_count = 0;
    gather_puts(d);
    for (uint32_t i = 0; i < txn->remove_count; i++)
        meta_etcd_add_subject(d, txn->remove[i].id, META_ETCD_LIVES_MAX + 1);
    while (d->expire_count < txn->expire_count &&
           meta_etcd_add_subject(d, txn->expire[d->expire_count].id, META_ETCD_LIVES_MAX))
        d->expire_count++;
    if (txn->publish != NULL)
        meta_etcd_add_subject(d, txn->publish->node, META_ETCD_LIVES_MAX + 2);
}

uint32_t meta_etcd_count_claims(const struct meta_etcd_decision *d)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < d->put_count; i++)
        count += d->txn->puts[i].node->endpoint_count;
    return count;
}

/* ---- guessing
 *
 * In a storm most of what is registered is stored nowhere yet, and reading that it is not takes
 * etcd longer than writing it. So what this metaserver knows nothing of is written at once, if
 * etcd has nothing of it either: each key that would have been read is compared with none, and our
 * fence with what it was when we wrote last, so that the store is the one that it was. If that does
 * not hold everything is read, and the guess was a call too many: nodes that come back under new
 * ids want endpoints that are stored, and others may write the same nodes. One storm is all of one
 * kind, so that after each refusal twice as many transactions are read first. */

static bool may_guess(const struct meta_etcd_store *s, const struct meta_store_txn *txn)
{
    bool may = txn->put_count > 0 && !txn->compare && txn->change == NULL &&
               txn->remove_count == 0 && txn->expire_count == 0 && meta_etcd_name_count(txn) == 0 &&
               s->root.mod_revision != 0 && s->fence_revision != 0 && s->named_as_of != 0;
    for (uint32_t i = 0; may && i < txn->put_count; i++)
        may = txn->puts[i].is_unknown;
    return may;
}

bool meta_etcd_is_to_guess(struct meta_etcd_store *s, const struct meta_store_txn *txn)
{
    if (!may_guess(s, txn))
        return false;
    const bool reads = s->guess_wait > 0;
    s->guess_wait -= reads;
    return !reads;
}

void meta_etcd_note_guess(struct meta_etcd_store *s, bool refused)
{
    const uint32_t more = 2 * s->guess_pause + 1;
    s->guess_pause = !refused ? 0 : more < GUESS_PAUSE_MAX ? more : GUESS_PAUSE_MAX;
    s->guess_wait = s->guess_pause;
}

void meta_etcd_guess(const struct meta_etcd_store *s, struct meta_etcd_decision *d)
{
    meta_etcd_gather_subjects(d);
    memset(d->claim, 0, meta_etcd_count_claims(d) * sizeof d->claim[0]);
    d->last = d->last_revision = 0; /* which it is not about */
    d->fence.mod_revision = s->fence_revision;
    d->as_of = s->named_as_of;
    d->member_count = 0;
}
