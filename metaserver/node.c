/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of nodes and pools, as settings: what is right by itself. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "settings_private.h"

static const struct {
    const char *name;
    uint32_t min, max;
} numbers[] = {
    [KEDGE_POOL_SESSIONS_AHEAD] = {"sessions_ahead", 1, KEDGE_POOL_AHEAD_MAX},
    [KEDGE_POOL_ARENAS_AHEAD] = {"arenas_ahead", 1, KEDGE_POOL_AHEAD_MAX},
    [KEDGE_POOL_AHEAD_MOST] = {"ahead_max", 1, KEDGE_POOL_AHEAD_MAX},
    [KEDGE_POOL_DCIS] = {"dcis", 2, KEDGE_POOL_DCIS_MAX},
    [KEDGE_POOL_SPARES] = {"spares", 0, KEDGE_POOL_DCIS_MAX},
    [KEDGE_POOL_QUEUE_PAIRS_AHEAD] = {"queue_pairs_ahead", 1, KEDGE_POOL_AHEAD_MAX},
};

const char *kedge_pool_number_name(enum kedge_pool_number number)
{
    return numbers[number].name;
}

void kedge_pool_number_bounds(enum kedge_pool_number number, uint32_t *min, uint32_t *max)
{
    *min = numbers[number].min;
    *max = numbers[number].max;
}

static int bad(struct kedge_fault *fault, const char *field, const char *detail)
{
    snprintf(fault->field, sizeof fault->field, "%s", field);
    snprintf(fault->detail, sizeof fault->detail, "%s", detail);
    return -EINVAL;
}

int kedge_node_validate(struct kedge_setting *setting, struct kedge_fault *fault)
{
    const struct kedge_node *n = &setting->node;
    if (n->draining && !n->cordoned)
        return bad(fault, "cordoned", "must be true: a node that is draining takes no workers");
    if (n->grace_ms != 0 && !n->draining)
        return bad(fault, "grace_ms", "is for a node that is draining");
    if (n->grace_ms > KEDGE_SETTING_NUMBER_MAX / 1000000)
        return bad(fault, "grace_ms", "must be at most 9007199254: 104 days");
    if (n->reason[0] != '\0' && !n->cordoned)
        return bad(fault, "reason", "is for a node that is cordoned");
    for (const char *c = n->reason; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return bad(fault, "reason", "must have no control characters");
    return 0;
}

bool kedge_node_same(const struct kedge_setting *one, const struct kedge_setting *other)
{
    const struct kedge_node *a = &one->node, *b = &other->node;
    return a->cordoned == b->cordoned && a->draining == b->draining && a->grace_ms == b->grace_ms &&
           strcmp(a->labels.text, b->labels.text) == 0 && strcmp(a->reason, b->reason) == 0;
}

const struct kedge_node *kedge_settings_node(const struct kedge_settings *s, const char *id)
{
    static const struct kedge_node none;
    const struct kedge_setting *found = kedge_settings_find(s, KEDGE_NODE, id);
    return found != NULL ? &found->node : &none;
}

int kedge_pool_validate(struct kedge_setting *setting, struct kedge_fault *fault)
{
    const uint32_t *number = setting->pool.number, most = number[KEDGE_POOL_AHEAD_MOST];
    char detail[64];
    for (int i = 0; i < KEDGE_POOL_NUMBERS; i++) {
        if (number[i] == KEDGE_POOL_UNSAID ||
            (number[i] >= numbers[i].min && number[i] <= numbers[i].max))
            continue;
        snprintf(detail, sizeof detail, "must be a number from %" PRIu32 " to %" PRIu32,
                 numbers[i].min, numbers[i].max);
        return bad(fault, numbers[i].name, detail);
    }
    for (int i = KEDGE_POOL_SESSIONS_AHEAD; i <= KEDGE_POOL_ARENAS_AHEAD; i++)
        if (number[i] != KEDGE_POOL_UNSAID && most < number[i])
            return bad(fault, "ahead_max", "must not be less than sessions_ahead or arenas_ahead");
    return 0;
}

bool kedge_pool_same(const struct kedge_setting *one, const struct kedge_setting *other)
{
    const struct kedge_pool *a = &one->pool, *b = &other->pool;
    return strcmp(a->nodes.text, b->nodes.text) == 0 &&
           memcmp(a->number, b->number, sizeof a->number) == 0;
}
