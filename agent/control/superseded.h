/* SPDX-License-Identifier: Apache-2.0 */
/* A metaserver that knows a later incarnation of this node, because our state was lost or put back.
 */
#ifndef CONTROL_SUPERSEDED_H
#define CONTROL_SUPERSEDED_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct registration;

/* Whether that is why it has refused the registration: everything that carries the incarnation is
 * made anew then, above that one. Once for each metaserver: when it happens again, somebody else
 * uses the node's id, and the two would supersede each other for ever, which *why says. */
bool agent_registration_is_superseded(struct registration *r, const json_t *problem,
                                      const char **why);
/* The least incarnation of the life that follows; @known is the node's (0: none is). Pools that
 * were made in that life, each time with a number of its own, have later ones, which no metaserver
 * keeps of a node that has expired: a life is taken to draw fewer than 4,096. */
uint32_t agent_superseded_least_incarnation(uint32_t known);

#endif
