/* SPDX-License-Identifier: Apache-2.0 */
#include "replay.h"

#include <inttypes.h>

#include "base/clock.h"
#include "plants.h"

enum { SHARED_METASERVERS = 3 };

const struct play_cluster_settings PLAY_USUAL = {.nodes = 4,
                                                 .metaservers = 2,
                                                 .workers = 2,
                                                 .duration_ns = 300 * BASE_NS_PER_S,
                                                 .pause_ns = BASE_NS_PER_S,
                                                 .change_ppm = 100000,
                                                 .arena_bytes = CLUSTER_ARENA_USUAL,
                                                 .clock_ppm = CLUSTER_CLOCK_PPM,
                                                 .faults = true};

void play_share_store(struct play_cluster_settings *s)
{
    s->shared = true;
    s->metaservers = SHARED_METASERVERS;
}

bool play_is_left_out(const uint8_t *left_out, uint32_t fault)
{
    return left_out != NULL && (left_out[fault / 8] >> fault % 8 & 1);
}

uint64_t play_pause_of(uint64_t rate)
{
    return rate != 0 ? BASE_NS_PER_S / rate : CLUSTER_NO_TURN_NS;
}

uint64_t play_rate_of(uint64_t pause_ns)
{
    return pause_ns < CLUSTER_NO_TURN_NS ? BASE_NS_PER_S / pause_ns : 0;
}

static void print_setting(const char *name, uint64_t is, uint64_t usual)
{
    if (is != usual)
        printf(" --%s %" PRIu64, name, is);
}

static void print_only(const struct play_cluster_settings *s)
{
    const uint32_t count = play_cluster_faults(s);
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++)
        left += !play_is_left_out(s->left_out, i);
    if (left == count)
        return;
    printf(" --only %s", left == 0 ? "none" : "");
    const char *before = "";
    for (uint32_t i = 0; i < count; i++) {
        if (play_is_left_out(s->left_out, i))
            continue;
        printf("%s%" PRIu32, before, i);
        before = ",";
    }
}

void play_replay_print(const struct play_cluster_settings *s)
{
    struct play_cluster_settings as_usual = PLAY_USUAL;
    const struct play_cluster_settings *usual = &as_usual;
    printf("kedge-sim --seed %" PRIu64, s->seed);
    if (s->shared) {
        play_share_store(&as_usual);
        printf(" --shared");
    }
    if (s->hybrid)
        printf(" --hybrid");
    if (s->messages)
        printf(" --messages");
    if (s->liar)
        printf(" --liar");
    if (s->lanes > 1)
        printf(" --lanes %" PRIu32, s->lanes);
    if (s->pool_lanes > 0)
        printf(" --pool-lanes %" PRIu32, s->pool_lanes);
    print_only(s);
    if (kedge_planted != 0)
        printf(" --plant %s", PLAY_PLANTS[kedge_planted - 1].name);
    print_setting("nodes", s->nodes, usual->nodes);
    print_setting("metaservers", s->metaservers, usual->metaservers);
    print_setting("workers", s->workers, usual->workers);
    print_setting("seconds", s->duration_ns / BASE_NS_PER_S, usual->duration_ns / BASE_NS_PER_S);
    if (s->operation_ns != 0)
        print_setting("operations", BASE_NS_PER_S / s->operation_ns, 0);
    else
        print_setting("rate", play_rate_of(s->pause_ns), play_rate_of(usual->pause_ns));
    print_setting("arena-kib", s->arena_bytes >> 10, usual->arena_bytes >> 10);
    print_setting("clock-ppm", s->clock_ppm, usual->clock_ppm);
    print_setting("slack-ms", s->slack_ms, usual->slack_ms);
    if (!s->faults)
        printf(" --calm");
}
