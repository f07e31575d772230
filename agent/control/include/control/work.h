/* SPDX-License-Identifier: Apache-2.0 */
/* What a control core has done beside its thread: memory that is made, zeroed and given back, files
 * that are written. world_run() (control/world.h) begins it. */
#ifndef CONTROL_WORK_H
#define CONTROL_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/tenant_queue.h"

struct fab_mem;
struct lane_memory;
struct schema_session_ro;
struct schema_session_rw;
struct world_lane;

/* A session's memory: what it shares with its worker, and what its lane keeps of it. */
struct world_rings {
    uint32_t sq_slots, cq_slots, max_vqps, max_inflight, max_mrs, max_grants; /* wanted */
    struct schema_session_rw *rw; /* NULL, as the next two: it is not made */
    struct schema_session_ro *ro;
    struct lane_memory *memory;
    int rw_fd, ro_fd, doorbell; /* the world's own */
    int hold;                   /* likewise, of their pages; or -errno: they are not held */
    int heard;                  /* likewise: by which the doorbell is heard */
    struct ring_guard *guard;   /* likewise: what rw is told to, or NULL */
    struct world_lane *lane;    /* that hears it, as that session's */
    uint32_t session;
    struct world_lane *lodges; /* another lane, that hears it meanwhile; or NULL */
    uint32_t lodger;           /* as that one's */
};

/* The table of peers that all workers of a pool read. */
struct world_peers {
    uint64_t bytes; /* wanted */
    void *table;    /* zeroed when it is made; NULL: it is not */
    int fd, hold;   /* the world's own; as above */
};

/* Files that a worker has had, and may have still. */
struct world_left {
    int file[2];
    uint32_t count;
};

/* What takes long and asks nobody: beside the control thread, on which done() is called then. */
struct world_task {
    enum world_work {
        WORLD_MAKE_RINGS,
        WORLD_UNMAKE_RINGS,
        WORLD_LODGE_RINGS, /* what they lodge with can hear their doorbell */
        WORLD_MAKE_ARENA,
        WORLD_ZERO_ARENA,
        WORLD_FREE_ARENA,
        WORLD_SAVE_STATE,
        WORLD_KEEP_INCARNATIONS, /* for the life that there is: the next begins above them */
        WORLD_MAKE_PEERS,
        WORLD_FREE_PEERS,
        WORLD_RECLAIM_MEMORY, /* what the allocator keeps of what was freed */
        WORLD_WORKS
    } work;
    union { /* what it is done to, the task's until then */
        struct world_rings *rings;
        struct world_peers *peers;
        struct world_arena {
            struct fab_mem *memory;
            uint64_t bytes;               /* MAKE: how many */
            bool huge;                    /* MAKE: of huge pages, if there are some */
            const _Atomic bool *unwanted; /* MAKE: -ECANCELED soon after this is set */
        } arena;
        struct world_state {
            const char *directory, *name; /* a file, replaced whole */
            const char *text;
            size_t length;
        } state;
        struct world_incarnations {
            const char *directory;
            uint32_t last; /* of those that are kept then */
        } incarnations;
    };
    bool let_go;              /* UNMAKE_RINGS, FREE_ARENA: whoever still maps it is done with it: a
                               * tenant's is emptied before done() */
    uint32_t tenant;          /* whose it is (index + 1); 0: the agent's own, or of all */
    int status;               /* in done(): 0 or -errno; of UNMAKE, FREE and RECLAIM 0 */
    void (*done)(void *user); /* the task is its owner's again */
    void *user;
    struct world_left left;        /* private: what is emptied before done() is told */
    struct tenant_queue_item turn; /* private: while it waits for its turn */
    struct world_task *next;       /* private: while it is done, and its end is not told */
};

#endif
