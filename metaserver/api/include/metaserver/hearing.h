/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver knows of the store that it shares with others, and of these. Of service.h. */
#ifndef METASERVER_HEARING_H
#define METASERVER_HEARING_H

#include "metaserver/known.h"
#include "metaserver/store_watch.h"

/* What is known of a store that other metaservers write to as well: zeroed to begin. */
struct meta_hearing {
    bool shared;        /* else nothing of this but the members is looked at */
    bool shown_nothing; /* it is on a network, and shown neither a password nor a certificate */
    struct meta_store_member self;
    uint64_t heard_ns;      /* when all was known that the store had; 0: it never was */
    struct base_errbuf why; /* it cannot be heard, or does not fit here; empty: it can */
    bool misfits;           /* what it holds of resources does not fit: until a snapshot does */
    bool lacks_nodes, lacks_names; /* some of these have no room here: likewise */
    bool wants_snapshot;           /* what was heard does not fit to what is known */
    uint64_t member_ns;            /* since when this metaserver lives there; 0: it does not */
    uint64_t things;               /* that were heard so far */
    uint64_t revision;             /* the newest of all that were ever known */
    bool forked;           /* what has that revision now is not what had it: it is used up */
    bool raising;          /* a write of a greater one is under way, or waits for its turn */
    uint64_t raise_at;     /* after one that failed: when it is tried again */
    uint64_t names_anew;   /* how often the store was put back, with its names of regions */
    uint64_t settles_ns;   /* by then who lives has said so since, and has its names again */
    uint64_t ask_until_ns; /* agents that begin a stream are to renew, so as to hear of it */
    bool unsettled;        /* the trail may have to say that this is over, when it is */
    bool settling;         /* an entry that says so is being written */
    uint64_t settle_at;    /* after one that failed: when it is tried again */
    uint64_t generation;   /* of the store, as it is known */
    uint32_t voided;       /* tokens that have come back, at most; 0: none is left */
    bool burying;          /* one of them is being deleted */
    uint64_t bury_at;      /* likewise */
    uint32_t member_count;
    struct meta_store_member member[META_STORE_MEMBERS_MAX];
};

struct meta_service;
/* After meta_service_load(): what was known of the store before this process, so that what was
 * deleted stays deleted if it was put back meanwhile. Borrowed for the call. */
void meta_service_remember(struct meta_service *s, const struct meta_known *k);
/* What is known of it now: for who remembers it; meta_known_fini() it. -ENOMEM. */
int meta_service_known(const struct meta_service *s, struct meta_known *out);

/* Whether everybody who reaches the store may write it: it is shown nothing, and was heard. */
bool meta_service_is_open_to_all(const struct meta_service *s);
extern const char meta_service_open_to_all[]; /* a sentence, with the way out */

/* Whether that is of the store that it began with, as far as either says. */
bool meta_service_is_own_store(const struct meta_service *s, const struct meta_store *snapshot);

#endif
