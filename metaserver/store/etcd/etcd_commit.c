/* SPDX-License-Identifier: Apache-2.0 */
/* A transaction: reads all that it depends on, decides, and writes what follows if all of that is
 * still as it was read; again, if it is not. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "etcd_private.h"

enum {
    NODE_BYTES = 8192, /* of a node's value */
    PAUSE_US = 20000,  /* between tries, at most */
};

/* A try that came too late: what it was decided on has changed. */
#define TRY_AGAIN (-EAGAIN)

/* ---- reading */

/* Of several registrations what makes no sense refuses its own alone; and of nodes that expire or
 * are forgotten it leaves its own alone, for none of the others is to wait for it. */
static int take_node(struct meta_etcd_decision *d, const struct meta_etcd_answer *answer, size_t at,
                     const char *key, struct meta_etcd_subject *s, struct base_errbuf *err)
{
    struct meta_etcd_kv kv;
    const int found = meta_etcd_answer_kv(answer, at, &kv);
    bool good = found >= 0;
    s->there = s->was_there = found == 1;
    s->node_revision = kv.mod_revision;
    if (found == 1)
        good = meta_etcd_read_node(s->id, kv.value, &s->was);
    if (!good)
        s->was = (struct meta_etcd_node){.former_count = 0};
    s->now = s->was;
    meta_etcd_kv_fini(&kv);
    s->senseless =
        !good && (d->txn->put_count > 1 || d->txn->expire_count + d->txn->remove_count > 0);
    if (s->senseless)
        (void)meta_etcd_refuse_thing(key, &d->senseless);
    if (good || s->senseless)
        return 0;
    return found < 0 ? meta_etcd_refuse_value(key, err) : meta_etcd_refuse_thing(key, err);
}

/* What nobody can read is no vote. */
static void take_silent(const struct meta_etcd_answer *answer, size_t at,
                        struct meta_etcd_subject *s)
{
    struct meta_etcd_kv kv;
    s->was_silent = s->silent = meta_etcd_answer_kv(answer, at, &kv) == 1;
    s->silent_revision = kv.mod_revision;
    if (s->silent && !meta_etcd_read_silent(kv.value, &s->said_before))
        s->said_before = (struct meta_etcd_silent){.count = 0};
    s->said = s->said_before;
    meta_etcd_kv_fini(&kv);
}

static void take_members(const struct meta_etcd_answer *answer, size_t at,
                         const struct meta_etcd_place *p, struct meta_etcd_decision *d)
{
    json_t *kvs = meta_etcd_answer_kvs(answer, at);
    const size_t skip = strlen(p->prefix) + strlen("members/");
    d->member_count = 0;
    for (size_t i = 0; i < json_array_size(kvs) && d->member_count < META_STORE_MEMBERS_MAX; i++) {
        struct meta_etcd_kv kv;
        if (!meta_etcd_kv_read(json_array_get(kvs, i), &kv))
            continue;
        if (strlen(kv.key) > skip && kv.lease != 0)
            d->member_count +=
                meta_etcd_read_member(kv.key + skip, kv.value, &d->members[d->member_count]);
        meta_etcd_kv_fini(&kv);
    }
}

static int take_last(const struct meta_etcd_answer *answer, size_t at, const char *key,
                     struct meta_etcd_decision *d, struct base_errbuf *err)
{
    struct meta_etcd_kv kv;
    const int found = meta_etcd_answer_kv(answer, at, &kv);
    bool good = found == 0;
    d->last = 0;
    d->last_revision = kv.mod_revision;
    if (found == 1)
        good = base_parse_u64(kv.value, 1, INT64_MAX - 1, &d->last) == 0;
    meta_etcd_kv_fini(&kv);
    return good ? 0 : meta_etcd_refuse_value(key, err);
}

