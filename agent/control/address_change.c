/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the device's address: asks for it now and then, and whenever the device says that it has
 * changed (not every driver does). What is decided about it (address.c) is carried out here:
 * sessions, arenas and regions live on; what leads to peers is made anew, and metaservers are told.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "address_change.h"
#include "agent.h"
#include "agent/connector.h"
#include "base/clock.h"
#include "control/world_log.h"
#include "due.h"
#include "fabric/port.h"
#include "lane_setup.h"
#include "life.h"
#include "bounds.h"
#include "peer_setup.h"
#include "pkey_watch.h"
#include "pools.h"
#include "register.h"
#include "sessions.h"

static void on_seen(struct fab_ctl *ctl);

static uint64_t next_look_ns(const struct agent *a)
{
    return fab_port_next_look_ns(world_now_ns(a->world));
}

void agent_address_init(struct agent *a)
{
    const struct fab_caps *caps = &a->fab->caps;
    a->address = (struct address){.sgid_index = caps->sgid_index, .lid = caps->lid};
    memcpy(a->address.gid, caps->gid, sizeof a->address.gid);
    a->address_due_ns = next_look_ns(a);
}

void agent_address_look(struct agent *a)
{
    a->address_due_ns = 0; /* again, if the device is being asked already */
    if (a->address_asked || a->stopping || a->device_lost)
        return;
    a->address_asked = true;
    a->address_due_ns = next_look_ns(a);
    a->address_ctl = (struct fab_ctl){.kind = FAB_QUERY_ADDRESS, .done = on_seen, .user = a};
    memcpy(a->address_ctl.address.gid, a->address.gid, sizeof a->address.gid);
    fab_submit(a->fab, &a->address_ctl);
}

static void retry_readdress(struct agent *a);
static bool may_retry(const struct pool *p);
static bool has_former(const struct pool *p);

uint64_t agent_address_due_ns(const struct agent *a)
{
    uint64_t due_ns = due_if(!a->address_asked, a->address_due_ns);
    if (a->stopping || a->device_lost)
        return DUE_NEVER;
    if (a->retarget_wanted)
        return DUE_NOW;
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p)) {
        due_ns = due_first(due_ns, due_if(may_retry(p), p->readdress.retry_ns));
        due_ns = due_first(due_ns, due_if(has_former(p), p->readdress.former_ns));
    }
    return due_ns;
}

static void leave_formers(const struct agent *a);

void agent_address_tick(struct agent *a)
{
    retry_readdress(a);
    leave_formers(a);
    if (a->retarget_wanted && !a->stopping && !a->device_lost)
        agent_address_retarget(a);
    if (world_now_ns(a->world) >= a->address_due_ns)
        agent_address_look(a);
}

void agent_address_port(struct agent *a, bool down)
{
    if (a->address.down == down)
        return;
    a->address.down = down;
    if (down)
        world_log(a->world, BASE_LOG_ERROR,
                  "the device's port is down: requests to other nodes end after their time-outs",
                  "device=\"%s\" port=%u", a->config.device, a->fab->caps.port_num);
    else
        world_log(a->world, BASE_LOG_INFO, "the device's port is up", "device=\"%s\" port=%u",
                  a->config.device, a->fab->caps.port_num);
}

void agent_address_why(const struct agent *a, char *why, size_t bytes)
{
    why[0] = '\0';
    if (a->address.gone)
        snprintf(why, bytes,
                 "this node's GID is not on the device's port any more, so that no other node is "
                 "reached: %s",
                 fab_port_gid_advice(&a->fab->caps));
    else if (a->address.down)
        snprintf(why, bytes, "the device's port is down, so that no other node is reached: %s",
                 fab_port_down_advice(&a->fab->caps));
}

/* ---- carried out */

/* A copy of the page that a worker reads at any time: the latest one is not written again before
 * the next change. */
static void tell_sessions(const struct pool *p)
{
    uint64_t word[2];
    memcpy(word, p->device.fab->caps.gid, sizeof word);
    for (uint64_t i = 0; p->sessions != NULL && i < p->config->max_sessions; i++) {
        struct schema_session_ro *ro = p->sessions[i].rings.ro;
        if (p->sessions[i].stage != STAGE_READY && p->sessions[i].stage != STAGE_LIVE &&
            p->sessions[i].stage != STAGE_ENDING)
            continue; /* a task thread has it; it is filled in later */
        const uint32_t changes = atomic_load_explicit(&ro->changes, memory_order_relaxed) + 1;
        /* Who sees these words sees the change before too, and so that his were overwritten. */
        atomic_thread_fence(memory_order_release);
        for (int k = 0; k < 2; k++)
            atomic_store_explicit(&ro->present_gid[changes % 2][k], word[k], memory_order_relaxed);
        atomic_store_explicit(&ro->changes, changes, memory_order_release);
    }
}

