/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver_call.h"

#include "agent.h"

struct http_call agent_metaserver_call(const struct agent *a, const char *method, const char *url,
                                       uint32_t ms)
{
    return (struct http_call){.method = method,
                              .url = url,
                              .token_file = a->config.token_file,
                              .connect_timeout_ms = ms,
                              .timeout_ms = ms};
}