static int take_head(struct meta_etcd_store *s, const struct meta_etcd_answer *answer,
                     struct meta_etcd_decision *d, struct base_errbuf *err)
{
    struct meta_etcd_kv kv;
    struct meta_etcd_key key;
    const uint64_t generation = s->root.generation;
    int found = meta_etcd_answer_kv(answer, 0, &kv);
    int status = found < 0 ? base_err(err, -EBADMSG, "etcd at %.200s leaves out what it was asked",
                                      meta_etcd_endpoint(s->client))
                           : meta_etcd_check_root(s, found == 1 ? &kv : NULL, err);
    meta_etcd_kv_fini(&kv);
    if (status != 0)
        return status;
    if (s->root.generation != generation)
        return TRY_AGAIN; /* the other keys are another generation's */
    (void)meta_etcd_answer_kv(answer, 1, &kv);
    d->fence.mod_revision = kv.mod_revision;
    snprintf(d->fence.value, sizeof d->fence.value, "%s", kv.value != NULL ? kv.value : "");
    meta_etcd_kv_fini(&kv);
    status = meta_etcd_fence_check(s, d->fence.mod_revision, err);
    if (status != 0)
        return status;
    meta_etcd_key_under(&key, &s->place, generation, "last", "");
    return take_last(answer, 2, key.text, d, err);
}

static void ask_subject(struct meta_etcd_store *s, struct meta_etcd_txn *t, const char *id)
{
    struct meta_etcd_key key;
    meta_etcd_key_under(&key, &s->place, s->root.generation, "nodes/", id);
    meta_etcd_range(t, key.text);
}

static void ask_all(struct meta_etcd_store *s, const struct meta_etcd_decision *d,
                    struct meta_etcd_txn *t)
{
    struct meta_etcd_key key;
    meta_etcd_key(&key, &s->place, "store", "");
    meta_etcd_range(t, key.text);
    meta_etcd_key(&key, &s->place, "by/", s->place.member);
    meta_etcd_range(t, key.text);
    meta_etcd_key_under(&key, &s->place, s->root.generation, "last", "");
    meta_etcd_range(t, key.text);
    for (uint32_t i = 0; i < d->subject_count; i++) {
        ask_subject(s, t, d->subject[i].id);
        meta_etcd_key_under(&key, &s->place, s->root.generation, "silent/", d->subject[i].id);
        meta_etcd_range(t, key.text);
    }
    for (uint32_t i = 0; i < d->put_count; i++) {
        const struct meta_store_node *node = d->txn->puts[i].node;
        for (uint32_t k = 0; k < node->endpoint_count; k++) {
            meta_etcd_key_endpoint(&key, &s->place, s->root.generation, &node->endpoint[k]);
            meta_etcd_range(t, key.text);
        }
    }
    for (uint32_t i = 0; i < meta_etcd_name_count(d->txn); i++) {
        meta_etcd_key_name(&key, &s->place, s->root.generation, meta_etcd_name_at(d->txn, i));
        meta_etcd_range(t, key.text);
    }
    meta_etcd_key(&key, &s->place, "members/", "");
    meta_etcd_range(t, key.text);
}

/* As take_node(). */
static int take_claim(const struct meta_etcd_decision *d, const struct meta_etcd_answer *answer,
                      size_t at, struct meta_etcd_claim *c, struct base_errbuf *err)
{
    struct meta_etcd_kv kv;
    int status = 0;
    c->owner[0] = '\0';
    c->senseless =
        meta_etcd_answer_kv(answer, at, &kv) == 1 && !meta_etcd_read_owner(kv.value, c->owner);
    if (c->senseless)
        c->owner[0] = '\0';
    if (c->senseless && d->txn->put_count == 1)
        status = meta_etcd_refuse_thing(kv.key, err);
    c->mod_revision = kv.mod_revision;
    meta_etcd_kv_fini(&kv);
    return status;
}

static int take_all(struct meta_etcd_store *s, const struct meta_etcd_answer *answer,
                    struct meta_etcd_decision *d, struct base_errbuf *err)
{
    const uint32_t claims = meta_etcd_count_claims(d);
    struct meta_etcd_key key;
    size_t at = 3;
    int status = take_head(s, answer, d, err);
    for (uint32_t i = 0; status == 0 && i < d->subject_count; i++, at += 2) {
        meta_etcd_key_under(&key, &s->place, s->root.generation, "nodes/", d->subject[i].id);
        status = take_node(d, answer, at, key.text, &d->subject[i], err);
        take_silent(answer, at + 1, &d->subject[i]);
    }
    for (uint32_t i = 0; status == 0 && i < claims; i++, at++)
        status = take_claim(d, answer, at, &d->claim[i], err);
    for (uint32_t i = 0; status == 0 && i < meta_etcd_name_count(d->txn); i++, at++)
        status = meta_etcd_take_name(answer, at, meta_etcd_name_at(d->txn, i), &d->named[i], err);
    d->as_of = answer->revision;
    if (status == 0)
        take_members(answer, at, &s->place, d);
    if (status == 0)
        status = meta_etcd_check_name(s, d->members, d->member_count, err);
    s->named_as_of = status == 0 ? d->as_of : 0;
    return status;
}

