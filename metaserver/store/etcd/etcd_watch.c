/* SPDX-License-Identifier: Apache-2.0 */
/* The watch. What the stream gives is believed as far as it goes; that it gives everything is
 * not: each second the store is asked which revision of ours is the last, and now and then all
 * keys are listed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/random.h"
#include "etcd_watch.h"

enum {
    ASK_MS = 1000,  /* a third of META_STORE_SILENCE_NS */
    CALL_MS = 2000, /* one that is asked for nothing but that */
    RETRY_MS = 50,  /* doubled with each failure */
    RETRY_MOST = 6, /* so often */
    CHECK_S = 180,
    STRIKES = 3,
};

#define TIMEOUT_NS (5 * BASE_NS_PER_S)

/* ---- the store, as far as it is known */

static void close_stream(struct meta_etcd_watch *w)
{
    meta_etcd_stream_close(w->client);
    json_decref(w->parts);
    w->parts = NULL;
    w->open = false;
}

/* The keys beside a generation, as of one revision. */
static int ask_head(struct meta_etcd_watch *w, uint64_t timeout_ns, struct meta_etcd_answer *answer,
                    struct base_errbuf *err)
{
    struct meta_etcd_key key;
    struct meta_etcd_txn t;
    meta_etcd_txn_init(&t);
    meta_etcd_key(&key, &w->place, "store", "");
    meta_etcd_range(&t, key.text);
    meta_etcd_key(&key, &w->place, "by/", "");
    meta_etcd_range_newest(&t, key.text);
    meta_etcd_key(&key, &w->place, "members/", "");
    meta_etcd_range(&t, key.text);
    const int status =
        meta_etcd_txn_send(w->client, &t, base_clock_ns() + timeout_ns, false, answer, err);
    meta_etcd_txn_fini(&t);
    return status;
}

static int read_root(struct meta_etcd_watch *w, const struct meta_etcd_answer *answer,
                     struct meta_etcd_root *out, struct base_errbuf *err)
{
    struct meta_etcd_kv kv;
    const int found = meta_etcd_answer_kv(answer, 0, &kv);
    int status = found == 1   ? meta_etcd_read_root(&kv, out, err)
                 : found == 0 ? meta_etcd_say_gone(&w->place, err)
                              : meta_etcd_refuse_value("store", err);
    meta_etcd_kv_fini(&kv);
    return status;
}

/* The last revision of ours, as that head has it. */
static uint64_t read_newest(const struct meta_etcd_answer *answer,
                            const struct meta_etcd_root *root)
{
    struct meta_etcd_kv newest = {.key = NULL};
    (void)meta_etcd_answer_kv(answer, 1, &newest);
    const uint64_t revision = newest.mod_revision;
    meta_etcd_kv_fini(&newest);
    return revision > root->mod_revision ? revision : root->mod_revision;
}

