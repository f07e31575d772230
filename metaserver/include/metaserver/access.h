/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks, and whether they may. Decides alone: the routes and what each needs are in routes.c.
 *
 * One thread. Whoever shows a token is held to it, wherever they come from. */
#ifndef METASERVER_ACCESS_H
#define METASERVER_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "metaserver/resources.h"

/* The least scope that a route needs. */
enum kedge_need {
    KEDGE_NEED_NOTHING,
    KEDGE_NEED_READER,
    KEDGE_NEED_OPERATOR,
    KEDGE_NEED_ADMIN,
    KEDGE_NEED_LOCK, /* admin, and never without a credential: what gives access away */
};
/* Whether an agent's token will do as well: the token of the node in the path, or that of any. */
enum kedge_need_agent { KEDGE_AGENT_NO, KEDGE_AGENT_OWN, KEDGE_AGENT_ANY };

enum kedge_caller_kind {
    KEDGE_CALLER_UNKNOWN, /* shows nothing */
    KEDGE_CALLER_WRONG,   /* shows what is no token, or one that is not valid any more */
    KEDGE_CALLER_LOCAL,   /* root, or the metaserver's own user, on its admin socket */
    KEDGE_CALLER_TOKEN,
};

struct kedge_caller {
    enum kedge_caller_kind kind;
    const struct kedge_setting *token; /* of KEDGE_CALLER_TOKEN: borrowed until the next change */
    const char *why;                   /* of KEDGE_CALLER_WRONG: a literal */
};

/* "reader", "operator", "admin" or "any": a literal. */
const char *kedge_need_name(enum kedge_need need);

/* authorization: the header's value, or NULL. local: of the admin socket, as above. wall_ms: since
 * 1970. */
struct kedge_caller kedge_access_caller(const struct kedge_settings *s, const char *authorization,
                                        bool local, uint64_t wall_ms);

/* open: whoever shows nothing may all but give access away. id: of the path, "" without. 0;
 * -EKEYREJECTED: a (valid) token is needed; -EACCES: another one, and *fault says which. */
int kedge_access_decide(const struct kedge_caller *caller, bool open, enum kedge_need need,
                        enum kedge_need_agent agent, const char *id, struct kedge_fault *fault);

/* Whether a caller may say that a GID is its node's. */
bool kedge_access_has_gid(const struct kedge_caller *caller, const uint8_t gid[16]);

#endif
