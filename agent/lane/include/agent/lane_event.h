/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane tells the control side (agent/lane.h). */
#ifndef AGENT_LANE_EVENT_H
#define AGENT_LANE_EVENT_H

#include "agent/lane_command.h"

enum lane_event_kind {
    LANE_EVENT_SESSION_OVER = 1, /* session: nothing of it is in flight or believed any more;
                                  * exported tells whether peers ever had a key to its arenas */
    LANE_EVENT_SESSION_FAULT,    /* the lane has ended it (reason); the control side closes the
                                  * socket; SESSION_OVER    follows without a command */
    LANE_EVENT_SESSION_LEFT,     /* status: 0: nothing of it is here, and another lane may have it;
                                  * -EBUSY: it has what does not go to another lane; -EAGAIN: it was
                                  * not done in time; -ECANCELED: it ends. Then it stays */
    LANE_EVENT_LODGER_LEFT,      /* status: 0; -EAGAIN: it did not come in, since an endpoint is not
                                  * known yet here. SESSION_BACK is to follow where it came from */
    LANE_EVENT_ARENA_ADDED,      /* arena: its number, or status */
    LANE_EVENT_WANT_PATH,        /* make one to gid in pd, answer PATH_READY with the same flow */
    LANE_EVENT_WANT_AH,     /* of messages: an address handle to gid, in pd; answer AH_READY with
                             * the same tag */
    LANE_EVENT_WANT_NUMBER, /* of messages: ask there where its lane hears datagrams, once. A
                             * NUMBER follows if it answers */
    LANE_EVENT_DROP_PATH,   /* path: no longer used: destroy it, disconnect it */
    LANE_EVENT_WANT_FENCE,  /* fence the registration with that rkey, answer FENCED */
    LANE_EVENT_REVOKED,     /* no peer finds those regions any more; what believes them ends
                             * with the lease. -ENOENT: there is no such session or lease */
    LANE_EVENT_ARENA_REREGISTERED, /* nothing here uses the former registration any more: deregister
                                    * it, answer FENCED with fence_tag. -ENOENT: the session is
                                    * gone; -EBUSY: one of an arena at a time */
    LANE_EVENT_WANT_MR,            /* register that part of an arena for remote access, answer
                                    * MR_READY. At SESSION_OVER all that a session has goes, before
                                    * its arenas do: nothing is asked for any more */
    LANE_EVENT_WANT_DEREG,         /* deregister what such an answer brought, answer MR_GONE */
    LANE_EVENT_QP_OVERDUE,         /* qp: bring it to ERR at once, or else destroy it and say
                                    * QP_DESTROYED. QP_BROKEN follows */
    LANE_EVENT_QP_RETIRED,         /* the same of one that is in order, and of no use any more */
    LANE_EVENT_SPARE_DROPPED,      /* qp: no longer used: destroy it; NULL: none is left to drop */
    LANE_EVENT_READDRESSED, /* the former MR table is empty, and used no more. reason: regions
                             * for whose keys the new one had no room, which no peer finds */
    LANE_EVENT_TENANT_QUARANTINED, /* apart: whose requests have broken queue pairs under those of
                                    * others again and again, and have some of their own from now
                                    * on; or have so no more */
    LANE_EVENT_PROVED,             /* proved: 0: it answers; -ETIMEDOUT: it does not; -EHOSTUNREACH:
                                    * no path could be made to it; -EREMOTEIO: it refused; -EIO: the
                                    * own device did; -ENOENT: the metaservers know it no more, or
                                    * the lane knows no such metaserver; -EAGAIN: it could not be
                                    * tried now */
    LANE_EVENT_QP_BROKEN,          /* broken: with DC reset and bring back to RTS with an MTU of
                                    * `most` at most, answer QP_READY;
                                    * with rc the lane is done with that connection */
    LANE_EVENT_WANT_RELAY,         /* of a metaserver that is `relayed`: have the first lane READ
                                    * that, answer RELAY_DONE with the same tag */
    LANE_EVENT_RELAYED,            /* the first lane has, or cannot */
    LANE_EVENT_UD_BROKEN,          /* qp: the queue pair of messages' datagrams is in ERR, or sends
                                    * no more: bring it back to RTS, or make another one, and
                                    * answer UD_READY. All that it had is back, or of no use */
};

/* In `posted` each request counts so much beside its bytes: no fewer than it can use of packets, of
 * the largest MTU, beyond those that its bytes fill: the last one, which it may not fill, and with
 * DC what ends a connection and what begins one. The lane's own READs, which are no longer than
 * that, count for nothing else. */
enum { LANE_POST_BYTES = 3 * 4096 };

struct lane_event {
    enum lane_event_kind kind;
    uint32_t session;
    union {
        uint32_t reason;
        int status; /* SESSION_LEFT, LODGER_LEFT */
        struct {
            uint32_t number;
            int status;
        } arena;
        struct {
            uint32_t flow, incarnation;
            uint8_t gid[16];
            uint32_t ud_qpn, ud_qkey; /* rc */
            enum ibv_mtu mtu;         /* of its DC target, by its record: what that answers with */
            uint16_t lid;
            bool rc; /* a connection; else an address handle */
        } want_path;
        struct {
            uint32_t tag;
            uint8_t gid[16];
            uint16_t lid;
        } want_ah;
        struct {
            uint32_t incarnation;
            uint8_t gid[16];
            uint32_t ud_qpn, ud_qkey; /* where it answers handshakes */
            uint16_t lid;
        } want_number;
        struct {
            uint32_t rkey, tag;
            uint32_t arena; /* WANT_DEREG: its number */
        } fence;
        struct {
            uint32_t tag;
            uint32_t arena;  /* its number */
            uint32_t access; /* enum schema_record_flag */
            bool fenced;
            uint64_t offset, length;
        } want_mr;
        struct {
            uint32_t tag;
            int status;
            uint32_t taken;     /* leases that were live until now */
            uint32_t fence_tag; /* RENEWED */
            uint32_t last; /* RENEWED: leases in that arena with larger numbers have the new one */
        } answer;
        struct {
            uint32_t tag;
            int status;
        } proved;
        struct {
            uint64_t addr, generation;
            uint32_t rkey, bytes;
            uint32_t place; /* of LANE_SCRATCH_BYTES, in the lane's scratch memory */
            uint32_t tag;
            uint8_t metaserver; /* its number */
        } want_relay;
        struct {
            uint32_t tag;
            uint8_t lane;
            int status; /* as of RELAY_DONE */
        } relayed;
        struct lane_path path;
        struct fab_qp *qp;
        struct {
            struct fab_qp *qp;
            uint64_t posted;   /* since it was ready: bytes, and LANE_POST_BYTES for each request */
            enum ibv_mtu most; /* DC; 0: as large as the pool's */
        } broken;
        struct {
            uint32_t tenant; /* slot */
            bool begins;
            bool named; /* else it is so with several tenants, of whom one has broken them */
        } quarantined;
    };
};

#endif
