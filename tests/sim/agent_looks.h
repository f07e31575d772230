/* SPDX-License-Identifier: Apache-2.0 */
/* What is looked at in an agent after whatever its loop has done: sessions and memory of tenants
 * are counted as they are and within their quotas, but for what was there when an operator made one
 * narrower; all lanes together keep to the device's window, and have been told the windows that
 * there are.
 *
 * One thread. */
#ifndef SIM_AGENT_LOOKS_H
#define SIM_AGENT_LOOKS_H

#include <stdint.h>

struct agent;
struct play_agent_looks;

/* NULL: no memory. */
struct play_agent_looks *play_agent_looks_new(void);
void play_agent_looks_free(struct play_agent_looks *looks);
/* A violation is in the name of `who`. */
void play_agent_look(struct play_agent_looks *looks, const struct agent *a, const char *who);
/* How many places of tenants may be taken: the first ones. */
uint32_t play_agent_looks_tenants(const struct play_agent_looks *looks);
/* Once a second, while it waits: windows of lanes are as it says. */
void play_agent_look_at_told(struct play_agent_looks *looks, const struct agent *a,
                             const char *who);
/* After each pass of a lane: what is in flight of all of them. */
void play_agent_look_at_device(struct play_agent_looks *looks, const struct agent *a,
                               const char *who);

#endif
