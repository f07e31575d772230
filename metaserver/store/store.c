/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

bool meta_store_fingerprint_matches(const struct meta_store_fingerprint *known,
                                    const struct meta_store_fingerprint *claimed)
{
    if (known->identity == claimed->identity)
        return true;
    for (uint32_t i = 0; i < known->count; i++)
        for (uint32_t k = 0; k < claimed->count; k++)
            if (known->print[i].key == claimed->print[k].key &&
                known->print[i].body == claimed->print[k].body)
                return true;
    return false;
}

void meta_store_close(struct meta_store *store)
{
    if (store != NULL)
        store->ops->close(store);
}

int meta_store_load(struct meta_store *store, meta_store_visit *visit, void *user,
                    struct base_errbuf *err)
{
    return store->ops->load(store, visit, user, err);
}

bool meta_store_is_refusal(int status)
{
    return status == -ESTALE || status == -EREMCHG || status == -EEXIST || status == -EUCLEAN ||
           status == -E2BIG;
}

/* What is known of the store's writes when a transaction has ended, which writes, or may have had
 * to write nothing. */
static void note_end(struct meta_store *store, bool writes, bool wrote,
                     struct meta_store_outcome *out)
{
    if (writes && out->status != 0 && !meta_store_is_refusal(out->status))
        store->fails = true;
    else if (wrote)
        store->fails = store->untried = false;
    out->unproven = out->status == 0 && (store->fails || store->untried);
}

static void check_names(const struct meta_store_txn *txn)
{
    const struct meta_store_name *name = txn->publish;
    BASE_ASSERT(txn->withdraw_count <= META_STORE_NAMES_MAX);
    BASE_ASSERT(name == NULL || (name->tenant[0] != '\0' && name->name[0] != '\0' &&
                                 name->node[0] != '\0' && name->incarnation > 0));
    for (uint32_t i = 0; name != NULL && i < txn->withdraw_count; i++)
        BASE_ASSERT(meta_store_name_order(name, &txn->withdraw[i]) != 0);
}

static void check_puts(const struct meta_store_txn *txn)
{
    BASE_ASSERT(txn->put_count <= META_STORE_PUTS_MAX);
    BASE_ASSERT(txn->put_count <= 1 ||
                (txn->change == NULL && !txn->compare && txn->remove_count == 0 &&
                 txn->expire_count == 0 && txn->withdraw_count == 0 && txn->publish == NULL));
    for (uint32_t i = 0; i < txn->put_count; i++) {
        const struct meta_store_node *node = txn->puts[i].node;
        BASE_ASSERT(node->id[0] != '\0' && memchr(node->id, '\0', sizeof node->id) != NULL);
        BASE_ASSERT(node->incarnation > 0 && node->endpoint_count <= META_STORE_NODE_ENDPOINTS);
        for (uint32_t k = 0; k < i; k++)
            BASE_ASSERT(strcmp(txn->puts[k].node->id, node->id) != 0);
        txn->puts[i].status = 0;
        txn->puts[i].err.text[0] = '\0';
    }
}

int meta_store_commit(struct meta_store *store, const struct meta_store_txn *txn,
                      struct meta_store_outcome *out)
{
    const struct meta_store_change *change = txn->change;
    *out = (struct meta_store_outcome){.revision = 0};
    check_puts(txn);
    if (change != NULL) {
        BASE_ASSERT(change->revision > change->forget);
        BASE_ASSERT(change->before != NULL || change->after != NULL);
        BASE_ASSERT(change->after != NULL || change->resource == NULL);
    }
    BASE_ASSERT(txn->expire_count <= META_STORE_EXPIRE_MAX);
    check_names(txn);
    const bool changes = txn->put_count > 0 || change != NULL || txn->remove_count > 0 ||
                         txn->expire_count > 0 || txn->withdraw_count > 0 || txn->publish != NULL;
    const bool writes = changes || ((store->fails || store->untried) && !txn->compare);
    out->status = changes || txn->compare ? store->ops->commit(store, txn, out)
                                          : store->ops->check(store, writes, &out->err);
    const bool wrote = changes ? !store->shared || out->at != 0 : writes;
    note_end(store, writes, out->status == 0 && wrote, out);
    if (out->status != 0) /* nothing was done */
        out->revision = out->removed = out->expire_count = out->put_count = 0;
    return out->status;
}

int meta_store_check_idle(struct meta_store *store, struct base_errbuf *err)
{
    return store->ops->check_idle != NULL ? store->ops->check_idle(store, err) : 0;
}

static int commit_one(struct meta_store *store, const struct meta_store_txn *txn,
                      struct base_errbuf *err)
{
    struct meta_store_outcome out;
    const int status = meta_store_commit(store, txn, &out);
    if (status != 0)
        *err = out.err;
    return status;
}

int meta_store_put(struct meta_store *store, const struct meta_store_node *node,
                   struct base_errbuf *err)
{
    struct meta_store_put one = {.node = node};
    return commit_one(store, &(struct meta_store_txn){.puts = &one, .put_count = 1}, err);
}

int meta_store_expire(struct meta_store *store, const struct meta_store_life *lives, uint32_t n,
                      struct base_errbuf *err)
{
    const struct meta_store_txn txn = {.expire = lives, .expire_count = n};
    return n == 0 ? 0 : commit_one(store, &txn, err);
}

int meta_store_remove(struct meta_store *store, const char *id, struct base_errbuf *err)
{
    struct meta_store_life life = {.incarnation = UINT32_MAX};
    const struct meta_store_txn txn = {.remove = &life, .remove_count = 1};
    struct meta_store_outcome out;
    snprintf(life.id, sizeof life.id, "%s", id);
    const int status = meta_store_commit(store, &txn, &out);
    if (status != 0)
        *err = out.err;
    else if (out.removed == 0)
        return base_err(err, -ENOENT, "no node %s is stored", id);
    return status;
}

int meta_store_change(struct meta_store *store, const struct meta_store_change *change,
                      struct base_errbuf *err)
{
    return commit_one(store, &(struct meta_store_txn){.change = change}, err);
}

int meta_store_load_resources(struct meta_store *store, const struct meta_store_visitor *visitor,
                              struct base_errbuf *err)
{
    return store->ops->load_resources(store, visitor, err);
}

int meta_store_replace(struct meta_store *store, meta_store_next *next, void *user,
                       struct base_errbuf *err)
{
    return store->ops->replace(store, next, user, err);
}
