/* SPDX-License-Identifier: Apache-2.0 */
/* Private to agent/lane: the endpoints and the names of regions that a lane looks up, and whose
 * CONNECT or LOOKUP waits for which. The lane thread's.
 *
 * A lookup is used until it ends, and then until all that waited for it were told. Who waits for
 * one is in a group with those of its tenant. When the lookup ends its groups go to their tenants,
 * which take turns: so one tenant's hundreds of sessions do not stand before another's one. */
#ifndef LANE_LOOKUP_TABLE_H
#define LANE_LOOKUP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "agent/lane_config.h"
#include "schema/name_record.h"
#include "message/places.h"
#include "resolve/relay.h"

struct lane;
struct session;

enum {
    LANE_LOOKUPS = 64, /* that tenants have in common, beside one of each */
    LANE_LOOKUP_BUCKETS = 64
};

LIST_HEAD(lookup_list, lookup);
LIST_HEAD(lookup_read_list, lookup_read);
TAILQ_HEAD(lookup_group_list, lookup_group);

/* What those who wait are told. */
struct lookup_answer {
    int status;
    bool of_name;
    uint32_t slot, gen;             /* of an endpoint */
    struct schema_name_record name; /* of_name */
};

/* A region's name among those of a space, and its key in the table that was looked into last, since
 * it is another one in each. */
struct lookup_name {
    uint64_t seed, generation; /* of that table */
    uint8_t key[16];
    bool keyed;
    uint32_t length; /* of the name, of which no more is copied */
    char space[SCHEMA_NAME_SPACE_BYTES], name[SCHEMA_NAME_MAX + 1];
};

/* An endpoint or a name that is looked up: at one metaserver, and when that is silent, at the next
 * beside it.
 */
struct lookup {
    uint8_t next;             /* metaserver to ask */
    uint8_t absent, behind;   /* some metaserver does not know it, or an earlier life of it */
    uint8_t crowded;          /* it is known, and there was no room for it yet */
    uint8_t rounds;           /* in which all were asked, and it was awaited */
    uint16_t awaited_by;      /* a bit, by its number, for each metaserver that has its node, whose
                               * agent is to register there, and has said nothing else since, in
                               * the list or not */
    uint32_t tenant;          /* its place + 1 whose worker wants it; 0: the lane does */
    struct lookup_name *name; /* NULL: an endpoint is looked up */
    uint64_t deadline_ns, hedge_ns;  /* the round ends; the next metaserver is asked */
    uint64_t patience_ns;            /* until then there is another round if it is awaited */
    uint64_t read_ns;                /* when the READ was posted that is looked at */
    struct lookup_group_list groups; /* of those whose request this answers */
    uint32_t untold;                 /* groups that wait for it, also when it has ended */
    struct lookup_read_list reads;   /* under way */
    /* From here on nothing need be cleared when it begins. Its key: of an endpoint its GID, of a
     * name its key in the first table of names, which no worker knows. */
    uint8_t key[16];
    LIST_ENTRY(lookup) in_use; /* or among those that are free; in none while it is told */
    LIST_ENTRY(lookup) in_bucket;
    struct lookup_answer answer; /* when it has ended */
};

/* A READ of a metaserver's table. */
struct lookup_read {
    uint8_t metaserver; /* its place in the lane's list; NO_METASERVER: it is in that no more */
    uint8_t tries;
    uint32_t scratch;
    uint64_t read_ns;
    struct lookup *lookup;       /* NULL: that is over */
    LIST_ENTRY(lookup_read) one; /* of its lookup, or of those that are free */
};

/* The sessions of one tenant that wait for one lookup. */
struct lookup_group {
    struct lookup *lookup;
    TAILQ_HEAD(, session) sessions;
    TAILQ_ENTRY(lookup_group) one; /* of its lookup; of its tenant's that are to be told */
    struct lookup_group *next_free;
};

struct lookup_tenant {
    struct lookup_group_list answered;
    TAILQ_ENTRY(lookup_tenant) by_turn; /* while there are any */
};
TAILQ_HEAD(lookup_turns, lookup_tenant);

/* All that are under way are found by what they look for, in a table that nobody outside can crowd
 * a bucket of, so that what one more costs does not grow with them. */
struct lookups {
    struct lookup *all;
    struct lookup_name *names;     /* one for each */
    struct lookup_read *all_reads; /* two for each lookup */
    uint32_t reads;
    struct places places;
    struct lookup_list used, free, bucket[LANE_LOOKUP_BUCKETS];
    struct lookup_read_list free_reads;
    struct lookup_group *groups, *free_group; /* as many as sessions: none is without one */
    struct lookup_tenant *tenants;
    struct lookup_turns turns; /* those with somebody who is to be told */
    uint64_t told_pass;        /* the pass of told_left */
    uint32_t told_left;        /* so many more may be told in that pass */
    struct relays relays;      /* of the first lane, for others */
};

/* 0 or -ENOMEM; freed in either case. */
int lane_lookups_init(struct lane *l);
void lane_lookups_free(struct lane *l);
/* The one that looks for the endpoint with that key, or the name, and has not ended, or NULL. */
struct lookup *lane_lookup_find(struct lane *l, const uint8_t key[16], bool of_name);
/* Of that name (copied), or an endpoint (NULL); without a time to end. NULL: that tenant (its place
 * + 1; 0: the lane) has as many as it may. */
struct lookup *lane_lookup_begin(struct lane *l, const uint8_t key[16],
                                 const struct lookup_name *name, uint32_t tenant);
/* k has ended with its answer: those who wait are told one after the other, when that can be. Its
 * READs that are out are nobody's when they come back. */
void lane_lookup_end(struct lane *l, struct lookup *k);
/* s waits for k; or not any more, if it did. */
void lane_lookup_wait(struct lane *l, struct lookup *k, struct session *s);
void lane_lookup_wait_no_more(struct lane *l, struct session *s);
/* Whether there is somebody to be told. */
static inline bool lookups_have_ended(const struct lookups *all)
{
    return !TAILQ_EMPTY(&all->turns);
}
/* The next who is to be told, which waits no longer. NULL: nobody, or as many as may be in a pass
 * were. */
struct session *lane_lookup_tell_next(struct lane *l, struct lookup_answer *out);

#endif
