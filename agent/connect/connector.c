/* SPDX-License-Identifier: Apache-2.0 */
/* The connector itself: its making and end, its step, its events, and whom a message is for. */
#include "agent/connector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fabric/retire.h"
#include "internal.h"

enum { ADDRESSES_BESIDE = 32 };

/* ---- messages */

void connector_message(struct connector *c, const struct schema_handshake *h)
{
    if (memcmp(h->to_gid, c->res.fab->caps.gid, 16) != 0 || h->pool != c->config.pool) {
        c->stats.dropped++;
        return;
    }
    switch ((enum schema_handshake_kind)h->kind) {
    case SCHEMA_HANDSHAKE_REQUEST:
        connector_incoming_request(c, h);
        return;
    case SCHEMA_HANDSHAKE_WAIT:
        connector_outgoing_must_wait(c, h);
        return;
    case SCHEMA_HANDSHAKE_ACCEPT:
        connector_outgoing_accepted(c, h);
        return;
    case SCHEMA_HANDSHAKE_REFUSE:
        connector_outgoing_refused(c, h);
        return;
    case SCHEMA_HANDSHAKE_BYE:
        connector_incoming_bye(c, h);
        return;
    case SCHEMA_HANDSHAKE_GONE:
        connector_outgoing_gone(c, h);
        return;
    case SCHEMA_HANDSHAKE_ASK_USED:
        connector_outgoing_asked(c, h);
        return;
    case SCHEMA_HANDSHAKE_USED:
        connector_incoming_used(c, h);
        return;
    case SCHEMA_HANDSHAKE_BROKEN:
        connector_outgoing_broken(c, h);
        return;
    case SCHEMA_HANDSHAKE_ASK_MESSAGES:
        connector_messages_asked(c, h);
        return;
    case SCHEMA_HANDSHAKE_MESSAGES:
        connector_messages_told(c, h);
        return;
    }
}

struct schema_handshake connector_answer(const struct schema_handshake *h,
                                         enum schema_handshake_kind kind)
{
    return (struct schema_handshake){
        .kind = (uint8_t)kind, .to_incarnation = h->from_incarnation, .nonce = h->nonce};
}

void connector_reply(struct connector *c, const struct schema_handshake *h,
                     struct schema_handshake answer)
{
    connector_datagram_send(c, h->from_gid, h->lid, h->ud_qpn, h->ud_qkey, answer);
}

/* ---- events */

void connector_event_push(struct connector *c, const struct connector_event *e)
{
    c->events[c->event_tail++ % c->config.wanted] = *e;
}

int connector_event(struct connector *c, struct connector_event *out)
{
    if (c->event_head == c->event_tail)
        return 0;
    *out = c->events[c->event_head++ % c->config.wanted];
    c->wanted--;
    return 1;
}

void connector_note_time(struct connector *c, uint64_t now_ns)
{
    c->now_ns = now_ns;
}

uint64_t connector_step(struct connector *c, uint64_t now_ns)
{
    c->now_ns = now_ns;
    c->due_ns = CONNECT_NEVER;
    connector_slots_wake(&c->initiators); /* before those who wait for them are looked at */
    connector_slots_wake(&c->responders);
    connector_incoming_serve(c);
    connector_datagrams_take(c);
    connector_datagrams_step(c);
    connector_incoming_take(c);
    connector_incoming_step(c);
    connector_outgoing_step(c);
    connector_slots_refill(c, &c->initiators);
    connector_slots_refill(c, &c->responders);
    return c->due_ns;
}

void connector_stats(const struct connector *c, struct connector_stats *out)
{
    *out = c->stats;
    out->initiators = c->initiators.made;
    out->initiators_ready = c->initiators.ready;
    out->responders = c->responders.made;
    out->responders_ready = c->responders.ready;
    out->resting = c->initiators.resting + c->responders.resting;
}

uint32_t connector_ud_qpn(const struct connector *c)
{
    return c->ud.qpn;
}

uint32_t connector_ud_qkey(const struct connector *c)
{
    return c->ud.qkey;
}

void connector_set_mtu(struct connector *c, enum ibv_mtu mtu)
{
    c->mtu = mtu;
}

void connector_readdress(struct connector *c, uint32_t incarnation, uint64_t now_ns)
{
    c->now_ns = now_ns;
    connector_datagrams_forget_all(c);
    if (incarnation != c->config.incarnation)
        connector_incoming_retire(c);
    c->config.incarnation = incarnation;
}

void connector_repartition(struct connector *c, uint64_t now_ns)
{
    c->now_ns = now_ns;
    connector_datagrams_repartition(c);
}

