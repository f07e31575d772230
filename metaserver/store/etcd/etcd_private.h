/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the store: etcd_store.c (what it offers), etcd_fence.c (whether what was
 * sent was done), etcd_commit.c with etcd_decide.c (a transaction), etcd_replace.c. */
#ifndef METASERVER_STORE_ETCD_PRIVATE_H
#define METASERVER_STORE_ETCD_PRIVATE_H

#include "etcd_model.h"

enum {
    META_ETCD_LIVES_MAX = 40,   /* that one transaction looks at */
    META_ETCD_REMOVES_MAX = 16, /* of them, those that are forgotten */
    META_ETCD_FENCE_BYTES = 96,
    META_ETCD_CLAIMS_MAX = META_ETCD_OPS_MAX, /* endpoints that are wanted */
    META_ETCD_SUBJECTS_MAX = META_ETCD_LIVES_MAX + META_STORE_PUTS_MAX + META_ETCD_CLAIMS_MAX,
};

struct meta_etcd_store {
    struct meta_store base;
    struct meta_etcd_client *client;
    struct meta_etcd_place place;
    uint64_t timeout_ns;
    struct meta_etcd_root root; /* as known; mod_revision 0: not yet */
    struct meta_etcd_lives lives;
    bool to_read;
    bool has_watch;                   /* which says of the same life that it has the name */
    uint64_t sequence;                /* of what was sent last */
    char sent[META_ETCD_FENCE_BYTES]; /* the fence's value with it */
    bool unsettled;                   /* it is not known whether that was done */
    uint64_t fence_revision;          /* that the fence had; it never is less again */
    uint64_t named_as_of;             /* of etcd's: nobody else had our name then; 0: not known */
    uint32_t guess_pause;             /* transactions that a refused guess has read first */
    uint32_t guess_wait;              /* those of them that are left */
};

/* The key PREFIX/by/MEMBER, which each of our transactions changes. */
struct meta_etcd_fence {
    uint64_t mod_revision;
    char value[META_ETCD_FENCE_BYTES];
};

/* ---- etcd_root.c: for the watch too */
/* What is at PREFIX/store, made if it is not there and that is wanted. 0 and *out, or as
 * meta_etcd_call(). */
int meta_etcd_find_root(struct meta_etcd_client *c, const struct meta_etcd_place *p, bool make,
                        uint64_t deadline_ns, struct meta_etcd_root *out, struct base_errbuf *err);
int meta_etcd_say_gone(const struct meta_etcd_place *p, struct base_errbuf *err);
/* What is read, as of a revision (0: now). */
struct meta_etcd_extent {
    struct meta_etcd_client *client;
    const struct meta_etcd_place *place;
    uint64_t generation, timeout_ns;
    uint64_t revision; /* out: which it was */
    uint64_t digest;   /* out: the sum of meta_etcd_digest() of all keys */
};
/* Everything as a store in memory; without `out` the digest alone. As meta_etcd_call(). */
int meta_etcd_read_all(struct meta_etcd_extent *x, struct meta_store **out,
                       struct base_errbuf *err);
/* Of a key that was changed last at a revision. */
uint64_t meta_etcd_digest(const char *key, uint64_t mod_revision);

/* ---- etcd_member.c */
/* That another metaserver has the name, and lives: status. */
int meta_etcd_say_taken(const struct meta_etcd_place *p, int status, struct base_errbuf *err);
/* Whether another one has our name among members: 0, or -EBUSY and a sentence. */
int meta_etcd_check_name(const struct meta_etcd_store *s, const struct meta_etcd_member *members,
                         uint32_t count, struct base_errbuf *err);
/* The same of what is stored now, or as a call. */
int meta_etcd_ask_name(struct meta_etcd_store *s, uint64_t deadline_ns, struct base_errbuf *err);

/* That nobody is a member now: 0, or -EBUSY and a sentence, or as a call. */
int meta_etcd_check_idle(struct meta_etcd_store *s, uint64_t deadline_ns, struct base_errbuf *err);

/* ---- etcd_fence.c */
/* Whether it can have come from what was known of it: -EIO and a sentence; else it is known. */
int meta_etcd_fence_check(struct meta_etcd_store *s, uint64_t mod_revision,
                          struct base_errbuf *err);
/* Adds the next value of the fence to a transaction, and remembers it as sent. */
void meta_etcd_fence_add(struct meta_etcd_store *s, struct meta_etcd_txn *t, uint64_t mod_revision);
/* The answer to what was sent is lost: 1 and *at: it was done; 0: it was not, and never will be;
 * -ETIMEDOUT and a sentence: that is not known yet. */
int meta_etcd_fence_settle(struct meta_etcd_store *s, uint64_t deadline_ns, uint64_t *at,
                           struct base_errbuf *err);
