/* SPDX-License-Identifier: Apache-2.0 */
/* Time: a heap of what is to happen, the first due on top; of what is due at one time, what was set
 * first. */
#include "sim/net.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/hash.h"

static const uint64_t LIFE_NS = 50000000, BEGIN_NS = 1000000000;
enum { FROZEN = 0xffffffff /* a place: in no heap, since its device is suspended */ };

static struct sim_frozen *frozen_of(struct sim_device *device)
{
    return (struct sim_frozen *)(void *)device;
}

/* ---- the heap ---- */

static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->serial < b->serial;
}

static void put_at(struct sim_net *net, uint32_t i, struct sim_event *e)
{
    net->heap[i] = e;
    e->place = i + 1;
}

static void move_up(struct sim_net *net, uint32_t i, struct sim_event *e)
{
    for (; i > 0 && is_before(e, net->heap[(i - 1) / 2]); i = (i - 1) / 2)
        put_at(net, i, net->heap[(i - 1) / 2]);
    put_at(net, i, e);
}

static void move_down(struct sim_net *net, uint32_t i, struct sim_event *e)
{
    for (uint32_t child; (child = 2 * i + 1) < net->set; i = child) {
        if (child + 1 < net->set && is_before(net->heap[child + 1], net->heap[child]))
            child++;
        if (!is_before(net->heap[child], e))
            break;
        put_at(net, i, net->heap[child]);
    }
    put_at(net, i, e);
}

static void take_out(struct sim_net *net, struct sim_event *e)
{
    const uint32_t i = e->place - 1;
    struct sim_event *last = net->heap[--net->set];
    e->place = 0;
    if (last == e)
        return;
    if (i > 0 && is_before(last, net->heap[(i - 1) / 2]))
        move_up(net, i, last);
    else
        move_down(net, i, last);
}

void sim_event_set(struct sim_net *net, struct sim_event *e, uint64_t due_ns)
{
    sim_event_cancel(net, e);
    if (net->set == net->room) {
        net->room = net->room != 0 ? 2 * net->room : 1024;
        net->heap = reallocarray(net->heap, net->room, sizeof net->heap[0]);
        BASE_ASSERT(net->heap != NULL);
    }
    e->due_ns = due_ns > net->now_ns ? due_ns : net->now_ns;
    e->serial = net->serial++;
    move_up(net, net->set++, e);
}

static void drop_frozen(struct sim_frozen *f, struct sim_event *e)
{
    struct sim_event **link = &f->first;
    while (*link != e)
        link = &(*link)->next_frozen;
    *link = e->next_frozen;
    if (*link == NULL)
        f->last = link;
    e->place = 0;
}

void sim_event_cancel(struct sim_net *net, struct sim_event *e)
{
    if (e->place == FROZEN)
        drop_frozen(frozen_of(e->device), e);
    else if (e->place != 0)
        take_out(net, e);
}

static void freeze_event(struct sim_event *e)
{
    struct sim_frozen *f = frozen_of(e->device);
    e->place = FROZEN;
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
        e->place = 0;
        sim_event_set(net, e, net->now_ns);
    }
}

/* ---- going on ---- */

struct sim_net *sim_net_new(uint64_t seed, const struct sim_hooks *hooks, uint64_t packet_life_ns)
{
    struct sim_net *net = calloc(1, sizeof *net);
    if (net == NULL)
        return NULL;
    net->seed = seed;
    net->now_ns = BEGIN_NS;
    net->next_fd = SIM_FIRST_FD;
    net->packet_life_ns = packet_life_ns != 0 ? packet_life_ns : LIFE_NS;
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
    return net->set != 0 ? net->heap[0]->due_ns : SIM_NEVER;
}

bool sim_net_step(struct sim_net *net)
{
    if (net->set == 0)
        return false;
    struct sim_event *e = net->heap[0];
    take_out(net, e);
    net->now_ns = e->due_ns;
    if (e->device != NULL && frozen_of(e->device)->suspended) {
        freeze_event(e);
        return true;
    }
    net->events++;
    sim_note(net, e->due_ns ^ e->serial << 40);
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

/* ---- descriptors ---- */

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
