/* SPDX-License-Identifier: Apache-2.0 */
#include "control/unreached.h"

enum { LEAST_VOICES = 2 };

/* Half of it for each time that it was not needed for so long: were it forgotten at once, who keeps
 * silent that long after every fourth had one more than twice as often. */
static void halve_wait(struct agent_unreached *u, uint64_t now_ns)
{
    for (; u->wait_ns != 0 && now_ns - u->halved_ns >= AGENT_UNREACHED_MOST_NS;
         u->halved_ns += AGENT_UNREACHED_MOST_NS)
        u->wait_ns = u->wait_ns > AGENT_UNREACHED_WAIT_NS ? u->wait_ns / 2 : 0;
}

bool agent_unreached_hear(struct agent_unreached *u, uint32_t by, uint32_t tried_by,
                          uint64_t for_ns, uint64_t now_ns)
{
    const bool before = u->is;
    u->is = by >= LEAST_VOICES && by <= tried_by && 2 * (uint64_t)by > tried_by;
    u->by = u->is ? by : 0;
    u->tried_by = u->is ? tried_by : 0;
    u->since_ns = !u->is ? 0 : for_ns < now_ns ? now_ns - for_ns : 0;
    if (!u->is)
        halve_wait(u, now_ns);
    return u->is != before;
}

bool agent_unreached_may(const struct agent_unreached *u, uint64_t now_ns)
{
    return u->is && (u->wait_ns == 0 || now_ns - u->anew_ns >= u->wait_ns);
}

void agent_unreached_heed(struct agent_unreached *u, uint64_t now_ns, uint64_t least_ns)
{
    uint64_t wait_ns = u->wait_ns == 0 ? AGENT_UNREACHED_WAIT_NS : 2 * u->wait_ns;
    if (wait_ns < least_ns)
        wait_ns = least_ns;
    u->wait_ns = wait_ns < AGENT_UNREACHED_MOST_NS ? wait_ns : AGENT_UNREACHED_MOST_NS;
    u->anew_ns = u->halved_ns = now_ns;
    u->anew++;
}
