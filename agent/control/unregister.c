/* SPDX-License-Identifier: Apache-2.0 */
/* The node goes, and says so to the metaservers. */
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/http/client.h"
#include "agent.h"

void registrations_stop(struct pool *p)
{
    for (uint32_t i = 0; i < p->config->metaservers; i++)
        (void)uv_timer_stop(&p->registration[i].timer);
}

static void on_deleted(void *user, const struct http_answer *answer)
{
    struct agent *a = user;
    (void)answer;
    a->unregistering--;
}

/* All at once, and no longer than grace_ms together: the lease does the rest. */
void registrations_leave(struct agent *a, unsigned grace_ms)
{
    char url[METASERVER_URL_BYTES];
    uint64_t end = base_clock_ns() + grace_ms * BASE_NS_PER_MS;
    if (a->http_client == NULL)
        return;
    for (uint32_t i = 0; i < a->config.metaservers; i++) {
        const struct registration *r = &a->pools[0]->registration[i];
        snprintf(url, sizeof url, "%s/v1/nodes/%s?incarnation=%u", a->config.metaserver[i],
                 a->config.node, a->incarnation);
        const struct http_call c = metaserver_call(a, "DELETE", url, grace_ms);
        if (r->state == REGISTRATION_DONE &&
            http_client_call(a->http_client, &c, on_deleted, a, NULL) == 0)
            a->unregistering++;
    }
    while (a->unregistering > 0 && base_clock_ns() < end) {
        struct pollfd fd = {.fd = http_client_fd(a->http_client), .events = POLLIN};
        (void)poll(&fd, 1, 10);
        http_client_run(a->http_client);
    }
}
