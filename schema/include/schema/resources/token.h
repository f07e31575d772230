/* SPDX-License-Identifier: Apache-2.0 */
/* A token: what its bearer may do. schema/resources.h says what the rows are. Its secret, and the
 * hash of it, are no fields: the metaserver alone has to do with them. */
#ifndef SCHEMA_RESOURCES_TOKEN_H
#define SCHEMA_RESOURCES_TOKEN_H

/* Each of the first three may all that the one before may; an agent may what its node needs, and
 * nothing else; a worker nothing at a metaserver: it shows its token to the agent where it
 * attaches. */
/* clang-format off */
#define RESOURCE_TOKEN_SCOPES(WORD)                                                                \
    WORD(RESOURCE_SCOPE_READER, "reader")                                                          \
    WORD(RESOURCE_SCOPE_OPERATOR, "operator")                                                      \
    WORD(RESOURCE_SCOPE_ADMIN, "admin")                                                            \
    WORD(RESOURCE_SCOPE_AGENT, "agent")                                                            \
    WORD(RESOURCE_SCOPE_WORKER, "worker")

#define TOKEN_FIELDS(NUMBER, CHOICE, REFERENCE, OTHER)                                             \
    CHOICE(scope, resource_token_scope, IN_ORDER, "SCOPE", NARROW, "what its bearer may")          \
    REFERENCE(tenant, FIELD_REFERENCE, TENANT, LAST, "TENANT", NARROW,                             \
              "of the scope worker: whose workers show it to agents (KEDGE_WORKER_TOKEN)")         \
    REFERENCE(node, FIELD_REFERENCE, NODE, IN_ORDER, "NODE", NARROW,                               \
              "of the scope agent: the id of its node")                                            \
    OTHER(gids, FIELD_GIDS, IN_ORDER, "GIDS", NARROW,                                              \
          "of the scope agent: the GIDs that its node may have, with commas")                      \
    OTHER(expires, FIELD_TIME, LAST, "EXPIRES", NARROW,                                            \
          "2027-01-31T00:00:00Z, or from now on, such as 30d; empty: never")
/* clang-format on */

#endif
