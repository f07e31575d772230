/* SPDX-License-Identifier: Apache-2.0 */
/* What the control side asks of a lane, and what comes with it (agent/lane.h). Ownership of what a
 * command carries passes to the lane until the event that answers it. */
#ifndef AGENT_LANE_COMMAND_H
#define AGENT_LANE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane_config.h"
#include "agent/lane_metaserver.h"
#include "agent/lane_session.h"
#include "schema/table.h"

/* How to reach an endpoint: an address handle with DC, a connection with rc. */
struct lane_path {
    struct fab_ah *ah;
    struct fab_qp *qp;
};

enum lane_command_kind {
    LANE_COMMAND_SESSION_ADD = 1,
    LANE_COMMAND_SESSION_END, /* -> SESSION_OVER when drained, withdrawn and the lease is over */
    LANE_COMMAND_ARENA_ADD,   /* -> ARENA_ADDED */
    /* A session's requests are carried out by another lane of its pool, and come back. Between
     * SESSION_LEAVE and SESSION_BACK this lane hears of its regions, and of nothing else of it. */
    LANE_COMMAND_SESSION_LEAVE, /* -> SESSION_LEFT */
    LANE_COMMAND_SESSION_BACK,  /* after a SESSION_LEFT that was 0 */
    LANE_COMMAND_LODGER_ADD,    /* `add`, whose id is below LANE_LODGERS and not in use, is another
                                 * lane's session -> LODGER_LEFT, at any time */
    LANE_COMMAND_LODGER_RETURN, /* that lodger is wanted where it came from; hurry: nobody sees any
                                 * more how what it has posted ends. One that has left is let be */
    LANE_COMMAND_PATH_READY,    /* answers WANT_PATH; path empty: status says why */
    LANE_COMMAND_QP_READY, /* answers QP_BROKEN: a DCI in RTS for the spares, or one more: ready */
    LANE_COMMAND_SPARE_DROP, /* one spare less -> SPARE_DROPPED */
    /* One that the lane does not have, or has given back, each of the next four leaves alone. */
    LANE_COMMAND_QP_FATAL,     /* this queue pair was found in ERR after everything that the control
                                * side has told of it before: so said of its present life */
    LANE_COMMAND_QP_REBUILD,   /* this DCI is to be brought up anew: nothing more is posted on it,
                                * and QP_BROKEN follows when what is out has come back */
    LANE_COMMAND_QP_RETIRE,    /* rc: the other end of this connection broke: nothing more is posted
                                * on it, and QP_RETIRED and QP_BROKEN follow */
    LANE_COMMAND_QP_GONE,      /* this DCI, of which QP_BROKEN was said and QP_READY was not, does
                                * not come back: the QP_READY of another may follow */
    LANE_COMMAND_QP_DESTROYED, /* this queue pair, of which QP_OVERDUE or QP_RETIRED was said and
                                * which the device did not put to ERR, is destroyed: what is out on
                                * it ends now. QP_BROKEN follows, or was said before; with DC it
                                * does not come back, as after QP_GONE */
    LANE_COMMAND_FENCED,       /* answers WANT_FENCE: session and tag */
    LANE_COMMAND_REVOKE,       /* the operator withdraws a session's regions -> REVOKED */
    LANE_COMMAND_ARENA_REREGISTER, /* an arena has another registration -> ARENA_REREGISTERED */
    LANE_COMMAND_FORCE_LATE,  /* after a REVOKE by force: that takes long. A REG_MR that waits for
                               * another registration is refused; the next one waits again */
    LANE_COMMAND_FORCE_OVER,  /* after a REVOKE by force: none of its arenas gets another
                               * registration any more */
    LANE_COMMAND_MR_READY,    /* answers WANT_MR: status, and why not: reason */
    LANE_COMMAND_MR_GONE,     /* answers WANT_DEREG: no device reaches it any more. Neither is said
                               * of a session whose SESSION_OVER was taken */
    LANE_COMMAND_METASERVERS, /* replaces the list, nearest first */
    LANE_COMMAND_READDRESS,   /* this node's address is another: whatever was made with the former
                               * is given back, and asked for anew -> READDRESSED */
    LANE_COMMAND_WINDOW, /* changes how much may be in flight from now on; none is set before */
    LANE_COMMAND_WINDOW_POLICY, /* how sizes are found beside what is set, from now on */
    LANE_COMMAND_AH_READY,      /* answers WANT_AH; NULL: it could not be made */
    LANE_COMMAND_NUMBER,        /* an answer to WANT_NUMBER, perhaps a late one */
    LANE_COMMAND_UD_READY,      /* answers UD_BROKEN: qp, in RTS and with no receive posted */
    LANE_COMMAND_RELAY,         /* READ that for another lane -> RELAYED; LANE_RELAYS at a time */
    LANE_COMMAND_RELAY_DONE,    /* answers WANT_RELAY */
    LANE_COMMAND_PROVE, /* one READ, to see whether one is reached -> PROVED; one at a time */
};

