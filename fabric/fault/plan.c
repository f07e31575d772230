/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as text. */
#include <errno.h>
#include <stddef.h>
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

static int parse_path(const char *value, char out[FAULT_PATH])
{
    if (value[0] != '/' || strlen(value) >= FAULT_PATH)
        return -EINVAL;
    memcpy(out, value, strlen(value) + 1);
    return 0;
}

/* ---- what a plan can have */

enum kind { IS_SHARE, IS_MS, IS_NUMBER, IS_SEED, IS_MTU, IS_DRIFT, IS_PATH, IS_GID, IS_WORD };

#define ROW(word, what, field, ...)                                                                \
    {                                                                                              \
        .name = word, .kind = what, .at = offsetof(struct fault_plan, field), ##__VA_ARGS__        \
    }

/* A name, and where in the plan what is behind its "=" goes. */
static const struct setting {
    const char *name;
    enum kind kind;
    size_t at;
    uint32_t least, most; /* of IS_NUMBER */
    const char *word; /* of IS_WORD, the only one that there is: the bool at `at` is true then */
    size_t said_at;   /* of some: a bool that is true then too; 0: there is none */
} settings[] = {
    ROW("seed", IS_SEED, seed),
    ROW("loss", IS_SHARE, loss_ppm),
    ROW("completion_error", IS_SHARE, completion_error_ppm),
    ROW("answer_loss", IS_SHARE, answer_loss_ppm),
    ROW("torn", IS_SHARE, torn_ppm),
    ROW("post_error", IS_SHARE, post_error_ppm),
    ROW("refuse", IS_SHARE, refuse_ppm),
    ROW("control_error", IS_SHARE, control_error_ppm),
    ROW("fence_error", IS_SHARE, fence_error_ppm),
    ROW("destroy_error", IS_SHARE, destroy_error_ppm),
    ROW("stuck", IS_SHARE, stuck_ppm),
    ROW("packet_life", IS_MS, packet_life_ns),
    ROW("register", IS_MS, register_ns),
    ROW("removed", IS_MS, removed_ns),
    ROW("drain", IS_MS, drain_ns),
    ROW("clock_jump", IS_MS, clock_jump_ns),
    ROW("clock_jump_after", IS_MS, clock_jump_after_ns),
    ROW("clock_drift", IS_DRIFT, clock_drift_ppm),
    ROW("clock", IS_WORD, no_clock, .word = "off"),
    ROW("deadlines", IS_WORD, no_deadlines, .word = "off"),
    ROW("atomics", IS_WORD, no_atomics, .word = "off"),
    ROW("dc_atomics", IS_WORD, no_dc_atomics, .word = "off"),
    ROW("fences", IS_WORD, no_fences, .word = "off"),
    ROW("picky", IS_WORD, picky, .word = "on"),
    ROW("errors", IS_WORD, errors_first, .word = "first"),
    ROW("reset", IS_WORD, resets_are_final, .word = "final"),
    ROW("mtu", IS_MTU, mtu),
    ROW("hop", IS_MTU, hop),
    ROW("cut", IS_GID, cut, .said_at = offsetof(struct fault_plan, cuts)),
    ROW("timeout", IS_NUMBER, timeout, .least = 1, .most = MOST_TIMEOUT),
    ROW("inline", IS_NUMBER, max_inline, .least = 0, .most = MOST_INLINE,
        .said_at = offsetof(struct fault_plan, less_inline)),
    ROW("sge", IS_NUMBER, max_sge, .least = 1, .most = MOST_SGE),
    ROW("objects", IS_NUMBER, max_objects, .least = 1, .most = MOST_OBJECTS),
    /* By these files a test says when. */
    ROW("cut_while", IS_PATH, cut_while),
    ROW("removed_when", IS_PATH, removed_when),
    ROW("hang_while", IS_PATH, hang_while),
    ROW("dct_silent_when", IS_PATH, dct_silent_when),
#undef ROW
};

static int set_field(const struct setting *s, const char *value, struct fault_plan *plan)
{
    void *at = (char *)plan + s->at;
    switch (s->kind) {
    case IS_SHARE:
        return parse_share(value, at);
    case IS_MS:
        return parse_ms(value, at);
    case IS_NUMBER:
        return parse_number(value, s->least, s->most, at);
    case IS_SEED:
        return base_parse_u64(value, 0, UINT64_MAX, at);
    case IS_MTU:
        return parse_mtu(value, at);
    case IS_DRIFT:
        return parse_drift(value, at);
    case IS_PATH:
        return parse_path(value, at);
    case IS_GID:
        return base_gid_parse(value, at);
    case IS_WORD:
        *(bool *)at = true;
        return strcmp(value, s->word) == 0 ? 0 : -EINVAL;
    }
    return -EINVAL;
}

static int set_one(const char *name, const char *value, struct fault_plan *plan)
{
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        const struct setting *s = &settings[i];
        if (strcmp(name, s->name) != 0)
            continue;
        if (s->said_at != 0)
            *(bool *)((char *)plan + s->said_at) = true;
        return set_field(s, value, plan);
    }
    return -EINVAL;
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
