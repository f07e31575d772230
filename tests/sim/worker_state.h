/* SPDX-License-Identifier: Apache-2.0 */
/* What there is of a simulated worker. Private to worker_*.c. */
#ifndef SIM_WORKER_STATE_H
#define SIM_WORKER_STATE_H

#include "internal.h"
#include "ledger.h"
#include "worker_messages.h"
#include "worker_process.h"

enum {
    TARGETS = 2, /* regions of others that it uses at a time */
    BURST_MOST = 20,
    WORKER_HANG_S = 120,       /* so long no request may be out, whatever happens */
    WORKER_BATCH_BYTES = 3072, /* of its slot, in which a batch is */
    WORKER_BATCH_PARTS = 640,
    NAMES = 3 /* that all workers of a tenant contend for, for themselves and for another one */
};

/* BATCH: of all that is there; LOOK: a READ of what a batch has left, whatever it is. */
enum request_kind { REQUEST_READ, REQUEST_WRITE, REQUEST_ADD, REQUEST_BATCH, REQUEST_LOOK };

struct request {
    enum request_kind kind;
    uint64_t wr_id, counter;
    uint32_t bytes, offset;            /* of its buffer, in the worker's */
    uint32_t at;                       /* its first byte in the slot */
    bool outlived;                     /* posted behind a success, with a later life of the peer */
    bool quiet;                        /* it has no completion, unless it fails */
    bool never_sent;                   /* it failed, and was not carried out at all */
    uint8_t expected[PLAY_SLOT_BYTES]; /* what is there when it is carried out */
};

struct target {
    struct play_slot *slot; /* NULL: this one is not in use */
    struct kedge_vqp *q;
    struct kedge_remote remote;
};

struct batch_part {
    uint32_t at, bytes; /* in the slot */
    bool writes;
};

/* The last one that was prepared. */
struct worker_batch {
    struct kedge_batch *batch; /* NULL: there is none */
    uint64_t region;
    uint32_t slot;
    uint32_t at; /* while it is out: it is that request of the burst */
    bool asked_to_end, cancelled;
    bool mirrored; /* what comes first there is last in its own memory */
    uint32_t parts;
    struct batch_part part[WORKER_BATCH_PARTS];
};

struct play_worker {
    struct play_process *process;
    struct play_worker_settings settings;
    struct play_worker_counts count;
    struct base_prng random;
    bool told_to_stop;
    struct kedge_session *session;
    void *arena[CLIENT_MAX_ARENAS]; /* that the ledger has */
    struct play_region *region;     /* NULL: it lends none */
    uint8_t *memory;                /* for it */
    struct kedge_mr *mr;
    bool named[NAMES][2]; /* the region has that name; for another tenant */
    uint8_t *buffers;
    uint32_t lkey;
    struct target target[TARGETS];
    struct request request[BURST_MOST];
    struct worker_batch batch;
    struct worker_mail mail;
    struct worker_lists lists;
    struct worker_imports imports;
    struct target *busy;           /* whose requests are out */
    uint32_t posted, done, filled; /* filled: bytes of buffers that this burst has taken */
    bool broken;                   /* one of them has failed: so do those behind it */
    uint64_t last_id;
    uint64_t lend_ns;   /* not before that */
    uint64_t paused_ns; /* when it last began a pause, and had posted so many: */
    uint64_t paused_posted;
    int64_t credit_ns; /* so long it has posted too little for, or too much */
    uint32_t run;      /* turns that are left of a fast run */
    bool pauses, called;
};

/* worker_pause.c. Between two turns, until it is called or told to stop. */
void play_worker_pause(struct play_worker *w);
/* worker_names.c. Publishes, takes back or looks up a name, whichever. */
void play_worker_do_name(struct play_worker *w);
/* Its region goes: all its names are to go. */
void play_worker_forsake_names(struct play_worker *w);
/* worker_batches.c. Posts a batch there, with what is to be before and behind it, and awaits all.
 */
void play_worker_do_batch(struct play_worker *w, struct target *t);
/* That request of its burst, a batch, has ended well; that one has seen what it left. */
void play_worker_judge_batch(struct play_worker *w, const struct request *r);
void play_worker_judge_look(struct play_worker *w, const struct request *look);
/* It has not. True: since it was cancelled, after which its queue pair goes on. */
bool play_worker_batch_failed(struct play_worker *w, const struct ibv_wc *wc);
/* worker_process.c. Whether it goes on, and else closes the session. */
bool play_worker_survives(struct play_worker *w, int status);
/* Sleeps for a second at most, by futex or by descriptor: as kedge_wait(). */
int play_worker_wait(struct play_worker *w);
/* It has got memory: the ledger hears of it. */
void play_worker_note_arenas(struct play_worker *w);
/* worker_process.c. Whether it was; else says so, and closes the session if that is over. */
bool play_worker_is_possible(struct play_worker *w, int status, const char *what);
/* Until all that is out has completed, or the session is over. */
void play_worker_await(struct play_worker *w);
/* Leaves what is out behind, with its queue pair. */
void play_worker_abandon(struct play_worker *w, struct target *t);
/* worker_post.c. So many requests to that target; how many were is w->posted. 0 or -errno. */
int play_worker_post(struct play_worker *w, struct target *t, uint32_t n);
void play_worker_note_posted(struct play_worker *w, enum request_kind kind);
/* worker_judge.c. The next one of what is out has completed. */
void play_worker_judge(struct play_worker *w, const struct ibv_wc *wc);

#endif