static void take_address(struct pool *p, bool renamed)
{
    struct lane_command c = {.kind = LANE_COMMAND_READDRESS};
    struct agent_table *table = pool_endpoint(p)->device.table;
    if (p->device.connector != NULL)
        connector_readdress(p->device.connector, p->incarnation, world_now_ns(p->world));
    memcpy(c.readdress.gid, p->device.fab->caps.gid, sizeof c.readdress.gid);
    c.readdress.incarnation = p->incarnation;
    c.readdress.mr_table = renamed ? &table->lane[p->lane_number].table : NULL;
    agent_pool_command(p, &c);
    if (renamed)
        tell_sessions(p);
}

/* Now that each pool has what it says: if there is anything that they have not heard. */
static void tell_metaservers(struct agent *a)
{
    a->endpoints += a->readdressed;
    a->readdressed = false;
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p)) {
        if (pool_endpoint(p)->readdress.moved && pool_registered(p) == p && !p->stopping)
            agent_registrations_readdress(p);
    }
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        p->readdress.moved = false;
    agent_registrations_changed(a);
}

static void one_less_readdresses(struct agent *a)
{
    if (--a->readdressing == 0 && !a->stopping)
        tell_metaservers(a);
}

static void tell_outcome(const struct pool *p, int status, bool failed_before)
{
    if (status != 0 && !failed_before)
        world_log(p->world, BASE_LOG_ERROR,
                  "a pool's DC target or MR table cannot be made anew, and peers do not reach it: "
                  "it is tried again",
                  "pool=%s error=\"%s\"", p->name, strerror(-status));
    else if (status == 0 && failed_before)
        world_log(p->world, BASE_LOG_INFO, "a pool is reached again", "pool=%s", p->name);
}

static uint64_t next_retry_ms(uint64_t before_ms)
{
    if (before_ms == 0)
        return READDRESS_MIN_MS;
    return 2 * before_ms < READDRESS_MAX_MS ? 2 * before_ms : READDRESS_MAX_MS;
}

/* What is there is taken: without a target peers are reached, though they do not reach this. */
static void end_readdress(struct pool *p)
{
    struct readdress *r = &p->readdress;
    const int status = r->target.status != 0 ? r->target.status : r->table.status;
    if (!p->stopping)
        tell_outcome(p, status, r->retry_ms != 0);
    r->retry_ms = status != 0 ? next_retry_ms(r->retry_ms) : 0;
    r->retry_ns = world_now_ns(p->world) + r->retry_ms * BASE_NS_PER_MS;
    if (r->paths && r->table.status == 0 && !p->stopping) {
        for (struct pool *l = p; l != NULL; l = agent_pools_next_lane(p, l)) {
            l->incarnation = p->incarnation;
            r->lanes_left++;
            take_address(l, r->renamed);
        }
        r->paths = r->renamed = false;
    }
    one_less_readdresses(p->agent);
}

static void begin_step(struct pool *p, struct readdress_step *s, enum world_device_step step)
{
    if (!s->wanted || s->out || p->stopping)
        return;
    s->wanted = false;
    s->status = world_device(p->world, step, p, NULL);
    s->out = s->status == 0;
}

static bool is_out(const struct readdress *r)
{
    return r->target.out || r->table.out;
}

static void begin_wanted(struct pool *p)
{
    struct readdress *r = &p->readdress;
    begin_step(p, &r->target, WORLD_DEVICE_TARGET);
    begin_step(p, &r->table, WORLD_DEVICE_TABLE);
    if (!is_out(r))
        end_readdress(p);
}

/* By then peers have READ the present target's record, if metaservers were told within as long, and
 * what they have posted to the former one is over. */
static uint64_t former_wait_ns(const struct pool *p)
{
    return 2 * NODE_BELIEVED_S * BASE_NS_PER_S + p->device.bound_ns;
}

static bool has_former(const struct pool *p)
{
    return p->readdress.former_ns != 0 && !p->stopping;
}

static void leave_formers(const struct agent *a)
{
    const uint64_t now_ns = world_now_ns(a->world);
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL && !a->device_lost;
         p = agent_pools_next(a, p))
        if (has_former(p) && now_ns >= p->readdress.former_ns) {
            p->readdress.former_ns = 0;
            (void)world_device(p->world, WORLD_DEVICE_FORMER, p, NULL);
        }
}

void agent_address_step_done(struct pool *p, enum world_device_step step, int status)
{
    struct readdress *r = &p->readdress;
    struct readdress_step *s = step == WORLD_DEVICE_TARGET ? &r->target : &r->table;
    s->out = false;
    s->status = status;
    if (status == 0 && step == WORLD_DEVICE_TARGET)
        r->former_ns = r->keeps ? world_now_ns(p->world) + former_wait_ns(p) : 0;
    p->agent->readdressed |= status == 0;
    begin_wanted(p);
}

/* That, and what failed. */
static void want_steps(struct pool *p, bool target, bool table)
{
    struct readdress *r = &p->readdress;
    r->target.wanted |= (target && !p->device.rc) || r->target.status != 0;
    r->table.wanted |= table || r->table.status != 0;
    p->agent->readdressing += !is_out(r);
    begin_wanted(p);
}

