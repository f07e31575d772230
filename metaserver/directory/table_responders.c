/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "table_responders_private.h"

#define RD_ATOMIC 16 /* READs of one agent at a time */
#define RNR_TIMER 12 /* 0.64 ms; required by RTR, but nothing is ever received here */
#define STOPS     "this metaserver stops: ask another one"

/* For so long a reader that was not heard of may repeat a READ: as agents', unless they set
 * another ack_timeout. */
enum { READERS_TIMEOUT = 13, READERS_RETRIES = 7 };

/* ---- states */

void meta_responder_move(struct responder *p, enum responder_state to)
{
    static const bool allowed[STATES][STATES] = {
        [FREE] = {[MAKING] = true},
        [MAKING] = {[RESTING] = true, [ENDING] = true /* no INIT */, [FREE] = true /* none made */},
        [RESTING] = {[SPARE] = true, [ENDING] = true /* stopping */},
        [SPARE] = {[CONNECTING] = true, [ENDING] = true /* stopping, or there are too many */},
        [CONNECTING] = {[READY] = true, [ENDING] = true /* no RTR */},
        [READY] = {[KEPT] = true, [ENDING] = true /* discarded */},
        [KEPT] = {[ENDING] = true /* replaced, dropped */},
        [ENDING] = {[FREE] = true},
    };
    struct meta_responders *r = p->owner;
    BASE_ASSERT(allowed[p->state][to]);
    r->in_state[p->state]--;
    p->state = to;
    r->in_state[to]++;
}

static struct responder *pop_responder(struct meta_responders *r, uint32_t *list)
{
    struct responder *p = &r->responders[*list];
    BASE_ASSERT(*list != NONE);
    *list = p->next;
    return p;
}

static void push_responder(struct responder *p, uint32_t *list)
{
    p->next = *list;
    *list = meta_responder_number(p);
}

static void submit_ctl(struct responder *p, struct fab_ctl ctl);

void meta_responder_end(struct responder *p)
{
    meta_responder_move(p, ENDING);
    submit_ctl(p, (struct fab_ctl){.kind = FAB_DESTROY_QP, .qp.x = p->qp});
}

static void release_responder(struct responder *p)
{
    meta_responder_move(p, FREE);
    p->qp = NULL;
    p->sound = false;
    push_responder(p, &p->owner->free);
}

/* ---- resting: what IBTA calls TimeWait (12.9.8.5.2). A late request for the former connection of
 * a number, whose packet number falls where the present one's next is, would be taken for that. */

static uint64_t time_wait_ns(const struct meta_responders *r)
{
    return r->pd->fab->caps.time_wait_ns;
}

static void rest_responder(struct responder *p)
{
    struct meta_responders *r = p->owner;
    meta_responder_move(p, RESTING);
    if (time_wait_ns(r) == 0) {
        meta_responder_move(p, SPARE);
        push_responder(p, &r->spare);
        return;
    }
    p->rest_ns = 0;
    p->next = NONE;
    *(r->resting == NONE ? &r->resting : &r->responders[r->resting_last].next) =
        meta_responder_number(p);
    r->resting_last = meta_responder_number(p);
}

/* Its number is of one that went before it was made, or whose end is under way. */
static void wake_rested(struct meta_responders *r, uint64_t now_ns)
{
    struct responder *p;
    uint64_t gone_ns = r->went || r->in_state[ENDING] > 0 ? now_ns : 0;
    if (r->went_unheard)
        gone_ns = now_ns + fab_bound_ns(&r->pd->fab->caps, READERS_TIMEOUT, READERS_RETRIES);
    r->gone_ns = gone_ns > r->gone_ns ? gone_ns : r->gone_ns;
    r->went = r->went_unheard = false;
    for (uint32_t i = r->resting; i != NONE; i = p->next) {
        p = &r->responders[i];
        if (p->rest_ns == 0)
            p->rest_ns = fab_reuse_rest_ns(&r->pd->fab->caps, r->gone_ns, r->begun_ns);
    }
    while (r->resting != NONE && now_ns >= r->responders[r->resting].rest_ns) {
        p = pop_responder(r, &r->resting);
        meta_responder_move(p, SPARE);
        push_responder(p, &r->spare);
    }
}

