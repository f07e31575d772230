/* SPDX-License-Identifier: Apache-2.0 */
/* Near messages as they are taken (schedule/near_sends.h): what an arrival is asked, each is, and
 * its payload is copied from the sender's memory to the receiver's. Private to agent/lane, and the
 * lane thread's.
 *
 * One that cannot be taken as it is now, for whatever reason, is not, and nothing is said or
 * counted of it: it goes by the device, and its arrival says why. */
#ifndef LANE_NEAR_MESSAGES_H
#define LANE_NEAR_MESSAGES_H

#include <stdint.h>

struct lane;

/* Those that wait, by turns of tenants, and of a tenant's VQPs: so many bytes, and the rest of a
 * message. */
void lane_near_go_on(struct lane *l, uint32_t most);

#endif
