/* SPDX-License-Identifier: Apache-2.0 */
#include "config_parse.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <sched.h>
#include <string.h>

#include "agent/lane_stats.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/setting.h"
#include "base/text.h"
#include "fabric/fault.h"

static int set_text(void *at, const char *value, size_t room, struct base_errbuf *must)
{
    if (strlen(value) >= room)
        return base_err(must, -EINVAL, "has at most %zu characters", room - 1);
    memcpy(at, value, strlen(value) + 1);
    return 0;
}

static int set_level(void *at, const char *value, struct base_errbuf *must)
{
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (strcmp(levels[i], value) == 0)
            return set_text(at, value, AGENT_TEXT, must);
    return base_err(must, -EINVAL, "must be error, warn, info or debug");
}

static int set_format(void *at, const char *value, struct base_errbuf *must)
{
    enum base_log_format format;
    if (base_log_parse_format(value, &format) != 0)
        return base_err(must, -EINVAL, "must be text or json");
    return set_text(at, value, AGENT_TEXT, must);
}

/* As metaservers take it. size: of its place, 0: AGENT_TEXT. */
static int set_name(void *at, size_t size, const char *value, struct base_errbuf *must)
{
    const size_t place = size != 0 ? size : AGENT_TEXT, most = place <= 63 ? place - 1 : 63;
    if (base_parse_name(value, most) != 0)
        return base_err(must, -EINVAL,
                        "must be 1 to %zu of a-z, 0-9, '.' and '-', and begin with a letter or "
                        "digit",
                        most);
    return set_text(at, value, place, must);
}

static int set_number(enum agentd_type type, void *at, uint64_t min, uint64_t max,
                      const char *value, struct base_errbuf *must)
{
    uint64_t n = 0;
    int status = type == A_TIME   ? base_parse_duration(value, &n)
                 : type == A_SIZE ? base_parse_bytes(value, &n)
                                  : base_parse_u64(value, 0, UINT64_MAX, &n);
    if (status != 0 || n < min || n > max || (type == A_POWER && (n & (n - 1)) != 0)) {
        unsigned long long low = min, high = max;
        if (type == A_TIME)
            return base_err(must, -EINVAL, "must be a duration such as 100ms, from %llu to %llu ms",
                            low / BASE_NS_PER_MS, high / BASE_NS_PER_MS);
        if (type == A_SIZE)
            return base_err(must, -EINVAL, "must be a size such as 2MiB, from %llu to %llu bytes",
                            low, high);
        return base_err(must, -EINVAL, "must be a %s from %llu to %llu",
                        type == A_POWER ? "power of two" : "number", low, high);
    }
    memcpy(at, &n, sizeof n);
    return 0;
}

/* "0660": who may open a socket. Nobody executes one. */
static int set_mode(void *at, const char *value, struct base_errbuf *must)
{
    uint64_t mode = 0;
    size_t length = strlen(value);
    for (size_t i = 0; i < length && length <= 4; i++)
        mode = mode * 8 + (uint64_t)(value[i] - '0');
    if (length < 3 || length > 4 || strspn(value, "01234567") != length || mode > 0666 ||
        (mode & 0111) != 0)
        return base_err(must, -EINVAL, "must be a mode such as 0660, from 0000 to 0666");
    memcpy(at, &mode, sizeof mode);
    return 0;
}

static int set_yes_no(void *at, const char *value, struct base_errbuf *must)
{
    const bool yes = strcmp(value, "yes") == 0;
    if (!yes && strcmp(value, "no") != 0)
        return base_err(must, -EINVAL, "must be yes or no");
    memcpy(at, &yes, sizeof yes);
    return 0;
}

static int set_transport(void *at, const char *value, struct base_errbuf *must)
{
    static const char *const transports[] = {"auto", "dc", "rc", "hybrid"};
    uint32_t i = 0;
    while (strcmp(value, transports[i]) != 0)
        if (++i == sizeof transports / sizeof transports[0])
            return base_err(must, -EINVAL, "must be auto, dc, rc or hybrid");
    return set_text(at, value, AGENT_TEXT, must);
}