/* Those that are needed soon: where they rest, each that waits needs one of its own, or all would
 * wait for a few that rest one time after the other. */
static uint32_t wanted_ahead(const struct meta_responders *r)
{
    const uint32_t served = r->in_state[CONNECTING] + r->in_state[READY];
    return META_RESPONDERS_SPARES +
           (time_wait_ns(r) != 0 && r->asked > served ? r->asked - served : 0);
}

/* ---- requests */

static void conclude_request(struct meta_responders *r, struct meta_responder_request *request,
                             int status)
{
    request->status = status;
    if (request->fresh && status != 0)
        meta_responders_count_fresh(r, request, -1);
    TAILQ_INSERT_TAIL(&r->over, request, link);
}

static void give_up(struct meta_responders *r, struct meta_responder_request *request)
{
    r->count.given_up++;
    conclude_request(r, request,
                     base_err(&request->err, -ECANCELED, "%s",
                              r->stopping ? STOPS : "nobody waited for it any more"));
}

static void refuse_unmade(struct meta_responders *r, struct meta_responder_request *request)
{
    int error = r->make_error;
    r->count.failed++;
    conclude_request(
        r, request,
        base_err(&request->err, error,
                 "this metaserver's device makes no more queue pairs (%s): on its host %s",
                 strerror(-error),
                 error == -ENOMEM || error == -EAGAIN
                     ? "raise LimitMEMLOCK, or hca_object in rdma.max of its cgroup, or free some"
                     : "see the kernel's log (dmesg)"));
}

static void refuse_full(struct meta_responders *r, struct meta_responder_request *request)
{
    r->count.refused++;
    conclude_request(r, request, meta_responders_say_full(r, request));
}

/* ---- what the device did */

static void on_made(struct responder *p)
{
    struct meta_responders *r = p->owner;
    int status = p->ctl.status;
    if (p->ctl.kind == FAB_CREATE_QP) {
        if (status != 0) {
            r->make_error = status;
            release_responder(p);
            return;
        }
        p->qp = p->ctl.qp.x;
        struct ibv_qp_attr init = fab_pd_init_attr(r->pd);
        init.qp_access_flags = IBV_ACCESS_REMOTE_READ;
        submit_ctl(p, (struct fab_ctl){.kind = FAB_MODIFY_QP,
                                       .modify = {.x = p->qp,
                                                  .attr = init,
                                                  .mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                                                          IBV_QP_PORT | IBV_QP_ACCESS_FLAGS}});
        return;
    }
    r->make_error = status;
    if (status != 0 || r->stopping) {
        meta_responder_end(p);
        return;
    }
    p->sound = true;
    rest_responder(p);
}

static void on_connected(struct responder *p)
{
    struct meta_responders *r = p->owner;
    struct meta_responder_request *request = p->request;
    char gid[BASE_GID_TEXT];
    int status = p->ctl.status;
    TAILQ_REMOVE(&r->connecting, request, link);
    if (status == 0 && !r->stopping) {
        meta_responder_move(p, READY);
        request->qpn = p->qp->qpn;
        conclude_request(r, request, 0);
        return;
    }
    p->request = NULL;
    request->responder = NONE;
    meta_responder_end(p);
    if (status == 0) {
        give_up(r, request);
        return;
    }
    r->count.failed++;
    conclude_request(r, request,
                     base_err(&request->err, status,
                              "a queue pair towards %s cannot be made ready (%s): see that this "
                              "metaserver's device reaches the reader's gid",
                              base_gid_format(request->peer.gid, gid), strerror(-status)));
}

static void on_ended(struct responder *p)
{
    int status = p->ctl.status;
    if (status != 0) /* nothing can be done about it; the device's number is lost */
        meta_world_log(p->owner->world, BASE_LOG_ERROR, "a reader's queue pair cannot be destroyed",
                       "qpn=%u error=\"%s\"", p->qp->qpn, strerror(-status));
    if (p->sound) /* else the next one would fail likewise, and so on for ever */
        p->owner->make_error = 0;
    p->owner->went = true;
    p->owner->went_unheard |= p->unheard;
    p->unheard = false;
    release_responder(p);
}

