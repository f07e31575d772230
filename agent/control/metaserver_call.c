/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver_call.h"

#include "agent.h"
#include "base/clock.h"
#include "bounds.h"

struct http_call agent_metaserver_call(const struct agent *a, const char *method, const char *url,
                                       uint32_t ms)
{
    return (struct http_call){.method = method,
                              .url = url,
                              .token_file = a->config.token_file,
                              .connect_timeout_ms = ms,
                              .timeout_ms = ms};
}

uint64_t agent_stream_next_ns(const struct agent *a, uint64_t *backoff_ms, bool late)
{
    const bool again = late && *backoff_ms > STREAM_TRY_MS;
    const uint64_t most_ms = again ? LATE_MAX_MS : BACKOFF_MAX_MS;
    const uint64_t ms = again && *backoff_ms < LATE_MS ? LATE_MS : *backoff_ms;
    uint32_t random = 0;
    *backoff_ms = 2 * ms > most_ms ? most_ms : 2 * ms;
    (void)world_random(a->world, &random, sizeof random); /* else none */
    return world_now_ns(a->world) + (ms - random % (ms / 2 + 1)) * BASE_NS_PER_MS;
}
