/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the library share: a session as its worker's thread holds it.
 *
 * One thread at a time. Nothing of the agent's pages is read twice where it matters: geometry is
 * copied at attach; indices of ours are private and only published. */
#ifndef LIBCLIENT_INTERNAL_H
#define LIBCLIENT_INTERNAL_H

#include <kedge_msg.h>

#include <stdbool.h>
#include <stdint.h>

#include "arena_heap.h"
#include "processor.h"
#include "schema/control.h"
#include "schema/session.h"
#include "vqp.h"

enum {
    CLIENT_MAX_ARENAS = 64,
    CLIENT_TIMEOUT_MS = 5000,  /* of an attach, and of a request to the lane */
    CLIENT_SLICE_MS = 100,     /* of a sleep at most: then the socket is looked at */
    CLIENT_PATIENCE_MS = 3000, /* with an agent whose lane does not move, unless told otherwise */
    CLIENT_PATIENCE_LEAST_MS = 20,
};

struct client_arena {
    uint8_t *addr; /* NULL: none with this index, or it is not mapped */
    size_t bytes;
    struct client_heap heap;
    int unmapped; /* of one that is the session's and could not be mapped yet: its descriptor + 1 */
};

struct kedge_mr {
    struct kedge_session *session;
    struct kedge_mr *next, **link; /* in the session's list */
    uint8_t *addr;
    size_t length;
    int access;
    uint32_t arena, vkey;
    uint32_t withdraw_tag; /* of the request that withdraws it */
    int status;            /* gone: what the lane said */
    uint32_t revoked_seen; /* what the session's counter said when it was known to be live */
    bool revoked, withdrawing, gone; /* withdrawing: peers find it no more; gone: it is free */
    bool begun;   /* by kedge_dereg_mrs_begin(): kedge_dereg_mrs_wait() ends its handle */
    bool awaited; /* only within a call: it is one of those that are waited for */
    bool named;   /* it may be published */
    struct client_lent *lent; /* NULL: it is a region of the worker's own */
    uint32_t kind;            /* SCHEMA_REG_FENCED, SCHEMA_REG_LEASE_ONLY or 0 */
    uint8_t secret[16];
};

struct kedge_session {
    /* the hot path */
    struct schema_session_rw *rw;
    const struct schema_session_ro *ro;
    struct schema_sq_desc *sq;
    const struct schema_cqe *cq;
    uint32_t sq_mask, sq_tail, sq_head_seen, cq_mask, cq_head, cq_tail_seen;
    uint32_t sq_published; /* up to here: the ring's tail */
    uint32_t rung_tail;    /* sq_tail when the doorbell was rung last, or behind it */
    uint32_t rung_cq_head; /* cq_head then */
    const uint32_t *alive; /* a word that fork() wipes: 0 in a child */
    struct kedge_vqp *vqps;
    uint32_t free_vqps, dying_vqps, used_vqps; /* lists (index + 1); how many were ever created */
    uint32_t idle;                             /* calls in a row that found nothing */
    struct client_messages *messages; /* receive.h; NULL: nothing was bound nor posted for them */
    struct client_processor processor;
    struct { /* within kedge_wait_many(), which leaves completions where they are */
        uint32_t looked, found; /* up to where it has looked at them; how many there are */
        bool failed;            /* one of these has */
    } many;
    int doorbell;        /* eventfd */
    int ended;           /* 0, or the -errno for ever */
    uint32_t end_reason; /* why: enum schema_reason; NONE: the socket closed */
    uint32_t refusal;    /* of what the agent refused last: enum schema_reason */
    struct client_arena arenas[CLIENT_MAX_ARENAS];
    /* the rest */
    const void *peers;
    uint64_t patience_ns; /* with a lane that does not move; UINT64_MAX: without end */
    struct {
        uint32_t beat;      /* its sign of life when it was last seen to change */
        bool rung;          /* it was asked to wake since then */
        uint64_t looked_ns; /* when this process last looked */
        uint64_t silent_ns; /* how long it has seen the same sign */
    } lane;
    uint64_t rw_bytes, ro_bytes, peers_bytes;
    int socket, channel;       /* channel: kedge_fd(), or -1 */
    uint32_t armed;            /* as rw->armed has it */
    uint64_t message_until_ns; /* connecting, sending it and its answer have so long together */
    uint32_t retry_ms;         /* of an attach that was refused: when to ask again */
    uint32_t message_tag,
        tag; /* of the last message on the socket; of the last request to the lane */
    uint32_t asked[SCHEMA_REPLIES]; /* by place: the tag whose answer was not read yet, or 0 */
    uint32_t asks, imports;         /* of these, that are not 0; of other tenants' regions */
    struct kedge_mr *mrs;
    struct kedge_batch *batches;
    struct kedge_counter *counters;
    uint64_t counter_wanted; /* only in kedge_counter_wait() */
    uint32_t withdrawals;    /* requests of them that are not answered yet */
    struct {                 /* of kedge_session_notices(): what kedge_wait() has returned for */
        bool wanted;         /* it was called: else kedge_wait() returns for completions alone */
        uint32_t drains, revoked, raised;
        bool withdrawn;                       /* or there is nothing to wait for */
        uint32_t revoked_shown, raised_shown; /* what that call has */
    } told;
    uint32_t max_vqps, max_inflight, session, tenant;
    uint32_t features; /* enum schema_control_feature: what its agent knows */
    uint16_t pool;
    uint8_t gid[16];
};

