/* SPDX-License-Identifier: Apache-2.0 */
/* What only makes sense together of the command line, where there is a card of the cost model. */
#include <errno.h>
#include <string.h>

#include "perf.h"

/* Of window --lane, which has loads of its own. */
static int check_lane(const struct perf_options *o, struct base_errbuf *err)
{
    const bool window = o->test == PERF_WINDOW;
    if ((o->lane && !window) || (o->load != NULL && !o->lane))
        return base_err(err, -EINVAL, "--lane is for window, and --load for --lane");
    if (o->load != NULL && !perf_window_has_load(o->load))
        return base_err(err, -EINVAL, "--load must be %s, not \"%.40s\"", perf_window_loads(),
                        o->load);
    if (o->lane && (o->windows || o->work_ns != 0 || o->qps != 0 || o->workers != 0))
        return base_err(err, -EINVAL, "--lane has loads of its own: --model and --seed alone");
    if (o->lane && o->model != NULL && strcmp(o->model, "connectx-3") != 0)
        return base_err(err, -EINVAL, "--lane goes by RC, as a connectx-3 does");
    return 0;
}

/* Of merge, cut and connections --model, which have loads of their own. */
static int check_merge(struct perf_options *o, struct base_errbuf *err)
{
    if (o->local || o->size != 0 || o->depth != 0 || o->workers != 0)
        return base_err(err, -EINVAL,
                        "%s --model has loads of its own, and needs no servers: --model, --count "
                        "and --seed alone",
                        o->name);
    if (strcmp(o->model, "connectx-3") != 0 && o->test != PERF_CONNECTIONS)
        return base_err(err, -EINVAL, "%s --model goes by RC, as a connectx-3 does", o->name);
    o->seed = o->seed == 0 ? 1 : o->seed;
    return 0;
}

/* What is usual is as RDMAbox says, or derived (docs/fabric.md). */
int perf_options_check_model(struct perf_options *o, struct base_errbuf *err)
{
    const bool window = o->test == PERF_WINDOW;
    const bool merge = o->test == PERF_CUT || o->test == PERF_CONNECTIONS ||
                       (o->test == PERF_MERGE && o->model != NULL);
    const int status = check_lane(o, err);
    if (status != 0)
        return status;
    if (!window && (o->work_ns != 0 || o->qps != 0 || (o->seed != 0 && !merge)))
        return base_err(err, -EINVAL, "--work, --seed and --queue-pairs are for window");
    const bool one_sided = o->test == PERF_READ || o->test == PERF_WRITE;
    if (o->model != NULL && !window && !merge && !(one_sided && (o->direct || o->local)))
        return base_err(err, -EINVAL,
                        "--model is for window, merge, cut and connections, and for read and write "
                        "with --direct or "
                        "--local");
    const struct model_preset *model = o->model != NULL ? fab_model_find(o->model) : NULL;
    if (o->model != NULL && model == NULL)
        return base_err(err, -EINVAL, "--model must be %s, not \"%.40s\"", fab_model_names(),
                        o->model);
    if (o->direct && model != NULL && !fab_model_has_dc(model))
        return base_err(err, -EINVAL, "--direct goes by DC, which a %s has not: use --local",
                        o->model);
    if (merge && o->model == NULL)
        return base_err(err, -EINVAL, "%s needs --model: %s", o->name, fab_model_names());
    if (merge)
        return check_merge(o, err);
    if (!window)
        return 0;
    if (o->model == NULL)
        return base_err(err, -EINVAL, "window needs --model: %s", fab_model_names());
    if (o->local)
        return base_err(err, -EINVAL, "window needs no servers: leave out --local");
    o->size = o->size == 0 ? 131072 : o->size;
    o->depth = o->depth == 0 ? 32 : o->depth;
    o->workers = o->workers == 0 ? 64 : o->workers;
    o->work_ns = o->work_ns == 0 ? 290000 : o->work_ns;
    o->seed = o->seed == 0 ? 1 : o->seed;
    o->qps = o->qps == 0 ? 4 : o->qps;
    return 0;
}
