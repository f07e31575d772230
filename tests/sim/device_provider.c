/* SPDX-License-Identifier: Apache-2.0 */
#include "device_provider.h"

#include <string.h>

#include "fabric/provider.h"
#include "fabric/providers.h"
#include "probe/probe.h"
#include "process.h"

static struct {
    struct sim_net *net;
    struct sim_device_attr like;
    const struct fab_ops *ops; /* of all devices, but for: */
    struct fab_ops counting;
    uint64_t submitted;
} provider;

static void count_submitted(struct fab *fab, struct fab_ctl *ctl)
{
    provider.submitted++;
    provider.ops->submit(fab, ctl);
}

uint64_t play_provider_submitted(void)
{
    return provider.submitted;
}

void play_provider_init(struct sim_net *net, const struct sim_device_attr *like)
{
    provider.net = net;
    provider.like = *like;
}

static int open_device(const struct fab_open_attr *attr, struct fab **out, struct base_errbuf *err)
{
    struct sim_device_attr wanted = provider.like;
    wanted.node = play_process->host->number;
    if (wanted.node % 2 != 0) /* of both kinds there are some in a cluster */
        wanted.max_reads = 0;
    memcpy(wanted.gid, attr->gid, sizeof wanted.gid);
    wanted.service = attr->service;
    const int status = sim_device_open(provider.net, &wanted, out, err);
    if (status != 0)
        return status;
    provider.ops = (*out)->ops;
    provider.counting = *provider.ops;
    provider.counting.submit = count_submitted;
    (*out)->ops = &provider.counting;
    return 0;
}

static const struct fab_provider SIMULATED = {.name = "sim",
                                              .about = "a simulated network",
                                              .wire = true,
                                              .deadlines = false,
                                              .open = open_device};

const struct fab_provider *fab_provider_find(const char *name, struct base_errbuf *err)
{
    (void)name, (void)err;
    return &SIMULATED;
}

/* Simulated devices have memory where they are told to (fabric/sim's own tests say so). */
int probe_addresses(struct fab *fab, struct base_errbuf *err)
{
    (void)fab, (void)err;
    return 0;
}
