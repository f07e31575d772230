/* SPDX-License-Identifier: Apache-2.0 */
#include "post_looks.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cluster.h"
#include "kedge.h"
#include "ledger.h"
#include "process.h"
#include "session_state.h"
#include "transmit/merge.h"
#include "transmit/physical_qp.h"
#include "transmit/wr.h"

enum {
    POSTS_KEPT = 1 << 14,
    NODES = CLUSTER_NODES + CLUSTER_METASERVERS,
    RIDERS = 1024 /* of one node, that are merged and not posted yet */
};

/* A request that goes in another one's work request. */
struct rider {
    const struct wr *lead, *wr;
};

/* Memory that a request names. */
struct claim {
    uint64_t addr, length;
    const void *session;
    const struct wr *wr;
    uint64_t wr_id, post, posted_ns;
    uint32_t qpn, tenant, key;
    bool remote; /* else it is its session's own, and key says nothing */
};

/* A request that a lane has not completed: what it was posted by first, and last; and by which of
 * these a device has written to its peer's memory, or 0. */
struct out {
    const struct wr *wr;
    uint64_t first, post, carried;
};

static struct node_posts {
    struct claim *at; /* POSTS_KEPT; NULL: its lanes have posted nothing */
    uint64_t next, post;
    struct out *out;
    uint32_t outs, room;
    struct rider rider[RIDERS];
    uint32_t riders;
} posts[NODES];
static uint64_t merged;

uint64_t play_posts_merged(void)
{
    return merged;
}

void play_posts_init(void)
{
    memset(posts, 0, sizeof posts);
    merged = 0;
}

void play_posts_fini(void)
{
    for (uint32_t i = 0; i < NODES; i++) {
        free(posts[i].at);
        free(posts[i].out);
    }
    play_posts_init();
}

void play_posts_new_life(uint32_t node)
{
    posts[node].outs = posts[node].riders = 0;
}

static struct node_posts *posts_here(void)
{
    return &posts[play_process->host->number];
}

static void note_claim(const struct claim *claim)
{
    struct node_posts *p = posts_here();
    if (p->at == NULL)
        p->at = calloc(POSTS_KEPT, sizeof *p->at);
    BASE_ASSERT(p->at != NULL);
    p->at[p->next++ % POSTS_KEPT] = *claim;
}

/* The newest one first, which it most often is. */
static const struct claim *find_claim(const struct sim_access *a,
                                      bool (*is)(const struct claim *, const void *),
                                      const void *whose)
{
    const struct node_posts *p = &posts[a->initiator];
    const uint64_t kept = p->next < POSTS_KEPT ? p->next : POSTS_KEPT;
    for (uint64_t i = 1; i <= kept; i++) {
        const struct claim *c = &p->at[(p->next - i) % POSTS_KEPT];
        if (c->qpn == a->qpn && a->addr >= c->addr && a->addr - c->addr <= c->length &&
            a->bytes <= c->length - (a->addr - c->addr) && c->remote == a->remote &&
            c->wr_id == a->wr_id && (!a->remote || c->key == a->key) && is(c, whose))
            return c;
    }
    return NULL;
}

static bool is_of_session(const struct claim *c, const void *session)
{
    return c->session == session;
}

static bool is_of_tenant(const struct claim *c, const void *tenant)
{
    return c->tenant == *(const uint32_t *)tenant;
}

static struct out *find_out(const struct node_posts *p, const struct wr *w)
{
    for (uint32_t i = 0; i < p->outs; i++)
        if (p->out[i].wr == w)
            return &p->out[i];
    return NULL;
}

/* What is said of it is said to its worker, who does with its memory what it likes. */
static bool is_out(const struct node_posts *p, const struct claim *c)
{
    for (uint32_t i = 0; i < p->outs; i++)
        if (p->out[i].post == c->post)
            return true;
    return false;
}

/* The first bytes of *rest, as far as one request names them, which *rest loses. */
static const struct claim *take_claim(struct sim_access *rest,
                                      bool (*is)(const struct claim *, const void *),
                                      const void *whose)
{
    struct sim_access first = *rest;
    first.bytes = first.bytes > 0;
    const struct claim *c = find_claim(&first, is, whose);
    if (c == NULL)
        return NULL;
    const uint64_t room = c->length - (rest->addr - c->addr);
    const uint32_t n = rest->bytes < room ? rest->bytes : (uint32_t)room;
    rest->addr += n;
    rest->bytes -= n;
    return c;
}

