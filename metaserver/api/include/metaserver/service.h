/* SPDX-License-Identifier: Apache-2.0 */
/* A metaserver without its sockets: the directory, the resources and the store kept in step, and
 * the requests of the REST interface answered. What a client was told is in the store first; what
 * the store refuses has not happened. What the store takes long for keeps waiting who asked for it,
 * and who asked for a change after that: nobody else.
 *
 * One thread. Times are given, as in directory.h. Nothing blocks but meta_service_load(). */
#ifndef METASERVER_SERVICE_H
#define METASERVER_SERVICE_H

#include <sys/queue.h>

#include "base/log.h"
#include "base/text.h"
#include "metaserver/access.h"
#include "metaserver/agent_query.h"
#include "metaserver/certificate.h"
#include "metaserver/directory.h"
#include "metaserver/pace.h"
#include "metaserver/names.h"
#include "metaserver/service_counters.h"
#include "metaserver/hearing.h"
#include "metaserver/table_responders.h"
#include "metaserver/watch.h"

/* How agents reach the table: given to them when they register. */
struct meta_service_endpoint {
    uint8_t gid[16];
    uint16_t lid;        /* 0 on Ethernet */
    uint32_t dct_number; /* 0: there is no DC target, agents need a responder */
    uint64_t dc_key;
    uint64_t table_addr;
    uint32_t table_rkey;
    uint64_t names_addr; /* of the table of names, which has the same key */
};

struct meta_service_answer;
struct meta_proxy;
struct meta_write;

/* What is to be written, in the order in which it was asked for: zeroed. */
struct meta_writes {
    struct meta_write *first, *last; /* the first one is with the store, or about to be */
    struct meta_pace pace;           /* of registrations */
    uint32_t count, checks, registrations, names, under_way; /* the first ones are that */
    struct meta_store_put puts[META_STORE_PUTS_MAX]; /* they are these, if they are several */
    uint64_t began_ns;                               /* the first one went to the store */
    uint64_t did_ns;                                 /* the store has last done what it was given */
    uint64_t probe_ns, failed_ns; /* no sooner is it probed again; the store has last failed */
    struct base_errbuf why;       /* which is the last that it did; else empty */
    bool stopping;
    bool tidying, withdrawing, probing; /* one of our own is among them, which nobody asked for */
};

struct meta_service {
    struct meta_world *world;         /* borrowed */
    struct meta_directory *directory; /* borrowed */
    struct meta_store *store; /* borrowed; meta_service_load() reads it, and nobody else here */
    struct meta_writes writes;
    struct meta_hearing hearing;
    struct meta_resources *resources;   /* borrowed; a snapshot may put another in its place */
    struct meta_names *names;           /* borrowed; NULL: none are kept */
    bool names_stale, names_dead;       /* lives may have changed; some are nobody's any more */
    struct meta_responders *responders; /* borrowed; NULL: the device has no RC */
    struct meta_liveness *liveness;     /* borrowed; NULL: nobody is told of it */
    uint64_t at, at_wall_ms;            /* one moment, by both clocks: the last that was said */
    /* Says what a request that was to be answered later is answered. The answer and its body are
     * borrowed for the call. Called by meta_service_advance(). */
    void (*answer)(void *token, const struct meta_service_answer *answer,
                   const struct base_text *body);
    bool (*gone)(void *token); /* nobody waits for that answer; NULL: somebody does */
    /* The watch with that token may have more: meta_watch_next() follows soon, not inside this. */
    void (*wake)(void *token);
    bool tokens_needed; /* else whoever shows none may all but give access away */
    struct meta_certificate_seen certificate[META_CERTIFICATES]; /* META_CERTIFICATE_NONE: unused */
    const char *admin_socket; /* where the first token is made; borrowed; NULL or "": nowhere */
    uint32_t max_watches, reader_watches; /* in all; of those who are no agents, 0: as many */
    uint32_t watch_count, agent_watches, region_watches;
    struct meta_watches watches;
    TAILQ_HEAD(, meta_watch) beats; /* while there are any: of them, the one that is due first */
    uint64_t told_position, told_names;   /* of nodes and names: who watches was woken for it */
    struct meta_watch_document *document; /* the newest that is being sent, or NULL */
    struct meta_queries queries;          /* of agents */
    LIST_HEAD(, meta_proxy) proxies;      /* what clients ask of them */
    uint64_t window_targets; /* a hash of the GIDs of nodes that windows name; 0: none names one */
    uint64_t targets_as_of;  /* the directory's changes */
    struct meta_service_endpoint endpoint; /* what agents READ the table through, as it is now */
    char table_why[256]; /* why none can, a sentence that /readyz says; "": they can */
    char store_id[33];   /* of a store that several metaservers share, in hex; "": it is our own */
    const char *zone;    /* where this metaserver is; borrowed; NULL or "": nobody has said */
    uint64_t node_lease_ns;
    struct meta_service_counters count;
    uint64_t store_retry_at; /* after an error of its own writes */
    struct base_log_limit store_log, reader_log, access_log;
};

