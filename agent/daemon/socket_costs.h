/* SPDX-License-Identifier: Apache-2.0 */
/* What the attach sockets of one uid have cost the control thread beyond what such calls take.
 *
 * Who sends on a Unix socket, receives, shuts it down or closes it does in the kernel what the
 * other side has hung on its end: with 20,000 watches by epoll each of these takes 15 to 25 ms of
 * the processor. What is long is so beside what this host takes for a socket that nobody watches.
 * Whose calls have been long for more than a little has no more than a 256th of the thread's time
 * for that: it rests for 256 times as long as they took, and a minute at most.
 *
 * Counted is by uid and by listener, since a tenant that has a listener of its own is known by
 * that. Of so many of them; who owes least makes room for another one. No I/O. One thread.
 *
 * No single call is anybody's guilt, however long: what a guest's processor was taken away for, and
 * what interrupts took, is in the time of whoever ran. */
#ifndef DAEMON_SOCKET_COSTS_H
#define DAEMON_SOCKET_COSTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    COSTS_KNOWN = 64,
    COSTS_LONG_TIMES = 8,     /* as long as a call takes that nobody makes slow */
    COSTS_LONG_US = 50,       /* at least */
    COSTS_FORGIVEN_US = 2000, /* of long calls, since a machine has its hiccups */
    COSTS_CALLS = 2,          /* that were long, while something is owed, until one rests */
    COSTS_PART = 256,         /* of the time that the rest may have */
    COSTS_REST_MOST_S = 60,
};

struct socket_cost {
    uid_t uid;
    uint32_t listener; /* the tenant's that it is of (its index + 1), or 0 */
    uint64_t debt_ns, asof_ns;
    uint32_t calls; /* long ones, since nothing was owed */
    uint64_t rest_until_ns;
};

struct socket_costs {
    uint64_t long_ns; /* a call that takes less costs nothing: set by the caller */
    struct socket_cost at[COSTS_KNOWN];
    uint32_t known;
};

/* From what a call took where nobody made it slow. */
void agentd_socket_costs_init(struct socket_costs *r, uint64_t usual_ns);
/* A call took so much of the processor. True: they rest, from now on or still. */
bool agentd_socket_costs_charge(struct socket_costs *r, uid_t uid, uint32_t listener,
                                uint64_t cpu_ns, uint64_t now_ns);
bool agentd_socket_costs_rests(const struct socket_costs *r, uid_t uid, uint32_t listener,
                               uint64_t now_ns);
/* Who of that listener rests: how many, at most COSTS_KNOWN. */
uint32_t agentd_socket_costs_resting(const struct socket_costs *r, uint32_t listener,
                                     uint64_t now_ns, uid_t uids[COSTS_KNOWN]);

#endif
