/* SPDX-License-Identifier: Apache-2.0 */
/* Names of regions in a transaction: what is read of them, and what is written. */
#include <string.h>

#include "etcd_private.h"

int meta_etcd_take_name(const struct meta_etcd_answer *answer, size_t at,
                        const struct meta_store_name *name, struct meta_etcd_named *n,
                        struct base_errbuf *err)
{
    struct meta_etcd_kv kv;
    const int found = meta_etcd_answer_kv(answer, at, &kv);
    bool good = found >= 0;
    n->there = found == 1;
    n->mod_revision = kv.mod_revision;
    if (found == 1) /* the key is the name's, which was asked for */
        good = meta_etcd_read_name("t/n", kv.value, &n->was);
    memcpy(n->was.tenant, name->tenant, sizeof n->was.tenant);
    memcpy(n->was.name, name->name, sizeof n->was.name);
    int status = 0;
    if (!good)
        status = found == 1 ? meta_etcd_refuse_thing(kv.key, err)
                            : meta_etcd_refuse_value("names/", err);
    meta_etcd_kv_fini(&kv);
    return status;
}

void meta_etcd_write_names(struct meta_etcd_store *s, const struct meta_etcd_decision *d,
                           struct meta_etcd_txn *t)
{
    const struct meta_store_txn *txn = d->txn;
    struct meta_etcd_key key;
    struct base_text text;
    base_text_init(&text, META_ETCD_KEY_BYTES);
    for (uint32_t i = 0; i < meta_etcd_name_count(txn); i++) {
        const struct meta_store_name *name = meta_etcd_name_at(txn, i);
        const struct meta_etcd_named *n = &d->named[i];
        const bool is_stored = n->there && meta_store_name_equals(name, &n->was);
        meta_etcd_key_name(&key, &s->place, s->root.generation, name);
        if (i < txn->withdraw_count && is_stored) {
            meta_etcd_delete(t, key.text);
        } else if (i >= txn->withdraw_count && !is_stored) {
            meta_etcd_write_name(&text, name);
            meta_etcd_put(t, key.text, base_text_str(&text), 0);
        }
    }
    base_text_fini(&text);
}
