/* SPDX-License-Identifier: Apache-2.0 */
/* The node goes, and says so to the metaservers. */
#include <stdio.h>

#include "agent.h"
#include "metaserver_call.h"
#include "register.h"

void agent_registrations_stop(struct pool *p)
{
    for (uint32_t i = 0; i < p->config->metaservers; i++)
        world_timer_clear(p->world, &p->registration[i].timer);
}

static void on_deleted(void *user, const struct http_answer *answer)
{
    struct agent *a = user;
    (void)answer;
    a->unregistering--;
}

/* All at once. Where one does not answer, the lease does it. */
void agent_registrations_leave(struct agent *a, unsigned grace_ms)
{
    char url[METASERVER_URL_BYTES];
    for (uint32_t i = 0; a->registering && i < a->config.metaservers; i++) {
        const struct registration *r = &a->pools[0]->registration[i];
        snprintf(url, sizeof url, "%s/v1/nodes/%s?incarnation=%u", a->config.metaserver[i],
                 a->config.node, a->incarnation);
        const struct http_call c = agent_metaserver_call(a, "DELETE", url, grace_ms);
        if (r->state == REGISTRATION_DONE && world_call(a->world, &c, on_deleted, a, NULL) == 0)
            a->unregistering++;
    }
}
