/* SPDX-License-Identifier: Apache-2.0 */
/* What workers write into their rings, and read of the answers. */
#include <check.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/phase.h"
#include "world.h"
#include "world_fenced.h"
#include "world_messages.h"

enum { POOL = 1, VADDR = 0x10000, WORLD_SLOTS = 1 + SCHEMA_MAX_EXTRA / SCHEMA_LINE };

/* Word by word, as a lane reads it: one that looks whether the slot is there may do so meanwhile,
 * which the thread sanitizer sees where both are threads. */
static void put_slot(struct schema_sq_desc *slot, const struct schema_sq_desc *d)
{
    uint64_t *to = (uint64_t *)(void *)slot;
    for (size_t i = 0; i < sizeof *d / sizeof *to; i++) {
        uint64_t word;
        memcpy(&word, (const uint8_t *)d + i * sizeof word, sizeof word);
        __atomic_store_n(&to[i], word, __ATOMIC_RELAXED);
    }
}

void world_post(struct world_worker *k, const struct schema_sq_desc *d)
{
    struct schema_sq_desc *ring = (void *)((uint8_t *)k->w + SCHEMA_SQ_OFFSET);
    if (k->sq_open == 0) { /* else it is what stands behind a descriptor */
        k->sq_published = k->sq_tail;
        k->sq_open = d->slots > 0 && d->slots <= WORLD_SLOTS ? d->slots : 1;
    }
    put_slot(&ring[k->sq_tail++ & 63], d);
    if (--k->sq_open > 0)
        return;
    if (k->by_tail)
        atomic_store(&k->w->sq_tail, k->sq_tail);
    else
        schema_sq_publish(k->w, ring, 63, k->sq_published, k->sq_tail);
}

int world_ask(struct world *w, struct world_worker *k, struct schema_sq_desc d,
              struct schema_reply *out)
{
    d.slots = 1;
    d.connect.tag = ++k->tag; /* the same place in all */
    world_post(k, &d);
    lane_doorbell(w->node[k->node].lane, k->id);
    for (int i = 0; i < 20000 && atomic_load(&k->r->reply[k->tag % SCHEMA_REPLIES].tag) != k->tag;
         i++)
        world_run(w, 1);
    ck_assert_uint_eq(atomic_load(&k->r->reply[k->tag % SCHEMA_REPLIES].tag), k->tag);
    if (out != NULL)
        *out = k->r->reply[k->tag % SCHEMA_REPLIES];
    return k->r->reply[k->tag % SCHEMA_REPLIES].status;
}

bool world_poll(struct world *w, struct world_worker *k, struct schema_cqe *out, unsigned passes)
{
    const struct schema_cqe *ring = (const void *)((const uint8_t *)k->r + SCHEMA_CQ_OFFSET);
    lane_doorbell(w->node[k->node].lane, k->id);
    for (unsigned i = 0; i < passes && atomic_load(&k->r->cq_tail) == k->cq_head; i++)
        world_run(w, 1);
    if (atomic_load(&k->r->cq_tail) == k->cq_head)
        return false;
    *out = ring[k->cq_head++ & 63];
    atomic_store(&k->w->cq_head, k->cq_head);
    return true;
}

int world_connect(struct world *w, struct world_worker *k, uint16_t vqp, uint32_t node)
{
    struct schema_sq_desc d = {.op = SCHEMA_OP_CONNECT, .connect = {.pool = POOL}};
    struct schema_reply reply;
    memcpy(d.connect.gid, w->node[node].fab->caps.gid, 16);
    int status = world_ask(w, k, d, &reply);
    if (status == 0) {
        struct schema_sq_desc bind = {.op = SCHEMA_OP_BIND, .slots = 1, .vqp = vqp};
        bind.bind.peer_slot = (uint32_t)reply.value[0];
        bind.bind.peer_gen = (uint32_t)reply.value[1];
        world_post(k, &bind);
    }
    return status;
}

uint32_t world_register(struct world *w, struct world_worker *k, uint64_t offset, uint64_t length,
                        uint32_t access)
{
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_REG_MR,
        .reg_mr = {.offset = offset, .length = length, .vaddr = VADDR + offset, .access = access}};
    struct schema_reply reply;
    return world_ask(w, k, d, &reply) == 0 ? (uint32_t)reply.value[0] : 0;
}

struct schema_sq_desc world_rw(uint8_t op, uint64_t wr_id, uint64_t offset, uint32_t length,
                               uint32_t vkey, uint64_t remote_offset)
{
    return (struct schema_sq_desc){.op = op,
                                   .flags = SCHEMA_OP_SIGNALED,
                                   .num_sge = 1,
                                   .slots = 1,
                                   .post = {.wr_id = wr_id,
                                            .remote_addr = VADDR + remote_offset,
                                            .vkey = vkey,
                                            .length = length,
                                            .offset = offset}};
}

struct lane_stats world_stats(const struct world *w, uint32_t node)
{
    struct lane_stats s;
    lane_stats(w->node[node].lane, &s);
    return s;
}

struct schema_cqe world_done(struct world *w, struct world_worker *k, unsigned passes)
{
    struct schema_cqe e;
    ck_assert(world_poll(w, k, &e, passes));
    return e;
}

struct schema_cqe world_do(struct world *w, struct world_worker *k, struct schema_sq_desc d,
                           unsigned passes)
{
    world_post(k, &d);
    return world_done(w, k, passes);
}

void world_take_away(struct world *w, struct world_worker *k)
{
    struct fab_ctl c = {.kind = FAB_DEREG_MR, .mr = {.x = k->arena_mr}};
    ck_assert_int_eq(fab_call(w->node[k->node].fab, &c), 0);
    k->arena_mr = NULL;
}

void world_break(struct world *w, uint32_t node, struct fab_qp *qp)
{
    struct fab_ctl c = {
        .kind = FAB_MODIFY_QP,
        .modify = {.x = qp, .attr = {.qp_state = IBV_QPS_ERR}, .mask = IBV_QP_STATE}};
    ck_assert_int_eq(fab_call(w->node[node].fab, &c), 0);
}

void world_note_apart(struct world_node *n, const struct lane_event *e)
{
    n->quarantined[e->quarantined.tenant] = e->quarantined.begins;
    n->named[e->quarantined.tenant] |= e->quarantined.named;
}

void world_note_end(struct world_node *n, const struct lane_event *e)
{
    if (e->kind == LANE_EVENT_SESSION_OVER) {
        n->over++;
        n->overs[e->session]++;
        world_fenced_over(n, e->session);
    } else if (e->kind == LANE_EVENT_SESSION_LEFT) {
        n->left = *e;
        n->lefts++;
    } else {
        n->lodger_left = *e;
        n->lodgers_left++;
    }
}

/* The device's own files are few, but their names are its own affair. */
int world_run_quietly(const char *command)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0)
        _exit(execl("/bin/sh", "sh", "-c", command, (char *)NULL) == 0 ? 0 : 127);
    return waitpid(child, &status, 0) == child ? status : -1;
}

void world_note_wanted(struct world_node *n, const struct lane_event *e)
{
    n->wanted_mtu = e->want_path.mtu;
    n->wanted_flow = e->want_path.flow;
    n->wanted_paths[n->wanted_flow % WORLD_FLOWS]++;
}
