/* SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "lane_state.h"
#include "receive/arrivals.h"
#include "receive/message_datagrams.h"
#include "request/active.h"
#include "request/control_ops.h"
#include "request/dedicated_mr.h"
#include "request/lodgers.h"
#include "request/region.h"
#include "request/returns.h"
#include "request/revoke.h"
#include "request/session.h"
#include "request/withdraw.h"
#include "resolve/flow.h"
#include "resolve/lookup.h"
#include "resolve/path.h"
#include "resolve/peer_room.h"
#include "resolve/prove.h"
#include "resolve/readdress.h"
#include "resolve/relay.h"
#include "schedule/window.h"
#include "schedule/window_find.h"
#include "session_state.h"
#include "transmit/lane_events.h"
#include "transmit/inflight_timeout.h"
#include "transmit/initiators.h"
#include "transmit/physical_qp.h"
#include "transmit/quarantine.h"
#include "transmit/wr.h"

enum { UNITS = 64 /* of commands, in a pass */ };

static void add_session(struct lane *l, const struct lane_command *c)
{
    int status = lane_session_add(l, &c->add);
    if (status == 0) {
        l->sessions[c->add.id].touch[0] = c->touch;
        return;
    }
    atomic_store(&c->add.ro->ended, SCHEMA_REASON_QUOTA);
    lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_SESSION_FAULT,
                                            .session = c->add.id,
                                            .reason = SCHEMA_REASON_QUOTA});
    lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_SESSION_OVER, .session = c->add.id});
}

static void add_arena(struct lane *l, const struct lane_command *c)
{
    struct session *s = c->session < l->config.max_sessions ? &l->sessions[c->session] : NULL;
    struct lane_event event = {.kind = LANE_EVENT_ARENA_ADDED, .session = c->session};
    if (s == NULL || s->state != SESSION_LIVE) {
        event.arena.status = -ENOENT;
    } else if (s->arenas == LANE_SESSION_MAX_ARENAS) {
        event.arena.status = -EDQUOT;
    } else {
        event.arena.number = s->arenas;
        s->touch[s->arenas] = c->touch;
        s->arena[s->arenas++] = c->arena;
    }
    lane_event_push(l, &event);
}

static void take_path(struct lane *l, const struct lane_command *c)
{
    struct flow *f = c->path.flow < l->config.max_flows ? &l->flows[c->path.flow]
                     : c->path.flow == LANE_PROOF_FLOW  ? &l->proof.flow
                                                        : NULL;
    BASE_ASSERT(f != NULL && f->used && flow_path_is_asked(f));
    lane_flow_take_path(l, f, c);
    if (f == &l->proof.flow)
        lane_proof_path(l, c->path.status);
}

/* phys_room: none. */
static uint32_t find_phys(const struct lane *l, const struct fab_qp *qp)
{
    uint32_t number = 0;
    while (number < l->phys_room && l->phys[number].qp != qp)
        number++;
    return number;
}

/* For a DCI that is new: the system's has one place alone. */
static uint32_t open_initiator(struct lane *l, struct fab_qp *qp)
{
    if (qp->pd != l->res.pd) {
        l->phys[l->system_phys].qp = qp;
        return l->system_phys;
    }
    struct physical_qp *p = lane_physical_qp_open(l, qp, NULL);
    p->broken = BROKEN;
    return (uint32_t)(p - l->phys);
}

/* Nothing is out on it, and its place among l->dci, if it has one, is that of one that broke. */
static void forget_initiator(struct lane *l, const struct fab_qp *qp)
{
    const uint32_t number = find_phys(l, qp);
    if (number == l->phys_room)
        return;
    BASE_ASSERT(l->phys[number].broken == BROKEN);
    if (number == l->system_phys)
        l->phys[number].qp = NULL;
    else
        lane_physical_qp_close(l, &l->phys[number]);
}

/* A repaired DCI, or one more: where one is missing, else among the spares. */
static void take_qp(struct lane *l, struct fab_qp *qp, enum ibv_mtu most)
{
    uint32_t number = find_phys(l, qp);
    if (number == l->phys_room)
        number = open_initiator(l, qp);
    struct physical_qp *p = &l->phys[number];
    BASE_ASSERT(p->broken);
    l->narrow.phys[number] = (uint8_t)most;
    p->posted = 0;
    p->chain = p->chain_tail = NULL;
    if (number != l->system_phys && lane_initiator_mtu(l, p) != most) { /* of use where it is not */
        lane_event_push(
            l, &(struct lane_event){.kind = LANE_EVENT_QP_BROKEN,
                                    .broken = {.qp = qp, .most = lane_initiator_mtu(l, p)}});
        return;
    }
    p->broken = p->overdue = 0;
    if (number != l->system_phys && lane_initiator_back(l, p))
        lane_quarantine_take_dci(l);
}

