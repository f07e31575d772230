/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as text. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "fabric/fault.h"

enum {
    ONE = 96,
    PPM_OF_PERCENT = 10000,
    MOST_INLINE = 1024,
    MOST_SGE = 64,
    MOST_TIMEOUT = 31,
    MOST_OBJECTS = 1000000
};

/* "5%", "0.01%": parts in a million. */
static int parse_share(const char *text, uint32_t *out)
{
    char *end = NULL;
    double percent = strtod(text, &end);
    if (end == text || strcmp(end, "%") != 0 || !(percent >= 0 && percent <= 100))
        return -EINVAL;
    *out = (uint32_t)(percent * PPM_OF_PERCENT + 0.5);
    return 0;
}

static int parse_mtu(const char *text, enum ibv_mtu *out)
{
    uint64_t bytes = 0;
    if (base_parse_u64(text, 256, 4096, &bytes) != 0 || (bytes & (bytes - 1)) != 0)
        return -EINVAL;
    *out = (enum ibv_mtu)(__builtin_ctzll(bytes) - 7);
    return 0;
}

static int parse_number(const char *text, uint64_t least, uint64_t most, uint32_t *out)
{
    uint64_t value;
    int status = base_parse_u64(text, least, most, &value);
    if (status == 0)
        *out = (uint32_t)value;
    return status;
}

static int parse_ms(const char *text, uint64_t *ns)
{
    uint64_t ms;
    if (base_parse_u64(text, 1, 60000, &ms) != 0)
        return -EINVAL;
    *ns = ms * BASE_NS_PER_MS;
    return 0;
}

static int parse_drift(const char *text, int32_t *out)
{
    uint32_t ppm = 0;
    const bool loses = text[0] == '-';
    int status = parse_share(text + loses, &ppm);
    if (status == 0)
        *out = loses ? -(int32_t)ppm : (int32_t)ppm;
    return status;
}

/* Of the device's clock. -ENOENT: it is about something else. */
static int set_clock(const char *name, const char *value, struct fault_plan *plan)
{
    if (strcmp(name, "clock") == 0) {
        plan->no_clock = strcmp(value, "off") == 0;
        return plan->no_clock ? 0 : -EINVAL;
    }
    if (strcmp(name, "clock_drift") == 0)
        return parse_drift(value, &plan->clock_drift_ppm);
    if (strcmp(name, "clock_jump") == 0)
        return parse_ms(value, &plan->clock_jump_ns);
    if (strcmp(name, "clock_jump_after") == 0)
        return parse_ms(value, &plan->clock_jump_after_ns);
    return -ENOENT;
}

static int parse_path(const char *value, char out[FAULT_PATH])
{
    if (value[0] != '/' || strlen(value) >= FAULT_PATH)
        return -EINVAL;
    memcpy(out, value, strlen(value) + 1);
    return 0;
}

/* A file by which a test says when. -ENOENT: it is about something else. */
static int set_path(const char *name, const char *value, struct fault_plan *plan)
{
    if (strcmp(name, "cut_while") == 0)
        return parse_path(value, plan->cut_while);
    if (strcmp(name, "removed_when") == 0)
        return parse_path(value, plan->removed_when);
    if (strcmp(name, "hang_while") == 0)
        return parse_path(value, plan->hang_while);
    return -ENOENT;
}

