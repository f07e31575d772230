/* SPDX-License-Identifier: Apache-2.0 */
/* That this metaserver lives: a key that is there as long as its lease is renewed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "etcd_watch.h"

enum {
    LEASE_S = 10,
    RENEW_MS = 3000,
    CALL_MS = 2000, /* of the lease's time, so that there is some for a second try */
    NAME_RETRY_MS = 1000,
    NAME_S = 30, /* more than a lease: another leader of etcd's begins it anew */
};

/* ---- who has the name */

int meta_etcd_say_taken(const struct meta_etcd_place *p, int status, struct base_errbuf *err)
{
    return base_err(err, status,
                    "another metaserver of the store %.120s in etcd has the name %s, and lives: "
                    "give this one another name (it is free %d s after that one has died)",
                    p->prefix, p->member, LEASE_S);
}

/* By the name it is known which of our transactions were done (etcd_fence.c): so two may not write
 * under it. */
int meta_etcd_check_name(const struct meta_etcd_store *s, const struct meta_etcd_member *members,
                         uint32_t count, struct base_errbuf *err)
{
    for (uint32_t i = 0; s->has_watch && i < count; i++)
        if (strcmp(members[i].member.name, s->place.member) == 0 &&
            !meta_etcd_is_ours(&s->lives, members[i].life))
            return meta_etcd_say_taken(&s->place, -EBUSY, err);
    return 0;
}

int meta_etcd_ask_name(struct meta_etcd_store *s, uint64_t deadline_ns, struct base_errbuf *err)
{
    struct meta_etcd_answer answer = {.root = NULL};
    struct meta_etcd_member member;
    struct meta_etcd_kv kv = {.key = NULL};
    struct meta_etcd_key key;
    struct meta_etcd_txn t;
    if (!s->has_watch)
        return 0;
    meta_etcd_txn_init(&t);
    meta_etcd_key(&key, &s->place, "members/", s->place.member);
    meta_etcd_range(&t, key.text);
    int status = meta_etcd_txn_send(s->client, &t, deadline_ns, false, &answer, err);
    if (status == 0 && meta_etcd_answer_kv(&answer, 0, &kv) == 1 && kv.lease != 0 &&
        meta_etcd_read_member(s->place.member, kv.value, &member))
        status = meta_etcd_check_name(s, &member, 1, err);
    meta_etcd_kv_fini(&kv);
    json_decref(answer.root);
    meta_etcd_txn_fini(&t);
    return status;
}

static int refuse_living(const struct meta_etcd_place *p, const char *name, struct base_errbuf *err)
{
    return base_err(err, -EBUSY,
                    "the metaserver %s runs with the store %.120s in etcd: stop all that have it "
                    "and try again (one that was killed counts for %d s more)",
                    name, p->prefix, LEASE_S);
}

int meta_etcd_check_idle(struct meta_etcd_store *s, uint64_t deadline_ns, struct base_errbuf *err)
{
    struct meta_etcd_answer answer = {.root = NULL};
    const size_t skip = strlen(s->place.prefix) + strlen("members/");
    struct meta_etcd_key all;
    struct meta_etcd_txn t;
    meta_etcd_txn_init(&t);
    meta_etcd_key(&all, &s->place, "members/", "");
    meta_etcd_range(&t, all.text);
    int status = meta_etcd_txn_send(s->client, &t, deadline_ns, false, &answer, err);
    json_t *kvs = status == 0 ? meta_etcd_answer_kvs(&answer, 0) : NULL;
    for (size_t i = 0; status == 0 && i < json_array_size(kvs); i++) {
        struct meta_etcd_member member;
        struct meta_etcd_kv kv;
        if (!meta_etcd_kv_read(json_array_get(kvs, i), &kv))
            continue;
        if (kv.lease != 0 && strlen(kv.key) > skip &&
            meta_etcd_read_member(kv.key + skip, kv.value, &member))
            status = refuse_living(&s->place, member.member.name, err);
        meta_etcd_kv_fini(&kv);
    }
    json_decref(answer.root);
    meta_etcd_txn_fini(&t);
    return status;
}