/* A device moves what was merged as one: each part has to be somebody's. */
enum play_posted play_posts_own(const struct sim_access *access, const void *session)
{
    struct sim_access rest = *access;
    bool over = false;
    do {
        const struct claim *c = take_claim(&rest, is_of_session, session);
        if (c == NULL)
            return PLAY_POST_NONE;
        over |= !is_out(&posts[access->initiator], c);
    } while (rest.bytes > 0);
    return over ? PLAY_POST_OVER : PLAY_POST_OUT;
}

/* Whether it was, by another post than this claim is of. Over is over: nobody posts it again. */
static bool was_carried_out(const struct node_posts *p, const struct claim *c)
{
    struct out *o = find_out(p, c->wr);
    if (o == NULL || c->post < o->first)
        return false;
    if (o->carried == 0)
        o->carried = c->post;
    return o->carried != c->post;
}

enum play_posted play_posts_reach(const struct sim_access *access, uint32_t tenant)
{
    struct sim_access rest = *access;
    bool again = false;
    do {
        const struct claim *c = take_claim(&rest, is_of_tenant, &tenant);
        if (c == NULL)
            return PLAY_POST_NONE;
        again |= access->kind != SIM_READ && was_carried_out(&posts[access->initiator], c);
    } while (rest.bytes > 0);
    return again ? PLAY_POST_AGAIN : PLAY_POST_OUT;
}