/* Fills the cores from the store. -errno and a sentence. */
int meta_service_load(struct meta_service *s, uint64_t now, struct base_errbuf *err);

/* What has to happen with time: leases end, the store and those who watch are told, old nodes are
 * forgotten, what agents were asked is given up; a bounded amount of work. wall_ms: since 1970. */
void meta_service_tick(struct meta_service *s, uint64_t now, uint64_t wall_ms);
/* When any of that is due: call it whenever something has happened, before you wait, and then the
 * tick at that time, or META_TICK_NS after the last one if that is later (a storm costs no more
 * ticks). 0: at once; UINT64_MAX: not unless something happens. One before that does nothing. */
uint64_t meta_service_due(const struct meta_service *s);
#define META_TICK_NS UINT64_C(100000000)
/* What was done to a shared store (store_watch.h), in its order: what this metaserver has
 * submitted is told of by done() at its place. Borrowed for the call. */
void meta_service_hear(struct meta_service *s, const struct meta_store_heard *heard, uint64_t now);
/* The store has said that there was nothing more; or (why is not NULL) it cannot be heard. */
void meta_service_hear_nothing(struct meta_service *s, const struct base_errbuf *why, uint64_t now);
/* Whether what is known here may be older than what other metaservers know. */
bool meta_service_is_behind(const struct meta_service *s, uint64_t now);
#define META_SERVICE_BEHIND_NS (2 * META_STORE_SILENCE_NS)
/* The time of day, by which what happens from now on is told. */
void meta_service_at(struct meta_service *s, uint64_t now, uint64_t wall_ms);

/* ---- REST */

enum meta_service_parameter {
    META_PARAMETER_LIMIT,
    META_PARAMETER_CURSOR,
    META_PARAMETER_INCARNATION,
    META_PARAMETER_UID,
    META_PARAMETER_SCOPE,
    META_PARAMETER_TENANT,
    META_PARAMETER_KIND,
    META_PARAMETER_NAME,
    META_PARAMETER_WATCH,
    META_PARAMETER_REVISION,
    META_PARAMETER_POSITION,
    META_PARAMETER_LABEL,
    META_PARAMETER_NODE,
    META_PARAMETER_WORKER,
    META_PARAMETER_FORCE,
    META_PARAMETER_ANSWERS,
    META_PARAMETER_VERBOSE,
    META_PARAMETER_FOR,
    META_PARAMETER_DIGEST,
    META_PARAMETERS,
};

/* Strings are borrowed for the call; NULL: absent. */
struct meta_service_request {
    const char *method;
    const char *path; /* decoded, without the query */
    const char *content_type;
    const char *if_match, *if_none_match;
    const char *parameter[META_PARAMETERS]; /* meta_service_add_parameter() fills these */
    const char *unknown, *repeated;         /* names of parameters that cannot be in there */
    struct meta_shown shown;
    const char *who;  /* for the trail, if it shows no token */
    uint64_t wall_ms; /* since 1970, likewise */
    const void *body;
    size_t body_bytes;
    void *token; /* the caller's, for an answer that comes later; kept until then */
};

/* Adds a query parameter, borrowed too. One that its route does not take, or that comes twice, will
 * be refused. */
void meta_service_add_parameter(struct meta_service_request *request, const char *name,
                                const char *value);

enum { META_SERVICE_LATER = 0 };
struct meta_service_answer {
    int status;               /* or META_SERVICE_LATER: through s->answer(), body is not used */
    const char *content_type; /* a literal */
    char allow[48];           /* value of the Allow header; "": there is none */
    char authenticate[96];    /* and of the WWW-Authenticate header */
    uint64_t revision;        /* of what is shown, for the ETag header; or 0 */
    unsigned retry_after_s;   /* for the Retry-After header; 0: there is none */
    /* Where to record how long the answer took, whenever it comes; NULL: it came later, and where
     * was said then. */
    struct base_latency *took;
    /* Not NULL: the body comes from this, which is the caller's now, and the token is kept. */
    struct meta_watch *watch;
};

/* body is initialised by the caller and is appended to. */
void meta_service_handle(struct meta_service *s, const struct meta_service_request *request,
                         uint64_t now, struct base_text *body, struct meta_service_answer *answer);

/* Answers what was left for later and can be answered now. Call it after meta_service_handle(),
 * after fab_run() and after a job of the store's is done; and after meta_responders_stop(), when
 * everything is answered. */
void meta_service_advance(struct meta_service *s, uint64_t now);

/* The end begins: asks agents nothing more, and refuses changes but those that are with the store,
 * which end by meta_service_advance(); then responders may be stopped. */
void meta_service_stop(struct meta_service *s, uint64_t now);
bool meta_service_is_stopped(const struct meta_service *s);
/* The store does not end: answers who waits for it. What it has stays its own, with what it needs
 * of the service's; after this comes the process' end. */
void meta_service_abandon(struct meta_service *s, uint64_t now);

/* The counters, gauges and histograms, as Prometheus wants them. */
void meta_service_metrics(const struct meta_service *s, struct base_text *out);

#endif