static void pool_readdress(struct pool *p, bool paths, bool renamed)
{
    struct readdress *r = &p->readdress;
    r->keeps = !paths; /* with the same address it may be in order */
    r->paths |= paths;
    r->renamed |= renamed;
    r->moved |= paths;
    p->agent->readdressed |= paths;
    if (renamed)
        p->incarnation = p->agent->incarnation;
    want_steps(p, true, renamed);
}

static bool may_retry(const struct pool *p)
{
    return p->readdress.retry_ms != 0 && !is_out(&p->readdress) && !p->stopping;
}

static void retry_readdress(struct agent *a)
{
    const uint64_t now_ns = world_now_ns(a->world);
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL && !a->stopping && !a->device_lost;
         p = agent_pools_next(a, p))
        if (may_retry(p) && now_ns >= p->readdress.retry_ns)
            want_steps(p, false, false);
}

void agent_address_paths_anew(struct pool *p)
{
    pool_readdress(p, true, false);
}

static void change_address(struct agent *a, bool renamed)
{
    fab_set_address(a->fab, a->address.gid, a->address.sgid_index, a->address.lid);
    a->readdressing++; /* until all have begun */
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        agent_peer_setup_readdress(p);
    for (struct pool *p = agent_pools_next_endpoint(a, NULL); p != NULL;
         p = agent_pools_next_endpoint(a, p))
        pool_readdress(p, true, renamed);
    one_less_readdresses(a);
}

/* The one before is still to be followed: it is looked at again. */
static bool is_changing(const struct agent *a)
{
    if (a->readdressing > 0)
        return true;
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        if (p->device.table_before != NULL)
            return true;
    return false;
}

static void act_on_news(struct agent *a, enum address_news news)
{
    char gid[BASE_GID_TEXT];
    const char *text = base_gid_format(a->address.gid, gid);
    const uint32_t index = a->address.sgid_index;
    a->address_news += news != ADDRESS_SAME;
    switch (news) {
    case ADDRESS_SAME:
        return;
    case ADDRESS_GONE:
        world_log(a->world, BASE_LOG_ERROR,
                  "this node's address is gone from the port: no peer is reached",
                  "gid=%s index=%u", text, index);
        return;
    case ADDRESS_BACK:
        world_log(a->world, BASE_LOG_INFO, "this node's address is back", "gid=%s index=%u", text,
                  index);
        return;
    case ADDRESS_MOVED:
        world_log(a->world, BASE_LOG_WARN,
                  "this node's address has moved: paths to peers are made anew",
                  "gid=%s index=%u lid=%u", text, index, a->address.lid);
        change_address(a, false);
        return;
    case ADDRESS_CHANGED:
        change_address(a, true);
        world_log(a->world, BASE_LOG_WARN,
                  "this node has another address: its workers go on, peers look it up again",
                  "gid=%s index=%u incarnation=%u", text, index, a->incarnation);
        return;
    }
}

/* Another name is taken only with an incarnation that the disk has kept, else the next life could
 * have the same one, or an earlier one. Where there is none the news is left as it is: it is seen
 * again at the next look, and the disk is asked meanwhile. */
static bool take_incarnation(struct agent *a)
{
    struct base_errbuf err = {""};
    const bool is_there = agent_life_next_incarnation(a, &a->incarnation, &err) == 0;
    if (!is_there && !a->address_waits)
        world_log(a->world, BASE_LOG_ERROR,
                  "this node has another address, which it cannot take yet: no peer reaches it",
                  "why=\"%s\"", err.text);
    a->address_waits = !is_there;
    return is_there;
}

static void on_seen(struct fab_ctl *ctl)
{
    struct agent *a = ctl->user;
    a->address_asked = false;
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL && !a->stopping;
         p = agent_pools_next(a, p))
        agent_pkey_watch_look(p);
    if (a->stopping || ctl->status != 0 || is_changing(a))
        return;
    agent_address_port(a, !ctl->address.now.active);
    struct address next = a->address;
    const enum address_news news =
        agent_address_seen(&next, &ctl->address.now, world_now_ns(a->world));
    if (news == ADDRESS_CHANGED && !take_incarnation(a))
        return;
    a->address = next;
    act_on_news(a, news);
}

void agent_address_retarget(struct agent *a)
{
    a->retarget_wanted = false;
    a->readdressing++;
    for (struct pool *p = agent_pools_next_endpoint(a, NULL); p != NULL;
         p = agent_pools_next_endpoint(a, p))
        pool_readdress(p, false, false);
    one_less_readdresses(a);
}

void agent_address_readdressed(struct pool *p, const struct lane_event *e)
{
    if (e->reason != 0)
        world_log(p->world, BASE_LOG_ERROR,
                  "regions got no place in the MR table under the new address: no peer finds them",
                  "pool=%s regions=%u", p->name, e->reason);
    if (--pool_endpoint(p)->readdress.lanes_left ==
        0) /* else a lane has regions in the former table */
        (void)world_device(p->world, WORLD_DEVICE_DROP, pool_endpoint(p), NULL);
}
