/* SPDX-License-Identifier: Apache-2.0 */
/* Names under which workers' regions are to be found (docs/leases.md#names), which metaservers keep
 * and show. Control thread.
 *
 * A publication is one name of a tenant, as long as a metaserver may have it from this life of the
 * node: it is one region's, and then it is taken back wherever it may be, however long a metaserver
 * does not answer. Which region has a name is decided by the metaservers' store: the first one that
 * answers decides, the others are asked until they show it. Each that registers this node anew is
 * told again.
 *
 * Names go to metaservers under the agent's own token, which has bounds there: so few calls are out
 * at a time, in turns between tenants, and each tenant begins so many publications in a second. */
#ifndef CONTROL_PUBLICATIONS_H
#define CONTROL_PUBLICATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane.h"
#include "base/log.h"
#include "control/config.h"
#include "control/tenants.h"
#include "schema/name_record.h"

struct agent;
struct agent_session;
struct base_text;
struct publication;
struct publications_wait;

enum {
    PUBLICATIONS_OF_SESSION = 64,
    /* With those that are being taken back: as many as a metaserver gives a tenant of which nothing
     * is said (region_names). */
    PUBLICATIONS_OF_TENANT = 256,
    PUBLICATIONS_MOST = 1024,
    /* Beside those: of names that one metaserver says to have, and that nobody here has. What it
     * says takes neither another one's part nor the workers'. */
    PUBLICATIONS_RETURNED = 64,
    PUBLICATIONS_RETURNED_OUT = 2, /* calls to it about these, beside PUBLICATIONS_OUT */
    PUBLICATIONS_OUT = 16,         /* calls at a time, beside NAMES_OUT, in equal parts */
    PUBLICATIONS_PER_S = 200,      /* of all tenants, of which each has an equal part */
    PUBLICATIONS_LOOK_MS = 1000,   /* what has become of their regions, which workers give back */
    PUBLICATIONS_LOST_MS = 10000,  /* another one has the name for so long: it is given up */
    PUBLICATIONS_WHY = 160,
};

/* What a tenant has of all that. As struct names_account, it is the tenant's id's. */
struct publications_account {
    uint32_t tenant;   /* its id */
    uint32_t count;    /* publications */
    uint32_t out;      /* calls */
    uint64_t whole_ns; /* when its budget of a second is whole again */
};

/* Of what one metaserver shows of this node. */
struct publications_listing {
    struct agent *agent;
    uint32_t metaserver, incarnation, pages;
    bool wanted, asking;
    bool anew;   /* from the beginning, whatever is out */
    bool missed; /* what could not be dealt with when it was listed: from the beginning once more */
    bool took;   /* a name that nobody here has, and that is taken back from now on */
    bool is_stuck;         /* there was room for none of the others, the last time */
    uint32_t crowded;      /* such names that there was no room for so far */
    uint32_t without_room; /* likewise, in the last list that was whole */
    uint32_t out;          /* calls about such names */
    uint32_t of_workers;   /* calls to it about workers' names */
    uint64_t next_ns, backoff_ms;
    uint64_t begun_ns; /* when its first page was asked for last; 0: never */
    struct base_log_limit log;
    char cursor[640]; /* where the next page begins; "": the first one */
};

struct publications {
    struct publication *first;
    struct publications_wait *waits; /* workers that wait for an answer: one of a session */
    struct publications_account account[2 * AGENT_TENANT_SLOTS];
    struct publications_listing listing[AGENT_METASERVERS];
    uint32_t count, out;
    uint64_t due_ns, look_ns;
    uint64_t begun, refused, lost; /* so far: that workers asked for; of them; that others have */
};

/* What comes of it: 0; or -errno and a sentence. */
typedef void publications_done(void *user, int status, const char *why);

/* The region with that key of a session that lives is to be found by the name, by workers of the
 * reader, another tenant ("": of its own); done() once, later or before this returns. 0: every
 * metaserver that this agent reaches shows it. -EINVAL: no name, or no other tenant; -ENOENT: the
 * session has no region with that key that others may use; -EACCES: it was revoked; -EEXIST:
 * another region has it; -EDQUOT, -ENOSPC: no more of them; -EAGAIN: too many at a time;
 * -EHOSTUNREACH, -ETIMEDOUT: no metaserver answers; -EOPNOTSUPP: they keep none. */
void agent_publish(struct agent_session *s, uint32_t vkey, const char *name, const char *reader,
                   publications_done *done, void *user);
/* It is not to be found by that name ("": by any) any more. 0: no metaserver that this agent
 * reaches shows it; -ENOENT: that region has no such name; -EHOSTUNREACH: no metaserver has
 * answered, and it goes when one does. */
void agent_unpublish(struct agent_session *s, uint32_t vkey, const char *name,
                     publications_done *done, void *user);
/* How many names the region with that key of a session has. */
uint32_t agent_publications_of(const struct agent_session *s, uint32_t vkey);
/* A session is over: nobody waits for it any more, and its names are taken back. */
void agent_publications_end(struct agent_session *s);
/* Regions may have been revoked: they are looked at now. */
void agent_publications_look(struct agent *a);
/* A metaserver has (one of the node's pools, by its place) from now on: it may have forgotten, or
 * is another than before, or its store was put back. */
void agent_publications_registered(struct agent *a, uint32_t metaserver, uint32_t place);
void agent_publications_tick(struct agent *a);
uint64_t agent_publications_due_ns(const struct agent *a);
/* After the last call has ended. */
void agent_publications_stop(struct agent *a);
void agent_publications_status(const struct agent *a, struct base_text *t);
void agent_publications_metrics(const struct agent *a, struct base_text *t);

#endif