/* Those who have, or had, endpoints that are wanted, or the name. */
static int read_owners(struct meta_etcd_store *s, struct meta_etcd_decision *d,
                       struct meta_etcd_txn *t, uint64_t deadline_ns, struct base_errbuf *err)
{
    struct meta_etcd_answer answer = {.root = NULL};
    const uint32_t first = d->subject_count, claims = meta_etcd_count_claims(d);
    struct meta_etcd_key key;
    for (uint32_t i = 0; i < claims; i++)
        if (d->claim[i].owner[0] != '\0')
            meta_etcd_add_subject(d, d->claim[i].owner, UINT32_MAX);
    if (d->txn->publish != NULL && d->named[d->txn->withdraw_count].there) {
        const struct meta_store_name was = d->named[d->txn->withdraw_count].was;
        meta_etcd_add_subject(d, was.node, UINT32_MAX);
    }
    if (d->subject_count == first)
        return 0;
    meta_etcd_txn_reset(t);
    for (uint32_t i = first; i < d->subject_count; i++)
        ask_subject(s, t, d->subject[i].id);
    int status = meta_etcd_txn_send(s->client, t, deadline_ns, false, &answer, err);
    for (uint32_t i = first; status == 0 && i < d->subject_count; i++) {
        d->subject[i].owner = true;
        meta_etcd_key_under(&key, &s->place, s->root.generation, "nodes/", d->subject[i].id);
        status = take_node(d, &answer, i - first, key.text, &d->subject[i], err);
    }
    json_decref(answer.root);
    return status;
}

static int read_all(struct meta_etcd_store *s, struct meta_etcd_decision *d,
                    struct meta_etcd_txn *t, uint64_t deadline_ns, struct base_errbuf *err)
{
    struct meta_etcd_answer answer = {.root = NULL};
    meta_etcd_gather_subjects(d);
    meta_etcd_txn_reset(t);
    ask_all(s, d, t);
    int status = meta_etcd_txn_send(s->client, t, deadline_ns, false, &answer, err);
    if (status == 0)
        status = take_all(s, &answer, d, err);
    json_decref(answer.root);
    return status == 0 ? read_owners(s, d, t, deadline_ns, err) : status;
}

/* ---- writing */

static bool lists_endpoint(const struct meta_store_endpoint *list, uint32_t count,
                           const struct meta_store_endpoint *e)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i].pool == e->pool && memcmp(list[i].gid, e->gid, 16) == 0)
            return true;
    return false;
}

/* Keys of endpoints that it had, and neither has nor had any more, if they are still its own. */
static void drop_endpoints(struct meta_etcd_store *s, const struct meta_etcd_decision *d,
                           const struct meta_etcd_subject *x, struct meta_etcd_txn *t)
{
    const uint32_t had = x->was.node.endpoint_count;
    struct base_text own;
    struct meta_etcd_key key;
    bool any = false;
    base_text_init(&own, META_ETCD_KEY_BYTES);
    meta_etcd_write_owner(&own, x->id);
    for (uint32_t i = 0; x->was_there && i < had + x->was.former_count; i++) {
        const struct meta_store_endpoint *e =
            i < had ? &x->was.node.endpoint[i] : &x->was.former[i - had];
        if ((x->there && (lists_endpoint(x->now.node.endpoint, x->now.node.endpoint_count, e) ||
                          lists_endpoint(x->now.former, x->now.former_count, e))) ||
            meta_etcd_is_wanted(d, d->put_count, e))
            continue;
        if (!any)
            meta_etcd_group_begin(t);
        any = true;
        meta_etcd_key_endpoint(&key, &s->place, s->root.generation, e);
        meta_etcd_delete_if(t, key.text, base_text_str(&own));
    }
    if (any)
        meta_etcd_group_end(t);
    base_text_fini(&own);
}

