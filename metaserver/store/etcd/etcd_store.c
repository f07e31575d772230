/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "etcd_private.h"

#define TIMEOUT_NS (5 * BASE_NS_PER_S)

int meta_etcd_status(int status)
{
    switch (status) {
    case -EACCES: /* of what is there, and may not be changed by us */
        return -EROFS;
    case -EXDEV:
    case -EBADMSG:
    case -ENOENT:
    case -ERANGE:
    case -EMSGSIZE:
    case -EINVAL:
    case -EPROTO:
        return -EIO;
    case -ECANCELED:
        return -EBUSY;
    default:
        return status;
    }
}

static int take_root(struct meta_etcd_store *s, const struct meta_etcd_root *root,
                     struct base_errbuf *err)
{
    if (strcmp(root->id, s->root.id) != 0)
        return base_err(err, -EIO,
                        "the store %.120s in etcd is another one by now (%s) than before (%s)",
                        s->place.prefix, root->id, s->root.id);
    s->root = *root;
    return 0;
}

int meta_etcd_check_root(struct meta_etcd_store *s, const struct meta_etcd_kv *kv,
                         struct base_errbuf *err)
{
    struct meta_etcd_root root;
    if (kv == NULL)
        return meta_etcd_say_gone(&s->place, err);
    const int status = meta_etcd_read_root(kv, &root, err);
    return status == 0 ? take_root(s, &root, err) : status;
}

/* Whatever is there is the store from now on: who asks has to hear of it anew. */
int meta_etcd_learn_root(struct meta_etcd_store *s, bool make, uint64_t deadline_ns,
                         struct base_errbuf *err)
{
    meta_etcd_forget_cluster(s->client);
    s->fence_revision = s->named_as_of = 0;
    return meta_etcd_find_root(s->client, &s->place, make, deadline_ns, &s->root, err);
}

/* That it is the one that is known: what was put back is not written to for a check. */
static int check_known(struct meta_etcd_store *s, uint64_t deadline_ns, struct base_errbuf *err)
{
    struct meta_etcd_root root;
    if (atomic_exchange(&s->base.relearn, false) || s->root.mod_revision == 0)
        return meta_etcd_learn_root(s, false, deadline_ns, err);
    const int status = meta_etcd_find_root(s->client, &s->place, false, deadline_ns, &root, err);
    return status == 0 ? take_root(s, &root, err) : status;
}

static int etcd_check(struct meta_store *store, bool write, struct base_errbuf *err)
{
    struct meta_etcd_store *s = (struct meta_etcd_store *)store;
    const uint64_t deadline_ns = base_clock_ns() + s->timeout_ns;
    int status = write && s->to_read
                     ? base_err(err, -EROFS, "the store in etcd was opened to be read")
                     : check_known(s, deadline_ns, err);
    if (status == 0)
        status = meta_etcd_ask_name(s, deadline_ns, err);
    if (status == 0 && write)
        status = meta_etcd_fence_bump(s, deadline_ns, err);
    return meta_etcd_status(status);
}

static int read_store(struct meta_etcd_store *s, struct meta_store **out, struct base_errbuf *err)
{
    int status = meta_etcd_learn_root(s, !s->to_read, base_clock_ns() + s->timeout_ns, err);
    struct meta_etcd_extent x = {.client = s->client,
                                 .place = &s->place,
                                 .generation = s->root.generation,
                                 .timeout_ns = s->timeout_ns};
    if (status == 0)
        status = meta_etcd_read_all(&x, out, err);
    if (status == 0)
        snprintf(s->base.id, sizeof s->base.id, "%s", s->root.id);
    s->base.generation = s->root.generation;
    return meta_etcd_status(status);
}

static int etcd_commit(struct meta_store *store, const struct meta_store_txn *txn,
                       struct meta_store_outcome *out)
{
    if (((struct meta_etcd_store *)store)->to_read)
        return base_err(&out->err, -EROFS, "the store in etcd was opened to be read");
    return meta_etcd_commit(store, txn, out);
}

static int etcd_replace(struct meta_store *store, meta_store_next *next, void *user,
                        struct base_errbuf *err)
{
    if (((struct meta_etcd_store *)store)->to_read)
        return base_err(err, -EROFS, "the store in etcd was opened to be read");
    return meta_etcd_replace(store, next, user, err);
}

static int etcd_load(struct meta_store *store, meta_store_visit *visit, void *user,
                     struct base_errbuf *err)
{
    struct meta_store *copy = NULL;
    int status = read_store((struct meta_etcd_store *)store, &copy, err);
    if (status == 0)
        status = meta_store_load(copy, visit, user, err);
    meta_store_close(copy);
    return status;
}

static int etcd_load_resources(struct meta_store *store, const struct meta_store_visitor *visitor,
                               struct base_errbuf *err)
{
    struct meta_store *copy = NULL;
    int status = read_store((struct meta_etcd_store *)store, &copy, err);
    if (status == 0)
        status = meta_store_load_resources(copy, visitor, err);
    meta_store_close(copy);
    return status;
}

static int etcd_check_idle(struct meta_store *store, struct base_errbuf *err)
{
    struct meta_etcd_store *s = (struct meta_etcd_store *)store;
    return meta_etcd_status(meta_etcd_check_idle(s, base_clock_ns() + s->timeout_ns, err));
}

static void etcd_close(struct meta_store *store)
{
    struct meta_etcd_store *s = (struct meta_etcd_store *)store;
    meta_etcd_client_free(s->client);
    free(s);
}

static const struct meta_store_ops etcd_ops = {
    .name = "etcd",
    .close = etcd_close,
    .load = etcd_load,
    .check = etcd_check,
    .commit = etcd_commit,
    .load_resources = etcd_load_resources,
    .replace = etcd_replace,
    .check_idle = etcd_check_idle,
};

int meta_store_etcd(const struct meta_store_etcd_config *config, struct meta_store **out,
                    struct base_errbuf *err)
{
    struct meta_etcd_store *s = calloc(1, sizeof *s);
    if (s == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    s->base.ops = &etcd_ops;
    s->timeout_ns = config->timeout_ns != 0 ? config->timeout_ns : TIMEOUT_NS;
    int status = meta_etcd_read_place(config, &s->place, err);
    if (status == 0)
        status = meta_etcd_take_lives(config, &s->lives, err);
    s->has_watch = config->life != NULL;
    s->to_read = config->to_read;
    s->base.shared = true;
    s->base.untried = !config->to_read;
    if (status == 0)
        status = meta_etcd_client_new(config, &s->client, err);
    if (status != 0) {
        free(s);
        return status;
    }
    snprintf(s->base.prefix, sizeof s->base.prefix, "%s", s->place.prefix);
    *out = &s->base;
    return 0;
}