static int set_polling(void *at, const char *value, struct base_errbuf *must)
{
    static const char *const modes[] = {
        [POLLING_ADAPTIVE] = "adaptive", [POLLING_BUSY] = "busy", [POLLING_EVENT] = "event"};
    for (int i = 0; i < (int)(sizeof modes / sizeof modes[0]); i++) {
        const enum polling_mode mode = (enum polling_mode)i;
        if (strcmp(modes[i], value) != 0)
            continue;
        memcpy(at, &mode, sizeof mode);
        return 0;
    }
    return base_err(must, -EINVAL, "must be adaptive, busy or event");
}

static int set_window_policy(void *at, const char *value, struct base_errbuf *must)
{
    for (enum lane_window_policy p = LANE_WINDOW_STATIC; p < LANE_WINDOW_POLICIES; p++) {
        if (strcmp(lane_window_policy_name(p), value) != 0)
            continue;
        memcpy(at, &p, sizeof p);
        return 0;
    }
    return base_err(must, -EINVAL, "must be ladder, delay or static");
}

static int set_fault(void *at, const char *value, struct base_errbuf *must)
{
    struct fault_plan plan;
    int status = fault_plan_parse(value, &plan, must);
    return status == 0 ? set_text(at, value, AGENT_TEXT, must) : status;
}

static int set_or_auto(enum agentd_type type, void *at, uint64_t min, uint64_t max,
                       const char *value, struct base_errbuf *must)
{
    uint64_t none = 0;
    if (strcmp(value, "auto") != 0)
        return set_number(type, at, min, max, value, must);
    memcpy(at, &none, sizeof none);
    return 0;
}

int agentd_set_value(enum agentd_type type, void *at, uint64_t min, uint64_t max, const char *value,
                     struct base_errbuf *must)
{
    switch (type) {
    case A_TEXT:
        return set_text(at, value, max != 0 ? (size_t)max : AGENT_TEXT, must);
    case A_LEVEL:
        return set_level(at, value, must);
    case A_FORMAT:
        return set_format(at, value, must);
    case A_NAME:
        return set_name(at, (size_t)max, value, must);
    case A_TRANSPORT:
        return set_transport(at, value, must);
    case A_POLLING:
        return set_polling(at, value, must);
    case A_WINDOW_POLICY:
        return set_window_policy(at, value, must);
    case A_FAULT:
        return set_fault(at, value, must);
    case A_COUNT_OR_AUTO:
        return set_or_auto(A_COUNT, at, min, max, value, must);
    case A_TIME_OR_AUTO:
        return set_or_auto(A_TIME, at, min, max, value, must);
    case A_MODE:
        return set_mode(at, value, must);
    case A_YES_NO:
        return set_yes_no(at, value, must);
    case A_PATH_OR_NONE:
    case A_PATH:
        if (value[0] != '/' && (value[0] != '\0' || type == A_PATH))
            return base_err(must, -EINVAL, "must be an absolute path");
        return set_text(at, value, max != 0 ? (size_t)max : AGENT_TEXT, must);
    case A_GID:
        return base_setting_gid(value, at, must);
    default:
        return set_number(type, at, min, max, value, must);
    }
}

/* The next element of a comma list, without blanks around it, in one[]. NULL at the end; elements
 * that do not fit come out empty. */
static const char *next_of_list(const char *from, char *one, size_t room)
{
    if (from == NULL || *from == '\0')
        return NULL;
    size_t length = strcspn(from, ","), begin = strspn(from, " \t"), used = length;
    while (used > begin && (from[used - 1] == ' ' || from[used - 1] == '\t'))
        used--;
    size_t bytes = used > begin ? used - begin : 0;
    if (bytes >= room)
        bytes = 0;
    memcpy(one, from + begin, bytes);
    one[bytes] = '\0';
    return from + length + (from[length] == ',');
}

int agentd_set_cpus(struct agent_cpus *cpus, const char *value, struct base_errbuf *must)
{
    char one[32];
    *cpus = (struct agent_cpus){.count = 0};
    if (strcmp(value, "any") == 0)
        return 0;
    for (const char *at = value; (at = next_of_list(at, one, sizeof one)) != NULL;) {
        uint64_t *cpu = &cpus->at[cpus->count];
        if (cpus->count == LANE_POOL_LANES || base_parse_u64(one, 0, CPU_SETSIZE - 1, cpu) != 0)
            return base_err(must, -EINVAL,
                            "must be \"any\" or a CPU's number, with several lanes one for each, "
                            "such as 2, 4");
        for (uint32_t i = 0; i < cpus->count; i++)
            if (cpus->at[i] == *cpu)
                return base_err(must, -EINVAL, "must name a CPU for each lane alone");
        cpus->count++;
    }
    return cpus->count > 0 ? 0 : base_err(must, -EINVAL, "must be \"any\" or a CPU's number");
}

