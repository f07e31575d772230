/* SPDX-License-Identifier: Apache-2.0 */
/* How each work of control/world.h is done on a task thread. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/lane.h"
#include "base/fds.h"
#include "base/hold.h"
#include "doorbells.h"
#include "fabric/fabric.h"
#include "incarnation.h"
#include "ring_guard.h"
#include "schema/session.h"
#include "state_file.h"
#include "tasks.h"

static void leave_file(struct world_task *t, int *file)
{
    if (*file >= 0)
        t->left.file[t->left.count++] = *file;
    *file = -1;
}

void agentd_task_empty_left(struct world_task *t)
{
    for (; t->left.count > 0; t->left.count--) {
        (void)base_memfd_empty(t->left.file[t->left.count - 1]);
        close(t->left.file[t->left.count - 1]);
    }
}

/* Whatever of it there is. */
static void drop_rings(struct world_rings *r)
{
    agentd_ring_guard_drop(r->guard);
    r->guard = NULL;
    if (r->rw != NULL)
        munmap(r->rw, SCHEMA_SESSION_RW_BYTES(r->sq_slots));
    if (r->ro != NULL)
        munmap(r->ro, SCHEMA_SESSION_RO_BYTES(r->cq_slots));
    agentd_doorbells_unhear_rings(r);
    int fds[] = {r->hold, r->rw_fd, r->ro_fd, r->doorbell};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    lane_memory_free(r->memory);
    r->memory = NULL;
    r->rw = NULL;
    r->ro = NULL;
}

/* Whether a worker may have kept it and is to keep no page of it. */
static bool is_taken_back(const struct world_task *t)
{
    return t->let_go && t->tenant != 0;
}

/* They are emptied, else a worker that has left could have as many as it has come for. One that
 * still looks must not take zeros for an answer or a completion: they come after the magic number
 * has gone. */
static int unmake_rings(struct world_task *t)
{
    struct world_rings *r = t->rings;
    if (r->rw == NULL)
        return 0;
    if (is_taken_back(t)) {
        atomic_store(&r->ro->magic, 0);
        leave_file(t, &r->ro_fd);
        leave_file(t, &r->rw_fd);
    }
    drop_rings(r);
    return 0;
}

/* What cannot be held is lent all the same, which the log says. */
static int hold_rings(const struct world_rings *r)
{
    const struct iovec maps[] = {
        {.iov_base = r->rw, .iov_len = SCHEMA_SESSION_RW_BYTES(r->sq_slots)},
        {.iov_base = r->ro, .iov_len = SCHEMA_SESSION_RO_BYTES(r->cq_slots)}};
    return base_hold_new(maps, 2);
}

static int make_rings(struct world_task *t)
{
    struct world_rings *r = t->rings;
    void *rw = NULL, *ro = NULL;
    r->hold = r->rw_fd = r->ro_fd = r->doorbell = r->heard = -1;
    int status = base_memfd_new("kedge-rw", SCHEMA_SESSION_RW_BYTES(r->sq_slots), BASE_MEMFD_WRITE,
                                &r->rw_fd, &rw);
    if (status == 0)
        status = base_memfd_new("kedge-ro", SCHEMA_SESSION_RO_BYTES(r->cq_slots), BASE_MEMFD_READ,
                                &r->ro_fd, &ro);
    r->rw = rw;
    r->ro = ro;
    r->guard = NULL;
    if (status == 0)
        r->hold = hold_rings(r);
    if (status == 0)
        status = agentd_ring_guard_new(rw, SCHEMA_SESSION_RW_BYTES(r->sq_slots), &r->guard);
    if (status == 0) {
        r->doorbell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        status = r->doorbell < 0 ? -errno : agentd_doorbells_hear_rings(r);
    }
    if (status == 0) {
        r->memory = lane_memory_new(r->max_grants, r->max_inflight, r->max_vqps, r->max_mrs);
        status = r->memory == NULL ? -ENOMEM : 0;
    }
    if (status != 0)
        drop_rings(r);
    return status;
}

static int lodge_rings(struct world_task *t)
{
    return agentd_doorbells_lodge_rings(t->rings);
}

static int make_arena(struct world_task *t)
{
    const struct world_arena *a = &t->arena;
    return fab_mem_alloc_lent(a->bytes, "kedge-arena", a->huge, a->unwanted, a->memory);
}

static int zero_arena(struct world_task *t)
{
    return fab_mem_zero(t->arena.memory);
}

static int free_arena(struct world_task *t)
{
    if (is_taken_back(t)) {
        int file = fab_mem_leave(t->arena.memory);
        leave_file(t, &file);
    } else {
        fab_mem_free(t->arena.memory);
    }
    return 0;
}

static int make_peers(struct world_task *t)
{
    struct world_peers *p = t->peers;
    const int status =
        base_memfd_new("kedge-peers", p->bytes, BASE_MEMFD_SEALED, &p->fd, &p->table);
    if (status == 0)
        p->hold = base_hold_new(&(struct iovec){.iov_base = p->table, .iov_len = p->bytes}, 1);
    return status;
}

static int free_peers(struct world_task *t)
{
    struct world_peers *p = t->peers;
    if (p->table == NULL)
        return 0;
    munmap(p->table, p->bytes);
    if (p->hold >= 0)
        close(p->hold);
    close(p->fd);
    p->table = NULL;
    return 0;
}

static int save_state(struct world_task *t)
{
    const struct world_state *s = &t->state;
    int dir = open(s->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    int status = agentd_state_file_write(dir, s->name, s->text, s->length);
    close(dir);
    return status;
}

static int keep_incarnations(struct world_task *t)
{
    return agentd_incarnation_keep(t->incarnations.directory, t->incarnations.last);
}

static int reclaim_memory(struct world_task *t)
{
    (void)t;
    (void)malloc_trim(0);
    return 0;
}

const task_run TASK_RUNS[WORLD_WORKS] = {
    [WORLD_MAKE_RINGS] = make_rings,         [WORLD_UNMAKE_RINGS] = unmake_rings,
    [WORLD_MAKE_ARENA] = make_arena,         [WORLD_ZERO_ARENA] = zero_arena,
    [WORLD_FREE_ARENA] = free_arena,         [WORLD_SAVE_STATE] = save_state,
    [WORLD_MAKE_PEERS] = make_peers,         [WORLD_FREE_PEERS] = free_peers,
    [WORLD_RECLAIM_MEMORY] = reclaim_memory, [WORLD_KEEP_INCARNATIONS] = keep_incarnations,
    [WORLD_LODGE_RINGS] = lodge_rings,
};