/* ---- error.c: remember this thread's sentence and return status */
int client_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* literal: borrowed for ever. Costs a store. */
int client_fail_text(int status, const char *literal);
/* The sentence "FUNCTION: WHAT is NULL". True. */
bool client_say_null(const char *function, const char *what) __attribute__((cold));
/* Whether an argument that a function needs is missing, which is said: -EINVAL, or what else the
 * function answers then (kedge.h). */
#define client_is_null(argument) ((argument) == NULL && client_say_null(__func__, #argument))
/* The -errno that a session's end for this enum schema_reason is. */
int client_reason_status(uint32_t reason);

/* ---- attach.c */
int client_attach(struct kedge_session *s, const struct kedge_open_attr *attr);
void client_detach(struct kedge_session *s);
/* Sends a message (its header but for type is filled in here) and receives the answer of type
 * want_type and want_bytes; *fd (may be NULL) is the one descriptor that must come with it. */
int client_message(struct kedge_session *s, struct schema_control_header *message, size_t bytes,
                   uint16_t type, void *answer, size_t answer_bytes, uint16_t answer_type, int *fd);
/* Takes fd, and keeps it where the arena cannot be mapped now. */
int client_arena_add(struct kedge_session *s, uint32_t index, uint64_t bytes, int fd);
/* Maps one that could not be. */
int client_arena_map(struct kedge_session *s, uint32_t index);

/* ---- ring.c */
/* 0, -EPERM in a forked child, or why the session ended. Costs three loads. */
int client_usable(struct kedge_session *s);
/* Whether the agent has taken the memory back: then what was read there before this call may be
 * zeros, which say nothing, and client_usable() says why. */
bool client_is_taken_back(const struct kedge_session *s);
/* -EHOSTDOWN while the lane has not moved for as long as the session's patience. It may sleep: it
 * is rung once when half of that time is over. Called at least four times in that time by whoever
 * waits; costs a load and a look at the clock. */
int client_look_at_lane(struct kedge_session *s);
/* As client_usable(), and looks at the socket, which is a system call, and at the lane. */
int client_look_at_socket(struct kedge_session *s);
/* Of a call that found nothing to do: looks at the lane once in some of them, and at the socket
 * once in many. */
int client_idle(struct kedge_session *s);
/* Whether so many slots are free. */
bool client_ring_room(struct kedge_session *s, uint32_t slots);
/* Fills the next slot; there must be room. */
void client_ring_put(struct kedge_session *s, const void *slot);
/* Shows the lane all that was put. */
void client_ring_publish(struct kedge_session *s);
/* Says of VQPs that they are destroyed, as far as there is room. */
void client_ring_bury(struct kedge_session *s);
/* Sleeps on the session's word unless ready(s): until woken, until_ns or the end of a slice.
 * 0: look again. -ETIMEDOUT, -EHOSTDOWN, or why the session ended. */
int client_sleep(struct kedge_session *s, bool (*ready)(struct kedge_session *, uint32_t),
                 uint32_t argument, uint64_t until_ns);
/* Once, for so long at most: as base_futex_wait(), or 0 where it was ready. */
int client_sleep_once(struct kedge_session *s, uint32_t want,
                      bool (*ready)(struct kedge_session *, uint32_t), uint32_t argument,
                      uint64_t most_ns);
/* The same of who is woken for what `want` says (schema/wake.h) and no more. */
int client_sleep_for(struct kedge_session *s, uint32_t want,
                     bool (*ready)(struct kedge_session *, uint32_t), uint32_t argument,
                     uint64_t until_ns);
/* ---- notice.c */
/* Whether there is something that kedge_wait() has not returned for; once it has, it is told. */
bool client_has_notice(struct kedge_session *s);
void client_told(struct kedge_session *s);

/* ---- region.c */
/* The lane has answered the withdrawal with that tag. */
void client_withdrawn(struct kedge_session *s, uint32_t tag, int status);
/* enum schema_record_flag of IBV_ACCESS_REMOTE_*, and the reverse. */
uint32_t client_access_flags(int access);
int client_access_of(uint32_t flags);
/* Whether others may use it: 0; -EINVAL: none ever, or no more; -EACCES: it is known to be revoked.
 */
int client_check_lent(const struct kedge_mr *mr);

/* ---- publish.c */
/* Whether it is a region's name, and the agent knows that of names: 0, or an error that is said. */
int client_check_name(const struct kedge_session *s, const char *name,
                      enum schema_control_feature feature);
/* Takes back the names of a region that is to be given back, if it has any. What fails is not said:
 * the agent sees by itself, a second later at most, that the region is gone. False: it is of no use
 * to try so with others now. */
bool client_unpublish_all(struct kedge_mr *mr);

/* session.c: this host's endpoint, as it is now. */
void client_gid(const struct kedge_session *s, uint8_t gid[16]);

#endif
