/* SPDX-License-Identifier: Apache-2.0 */
/* The store that all metaservers of a simulated cluster share, in place of etcd, and what each has
 * of it: a thread that carries out its transactions and one that hears what was done
 * (metaserver/store/worker.c, store_listener.c), and the lease by which it lives there.
 *
 * The store is nobody's process (metaserver/store_hub.h). What reaches it, what its answers are and
 * when a metaserver hears what, is the network's and the seed's choice, within what etcd does: a
 * transaction is done once or not at all, all hear of all in one order, and who is not heard for
 * the time of a lease does not count as living. One thread. */
#ifndef SIM_COMMON_STORE_H
#define SIM_COMMON_STORE_H

#include "events.h"
#include "inbox.h"
#include "metaserver/store_hub.h"
#include "metaserver/store_order.h"

enum { COMMON_MEMBERS = 4 };

/* ---- the store: one of a cluster */

void play_common_begin(uint64_t seed);
void play_common_end(void);

/* What is between a metaserver and the store, by its number. */
struct play_common_road {
    bool cut_there, cut_back; /* what is sent, what comes back; half of the streams that were open
                               * before the first alone go on */
    bool deaf;                /* transactions get through, and nothing is heard */
    uint32_t lost_percent;    /* of transactions have no answer; half of these are done */
    uint64_t slow_ns;         /* that it takes at most, beside the usual */
};
void play_common_set_road(uint32_t number, const struct play_common_road *road);
const struct play_common_road *play_common_road(uint32_t number);
/* Whether it counts as living. */
bool play_common_lives(uint32_t number);
/* The store is kept as it is now, if it is not kept already; and put back to that, if it is: what
 * it holds then, borrowed; NULL: nobody has it open, or it was not kept, and nothing was done. */
void play_common_keep(void);
struct meta_store *play_common_put_back(void);
/* What that one is to hear next has been compacted away: it is told all that there is. */
void play_common_compact(uint32_t number);

/* ---- what a process has of it */

struct play_common_link {
    uint32_t number;
    struct play_inbox *inbox; /* of its process */
    struct meta_store *store;
    struct meta_store_order order;
    struct meta_store_jobs waiting;         /* the first is under way */
    struct meta_store_heard_list heard;     /* that its thread has not taken */
    struct play_event arrive, answer, hear; /* the first is the store's, and happens whoever stands
                                             * still */
    struct play_post answered, something;
    bool done, refused; /* the first job was carried out; its caller is not told what came of it */
    int state;          /* as meta_store_listener_state() */
    uint64_t silent_ns; /* since when it has had no word of the store; 0: it has */
    uint64_t heard_ns;  /* when its thread had last heard all that the store had */
    uint64_t knows_ns;  /* and since when its process knows no less */
    void (*ran)(void *user); /* something was heard, or answered */
    void *user;
    void (*committed)(void *user, const struct meta_store_job *job); /* at that moment */
};

/* Opens it as the metaserver of that number and name, for a process that begins: it waits for it.
 * -errno and a sentence: it does not get through. */
int play_common_open(struct play_common_link *l, uint32_t number, const char *name,
                     struct base_errbuf *err);
/* It hears from now on, and may submit. */
void play_common_listen(struct play_common_link *l);
void play_common_submit(struct play_common_link *l, struct meta_store_job *job);
/* Takes what was heard to the order. */
void play_common_take(struct play_common_link *l);
/* Its process has put to use all that it took. */
void play_common_know(struct play_common_link *l);
void play_common_ask(struct play_common_link *l);
/* Of a process that ends: nothing is under way. Its name is free at once. */
void play_common_close(struct play_common_link *l);
/* Of one that is killed: what was under way is done or is not; it lives on there until its lease is
 * over, or it begins anew. */
void play_common_crash(struct play_common_link *l);

#endif