uint64_t play_posts_reach_ns(const struct sim_access *access, uint32_t tenant)
{
    struct sim_access rest = *access;
    uint64_t last_ns = 0;
    do {
        const struct claim *c = take_claim(&rest, is_of_tenant, &tenant);
        if (c == NULL)
            return 0;
        last_ns = c->posted_ns > last_ns ? c->posted_ns : last_ns;
    } while (rest.bytes > 0);
    return last_ns;
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

/* ---- what is out */

/* Whatever it was posted by before is over with that. */
static void note_out(struct node_posts *p, const struct wr *w)
{
    struct out *o = find_out(p, w);
    if (o == NULL && p->outs == p->room) {
        p->room = p->room * 2 + 64;
        p->out = realloc(p->out, p->room * sizeof *p->out);
        BASE_ASSERT(p->out != NULL);
    }
    ++p->post;
    if (o == NULL) {
        o = &p->out[p->outs++];
        *o = (struct out){.wr = w, .first = p->post};
    }
    o->post = p->post;
}

/* What has reached its peer's memory was sent, whatever became of the rest of it. */
static void look_at_end(const struct out *o, enum ibv_wc_status status, uint32_t vendor_err)
{
    const struct ibv_wc wc = {.status = status, .vendor_err = vendor_err};
    if (o->carried != 0 && kedge_never_sent(&wc) == 1)
        play_violation(play_process->name,
                       "a request of which bytes were written is said to have never been sent: %s",
                       kedge_reason_str(vendor_err));
}

static void note_end(const struct wr *w, enum ibv_wc_status status, uint32_t vendor_err)
{
    struct node_posts *p = posts_here();
    struct out *o = find_out(p, w);
    if (o == NULL)
        return;
    look_at_end(o, status, vendor_err);
    *o = p->out[--p->outs];
}

void __wrap_lane_batch_request_over(struct lane *l, struct wr *w, enum ibv_wc_status status,
                                    uint32_t reason)
{
    note_end(w, status, reason);
    __real_lane_batch_request_over(l, w, status, reason);
}

void __wrap_lane_session_complete(struct lane *l, struct wr *w, enum ibv_wc_status status,
                                  uint32_t vendor_err)
{
    note_end(w, status, vendor_err);
    __real_lane_session_complete(l, w, status, vendor_err);
}

/* A message's first piece is its header, in memory of the lane's. */
static bool has_header(const struct wr *w)
{
    return w->fab.opcode == IBV_WR_SEND || w->fab.opcode == IBV_WR_SEND_WITH_IMM;
}

/* Of a large one nothing else goes. */
static bool is_header(const struct wr *w)
{
    return has_header(w) && (w->special & SPECIAL_LARGE);
}

/* What a WRITE carries itself is in the request, or in memory of the lane's. wr_id: of its work
 * request. */
static void take_down(const struct wr *w, uint32_t qpn, uint64_t wr_id)
{
    note_out(posts_here(), w);
    struct claim c = {.session = w->session->ro,
                      .tenant = w->session->tenant,
                      .qpn = qpn,
                      .wr = w,
                      .wr_id = wr_id,
                      .post = posts_here()->post,
                      .posted_ns = play_now_ns()};
    const bool carries = (w->fab.send_flags & IBV_SEND_INLINE) || (w->special & SPECIAL_COPY);
    for (int i = has_header(w); i < wr_pieces(w) && !carries; i++) {
        c.addr = w->sge[i].addr;
        c.length = w->sge[i].length;
        note_claim(&c);
        if (!is_own(w->session, &w->sge[i]))
            play_violation(play_process->name,
                           "a request of session %u names memory that the session does not have: "
                           "%llu bytes at 0x%llx",
                           w->session->id, (unsigned long long)c.length,
                           (unsigned long long)c.addr);
    }
    if (has_header(w))
        return;
    c.addr = w->fab.remote_addr;
    c.length = w->length;
    c.key = w->fab.key.rkey;
    c.remote = true;
    note_claim(&c);
}

/* ---- what is merged */

static bool is_of_vqp(const struct wr *a, const struct wr *b)
{
    return a->session == b->session && a->vqp == b->vqp;
}

/* Whether one that is there is of w's virtual queue pair, and how many bytes there are. */
static bool look_before(const struct node_posts *p, const struct wr *lead, const struct wr *w,
                        uint64_t *bytes)
{
    bool is = is_of_vqp(lead, w);
    *bytes = lead->length;
    for (uint32_t i = 0; i < p->riders; i++)
        if (p->rider[i].lead == lead) {
            is |= is_of_vqp(p->rider[i].wr, w);
            *bytes += p->rider[i].wr->length;
        }
    return is;
}

/* Those of a virtual queue pair are in order: of one work request the bytes have none. */
static void look_at_rider(const struct wr *lead, const struct wr *w, uint64_t before, bool is_own)
{
    const char *what = NULL;
    if (w->session->tenant != lead->session->tenant)
        what = "of another tenant";
    else if (w->op != lead->op || !w->op->merges || ((w->special | lead->special) & SPECIAL_FENCE))
        what = "of another kind";
    else if (w->vkey != lead->vkey || w->flow != lead->flow)
        what = "to another region";
    else if (w->fab.remote_addr != lead->fab.remote_addr + before)
        what = "that does not go on where it ends";
    else if (is_own && (w->special & SPECIAL_RELAXED) == 0)
        what = "of the same virtual queue pair, that is to keep its order";
    if (what != NULL)
        play_violation(play_process->name, "a request joins a work request %s", what);
}

bool __wrap_lane_merge(struct lane *l, struct physical_qp *p, struct wr *w)
{
    struct node_posts *here = posts_here();
    const struct wr *lead = (const struct wr *)(const void *)p->chain_tail;
    uint64_t before;
    const bool is_own = look_before(here, lead, w, &before);
    if (!__real_lane_merge(l, p, w))
        return false;
    look_at_rider(lead, w, before, is_own);
    BASE_ASSERT(here->riders < RIDERS);
    here->rider[here->riders++] = (struct rider){lead, w};
    merged++;
    return true;
}

/* Those of one work request, which has as many bytes as they have together. */
static void take_down_riders(const struct wr *lead, uint32_t qpn)
{
    struct node_posts *p = posts_here();
    uint64_t bytes = is_header(lead) ? 0 : lead->length;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->riders; i++) {
        if (p->rider[i].lead != lead) {
            p->rider[kept++] = p->rider[i];
            continue;
        }
        take_down(p->rider[i].wr, qpn, lead->fab.wr_id);
        bytes += p->rider[i].wr->length;
    }
    p->riders = kept;
    for (int i = has_header(lead); i < lead->fab.num_sge; i++)
        bytes -= lead->fab.sg_list[i].length;
    if (bytes != 0)
        play_violation(play_process->name, "a work request has other bytes than its requests have");
}

/* Lanes alone post what is none of a datagram. */
int __wrap_fab_post_send(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad)
{
    for (struct fab_wr *f = wr; f != NULL && qp->type != FAB_QP_UD; f = f->next) {
        const struct wr *w =
            (const struct wr *)(const void *)((const uint8_t *)f - offsetof(struct wr, fab));
        if (w->kind != WR_WORKER)
            continue;
        take_down(w, qp->qpn, w->fab.wr_id);
        take_down_riders(w, qp->qpn);
    }
    return __real_fab_post_send(qp, wr, bad);
}
