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
enum meta_need {
    META_NEED_NOTHING,
    META_NEED_READER,
    META_NEED_OPERATOR,
    META_NEED_ADMIN,
    META_NEED_LOCK, /* admin, and never without a credential: what gives access away */
};
/* Whether an agent's token will do as well: the token of the node in the path, or that of any. */
enum meta_need_agent { META_AGENT_NO, META_AGENT_OWN, META_AGENT_ANY };

enum meta_caller_kind {
    META_CALLER_UNKNOWN, /* shows nothing */
    META_CALLER_WRONG,   /* shows what is no token, or one that is not valid any more */
    META_CALLER_LOCAL,   /* root, or the metaserver's own user, on its admin socket */
    META_CALLER_TOKEN,
    META_CALLER_NODE, /* shows no token, but a certificate that names a node */
};

/* That a client has shown, and that is believed. Borrowed. */
struct meta_certificate {
    const char *uri; /* "kedge://node/NAME"; "": it names none */
    const uint8_t (*gid)[16];
    uint32_t gids;
};
/* What a request shows. */
struct meta_shown {
    const char *authorization; /* the header's value, or NULL */
    bool local;                /* of the admin socket, as above */
    bool exposed; /* others have seen it on its way, and tokens are not to be taken so */
    const struct meta_certificate *certificate; /* or NULL */
};

struct meta_caller {
    enum meta_caller_kind kind;
    const struct meta_resource *token; /* of META_CALLER_TOKEN: borrowed until the next change */
    const char *why;                   /* of META_CALLER_WRONG: a literal */
    /* Of META_CALLER_NODE; of META_CALLER_TOKEN likewise, if it is an agent's and both were shown:
     * then both have to allow it. Borrowed as what was shown; node NULL: none. */
    const char *node;
    const struct meta_certificate *certificate;
};

/* "reader", "operator", "admin" or "any": a literal. */
const char *meta_need_name(enum meta_need need);

/* wall_ms: since 1970. */
struct meta_caller meta_access_caller(const struct meta_resources *s,
                                      const struct meta_shown *shown, uint64_t wall_ms);

/* open: whoever shows nothing may all but give access away. id: of the path, "" without. 0;
 * -EKEYREJECTED: a (valid) token is needed; -EACCES: another one, and *violation says which. */
int meta_access_decide(const struct meta_caller *caller, bool open, enum meta_need need,
                       enum meta_need_agent agent, const char *id,
                       struct meta_violation *violation);

/* Whether a caller may say that a GID is its node's. NULL; or which of "token" and "certificate"
 * does not list it. */
const char *meta_access_lacks_gid(const struct meta_caller *caller, const uint8_t gid[16]);

#endif
