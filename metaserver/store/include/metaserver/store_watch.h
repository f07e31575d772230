/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to a shared store, by whichever metaserver, in the order in which it was done.
 *
 * A watch has connections of its own and is used by one thread, which waits in it; stop() alone may
 * be called by another. Everything that next() gives is the caller's, on whichever thread.
 *
 * The first thing that a watch gives is a snapshot; then come the transactions behind it, each
 * once, in their order, those of this metaserver too. Where the store cannot say any more what came
 * next (it has compacted that away, or is another one by now), and now and then to be sure, it
 * gives another snapshot, which stands for everything before. */
#ifndef METASERVER_STORE_WATCH_H
#define METASERVER_STORE_WATCH_H

#include <sys/queue.h>

#include "metaserver/store.h"

enum {
    META_STORE_MEMBERS_MAX = 16,    /* metaservers of a store */
    META_STORE_MEMBER_BYTES = 1024, /* of what one says of itself */
    META_STORE_NEWS_NODES = 256,    /* of one transaction */
};

/* A metaserver that lives, as far as the store knows. */
struct meta_store_member {
    char name[META_STORE_ID_BYTES];
    char
        about[META_STORE_MEMBER_BYTES]; /* JSON that it said of itself when it began; not checked */
};

struct meta_store_heard {
    enum meta_store_heard_kind {
        META_STORE_HEARD_SNAPSHOT, /* `snapshot`: all that is stored; `members` */
        META_STORE_HEARD_NEWS,     /* a transaction: nodes, lives, `change` */
        META_STORE_HEARD_MEMBERS,  /* `members` are others than before */
    } kind;
    uint64_t at; /* grows, but for a snapshot of a store that was put back: that may be less */
    struct meta_store *snapshot; /* in memory (meta_store_memory()) */
    /* A snapshot that what was given before does not lead to: the store was put back, or replaced
     * as a whole, or is another one. Never the first one's. */
    bool put_back;
    uint32_t member_count;
    struct meta_store_member *members; /* in the order of their names */
    /* As they are from now on, in whatever order; expired ones too. */
    uint32_t node_count;
    struct meta_store_node *nodes;
    /* That are forgotten. */
    uint32_t removed_count;
    struct meta_store_life *removed;
    /* Names of regions that were taken back (`node` "": of whomever), and then, that were given. */
    uint32_t withdrawn_count, published_count;
    struct meta_store_name *withdrawn, *published;
    bool has_change;
    struct meta_store_change change;     /* its strings are this struct's own; `forget` is 0 */
    STAILQ_ENTRY(meta_store_heard) link; /* of who has it */
};
STAILQ_HEAD(meta_store_heard_list, meta_store_heard);

struct meta_store_watch {
    const struct meta_store_watch_ops *ops;
};

struct meta_store_watch_ops {
    int (*next)(struct meta_store_watch *watch, uint64_t timeout_ns, struct meta_store_heard **out,
                struct base_errbuf *err);
    void (*ask)(struct meta_store_watch *watch);
    void (*stop)(struct meta_store_watch *watch);
    void (*close)(struct meta_store_watch *watch);
};

/* Waits for the next thing, for so long at most. 1 and *out; 0: nothing came, and the store has
 * said within the last META_STORE_SILENCE_NS that there is nothing; -ECANCELED: stopped; else
 * -errno and a sentence: it cannot be heard just now: call again, which tries again (and waits
 * before it does so, more each time). */
int meta_store_watch_next(struct meta_store_watch *watch, uint64_t timeout_ns,
                          struct meta_store_heard **out, struct base_errbuf *err);
#define META_STORE_SILENCE_NS UINT64_C(3000000000)
/* Any thread, likewise: a snapshot comes before anything else that is not under way. */
void meta_store_watch_ask(struct meta_store_watch *watch);
/* Any thread, at any time before close(): next() returns soon, for ever. */
void meta_store_watch_stop(struct meta_store_watch *watch);
/* No thread is in next(). NULL is allowed. */
void meta_store_watch_close(struct meta_store_watch *watch);

/* NULL is allowed. */
void meta_store_heard_free(struct meta_store_heard *heard);

#endif