void connector_set_ahead(struct connector *c, uint32_t ahead)
{
    c->config.ahead = ahead;
}

int connector_fd(const struct connector *c)
{
    return c->ud.chan->fd;
}

/* ---- making */

/* Until what was submitted is over. */
static void await_ops(struct connector *c)
{
    while (*c->ops > 0)
        if (fab_run(c->res.fab) == 0)
            fab_wait(c->res.fab);
}

static int make_arrays(struct connector *c)
{
    const struct connector_config *config = &c->config;
    c->outs = config->wanted + 2 * config->initiators;
    c->out = calloc(c->outs, sizeof c->out[0]);
    c->in = calloc(config->responders + 1, sizeof c->in[0]);
    c->events = calloc(config->wanted, sizeof c->events[0]);
    if (c->out == NULL || c->in == NULL || c->events == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < c->outs; i++)
        c->out[i].c = c;
    for (uint32_t i = 0; i < config->responders; i++)
        c->in[i].c = c;
    int status = connector_slots_init(c, &c->initiators, config->initiators, true);
    return status == 0 ? connector_slots_init(c, &c->responders, config->responders, false)
                       : status;
}

/* Where nothing completes but the receives of responders that broke; it wakes by the channel of
 * handshakes. */
static int make_responder_cq(void *of, uint32_t over, struct fab_ctl *ctl)
{
    struct connector *c = of;
    if (over == 0) {
        *ctl = (struct fab_ctl){
            .kind = FAB_CREATE_CQ,
            .cq = {.cqe = c->config.initiators + 2 * c->config.responders, .chan = c->ud.chan}};
        return 1;
    }
    c->responder_cq = ctl->cq.x;
    return fab_arm(c->responder_cq, false);
}

static int make_initiators(void *of, uint32_t over, struct fab_ctl *ctl)
{
    struct connector *c = of;
    return connector_slots_make_ahead(c, &c->initiators, over, ctl);
}

static int make_responders(void *of, uint32_t over, struct fab_ctl *ctl)
{
    struct connector *c = of;
    return connector_slots_make_ahead(c, &c->responders, over, ctl);
}

int connector_make(struct connector *c, struct fab_ctl *ctl, struct base_errbuf *err)
{
    static const struct fab_series_part parts[] = {
        {connector_datagrams_make, "making the UD queue pair for handshakes"},
        {make_responder_cq, "making the completion queue of responders"},
        {make_initiators, "making RC queue pairs ahead"},
        {make_responders, "making RC queue pairs ahead"},
    };
    const int next = fab_series_next(&c->making, parts, sizeof parts / sizeof parts[0], c, ctl);
    return next >= 0
               ? next
               : base_err(err, next, "%s failed: %s", parts[c->making.part].what, strerror(-next));
}

int connector_new(const struct connector_config *config,
                  const struct connector_resources *resources,
                  int (*fill)(void *user, void *bytes, size_t n), void *user,
                  struct connector **out, struct base_errbuf *err)
{
    struct connector *c = calloc(1, sizeof *c);
    if (c == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    c->config = *config;
    c->res = *resources;
    c->fill = fill;
    c->fill_user = user;
    c->mtu = config->mtu != 0 ? config->mtu : resources->fab->caps.mtu;
    c->queue_tail = &c->queue;
    c->now_ns = config->begun_ns;
    c->ops = config->ops != NULL ? config->ops : &c->own_ops;
    c->gone_ns = config->gone_ns != NULL ? config->gone_ns : &c->own_gone_ns;
    int status = make_arrays(c);
    if (status == 0)
        status =
            connector_datagrams_init(c, config->initiators + config->responders + ADDRESSES_BESIDE);
    if (status != 0) {
        connector_free(c);
        return base_err(err, status, "making the memory for handshakes failed: %s",
                        strerror(-status));
    }
    *out = c;
    return 0;
}

void connector_retire(struct connector *c)
{
    c->closing = true;
    connector_slots_retire(c, &c->initiators);
    connector_slots_retire(c, &c->responders);
    fab_retire(c->res.fab, FAB_DESTROY_CQ, c->responder_cq, c->ops); /* before its channel */
    c->responder_cq = NULL;
    connector_datagrams_retire(c);
}

void connector_free(struct connector *c)
{
    if (c == NULL)
        return;
    c->closing = true;
    await_ops(c);
    connector_retire(c);
    await_ops(c);
    free(c->initiators.at);
    free(c->responders.at);
    connector_datagrams_fini(c);
    free(c->out);
    free(c->in);
    free(c->events);
    free(c);
}