/* One that was put back may have gone on since, beyond what was known. */
static int take_snapshot(struct meta_etcd_watch *w, struct base_errbuf *err)
{
    struct meta_etcd_answer answer = {.root = NULL};
    struct meta_etcd_extent x = {
        .client = w->client, .place = &w->place, .timeout_ns = w->timeout_ns};
    struct meta_store_heard *h = calloc(1, sizeof *h);
    const uint64_t now = base_clock_ns(), generation = w->root.generation;
    uint64_t newest = w->newest;
    if (h == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    close_stream(w);
    h->kind = META_STORE_HEARD_SNAPSHOT;
    int status =
        meta_etcd_find_root(w->client, &w->place, !w->began, now + w->timeout_ns, &w->root, err);
    if (status == 0)
        status = ask_head(w, w->timeout_ns, &answer, err);
    if (status == 0)
        status = read_root(w, &answer, &w->root, err);
    if (status == 0) {
        newest = read_newest(&answer, &w->root);
        (void)meta_etcd_member_take(w, meta_etcd_answer_kvs(&answer, 2));
        x.generation = w->root.generation;
        h->at = x.revision = answer.revision;
        status = meta_etcd_read_all(&x, &h->snapshot, err);
    }
    json_decref(answer.root);
    w->put_back |=
        w->root.generation != generation || newest < w->newest || (status == 0 && h->at < w->at);
    if (status == 0) {
        h->snapshot->generation = w->root.generation;
        snprintf(h->snapshot->id, sizeof h->snapshot->id, "%s", w->root.id);
        status = meta_etcd_heard_members(w, h, err);
    }
    if (status != 0) {
        meta_store_heard_free(h);
        return status;
    }
    h->put_back = w->began && w->put_back;
    w->put_back = false;
    w->at = w->resume = h->at;
    w->newest = newest;
    w->digest = x.digest;
    w->wants_snapshot = false;
    w->began = true;
    w->owed = w->strikes = 0;
    w->heard_ns = w->asked_ns = now;
    w->check_ns = now + w->check_every_ns;
    return meta_etcd_heard_add(w, h, err);
}

static int open_stream(struct meta_etcd_watch *w, struct base_errbuf *err)
{
    struct base_text body;
    struct meta_etcd_key end;
    char digits[24];
    close_stream(w);
    base_text_init(&body, 4 * META_ETCD_KEY_BYTES);
    snprintf(digits, sizeof digits, "%" PRIu64, w->resume + 1);
    meta_etcd_key_end(&end, w->place.prefix);
    base_json_object(&body, NULL);
    base_json_object(&body, "create_request");
    meta_etcd_bytes(&body, "key", w->place.prefix);
    meta_etcd_bytes(&body, "range_end", end.text);
    base_json_string(&body, "start_revision", digits);
    base_json_bool(&body, "progress_notify", true);
    base_json_bool(&body, "prev_kv", true);
    base_json_object_end(&body);
    base_json_object_end(&body);
    const int status =
        body.error != 0 ? base_err(err, body.error, "out of memory")
                        : meta_etcd_stream_open(w->client, "/v3/watch", base_text_str(&body), err);
    base_text_fini(&body);
    w->open = status == 0;
    return status;
}

static int tell_members(struct meta_etcd_watch *w, struct base_errbuf *err)
{
    struct meta_store_heard *h = calloc(1, sizeof *h);
    if (h == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    h->kind = META_STORE_HEARD_MEMBERS;
    h->at = w->at;
    const int status = meta_etcd_heard_members(w, h, err);
    if (status == 0)
        return meta_etcd_heard_add(w, h, err);
    meta_store_heard_free(h);
    return status;
}

/* The last revision of ours is known: whether the stream has given it. */
static void compare_position(struct meta_etcd_watch *w, uint64_t newest, uint64_t revision,
                             uint64_t now)
{
    if (newest <= w->at) {
        w->owed = w->strikes = 0;
        w->heard_ns = now;
        w->resume = revision;
        return;
    }
    /* What it owed a while ago it still owes: it does not know, or will not say. */
    if (w->owed > w->at && w->open) {
        w->wants_snapshot |= ++w->strikes > STRIKES;
        close_stream(w);
    }
    w->owed = newest;
}

static int ask_position(struct meta_etcd_watch *w, struct base_errbuf *err)
{
    struct meta_etcd_answer answer = {.root = NULL};
    struct meta_etcd_root root = {.generation = 0};
    const uint64_t now = base_clock_ns();
    int status = ask_head(w, CALL_MS * BASE_NS_PER_MS, &answer, err);
    w->asked_ns = now;
    if (status == 0) {
        status = read_root(w, &answer, &root, err);
        w->wants_snapshot |= status != 0;
    }
    if (status == 0) {
        const uint64_t last = read_newest(&answer, &root);
        if (answer.revision < w->at || last < w->newest || strcmp(root.id, w->root.id) != 0)
            w->wants_snapshot = w->put_back = true; /* or it is another one */
        else
            compare_position(w, last, answer.revision, now);
        w->newest = last;
        if (meta_etcd_member_take(w, meta_etcd_answer_kvs(&answer, 2)) && !w->wants_snapshot)
            status = tell_members(w, err);
    }
    json_decref(answer.root);
    if (w->open && meta_etcd_stream_is_elsewhere(w->client))
        close_stream(w);
    return status;
}

/* Whether what is stored is what was given. */
static int check_all(struct meta_etcd_watch *w, struct base_errbuf *err)
{
    struct meta_etcd_extent x = {.client = w->client,
                                 .place = &w->place,
                                 .generation = w->root.generation,
                                 .revision = w->resume,
                                 .timeout_ns = w->timeout_ns};
    const int status = meta_etcd_read_all(&x, NULL, err);
    if (status == 0)
        w->check_ns = base_clock_ns() + w->check_every_ns;
    w->put_back |= status == 0 && x.digest != w->digest; /* or etcd has given it wrongly */
    w->wants_snapshot |= status == -ERANGE || w->put_back;
    return status == -ERANGE ? 0 : status;
}

/* ---- what is done when */

static int take_stream(struct meta_etcd_watch *w, uint64_t until_ns, struct base_errbuf *err)
{
    json_t *response = NULL;
    const uint64_t now = base_clock_ns();
    int status =
        meta_etcd_stream_next(w->client, until_ns > now ? until_ns - now : 0, &response, err);
    if (status == 1)
        status = meta_etcd_news_take(w, response, err);
    json_decref(response);
    if (status == 0 && w->owed != 0 && w->at >= w->owed) {
        w->owed = w->strikes = 0;
        w->heard_ns = w->asked_ns != 0 ? w->asked_ns : w->heard_ns;
    }
    if (status < 0) {
        close_stream(w);
        w->wants_snapshot |= status == -ERANGE || status == -EXDEV || status == -EBADMSG ||
                             status == -EMSGSIZE || status == -ENOMEM;
    }
    return status;
}

/* The next thing that is to be done; the last of them waits. */
static int do_next(struct meta_etcd_watch *w, uint64_t until_ns, struct base_errbuf *err)
{
    const uint64_t now = base_clock_ns();
    int status = meta_etcd_member_keep(w, now, err);
    if (status != 0)
        return status;
    w->wants_snapshot |= atomic_exchange(&w->asked, false);
    if (w->wants_snapshot)
        return take_snapshot(w, err);
    if (!w->open)
        return open_stream(w, err);
    if (now - w->asked_ns >= ASK_MS * BASE_NS_PER_MS)
        return ask_position(w, err);
    if (now >= w->check_ns && w->owed == 0)
        return check_all(w, err);
    const uint64_t ask_ns = w->asked_ns + ASK_MS * BASE_NS_PER_MS;
    return take_stream(w, ask_ns < until_ns ? ask_ns : until_ns, err);
}

/* It is tried again later, and later each time. */
static void note_failure(struct meta_etcd_watch *w, int status, const struct base_errbuf *err)
{
    uint16_t random = 0;
    const unsigned times = w->failures < RETRY_MOST ? w->failures : RETRY_MOST;
    const uint64_t ms = (uint64_t)RETRY_MS << times;
    (void)base_random_bytes(&random, sizeof random);
    w->failures++;
    w->failed_with = status;
    w->failure = *err;
    w->retry_ns = base_clock_ns() + (ms / 2 + random % ms) * BASE_NS_PER_MS;
    if (status == -EXDEV) {
        meta_etcd_forget_cluster(w->client);
        w->wants_snapshot = w->put_back = true;
    }
}

static bool is_heard(const struct meta_etcd_watch *w, uint64_t now)
{
    return w->began && !w->wants_snapshot && now - w->heard_ns <= META_STORE_SILENCE_NS;
}

/* What is said when there is nothing to give. */
static int say_nothing(struct meta_etcd_watch *w, struct base_errbuf *err)
{
    const uint64_t now = base_clock_ns();
    if (w->name_taken && now >= w->name_until_ns) {
        *err = w->name_why;
        return -EADDRINUSE;
    }
    if (is_heard(w, now))
        return 0;
    if (w->failures == 0)
        return base_err(err, -EBUSY, "etcd at %.200s keeps back what was stored last",
                        meta_etcd_endpoint(w->client));
    *err = w->failure;
    return w->failed_with;
}

static struct meta_store_heard *take_heard(struct meta_etcd_watch *w)
{
    struct meta_etcd_heard *first = STAILQ_FIRST(&w->heard);
    struct meta_store_heard *heard = first->heard;
    STAILQ_REMOVE_HEAD(&w->heard, link);
    free(first);
    return heard;
}

static int watch_next(struct meta_store_watch *watch, uint64_t timeout_ns,
                      struct meta_store_heard **out, struct base_errbuf *err)
{
    struct meta_etcd_watch *w = (struct meta_etcd_watch *)watch;
    const uint64_t most_ns = 3600 * BASE_NS_PER_S;
    const uint64_t until_ns = base_clock_ns() + (timeout_ns < most_ns ? timeout_ns : most_ns);
    for (;;) {
        if (meta_etcd_stopped(w->client))
            return base_err(err, -ECANCELED, "stopped");
        if (!STAILQ_EMPTY(&w->heard)) {
            *out = take_heard(w);
            return 1;
        }
        uint64_t now = base_clock_ns();
        if (now < w->retry_ns) {
            const uint64_t end = w->retry_ns < until_ns ? w->retry_ns : until_ns;
            meta_etcd_wait(w->client, end > now ? end - now : 0);
            now = base_clock_ns();
        }
        if (now >= w->retry_ns) {
            struct base_errbuf why = {""};
            const int status = do_next(w, until_ns, &why);
            if (status < 0 && status != -ECANCELED)
                note_failure(w, status, &why);
            else if (is_heard(w, base_clock_ns()) && w->open)
                w->failures = 0;
            if (status == -EDQUOT ||
                (status < 0 && status != -ECANCELED && !is_heard(w, base_clock_ns()))) {
                *err = why;
                return status;
            }
        }
        if (base_clock_ns() >= until_ns && STAILQ_EMPTY(&w->heard))
            return say_nothing(w, err);
    }
}

static void watch_ask(struct meta_store_watch *watch)
{
    atomic_store(&((struct meta_etcd_watch *)watch)->asked, true);
}

static void watch_stop(struct meta_store_watch *watch)
{
    meta_etcd_stop(((struct meta_etcd_watch *)watch)->client);
}

static void watch_close(struct meta_store_watch *watch)
{
    struct meta_etcd_watch *w = (struct meta_etcd_watch *)watch;
    meta_etcd_resume(w->client);
    close_stream(w);
    meta_etcd_member_leave(w);
    while (!STAILQ_EMPTY(&w->heard))
        meta_store_heard_free(take_heard(w));
    meta_etcd_client_free(w->client);
    free(w);
}

static const struct meta_store_watch_ops watch_ops = {
    .next = watch_next, .ask = watch_ask, .stop = watch_stop, .close = watch_close};

/* ---- opening */

/* As it is stored, and so as it is read again. */
static int read_about(const char *about, char out[META_STORE_MEMBER_BYTES], struct base_errbuf *err)
{
    json_error_t error;
    json_t *root =
        json_loads(about != NULL && *about != '\0' ? about : "{}", JSON_REJECT_DUPLICATES, &error);
    char *text = json_dumps(root, JSON_COMPACT);
    const bool good = text != NULL && strlen(text) < META_STORE_MEMBER_BYTES;
    if (good)
        snprintf(out, META_STORE_MEMBER_BYTES, "%s", text);
    free(text);
    json_decref(root);
    return good ? 0
                : base_err(err, -EINVAL,
                           "what a metaserver says of itself is no JSON, or longer than %d bytes",
                           META_STORE_MEMBER_BYTES - 1);
}

void meta_etcd_watch_check_every(struct meta_store_watch *watch, uint64_t ns)
{
    struct meta_etcd_watch *w = (struct meta_etcd_watch *)watch;
    w->check_every_ns = ns;
    w->check_ns = base_clock_ns() + ns;
}

int meta_store_etcd_watch(const struct meta_store_etcd_config *config,
                          struct meta_store_watch **out, struct base_errbuf *err)
{
    struct meta_etcd_watch *w = calloc(1, sizeof *w);
    if (w == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    STAILQ_INIT(&w->heard);
    w->base.ops = &watch_ops;
    w->timeout_ns = config->timeout_ns != 0 ? config->timeout_ns : TIMEOUT_NS;
    w->check_every_ns = CHECK_S * BASE_NS_PER_S;
    w->wants_snapshot = true;
    meta_etcd_member_begin(w, base_clock_ns());
    int status = meta_etcd_read_place(config, &w->place, err);
    if (status == 0)
        status = read_about(config->about, w->about, err);
    if (status == 0)
        status = meta_etcd_take_lives(config, &w->lives, err);
    if (status == 0)
        status = meta_etcd_client_new(config, &w->client, err);
    if (status != 0) {
        free(w);
        return status;
    }
    *out = &w->base;
    return 0;
}
