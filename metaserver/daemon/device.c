/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include "base/clock.h"
#include "base/log.h"
#include "metaserver/directory_reach.h"

/* Agents hear of another target, and prove that they reach the table, within a minute. */
static const uint64_t WAIT_NS = 60 * BASE_NS_PER_S, WAIT_MOST_NS = 16 * 60 * BASE_NS_PER_S;

/* Connections that are made from now on have the present address and P_Key, and agents make them
 * anew when they break. A DC target has the former ones for good. */
static void on_moved(void *user)
{
    struct meta_device *d = user;
    d->process->service.endpoint.lid = d->process->endpoint.fab->caps.lid;
    if (d->process->endpoint.dct != NULL)
        meta_retarget_want(&d->target);
}

static void on_news(void *user)
{
    struct meta_device *d = user;
    struct meta_service *s = &d->process->service;
    meta_address_watch_why(&d->address, s->table_why, sizeof s->table_why);
}

static void on_retargeted(void *user)
{
    struct meta_device *d = user;
    d->process->service.endpoint = meta_table_endpoint_describe(&d->process->endpoint);
}

void meta_device_init(struct meta_device *d, struct meta_process *process)
{
    const struct meta_table_endpoint *e = &process->endpoint;
    *d = (struct meta_device){
        .process = process,
        .address = {.fab = e->fab, .pd = e->pd, .moved = on_moved, .news = on_news, .user = d},
        .target = {.endpoint = &process->endpoint, .done = on_retargeted, .user = d}};
}

/* The table can no longer be read, and nothing but a new process opens the device again. */
static void give_up(struct meta_device *d, const char *why)
{
    base_log(BASE_LOG_ERROR, "the device cannot be used any more", "why=\"%s\"", why);
    d->lost = why;
}

/* Of a responder it says nothing new: an agent whose connection broke registers again. */
static void queue_pair_broke(struct meta_device *d, const struct fab_event *e)
{
    if (e->qp != NULL || d->process->endpoint.dct == NULL)
        return;
    base_log(BASE_LOG_ERROR, "the table's DC target broke: another one is made", "dct_number=%u",
             d->process->endpoint.dct->dctn);
    meta_retarget_want(&d->target);
}

void meta_device_events(struct meta_device *d)
{
    struct fab_event e;
    while (d->lost == NULL && fab_get_event(d->process->endpoint.fab, &e))
        switch (e.type) {
        case IBV_EVENT_DEVICE_FATAL:
            give_up(d, "it was removed, or its driver gave up");
            break;
        case IBV_EVENT_CQ_ERR: /* the target's and all responders' */
            give_up(d, "a completion queue overflowed or broke");
            break;
        case IBV_EVENT_QP_FATAL:
            queue_pair_broke(d, &e);
            break;
        case IBV_EVENT_PORT_ERR:
        case IBV_EVENT_PORT_ACTIVE:
            meta_address_watch_port(&d->address, e.type == IBV_EVENT_PORT_ERR);
            meta_address_watch_look(&d->address);
            break;
        case IBV_EVENT_GID_CHANGE:
        case IBV_EVENT_LID_CHANGE:
        case IBV_EVENT_PKEY_CHANGE:
        case IBV_EVENT_SM_CHANGE:
        case IBV_EVENT_CLIENT_REREGISTER:
            meta_address_watch_look(&d->address);
            break;
        default:
            break;
        }
}

/* Of a DC target that breaks not every device says so: the kernel's mlx5 passes on that one has
 * drained, and nothing else. Who READs through it does. Where a wire is cut another target is no
 * help, and READs that are out end with the former one: so ever less often, and who reports by
 * turns that it reaches the table and that it does not brings about no more. */
static void heed_readers(struct meta_device *d, uint64_t now_ns)
{
    const struct meta_service *s = &d->process->service;
    if (d->process->endpoint.dct == NULL || d->lost != NULL)
        return;
    if (!meta_directory_reach_count(s->directory).table_blamed) {
        if (now_ns >= d->blamed_ns + WAIT_MOST_NS)
            d->wait_ns = 0;
        return;
    }
    if (d->wait_ns != 0 && now_ns < d->blamed_ns + d->wait_ns)
        return;
    d->blamed_ns = now_ns;
    d->wait_ns = d->wait_ns == 0             ? WAIT_NS
                 : d->wait_ns < WAIT_MOST_NS ? 2 * d->wait_ns
                                             : d->wait_ns;
    base_log(BASE_LOG_WARN, "most nodes do not reach the table: its DC target is made anew",
             "dct_number=%u", d->process->endpoint.dct->dctn);
    meta_retarget_want(&d->target);
}

static uint64_t heed_due_ns(const struct meta_device *d)
{
    const struct meta_service *s = &d->process->service;
    if (d->process->endpoint.dct == NULL || d->lost != NULL)
        return UINT64_MAX;
    const bool is_blamed = meta_directory_reach_count(s->directory).table_blamed;
    if (d->wait_ns == 0)
        return is_blamed ? 0 : UINT64_MAX;
    return d->blamed_ns + (is_blamed ? d->wait_ns : WAIT_MOST_NS);
}

uint64_t meta_device_due_ns(const struct meta_device *d)
{
    const uint64_t due_ns[] = {heed_due_ns(d), meta_address_watch_due_ns(&d->address),
                               meta_retarget_due_ns(&d->target)};
    uint64_t first_ns = UINT64_MAX;
    for (size_t i = 0; i < sizeof due_ns / sizeof due_ns[0]; i++)
        first_ns = due_ns[i] < first_ns ? due_ns[i] : first_ns;
    return first_ns;
}

void meta_device_tick(struct meta_device *d, uint64_t now_ns)
{
    heed_readers(d, now_ns);
    meta_address_watch_tick(&d->address, now_ns);
    meta_retarget_tick(&d->target, now_ns);
}

void meta_device_stop(struct meta_device *d)
{
    meta_address_watch_stop(&d->address);
    meta_retarget_stop(&d->target);
}
