/* SPDX-License-Identifier: Apache-2.0 */
/* How a pool begins, or a lane of one that has several: what the device has of it, one control
 * operation after another, of which nobody waits for any; then its lane, its sessions and arenas.
 * Control thread. */
#ifndef CONTROL_POOL_START_H
#define CONTROL_POOL_START_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/error.h"
#include "control/work.h"
#include "fabric/fabric.h"

struct pool;

enum start_stage {
    START_IDLE,     /* it has not begun */
    START_MEMORY,   /* that of its MR table, and its peer table, are made, beside this thread */
    START_OPENING,  /* the device makes it */
    START_OPENED,   /* the device has answered */
    START_RETIRING, /* it could not be made as operators say: what there is of it goes, and it is
                     * made once more, as the file says */
    START_READY,    /* the device has made it */
    START_OVER,     /* it serves, or could not be made */
};

struct pool_start {
    enum start_stage stage;
    struct world_task making, making_peers; /* the MR table's memory; the peer table */
    struct fab_mem table;                   /* that memory, until the device has it */
    bool as_file;
    int status; /* OPENED: of the device; OVER: of all */
    struct base_errbuf err;
    uint64_t begun_ns;
    uint64_t address_news; /* the device's, for which the pool is made */
    enum ibv_mtu mtu;      /* likewise */
};

/* What it has that the device has not got; nothing is under way. */
void agent_pool_start_fini(struct pool *p);
/* Once; all of the pool that is not of the device is there. */
void agent_pool_start_begin(struct pool *p);
/* As far as that goes without waiting for the device. True: what is of the device is made, or could
 * not be: start.status. */
bool agent_pool_start_step(struct pool *p);
bool agent_pool_start_is_over(const struct pool *p);
/* Then: its lane begins, for which nothing waits. 0; or start.status, which was there or is new:
 * with -ESTALE the device has another address or MTU than when it began, and what was made is of no
 * use. */
int agent_pool_start_serve(struct pool *p);
/* WORLD_DEVICE_OPEN is over: 0, or -errno and a sentence. */
void agent_pool_device_opened(struct pool *p, int status, const struct base_errbuf *err);

#endif
