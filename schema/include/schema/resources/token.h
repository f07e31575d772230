/* SPDX-License-Identifier: Apache-2.0 */
/* A token: what its bearer may do. schema/resources.h says what the rows are. */
#ifndef SCHEMA_RESOURCES_TOKEN_H
#define SCHEMA_RESOURCES_TOKEN_H

/* clang-format off */
#define TOKEN_FIELDS(NUMBER, OTHER)                                                                \
    OTHER(scope, FIELD_WORD, "SCOPE", NARROW,                                                      \
          "reader, operator, admin, agent or worker: what its bearer may")                         \
    OTHER(tenant, FIELD_WORD, "TENANT", NARROW,                                                    \
          "of the scope worker: whose workers show it to agents (KEDGE_WORKER_TOKEN)")             \
    OTHER(node, FIELD_WORD, "NODE", NARROW, "of the scope agent: the id of its node")              \
    OTHER(gids, FIELD_WORDS, "GIDS", NARROW,                                                       \
          "of the scope agent: the GIDs that its node may have, with commas")                      \
    OTHER(expires, FIELD_TIME, "EXPIRES", NARROW,                                                  \
          "2027-01-31T00:00:00Z, or from now on, such as 30d; empty: never")
/* clang-format on */

#endif
