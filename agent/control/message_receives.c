/* SPDX-License-Identifier: Apache-2.0 */
#include "message_receives.h"

#include <assert.h>

#include "agent.h"
#include "agent/lane.h"
#include "pool.h"
#include "schema/message.h"

enum { DATAGRAM_BYTES = SCHEMA_DATAGRAM_BYTES + SCHEMA_DATAGRAM_NOTES * SCHEMA_NOTE_BYTES };
static_assert(DATAGRAM_BYTES <= (int)LANE_DATAGRAM_BYTES, "room for the longest");

uint32_t agent_messages_receives(const struct pool *p)
{
    const struct agent_device *d = &p->device;
    const struct fab_caps *caps = &d->fab->caps;
    const bool has_ud = (caps->transports & FAB_UD) && caps->ud_payload >= DATAGRAM_BYTES;
    if (!p->config->messages || !has_ud || p->first != NULL)
        return 0;
    return p->config->receives < caps->max_srq_wr ? (uint32_t)p->config->receives
                                                  : caps->max_srq_wr;
}

uint32_t agent_messages_completions(const struct pool *p)
{
    const uint32_t receives = agent_messages_receives(p);
    return receives != 0 ? receives + LANE_DATAGRAMS_IN + LANE_DATAGRAMS_OUT : 0;
}