static void on_done(struct fab_ctl *ctl)
{
    struct responder *p = ctl->user;
    switch (p->state) {
    case MAKING:
        on_made(p);
        break;
    case CONNECTING:
        on_connected(p);
        break;
    default:
        BASE_ASSERT(p->state == ENDING);
        on_ended(p);
    }
    meta_responders_serve(p->owner);
}

/* ---- what it is to do */

static void submit_ctl(struct responder *p, struct fab_ctl ctl)
{
    p->ctl = ctl;
    p->ctl.done = on_done;
    p->ctl.user = p;
    fab_submit(p->owner->pd->fab, &p->ctl);
}

static void make_responder(struct meta_responders *r)
{
    struct responder *p =
        r->free != NONE ? pop_responder(r, &r->free) : &r->responders[r->touched++];
    p->owner = r;
    meta_responder_move(p, MAKING);
    submit_ctl(p, (struct fab_ctl){
                      .kind = FAB_CREATE_QP,
                      .qp = {.pd = r->pd,
                             .type = FAB_QP_RC,
                             .send_cq = r->cq,
                             .recv_cq = r->cq,
                             .cap = {.send_wr = 1, .recv_wr = 1, .send_sge = 1, .recv_sge = 1}}});
}

/* It takes no SEND: this comes back when the queue pair goes to ERR, on devices too that have no
 * event for that (rxe). Where it cannot be posted the reader's time-outs alone tell. */
static void post_receive(struct responder *p)
{
    struct fab_recv_wr *bad;
    p->broken = p->told = false;
    struct fab_recv_wr wr = {.wr_id = (uint64_t)++p->life << 32 | meta_responder_number(p)};
    (void)fab_post_recv(p->qp, &wr, &bad);
}

static void connect_spare(struct meta_responders *r, struct meta_responder_request *request)
{
    const struct fab_caps *caps = &r->pd->fab->caps;
    const struct meta_responder_peer *peer = &request->peer;
    request->mtu = peer->mtu < r->port.mtu ? peer->mtu : r->port.mtu;
    request->reads = (uint8_t)(caps->max_rd_atomic < RD_ATOMIC ? caps->max_rd_atomic : RD_ATOMIC);
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = request->mtu,
        .dest_qp_num = peer->qpn,
        .rq_psn = peer->psn,
        .max_dest_rd_atomic = request->reads,
        .min_rnr_timer = RNR_TIMER,
        .pkey_index = r->pd->service.pkey_index,
        .ah_attr = fab_pd_address(r->pd, peer->gid, peer->lid),
    };
    /* The P_Key may have moved since it went to INIT. */
    const int place = r->pd->pkey != 0 ? IBV_QP_PKEY_INDEX : 0;
    struct responder *p = pop_responder(r, &r->spare);
    post_receive(p);
    request->responder = meta_responder_number(p);
    p->request = request;
    TAILQ_INSERT_TAIL(&r->connecting, request, link);
    meta_responder_move(p, CONNECTING);
    submit_ctl(
        p, (struct fab_ctl){.kind = FAB_MODIFY_QP,
                            .modify = {.x = p->qp,
                                       .attr = attr,
                                       .mask = place | IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                                               IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER}});
}

/* The first that waits: connected, or told why not. False: it has to wait on. */
static bool serve_request(struct meta_responders *r, struct meta_responder_request *request)
{
    bool fresh =
        !meta_responder_index_has(&r->kept, request->id, request->peer.pool, request->peer.lane);
    bool wanted = request->wanted == NULL || request->wanted(request);
    bool full = fresh && meta_responders_is_full(r, request);
    if (wanted && !full && r->spare == NONE)
        return false;
    TAILQ_REMOVE(&r->waiting, request, link);
    if (!wanted) {
        give_up(r, request);
    } else if (full) {
        refuse_full(r, request);
    } else {
        request->fresh = fresh;
        if (fresh)
            meta_responders_count_fresh(r, request, 1);
        connect_spare(r, request);
    }
    return true;
}

