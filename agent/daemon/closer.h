/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets to which descriptors were sent, until they are closed: who waits for a process that does
 * it (closer_process.h), and of whom none is accepted meanwhile. Control thread.
 *
 * What uids share are the processes. One uid's sockets go to one process at a time, as long as that
 * is quick; beside a slow one it gets another only after a while, or for a whole batch, so that no
 * flood needs many. A process that is not done within a second is left behind, and
 * its uid is refused until it ends, however late. */
#ifndef DAEMON_CLOSER_H
#define DAEMON_CLOSER_H

#include <stdbool.h>
#include <uv.h>

#include "base/log.h"
#include "closer_process.h"
#include "bounds.h"

struct attach_sockets;
struct closer;

#define CLOSER_NOBODY ((uid_t)-1) /* the kernel did not say who connected */

/* A socket that is to be closed. */
struct closing {
    int fd;
    uid_t uid;                         /* who connected */
    void (*closed)(struct closing *c); /* or as good as that: nothing here has it any more */
    struct closing *next;
};

struct closer_batch {
    uint32_t serial; /* 0: free */
    uid_t uid;
    bool left_behind;
    uint64_t since_ns;
    struct closing *first; /* until they are taken */
};

struct closer {
    struct closer_process *process;   /* the caller's */
    void (*refuse)(struct closer *r); /* who is refused has changed */
    uv_loop_t *loop;
    uv_poll_t reports, ended;
    uv_timer_t look;
    struct closing *first, *last; /* that wait, the oldest first */
    struct closer_batch batch[CLOSERS];
    uid_t refused[CLOSER_REFUSED];
    uint32_t refused_count;
    struct base_log_limit limit;
    bool gone; /* the process has ended: nothing is closed any more */
};

/* Else the kernel refuses descriptors, or nobody has made the process. */
static inline bool closer_is_there(const struct closer *r)
{
    return r->process != NULL && r->process->pid != 0;
}

/* With the process, loop and refuse set, and all else 0. 0; or -errno and a sentence. */
int agentd_closer_start(struct closer *r, struct base_errbuf *err);
/* Takes c and its fd, uid and closed, which is called from the loop when a process has the fd. */
void agentd_closer_take(struct closer *r, struct closing *c);
/* One of its processes is left behind, or too many of its sockets wait. */
bool agentd_closer_refuses(const struct closer *r, uid_t uid);
/* After its loop: what waits is handed over, and closed() is called for all, done or not. */
void agentd_closer_stop(struct closer *r);

#endif
