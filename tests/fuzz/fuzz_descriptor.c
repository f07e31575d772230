/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors as a worker wrote them: three slots of a ring, then what the session has; of a lookup
 * all that follows is its name. A request
 * that passes the check must stay within the session's arenas and the interface's limits, and the
 * check may look at no more slots than it asked for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lane_state.h"
#include "request/check.h"
#include "session_state.h"
#include "request/dedicated_mr.h"
#include "request/reg_mr.h"
#include "resolve/name_lookup.h"
#include "agent/lane.h"
#include "base/assert.h"
#include "base/clock.h"

enum {
    SLOTS = 3,
    NAME_SLOTS = 1 + SCHEMA_MAX_EXTRA / SCHEMA_LINE,
    TABLE_LOG2 = 4,
    BYTES_PER_ARENA = 4,
    MAX_MRS = 2
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Arenas of small and of odd sizes, far from each other; nothing is ever read there. */
static void make_arenas(struct session *s, const uint8_t *data, size_t size)
{
    for (s->arenas = 0; s->arenas < LANE_SESSION_MAX_ARENAS && size >= BYTES_PER_ARENA;
         s->arenas++, data += BYTES_PER_ARENA, size -= BYTES_PER_ARENA) {
        uint32_t n = s->arenas;
        s->arena[n] = (struct lane_arena){.iova = (n + 1ull) << 44,
                                          .bytes = ((uint64_t)data[0] | (uint64_t)data[1] << 8)
                                                   << (data[2] % 24),
                                          .lkey = 100 + n,
                                          .rkey = 200 + n};
    }
}

/* The arena that holds all of it, by the check's own numbers or by luck: there is none other. */
static void is_inside(const struct session *s, uint64_t addr, uint64_t length, uint32_t key,
                      uint32_t first_key)
{
    BASE_ASSERT(key >= first_key && key - first_key < s->arenas);
    const struct lane_arena *a = &s->arena[key - first_key];
    uint64_t begin = a->iova;
    BASE_ASSERT(addr >= begin && addr - begin <= a->bytes && length <= a->bytes - (addr - begin));
}

static void check_request(const struct session *s, const struct schema_sq_desc *d,
                          const uint8_t *extra, const struct wr *w)
{
    uint64_t total = 0;
    bool atomic = d->op == SCHEMA_OP_CAS || d->op == SCHEMA_OP_FAA;
    BASE_ASSERT(w->fab.sg_list == w->sge && w->fab.num_sge >= 0 &&
                w->fab.num_sge <= SCHEMA_MAX_SGE);
    BASE_ASSERT((w->fab.send_flags & ~(unsigned)(IBV_SEND_FENCE | IBV_SEND_INLINE)) == 0);
    for (int i = 0; i < w->fab.num_sge; i++)
        total += w->sge[i].length;
    BASE_ASSERT(total == w->length);
    if (d->flags & SCHEMA_OP_INLINE) {
        BASE_ASSERT(d->op == SCHEMA_OP_WRITE && w->length <= SCHEMA_MAX_INLINE);
        BASE_ASSERT(w->fab.num_sge == 1 && (w->fab.send_flags & IBV_SEND_INLINE));
        BASE_ASSERT(w->sge[0].addr == (uintptr_t)w->inline_data);
        BASE_ASSERT(memcmp(w->inline_data, extra, w->length) == 0);
        return;
    }
    BASE_ASSERT((w->fab.send_flags & IBV_SEND_INLINE) == 0);
    BASE_ASSERT(w->fab.num_sge <= (int)s->caps->max_sge || w->fab.num_sge == 1);
    BASE_ASSERT(!atomic || s->caps->atomics);
    for (int i = 0; i < w->fab.num_sge; i++)
        is_inside(s, w->sge[i].addr, w->sge[i].length, w->sge[i].lkey, 100);
    if (atomic)
        BASE_ASSERT(w->fab.num_sge == 1 && total == 8 && d->post.remote_addr % 8 == 0);
}

static void fuzz_post(const struct session *s, const struct schema_sq_desc *d, const uint8_t *ring)
{
    const struct operation *op = operation_of(d->op);
    uint32_t slots = lane_check_slots(op, d);
    BASE_ASSERT(slots <= SLOTS && (slots == 0 || slots == d->slots));
    if (slots == 0)
        return;
    /* Of its exact size, so that a sanitizer sees a look at a slot too many. */
    uint8_t *extra = malloc(slots > 1 ? (slots - 1) * SCHEMA_LINE : 1);
    struct wr *w = calloc(1, sizeof *w);
    BASE_ASSERT(extra != NULL && w != NULL);
    memcpy(extra, ring + SCHEMA_LINE, (slots - 1) * SCHEMA_LINE);
    uint32_t reason = lane_check_post(s, op, d, extra, w);
    BASE_ASSERT(reason == SCHEMA_REASON_NONE || reason == SCHEMA_REASON_DESCRIPTOR ||
                reason == SCHEMA_REASON_LOCAL_RANGE || reason == SCHEMA_REASON_ATOMIC ||
                reason == SCHEMA_REASON_DEVICE || reason == SCHEMA_REASON_ATOMICS);
    if (reason == SCHEMA_REASON_NONE)
        check_request(s, d, extra, w);
    free(extra);
    free(w);
}

/* There is no metaserver: what is a name is looked up, and nobody asked. */
static void fuzz_name(struct session *s, const struct schema_sq_desc *d, const uint8_t *name,
                      size_t size)
{
    static struct lane lane;
    static struct lane_memory *memory;
    const uint32_t slots = lane_check_slots(operation_of(d->op), d);
    BASE_ASSERT(slots <= NAME_SLOTS && (slots == 0 || slots == d->slots));
    if (slots == 0)
        return;
    const size_t room = (slots - 1) * SCHEMA_LINE;
    uint8_t *extra = calloc(1, room > 0 ? room : 1);
    if (memory == NULL)
        memory = lane_memory_new(1, 1, 1, 1);
    BASE_ASSERT(extra != NULL && memory != NULL && d->lookup.owner + d->lookup.length <= room);
    lane_memory_set_tenant(memory, "a tenant's name that has as many bytes as there can be");
    s->memory = memory;
    memcpy(extra, name, size < room ? size : room);
    const int status = lane_name_lookup(&lane, s, extra, d->lookup.owner, d->lookup.length);
    BASE_ASSERT(status == -EINVAL || status == -EHOSTUNREACH);
    free(extra);
}

/* All grants that it says it has are in the slots that it takes. */
static void fuzz_grants(const struct schema_sq_desc *d)
{
    const uint32_t slots = lane_check_slots(operation_of(d->op), d);
    BASE_ASSERT(slots <= NAME_SLOTS && (slots == 0 || slots == d->slots));
    BASE_ASSERT(slots == 0 ||
                (d->import_many.count > 0 && d->import_many.count <= SCHEMA_IMPORTS_AT_ONCE &&
                 d->import_many.count * sizeof(struct schema_grant) <= (slots - 1) * SCHEMA_LINE));
}

static int fill(void *user, void *bytes, size_t n)
{
    uint8_t *counter = user;
    memset(bytes, ++*counter, n);
    return 0;
}

/* What the device is asked to register lies in the arena that it names. */
static void fuzz_fenced(struct session *s, struct lane *l)
{
    struct lane_event e;
    BASE_ASSERT(lane_event(l, &e) == 1 && e.kind == LANE_EVENT_WANT_MR);
    BASE_ASSERT(e.want_mr.arena < s->arenas && e.want_mr.length > 0);
    const struct lane_arena *a = &s->arena[e.want_mr.arena];
    BASE_ASSERT(e.want_mr.offset <= a->bytes && e.want_mr.length <= a->bytes - e.want_mr.offset);
    BASE_ASSERT(e.want_mr.access != 0 && (e.want_mr.access & SCHEMA_REG_FENCED) == 0);
    BASE_ASSERT(s->quota->mrs == 1);
    lane_dedicated_forget(l, s);
    BASE_ASSERT(s->quota->mrs == 0);
}

/* A registration: what peers will believe must lie in one arena too. */
static void fuzz_region(struct session *s, const struct schema_sq_desc *d)
{
    static struct lane lane;
    struct schema_table table;
    static struct lane_memory *leases;
    uint32_t vkey = 0;
    uint8_t secret[16], counter = 0;
    struct schema_mr_record found;
    void *memory = calloc(1, schema_table_bytes(TABLE_LOG2));
    BASE_ASSERT(memory != NULL);
    schema_table_init(&table, SCHEMA_TABLE_MRS, memory, TABLE_LOG2, 1, 1);
    lane.config.mr_lease_ns = BASE_NS_PER_S;
    lane.res.mr_table = &table;
    lane.random_fill = fill;
    lane.random_user = &counter;
    if (leases == NULL)
        leases = lane_memory_new(1, 1, 1, MAX_MRS);
    BASE_ASSERT(leases != NULL);
    memset(leases->regions, 0, MAX_MRS * sizeof leases->regions[0]);
    s->regions = leases->regions;
    s->memory = leases;
    s->max_regions = MAX_MRS;
    if (lane.events == NULL)
        BASE_ASSERT(base_spsc_new(2, sizeof(struct lane_event), &lane.events) == 0);
    int status = lane_region_add(&lane, s, d, &vkey, secret);
    if (status == -EINPROGRESS) {
        fuzz_fenced(s, &lane);
    } else if (status == 0) {
        const uint8_t *window =
            table.slots + (size_t)schema_mr_home(&table.desc, vkey) * SCHEMA_RECORD_BYTES;
        BASE_ASSERT(vkey != 0 && schema_mr_find(&table.desc, window, vkey, &found) == 0);
        BASE_ASSERT(found.length > 0 && found.vaddr + found.length > found.vaddr);
        is_inside(s, found.raddr, found.length, found.rkey, 200);
        struct region *region = &s->regions[0];
        BASE_ASSERT(region->vkey == vkey && region->rkey == found.rkey);
        lane_region_remove(&lane, s, region, 0);
        lane_region_free(s, region);
        s->memory->withdrawals[0] = (struct withdrawal){.left = 0};
    }
    BASE_ASSERT(table.live == 0 && s->regions_used == 0);
    free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t ring[SLOTS * SCHEMA_LINE] = {0};
    struct schema_sq_desc d;
    static struct session session;
    size_t head = size < sizeof ring ? size : sizeof ring;
    struct lane_quota quota = {.max_vqps = UINT32_MAX, .max_mrs = UINT32_MAX};
    if (size == 0)
        return 0;
    const struct fab_caps caps = {
        .max_sge = 1 + data[0] % SCHEMA_MAX_SGE, .max_inline = data[0], .atomics = data[0] < 128};
    session = (struct session){.tenant = 1, .quota = &quota, .caps = &caps};
    memcpy(ring, data, head);
    memcpy(&d, ring, sizeof d);
    if (d.op == SCHEMA_OP_LOOKUP) {
        const size_t first = size < sizeof d ? size : sizeof d;
        fuzz_name(&session, &d, data + first, size - first);
        return 0;
    }
    if (d.op == SCHEMA_OP_IMPORT_MANY) {
        fuzz_grants(&d);
        return 0;
    }
    make_arenas(&session, data + head, size - head);
    fuzz_post(&session, &d, ring);
    fuzz_region(&session, &d);
    return 0;
}
