/* SPDX-License-Identifier: Apache-2.0 */
#include "post_looks.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cluster.h"
#include "ledger.h"
#include "process.h"
#include "session_state.h"
#include "transmit/wr.h"

enum { POSTS_KEPT = 1 << 14, NODES = CLUSTER_NODES + CLUSTER_METASERVERS };

/* Memory that a request names. */
struct claim {
    uint64_t addr, length;
    const void *session;
    uint32_t qpn, tenant, key;
    bool remote; /* else it is its session's own, and key says nothing */
};

static struct node_posts {
    struct claim *at; /* POSTS_KEPT; NULL: its lanes have posted nothing */
    uint64_t next;
} posts[NODES];

void play_posts_init(void)
{
    memset(posts, 0, sizeof posts);
}

void play_posts_fini(void)
{
    for (uint32_t i = 0; i < NODES; i++)
        free(posts[i].at);
    play_posts_init();
}

static void note_claim(const struct claim *claim)
{
    struct node_posts *p = &posts[play_process->host->number];
    if (p->at == NULL)
        p->at = calloc(POSTS_KEPT, sizeof *p->at);
    BASE_ASSERT(p->at != NULL);
    p->at[p->next++ % POSTS_KEPT] = *claim;
}

/* The newest one first, which it most often is. */
static bool find_claim(const struct sim_access *a, bool (*is)(const struct claim *, const void *),
                       const void *whose)
{
    const struct node_posts *p = &posts[a->initiator];
    const uint64_t kept = p->next < POSTS_KEPT ? p->next : POSTS_KEPT;
    for (uint64_t i = 1; i <= kept; i++) {
        const struct claim *c = &p->at[(p->next - i) % POSTS_KEPT];
        if (c->qpn == a->qpn && a->addr >= c->addr && a->addr - c->addr <= c->length &&
            a->bytes <= c->length - (a->addr - c->addr) && c->remote == a->remote &&
            (!a->remote || c->key == a->key) && is(c, whose))
            return true;
    }
    return false;
}

static bool is_of_session(const struct claim *c, const void *session)
{
    return c->session == session;
}

static bool is_of_tenant(const struct claim *c, const void *tenant)
{
    return c->tenant == *(const uint32_t *)tenant;
}

bool play_posts_own(const struct sim_access *access, const void *session)
{
    return find_claim(access, is_of_session, session);
}

bool play_posts_reach(const struct sim_access *access, uint32_t tenant)
{
    return find_claim(access, is_of_tenant, &tenant);
}

/* ---- what is posted */

static bool is_within(const struct ibv_sge *sge, uint64_t from, uint64_t bytes)
{
    return sge->addr >= from && sge->addr - from <= bytes &&
           sge->length <= bytes - (sge->addr - from);
}

/* An arena has two registrations while it gets another one. */
static bool is_own(const struct session *s, const struct ibv_sge *sge)
{
    for (uint32_t i = 0; i < s->arenas; i++)
        if (is_within(sge, s->arena[i].iova, s->arena[i].bytes) ||
            ((s->reregistering >> i & 1) != 0 &&
             is_within(sge, s->reregistration[i].old_iova, s->arena[i].bytes)))
            return true;
    return false;
}

/* What a WRITE carries itself is in the request, or in memory of the lane's. */
static void take_down(const struct wr *w, uint32_t qpn)
{
    struct claim c = {.session = w->session->ro, .tenant = w->session->tenant, .qpn = qpn};
    const bool carries = (w->fab.send_flags & IBV_SEND_INLINE) || (w->special & SPECIAL_COPY);
    for (int i = 0; i < w->fab.num_sge && !carries; i++) {
        c.addr = w->fab.sg_list[i].addr;
        c.length = w->fab.sg_list[i].length;
        note_claim(&c);
        if (!is_own(w->session, &w->fab.sg_list[i]))
            play_violation(play_process->name,
                           "a request of session %u names memory that the session does not have: "
                           "%llu bytes at 0x%llx",
                           w->session->id, (unsigned long long)c.length,
                           (unsigned long long)c.addr);
    }
    c.addr = w->fab.remote_addr;
    c.length = w->length;
    c.key = w->fab.key.rkey;
    c.remote = true;
    note_claim(&c);
}

/* Lanes alone post what is none of a datagram. */
int __wrap_fab_post_send(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad)
{
    for (struct fab_wr *f = wr; f != NULL && qp->type != FAB_QP_UD; f = f->next) {
        const struct wr *w =
            (const struct wr *)(const void *)((const uint8_t *)f - offsetof(struct wr, fab));
        if (w->kind == WR_WORKER)
            take_down(w, qp->qpn);
    }
    return __real_fab_post_send(qp, wr, bad);
}
