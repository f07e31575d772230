/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator might look for among the settings (config.c) and does not find there, in one
 * place: each is right for every host that we know of, follows from another, or is what the tests
 * stand for. kedge-agent.conf(5) names those that users notice. Constants of one file's own working
 * stay in that file. */
#ifndef CONTROL_BOUNDS_H
#define CONTROL_BOUNDS_H

#include "control/waiting.h"
#include "schema/session.h"

enum {
    /* One session, beside `sq_slots`, `cq_slots`, `max_vqps`, `max_inflight` and the tenant's
     * quotas. Arenas: LANE_SESSION_MAX_ARENAS. */
    MRS_PER_SESSION = 256,
    MAX_GRANTS = SCHEMA_SESSION_IMPORTS,
    GUESS_BUDGET = 64,     /* wrong remote keys before it ends */
    MESSAGES_PER_S = 200,  /* on the attach socket before it ends: the rings are for more */
    CHANNELS_IN_ALL = 8,   /* completion channels of a session, one after the other */
    ATTACH_MS = 5000,      /* from connecting to attaching; libkedge waits as long */
    WAIT_MS = 4000,        /* in the queue for a session */
    HEARS_MS = 1000,       /* before libkedge gives it up: a worker that waits there hears so */
    MAKING_AT_ONCE = 8,    /* sessions and arenas, while workers wait for them */
    WRONG_TOKEN_MS = 1000, /* until a token that no tenant has is refused */

    /* The lane, beside `max_peers` and `max_mrs`. */
    MR_CACHE = 4096,        /* remote regions known at one time */
    BATCH_MIB = 32,         /* for batches, of all tenants: 100,000 descriptors take 3.1 */
    SQ_DEPTH = 256,         /* send slots of each DC initiator: `dcis` and `spares` say how many */
    CUT_LEAST = 256 << 10,  /* of a longer READ or WRITE so much goes at a time, or */
    CUT_MOST = 1 << 20,     /* what the port carries in 0.1 ms, if that is more, up to this */
    RC_SQ_DEPTH = 128,      /* send slots of each connection: `connections` says how many */
    SUSPECT_TIMEOUTS = 2,   /* as long as so many of the device's, an endpoint that owes an answer
                             * may be silent before it gets the probing DCI alone: one packet of a
                             * living one may be lost, and its repetition too */
    SILENT_US = 50,         /* a session that has nothing for so long is polled no more, until its
                             * doorbell is rung: about what a wake-up costs */
    SILENT_BUSY_MS = 1000,  /* where the lane polls in any case */
    LOOKUP_TIMEOUT_MS = 50, /* of all metaservers together, at least: as long as a READ is
                             * repeated */
    LOOKUP_HEDGE_MS = 20,   /* a metaserver that is silent for so long: the next one is asked too */
    LOOKUP_AWAITED_MS = 4000, /* for an endpoint whose agent a metaserver awaits: less than a worker
                               * waits for an answer */
    NODE_BELIEVED_S = 10,     /* an endpoint's record, before it is READ again */
    ACK_RETRIES = 7,          /* with `ack_timeout` the bound that `mr_lease` must exceed */
    RNR_RETRIES = 7,          /* for ever: receivers that are not ready are slow, not dead */

    /* Messages of a pool, beside `receives`: places of its lane, of whichever tenants. */
    MESSAGE_VQPS = 8192,   /* that send or hear some, ports, and streams that are heard */
    MESSAGE_PEERS = 4096,  /* endpoints with which some are exchanged */
    MESSAGE_ASK_MS = 2,    /* for a word that does not come, at least */
    MESSAGE_QUESTIONS = 6, /* so often at least, since datagrams are lost, each time doubled */
    MESSAGE_QUESTIONS_MOST = 9,
    MESSAGE_SILENCE_MS = 2000, /* for so long at least, until the peer is gone */
    MESSAGE_REFUSED_MS = 1000, /* a receiver may have no buffer for so long, at least */

    /* Connections to other nodes, with rc. */
    HANDSHAKES = 32,          /* under way at a time; more wait */
    READDRESS_MIN_MS = 2000,  /* the first try of what the device refuses for another address */
    READDRESS_MAX_MS = 16000, /* its tries, doubled each time from that, are no further apart */
    CLOCK_LOOK_MS = 50,       /* this host's clock beside others, while there are workers: what a
                               * machine that was stopped may do until somebody has looked */
    PATH_PATIENCE_MS = 500,   /* what is posted waits for a connection, at least */
    REPAIR_AGAIN_MS = 1000,   /* until a queue pair that could not be repaired is tried again */
    REPAIR_REST_MS = 100,     /* of messages' UD queue pair, until it is repaired once more */
    REPAIRS_TRIED = 3,        /* so often it is tried, until it is given up for a new one */
    REPAIR_SILENT_MS = 5000,  /* so long the device may say nothing of it until then */
    HANDSHAKE_RETRY_MS = 20,  /* a message is repeated, doubled each time up to 320 ms */
    HANDSHAKE_SILENT_S = 2,   /* a node that says nothing for so long cannot be connected to */
    RESPONDER_IDLE_S = 60,    /* after which an initiator is asked whether it is still there */
    RESPONDER_DRAIN_MS = 100, /* a lane that is away for longer loses a receive, not a message */

