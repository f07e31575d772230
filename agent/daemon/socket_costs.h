/* SPDX-License-Identifier: Apache-2.0 */
/* What the attach sockets of one uid have cost the control thread beyond what such calls take.
 *
 * Who sends on a Unix socket, receives, shuts it down or closes it does in the kernel what the
 * other side has hung on its end: with 20,000 watches by epoll each of these takes 15 to 25 ms of
 * the processor. What is long is so beside what this host takes for a socket that nobody watches.
 * Whose calls have been long for more than a little, and several of them, has no more than a 256th
 * of the thread's time for that: it rests for 256 times as long as they took beyond that, and a
 * minute at most.
 *
 * Counted is by uid and by listener, since a tenant that has a listener of its own is known by
 * that. Of so many of them; who owes least makes room for another one. No I/O. One thread.
 *
 * No few calls are anybody's guilt, however long: what a guest's processor was taken away for, and
 * what interrupts took, is in the time of whoever ran; and an emulated processor has to translate
 * what it runs for the first time. Who is honest, and is ended for that, has lost a session: so
 * what is forgiven is much, and more on a slow host. */
#ifndef DAEMON_SOCKET_COSTS_H
#define DAEMON_SOCKET_COSTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    COSTS_KNOWN = 64,
    COSTS_LONG_TIMES = 32,    /* as long as a call takes that nobody makes slow */
    COSTS_LONG_US = 500,      /* at least */
    COSTS_FORGIVEN_MS = 50,   /* of long calls, since a machine has its hiccups, and at least */
    COSTS_FORGIVEN_LONG = 64, /* of the shortest that are long */
    COSTS_CALLS = 8,          /* that were long, while something is owed, until one rests */
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
    /* A call that takes less costs nothing; what is forgiven, and so many calls less one. */
    uint64_t long_ns, forgiven_ns;
    uint32_t calls;
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
