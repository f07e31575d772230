/* SPDX-License-Identifier: Apache-2.0 */
/* Uids that connect to the attach sockets again and again and are refused each time, since no
 * tenant has them and none has a token that they could show: who does that often is kept out for a
 * while, before he is accepted (world_keep_out()).
 *
 * Refusals are counted of so many uids at a time; who has been silent for longest makes room for
 * another one, unless he is kept out. No I/O. One thread. */
#ifndef CONTROL_STRANGERS_H
#define CONTROL_STRANGERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    STRANGERS_KNOWN = 128,
    STRANGER_REFUSALS = 64, /* in a second: then it is kept out */
    STRANGER_OUT_S = 5,     /* so long */
};

struct stranger {
    uid_t uid;
    uint32_t refusals; /* in the second that began at since_ns */
    uint64_t since_ns;
    uint64_t out_until; /* ns; 0: it is not kept out */
};

struct strangers {
    struct stranger at[STRANGERS_KNOWN];
    uint32_t known;
    uint64_t kept_out; /* times that one was, monotonic */
};

/* One of that uid has been refused. True: it is kept out from now on. */
bool agent_strangers_refused(struct strangers *r, uid_t uid, uint64_t now_ns);
/* Lets those in again whose time is over, or who are strangers no longer (NULL: all are). True:
 * that is somebody. */
bool agent_strangers_let_in(struct strangers *r, uint64_t now_ns,
                            bool (*is_stranger)(void *user, uid_t uid), void *user);
/* Who is kept out. How many they are. */
uint32_t agent_strangers_out(const struct strangers *r, uid_t uids[STRANGERS_KNOWN]);

#endif