static int set_one(const char *name, const char *value, struct fault_plan *plan)
{
    const int of_clock = set_clock(name, value, plan);
    if (of_clock != -ENOENT)
        return of_clock;
    const int of_path = set_path(name, value, plan);
    if (of_path != -ENOENT)
        return of_path;
    if (strcmp(name, "seed") == 0)
        return base_parse_u64(value, 0, UINT64_MAX, &plan->seed);
    if (strcmp(name, "mtu") == 0)
        return parse_mtu(value, &plan->mtu);
    if (strcmp(name, "hop") == 0)
        return parse_mtu(value, &plan->hop);
    if (strcmp(name, "cut") == 0) {
        plan->cuts = true;
        return base_gid_parse(value, plan->cut);
    }
    bool *said = strcmp(name, "deadlines") == 0    ? &plan->no_deadlines
                 : strcmp(name, "atomics") == 0    ? &plan->no_atomics
                 : strcmp(name, "dc_atomics") == 0 ? &plan->no_dc_atomics
                 : strcmp(name, "fences") == 0     ? &plan->no_fences
                 : strcmp(name, "picky") == 0      ? &plan->picky
                                                   : NULL;
    if (said != NULL) {
        *said = strcmp(value, said == &plan->picky ? "on" : "off") == 0;
        return *said ? 0 : -EINVAL;
    }
    if (strcmp(name, "errors") == 0) {
        plan->errors_first = strcmp(value, "first") == 0;
        return plan->errors_first ? 0 : -EINVAL;
    }
    if (strcmp(name, "reset") == 0) {
        plan->resets_are_final = strcmp(value, "final") == 0;
        return plan->resets_are_final ? 0 : -EINVAL;
    }
    if (strcmp(name, "timeout") == 0) {
        uint32_t number = 0;
        int status = parse_number(value, 1, MOST_TIMEOUT, &number);
        plan->timeout = (uint8_t)number;
        return status;
    }
    if (strcmp(name, "inline") == 0) {
        plan->less_inline = true;
        return parse_number(value, 0, MOST_INLINE, &plan->max_inline);
    }
    if (strcmp(name, "sge") == 0)
        return parse_number(value, 1, MOST_SGE, &plan->max_sge);
    if (strcmp(name, "objects") == 0)
        return parse_number(value, 1, MOST_OBJECTS, &plan->max_objects);
    if (strcmp(name, "packet_life") == 0)
        return parse_ms(value, &plan->packet_life_ns);
    if (strcmp(name, "register") == 0)
        return parse_ms(value, &plan->register_ns);
    if (strcmp(name, "removed") == 0)
        return parse_ms(value, &plan->removed_ns);
    if (strcmp(name, "drain") == 0)
        return parse_ms(value, &plan->drain_ns);
    uint32_t *share = strcmp(name, "loss") == 0               ? &plan->loss_ppm
                      : strcmp(name, "completion_error") == 0 ? &plan->completion_error_ppm
                      : strcmp(name, "answer_loss") == 0      ? &plan->answer_loss_ppm
                      : strcmp(name, "post_error") == 0       ? &plan->post_error_ppm
                      : strcmp(name, "refuse") == 0           ? &plan->refuse_ppm
                      : strcmp(name, "control_error") == 0    ? &plan->control_error_ppm
                      : strcmp(name, "fence_error") == 0      ? &plan->fence_error_ppm
                      : strcmp(name, "destroy_error") == 0    ? &plan->destroy_error_ppm
                      : strcmp(name, "stuck") == 0            ? &plan->stuck_ppm
                                                              : NULL;
    return share != NULL ? parse_share(value, share) : -EINVAL;
}

int fault_plan_parse(const char *text, struct fault_plan *out, struct base_errbuf *must)
{
    struct fault_plan plan = {.seed = 1};
    for (const char *at = text; *at != '\0';) {
        char one[ONE];
        size_t length = strcspn(at, ","), used = 0;
        for (size_t i = 0; i < length && used < sizeof one - 1; i++)
            if (at[i] != ' ' && at[i] != '\t')
                one[used++] = at[i];
        one[used] = '\0';
        char *value = strchr(one, '=');
        if (value == NULL)
            value = one + used;
        else
            *value++ = '\0';
        if (set_one(one, value, &plan) != 0)
            return base_err(
                must, -EINVAL,
                "must be a list such as loss=5%%, seed=7, of what kedge-agent.conf(5) names");
        at += length + (at[length] == ',');
    }
    *out = plan;
    return 0;
}
