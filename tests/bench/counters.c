/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent counts, as its operator sees it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/http/client.h"
#include "perf.h"

/* The sum of all the agent's pools. */
static bool find_counter(const char *metrics, const char *name, uint64_t *out)
{
    const size_t length = strlen(name);
    bool found = false;
    *out = 0;
    for (const char *line = metrics; line != NULL; line = strchr(line, '\n')) {
        unsigned long long value;
        line += *line == '\n';
        if (strncmp(line, name, length) != 0 || line[length] != '{' ||
            sscanf(line + length, "{pool=\"%*[^\"]\"} %llu", &value) != 1)
            continue;
        *out += value;
        found = true;
    }
    return found;
}

int perf_counters(const char *admin_socket, const char *const *names, size_t count, uint64_t *out,
                  bool *all, struct base_errbuf *err)
{
    struct http_result result;
    struct http_call call = {
        .url = "http://localhost/metrics", .unix_path = admin_socket, .timeout_ms = 10000};
    *all = true;
    memset(out, 0, count * sizeof *out);
    int status = http_call(&call, &result, err);
    if (status != 0)
        return status;
    for (size_t i = 0; i < count && result.status == 200; i++)
        *all &= find_counter(result.body, names[i], &out[i]);
    if (result.status != 200)
        status = base_err(err, -EIO, "%s answers %d", admin_socket, result.status);
    http_result_fini(&result);
    return status;
}