static void write_node(struct meta_etcd_store *s, const struct meta_etcd_subject *x,
                       struct meta_etcd_txn *t)
{
    struct base_text was, now;
    struct meta_etcd_key key;
    base_text_init(&was, NODE_BYTES);
    base_text_init(&now, NODE_BYTES);
    if (x->was_there)
        meta_etcd_write_node(&was, &x->was);
    if (x->there)
        meta_etcd_write_node(&now, &x->now);
    meta_etcd_key_under(&key, &s->place, s->root.generation, "nodes/", x->id);
    if (strcmp(base_text_str(&was), base_text_str(&now)) != 0) {
        if (x->there)
            meta_etcd_put(t, key.text, base_text_str(&now), 0);
        else
            meta_etcd_delete(t, key.text);
    }
    base_text_reset(&was);
    base_text_reset(&now);
    if (x->was_silent)
        meta_etcd_write_silent(&was, &x->said_before);
    if (x->silent)
        meta_etcd_write_silent(&now, &x->said);
    meta_etcd_key_under(&key, &s->place, s->root.generation, "silent/", x->id);
    if (x->silent && strcmp(base_text_str(&was), base_text_str(&now)) != 0)
        meta_etcd_put(t, key.text, base_text_str(&now), 0);
    else if (!x->silent && x->was_silent)
        meta_etcd_delete(t, key.text);
    base_text_fini(&was);
    base_text_fini(&now);
}

static void write_claims(struct meta_etcd_store *s, const struct meta_etcd_decision *d,
                         struct meta_etcd_txn *t)
{
    const struct meta_etcd_claim *claim = d->claim;
    struct meta_etcd_key key;
    struct base_text own;
    base_text_init(&own, META_ETCD_KEY_BYTES);
    for (uint32_t i = 0; i < d->put_count; i++) {
        const struct meta_store_node *node = d->txn->puts[i].node;
        base_text_reset(&own);
        meta_etcd_write_owner(&own, node->id);
        for (uint32_t k = 0; d->txn->puts[i].status == 0 && k < node->endpoint_count; k++) {
            meta_etcd_key_endpoint(&key, &s->place, s->root.generation, &node->endpoint[k]);
            if (strcmp(claim[k].owner, node->id) != 0 &&
                !lists_endpoint(node->endpoint, k, &node->endpoint[k]))
                meta_etcd_put(t, key.text, base_text_str(&own), 0);
        }
        claim += node->endpoint_count;
    }
    base_text_fini(&own);
}

static int write_change(struct meta_etcd_store *s, uint64_t revision, struct meta_etcd_txn *t,
                        const struct meta_store_change *c, struct base_errbuf *err)
{
    const uint64_t generation = s->root.generation;
    struct meta_etcd_key key, end;
    struct base_text text;
    char digits[24];
    int status = meta_etcd_key_resource(&key, &s->place, generation, c->kind, c->name, err);
    if (status != 0)
        return status;
    base_text_init(&text, META_ETCD_VALUE_BYTES);
    if (c->after == NULL) {
        meta_etcd_delete(t, key.text);
    } else {
        meta_etcd_write_resource(&text, revision, c->resource != NULL ? c->resource : c->after);
        meta_etcd_put(t, key.text, base_text_str(&text), 0);
    }
    status = text.error;
    base_text_reset(&text);
    meta_etcd_write_change(&text, c);
    meta_etcd_key_trail(&key, &s->place, generation, revision);
    meta_etcd_put(t, key.text, base_text_str(&text), 0);
    status = status == 0 ? text.error : status;
    base_text_fini(&text);
    if (status != 0)
        return base_err(err, status == -EMSGSIZE ? -E2BIG : status,
                        "a resource is too large to be stored in etcd");
    if (c->forget > 0) {
        meta_etcd_key_trail(&key, &s->place, generation, 0);
        meta_etcd_key_trail(&end, &s->place, generation, c->forget + 1);
        meta_etcd_delete_range(t, key.text, end.text);
    }
    snprintf(digits, sizeof digits, "%" PRIu64, revision);
    meta_etcd_key_under(&key, &s->place, generation, "last", "");
    meta_etcd_put(t, key.text, digits, 0);
    return 0;
}

