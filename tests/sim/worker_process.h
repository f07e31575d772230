/* SPDX-License-Identifier: Apache-2.0 */
/* A worker as a simulated process: libkedge as it is, and a program that opens a session, lends
 * regions to others, and READs, WRITEs and adds in theirs, at random. It judges all that it sees:
 * each VQP's completions come once and in order, and each byte is what it must be. One thread. */
#ifndef SIM_WORKER_PROCESS_H
#define SIM_WORKER_PROCESS_H

#include "process.h"

/* Of the requests of a burst together. */
enum { WORKER_BUFFERS_LEAST = 40 << 10, WORKER_BUFFERS_USUAL = 80 << 10 };

struct play_worker_settings {
    char socket[108]; /* of its agent */
    uint32_t tenant;
    uid_t uid;
    uint64_t pause_ns;     /* between two bursts, on average */
    uint64_t operation_ns; /* it is to post one in so long, on average, and makes its pauses longer
                            * or shorter for that; 0: it is not */
    uint32_t buffer_bytes; /* of all requests of a burst; more of them are smaller */
    bool in_parts;         /* bursts come in several lists, and are more than a few of turns */
    uint64_t calm_ns;      /* from then on nothing goes wrong, nor has for long */
    uint32_t heed_ppm;     /* of turns it heeds what operators want of it; 0: there are none */
    uint32_t change_ppm;   /* of turns it does something else: a region, a connection or a session
                            * comes or goes */
    bool batches;          /* it posts batches too */
    bool by_descriptor;    /* it sleeps in poll() for kedge_fd() */
    bool messages;         /* it sends messages, and hears some */
    bool large;            /* some of them are large */
    bool names;            /* it publishes its regions, and looks up others' names */
    uint32_t tenants;      /* there are so many */
    uint32_t hostile;   /* the tenant of hostile workers, whom it lets in too; 0: there are none */
    bool no_atomics;    /* its device has none */
    bool no_lease_only; /* all that it lends has a registration of its own: KEDGE_MR_LEASE_ONLY
                         * holds only while no host is stopped with what its device has to
                         * send */
};

/* Zeroed to begin; only ever grows. */
struct play_worker_counts {
    uint64_t sessions, refused, regions, withdrawn, connections;
    uint64_t posted, completed, failed, never_sent, dropped; /* dropped: their session ended */
    uint64_t reads, writes, atomics;
    uint64_t messages, heard, answered; /* that were posted, popped, and ended well */
    uint64_t large, lists;              /* of those that were popped; that were posted, or raises */
    uint64_t hostile;                   /* that were popped, of hostile workers */
    uint64_t imports;                   /* of tokens, many at once */
    uint64_t batches_prepared, batches, cancelled; /* that ended well, that were cancelled */
    uint64_t last_success_ns;
};

struct play_worker;

struct play_worker *play_worker_start(struct play_host *host, const char *name,
                                      const struct play_worker_settings *settings, uint64_t seed);
/* If it pauses, it goes on now, and does more at once than it does usually; but not who has posted
 * more than it is to. */
void play_worker_call(struct play_worker *w);
/* It closes what it has and ends: has it? */
void play_worker_stop(struct play_worker *w);
bool play_worker_has_ended(const struct play_worker *w);
/* A SIGKILL, or the end of one that has ended. Then *w is gone. */
void play_worker_kill(struct play_worker *w);
const struct play_worker_counts *play_worker_counts(const struct play_worker *w);
struct play_process *play_worker_process(struct play_worker *w);

#endif
