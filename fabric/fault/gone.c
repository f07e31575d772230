/* SPDX-License-Identifier: Apache-2.0 */
#include "fault/gone.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "fault/layer.h"
#include "fault/fault_timer.h"

enum {
    LOOK_MS = 10, /* for the file, so often */
    TOLD_MS = 100 /* at most, after it is gone: devices do not say so at once, or not at all */
};

static void remove_device(struct fault_fab *f, uint64_t at_ns)
{
    fault_timer_set(f->gone.fd, at_ns + f->gone.told_after_ns);
    atomic_store(&f->gone.at_ns, at_ns);
}

static void draw_removal(struct fault_fab *f, const struct fault_plan *plan)
{
    struct base_prng prng;
    base_prng_seed(&prng, plan->seed);
    f->gone.told_after_ns = base_prng_below(&prng, TOLD_MS * BASE_NS_PER_MS);
    f->gone.refused = (uint32_t)base_prng_below(&prng, 1ull << 32);
}

static void begin_looks(struct fault_fab *f)
{
    const struct timespec look = {.tv_nsec = LOOK_MS * BASE_NS_PER_MS};
    const struct itimerspec at = {.it_value = look, .it_interval = look};
    (void)timerfd_settime(f->gone.fd, 0, &at, NULL);
}

void fault_gone_init(struct fault_fab *f, const struct fault_plan *plan)
{
    memcpy(f->gone.when, plan->removed_when, sizeof f->gone.when);
    draw_removal(f, plan);
    if (f->gone.when[0] != '\0')
        begin_looks(f);
    fault_gone_plan(f, plan);
}

void fault_gone_plan(struct fault_fab *f, const struct fault_plan *plan)
{
    if (plan->removed_ns == 0 || atomic_load(&f->gone.at_ns) != 0)
        return;
    draw_removal(f, plan);
    remove_device(f, f->opened_ns + plan->removed_ns);
}

bool fault_is_gone(struct fault_fab *f)
{
    const uint64_t at_ns = atomic_load_explicit(&f->gone.at_ns, memory_order_relaxed);
    if (at_ns == 0)
        return false;
    if (atomic_load_explicit(&f->gone.is, memory_order_relaxed))
        return true;
    if (base_clock_ns() < at_ns)
        return false;
    if (!atomic_exchange(&f->gone.is, true))
        atomic_fetch_add(&f->count, 1);
    return true;
}

/* What is on the timer until then says only that it is time to look. */
static void look_for_file(struct fault_fab *f)
{
    uint64_t count;
    if (f->gone.when[0] == '\0' || atomic_load(&f->gone.at_ns) != 0)
        return;
    (void)!read(f->gone.fd, &count, sizeof count);
    if (access(f->gone.when, F_OK) == 0)
        remove_device(f, base_clock_ns());
}

bool fault_gone_event(struct fault_fab *f, struct fab_event *out)
{
    uint64_t count;
    look_for_file(f);
    if (f->gone.told || !fault_is_gone(f) || read(f->gone.fd, &count, sizeof count) < 0)
        return false;
    f->gone.told = true;
    *out = (struct fab_event){.type = IBV_EVENT_DEVICE_FATAL};
    return true;
}

static void keep_object(struct fault_fab *f, const struct fab_ctl *ctl, void *object, int status)
{
    struct fault_left *left = malloc(sizeof *left);
    if (left == NULL)
        abort(); /* of tests alone */
    *left = (struct fault_left){
        .kind = ctl->kind, .object = object, .status = status, .next = f->gone.left};
    f->gone.left = left;
}

int fault_gone_keep(struct fault_fab *f, const struct fab_ctl *ctl, void *object)
{
    int status = f->gone.refused & 1u << ctl->kind ? -EIO : 0;
    if (ctl->kind == FAB_DESTROY_CHAN)
        status = ((struct fault_chan *)object)->kept > 0 ? -EBUSY : 0;
    if (ctl->kind == FAB_DESTROY_CQ && status != 0 && ((struct fault_cq *)object)->chan != NULL)
        ((struct fault_cq *)object)->chan->kept++;
    if (status != 0)
        keep_object(f, ctl, object, status);
    return status;
}

int fault_gone_status(const struct fault_fab *f, const struct fab_ctl *ctl)
{
    for (const struct fault_left *left = f->gone.left; left != NULL; left = left->next)
        if (left->kind == ctl->kind && left->object == ctl->pd.x)
            return left->status; /* every destruction names its object first */
    return 0;
}

void fault_gone_fini(struct fault_fab *f, void (*free_one)(enum fab_ctl_kind kind, void *object))
{
    for (struct fault_left *left = f->gone.left, *next; left != NULL; left = next) {
        next = left->next;
        free_one(left->kind, left->object);
        free(left);
    }
    f->gone.left = NULL;
}
