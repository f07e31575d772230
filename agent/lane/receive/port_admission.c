/* SPDX-License-Identifier: Apache-2.0 */
#include "receive/port_admission.h"

#include "receive/large.h"
#include "schedule/vqp.h"
#include "schema/message.h"

enum {
    OWN_FIRST_US = 4000, /* as often as who was told RNR comes again meanwhile, and more */
    FOREIGN_LARGES = LANE_OWN_VQPS / 2,
    GUEST_LARGES = LANE_OWN_VQPS / 4
};
static_assert(GUEST_LARGES > 0, "who is let in has one at least");

bool lane_admission_is_foreign(const struct vqp *q, uint32_t tenant)
{
    return q->session->tenant != tenant;
}

/* Who sends to a port of another tenant's lets that one answer: it is the same grant. */
static bool may_answer(const struct vqp_messages *t, uint32_t tenant)
{
    return t->to_kind == SCHEMA_SEND_TO_PORT && t->to_tenant == tenant;
}

struct admission lane_admission_of(const struct lane *l, const struct vqp *q, uint32_t tenant)
{
    const struct vqp_messages *t = q->messages;
    const uint32_t own = q->session->tenant_slot + 1;
    if (!lane_admission_is_foreign(q, tenant))
        return (struct admission){.admitted = true, .share = own};
    const uint32_t guest = lane_guest_find(&l->messages->guests, t->guests, tenant);
    if (guest == 0 && !may_answer(t, tenant))
        return (struct admission){.admitted = false};
    return (struct admission){.admitted = true,
                              .share = own + l->config.max_tenants,
                              .guest = guest != 0 ? guest : l->messages->guests.most + own};
}

struct vqp *lane_admission_find(struct lane *l, const struct schema_message *m,
                                struct admission *admission)
{
    uint32_t session = m->to >> 16 & 0xffff;
    uint32_t index = m->to & 0xffff;
    if (m->kind == SCHEMA_MESSAGE_TO_PORT) {
        const struct port *port =
            lane_port_find(&l->messages->ports, m->to_tenant, (uint32_t)m->to);
        if (port == NULL)
            return NULL;
        session = port->session;
        index = port->vqp;
    }
    if (session >= l->config.max_sessions)
        return NULL;
    struct session *s = &l->sessions[session];
    if (s->state != SESSION_LIVE || index >= s->max_vqps)
        return NULL;
    struct vqp *q = &s->vqps[index];
    if (q->messages == NULL ||
        (m->kind == SCHEMA_MESSAGE_TO_VQP && q->messages->sender.name != m->to))
        return NULL;
    *admission = lane_admission_of(l, q, m->from_tenant);
    return admission->admitted ? q : NULL;
}

void lane_admission_unmet(const struct lane *l, struct vqp *q, bool has_receive)
{
    q->messages->unmet_ns = l->now_ns;
    if (!has_receive && q->messages->receives.head != NULL)
        lane_set_aside_missed(&q->messages->aside);
}

bool lane_admission_is_short(const struct lane *l, const struct vqp *q)
{
    const uint64_t since_ns = q->messages->unmet_ns;
    return since_ns != 0 && l->now_ns - since_ns < OWN_FIRST_US * 1000ull;
}

bool lane_admission_yields(const struct lane *l, const struct vqp *q, uint32_t tenant)
{
    return lane_admission_is_foreign(q, tenant) && lane_admission_is_short(l, q);
}

bool lane_admission_has_large(const struct lane *l, const struct vqp *q, uint32_t tenant)
{
    const struct session *s = q->session;
    const struct large_read *g;
    uint32_t foreign = 0, of_this = 0;
    if (!lane_admission_is_foreign(q, tenant))
        return true;
    TAILQ_FOREACH(g, &l->messages->large_used, by_use) {
        if (g->session != s->id || !large_is_first(g))
            continue;
        foreign += g->from_tenant != s->tenant;
        of_this += g->from_tenant == tenant;
    }
    return foreign < FOREIGN_LARGES && of_this < GUEST_LARGES;
}
