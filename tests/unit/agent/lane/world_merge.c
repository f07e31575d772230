/* SPDX-License-Identifier: Apache-2.0 */
#include "world_merge.h"

#include <check.h>
#include <errno.h>

#include "fabric/provider.h"
#include "world_streams.h"

enum { TENANT = 1, PASSES = 4000 };

static struct {
    struct fab *fab;
    const struct lane *lane;
    const struct fab_ops *real;
    struct fab_ops ops;
    struct world_posts posts;
} watch;

static void count_post(const struct fab_wr *wr)
{
    uint64_t bytes = 0;
    for (int i = 0; i < wr->num_sge; i++)
        bytes += wr->sg_list[i].length;
    if (bytes > watch.posts.most_bytes)
        watch.posts.most_bytes = bytes;
    watch.posts.requests++;
    watch.posts.bytes += bytes;
    watch.posts.signaled += (wr->send_flags & IBV_SEND_SIGNALED) != 0;
    watch.posts.last_not_after = wr->key.not_after_ns;
    if (wr->num_sge > watch.posts.most_sges)
        watch.posts.most_sges = wr->num_sge;
}

static void watch_count(void)
{
    struct lane_stats stats;
    lane_stats(watch.lane, &stats);
    watch.posts.fell |= stats.work_requests < watch.posts.counted;
    watch.posts.counted = stats.work_requests;
}

/* By the test's clock: the device's own, which is another, is not asked. */
static bool is_too_late(struct fab_wr *first)
{
    for (struct fab_wr *wr = first; wr != NULL && watch.posts.now_ns != NULL; wr = wr->next) {
        const uint64_t until_ns = wr->key.not_after_ns;
        if (until_ns != 0 && *watch.posts.now_ns + watch.posts.pauses_ns > until_ns)
            return true;
    }
    for (struct fab_wr *wr = first; wr != NULL && watch.posts.now_ns != NULL; wr = wr->next)
        wr->key.not_after_ns = 0;
    return false;
}

static void call_before(void)
{
    void (*before)(void) = watch.posts.before;
    if (before == NULL || watch.posts.requests < watch.posts.before_request)
        return;
    watch.posts.before = NULL;
    before();
}

static int post_watched(struct fab_qp *qp, struct fab_wr *first, struct fab_wr **bad)
{
    struct fab_wr *wr = first;
    watch_count();
    if (watch.posts.refuse_every != 0 && ++watch.posts.doorbells % watch.posts.refuse_every == 0) {
        *bad = first;
        return -ENOMEM;
    }
    for (; wr != NULL && !(watch.posts.refuses_lists && wr->num_sge > 1); wr = wr->next)
        count_post(wr);
    call_before();
    if (wr == NULL && is_too_late(first)) {
        *bad = first;
        return -ETIME;
    }
    if (wr == NULL)
        return watch.real->post_send(qp, first, bad);
    watch.posts.refused++;
    struct fab_wr *last = first;
    if (wr != first) { /* what is before it is taken */
        while (last->next != wr)
            last = last->next;
        last->next = NULL;
        ck_assert_int_eq(watch.real->post_send(qp, first, bad), 0);
        last->next = wr;
    }
    *bad = wr;
    return -EINVAL;
}

struct world_posts *world_watch_posts(struct world_node *n)
{
    const uint64_t *now_ns = watch.posts.now_ns;
    if (n->fab->ops == &watch.ops) { /* already */
        watch.posts = (struct world_posts){.now_ns = now_ns};
        return &watch.posts;
    }
    watch.fab = n->fab;
    watch.lane = n->lane;
    watch.real = n->fab->ops;
    watch.ops = *watch.real;
    watch.ops.post_send = post_watched;
    watch.posts = (struct world_posts){.requests = 0};
    n->fab->ops = &watch.ops;
    return &watch.posts;
}

void world_watch_end(void)
{
    watch.fab->ops = watch.real;
}

void world_mergers_open(struct world *w, struct world_mergers *m, uint32_t workers)
{
    for (int i = 0; i < WORLD_NODES; i++)
        world_mr_lease_ns[i] = 1000000000; /* no record is READ again in between */
    world_ack_timeout = 19;                /* 2 s: whatever else the host does */
    world_path_patience_ns = 400000000;
    world_open(w);
    if (world_streams && !w->rc)
        world_streams_begin(&w->node[0], 3);
    if (world_posts_in_time || world_deadlines)
        world_watch_posts(&w->node[0])->now_ns = &w->now_ns;
    m->workers = workers;
    world_attach(w, &m->owner, 1, 0, TENANT);
    m->vkey = world_register(w, &m->owner, 0, WORLD_ARENA,
                             SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC);
    ck_assert_uint_ne(m->vkey, 0);
    for (uint32_t i = 0; i < workers; i++) {
        world_attach(w, &m->worker[i], 0, i, TENANT);
        ck_assert_int_eq(world_connect(w, &m->worker[i], 0, 1), 0);
        const struct schema_cqe e =
            world_do(w, &m->worker[i], world_rw(SCHEMA_OP_READ, 1, 0, 8, m->vkey, 0), PASSES * 100);
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    }
}

void world_mergers_close(struct world *w, struct world_mergers *m)
{
    for (uint32_t i = 0; i < m->workers; i++)
        if (m->worker[i].memory != NULL)
            world_detach(w, &m->worker[i]);
    if (world_streams && !w->rc)
        world_streams_end(&w->node[0]);
    world_detach(w, &m->owner);
    world_close(w);
}

void world_elsewhere_open(struct world *w, struct world_elsewhere *e)
{
    enum { OF_NODE_2 = 0, OF_NODE_0 = 20 };
    world_attach(w, &e->owner, 2, OF_NODE_2, TENANT);
    e->vkey =
        world_register(w, &e->owner, 0, WORLD_ARENA, SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE);
    ck_assert_uint_ne(e->vkey, 0);
    world_attach(w, &e->worker, 0, OF_NODE_0, TENANT);
    ck_assert_int_eq(world_connect(w, &e->worker, 0, 2), 0);
    const struct schema_cqe c =
        world_do(w, &e->worker, world_rw(SCHEMA_OP_READ, 1, 0, 8, e->vkey, 0), PASSES * 100);
    ck_assert_uint_eq(c.status, IBV_WC_SUCCESS);
}

void world_elsewhere_close(struct world *w, struct world_elsewhere *e)
{
    world_detach(w, &e->worker);
    world_detach(w, &e->owner);
}

void world_mergers_ring(struct world *w, const struct world_mergers *m)
{
    for (uint32_t i = 0; i < m->workers; i++)
        lane_doorbell(w->node[0].lane, m->worker[i].id);
}