/* Writes it, which changes nothing else. As a commit where etcd was put back. */
int meta_etcd_fence_bump(struct meta_etcd_store *s, uint64_t deadline_ns, struct base_errbuf *err);

/* ---- etcd_decide.c */
/* A node that a transaction is about. */
struct meta_etcd_subject {
    char id[META_STORE_ID_BYTES];
    bool owner;     /* has an endpoint that is wanted, and no more is known of it */
    bool senseless; /* nobody can read what is stored of it */
    bool was_there, there;
    bool was_silent, silent;
    uint64_t node_revision, silent_revision;
    struct meta_etcd_node was, now;
    struct meta_etcd_silent said_before, said;
};
struct meta_etcd_claim {
    uint64_t mod_revision;
    bool senseless;
    char owner[META_STORE_ID_BYTES]; /* "": nobody */
};
/* A name that is taken back or published. */
struct meta_etcd_named {
    bool there;
    uint64_t mod_revision;
    struct meta_store_name was;
};
struct meta_etcd_decision {
    const struct meta_store_txn *txn;
    const char *member;
    uint64_t last, last_revision;
    struct meta_etcd_fence fence;
    uint32_t expire_count;
    uint32_t put_count; /* of the transaction's, that are dealt with: put_most of them at most */
    uint32_t put_most;
    struct base_errbuf senseless; /* of the last subject of which nobody can read what is stored */
    uint32_t subject_count;
    struct meta_etcd_subject subject[META_ETCD_SUBJECTS_MAX];
    struct meta_etcd_claim claim[META_ETCD_CLAIMS_MAX]; /* of the first's endpoints, and so on */
    struct meta_etcd_named named[META_STORE_NAMES_MAX + 1]; /* the last is published */
    bool is_guess;  /* nothing was read: it is to be that none of its nodes is stored */
    uint64_t as_of; /* the revision of etcd's that members were read at */
    uint32_t member_count;
    struct meta_etcd_member members[META_STORE_MEMBERS_MAX];
};
/* Whether a registration up to the given one wants that endpoint, and is not refused. */
bool meta_etcd_is_wanted(const struct meta_etcd_decision *d, uint32_t puts,
                         const struct meta_store_endpoint *e);
/* NULL: there is none of that name. */
struct meta_etcd_subject *meta_etcd_find_subject(struct meta_etcd_decision *d, const char *id);
/* How many names it is about, and the i-th of them: those that are taken back come first. */
uint32_t meta_etcd_name_count(const struct meta_store_txn *txn);
const struct meta_store_name *meta_etcd_name_at(const struct meta_store_txn *txn, uint32_t i);
/* What becomes of it: the subjects' now and said, and out. As a commit. */
int meta_etcd_decide(struct meta_etcd_decision *d, struct meta_store_outcome *out);

/* ---- etcd_subjects.c */
/* False: there are `most` already. */
bool meta_etcd_add_subject(struct meta_etcd_decision *d, const char *id, uint32_t most);
/* Those of the transaction, as far as they have room in what is read: put_count and expire_count.
 */
void meta_etcd_gather_subjects(struct meta_etcd_decision *d);
/* Endpoints that the registrations want, all together. */
uint32_t meta_etcd_count_claims(const struct meta_etcd_decision *d);
/* Whether it is to be written as if its nodes were stored nowhere, which etcd then compares; once
 * for each transaction. */
bool meta_etcd_is_to_guess(struct meta_etcd_store *s, const struct meta_store_txn *txn);
/* What came of it. */
void meta_etcd_note_guess(struct meta_etcd_store *s, bool refused);
/* In place of reading. */
void meta_etcd_guess(const struct meta_etcd_store *s, struct meta_etcd_decision *d);

/* ---- etcd_names.c */
int meta_etcd_take_name(const struct meta_etcd_answer *answer, size_t at,
                        const struct meta_store_name *name, struct meta_etcd_named *n,
                        struct base_errbuf *err);
void meta_etcd_write_names(struct meta_etcd_store *s, const struct meta_etcd_decision *d,
                           struct meta_etcd_txn *t);

/* ---- etcd_commit.c, etcd_replace.c */
int meta_etcd_commit(struct meta_store *store, const struct meta_store_txn *txn,
                     struct meta_store_outcome *out);
int meta_etcd_replace(struct meta_store *store, meta_store_next *next, void *user,
                      struct base_errbuf *err);
/* What a store may fail with, of what a call fails with. */
int meta_etcd_status(int status);
/* That the store is the one that is known: else a sentence, and -EIO. */
int meta_etcd_learn_root(struct meta_etcd_store *s, bool make, uint64_t deadline_ns,
                         struct base_errbuf *err);
int meta_etcd_check_root(struct meta_etcd_store *s, const struct meta_etcd_kv *kv,
                         struct base_errbuf *err);

#endif