int agentd_set_urls(struct agent_config *config, const char *value, struct base_errbuf *must)
{
    char one[AGENT_TEXT];
    config->metaservers = 0;
    for (const char *at = value; (at = next_of_list(at, one, sizeof one)) != NULL;) {
        size_t length = strlen(one);
        if (length > 0 && one[length - 1] == '/')
            one[--length] = '\0';
        const char *host = strncmp(one, "http://", 7) == 0    ? one + 7
                           : strncmp(one, "https://", 8) == 0 ? one + 8
                                                              : "";
        if (host[0] == '\0' || strpbrk(host, "/?#@ \"") != NULL)
            return base_err(must, -EINVAL,
                            "must be a list of URLs without a path, such as http://10.0.0.1:7480, "
                            "http://10.0.0.2:7480");
        if (config->metaservers == AGENT_METASERVERS)
            return base_err(must, -EINVAL, "has at most %d metaservers", AGENT_METASERVERS);
        memcpy(config->metaserver[config->metaservers++], one, length + 1);
    }
    return 0;
}

/* "1000", "2000-2999", or a user's name. */
static int set_uids(struct agent_uids *out, const char *one, struct base_errbuf *must)
{
    uint64_t first = 0, last = 0;
    if (!isdigit((unsigned char)one[0])) {
        const struct passwd *user = one[0] != '\0' ? getpwnam(one) : NULL;
        if (user == NULL)
            return base_err(must, -EINVAL,
                            "must name users that this host has, or uids, such as www-data, 1000, "
                            "2000-2999");
        *out = (struct agent_uids){.first = user->pw_uid, .last = user->pw_uid};
        return 0;
    }
    const bool is_range = strchr(one, '-') != NULL;
    int status = is_range ? base_parse_range(one, UINT32_MAX - 1, &first, &last)
                          : base_parse_u64(one, 0, UINT32_MAX - 1, &first);
    if (!is_range)
        last = first;
    if (status == -ERANGE && is_range)
        return base_err(must, -EINVAL,
                        "must have ranges that begin with their least uid, such as "
                        "2000-2999, up to 4294967294");
    if (status != 0)
        return base_err(must, -EINVAL, "must be a list of users such as www-data, 1000, 2000-2999");
    *out = (struct agent_uids){.first = (uid_t)first, .last = (uid_t)last};
    return 0;
}

int agentd_set_uids(struct agent_tenant_config *tenant, const char *value, struct base_errbuf *must)
{
    char one[64];
    tenant->uid_ranges = 0;
    for (const char *at = value; (at = next_of_list(at, one, sizeof one)) != NULL;) {
        if (tenant->uid_ranges == AGENT_UID_RANGES)
            return base_err(must, -EINVAL, "has at most %d users and ranges", AGENT_UID_RANGES);
        int status = set_uids(&tenant->uids[tenant->uid_ranges], one, must);
        if (status != 0)
            return status;
        tenant->uid_ranges++;
    }
    return 0;
}

int agentd_set_hashes(struct agent_tenant_config *tenant, const char *value,
                      struct base_errbuf *must)
{
    char one[2 * BASE_DIGEST_BYTES + 1];
    tenant->tokens = 0;
    for (const char *at = value; (at = next_of_list(at, one, sizeof one)) != NULL;) {
        if (tenant->tokens == AGENT_TOKENS)
            return base_err(must, -EINVAL, "has at most %d tokens", AGENT_TOKENS);
        struct agent_token *token = &tenant->token[tenant->tokens];
        *token = (struct agent_token){.expires_ms = 0};
        if (base_hex_decode(one, token->sha256, sizeof token->sha256) != 0)
            return base_err(must, -EINVAL,
                            "must be a list of what `printf %%s TOKEN | sha256sum` prints: 64 "
                            "hexadecimal digits each");
        tenant->tokens++;
    }
    return 0;
}
