/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what was sent was done, when its answer is lost. Each transaction puts a value of its own
 * to our fence, and compares the fence's revision: so that of two that were decided on the same
 * revision one alone is done, and what is there says which. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "etcd_private.h"

void meta_etcd_fence_add(struct meta_etcd_store *s, struct meta_etcd_txn *t, uint64_t mod_revision)
{
    struct meta_etcd_key key;
    struct base_text value;
    base_text_init(&value, sizeof s->sent - 1);
    base_json_object(&value, NULL);
    base_json_string(&value, "life", s->lives.own);
    base_json_u64(&value, "sequence", ++s->sequence);
    base_json_object_end(&value);
    snprintf(s->sent, sizeof s->sent, "%s", base_text_str(&value));
    base_text_fini(&value);
    meta_etcd_key(&key, &s->place, "by/", s->place.member);
    meta_etcd_compare(t, key.text, mod_revision);
    meta_etcd_put(t, key.text, s->sent, 0);
}

int meta_etcd_fence_check(struct meta_etcd_store *s, uint64_t mod_revision, struct base_errbuf *err)
{
    if (mod_revision < s->fence_revision)
        return base_err(err, -EIO,
                        "etcd at %.200s was put back to what it was before: it is written to again "
                        "when it is known what is there",
                        meta_etcd_endpoint(s->client));
    s->fence_revision = mod_revision;
    return 0;
}

/* The fence as it is, which no member of etcd may answer from what it remembers. */
static int read_fence(struct meta_etcd_store *s, uint64_t deadline_ns, struct meta_etcd_fence *out,
                      struct base_errbuf *err)
{
    struct meta_etcd_txn t;
    struct meta_etcd_answer answer = {.root = NULL};
    struct meta_etcd_key key;
    struct meta_etcd_kv kv = {.key = NULL};
    meta_etcd_key(&key, &s->place, "by/", s->place.member);
    meta_etcd_txn_init(&t);
    meta_etcd_range(&t, key.text);
    int status = meta_etcd_txn_send(s->client, &t, deadline_ns, false, &answer, err);
    meta_etcd_txn_fini(&t);
    if (status == 0 && meta_etcd_answer_kv(&answer, 0, &kv) < 0)
        status = meta_etcd_refuse_value(key.text, err);
    if (status == 0) {
        out->mod_revision = kv.mod_revision;
        snprintf(out->value, sizeof out->value, "%s", kv.value != NULL ? kv.value : "");
    }
    meta_etcd_kv_fini(&kv);
    json_decref(answer.root);
    return status;
}

/* 1: it is written; 0: somebody was quicker. */
static int write_fence(struct meta_etcd_store *s, uint64_t deadline_ns, uint64_t mod_revision,
                       struct base_errbuf *err)
{
    struct meta_etcd_txn t;
    struct meta_etcd_answer answer = {.root = NULL};
    meta_etcd_txn_init(&t);
    meta_etcd_fence_add(s, &t, mod_revision);
    int status = meta_etcd_txn_send(s->client, &t, deadline_ns, true, &answer, err);
    if (status == 0)
        status = answer.succeeded;
    json_decref(answer.root);
    meta_etcd_txn_fini(&t);
    return status;
}

int meta_etcd_fence_settle(struct meta_etcd_store *s, uint64_t deadline_ns, uint64_t *at,
                           struct base_errbuf *err)
{
    char wanted[sizeof s->sent];
    struct meta_etcd_fence fence;
    snprintf(wanted, sizeof wanted, "%s", s->sent);
    s->unsettled = true;
    for (;;) {
        int status = read_fence(s, deadline_ns, &fence, err);
        if (status == 0 && strcmp(fence.value, wanted) == 0) {
            s->unsettled = false;
            *at = fence.mod_revision;
            return 1;
        }
        if (status == 0)
            status = write_fence(s, deadline_ns, fence.mod_revision, err);
        if (status == 1) {
            s->unsettled = false;
            return 0;
        }
        /* What is to be found out is the first one's fate: it stays what was sent. */
        snprintf(s->sent, sizeof s->sent, "%s", wanted);
        if (status < 0 && (status != -ETIMEDOUT || base_clock_ns() >= deadline_ns))
            return status == -ECANCELED || status == -ENOMEM ? status : -ETIMEDOUT;
    }
}

int meta_etcd_fence_bump(struct meta_etcd_store *s, uint64_t deadline_ns, struct base_errbuf *err)
{
    struct meta_etcd_fence fence;
    uint64_t at;
    int status = 0;
    while (status == 0) {
        status = s->unsettled ? meta_etcd_fence_settle(s, deadline_ns, &at, err) : 0;
        if (status >= 0)
            status = read_fence(s, deadline_ns, &fence, err);
        if (status == 0)
            status = meta_etcd_fence_check(s, fence.mod_revision, err);
        if (status == 0)
            status = write_fence(s, deadline_ns, fence.mod_revision, err);
        if (status == -ETIMEDOUT)
            s->unsettled = true;
    }
    return status == 1 ? 0 : status;
}
