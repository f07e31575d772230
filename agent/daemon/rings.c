/* SPDX-License-Identifier: Apache-2.0 */
/* A session's rings, its doorbell, and what the lane keeps for it: on a task thread. */
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fds.h"
#include "agent.h"

void rings_unmake(struct agent_session *s)
{
    const struct pool *p = s->pool;
    if (s->rw != NULL)
        munmap(s->rw, SCHEMA_SESSION_RW_BYTES(p->config->sq_slots));
    if (s->ro != NULL)
        munmap(s->ro, SCHEMA_SESSION_RO_BYTES(p->config->cq_slots));
    int fds[] = {s->rw_fd, s->ro_fd, s->doorbell};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    lane_memory_free(s->memory);
    s->memory = NULL;
    s->rw = NULL;
    s->ro = NULL;
    s->rw_fd = s->ro_fd = s->doorbell = -1;
}

int rings_make(struct agent_session *s)
{
    const struct agentd_config *c = s->pool->config;
    void *rw = NULL, *ro = NULL;
    int status =
        base_memfd_new("kedge-rw", SCHEMA_SESSION_RW_BYTES(c->sq_slots), false, &s->rw_fd, &rw);
    if (status == 0)
        status =
            base_memfd_new("kedge-ro", SCHEMA_SESSION_RO_BYTES(c->cq_slots), true, &s->ro_fd, &ro);
    s->rw = rw;
    s->ro = ro;
    if (status == 0) {
        s->doorbell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        status = s->doorbell < 0 ? -errno : 0;
    }
    if (status == 0) {
        s->memory = lane_memory_new(MAX_GRANTS, (uint32_t)c->max_inflight, (uint32_t)c->max_vqps,
                                    MRS_PER_SESSION);
        status = s->memory == NULL ? -ENOMEM : 0;
    }
    if (status != 0)
        rings_unmake(s);
    return status;
}
