/* SPDX-License-Identifier: Apache-2.0 */
#include "life.h"

#include "agent.h"

uint32_t life_newest_incarnation(const struct agent *a)
{
    return a->newest_incarnation > a->incarnation ? a->newest_incarnation : a->incarnation;
}

int life_next_incarnation(struct agent *a, uint32_t *out, struct base_errbuf *err)
{
    bool lost;
    const int status =
        world_next_incarnation(a->world, false, life_newest_incarnation(a) + 1, out, &lost, err);
    if (status == 0)
        a->newest_incarnation = *out;
    return status;
}

void life_begin_anew(struct agent *a, const struct agent *before)
{
    *a = (struct agent){.config = before->config,
                        .config_path = before->config_path,
                        .world = before->world,
                        .min_incarnation = before->superseded_by,
                        .restarted_for_mask = before->restarted_for_mask,
                        .numbers_gone_ns = before->numbers_gone_ns};
}
