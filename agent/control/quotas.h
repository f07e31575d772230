/* SPDX-License-Identifier: Apache-2.0 */
/* What each tenant may have, and what it has. Control thread. */
#ifndef CONTROL_QUOTAS_H
#define CONTROL_QUOTAS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane.h"
#include "control/tenants.h"

struct agent;
struct agent_session;
struct agent_tenant_config;
struct base_errbuf;
struct lane_event;
struct lane_quota;
struct pool;

/* What a tenant has that its quotas of sessions and memory bound. */
struct quota_used {
    uint64_t sessions;
    uint64_t ended;      /* of these: they are over, and their workers' processes have them still */
    uint64_t bytes;      /* of arenas, from the asking until they are freed */
    uint64_t bytes_left; /* of `bytes`: no session has them any more */
    uint64_t firsts;     /* sessions that have an arena */
    uint64_t arenas;     /* that sessions have, or have asked for */
    uint64_t places;     /* sessions that are not being taken back yet, also those that are over */
};
/* What of that a session counts to its tenant (its index + 1; 0: none). */
struct quota_counted {
    uint32_t tenant;
    bool is_session, ended, has_arena, has_place;
    uint32_t arenas;
    uint64_t bytes;
};
/* After whatever changes what a session counts: its stage, its arenas, that its worker has it
 * still. So nothing has to look at all sessions for what workers ask. */
void agent_quotas_note(struct agent_session *s);
/* Of all pools, of each tenant. */
void agent_quotas_used(const struct agent *a, struct quota_used used[AGENT_TENANT_SLOTS]);
/* When an operator looks: all sessions are looked at, to see that they were counted right. False:
 * they were not, which was said, and are now. */
bool agent_quotas_recount(struct agent *a);
/* A tenant's settings in force (its index + 1). */
const struct agent_tenant_config *agent_quota_tenant(const struct agent *a, uint32_t tenant);
/* As in the settings: a literal. */
const char *agent_quota_name(enum lane_quota_kind which);
/* Whether it may have as much more, counted over all pools: 0; or -EDQUOT, which is counted, and a
 * sentence; or likewise -EAGAIN: once what its sessions have left is freed, which takes no more
 * than moments. */
int agent_quota_check(struct pool *p, uint32_t tenant, uint64_t more_sessions, uint64_t more_bytes,
                      struct base_errbuf *why);
/* Whether the host, and the agent's control group, has room for as much more of arenas, whatever
 * quotas say: 0; or -ENOMEM and a sentence; or likewise -EAGAIN, as above. */
int agent_quota_check_host(const struct agent *a, uint64_t more_bytes, struct base_errbuf *why);
/* Likewise for sessions' first ones, which are made ahead: a little more, so that who has asked for
 * many keeps nobody from attaching. What there is is looked at once a second: this is asked for
 * each worker that comes. */
int agent_quota_check_host_first(struct agent *a, uint64_t more_bytes, struct base_errbuf *why);
/* Whether it may ask for something now: as agent_quota_check(). Its workers' requests to the lane
 * are of the same budget. */
int agent_quota_ask(struct pool *p, uint32_t tenant, struct base_errbuf *why);
/* An arena of so many bytes is more than the tenant's whole quota: -EDQUOT and the sentence. */
int agent_quota_say_arena(const struct agent *a, uint32_t tenant, uint64_t bytes,
                          struct base_errbuf *why);
/* Counts a refusal: -EDQUOT and the sentence. */
int agent_quota_refuse(struct pool *p, uint32_t tenant, enum lane_quota_kind which,
                       struct base_errbuf *why);
/* A lane has put a tenant apart from others, or does so no more (agent/lane.h): logged. */
void agent_quotas_apart(struct pool *p, const struct lane_event *e);
/* What of a tenant is counted for ever. */
struct quota_counts {
    uint64_t control_ops, refused[LANE_QUOTAS];
};
void agent_quotas_add(struct quota_counts *sum, const struct lane_quota *quota);
/* What of a capacity is reserved for each tenant that there is now (agent/reserve.h); of a pool's
 * for each that is the pool's. NULL: of the agent's. */
void agent_quotas_reserve(const struct agent *a, const struct pool *p, uint64_t capacity,
                          uint32_t reserved[AGENT_TENANT_SLOTS]);
/* Whether a worker of another tenant may come to that pool. */
bool agent_quotas_have_others(const struct pool *p, uint32_t tenant);
/* Whether workers of several tenants may come to this pool. */
bool agent_quotas_are_shared(const struct pool *p);
/* After a change of tenants: their quotas hold for whatever is asked for from now on. */
void agent_quotas_apply(struct pool *p);
/* Whether what it has counts to its tenant. */
bool agent_session_has_tenant(const struct agent_session *s);

#endif