/* What a window is of; each request is in one of each. */
enum lane_window_scope {
    LANE_WINDOW_DEVICE,
    LANE_WINDOW_DESTINATION, /* an endpoint */
    LANE_WINDOW_TENANT,
};
enum { LANE_WINDOW_SCOPES = 3 };

#define LANE_PROVE_ENDPOINT UINT32_MAX /* PROVE of an endpoint, and not of a metaserver */

struct lane_command {
    enum lane_command_kind kind;
    uint32_t session;
    uint8_t *touch; /* SESSION_ADD, ARENA_ADD: where the lane may write to that arena what messages
                     * bring, at which nobody can keep it waiting (fab_mem.whole); or NULL */
    union {
        struct lane_session add;
        uint32_t reason; /* SESSION_END: enum schema_reason */
        bool hurry;      /* LODGER_RETURN */
        struct lane_arena arena;
        struct {
            uint32_t flow;
            struct lane_path path;
            int status;
        } path;
        struct {
            uint32_t tag;
            struct fab_ah *ah; /* the lane's, until DROP_PATH or lane_take_ah() */
        } ah;
        struct {
            uint8_t gid[16];
            uint32_t incarnation, qpn, qkey; /* qpn 0: it carries no messages */
        } number;
        struct fab_qp *qp;
        struct {
            struct fab_qp *qp;
            enum ibv_mtu most; /* as of QP_BROKEN; 0 of one that is new */
        } ready;
        uint32_t tag;
        struct {
            uint32_t tag;    /* in the answer again */
            uint32_t number; /* of a lease; 0: all in `arenas`, and `own` */
            uint32_t arenas; /* bit i: number i */
            bool own;   /* and all with registrations of their own, which `arenas` leaves out */
            bool force; /* of these the registration goes at once. For each of `arenas` an
                         * ARENA_REREGISTER follows, or FORCE_OVER for all; until then REG_MRs
                         * there, for regions without a registration of their own, wait */
        } revoke;
        struct {
            uint32_t tag; /* of the event */
            uint32_t rkey;
            uint64_t iova;   /* of the region's first byte */
            uint32_t reason; /* enum schema_reason, with status */
            int status;
        } mr;
        struct {
            uint32_t tag; /* in the answer again */
            uint32_t number, lkey, rkey;
            uint64_t iova;
        } reregister;
        struct {
            enum lane_window_scope scope;
            uint32_t tenant; /* TENANT: its slot */
            uint8_t gid[16]; /* DESTINATION: this one's own, beside the one of each, the narrower
                              * of both holds; at most LANE_MAX_DESTINATIONS at a time.
                              * All zero: the one of each */
            uint64_t bytes, ops; /* 0: no limit */
            bool anew; /* TENANT: the slot is for another one now; nothing is in flight of it */
        } window;
        enum lane_window_policy window_policy;
        struct lane_relay relay;
        struct {
            uint32_t tag;
            int status; /* enum ibv_wc_status; -EAGAIN: there was no room for it; -ENOTCONN: the
                         * first lane does not reach that table either */
        } relayed;
        struct {
            uint8_t gid[16];
            uint32_t incarnation;
            /* NULL: peers know the node by the same name. Else that is another one, which tells
             * another place for the MR table: this one, empty, registered and borrowed as the
             * first; regions go over to it with their keys. */
            struct schema_table *mr_table;
        } readdress;
        struct {
            uint32_t count;
            struct lane_metaserver at[LANE_MAX_METASERVERS];
        } metaservers;
        struct {
            uint32_t tag;        /* in the answer again */
            uint32_t metaserver; /* its number, or LANE_PROVE_ENDPOINT: that of gid */
            uint8_t gid[16];     /* of the lane's pool */
            uint64_t fresh_ns;   /* what has answered to others' requests within that is proven */
        } prove;
    };
};

#endif
