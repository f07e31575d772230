/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ibta/ibta.h"

static const uint64_t PAGE = 4096;
enum { RETURNED = 64 /* keys that are kept for the next regions, as mlx5's driver does */ };
/* By which a region's two keys differ, which verbs lets them: rxe's are the same, or the remote one
 * is 0. */
static const uint32_t LOCAL_KEY = 0x80000000;

/* ---- registrations */

/* One that nobody has; where keys come back, the last one that did, and now and then another. */
static uint32_t choose_key(struct sim_device *dev)
{
    uint32_t key = 0;
    if (dev->attr.keys_return && dev->returned.count > 0 && base_prng_below(&dev->prng, 8) != 0)
        return dev->returned.key[--dev->returned.count];
    while (key == 0 || key == LOCAL_KEY || sim_table_get(&dev->mrs, key) != NULL)
        key = (uint32_t)base_prng_next(&dev->prng);
    return key;
}

static void return_key(struct sim_device *dev, uint32_t key)
{
    if (dev->returned.count == RETURNED)
        memmove(dev->returned.key, dev->returned.key + 1,
                --dev->returned.count * sizeof dev->returned.key[0]);
    dev->returned.key[dev->returned.count++] = key;
}

static struct sim_region region_of(const struct sim_mr *mr)
{
    return (struct sim_region){.node = mr->dev->attr.node,
                               .key = mr->base.rkey,
                               .identity = mr->identity,
                               .addr = mr->base.addr,
                               .length = mr->base.length,
                               .at = mr->at,
                               .access = mr->access};
}

int sim_mr_register(struct sim_device *dev, struct fab_ctl *ctl)
{
    struct sim_net *net = dev->net;
    if (!fab_ibta_takes_region(ctl))
        return -EINVAL;
    if (dev->count[SIM_MR] >= dev->base.caps.max_mr)
        return -ENOSPC;
    struct sim_mr *mr = calloc(1, sizeof *mr);
    if (mr == NULL)
        return -ENOMEM;
    const uint32_t key = choose_key(dev);
    uint8_t *at = (uint8_t *)ctl->mr.mem->addr + ctl->mr.offset;
    *mr = (struct sim_mr){.base = {.pd = ctl->mr.pd,
                                   .lkey = key ^ LOCAL_KEY,
                                   .rkey = key,
                                   .addr = ctl->mr.iova != 0 ? ctl->mr.iova : (uintptr_t)at,
                                   .length = ctl->mr.length},
                          .dev = dev,
                          .at = at,
                          .identity = ++net->identities,
                          .access = ctl->mr.access};
    sim_object_add(dev, &mr->object, SIM_MR, mr);
    sim_table_put(&dev->mrs, key, mr);
    ((struct sim_pd *)ctl->mr.pd)->users++;
    sim_note(net, key);
    ctl->mr.x = &mr->base;
    if (net->hooks.registered != NULL) {
        const struct sim_region region = region_of(mr);
        net->hooks.registered(net->hooks.user, &region);
    }
    return 0;
}

void sim_mr_free(struct sim_mr *mr)
{
    struct sim_net *net = mr->dev->net;
    sim_table_drop(&mr->dev->mrs, mr->base.rkey);
    if (net->hooks.deregistered != NULL) {
        const struct sim_region region = region_of(mr);
        net->hooks.deregistered(net->hooks.user, &region);
    }
    sim_object_drop(mr->dev, &mr->object);
    free(mr);
}

int sim_mr_deregister(struct sim_device *dev, struct fab_ctl *ctl)
{
    struct sim_mr *mr = (struct sim_mr *)ctl->mr.x;
    return_key(dev, mr->base.rkey);
    ((struct sim_pd *)mr->base.pd)->users--;
    sim_mr_free(mr);
    ctl->mr.x = NULL;
    return 0;
}

/* ---- memory */

struct sim_mem {
    struct sim_object object;
    struct sim_device *dev;
    void *block;
};

/* Its owner is found by what stands before the first page. */
static struct sim_mem **mem_before(void *addr)
{
    return (struct sim_mem **)((uint8_t *)addr - sizeof(struct sim_mem *));
}

static void give_back(struct fab_mem *mem)
{
    struct sim_mem *m = *mem_before(mem->addr);
    sim_object_drop(m->dev, &m->object);
    free(m->block);
    free(m);
}

void sim_mem_free_left(struct sim_object *o)
{
    struct sim_mem *m = o->self;
    sim_object_drop(m->dev, o);
    free(m->block);
    free(m);
}

/* The least power of two of pages that has room for it. */
static uint64_t alignment_of(size_t size)
{
    uint64_t page = PAGE;
    while (page < size)
        page *= 2;
    return page;
}

/* Where it is modulo a page as large as itself is the same in each run: addresses that peers use
 * follow from that (iova.h). */
int sim_mem_alloc(struct fab *fab, size_t size, struct fab_mem *out)
{
    struct sim_device *dev = sim_device_of(fab);
    if (size == 0 || size > fab->caps.max_mr_size)
        return -EINVAL;
    size = (size + PAGE - 1) & ~(PAGE - 1);
    const uint64_t page = alignment_of(size);
    struct sim_mem *m = calloc(1, sizeof *m);
    if (m == NULL)
        return -ENOMEM;
    m->block = calloc(1, size + page + sizeof m); /* fresh pages, if it is much */
    if (m->block == NULL) {
        free(m);
        return -ENOMEM;
    }
    m->dev = dev;
    const uintptr_t from = (uintptr_t)m->block + sizeof m;
    void *addr = (uint8_t *)m->block + (((from + page - 1) & ~(page - 1)) - (uintptr_t)m->block);
    *mem_before(addr) = m;
    sim_object_add(dev, &m->object, SIM_MEM, m);
    *out = (struct fab_mem){.addr = addr, .size = size, .fd = -1, .give_back = give_back};
    return 0;
}

