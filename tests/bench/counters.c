/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent counts, as its operator sees it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/http/client.h"
#include "counters.h"
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

/* Of one lane, of whichever pool. */
static bool find_of_lane(const char *metrics, const char *name, uint32_t lane, uint64_t *out)
{
    const size_t length = strlen(name);
    for (const char *line = metrics; line != NULL; line = strchr(line, '\n')) {
        unsigned long long value;
        unsigned number;
        line += *line == '\n';
        if (strncmp(line, name, length) != 0 || line[length] != '{' ||
            sscanf(line + length, "{pool=\"%*[^\"]\",lane=\"%u\"} %llu", &number, &value) != 2 ||
            number != lane)
            continue;
        *out = value;
        return true;
    }
    return false;
}

static int ask_metrics(const char *admin_socket, struct http_result *result,
                       struct base_errbuf *err)
{
    const struct http_call call = {
        .url = "http://localhost/metrics", .unix_path = admin_socket, .timeout_ms = 10000};
    const int status = http_call(&call, result, err);
    if (status != 0 || result->status == 200)
        return status;
    base_err(err, -EIO, "%s answers %d", admin_socket, result->status);
    http_result_fini(result);
    return -EIO;
}

int perf_lane_counters(const char *admin_socket, const char *const *names, size_t count,
                       uint32_t lanes, uint64_t *out, struct base_errbuf *err)
{
    struct http_result result;
    int status = ask_metrics(admin_socket, &result, err);
    if (status != 0)
        return status;
    for (size_t i = 0; i < count && status == 0; i++)
        for (uint32_t k = 0; k < lanes && status == 0; k++)
            if (!find_of_lane(result.body, names[i], k, &out[i * PERF_MAX_LANES + k]))
                status =
                    base_err(err, -ENOENT, "%s has no %s of lane %u", admin_socket, names[i], k);
    http_result_fini(&result);
    return status;
}

int perf_counters(const char *admin_socket, const char *const *names, size_t count, uint64_t *out,
                  bool *all, struct base_errbuf *err)
{
    struct http_result result;
    *all = true;
    memset(out, 0, count * sizeof *out);
    const int status = ask_metrics(admin_socket, &result, err);
    if (status != 0)
        return status;
    for (size_t i = 0; i < count; i++)
        *all &= find_counter(result.body, names[i], &out[i]);
    http_result_fini(&result);
    return 0;
}