void meta_responders_serve(struct meta_responders *r)
{
    struct meta_responder_request *request;
    if (r->stopping)
        return;
    while ((request = TAILQ_FIRST(&r->waiting)) != NULL && serve_request(r, request))
        ;
    while (r->prewarming && r->make_error == 0 && r->in_state[FREE] > 0 &&
           r->in_state[MAKING] + r->in_state[RESTING] + r->in_state[SPARE] < wanted_ahead(r))
        make_responder(r);
    while (TAILQ_EMPTY(&r->waiting) && r->in_state[SPARE] > META_RESPONDERS_SPARES)
        meta_responder_end(pop_responder(r, &r->spare));
    /* Whatever is under way may yet leave a queue pair for those who wait. */
    if (r->capacity - r->in_state[FREE] > r->in_state[KEPT])
        return;
    while ((request = TAILQ_FIRST(&r->waiting)) != NULL) {
        /* The device makes fewer than it says: what goes is made anew. */
        if (meta_responders_make_room(r, request))
            return;
        TAILQ_REMOVE(&r->waiting, request, link);
        if (r->make_error != 0)
            refuse_unmade(r, request);
        else
            refuse_full(r, request);
    }
}

/* ---- the interface */

static int take_memory(struct meta_responders *r)
{
    r->responders = calloc(r->capacity, sizeof *r->responders);
    if (meta_responder_index_init(&r->kept, r->capacity) != 0 || r->responders == NULL)
        return -ENOMEM;
    r->free = r->spare = r->resting = NONE;
    r->in_state[FREE] = r->capacity;
    TAILQ_INIT(&r->waiting);
    TAILQ_INIT(&r->connecting);
    TAILQ_INIT(&r->over);
    return 0;
}

/* What broke because of it is registered anew by its agents. */
static void port_changed(struct fab_port_watch *w, enum ibv_mtu before)
{
    const struct meta_responders *r = w->user;
    meta_world_log(r->world, BASE_LOG_WARN,
                   "the port has another MTU: connections have it from now on", "mtu=%u before=%u",
                   128u << w->mtu, 128u << before);
}

