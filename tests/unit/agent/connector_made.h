/* SPDX-License-Identifier: Apache-2.0 */
/* A connector that is made at once, which an agent never does: it would wait for its device. */
#ifndef UNIT_AGENT_CONNECTOR_MADE_H
#define UNIT_AGENT_CONNECTOR_MADE_H

#include "agent/connector.h"
#include "base/error.h"

/* As connector_new() and connector_make(). */
static inline int connector_made(const struct connector_config *config,
                                 const struct connector_resources *r,
                                 int (*fill)(void *user, void *bytes, size_t n), void *user,
                                 struct connector **out, struct base_errbuf *err)
{
    struct fab_ctl ctl;
    int status = connector_new(config, r, fill, user, out, err);
    for (int next = 1; status == 0 && next != 0;) {
        next = connector_make(*out, &ctl, err);
        if (next > 0)
            (void)fab_call(r->fab, &ctl); /* which connector_make() hears of */
        else
            status = next;
    }
    return status;
}

#endif