/* ---- accesses */

const struct sim_mr *sim_mr_find(const struct sim_device *dev, const struct fab_pd *pd,
                                 uint32_t key, uint64_t addr, uint64_t bytes, unsigned access)
{
    const struct sim_mr *mr = sim_table_get(&dev->mrs, key);
    if (mr == NULL || mr->base.pd != pd || (mr->access & access) != access ||
        addr < mr->base.addr || bytes > mr->base.length ||
        addr - mr->base.addr > mr->base.length - bytes)
        return NULL;
    return mr;
}

static uint8_t *note_access(const struct sim_mr *mr, uint64_t addr, uint32_t bytes,
                            enum sim_access_kind kind, const void *written,
                            const struct sim_on_behalf *whose)
{
    struct sim_net *net = mr->dev->net;
    uint8_t *at = mr->at + (addr - mr->base.addr);
    sim_note(net, mr->identity << 40 ^ (addr - mr->base.addr) << 3 ^ kind);
    if (net->hooks.accessed != NULL) {
        const struct sim_access access = {.kind = kind,
                                          .remote = whose->remote,
                                          .node = mr->dev->attr.node,
                                          .initiator = whose->node,
                                          .qpn = whose->qpn,
                                          .wr_id = whose->wr_id,
                                          .key = mr->base.rkey,
                                          .identity = mr->identity,
                                          .addr = addr,
                                          .at = at,
                                          .bytes = bytes,
                                          .written = written};
        net->hooks.accessed(net->hooks.user, &access);
    }
    return at;
}

void sim_mr_read(const struct sim_mr *mr, uint64_t addr, void *to, uint32_t bytes,
                 const struct sim_on_behalf *whose)
{
    memcpy(to, note_access(mr, addr, bytes, SIM_READ, NULL, whose), bytes);
}

void sim_mr_write(const struct sim_mr *mr, uint64_t addr, const void *from, uint32_t bytes,
                  const struct sim_on_behalf *whose)
{
    memcpy(note_access(mr, addr, bytes, SIM_WRITE, from, whose), from, bytes);
}

uint64_t sim_mr_atomic(const struct sim_mr *mr, uint64_t addr, enum ibv_wr_opcode opcode,
                       uint64_t compare_add, uint64_t swap, const struct sim_on_behalf *whose)
{
    uint8_t *at = note_access(mr, addr, 8, SIM_ATOMIC, NULL, whose);
    uint64_t before, after;
    memcpy(&before, at, 8);
    after = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? before + compare_add
            : before == compare_add               ? swap
                                                  : before;
    memcpy(at, &after, 8);
    return before;
}

/* ---- SGEs */

static const struct sim_mr *find_local(const struct sim_device *dev, const struct fab_pd *pd,
                                       uint32_t lkey, uint64_t addr, uint64_t bytes,
                                       unsigned access)
{
    return sim_mr_find(dev, pd, lkey ^ LOCAL_KEY, addr, bytes, access);
}

bool sim_sges_are_sound(const struct sim_device *dev, const struct fab_pd *pd,
                        const struct ibv_sge *sge, uint32_t num_sge, unsigned access)
{
    for (uint32_t i = 0; i < num_sge; i++)
        if (sge[i].length > 0 &&
            find_local(dev, pd, sge[i].lkey, sge[i].addr, sge[i].length, access) == NULL)
            return false;
    return true;
}

/* Moves `bytes` of what the SGEs are, behind `skip`, one way or the other. */
static bool move_over(const struct sim_device *dev, const struct fab_pd *pd,
                      const struct ibv_sge *sge, uint32_t num_sge, uint32_t skip, void *to,
                      const void *from, uint32_t bytes, const struct sim_on_behalf *whose)
{
    const unsigned access = to == NULL ? IBV_ACCESS_LOCAL_WRITE : 0;
    uint32_t moved = 0;
    for (uint32_t i = 0; i < num_sge && moved < bytes; i++) {
        if (skip >= sge[i].length) {
            skip -= sge[i].length;
            continue;
        }
        const uint32_t room = sge[i].length - skip, left = bytes - moved;
        const uint32_t part = left < room ? left : room;
        const uint64_t addr = sge[i].addr + skip;
        const struct sim_mr *mr = find_local(dev, pd, sge[i].lkey, addr, part, access);
        if (mr == NULL)
            return false;
        if (to != NULL)
            sim_mr_read(mr, addr, (uint8_t *)to + moved, part, whose);
        else
            sim_mr_write(mr, addr, (const uint8_t *)from + moved, part, whose);
        moved += part;
        skip = 0;
    }
    return true;
}

bool sim_sges_read(const struct sim_device *dev, const struct fab_pd *pd, const struct ibv_sge *sge,
                   uint32_t num_sge, uint32_t skip, void *to, uint32_t bytes,
                   const struct sim_on_behalf *whose)
{
    return move_over(dev, pd, sge, num_sge, skip, to, NULL, bytes, whose);
}

bool sim_sges_write(const struct sim_device *dev, const struct fab_pd *pd,
                    const struct ibv_sge *sge, uint32_t num_sge, uint32_t skip, const void *from,
                    uint32_t bytes, const struct sim_on_behalf *whose)
{
    return move_over(dev, pd, sge, num_sge, skip, NULL, from, bytes, whose);
}