static void compare_all(struct meta_etcd_store *s, const struct meta_etcd_decision *d,
                        struct meta_etcd_txn *t)
{
    const struct meta_store_txn *txn = d->txn;
    struct meta_etcd_key key;
    meta_etcd_key(&key, &s->place, "store", "");
    meta_etcd_compare(t, key.text, s->root.mod_revision);
    if (txn->compare || txn->change != NULL) {
        meta_etcd_key_under(&key, &s->place, s->root.generation, "last", "");
        meta_etcd_compare(t, key.text, d->last_revision);
    }
    if (d->expire_count > 0 || d->is_guess) { /* who has joined since has a say, or our name */
        meta_etcd_key(&key, &s->place, "members/", "");
        meta_etcd_compare_range(t, key.text, d->as_of);
    }
    for (uint32_t i = 0; i < d->subject_count; i++) {
        const struct meta_etcd_subject *x = &d->subject[i];
        meta_etcd_key_under(&key, &s->place, s->root.generation, "nodes/", x->id);
        meta_etcd_compare(t, key.text, x->node_revision);
        if (x->owner)
            continue;
        meta_etcd_key_under(&key, &s->place, s->root.generation, "silent/", x->id);
        meta_etcd_compare(t, key.text, x->silent_revision);
    }
    const struct meta_etcd_claim *claim = d->claim;
    for (uint32_t i = 0; i < d->put_count; i++) {
        const struct meta_store_node *node = txn->puts[i].node;
        for (uint32_t k = 0; k < node->endpoint_count; k++, claim++) {
            meta_etcd_key_endpoint(&key, &s->place, s->root.generation, &node->endpoint[k]);
            meta_etcd_compare(t, key.text, claim->mod_revision);
        }
    }
    for (uint32_t i = 0; i < meta_etcd_name_count(txn); i++) {
        meta_etcd_key_name(&key, &s->place, s->root.generation, meta_etcd_name_at(txn, i));
        meta_etcd_compare(t, key.text, d->named[i].mod_revision);
    }
}

/* What follows from it; without operations if nothing does. */
static int write_all(struct meta_etcd_store *s, const struct meta_etcd_decision *d,
                     const struct meta_store_outcome *out, struct meta_etcd_txn *t,
                     struct base_errbuf *err)
{
    int status = 0;
    meta_etcd_txn_reset(t);
    for (uint32_t i = 0; i < d->subject_count; i++) {
        write_node(s, &d->subject[i], t);
        drop_endpoints(s, d, &d->subject[i], t);
    }
    write_claims(s, d, t);
    meta_etcd_write_names(s, d, t);
    if (d->txn->change != NULL)
        status = write_change(s, out->revision, t, d->txn->change, err);
    if (status != 0 || t->ops == 0)
        return status;
    compare_all(s, d, t);
    meta_etcd_fence_add(s, t, d->fence.mod_revision);
    return 0;
}

/* Endpoints that others had need a comparison each, and those that nodes do not have any more are
 * dropped one below the other: then fewer registrations have room. */
static bool has_room(struct meta_etcd_decision *d, const struct meta_etcd_txn *t)
{
    if (d->put_count <= 1 || meta_etcd_txn_fits(t))
        return true;
    d->put_most = d->put_count / 2;
    return false;
}

/* ---- all of it */

