/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to etcd's key-value store as JSON, and what is in its answers. One thread. */
#ifndef METASERVER_STORE_ETCD_WIRE_H
#define METASERVER_STORE_ETCD_WIRE_H

#include "etcd_client.h"

enum {
    META_ETCD_KEY_BYTES = 1280,
    META_ETCD_OPS_MAX = 128, /* of a transaction: etcd's --max-txn-ops */
    META_ETCD_TXN_BYTES = 4 << 20,
};

struct meta_etcd_key {
    char text[META_ETCD_KEY_BYTES];
};

/* A transaction that is being written. What fails shows when it is sent. */
struct meta_etcd_txn {
    struct base_text compare, success;
    uint32_t compares, ops;
    uint32_t grouped,
        deepest; /* operations in the last group; of all groups, with one below each */
};

void meta_etcd_txn_init(struct meta_etcd_txn *t);
void meta_etcd_txn_reset(struct meta_etcd_txn *t);
void meta_etcd_txn_fini(struct meta_etcd_txn *t);

/* Only if key was changed last at this revision; 0: it is not there. */
void meta_etcd_compare(struct meta_etcd_txn *t, const char *key, uint64_t mod_revision);
/* Only if none of the keys that begin with this, which ends with '/', was put after a revision. */
void meta_etcd_compare_range(struct meta_etcd_txn *t, const char *prefix, uint64_t revision);
void meta_etcd_put(struct meta_etcd_txn *t, const char *key, const char *value, uint64_t lease);
void meta_etcd_delete(struct meta_etcd_txn *t, const char *key);
/* From key on, up to end. */
void meta_etcd_delete_range(struct meta_etcd_txn *t, const char *key, const char *end);
/* Whether etcd takes so much at once: as many comparisons as operations, and what is nested below
 * them beside that (checkTxnRequest() of server/etcdserver/api/v3rpc/key.go). */
bool meta_etcd_txn_fits(const struct meta_etcd_txn *t);
/* What is between these two is one operation of the transaction around it. */
void meta_etcd_group_begin(struct meta_etcd_txn *t);
void meta_etcd_group_end(struct meta_etcd_txn *t);
/* In a group: it goes if it has this value. */
void meta_etcd_delete_if(struct meta_etcd_txn *t, const char *key, const char *value);
/* All keys that begin with it, if that ends with '/'; or the one. */
void meta_etcd_range(struct meta_etcd_txn *t, const char *key);
/* The one of them that was changed last, without its value. */
void meta_etcd_range_newest(struct meta_etcd_txn *t, const char *prefix);

struct meta_etcd_answer {
    json_t *root;      /* json_decref() it */
    bool succeeded;    /* else a comparison did not hold, and nothing was done */
    uint64_t revision; /* of the store, after it */
};

/* Sends it. As meta_etcd_call(); -EBADMSG too. */
int meta_etcd_txn_send(struct meta_etcd_client *c, const struct meta_etcd_txn *t,
                       uint64_t deadline_ns, bool once, struct meta_etcd_answer *out,
                       struct base_errbuf *err);

/* A key and its value, decoded; each has a NUL behind it and none within. */
struct meta_etcd_kv {
    char *key, *value; /* owned; value is "" where there is none */
    uint64_t mod_revision, lease;
};
/* From JSON. False: it is none. */
bool meta_etcd_kv_read(json_t *json, struct meta_etcd_kv *out);
void meta_etcd_kv_fini(struct meta_etcd_kv *kv);
/* The pairs that the i-th operation of an answer, a range, has found; NULL: it was none. */
json_t *meta_etcd_answer_kvs(const struct meta_etcd_answer *answer, size_t i);
/* The first of them: 1; 0: there is none (*out is zeroed); -EBADMSG. */
int meta_etcd_answer_kv(const struct meta_etcd_answer *answer, size_t i, struct meta_etcd_kv *out);

/* A number as protobuf's JSON has it: digits in a string, or nothing for 0. */
uint64_t meta_etcd_number(json_t *object, const char *name);

/* One page of [key, end) in the order of keys, as of a revision (0: now). */
struct meta_etcd_page {
    const char *key, *end;
    uint64_t revision;
    uint32_t limit;
    bool keys_only;
};
/* 0 and *out, whose "kvs" are the pairs and "more" whether there are others. As meta_etcd_call().
 */
int meta_etcd_range_send(struct meta_etcd_client *c, const struct meta_etcd_page *page,
                         uint64_t deadline_ns, json_t **out, struct base_errbuf *err);

/* Behind all keys that begin with this one, which ends with '/'. */
void meta_etcd_key_end(struct meta_etcd_key *out, const char *prefix);
void meta_etcd_bytes(struct base_text *t, const char *name, const char *text);

#endif
