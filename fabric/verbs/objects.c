/* SPDX-License-Identifier: Apache-2.0 */
/* Control operations on everything but queue pairs. On a worker; all may block. What is freed is
 * released by run(), after this. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "ibta/ibta.h"
#include "verbs/objects.h"
#include "verbs/verbs.h"

/* Why a call of libibverbs that returned NULL did. */
static int call_failure(void)
{
    return errno != 0 ? -errno : -ENOMEM;
}

static struct ibv_pd *pd_of(const struct fab_pd *pd)
{
    return ((const struct verbs_pd *)pd)->pd;
}

static void use_pd(struct fab_pd *pd, bool use)
{
    struct verbs_pd *p = (struct verbs_pd *)pd;
    atomic_fetch_add(&p->users, use ? 1 : UINT32_MAX);
}

int verbs_pd_alloc(struct verbs_fab *f, struct fab_ctl *ctl)
{
    struct verbs_pd *p = calloc(1, sizeof *p);
    if (p == NULL)
        return -ENOMEM;
    errno = 0;
    p->pd = ibv_alloc_pd(f->context);
    if (p->pd == NULL) {
        int status = call_failure();
        free(p);
        return status;
    }
    p->base.fab = &f->base;
    p->base.service = ctl->pd.service != NULL ? *ctl->pd.service : f->base.caps.service;
    p->base.pkey = verbs_pkey_of(f, p->base.service.pkey_index);
    ctl->pd.x = &p->base;
    return 0;
}

int verbs_pd_free(struct fab_ctl *ctl)
{
    struct verbs_pd *p = (struct verbs_pd *)ctl->pd.x;
    return p->users != 0 ? -EBUSY : verbs_destroyed(p->base.fab, -ibv_dealloc_pd(p->pd));
}

static uint8_t *start_of(const struct fab_ctl *ctl)
{
    return (uint8_t *)ctl->mr.mem->addr + ctl->mr.offset;
}

static struct ibv_mr *register_memory(const struct fab_ctl *ctl, uint64_t iova)
{
    struct ibv_mr *mr;
    do { /* who is stopped and goes on while pages are pinned is told so */
        errno = 0;
        mr = ibv_reg_mr_iova(pd_of(ctl->mr.pd), start_of(ctl), ctl->mr.length, iova,
                             (int)ctl->mr.access);
    } while (mr == NULL && errno == EINTR);
    return mr;
}

/* The kernel moves pages out of ZONE_MOVABLE and CMA before it pins them, which it cannot with one
 * that a pipe holds, and calls that a want of memory. Once they have been moved they stay. A part
 * is registered beside the whole, and what is pinned is no place to move from. */
static struct ibv_mr *register_movable(const struct fab_ctl *ctl, uint64_t iova)
{
    const struct fab_mem *mem = ctl->mr.mem;
    struct ibv_mr *mr = register_memory(ctl, iova);
    if (mr != NULL || errno != ENOMEM || ctl->mr.length != mem->size || !fab_mem_let_move(mem))
        return mr;
    mr = register_memory(ctl, iova);
    const int why = errno;
    (void)fab_mem_hold_again(mem); /* by then the device holds them itself, if it has them */
    errno = why;
    return mr;
}

int verbs_mr_register(struct fab_ctl *ctl)
{
    if (!fab_ibta_takes_region(ctl))
        return -EINVAL;
    const uint64_t iova = ctl->mr.iova != 0 ? ctl->mr.iova : (uintptr_t)start_of(ctl);
    struct verbs_mr *m = calloc(1, sizeof *m);
    if (m == NULL)
        return -ENOMEM;
    m->mr = register_movable(ctl, iova);
    if (m->mr == NULL) {
        int status = call_failure();
        free(m);
        return status;
    }
    m->base = (struct fab_mr){.pd = ctl->mr.pd,
                              .lkey = m->mr->lkey,
                              .rkey = m->mr->rkey,
                              .addr = iova,
                              .length = ctl->mr.length};
    use_pd(ctl->mr.pd, true);
    ctl->mr.x = &m->base;
    return 0;
}

int verbs_mr_deregister(struct fab_ctl *ctl)
{
    struct verbs_mr *m = (struct verbs_mr *)ctl->mr.x;
    int status = verbs_destroyed(m->base.pd->fab, -ibv_dereg_mr(m->mr));
    if (status == 0)
        use_pd(m->base.pd, false);
    return status;
}