int meta_responders_new(struct meta_world *world, struct fab_pd *pd, struct fab_cq *cq,
                        uint32_t max_pools, bool ahead, uint64_t now_ns,
                        struct meta_responders **out, struct base_errbuf *err)
{
    /* One queue pair of the device is the DC target's. */
    uint32_t most = pd->fab->caps.max_qp > 0 ? pd->fab->caps.max_qp - 1 : 0;
    if (most <= META_RESPONDERS_SPARES)
        return base_err(err, -ENOSPC, "the device has too few queue pairs (%u) for readers",
                        pd->fab->caps.max_qp);
    struct meta_responders *r = calloc(1, sizeof *r);
    if (r == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    r->world = world;
    r->pd = pd;
    r->cq = cq;
    r->limit =
        most - META_RESPONDERS_SPARES < max_pools ? most - META_RESPONDERS_SPARES : max_pools;
    most -= META_RESPONDERS_SPARES;
    const uint64_t all = 2 * (uint64_t)max_pools;
    const uint32_t shared = most < all ? most : (uint32_t)all;
    r->further_limit = shared / 2;
    r->capacity = shared + META_RESPONDERS_SPARES;
    int status = take_memory(r);
    if (status != 0) {
        meta_responder_index_fini(&r->kept);
        free(r->responders);
        free(r);
        return base_err(err, status, "out of memory: lower max_endpoints");
    }
    r->prewarming = ahead;
    r->begun_ns = r->now_ns = now_ns;
    r->news = true; /* it is not armed yet */
    fab_port_watch_init(&r->port, pd->fab, port_changed, r);
    meta_responders_serve(r);
    *out = r;
    return 0;
}

/* ---- the end */

/* One whose request nobody has taken from `over` yet. */
static void give_up_ready(struct responder *p)
{
    struct meta_responders *r = p->owner;
    TAILQ_REMOVE(&r->over, p->request, link);
    p->request->responder = NONE;
    give_up(r, p->request);
    p->request = NULL;
}

void meta_responders_stop(struct meta_responders *r)
{
    struct meta_responder_request *request;
    r->stopping = true;
    while ((request = TAILQ_FIRST(&r->waiting)) != NULL) {
        TAILQ_REMOVE(&r->waiting, request, link);
        give_up(r, request);
    }
    meta_responder_index_clear(&r->kept); /* they end below */
    r->resting = NONE;
    for (uint32_t i = 0; i < r->touched; i++) {
        struct responder *p = &r->responders[i];
        if (p->state == READY)
            give_up_ready(p);
        if (p->state == RESTING || p->state == SPARE || p->state == READY || p->state == KEPT)
            meta_responder_end(p);
    }
}

bool meta_responders_stopped(const struct meta_responders *r)
{
    return r->stopping && r->in_state[FREE] == r->capacity && !r->port.asking;
}

void meta_responders_free(struct meta_responders *r)
{
    if (r == NULL)
        return;
    BASE_ASSERT(meta_responders_stopped(r) && r->asked == 0);
    meta_responder_index_fini(&r->kept);
    free(r->responders);
    free(r);
}

/* Whoever asks for one may hang up, and nothing tells. What has begun to rest, or has gone, is
 * noted at a tick. */
uint64_t meta_responders_due_ns(const struct meta_responders *r)
{
    const uint64_t port_ns = fab_port_watch_due_ns(&r->port);
    if (r->stopping)
        return UINT64_MAX;
    if (r->asked > 0 || r->went || r->went_unheard || r->news || r->untold)
        return 0;
    if (r->resting == NONE)
        return port_ns;
    if (r->responders[r->resting_last].rest_ns == 0)
        return 0;
    const uint64_t rest_ns = r->responders[r->resting].rest_ns;
    return rest_ns < port_ns ? rest_ns : port_ns;
}

void meta_responders_tick(struct meta_responders *r, uint64_t now_ns)
{
    if (r->stopping)
        return;
    r->now_ns = now_ns;
    fab_port_watch_tick(&r->port, now_ns);
    wake_rested(r, now_ns);
    meta_responders_serve(r);
}

int meta_responders_request(struct meta_responders *r, struct meta_responder_request *request)
{
    uint32_t psn;
    BASE_ASSERT(request->peer.qpn != 0);
    if (r->stopping)
        return base_err(&request->err, -ECANCELED, STOPS);
    if (r->asked >= META_RESPONDERS_WAITING) {
        r->count.refused++;
        return base_err(&request->err, -EAGAIN, "%u registrations wait for a queue pair: try again",
                        r->asked);
    }
    int status = meta_world_random(r->world, &psn, sizeof psn);
    if (status != 0)
        return base_err(&request->err, status, "there are no random numbers: %s",
                        strerror(-status));
    request->psn = psn & 0xffffff;
    request->status = -EINPROGRESS;
    request->number = r->numbers++;
    request->responder = NONE;
    request->fresh = false;
    TAILQ_INSERT_TAIL(&r->waiting, request, link);
    r->asked++;
    r->prewarming = true;
    r->make_error = 0;
    meta_responders_serve(r);
    return 0;
}

static bool has_earlier(const struct requests *requests,
                        const struct meta_responder_request *request)
{
    const struct meta_responder_request *other = TAILQ_FIRST(requests);
    while (other != NULL &&
           (other->number >= request->number || strcmp(other->id, request->id) != 0))
        other = TAILQ_NEXT(other, link);
    return other != NULL;
}

/* The device may be ready with a node's later one first. */
static bool is_overtaking(const struct meta_responders *r,
                          const struct meta_responder_request *request)
{
    return has_earlier(&r->connecting, request) || has_earlier(&r->over, request);
}

struct meta_responder_request *meta_responders_next(struct meta_responders *r)
{
    struct meta_responder_request *request = TAILQ_FIRST(&r->over);
    while (request != NULL && is_overtaking(r, request))
        request = TAILQ_NEXT(request, link);
    if (request == NULL)
        return NULL;
    TAILQ_REMOVE(&r->over, request, link);
    r->asked--;
    return request;
}
