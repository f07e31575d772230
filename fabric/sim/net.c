/* SPDX-License-Identifier: Apache-2.0 */
/* Time: what is to happen, the first due first; of what is due at one time, what was set first. */
#include "sim/net.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/hash.h"
#include "model/preset.h"

static const uint64_t LIFE_NS = 50000000, BEGIN_NS = 1000000000;

static struct sim_frozen *frozen_of(struct sim_device *device)
{
    return (struct sim_frozen *)(void *)device;
}

/* ---- what is to happen */

static struct sim_event *next_event(const struct sim_net *net)
{
    return (struct sim_event *)net->heap.first;
}

static void take_out(struct sim_net *net, struct sim_event *e)
{
    base_heap_take_out(&net->heap, &e->node);
    e->is = SIM_EVENT_UNSET;
}

void sim_event_set(struct sim_net *net, struct sim_event *e, uint64_t due_ns)
{
    sim_event_cancel(net, e);
    e->node.key = due_ns > net->now_ns ? due_ns : net->now_ns;
    e->node.order = net->serial++;
    base_heap_add(&net->heap, &e->node);
    e->is = SIM_EVENT_SET;
}

struct sim_event *sim_event_take(struct sim_net *net)
{
    struct sim_event *e = next_event(net);
    if (e != NULL)
        take_out(net, e);
    return e;
}

static void drop_frozen(struct sim_frozen *f, struct sim_event *e)
{
    struct sim_event **link = &f->first;
    while (*link != e)
        link = &(*link)->next_frozen;
    *link = e->next_frozen;
    if (*link == NULL)
        f->last = link;
    e->is = SIM_EVENT_UNSET;
}

void sim_event_cancel(struct sim_net *net, struct sim_event *e)
{
    if (e->is == SIM_EVENT_FROZEN)
        drop_frozen(frozen_of(e->device), e);
    else if (e->is == SIM_EVENT_SET)
        take_out(net, e);
}

static void freeze_event(struct sim_event *e)
{
    struct sim_frozen *f = frozen_of(e->device);
    e->is = SIM_EVENT_FROZEN;
    e->next_frozen = NULL;
    if (f->first == NULL)
        f->last = &f->first;
    *f->last = e;
    f->last = &e->next_frozen;
}

void sim_events_thaw(struct sim_net *net, struct sim_device *device)
{
    struct sim_frozen *f = frozen_of(device);
    for (struct sim_event *e; (e = f->first) != NULL;) {
        f->first = e->next_frozen;
        e->is = SIM_EVENT_UNSET;
        sim_event_set(net, e, net->now_ns);
    }
}

/* ---- going on */

struct sim_net *sim_net_new(uint64_t seed, const struct sim_hooks *hooks, uint64_t packet_life_ns)
{
    struct sim_net *net = calloc(1, sizeof *net);
    if (net == NULL)
        return NULL;
    net->seed = seed;
    net->now_ns = BEGIN_NS;
    net->next_fd = SIM_FIRST_FD;
    net->packet_life_ns = packet_life_ns != 0 ? packet_life_ns : LIFE_NS;
    net->usual = (struct sim_link){.delay_ns = 2000, .jitter_ns = 1000};
    if (hooks != NULL)
        net->hooks = *hooks;
    return net;
}

uint64_t sim_net_now(const struct sim_net *net)
{
    return net->now_ns;
}

uint64_t sim_net_next_due(const struct sim_net *net)
{
    const struct sim_event *next = next_event(net);
    return next != NULL ? next->node.key : SIM_NEVER;
}

bool sim_net_step(struct sim_net *net)
{
    struct sim_event *e = sim_event_take(net);
    if (e == NULL)
        return false;
    net->now_ns = e->node.key;
    if (e->device != NULL && frozen_of(e->device)->suspended) {
        freeze_event(e);
        return true;
    }
    net->events++;
    sim_note(net, e->node.key ^ e->node.order << 40);
    e->happen(e);
    return true;
}

void sim_net_run_until(struct sim_net *net, uint64_t until_ns)
{
    while (sim_net_next_due(net) <= until_ns && sim_net_step(net))
        ;
    if (net->now_ns < until_ns && until_ns != SIM_NEVER)
        net->now_ns = until_ns;
}

uint64_t sim_net_hash(const struct sim_net *net)
{
    return net->hash;
}

uint64_t sim_net_events(const struct sim_net *net)
{
    return net->events;
}

void sim_net_poll_takes(struct sim_net *net, uint64_t ns)
{
    net->poll_ns = ns;
}

void sim_net_set_model(struct sim_net *net, const struct model_preset *preset)
{
    net->model = preset;
    net->usual = (struct sim_link){.delay_ns = preset->wire_ps / 1000};
}

void sim_net_ring_each(struct sim_net *net)
{
    net->ring_each = true;
}

void sim_net_stall_reads(struct sim_net *net, uint32_t ppm, uint64_t ns)
{
    net->stall_ppm = ppm;
    net->stall_ns = ns;
}

void sim_note(struct sim_net *net, uint64_t what)
{
    net->hash = base_hash_u64(net->hash ^ what, 1);
}

void sim_tell(struct sim_net *net, uint32_t node, const char *format, ...)
{
    char line[200];
    va_list args;
    if (net->hooks.told == NULL)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    net->hooks.told(net->hooks.user, node, line);
}

/* ---- descriptors */

void sim_ready_open(struct sim_net *net, uint32_t node, struct sim_ready *r)
{
    *r = (struct sim_ready){.fd = net->next_fd++, .node = node};
    sim_table_put(&net->fds, (uint64_t)r->fd, r);
}

void sim_ready_close(struct sim_net *net, struct sim_ready *r)
{
    sim_table_drop(&net->fds, (uint64_t)r->fd);
}

void sim_ready_set(struct sim_net *net, struct sim_ready *r, bool readable)
{
    const bool tells = readable && !r->readable;
    r->readable = readable;
    if (tells && net->hooks.ready != NULL)
        net->hooks.ready(net->hooks.user, r->node, r->fd);
}

bool sim_fd_is_readable(const struct sim_net *net, int fd)
{
    const struct sim_ready *r = sim_table_get(&net->fds, (uint64_t)fd);
    return r != NULL && r->readable;
}