int verbs_chan_create(struct verbs_fab *f, struct fab_ctl *ctl)
{
    struct verbs_chan *c = calloc(1, sizeof *c);
    if (c == NULL)
        return -ENOMEM;
    errno = 0;
    c->chan = ibv_create_comp_channel(f->context);
    if (c->chan == NULL) {
        int status = call_failure();
        free(c);
        return status;
    }
    int flags = fcntl(c->chan->fd, F_GETFL);
    if (flags < 0 || fcntl(c->chan->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        int status = -errno;
        (void)ibv_destroy_comp_channel(c->chan);
        free(c);
        return status;
    }
    c->base = (struct fab_chan){.fab = &f->base, .fd = c->chan->fd};
    ctl->chan.x = &c->base;
    return 0;
}

/* libibverbs counts a completion queue as the channel's until a command has destroyed it. Ours went
 * without on a device that is removed, and the channel, which then stays open, with it. */
int verbs_chan_destroy(struct fab_ctl *ctl)
{
    struct verbs_chan *c = (struct verbs_chan *)ctl->chan.x;
    if (c->users != 0)
        return -EBUSY;
    const int status = -ibv_destroy_comp_channel(c->chan);
    return verbs_destroyed(c->base.fab, status == -EBUSY ? -EIO : status) == 0 ? 0 : status;
}

int verbs_cq_create(struct verbs_fab *f, struct fab_ctl *ctl)
{
    struct verbs_chan *chan = (struct verbs_chan *)ctl->cq.chan;
    if (ctl->cq.cqe == 0 || ctl->cq.cqe > f->base.caps.max_cqe ||
        (ctl->cq.comp_vector != 0 && ctl->cq.comp_vector >= f->base.caps.comp_vectors))
        return -EINVAL;
    struct verbs_cq *c = calloc(1, sizeof *c);
    if (c == NULL)
        return -ENOMEM;
    errno = 0;
    c->cq = ibv_create_cq(f->context, (int)ctl->cq.cqe, c, chan != NULL ? chan->chan : NULL,
                          (int)ctl->cq.comp_vector);
    if (c->cq == NULL) {
        int status = call_failure();
        free(c);
        return status;
    }
    c->base = (struct fab_cq){.fab = &f->base, .cqe = (uint32_t)c->cq->cqe, .user = ctl->cq.user};
    if (f->rxe && verbs_filter_init(c) != 0) {
        (void)ibv_destroy_cq(c->cq);
        free(c);
        return -ENOMEM;
    }
    c->fab = f;
    c->chan = chan;
    if (chan != NULL)
        atomic_fetch_add(&chan->users, 1);
    ctl->cq.x = &c->base;
    return 0;
}

int verbs_cq_destroy(struct verbs_fab *f, struct fab_ctl *ctl)
{
    struct verbs_cq *c = (struct verbs_cq *)ctl->cq.x;
    if (c->users != 0)
        return -EBUSY;
    int status = verbs_destroyed(c->base.fab, -ibv_destroy_cq(c->cq));
    if (status != 0)
        return status;
    verbs_filter_fini(c);
    if (c->chan != NULL)
        atomic_fetch_sub(&c->chan->users, 1);
    fab_events_purge(&f->events, &c->base);
    return 0;
}

int verbs_srq_create(struct verbs_fab *f, struct fab_ctl *ctl)
{
    struct ibv_srq_attr room;
    if (ctl->srq.max_wr == 0 || ctl->srq.max_wr > f->base.caps.max_srq_wr)
        return -EINVAL;
    struct verbs_srq *s = calloc(1, sizeof *s);
    if (s == NULL)
        return -ENOMEM;
    struct ibv_srq_init_attr attr = {
        .srq_context = s, .attr = {.max_wr = ctl->srq.max_wr, .max_sge = ctl->srq.max_sge}};
    errno = 0;
    s->srq = ibv_create_srq(pd_of(ctl->srq.pd), &attr);
    if (s->srq == NULL) {
        int status = call_failure();
        free(s);
        return status;
    }
    uint32_t max_wr = attr.attr.max_wr; /* rxe leaves it as it was asked for */
    if (ibv_query_srq(s->srq, &room) == 0 && room.max_wr > max_wr)
        max_wr = room.max_wr;
    s->base = (struct fab_srq){.pd = ctl->srq.pd, .max_wr = max_wr};
    use_pd(ctl->srq.pd, true);
    ctl->srq.x = &s->base;
    return 0;
}

int verbs_srq_destroy(struct verbs_fab *f, struct fab_ctl *ctl)
{
    struct verbs_srq *s = (struct verbs_srq *)ctl->srq.x;
    if (s->users != 0)
        return -EBUSY;
    int status = verbs_destroyed(&f->base, -ibv_destroy_srq(s->srq));
    if (status != 0)
        return status;
    use_pd(s->base.pd, false);
    fab_events_purge(&f->events, &s->base);
    return 0;
}

/* FNV-1a. */
static uint32_t hash_of(const struct ibv_ah_attr *attr)
{
    uint32_t hash = (2166136261u ^ attr->dlid) * 16777619u;
    for (int i = 0; i < 16; i++)
        hash = (hash ^ attr->grh.dgid.raw[i]) * 16777619u;
    return hash;
}

int verbs_ah_create(struct verbs_fab *f, struct fab_ctl *ctl)
{
    if (!f->base.caps.is_ethernet && ctl->ah.attr.dlid == 0)
        return -EINVAL; /* which InfiniBand would send to nobody */
    struct verbs_ah *a = calloc(1, sizeof *a);
    if (a == NULL)
        return -ENOMEM;
    errno = 0;
    a->ah = f->dc.calls.create_ah(pd_of(ctl->ah.pd), &ctl->ah.attr);
    if (a->ah == NULL) {
        int status = call_failure();
        free(a);
        return status;
    }
    a->base.pd = ctl->ah.pd;
    memcpy(a->base.dgid, ctl->ah.attr.grh.dgid.raw, 16);
    a->hash = hash_of(&ctl->ah.attr);
    use_pd(ctl->ah.pd, true);
    ctl->ah.x = &a->base;
    return 0;
}

int verbs_ah_destroy(struct verbs_fab *f, struct fab_ctl *ctl)
{
    struct verbs_ah *a = (struct verbs_ah *)ctl->ah.x;
    int status = verbs_destroyed(&f->base, -f->dc.calls.destroy_ah(a->ah));
    if (status == 0)
        use_pd(a->base.pd, false);
    return status;
}
