/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that close what strangers sent, so that the agent never does.
 *
 * Whoever drops the last reference to a file waits for its end, in the kernel: 0.1 s for each GiB
 * of a memfd, and for ever, deaf to SIGKILL, for a file of a FUSE server that answers nothing. A
 * process cannot even end with such a file. So one process, which is made at the start, shares the
 * agent's table of descriptors and nothing else: no last reference can be dropped by the agent's
 * end, whatever it was in. It hands each socket that is to be closed to a child whose table is its
 * own, drops the shared reference while the child has one, and lets the child end. A child that
 * hangs has nothing but what it was given, and is left behind.
 *
 * Descriptors are not sent to it: that fails for a socket in which sockets lie that lie in sockets
 * (ETOOMANYREFS, up to Linux 6.9), which is for its sender to arrange.
 *
 * The first CLOSER_NUMBERS numbers of the table are kept for this, since a child copies as many. */
#ifndef DAEMON_CLOSER_PROCESS_H
#define DAEMON_CLOSER_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum {
    CLOSER_NUMBERS = 256,
    CLOSER_BATCH = 128,    /* descriptors that one child gets at a time, at most */
    CLOSER_CHILDREN = 512, /* at a time: those of this agent, and of its lives before, that hang */
};

struct closer_process {
    pid_t pid;       /* 0: there is none, nor is one needed: the kernel refuses descriptors */
    int fd;          /* readable when there is a report */
    int ended_fd;    /* readable when it has ended: nobody does that but an operator */
    uint32_t serial; /* of the last batch */
};

/* Makes it, unless the kernel refuses descriptors for us (base_fds_refuse()). To be called while
 * this process has one thread and little memory, of which the other one has a copy; it ends
 * after all of its threads. 0; or -errno and a sentence. */
int agentd_closer_process_start(struct closer_process *p, struct base_errbuf *err);

/* Gives it count (1 .. CLOSER_BATCH) descriptors, which end together. Their numbers are its own
 * until it has taken them, and may be used again then. 0, and the serial number of the reports that
 * come of them, which is never 0; or -errno (-EAGAIN): later. Never blocks. */
int agentd_closer_process_give(struct closer_process *p, const int *fd, uint32_t count,
                               uint32_t *serial);

/* Of each batch: either that it could not be taken, or that it has been, and later that it is
 * closed. */
struct closer_report {
    uint32_t serial;
    enum closer_news { CLOSER_TAKEN = 1, CLOSER_CLOSED } news;
    int32_t status; /* 0; or -errno: it is the caller's again */
};

/* The next one. 0, or -EAGAIN: there is none. Never blocks. */
int agentd_closer_process_hear(struct closer_process *p, struct closer_report *out);

/* Ends it and its children, in tests: else they end with the agent. */
void agentd_closer_process_stop(struct closer_process *p);

#endif
