/* SPDX-License-Identifier: Apache-2.0 */
/* What all requests to metaservers have in common. */
#include "daemon.h"

struct kedge_http_call metaserver_call(const struct agent *a, const char *method, const char *url,
                                       uint32_t ms)
{
    return (struct kedge_http_call){.method = method,
                                    .url = url,
                                    .token_file = a->config.token_file,
                                    .connect_timeout_ms = ms,
                                    .timeout_ms = ms};
}
