/* SPDX-License-Identifier: Apache-2.0 */
#include "life.h"

#include <errno.h>
#include <string.h>

#include "agent.h"

void agent_life_begin(struct agent *a, uint32_t incarnation)
{
    a->incarnation = incarnation;
    a->kept.last = life_last_kept(incarnation);
}

uint32_t agent_life_newest_incarnation(const struct agent *a)
{
    return a->newest_incarnation > a->incarnation ? a->newest_incarnation : a->incarnation;
}

static void on_kept(void *user)
{
    struct agent *a = user;
    const struct world_task *task = &a->kept.task;
    a->kept.is_under_way = false;
    if (task->status == 0)
        a->kept.last = task->incarnations.last;
}

/* One write at a time: what it did not keep, or what was taken meanwhile, the next one does, which
 * is begun when an incarnation is wanted again. */
static void keep_ahead(struct agent *a)
{
    const uint32_t last = life_last_kept(agent_life_newest_incarnation(a));
    if (a->kept.is_under_way || last <= a->kept.last)
        return;
    a->kept.is_under_way = true;
    a->kept.task =
        (struct world_task){.work = WORLD_KEEP_INCARNATIONS,
                            .incarnations = {.directory = a->config.state_dir, .last = last},
                            .done = on_kept,
                            .user = a};
    world_run(a->world, &a->kept.task);
}

/* @failed: with what the last write ended, or 0. */
static int refuse_next(const struct agent *a, int failed, struct base_errbuf *err)
{
    const char *dir = a->config.state_dir;
    if (agent_life_newest_incarnation(a) >= UINT32_MAX - 1)
        return base_err(err, -EOVERFLOW,
                        "this node has the last possible incarnation: remove it from the "
                        "metaservers, and then %s/incarnation",
                        dir);
    if (failed != 0)
        return base_err(err, failed,
                        "the incarnation cannot be saved in %s: %s (make room, or give the "
                        "directory to the agent's user)",
                        dir, strerror(-failed));
    return base_err(err, -EAGAIN, "the disk with %s takes long to save an incarnation", dir);
}

int agent_life_next_incarnation(struct agent *a, uint32_t *out, struct base_errbuf *err)
{
    const uint32_t newest = agent_life_newest_incarnation(a);
    const int failed = a->kept.is_under_way ? 0 : a->kept.task.status;
    if (newest >= a->kept.last) {
        keep_ahead(a);
        return refuse_next(a, failed, err);
    }
    *out = a->newest_incarnation = newest + 1;
    keep_ahead(a);
    return 0;
}

void agent_life_begin_anew(struct agent *a, const struct agent *before)
{
    *a = (struct agent){.config = before->config,
                        .config_path = before->config_path,
                        .world = before->world,
                        .min_incarnation = before->superseded_by,
                        .restarted_for_mask = before->restarted_for_mask,
                        .numbers_gone_ns = before->numbers_gone_ns};
}