    /* Metaservers. How often a registration is renewed follows from their node_lease. */
    BACKOFF_MS = 100, /* of a registration that failed, doubled each time */
    BACKOFF_MAX_MS = 5000,
    /* The backoff of what was not answered in time: a metaserver that answers late has to get less
     * to do. It grows to a third of the lease, or to the second for streams and while no lease is
     * known. */
    LATE_MS = 2000,
    LATE_MAX_MS = 10000,
    LATE_CALL_MS = 30000,   /* how long a registration waits for its answer after a late one, at
                             * most: one that is given up has to be asked for again */
    RETRY_AFTER_MAX_S = 60, /* a metaserver that says later is asked all the same */
    /* A pool that no metaserver has is put at one of them first (register_turn.c). Others wait: */
    TURN_MS = 5000,          /* while the first has not answered */
    TURN_NEXT_MS = 1000,     /* the same, for each that comes after one that says nothing */
    TURN_FAILING_MS = 250,   /* the same, if its last try has failed */
    TURN_PUT_OFF_MS = 10000, /* at most, for one that is busy and has said when to come again */
    TURN_HEARD_MS = 300,     /* once to twice so long after its yes, so that its store tells them */
    CALL_MS = 10000,         /* one HTTP call: many register at once when a rack comes up */
    RESOLVE_MS = 4000,       /* a name, all metaservers together; libkedge waits 5 s */
    /* A renewal that comes before its time, since the metaserver may have been started again: many
     * agents may think so at once, so each comes at a moment of its own within the first, and not
     * before the second is over again. */
    LOOK_SOON_MS = 250,
    LOOK_AGAIN_MS = 1000,
    RENEW_SOON_MS = 15000, /* likewise, of a renewal that a metaserver asks many agents for, within
                            * a quarter of the lease; each line of its stream is heeded after the
                            * second has passed since the last renewal */
    RESOLVE_AGAIN_MS = 3000,   /* a metaserver's address, while it is not reached */
    STREAM_SILENCE_MS = 15000, /* several of the metaserver's empty lines: its stream is dead */

    /* The process. */
    ENDED_MS = 5000,         /* an agent that was killed, and has its state directory still */
    GRACE_MS = 500,          /* unregistering, all metaservers together, when it ends */
    TOLD_MS = 500,           /* until every worker was told that it ends */
    TICK_MS = 20,            /* what is due (due.h) is looked at no more often than that */
    QUIET_MS = 500,          /* what is kept ready is filled up when nobody has attached for so
                              * long */
    SHED_AT_ONCE = 16,       /* of what is kept ready and is to be no more, in each of those */
    ARENAS_AFTER_MS = 250,   /* when none could be made ahead, the next one is tried so late */
    MORE_ARENAS = 4,         /* beside its first one, so many times max_sessions of all sessions */
    FDS_PER_SESSION = 21,    /* LimitNOFILE must have room for max_sessions of these (rings, arena,
                              * socket, process, completion channel, those arenas, what holds the
                              * pages of each, and a tenth of all that lingers) */
    FDS_PER_WAITING = 2,     /* likewise for WAITING_ALL_OF(max_sessions) of these */
    FDS_BESIDE = 1536,       /* likewise for these */
    BACKLOG = 1024,          /* workers that wait to be accepted */
    CLOSING_STRANGERS = 512, /* refused connections of all listeners, with descriptors, that wait to
                              * be closed: in equal parts */
    CLOSING_LEAST = 8,       /* the least that such a part is */
    CLOSERS = 128,           /* processes that close them */
    CLOSERS_OF_UID = 32,     /* of these, of one uid */
    CLOSER_NEXT_MS = 100,    /* the last of a uid takes longer: another one begins */
    CLOSER_LEFT_MS = 1000,   /* one takes longer: it is left behind, and its uid refused */
    CLOSER_QUEUE_OF_UID = 64, /* of a uid, that wait: with more it is refused too */
    CLOSER_REFUSED = 128,     /* uids at a time */
    ADMIN_CONNECTIONS = 64,   /* on the admin socket */

    /* The log: what workers or metaservers bring about must not fill it. */
    FAULTS_LOGGED = 20, /* sessions that the agent ended, in FAULTS_LOGGED_S */
    FAULTS_LOGGED_S = 10,
    LOSS_LOGGED_S = 60, /* other reasons why a metaserver is lost: in this time, so many */
    LOSSES_LOGGED = 4,
    REGISTRATIONS_LOGGED = 8, /* and so often that it is registered */
    TOKENS_LOGGED = 5,        /* wrong tokens, in TOKENS_LOGGED_S */
    TOKENS_LOGGED_S = 10,
    CROWD_LOGGED_S = 10,     /* connections that made room, or found none */
    STRANGERS_LOGGED_S = 10, /* uids that are kept out */
    STRANGERS_LOGGED = 4,    /* of them in that time */
    COSTLY_LOGGED_S = 10,    /* workers that make calls on their sockets long */
    COSTLY_LOGGED = 4,
    UNREAD_LOGGED_S = 10, /* workers do not read what they were sent */
    PAUSE_LOGGED_S = 10,  /* no descriptor for one more worker */
    FENCES_LOGGED_S = 60, /* the device cannot say that remote operations are over */
    UNHELD_LOGGED_S = 60, /* rings that are lent though their pages are not held */
    ARENAS_LOGGED_S = 60, /* none can be made ahead */
    FENCED_LOGGED_S = 60, /* the device takes no registration for a fenced region */
};

/* Half of what the kernel lets a process with so many descriptors have sent and unread, so that
 * what workers of a former life have not read leaves as much: a restart finds room. */
#define UNREAD_OF(max_sessions) (FDS_OF(max_sessions) / 2)

#define MORE_ARENAS_OF(max_sessions) (MORE_ARENAS * (max_sessions))

/* What this comes to is also said in kedge-agent.conf(5), the unit and ctl/checks.h, which
 * unit.agent.daemon.config_file holds against it. */
#define FDS_OF(max_sessions)                                                                       \
    (FDS_PER_SESSION * (max_sessions) + FDS_PER_WAITING * WAITING_ALL_OF(max_sessions) + FDS_BESIDE)

#endif
