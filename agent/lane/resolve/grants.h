/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that a session has imported. Private to agent/lane, and the lane thread's. */
#ifndef LANE_GRANTS_H
#define LANE_GRANTS_H

#include <stdbool.h>
#include <stdint.h>

struct lane;
struct session;

bool lane_grant_is_there(const struct session *s, uint32_t vkey, const uint8_t secret[16]);
/* False: it has as many as it may. */
bool lane_grant_add(struct lane *l, struct session *s, uint32_t vkey, const uint8_t secret[16]);

/* Takes back those with that key, which two regions of different owners may have. Goes through all
 * of the session's. False: it has none. */
bool lane_grant_remove(struct session *s, uint32_t vkey);

#endif
