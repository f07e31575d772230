/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a pool with all of its lanes, in steps: nothing waits for the device. (The end of all
 * pools, with the agent's, is in pools.h.) Control thread. */
#ifndef CONTROL_POOL_END_H
#define CONTROL_POOL_END_H

struct pool;

/* One that is quiet, or could not be made, as far as that goes now: called again until
 * agent_pools_find() has it no longer, and *endpoint is gone with its further lanes. */
void agent_pool_close(struct pool *endpoint);

#endif
