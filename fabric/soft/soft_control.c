/* SPDX-License-Identifier: Apache-2.0 */
/* Control operations: queued by anybody, executed by soft_run() on the control thread. */
#include "soft/soft_control.h"

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "ibta/ibta.h"
#include "soft/chan.h"
#include "soft/maps.h"
#include "soft/mr.h"
#include "soft/objects.h"

static uint64_t now_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * BASE_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Its own clock is the counter that nobody slews, beside the time that the machine has slept. */
static void read_clock(struct fab_clock *out)
{
    *out = (struct fab_clock){.before_ns = base_clock_ns(), .hz = BASE_NS_PER_S, .bits = 64};
    const uint64_t slept_ns = base_clock_ns() - now_of(CLOCK_MONOTONIC);
    out->ticks = now_of(CLOCK_MONOTONIC_RAW) + slept_ns;
    out->after_ns = base_clock_ns();
}

static int carry_out(struct soft_fab *f, struct fab_ctl *ctl)
{
    switch (ctl->kind) {
    case FAB_ALLOC_PD:
        return soft_pd_alloc(f, ctl);
    case FAB_FREE_PD:
        return soft_pd_free(ctl);
    case FAB_REG_MR:
        return soft_mr_register(f, ctl);
    case FAB_DEREG_MR:
        return soft_mr_deregister(f, ctl);
    case FAB_QUIESCE_MR:
        return soft_mr_quiesce(f, ctl);
    case FAB_CREATE_CHAN:
        return soft_chan_create(f, ctl);
    case FAB_DESTROY_CHAN:
        return soft_chan_destroy(f, ctl);
    case FAB_CREATE_CQ:
        return soft_cq_create(f, ctl);
    case FAB_DESTROY_CQ:
        return soft_cq_destroy(f, ctl);
    case FAB_CREATE_SRQ:
        return soft_srq_create(f, ctl);
    case FAB_DESTROY_SRQ:
        return soft_srq_destroy(f, ctl);
    case FAB_CREATE_QP:
        return soft_qp_create(f, ctl);
    case FAB_MODIFY_QP:
        return soft_qp_modify(f, (struct soft_qp *)ctl->modify.x, &ctl->modify.attr,
                              ctl->modify.mask);
    case FAB_DESTROY_QP:
        return soft_qp_destroy(f, ctl);
    case FAB_CREATE_DCT:
        return soft_dct_create(f, ctl);
    case FAB_DESTROY_DCT:
        return soft_dct_destroy(f, ctl);
    case FAB_CREATE_AH:
        return soft_ah_create(ctl);
    case FAB_DESTROY_AH:
        return soft_ah_destroy(ctl);
    case FAB_QUERY_PORT:
        ctl->port.active = IBV_MTU_4096;
        ctl->port.mtu = f->base.caps.mtu;
        return 0;
    case FAB_QUERY_ADDRESS: /* never another one */
        ctl->address.now = (struct fab_own_address){
            .active = true,
            .has_gid = memcmp(ctl->address.gid, f->base.caps.gid, sizeof ctl->address.gid) == 0};
        return 0;
    case FAB_QUERY_PKEY:
        fab_ibta_find_pkey(ctl->pkey.pkey, &ctl->pkey.there, &ctl->pkey.index);
        return 0;
    case FAB_QUERY_QP:
        ctl->asked.state = fab_qp_state(ctl->asked.x);
        return 0;
    case FAB_QUERY_CLOCK:
        read_clock(&ctl->clock);
        return 0;
    }
    return -EINVAL;
}

void soft_submit(struct fab *fab, struct fab_ctl *ctl)
{
    struct soft_fab *f = soft_of(fab);
    if (ctl->kind == FAB_QUIESCE_MR)
        ctl->quiesce.progress = NULL;
    pthread_mutex_lock(&f->lock);
    *f->submitted_tail = ctl;
    f->submitted_tail = &ctl->next;
    pthread_mutex_unlock(&f->lock);
    fab_bell_ring(&f->ctl);
}

/* What stays pending is looked at again every millisecond; mappings that may be stale, which only
 * keep memory from being freed, every second. Nothing of either, no timer. One that runs for that
 * already is left as it is. */
static void set_timer(struct soft_fab *f)
{
    pthread_mutex_lock(&f->lock);
    const uint64_t period_ns = f->pending != NULL ? BASE_NS_PER_MS
                               : f->maps != NULL  ? BASE_NS_PER_S
                                                  : 0;
    pthread_mutex_unlock(&f->lock);
    if (period_ns == f->ctl_period_ns)
        return;
    const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(period_ns / BASE_NS_PER_S),
                                                 .tv_nsec = (long)(period_ns % BASE_NS_PER_S)}};
    f->ctl_period_ns = period_ns;
    f->ctl_due_ns = base_clock_ns() + period_ns;
    (void)timerfd_settime(f->ctl_tfd, 0, &when, NULL);
}

/* Who turns as fast as it can asks the clock, and the descriptor only when it may be readable. */
static void hear_timer(struct soft_fab *f)
{
    uint64_t count;
    if (f->ctl_period_ns != 0 && base_clock_ns() >= f->ctl_due_ns &&
        read(f->ctl_tfd, &count, sizeof count) > 0)
        f->ctl_period_ns = 0;
}

int soft_run(struct fab *fab)
{
    struct soft_fab *f = soft_of(fab);
    int completed = 0;
    fab_bell_hear(&f->ctl);
    hear_timer(f);
    pthread_mutex_lock(&f->lock);
    struct fab_ctl *list = f->pending, **tail = &list;
    while (*tail != NULL)
        tail = &(*tail)->next;
    *tail = f->submitted;
    f->submitted = NULL;
    f->submitted_tail = &f->submitted;
    pthread_mutex_unlock(&f->lock);

    struct fab_ctl *still = NULL, **still_tail = &still;
    for (struct fab_ctl *ctl = list, *next; ctl != NULL; ctl = next) {
        next = ctl->next;
        ctl->next = NULL;
        int status = carry_out(f, ctl);
        if (status == -EINPROGRESS) {
            *still_tail = ctl;
            still_tail = &ctl->next;
            continue;
        }
        if (status == 0)
            atomic_fetch_add(&f->objects, (uint32_t)fab_ctl_balance(ctl->kind));
        ctl->status = status;
        completed++;
        ctl->done(ctl);
    }
    f->pending = still;
    soft_map_sweep(f, false);
    set_timer(f);
    return completed;
}
