/* SPDX-License-Identifier: Apache-2.0 */
/* The layer itself: opening, closing, its plan, events. */
#include "fault/layer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "fault/fault_control.h"
#include "fault/fault_data.h"
#include "fault/gone.h"
#include "fault/psn.h"

enum { LOOK_US = 1000 };

static void close_descriptors(const struct fault_fab *f)
{
    const int fds[] = {f->ctl_epfd,
                       f->events_epfd,
                       f->ctl.fd,
                       f->slow[FAULT_REGISTERS].fd,
                       f->slow[FAULT_DRAINS].fd,
                       f->slow[FAULT_HANGS].fd,
                       f->gone.fd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* 0; or -errno, also of what made the descriptor if there is none. */
static int watch_with(int epfd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return fd >= 0 && epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

static int watch_descriptor(const struct fault_fab *f, int fd)
{
    return watch_with(f->ctl_epfd, fd);
}

/* Of both providers' events. */
static int open_events(struct fault_fab *f)
{
    f->events_epfd = epoll_create1(EPOLL_CLOEXEC);
    int status = f->events_epfd < 0 ? -errno : 0;
    if (status == 0)
        status = watch_with(f->events_epfd, fab_event_fd(f->inner));
    if (status == 0)
        status = watch_with(f->events_epfd, f->events.efd);
    return status == 0 ? watch_with(f->events_epfd, f->gone.fd) : status;
}

/* 0; or -errno, and what is open is to be closed. */
static int open_descriptors(struct fault_fab *f)
{
    f->events_epfd = -1;
    f->gone.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    f->ctl_epfd = epoll_create1(EPOLL_CLOEXEC);
    int status = f->ctl_epfd < 0 ? -errno : 0;
    f->ctl.fd = -1;
    if (status == 0)
        status = fab_bell_open(&f->ctl);
    if (status == 0)
        status = watch_descriptor(f, f->ctl.fd);
    for (int i = 0; i < FAULT_SLOWS; i++) {
        f->slow[i].fd =
            status == 0 ? timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC) : -1;
        if (status == 0)
            status = watch_descriptor(f, f->slow[i].fd);
    }
    if (status == 0)
        status = watch_descriptor(f, fab_ctl_fd(f->inner));
    return status == 0 ? open_events(f) : status;
}

static int fault_close(struct fab *fab)
{
    struct fault_fab *f = fault_of(fab);
    int status = fab_close(f->inner);
    if (status != 0)
        return status;
    fault_cancel(f);
    fault_gone_fini(f, fault_free_left);
    close_descriptors(f);
    fab_events_fini(&f->events);
    pthread_mutex_destroy(&f->lock);
    free(f);
    return 0;
}

static int fault_ctl_fd(const struct fab *fab)
{
    return fault_of(fab)->ctl_epfd;
}

static int fault_event_fd(const struct fab *fab)
{
    return fault_of(fab)->events_epfd;
}

static bool hangs_now(struct fault_fab *f)
{
    pthread_mutex_lock(&f->lock);
    const bool hangs = fault_hangs(&f->now.plan);
    pthread_mutex_unlock(&f->lock);
    return hangs;
}

static enum ibv_qp_state fault_qp_state(const struct fab_qp *qp)
{
    while (hangs_now(fault_of(qp->pd->fab)))
        (void)usleep(LOOK_US);
    return fault_is_gone(fault_of(qp->pd->fab))
               ? IBV_QPS_ERR
               : fab_qp_state(((const struct fault_qp *)qp)->inner);
}

static void fault_chan_drain(struct fab_chan *chan)
{
    if (!fault_is_gone(fault_of(chan->fab)))
        fab_chan_drain(((struct fault_chan *)chan)->inner);
}

static struct fab_srq *outer_srq(struct fault_fab *f, const struct fab_srq *inner)
{
    pthread_mutex_lock(&f->lock);
    struct fault_srq *srq = f->srqs;
    while (srq != NULL && srq->inner != inner)
        srq = srq->next;
    pthread_mutex_unlock(&f->lock);
    return srq != NULL ? &srq->base : NULL;
}

/* Puts our object where the inner provider's stands. */
static int fault_get_event(struct fab *fab, struct fab_event *out)
{
    struct fault_fab *f = fault_of(fab);
    struct fab_event event;
    if (fault_gone_event(f, out))
        return 1;
    int got = fab_get_event(f->inner, &event);
    if (got != 1)
        return fab_events_pop(&f->events, out);
    if (event.type == IBV_EVENT_CQ_ERR)
        event.cq = event.cq->user;
    else if (event.type == IBV_EVENT_SRQ_ERR || event.type == IBV_EVENT_SRQ_LIMIT_REACHED)
        event.srq = outer_srq(f, event.srq);
    else if (fab_event_is_of_qp(event.type) && event.qp != NULL)
        event.qp = event.qp->user;
    *out = event;
    return 1;
}

static void fault_set_address(struct fab *fab, const uint8_t gid[16], uint8_t sgid_index,
                              uint16_t lid)
{
    fab_set_address(fault_of(fab)->inner, gid, sgid_index, lid);
}

static const struct fab_ops fault_ops = {
    .name = "fault",
    .close = fault_close,
    .submit = fault_submit,
    .run = fault_run,
    .ctl_fd = fault_ctl_fd,
    .post_send = fault_post_send,
    .post_recv = fault_post_recv,
    .post_srq_recv = fault_post_srq_recv,
    .poll = fault_poll,
    .arm = fault_arm,
    .is_busy = fault_is_busy,
    .chan_drain = fault_chan_drain,
    .qp_state = fault_qp_state,
    .event_fd = fault_event_fd,
    .get_event = fault_get_event,
    .set_address = fault_set_address,
};

int fault_open(struct fab *inner, const struct fault_plan *plan, struct fab **out)
{
    struct fault_fab *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -ENOMEM;
    f->base = (struct fab){.ops = &fault_ops, .caps = inner->caps, .model = inner->model};
    f->errors_first = plan->errors_first;
    f->loses_answers = plan->cuts || plan->answer_loss_ppm > 0 || plan->torn_ppm > 0;
    f->base.caps.names_culprit &= !plan->errors_first;
    /* One that says which came too late says so of the wrong one. */
    f->base.caps.deadlines &= !plan->no_deadlines && !plan->errors_first;
    if (plan->mtu != 0 && plan->mtu < f->base.caps.mtu)
        f->base.caps.mtu = plan->mtu;
    f->base.caps.atomics &= !plan->no_atomics;
    f->base.caps.dc_atomics &= !plan->no_atomics && !plan->no_dc_atomics;
    f->base.caps.fences &= !plan->no_fences;
    if (plan->less_inline && plan->max_inline < f->base.caps.max_inline)
        f->base.caps.max_inline = plan->max_inline;
    if (plan->max_sge != 0 && plan->max_sge < f->base.caps.max_sge)
        f->base.caps.max_sge = plan->max_sge;
    if (plan->packet_life_ns > f->base.caps.time_wait_ns)
        f->base.caps.time_wait_ns = plan->packet_life_ns;
    f->packet_life_ns = plan->packet_life_ns;
    f->now_ns = plan->now_ns;
    f->numbers_return = plan->numbers_return;
    f->numbers_gone_ns = fault_psn_now_ns(f);
    f->timeout = (uint8_t)plan->timeout;
    f->clock = *plan;
    f->opened_ns = base_clock_ns();
    f->resets_are_final = plan->resets_are_final;
    f->inner = inner;
    f->now = (struct fault_plan_state){.plan = *plan, .generation = 1};
    f->submitted_tail = &f->submitted;
    int status = fab_events_init(&f->events);
    const int descriptors = open_descriptors(f); /* both are ended in any case */
    status = status != 0 ? status : descriptors;
    if (status != 0) {
        close_descriptors(f);
        fab_events_fini(&f->events);
        free(f);
        return status;
    }
    pthread_mutex_init(&f->lock, NULL);
    fault_gone_init(f, plan);
    *out = &f->base;
    return 0;
}

void fault_set_plan(struct fab *fab, const struct fault_plan *plan)
{
    struct fault_fab *f = fault_of(fab);
    pthread_mutex_lock(&f->lock);
    const bool pkeys =
        f->now.plan.pkey_moved != plan->pkey_moved || f->now.plan.pkey_gone != plan->pkey_gone;
    f->now.plan = *plan;
    f->now.generation++;
    pthread_mutex_unlock(&f->lock);
    fault_gone_plan(f, plan);
    if (pkeys)
        fab_events_push(&f->events, IBV_EVENT_PKEY_CHANGE, NULL);
}

struct fault_way fault_way_to(struct fault_fab *f, const struct ibv_ah_attr *attr)
{
    struct fault_way way;
    memcpy(way.gid, attr->grh.dgid.raw, sizeof way.gid);
    pthread_mutex_lock(&f->lock);
    way.made_under = f->now.generation;
    pthread_mutex_unlock(&f->lock);
    return way;
}

uint64_t fault_count(const struct fab *fab)
{
    return atomic_load(&fault_of(fab)->count);
}
