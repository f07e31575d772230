/* SPDX-License-Identifier: Apache-2.0 */
/* Who may attach, and with which quotas: the tenants of the agent's own file, and those that the
 * metaservers say, which take the place of the file's of the same name as long as they are said.
 *
 * What two of them claim is one's alone: a uid or a token of the file's tenant stays that tenant's,
 * and of two that metaservers say the first that came has it. The other one is in force but for
 * that, and `why` names it. So it does a tenant of the file whose uids or tokens nobody has now: a
 * tenant of the metaservers that says none has none, since an operator who takes a uid away there
 * means it to be refused on every node, whatever its file says.
 *
 * No I/O. A tenant keeps its number (its index + 1) as long as anything of it is left: its sessions
 * and the arenas that it had are known by it. One thread. */
#ifndef CONTROL_TENANTS_H
#define CONTROL_TENANTS_H

#include <stdbool.h>
#include <stdint.h>

#include "control/config.h"

enum {
    /* Those of the file and those that metaservers say; more while some are leaving. */
    AGENT_TENANT_SLOTS = 2 * AGENT_TENANTS,
    AGENT_TENANTS_WHY = 240
};

enum agent_tenant_state {
    AGENT_TENANT_FREE,
    AGENT_TENANT_LIVE,
    AGENT_TENANT_LEAVING /* nobody says it any more; something of it is left */
};

struct agent_tenant {
    enum agent_tenant_state state;
    bool central;                      /* what is in force is the metaservers' */
    struct agent_tenant_config config; /* in force */
    struct agent_tenant_config own;    /* the file's; its name is empty if it says none */
    uint32_t arenas;                   /* that it was lent and that are not freed: the owner's */
    /* Bytes of arenas that its workers have asked for, have or had: from the asking until they are
     * freed, or kept for its next worker. The owner's. */
    uint64_t arena_bytes;
};

struct agent_tenants {
    struct agent_tenant at[AGENT_TENANT_SLOTS];
    uint32_t leaving;                /* of them */
    char refused[AGENT_TENANTS_WHY]; /* tenants that have no place; empty: all have */
    /* What is not in force of what metaservers say, or of who belongs to the file's tenants by it;
     * empty: all is. */
    char why[AGENT_TENANTS_WHY];
};

/* Those of the file. */
void agent_tenants_init(struct agent_tenants *t, const struct agent_config *config);

/* The index of a uid's tenant, or -EACCES. */
int agent_tenants_find(const struct agent_tenants *t, uid_t uid);
/* Of a uid that has none: the index of the tenant that has it by the file, in whose place that of
 * the metaservers stands, without it; or -ENOENT. */
int agent_tenants_find_replaced(const struct agent_tenants *t, uid_t uid);
/* That of a token, at a time (ms since 1970): likewise. Takes as long whichever it is, and whether
 * it is one. */
int agent_tenants_find_token(const struct agent_tenants *t, const uint8_t sha256[BASE_DIGEST_BYTES],
                             uint64_t wall_ms);

/* Whether any tenant has a token, be it one that has expired. */
bool agent_tenants_have_tokens(const struct agent_tenants *t);

/* What the metaservers say takes the place of what they said before, as far as that can be: `why`
 * says what cannot. leave[i] is set for each that nobody says any more: end its sessions. A tenant
 * gets no place while there is none, or another of the same hash is there; those that are here keep
 * theirs. Returns whether one that got none may get it when those that are leaving have gone. */
bool agent_tenants_set(struct agent_tenants *t, const struct agent_tenant_config *list,
                       uint32_t count, bool leave[AGENT_TENANT_SLOTS]);

/* The file was read anew: windows and tokens of the tenants that it had at the start are what it
 * says now, and in force unless the metaservers say others. All of that; or -EEXIST and a sentence,
 * and nothing: a token that is new in it is that of another tenant there. */
int agent_tenants_reload(struct agent_tenants *t, const struct agent_config *fresh,
                         struct base_errbuf *why);

/* Nothing is left of it but what `arenas` counts: its place is free once that is 0. */
void agent_tenants_release(struct agent_tenants *t, uint32_t index);

#endif