static void drop_spare(struct lane *l)
{
    struct lane_event event = {.kind = LANE_EVENT_SPARE_DROPPED};
    uint32_t i = l->spare_count;
    while (i > 0 && l->phys[l->spare[i - 1]].head != l->phys[l->spare[i - 1]].tail)
        i--; /* a proof is out there */
    if (i > 0) {
        struct physical_qp *p = &l->phys[l->spare[i - 1]];
        l->spare[i - 1] = l->spare[--l->spare_count];
        event.qp = p->qp;
        lane_physical_qp_close(l, p);
    }
    lane_event_push(l, &event);
}

/* The place of a connection that is in the list already, or a new one. */
static struct physical_qp *phys_of(struct lane *l, struct fab_qp *qp)
{
    for (uint32_t i = 0; i < l->phys_room; i++)
        if (l->phys[i].qp == qp)
            return &l->phys[i];
    return lane_physical_qp_open(l, qp, NULL);
}

/* One that broke is not the lane's any more: this list was made before the control side heard that,
 * since then one comes without it. */
static void take_connection(struct lane *l, uint32_t i, struct fab_qp *const *lost)
{
    struct fab_qp *qp = l->metaserver[i].qp;
    for (uint32_t k = 0; k < LANE_MAX_METASERVERS; k++)
        if (lost[k] == qp) {
            l->metaserver_lost[i] = qp;
            return;
        }
    l->metaserver_phys[i] = phys_of(l, qp);
}

static bool has_handle(const struct lane_metaserver *list, uint32_t count, const struct fab_ah *ah)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i].ah == ah)
            return true;
    return false;
}

/* DC: those of the former list, each once. */
static void give_handles_back(struct lane *l, const struct lane_metaserver *list, uint32_t count)
{
    for (uint32_t i = 0; i < count && !l->config.rc; i++)
        if (list[i].ah != NULL && !has_handle(l->metaserver, l->metaservers, list[i].ah) &&
            !has_handle(list, i, list[i].ah))
            lane_event_push(
                l, &(struct lane_event){.kind = LANE_EVENT_DROP_PATH, .path.ah = list[i].ah});
}

/* A READ that is chained names an address handle of the former list, and is posted before that is
 * given back. Which the device refuses is chained anew meanwhile, and names one of this list. */
static void take_metaservers(struct lane *l, const struct lane_command *c)
{
    struct physical_qp *before[LANE_MAX_METASERVERS];
    struct fab_qp *lost[LANE_MAX_METASERVERS];
    struct lane_metaserver list[LANE_MAX_METASERVERS];
    const uint32_t listed = l->metaservers;
    memcpy(before, l->metaserver_phys, sizeof before);
    memcpy(list, l->metaserver, sizeof list);
    memcpy(lost, l->metaserver_lost, sizeof lost);
    memset(l->metaserver_phys, 0, sizeof l->metaserver_phys);
    memset(l->metaserver_lost, 0, sizeof l->metaserver_lost);
    l->metaservers = c->metaservers.count;
    memcpy(l->metaserver, c->metaservers.at, sizeof l->metaserver);
    lane_lookups_set_metaservers(l, list);
    for (uint32_t i = 0; i < l->metaservers && l->config.rc; i++)
        if (!l->metaserver[i].relayed)
            take_connection(l, i, lost);
    lane_returns_ring(l);
    give_handles_back(l, list, listed);
    for (uint32_t i = 0; i < LANE_MAX_METASERVERS; i++) {
        bool kept = before[i] == NULL;
        for (uint32_t k = 0; k < l->metaservers; k++)
            kept |= l->metaserver_phys[k] == before[i];
        if (!kept)
            lane_inflight_retire(l, before[i]);
    }
}

/* What workers have given back, or what the operator has revoked. */
static void take_fence(struct lane *l, struct session *s, uint32_t tag)
{
    if ((s->state == SESSION_LIVE || s->state == SESSION_AWAY) &&
        !lane_withdrawals_fenced(l, s, tag))
        lane_revocation_fenced(s, tag);
}

/* Of a session or its regions. False: of something else. */
static bool take_of_session(struct lane *l, const struct lane_command *c)
{
    switch (c->kind) {
    case LANE_COMMAND_SESSION_ADD:
        add_session(l, c);
        break;
    case LANE_COMMAND_SESSION_END:
        lane_session_end(l, &l->sessions[c->session], c->reason, false);
        break;
    case LANE_COMMAND_ARENA_ADD:
        add_arena(l, c);
        break;
    case LANE_COMMAND_SESSION_LEAVE:
        lane_session_leave(l, &l->sessions[c->session]);
        break;
    case LANE_COMMAND_SESSION_BACK:
        lane_session_back(l, &l->sessions[c->session]);
        break;
    case LANE_COMMAND_LODGER_ADD:
        lane_lodger_add(l, &c->add);
        break;
    case LANE_COMMAND_LODGER_RETURN:
        lane_lodger_return(l, c->session, c->hurry);
        break;
    case LANE_COMMAND_FENCED:
        take_fence(l, &l->sessions[c->session], c->tag);
        break;
    case LANE_COMMAND_MR_READY:
        lane_dedicated_ready(l, c);
        break;
    case LANE_COMMAND_MR_GONE:
        lane_withdrawals_gone(l, c);
        break;
    case LANE_COMMAND_REVOKE:
        lane_regions_revoke(l, c);
        break;
    case LANE_COMMAND_ARENA_REREGISTER:
        lane_arena_reregister(l, c);
        break;
    case LANE_COMMAND_FORCE_LATE:
        lane_force_late(l, c);
        break;
    case LANE_COMMAND_FORCE_OVER:
        lane_force_over(l, c);
        break;
    default:
        return false;
    }
    return true;
}

