/* SPDX-License-Identifier: Apache-2.0 */
/* Linked into a kedge-agentd whose lanes sleep without a time-out: only a doorbell, a completion or
 * a command ends that, so that one that is lost is a lane that sleeps for ever. What is left of
 * time-outs is a doorbell that is not heard for a while, and a wake that is put off, each of which
 * the protocol itself has (daemon/doorbells.h, lane/request/reply.c). */
#include <stdint.h>
#include <sys/epoll.h>

#include "agent/lane.h"
#include "base/futex.h"
#include "comp_channels.h"
#include "delays.h"
#include "fabric/fabric.h"
#include "lane/request/reply.h"

enum { NO_REASON_MS = 1000 /* what a lane's thread sleeps for that has no time to be back at */ };

uint32_t __real_lane_step(struct lane *lane, uint64_t now_ns);
uint32_t __wrap_lane_step(struct lane *lane, uint64_t now_ns);
uint32_t __wrap_lane_step(struct lane *lane, uint64_t now_ns)
{
    const uint32_t did = __real_lane_step(lane, now_ns);
    if (did > 0)
        delays_step();
    return did;
}

uint64_t __real_lane_prepare_sleep(struct lane *lane, uint64_t now_ns);
uint64_t __wrap_lane_prepare_sleep(struct lane *lane, uint64_t now_ns);
uint64_t __wrap_lane_prepare_sleep(struct lane *lane, uint64_t now_ns)
{
    delays_step(); /* `asleep` is set */
    const uint64_t due_ns = __real_lane_prepare_sleep(lane, now_ns);
    return due_ns == 0 ? 0 : lane_wakes_due(lane);
}

int __real_fab_arm(struct fab_cq *cq, bool solicited_only);
int __wrap_fab_arm(struct fab_cq *cq, bool solicited_only);
int __wrap_fab_arm(struct fab_cq *cq, bool solicited_only)
{
    delays_step(); /* the sessions' flags are set, and nothing was looked at again */
    const int status = __real_fab_arm(cq, solicited_only);
    delays_step();
    return status;
}

int __real_epoll_wait(int epfd, struct epoll_event *events, int count, int timeout_ms);
int __wrap_epoll_wait(int epfd, struct epoll_event *events, int count, int timeout_ms);
int __wrap_epoll_wait(int epfd, struct epoll_event *events, int count, int timeout_ms)
{
    if (timeout_ms != 0)
        delays_step(); /* all was looked at */
    return __real_epoll_wait(epfd, events, count, timeout_ms == NO_REASON_MS ? -1 : timeout_ms);
}

int __real_base_futex_wake(_Atomic uint32_t *word, uint32_t count);
int __wrap_base_futex_wake(_Atomic uint32_t *word, uint32_t count);
int __wrap_base_futex_wake(_Atomic uint32_t *word, uint32_t count)
{
    return delays_loses("wake") ? 0 : __real_base_futex_wake(word, count);
}

void __real_agentd_comp_channels_tell(struct comp_channels *c, uint32_t session);
void __wrap_agentd_comp_channels_tell(struct comp_channels *c, uint32_t session);
void __wrap_agentd_comp_channels_tell(struct comp_channels *c, uint32_t session)
{
    delays_step();
    if (!delays_loses("tell"))
        __real_agentd_comp_channels_tell(c, session);
}