/* ---- that we have it */

static int call_lease(struct meta_etcd_watch *w, const char *path, const char *name, uint64_t value,
                      json_t **out, struct base_errbuf *err)
{
    char digits[24];
    struct base_text body;
    base_text_init(&body, 128);
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    base_json_object(&body, NULL);
    base_json_string(&body, name, digits);
    base_json_object_end(&body);
    const struct meta_etcd_call call = {.path = path,
                                        .body = base_text_str(&body),
                                        .length = body.length,
                                        .deadline_ns = base_clock_ns() + CALL_MS * BASE_NS_PER_MS};
    const int status = meta_etcd_call(w->client, &call, out, err);
    base_text_fini(&body);
    return status;
}

static int grant_lease(struct meta_etcd_watch *w, struct base_errbuf *err)
{
    json_t *answer = NULL;
    int status = call_lease(w, "/v3/lease/grant", "TTL", LEASE_S, &answer, err);
    if (status == 0)
        w->lease = meta_etcd_number(answer, "ID");
    json_decref(answer);
    if (status == 0 && w->lease == 0)
        status = base_err(err, -EBADMSG, "etcd at %.200s grants no lease",
                          meta_etcd_endpoint(w->client));
    return status;
}

/* One request each. A lease without time is lost. */
static int renew_lease(struct meta_etcd_watch *w, struct base_errbuf *err)
{
    json_t *answer = NULL;
    int status = call_lease(w, "/v3/lease/keepalive", "ID", w->lease, &answer, err);
    if (status == 0 && meta_etcd_number(json_object_get(answer, "result"), "TTL") == 0)
        status = -ENOENT;
    json_decref(answer);
    if (status == -ENOENT) {
        w->lease = 0;
        w->joined = false;
        status = 0;
    }
    return status;
}

/* Who has the name: *mod_revision of its key (0: nobody) if that is us or nobody. */
static int look_for_name(struct meta_etcd_watch *w, const char *key, uint64_t *mod_revision,
                         struct base_errbuf *err)
{
    struct meta_etcd_answer answer = {.root = NULL};
    struct meta_etcd_member other;
    struct meta_etcd_kv kv = {.key = NULL};
    struct meta_etcd_key all;
    struct meta_etcd_txn t;
    meta_etcd_txn_init(&t);
    meta_etcd_range(&t, key);
    meta_etcd_key(&all, &w->place, "members/", "");
    meta_etcd_range(&t, all.text);
    int status = meta_etcd_txn_send(w->client, &t, base_clock_ns() + CALL_MS * BASE_NS_PER_MS,
                                    false, &answer, err);
    const int found = status == 0 ? meta_etcd_answer_kv(&answer, 0, &kv) : 0;
    const bool known =
        found == 1 && meta_etcd_read_member(w->place.member, kv.value, &other) && kv.lease != 0;
    if (known && !meta_etcd_is_ours(&w->lives, other.life))
        status = meta_etcd_say_taken(&w->place, -EADDRINUSE, err);
    else if (found == 0 && status == 0 &&
             json_array_size(meta_etcd_answer_kvs(&answer, 1)) >= META_STORE_MEMBERS_MAX)
        status = base_err(err, -EDQUOT, "%d metaservers share the store %.120s, which is the most",
                          META_STORE_MEMBERS_MAX, w->place.prefix);
    *mod_revision = kv.mod_revision;
    meta_etcd_kv_fini(&kv);
    json_decref(answer.root);
    meta_etcd_txn_fini(&t);
    return status;
}

