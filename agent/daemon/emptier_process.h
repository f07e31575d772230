/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that empty memory which workers had, so that the agent never does.
 *
 * Whoever still has such a file may have its lock, and be in no hurry: a call of his that is kept
 * from its processor, or that copies from a page of a file server that answers nothing, holds it
 * until it is over, and who waits for it is deaf to SIGKILL. So one process, which is made at the
 * start, has a child for each batch of files, and a child that hangs has nothing but those. It
 * hangs with them as long as their holder likes, also when the agent has ended. */
#ifndef DAEMON_EMPTIER_PROCESS_H
#define DAEMON_EMPTIER_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/fds.h"

enum {
    EMPTIER_BATCH = BASE_FDS_MAX, /* files that one child gets at a time, at most */
    EMPTIER_CHILDREN = 256        /* at a time: more than there are owners, of which each has one */
};

struct emptier_process {
    pid_t pid;       /* 0: there is none */
    int fd;          /* readable when there is a report, or when it has ended */
    uint32_t serial; /* of the last batch */
};

/* Makes it. To be called while this process has one thread and little memory, of which the other
 * one has a copy; it ends soon after this one. 0; or -errno and a sentence. */
int agentd_emptier_process_start(struct emptier_process *p, struct base_errbuf *err);

/* Gives it copies of count (1 .. EMPTIER_BATCH) files, which one child empties and closes. 0, and
 * the report's serial number, which is never 0; or -errno: -EPIPE when it has ended, others: later.
 * Never blocks. */
int agentd_emptier_process_give(struct emptier_process *p, const int *file, uint32_t count,
                                uint32_t *serial);

/* Of each batch, when it is over. */
struct emptier_report {
    uint32_t serial;
    int32_t status; /* 0; or -errno: not all of them are empty */
};

/* The next one. 0; -EAGAIN: there is none; -EPIPE: it has ended. Never blocks. */
int agentd_emptier_process_hear(const struct emptier_process *p, struct emptier_report *out);

/* Ends it, but for children that hang, in tests: else it ends with the agent. */
void agentd_emptier_process_stop(struct emptier_process *p);

#endif
