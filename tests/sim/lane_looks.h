/* SPDX-License-Identifier: Apache-2.0 */
/* What is looked at in a lane after each pass: that nothing in flight is beyond a window, and no
 * tenant has more VQPs and regions than its quota, but for what it had when an operator made that
 * narrower; and, now and then, that windows and quotas count what is there, and that workers are
 * shown with what they wait for. What is there is counted anew, from the requests that are out and
 * the sessions themselves.
 *
 * One thread, between two passes. */
#ifndef SIM_LANE_LOOKS_H
#define SIM_LANE_LOOKS_H

#include <stdint.h>

struct lane;
struct play_lane_looks;

/* NULL: no memory. */
struct play_lane_looks *play_lane_looks_new(const struct lane *lane);
void play_lane_looks_free(struct play_lane_looks *looks);
/* A violation is in the name of `who`. Places of tenants from that number on have been free since
 * the last look: they are looked at now and then. */
void play_lane_look(struct play_lane_looks *looks, const struct lane *lane, uint32_t tenants,
                    const char *who);

#endif