/* One try, with what the one before it left: 0, TRY_AGAIN, or as a commit. */
static int try_commit(struct meta_etcd_store *s, struct meta_etcd_decision *d,
                      struct meta_etcd_txn *t, uint64_t deadline_ns, bool *sent,
                      struct meta_store_outcome *out)
{
    struct meta_etcd_answer answer = {.root = NULL};
    struct meta_store_outcome next = {.status = 0};
    int status = 0;
    d->is_guess = d->is_guess && !*sent;
    if (d->is_guess)
        meta_etcd_guess(s, d);
    else
        status = read_all(s, d, t, deadline_ns, &out->err);
    if (status != 0)
        return status;
    if (*sent && strcmp(d->fence.value, s->sent) == 0) {
        /* What was refused had been done: a library or a proxy has sent it twice. */
        out->at = d->fence.mod_revision;
        return 0;
    }
    *sent = false;
    status = meta_etcd_decide(d, &next);
    if (status == 0)
        status = write_all(s, d, &next, t, &next.err);
    if (status == 0 && !has_room(d, t))
        status = TRY_AGAIN;
    *out = next;
    if (status != 0 || t->ops == 0)
        return status;
    status = meta_etcd_txn_send(s->client, t, deadline_ns, true, &answer, &out->err);
    if (status == 0 && answer.succeeded)
        out->at = s->fence_revision = answer.revision;
    *sent = status == 0 && !answer.succeeded;
    if (d->is_guess && status == 0)
        meta_etcd_note_guess(s, *sent);
    json_decref(answer.root);
    if (status == -EMSGSIZE) /* of this one: others may be smaller */
        status = -E2BIG;
    if (status != -ETIMEDOUT)
        return *sent ? TRY_AGAIN : status;
    /* Whatever keeps it from being settled, what was sent may have been done. */
    const int done = meta_etcd_fence_settle(s, deadline_ns, &out->at, &out->err);
    return done == 1 ? 0 : done == 0 ? TRY_AGAIN : -ETIMEDOUT;
}

static void pause_tries(unsigned tries)
{
    uint32_t random = 0;
    (void)base_random_bytes(&random, sizeof random);
    const uint32_t most = tries < 5 ? 1000u << tries : PAUSE_US;
    const struct timespec t = {.tv_nsec = (long)(random % most) * 1000};
    nanosleep(&t, NULL);
}

int meta_etcd_commit(struct meta_store *store, const struct meta_store_txn *txn,
                     struct meta_store_outcome *out)
{
    struct meta_etcd_store *s = (struct meta_etcd_store *)store;
    const uint64_t deadline_ns = base_clock_ns() + s->timeout_ns;
    struct meta_etcd_decision *d = malloc(sizeof *d);
    struct meta_etcd_txn t;
    bool sent = false;
    uint64_t at;
    int status = d == NULL ? base_err(&out->err, -ENOMEM, "out of memory") : 0;
    if (status == 0 && txn->remove_count > META_ETCD_REMOVES_MAX)
        status = base_err(&out->err, -EIO, "more than %d nodes are to be forgotten at once",
                          META_ETCD_REMOVES_MAX);
    if (status == 0 && atomic_exchange(&s->base.relearn, false))
        status = meta_etcd_learn_root(s, false, deadline_ns, &out->err);
    if (status == 0 && s->root.mod_revision == 0)
        status = meta_etcd_find_root(s->client, &s->place, true, deadline_ns, &s->root, &out->err);
    if (status == 0 && s->unsettled)
        status = meta_etcd_fence_settle(s, deadline_ns, &at, &out->err);
    if (status == -ETIMEDOUT) /* of the one before; this one was not sent */
        status = -EBUSY;
    meta_etcd_txn_init(&t);
    if (status >= 0) {
        d->txn = txn;
        d->put_most = txn->put_count;
        d->member = s->place.member;
        d->is_guess = meta_etcd_is_to_guess(s, txn);
        for (unsigned tries = 0;; tries++) {
            status = try_commit(s, d, &t, deadline_ns, &sent, out);
            if (status != TRY_AGAIN)
                break;
            if (base_clock_ns() >= deadline_ns) {
                status = base_err(&out->err, -EBUSY,
                                  "others have changed the store in etcd at %.200s again and "
                                  "again meanwhile",
                                  meta_etcd_endpoint(s->client));
                break;
            }
            pause_tries(tries);
        }
    }
    if (sent && status != 0) { /* what was refused may have been done, and that was not seen */
        s->unsettled = true;
        status = -ETIMEDOUT;
    }
    meta_etcd_txn_fini(&t);
    free(d);
    if (status == 0)
        out->err.text[0] = '\0';
    return meta_etcd_status(status);
}