/* Puts our key, if nobody has put it meanwhile. */
static int put_key(struct meta_etcd_watch *w, const char *key, uint64_t mod_revision,
                   struct base_errbuf *err)
{
    struct meta_etcd_answer answer = {.root = NULL};
    struct meta_etcd_txn t;
    struct base_text value;
    meta_etcd_txn_init(&t);
    base_text_init(&value, 2 * META_STORE_MEMBER_BYTES);
    meta_etcd_write_member(&value, w->lives.own, w->about);
    meta_etcd_compare(&t, key, mod_revision);
    meta_etcd_put(&t, key, base_text_str(&value), w->lease);
    int status = value.error != 0
                     ? base_err(err, value.error, "out of memory")
                     : meta_etcd_txn_send(w->client, &t, base_clock_ns() + CALL_MS * BASE_NS_PER_MS,
                                          false, &answer, err);
    w->joined = status == 0 && answer.succeeded;
    w->name_taken &= !w->joined;
    if (status == -ENOENT) /* the lease: as lost as any */
        w->lease = 0;
    json_decref(answer.root);
    base_text_fini(&value);
    meta_etcd_txn_fini(&t);
    return status;
}

static int join_members(struct meta_etcd_watch *w, struct base_errbuf *err)
{
    struct meta_etcd_key key;
    int status = 0;
    meta_etcd_key(&key, &w->place, "members/", w->place.member);
    for (int tries = 0; tries < 3 && !w->joined && status == 0; tries++) {
        uint64_t mod_revision = 0;
        status = look_for_name(w, key.text, &mod_revision, err);
        if (status == 0 && w->lease == 0)
            status = grant_lease(w, err);
        if (status == 0)
            status = put_key(w, key.text, mod_revision, err);
        if (status == -ENOENT)
            status = 0;
    }
    if (status == 0 && !w->joined)
        status = base_err(err, -EBUSY, "the key %.200s in etcd does not come to rest", key.text);
    return status;
}

void meta_etcd_member_begin(struct meta_etcd_watch *w, uint64_t now)
{
    w->name_until_ns = now + NAME_S * BASE_NS_PER_S;
}

int meta_etcd_member_keep(struct meta_etcd_watch *w, uint64_t now, struct base_errbuf *err)
{
    int status = 0;
    if ((w->joined && now - w->alive_ns < RENEW_MS * BASE_NS_PER_MS) || now < w->name_retry_ns)
        return 0;
    if (w->lease != 0)
        status = renew_lease(w, err);
    if (status == 0 && !w->joined)
        status = join_members(w, err);
    if (status == -EADDRINUSE) { /* it hears what is stored, but is no member */
        w->name_taken = true;
        w->name_why = *err;
        w->name_retry_ns = now + NAME_RETRY_MS * BASE_NS_PER_MS;
        return 0;
    }
    if (status == 0)
        w->alive_ns = now;
    return status;
}

void meta_etcd_member_leave(struct meta_etcd_watch *w)
{
    json_t *answer = NULL;
    struct base_errbuf none;
    if (w->lease != 0)
        (void)call_lease(w, "/v3/lease/revoke", "ID", w->lease, &answer, &none);
    json_decref(answer);
    w->lease = 0;
}

bool meta_etcd_member_take(struct meta_etcd_watch *w, json_t *kvs)
{
    static const struct meta_etcd_member none;
    const size_t skip = strlen(w->place.prefix) + strlen("members/");
    struct meta_etcd_member found = none;
    uint32_t count = 0;
    bool changed = false, own = false;
    for (size_t i = 0; i < json_array_size(kvs) && count < META_STORE_MEMBERS_MAX; i++) {
        struct meta_etcd_kv kv;
        if (!meta_etcd_kv_read(json_array_get(kvs, i), &kv))
            continue;
        if (kv.lease != 0 && strlen(kv.key) > skip &&
            meta_etcd_read_member(kv.key + skip, kv.value, &found)) {
            struct meta_etcd_member *m = &w->members[count];
            changed |= count >= w->member_count || strcmp(m->life, found.life) != 0 ||
                       strcmp(m->member.name, found.member.name) != 0 ||
                       strcmp(m->member.about, found.member.about) != 0;
            own |= strcmp(found.life, w->lives.own) == 0;
            w->members[count++] = found;
        }
        meta_etcd_kv_fini(&kv);
    }
    changed |= count != w->member_count;
    w->member_count = count;
    w->joined &= own;
    return changed;
}