/* What was counted to it is not the next one's. */
static void forget_tenant(struct lane *l, uint32_t tenant_slot)
{
    lane_quarantine_forget(l, tenant_slot);
    lane_active_forget(l, tenant_slot);
    lane_control_forget_tenant(l, tenant_slot);
    lane_peer_room_forget(l, tenant_slot + 1);
}

static void take_of_lane(struct lane *l, const struct lane_command *c)
{
    switch (c->kind) {
    case LANE_COMMAND_PATH_READY:
        take_path(l, c);
        break;
    case LANE_COMMAND_AH_READY:
        lane_datagrams_take_ah(l, c->ah.tag, c->ah.ah);
        break;
    case LANE_COMMAND_NUMBER:
        lane_datagrams_take_number(l, c);
        break;
    case LANE_COMMAND_SPARE_DROP:
        drop_spare(l);
        break;
    case LANE_COMMAND_QP_READY:
        take_qp(l, c->ready.qp, c->ready.most);
        break;
    case LANE_COMMAND_QP_GONE:
        forget_initiator(l, c->qp);
        break;
    case LANE_COMMAND_UD_READY:
        lane_datagrams_ready(l, c->qp);
        break;
    case LANE_COMMAND_QP_FATAL:
        lane_physical_qp_fatal(l, c->qp);
        lane_datagrams_fatal(l, c->qp);
        break;
    case LANE_COMMAND_QP_REBUILD:
        lane_physical_qp_rebuild(l, c->qp);
        break;
    case LANE_COMMAND_QP_RETIRE:
        lane_returns_ring(l);
        lane_physical_qp_ring(l); /* of one whose end is asked for nothing is posted any more */
        lane_inflight_retire_qp(l, c->qp);
        break;
    case LANE_COMMAND_QP_DESTROYED:
        lane_returns_poll_all(l); /* what has completed before has not failed */
        lane_inflight_destroyed(l, c->qp);
        if (!l->config.rc)
            forget_initiator(l, c->qp);
        break;
    case LANE_COMMAND_METASERVERS:
        take_metaservers(l, c);
        break;
    case LANE_COMMAND_READDRESS:
        lane_readdress(
            l, c, c->readdress.mr_table != NULL ? lane_regions_move(l, c->readdress.mr_table) : 0);
        if (l->messages != NULL)
            lane_arrivals_readdress(l);
        break;
    case LANE_COMMAND_WINDOW:
        if (c->window.scope == LANE_WINDOW_TENANT && c->window.anew)
            forget_tenant(l, c->window.tenant);
        lane_windows_set(l, c);
        break;
    case LANE_COMMAND_WINDOW_POLICY:
        lane_windows_choose(l, c->window_policy);
        break;
    case LANE_COMMAND_RELAY:
        lane_relay_post(l, &c->relay);
        break;
    case LANE_COMMAND_RELAY_DONE:
        lane_lookup_relayed(l, c->relayed.tag, c->relayed.status);
        break;
    case LANE_COMMAND_PROVE:
        lane_proof_begin(l, c);
        break;
    default:
        break; /* of a session */
    }
}

/* What it takes beside others. */
static uint32_t cost_of(const struct lane_command *c)
{
    switch (c->kind) {
    case LANE_COMMAND_REVOKE: /* which look at all regions of a session */
    case LANE_COMMAND_ARENA_REREGISTER:
    case LANE_COMMAND_FENCED:
    case LANE_COMMAND_MR_GONE:
        return 8;
    case LANE_COMMAND_SESSION_LEAVE: /* which look at all of its VQPs */
    case LANE_COMMAND_SESSION_BACK:
    case LANE_COMMAND_LODGER_ADD:
    case LANE_COMMAND_LODGER_RETURN:
        return 16;
    case LANE_COMMAND_SESSION_ADD: /* which clears its place */
        return 4;
    default:
        return 1;
    }
}

void lane_commands_take(struct lane *l)
{
    struct lane_command c;
    for (uint32_t units = 0; units < UNITS && base_spsc_pop(l->commands, &c) == 0;
         units += cost_of(&c)) {
        l->did++;
        if (c.kind != LANE_COMMAND_PATH_READY || l->wanting) /* else it is one flow's news */
            l->changed = 1;
        if (!take_of_session(l, &c))
            take_of_lane(l, &c);
        if (returns_wait(l))
            lane_returns_take(l);
    }
}
