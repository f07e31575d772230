/* SPDX-License-Identifier: Apache-2.0 */
/* What is around the pools, as its files share it. Control thread. */
#ifndef CONTROL_AGENT_H
#define CONTROL_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/text.h"
#include "clock_watch.h"
#include "control/address.h"
#include "control/config.h"
#include "control/strangers.h"
#include "control/tenants.h"
#include "control/tenant_queue.h"
#include "control/unread.h"
#include "control/waiting.h"
#include "control/work.h"
#include "control/world.h"
#include "dedicated_mrs.h"
#include "fabric/fabric.h"
#include "fabric/iova.h"
#include "fabric/port.h"
#include "follow.h"
#include "names.h"
#include "node.h"
#include "pool.h"
#include "pools.h"
#include "proofs.h"
#include "publications.h"
#include "query_streams.h"
#include "quotas.h"
#include "sessions.h"

struct agent;
struct agent_query;
struct connection;
struct fab;
struct pool;
struct qp_question;
struct worker_events;
struct world;

/* agent.c. Whoever runs the world calls it whenever something has happened, before it waits again:
 * then the next tick, in which all is looked at that is looked at now and then, comes when the
 * first of that is due (due.h), and none comes if nothing is. */
void agent_turned(struct agent *a);
/* Ticks come from now on; and no more, before the loop's end. */
void agent_begin_ticks(struct agent *a);
void agent_end_ticks(struct agent *a);
/* When something is due; DUE_NEVER: nothing is. */
uint64_t agent_due_ns(const struct agent *a);
/* What a tick does: nothing that is not due. */
void agent_tick(struct agent *a);
/* The fabric has control operations that are done. */
void agent_run_fabric(struct agent *a);

struct agent {
    struct agent_config config;
    const char *config_path; /* NULL: there is none */
    struct world *world;
    uint32_t incarnation;
    uint32_t min_incarnation; /* ours must exceed it; 0: any will do */
    uint32_t superseded_by;   /* one that a metaserver knows, and ours does not exceed; 0: none */
    uint32_t restarted_for_mask; /* bit i: metaserver i has made this agent begin anew */
    bool stopping, terminated, device_lost;
    struct address address; /* as the device says */
    bool address_asked;     /* address_ctl is under way */
    bool address_waits;     /* another one was seen, for which the disk has kept no incarnation */
    struct fab_ctl address_ctl;
    uint64_t address_due_ns, address_news; /* when it is again; changes so far */
    bool retarget_wanted;                  /* DC targets are to be made anew at the next tick */
    uint32_t readdressing; /* pools for which something is being made for the present address, and
                            * whoever begins that for all: nothing is put meanwhile (register.c) */
    bool readdressed;      /* something was made of which metaservers have not heard */
    struct clock_watch clock;
    uint64_t qp_events;            /* queue pairs that the device said are in ERR */
    struct qp_question *questions; /* device_events.c: about those, under way */
    uint64_t started_ns;
    struct world_timer tick;
    uint64_t ticked_ns; /* last; 0: never */
    struct fab *fab;
    struct fab_port_watch port; /* of fab */
    uint32_t undestroyed_told;  /* of fab->undestroyed, in the log */
    struct base_log_limit undestroyed_log;
    uint64_t numbers_gone_ns; /* when a queue pair last went, whose number any other may get */
    struct fab_iova iova;     /* of all pools' registrations that peers reach */
    bool rc;                  /* the transport; else DC */
    bool hybrid;              /* with connections beside it */
    /* pool.c */
    struct pool *pools[POOLS]; /* the first one is the own */
    struct {
        uint32_t count;
        struct desired_pool at[AGENT_POOLS];
        uint32_t others; /* that this node has not */
        struct agent_pool_config other[AGENT_POOLS];
    } desired;
    uint8_t had[(UINT16_MAX + 1) / 8]; /* bit i: number i has had a pool in this life */
    uint32_t newest_incarnation;       /* of those that were drawn in this life; 0: none */
    struct {
        uint32_t last; /* life.c: up to there they are this life's on the disk too */
        struct world_task task;
        bool is_under_way; /* the task: more of them are being kept */
    } kept;
    uint32_t unused; /* the latest incarnation, of a pool that could not be made; 0: none */
    /* register.c */
    bool registering;       /* pools that are made do so too */
    bool was_registered;    /* some metaserver has had the node in this life */
    bool token_is_open;     /* others may read token_file, which was said */
    int64_t tls_expires_s;  /* of the certificate that it shows, since 1970: the world's; 0: none */
    uint32_t endpoints;     /* how often the node's have changed */
    uint32_t unregistering; /* metaservers that have not answered yet */
    uint64_t arenas_coming; /* bytes of those that are being made */
    struct host_memory {
        uint64_t most, read_ns; /* 0: not read yet */
        bool of_group;
    } host_memory;
    struct names names; /* that workers ask for */
    struct publications publications;
    /* sessions.c, leases.c */
    struct agent_tenants tenants;
    uint32_t serial;  /* of the worker that attached last; from a random number on, so that an id of
                       * before a restart is nobody's */
    uint64_t refused; /* workers */
    uint64_t deferred;          /* of them, those that were told to come again later */
    struct session_counts gone; /* of pools that are no more: what is counted for ever */
    struct quota_counts quotas_before[AGENT_TENANT_SLOTS]; /* likewise */
    struct quota_used of_sessions[AGENT_TENANT_SLOTS]; /* agent_quotas_note(): what they count */
    uint32_t unmade;                                   /* sessions, since memory was reclaimed */
    uint64_t reclaimed_ns;
    struct world_task reclaim;
    bool reclaiming;
    struct fenced_counts fenced;
    struct tenant_queue mr_queue; /* mr_ops.c */
    /* follow.c, node.c */
    struct follow follow;
    struct node_state node;
    struct proofs proofs;
    /* agent_query.c, query_streams.c */
    struct query_stream query_stream[AGENT_METASERVERS];
    struct {
        struct agent_query *list;
        uint32_t count, of[AGENT_METASERVERS];
        uint64_t questions, unanswered;
    } asked;
    /* attach.c */
    struct base_log_limit watch_limit, token_limit, crowd_limit;
    uint64_t wrong_tokens;
    const struct worker_events *worker_events; /* of all sessions: attach.c hears them */
    struct connection *connections;
    uint32_t connections_of[AGENT_TENANT_SLOTS]; /* agent_connection_note() */
    struct waiting waiting;
    struct unread unread; /* attach_unread.c */
    uint64_t crowded;     /* connections that made room, or found none */
    struct strangers strangers;
    struct world_timer strangers_timer; /* until all of them are let in again */
    struct base_log_limit strangers_limit;
    uint64_t costly; /* connections that made this thread's calls on them long */
    struct base_log_limit costly_limit;
    /* admin.c */
    struct base_text answer;
};

#endif
