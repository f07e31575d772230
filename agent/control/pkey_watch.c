/* SPDX-License-Identifier: Apache-2.0 */
#include "pkey_watch.h"

#include <stdio.h>
#include <string.h>

#include "address_change.h"
#include "agent.h"
#include "agent/connector.h"
#include "control/world_log.h"
#include "peer_setup.h"
#include "pools.h"

static struct fab_pd *domain_of(const struct pool *p, uint32_t domain)
{
    return domain == 0 ? p->device.pd : p->device.system_pd;
}

static void on_found(struct fab_ctl *ctl);

/* From this domain on; false: there is none to ask about. */
static bool ask_for_next(struct pool *p)
{
    struct pkey_watch *w = &p->pkeys;
    for (; w->domain < PKEY_DOMAINS; w->domain++) {
        const struct fab_pd *pd = domain_of(p, w->domain);
        if (pd == NULL || pd->pkey == 0)
            continue;
        w->ctl = (struct fab_ctl){
            .kind = FAB_QUERY_PKEY, .done = on_found, .user = p, .pkey.pkey = pd->pkey};
        w->asking = true;
        p->fab_ops++;
        fab_submit(p->device.fab, &w->ctl);
        return true;
    }
    return false;
}

/* Queue pairs and DC targets send and answer by a place in the table, which is another partition's
 * now, or nobody's. */
static void leave_former_place(struct pool *p)
{
    for (struct pool *l = p; l != NULL; l = agent_pools_next_lane(p, l))
        agent_peer_setup_repartition(l);
    agent_address_paths_anew(p);
}

static void tell_gone(struct pool *p, const struct fab_pd *pd)
{
    world_log(p->world, BASE_LOG_ERROR,
              "a pool's P_Key is not in the port's table any more: no peer is reached until the "
              "subnet manager puts this port into that partition again",
              "pool=%s pkey=0x%04x index=%u", p->name, pd->pkey, pd->service.pkey_index);
    p->pkeys.gone = pd->pkey;
}

static void take_place(struct pool *p, struct fab_pd *pd, const struct fab_ctl *found)
{
    struct pkey_watch *w = &p->pkeys;
    const uint16_t before = pd->service.pkey_index, index = found->pkey.index;
    if (!found->pkey.there) {
        if (w->gone != pd->pkey)
            tell_gone(p, pd);
        return;
    }
    if (w->gone == pd->pkey) {
        world_log(p->world, BASE_LOG_INFO, "a pool's P_Key is in the port's table again",
                  "pool=%s pkey=0x%04x index=%u", p->name, pd->pkey, index);
        w->gone = 0;
    }
    if (index == before)
        return;
    world_log(p->world, BASE_LOG_WARN,
              "a pool's P_Key is at another place of the port's table: what leads to peers is made "
              "anew",
              "pool=%s pkey=0x%04x index=%u before=%u", p->name, pd->pkey, index, before);
    fab_set_pkey_index(pd, index);
    w->moved = true;
}

static void on_found(struct fab_ctl *ctl)
{
    struct pool *p = ctl->user;
    struct pkey_watch *w = &p->pkeys;
    p->fab_ops--;
    w->asking = false;
    if (p->stopping)
        return;
    if (ctl->status == 0)
        take_place(p, domain_of(p, w->domain), ctl);
    w->domain++;
    if (ask_for_next(p))
        return;
    if (w->moved)
        leave_former_place(p);
    w->moved = false;
    if (w->again)
        agent_pkey_watch_look(p);
}

void agent_pkey_watch_look(struct pool *p)
{
    struct pkey_watch *w = &p->pkeys;
    w->again = w->asking;
    if (p->first != NULL) /* whose first lane looks */
        return;
    if (w->asking || p->stopping || p->agent->device_lost || p->device.fab == NULL)
        return;
    w->domain = 0;
    (void)ask_for_next(p);
}

void agent_pkey_watch_why(const struct agent *a, char *why, size_t bytes)
{
    why[0] = '\0';
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p)) {
        if (p->pkeys.gone == 0)
            continue;
        snprintf(why, bytes,
                 "P_Key 0x%04x of pool %.63s is not in the port's table any more, so that its "
                 "workers reach no other node: have the subnet manager put this port into that "
                 "partition",
                 p->pkeys.gone, p->name);
        return;
    }
}
