/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the watch: etcd_watch.c (when what is done), etcd_member.c (that we live),
 * etcd_news.c (what events say). */
#ifndef METASERVER_STORE_ETCD_WATCH_H
#define METASERVER_STORE_ETCD_WATCH_H

#include <stdatomic.h>

#include "etcd_private.h"

struct meta_etcd_heard {
    struct meta_store_heard *heard;
    STAILQ_ENTRY(meta_etcd_heard) link;
};

struct meta_etcd_watch {
    struct meta_store_watch base;
    struct meta_etcd_client *client;
    struct meta_etcd_place place;
    uint64_t timeout_ns;
    char about[META_STORE_MEMBER_BYTES];
    STAILQ_HEAD(, meta_etcd_heard) heard; /* that next() gives */

    /* Where it stands. */
    struct meta_etcd_root root;
    bool began;          /* a snapshot was given once */
    bool wants_snapshot; /* what came since is not known any more */
    bool put_back;       /* nor where it leads to: the next one says so */
    atomic_bool asked;   /* for one, by whoever does not know what to make of what came */
    uint64_t at;         /* etcd's revision that was given last */
    uint64_t resume;     /* up to here nothing of ours is behind `at` */
    uint64_t newest;     /* the last revision of ours when it was asked for; never is less again */
    uint64_t digest;     /* of what was given */
    json_t *parts;       /* events of a response that is not whole yet */

    /* What is not the stream's to say. */
    bool open;         /* the stream */
    uint64_t heard_ns; /* when it was known that nothing is missing; 0: never */
    uint64_t asked_ns; /* when was asked last */
    uint64_t owed;     /* the stream has yet to give this revision; 0: it does not */
    unsigned strikes;  /* how often it was opened anew for that */
    uint64_t check_ns, check_every_ns; /* when all keys are listed */
    uint64_t retry_ns;                 /* nothing is tried before */
    unsigned failures;
    int failed_with;
    struct base_errbuf failure;

    /* Members. */
    struct meta_etcd_lives lives;
    uint64_t lease;    /* 0: none */
    bool joined;       /* our key is there, as far as is known */
    uint64_t alive_ns; /* when it was said last that we live */
    bool name_taken;   /* by another life, which until then may be our own former one */
    uint64_t name_until_ns;
    uint64_t name_retry_ns; /* the name is not asked for before */
    struct base_errbuf name_why;
    uint32_t member_count;
    struct meta_etcd_member members[META_STORE_MEMBERS_MAX];
};

/* ---- etcd_watch.c */
/* How often all keys are listed, for tests. */
void meta_etcd_watch_check_every(struct meta_store_watch *watch, uint64_t ns);

/* ---- etcd_member.c */
/* Before the first of these: its name may be taken by its former life for as long as a lease. */
void meta_etcd_member_begin(struct meta_etcd_watch *w, uint64_t now);
/* Says that this member lives, if it is time to, and its name is not taken: 0; -EDQUOT, or as a
 * call. */
int meta_etcd_member_keep(struct meta_etcd_watch *w, uint64_t now, struct base_errbuf *err);
/* That it does not any more. */
void meta_etcd_member_leave(struct meta_etcd_watch *w);
/* Takes the members that are there. True: they are others than before. */
bool meta_etcd_member_take(struct meta_etcd_watch *w, json_t *kvs);

/* ---- etcd_news.c */
/* What a response of the stream says, each revision once. -EBADMSG and a sentence: a value that
 * makes no sense. */
int meta_etcd_news_take(struct meta_etcd_watch *w, json_t *response, struct base_errbuf *err);
/* Adds it for next(). Takes what it is given. */
int meta_etcd_heard_add(struct meta_etcd_watch *w, struct meta_store_heard *heard,
                        struct base_errbuf *err);
/* The members, as they are now, into it. */
int meta_etcd_heard_members(struct meta_etcd_watch *w, struct meta_store_heard *heard,
                            struct base_errbuf *err);

#endif
