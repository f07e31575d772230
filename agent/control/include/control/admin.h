/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked at the agent's admin socket, and its answers. The socket, its requests and their
 * bounds are the world's; the core has the texts. Control thread. */
#ifndef CONTROL_ADMIN_H
#define CONTROL_ADMIN_H

#include "control/world.h"

struct agent;
struct world_request; /* the world's: one that has no answer yet */

/* Texts are the world's while this is dealt with. NULL: the query has none of that name. */
struct admin_request {
    const char *method, *path;
    const char *limit, *cursor, *tenant, *worker, *force;
};

/* All the core's, while this is called. */
struct admin_answer {
    int status;               /* of HTTP */
    const char *content_type; /* NULL: JSON */
    const char *body;
    size_t length;
    const char *allow; /* the methods that there are, or NULL */
};

/* Deals with it. True: it has been answered; else it is later. */
bool agent_admin_take(struct agent *a, struct world_request *r,
                      const struct admin_request *request);
/* It will not be answered: the server ends. */
void agent_admin_forget(struct agent *a, const struct world_request *r);

struct world_admin_ops {
    /* Once, as is the next. */
    void (*answer)(struct world *w, struct world_request *r, const struct admin_answer *answer);
    /* With an error, of either sign, and a sentence or NULL. */
    void (*refuse)(struct world *w, struct world_request *r, int errnum, const char *detail);
    /* Whether its client is known to have gone. */
    bool (*is_gone)(struct world *w, const struct world_request *r);
};

static inline void world_answer(struct world *w, struct world_request *r,
                                const struct admin_answer *answer)
{
    w->admin->answer(w, r, answer);
}

static inline void world_refuse(struct world *w, struct world_request *r, int errnum,
                                const char *detail)
{
    w->admin->refuse(w, r, errnum, detail);
}

static inline bool world_is_gone(struct world *w, const struct world_request *r)
{
    return w->admin->is_gone(w, r);
}

#endif
