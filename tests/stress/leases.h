/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of `kedge-stress leases` know of each other's regions: owners
 * (leases_owners.c) and remote workers (leases.c), an operator who revokes regions in the middle
 * (leases_operator.c), and at the end a judge of what failed (leases_judge.c). All of it is shared
 * and starts as zeroes.
 *
 * A region is known by its generation, a number that none of the run has twice. Every word of it
 * carries that in its upper half, whoever writes it. So a word of another generation, wherever it
 * turns up, is an operation that was executed under a key that had been withdrawn. */
#ifndef STRESS_LEASES_H
#define STRESS_LEASES_H

#include <infiniband/verbs.h>
#include <kedge.h>
#include <stdatomic.h>

#include "stress.h"

enum {
    OWNERS = 4,
    REGIONS = 2, /* of an owner, in one arena */
    REMOTES = 3,
    WORDS = 4096, /* of a region */
    GENERATIONS = 1 << 20,
    LIVES = 1 << 16, /* of owners */
    PER_LIFE = 16,   /* regions that one registers, one after the other */
    LOGGED = 1 << 16,
};

/* Times are of base_clock_ns(), 0: never. */
struct region_facts {
    _Atomic bool free;           /* its owner was told so, or the operator that nobody reaches it */
    _Atomic bool revoked;        /* the operator was told */
    _Atomic bool heard;          /* its owner has heard that it is revoked */
    _Atomic bool flushes;        /* and by force, which ends others' WRITEs to its node too */
    _Atomic uint64_t dead_ns;    /* when its owner had died with it */
    _Atomic uint64_t ending_ns;  /* from when on requests to it may fail: its owner gives it back or
                                    ends, or a revocation begins that names it in its report */
    _Atomic uint64_t forced_ns;  /* from when on they may break connections: that is by force */
    _Atomic uint64_t refused_ns; /* first seen by whom an agent refused it, or by its owner */
    _Atomic uint64_t broke_ns;   /* first seen by whom a device refused it, breaking a connection */
};

/* A list of requests that failed at some moment between these two. */
struct failed_list {
    uint64_t generation, posted_ns, polled_ns;
};

struct failed_lists {
    _Atomic uint64_t count;
    struct failed_list at[LOGGED];
};

struct offer {
    uint64_t generation;
    char token[KEDGE_TOKEN_MAX];
};

struct board {
    _Atomic uint64_t generations, lives;
    _Atomic bool stop;
    _Atomic uint64_t regions, reused, watched, died, reads, writes, refused, reopened, past, dead;
    /* Revocations, and regions that were live until then: asked for, and taken along by force. */
    _Atomic uint64_t plain, forced, all, late, plain_hits, forced_hits, along;
    _Atomic uint64_t heard; /* owners who saw that theirs was revoked, */
    _Atomic uint64_t own;   /* and who used it for themselves before they gave it back */
    _Atomic uint64_t past_revoked;
    struct region_facts region[GENERATIONS];
    struct {
        _Atomic uint64_t pid;
        _Atomic uint64_t generation[PER_LIFE + 1]; /* of its lease of that number */
    } life[LIVES];
    struct {
        _Atomic uint32_t seq; /* odd while it is written */
        struct offer offer;
    } slot[OWNERS][REGIONS];
    struct failed_lists culprits; /* whose own request a device refused */
    struct failed_lists victims;  /* whose WRITEs were flushed behind another's */
};

static inline uint64_t leases_word(uint64_t generation, uint64_t low)
{
    return generation << 32 | (uint32_t)low;
}

/* *at = ns if that is earlier, or the first. */
void leases_earlier(_Atomic uint64_t *at, uint64_t ns);

/* One worker's life, as owner `number`; the next one of the same tenant gets the same memory. */
void leases_own(const struct stress *s, struct board *b, int number, uint64_t random);

/* ---- the operator */

/* With s->rdmactl, at s->admin: until b->stop. */
void leases_operate(const struct stress *s, struct board *b, uint64_t random);
/* Whether all that he does has hit somebody; with s->breaks connections too. */
bool leases_operator_has_seen_all(const struct stress *s, const struct board *b);
void leases_operator_report(const struct board *b);

/* ---- the judge */

/* The first failure of a list, all of which goes to one region. Fails at what nothing explains. */
void leases_failed(const struct stress *s, struct board *b, const struct ibv_wc *wc, bool write,
                   const struct failed_list *list);
/* When all have ended: fails unless each failure has a reason that allows it. */
void leases_judge(const struct stress *s, const struct board *b);

#endif
