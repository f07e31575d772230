/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas and regions. */
#include "lent.h"
#include "request.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "schema/record.h"

enum {
    REMOTE_ACCESS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC
};

/* One that the session has and that could not be mapped before counts to its tenant's quota: no
 * other of its size is asked for. The smallest; CLIENT_MAX_ARENAS: there is none. */
static uint32_t find_unmapped(const struct kedge_session *s, size_t size)
{
    uint32_t found = CLIENT_MAX_ARENAS;
    for (uint32_t i = 0; i < CLIENT_MAX_ARENAS; i++)
        if (s->arenas[i].unmapped != 0 && s->arenas[i].bytes >= size &&
            (found == CLIENT_MAX_ARENAS || s->arenas[i].bytes < s->arenas[found].bytes))
            found = i;
    return found;
}

/* Whether the agent, asked for size, would make one of at most half of it, which may be mapped
 * where it cannot: all are as large as the smallest that there is, or as what was asked for. */
static bool is_far_larger(const struct kedge_session *s, uint32_t index, size_t size)
{
    for (uint32_t i = 0; i < CLIENT_MAX_ARENAS; i++)
        if (s->arenas[i].bytes != 0 && s->arenas[i].bytes <= s->arenas[index].bytes / 2)
            return size <= s->arenas[index].bytes / 2;
    return false;
}

static int get_arena(struct kedge_session *s, size_t size, uint32_t *index)
{
    struct schema_control_arena ask = {.bytes = size};
    struct schema_control_arena_ok answer;
    int fd, status;
    *index = find_unmapped(s, size);
    if (*index < CLIENT_MAX_ARENAS) {
        status = client_arena_map(s, *index);
        if (status == 0 || !is_far_larger(s, *index, size))
            return status;
    }
    status = client_message(s, &ask.h, sizeof ask, SCHEMA_CONTROL_ARENA, &answer, sizeof answer,
                            SCHEMA_CONTROL_ARENA_OK, &fd);
    if (status != 0)
        return status;
    status = client_arena_add(s, answer.arena, answer.bytes, fd);
    if (status == 0)
        *index = answer.arena;
    return status;
}

static int take_block(struct client_arena *a, uint32_t index, size_t size, void **addr,
                      uint32_t *lkey)
{
    int64_t offset = client_heap_alloc(&a->heap, size);
    if (offset < 0)
        return (int)offset;
    *addr = a->addr + offset;
    *lkey = index + 1;
    return 0;
}

int kedge_alloc(struct kedge_session *s, size_t size, void **addr, uint32_t *lkey)
{
    uint32_t index;
    if (client_is_null(s) || client_is_null(addr) || client_is_null(lkey))
        return -EINVAL;
    int status = client_usable(s);
    if (status != 0)
        return status;
    if (size == 0)
        return client_fail_text(-EINVAL, "an allocation has at least one byte");
    if (size > (1ull << 40))
        return client_fail(-ENOMEM, "%zu bytes are more than an arena can have", size);
    for (index = 0; index < CLIENT_MAX_ARENAS; index++)
        if (s->arenas[index].addr != NULL &&
            take_block(&s->arenas[index], index, size, addr, lkey) == 0)
            return 0;
    status =
        get_arena(s, (size + CLIENT_HEAP_GRANULE - 1) & ~(size_t)(CLIENT_HEAP_GRANULE - 1), &index);
    if (status != 0)
        return status;
    if (take_block(&s->arenas[index], index, size, addr, lkey) != 0)
        return client_fail(-ENOMEM, "the agent's new arena has no room for %zu bytes", size);
    return 0;
}

/* The arena that holds [addr, addr + length), or -1. */
static int arena_of(const struct kedge_session *s, const void *addr, size_t length)
{
    for (uint32_t i = 0; i < CLIENT_MAX_ARENAS; i++) {
        const struct client_arena *a = &s->arenas[i];
        uintptr_t offset = (uintptr_t)addr - (uintptr_t)a->addr;
        if (a->addr != NULL && offset < a->bytes && length <= a->bytes - offset)
            return (int)i;
    }
    return -1;
}

void kedge_free(struct kedge_session *s, void *addr)
{
    if (addr == NULL || client_is_null(s) || *s->alive == 0)
        return;
    int index = arena_of(s, addr, 1);
    if (index < 0 || client_heap_free(&s->arenas[index].heap,
                                      (uint64_t)((uint8_t *)addr - s->arenas[index].addr)) != 0)
        client_fail(-EINVAL, "kedge_free: %p was not allocated here", addr);
}

/* How a region goes. */
enum { KINDS = KEDGE_MR_FENCED | KEDGE_MR_LEASE_ONLY };

uint32_t client_access_flags(int access)
{
    return (access & IBV_ACCESS_REMOTE_READ ? SCHEMA_RECORD_READ : 0) |
           (access & IBV_ACCESS_REMOTE_WRITE ? SCHEMA_RECORD_WRITE : 0) |
           (access & IBV_ACCESS_REMOTE_ATOMIC ? SCHEMA_RECORD_ATOMIC : 0);
}

int client_access_of(uint32_t flags)
{
    return (flags & SCHEMA_RECORD_READ ? IBV_ACCESS_REMOTE_READ : 0) |
           (flags & SCHEMA_RECORD_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0) |
           (flags & SCHEMA_RECORD_ATOMIC ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

/* The part of registering that the lane does. */
static int register_region(struct kedge_mr *mr)
{
    struct client_reply reply;
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_REG_MR,
        .reg_mr = {.arena = mr->arena,
                   .offset = (uint64_t)(mr->addr - mr->session->arenas[mr->arena].addr),
                   .length = mr->length,
                   .vaddr = (uintptr_t)mr->addr,
                   .access = client_access_flags(mr->access) | mr->kind}};
    mr->revoked_seen = atomic_load_explicit(&mr->session->ro->revoked, memory_order_acquire);
    int status = client_request(mr->session, &d, &reply);
    if (status != 0)
        return status;
    mr->vkey = (uint32_t)reply.value[0];
    memcpy(mr->secret, reply.secret, sizeof mr->secret);
    return 0;
}

static void add_mr(struct kedge_session *s, struct kedge_mr *mr)
{
    mr->next = s->mrs;
    mr->link = &s->mrs;
    if (mr->next != NULL)
        mr->next->link = &mr->next;
    s->mrs = mr;
}

void client_free_mr(struct kedge_mr *mr)
{
    free(mr->lent);
    free(mr);
}

int client_lend(struct kedge_mr *of, struct client_lent *lent, struct kedge_mr **out)
{
    struct kedge_mr *mr = calloc(1, sizeof *mr);
    if (mr == NULL)
        return client_fail_text(-ENOMEM, "no memory for a region");
    *mr = (struct kedge_mr){.session = of->session,
                            .addr = of->addr,
                            .length = of->length,
                            .access = of->access,
                            .kind = of->kind,
                            .arena = of->arena};
    const int status = register_region(mr);
    if (status != 0) {
        client_free_mr(mr);
        return status;
    }
    lent->of = of;
    mr->lent = lent;
    add_mr(of->session, mr);
    *out = mr;
    return 0;
}

static int refuse_access(unsigned bits)
{
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {
        {IBV_ACCESS_MW_BIND, "IBV_ACCESS_MW_BIND"},
        {IBV_ACCESS_ZERO_BASED, "IBV_ACCESS_ZERO_BASED"},
        {IBV_ACCESS_ON_DEMAND, "IBV_ACCESS_ON_DEMAND"},
        {IBV_ACCESS_HUGETLB, "IBV_ACCESS_HUGETLB"},
        {IBV_ACCESS_RELAXED_ORDERING, "IBV_ACCESS_RELAXED_ORDERING"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((bits & names[i].bit) != 0)
            return client_fail(-EINVAL, "access: %s is nothing that a region here can have",
                               names[i].name);
    return client_fail(-EINVAL, "access: %#x is no access that is known (IBV_ACCESS_REMOTE_*)",
                       bits);
}

int kedge_reg_mr(struct kedge_session *s, void *addr, size_t length, int access,
                 struct kedge_mr **out)
{
    if (client_is_null(s) || client_is_null(addr) || client_is_null(out))
        return -EINVAL;
    int status = client_usable(s);
    if (status != 0)
        return status;
    if ((access & ~(REMOTE_ACCESS | IBV_ACCESS_LOCAL_WRITE | KINDS)) != 0)
        return refuse_access(
            (unsigned)(access & ~(REMOTE_ACCESS | IBV_ACCESS_LOCAL_WRITE | KINDS)));
    if (length == 0)
        return client_fail_text(-EINVAL, "a region has at least one byte: length is 0");
    if ((access & KINDS) == KINDS)
        return client_fail_text(-EINVAL, "KEDGE_MR_FENCED wants a registration for the region, and "
                                         "KEDGE_MR_LEASE_ONLY none: leave one of them away");
    if ((access & KINDS) != 0 && (access & REMOTE_ACCESS) == 0)
        return client_fail(-EINVAL,
                           "%s is about peers that may use a region: give it remote "
                           "access, or leave it away",
                           access & KEDGE_MR_FENCED ? "KEDGE_MR_FENCED" : "KEDGE_MR_LEASE_ONLY");
    int arena = arena_of(s, addr, length);
    if (arena < 0)
        return client_fail(-EINVAL, "%zu bytes at %p are not inside memory from kedge_alloc()",
                           length, addr);
    struct kedge_mr *mr = calloc(1, sizeof *mr);
    if (mr == NULL)
        return client_fail_text(-ENOMEM, "no memory for a region");
    *mr = (struct kedge_mr){.session = s,
                            .addr = addr,
                            .length = length,
                            .access = access & REMOTE_ACCESS,
                            .kind = (access & KEDGE_MR_FENCED ? SCHEMA_REG_FENCED : 0) |
                                    (access & KEDGE_MR_LEASE_ONLY ? SCHEMA_REG_LEASE_ONLY : 0),
                            .arena = (uint32_t)arena};
    if (mr->access != 0)
        status = register_region(mr);
    if (status != 0) {
        client_free_mr(mr);
        return status;
    }
    add_mr(s, mr);
    *out = mr;
    return 0;
}

/* ---- given back */

void client_withdrawn(struct kedge_session *s, uint32_t tag, int status)
{
    bool found = false;
    for (struct kedge_mr *mr = s->mrs; mr != NULL; mr = mr->next) {
        if (!mr->withdrawing || mr->gone || mr->withdraw_tag != tag)
            continue;
        mr->gone = found = true;
        mr->status = status;
    }
    s->withdrawals -= found;
}

/* function: whose argument it is. */
static int check_all(const char *function, struct kedge_mr *const *mrs, size_t n)
{
    if (n > 0 && mrs == NULL) {
        client_say_null(function, "mrs");
        return -EINVAL;
    }
    for (size_t i = 0; i < n; i++)
        if (mrs[i] == NULL)
            return client_fail(-EINVAL, "%s: mrs[%zu] is NULL, and no region", function, i);
        else if (mrs[i]->session != mrs[0]->session)
            return client_fail(-EINVAL,
                               "%s: mrs[%zu] is of another session than mrs[0]: give back those of "
                               "one session at a time",
                               function, i);
    return 0;
}

/* Waits until so few regions are being given back that one more leaves a place, of those for
 * answers, to another request. */
static int await_place(struct kedge_session *s)
{
    const uint64_t until = base_clock_ns() + CLIENT_TIMEOUT_MS * BASE_NS_PER_MS;
    int status = 0;
    client_collect(s);
    while (status == 0 && s->withdrawals >= SCHEMA_REPLIES - 1) {
        status = client_await(s, until);
        client_collect(s);
    }
    return status == -EHOSTDOWN ? -ETIMEDOUT : status; /* as of any request */
}

/* One request for those from mrs[*i] on that it has room for. */
static int begin_some(struct kedge_mr *const *mrs, size_t n, size_t *i)
{
    struct kedge_mr *part[1 + SCHEMA_DEREG_MORE];
    struct schema_sq_desc d = {.op = SCHEMA_OP_DEREG_MR};
    uint32_t count = 0;
    for (; *i < n && count < 1 + SCHEMA_DEREG_MORE; ++*i) {
        struct kedge_mr *mr = mrs[*i];
        if (mr->withdrawing)
            continue;
        mr->withdrawing = true;
        mr->gone = mr->access == 0; /* nobody ever could reach it */
        if (mr->gone)
            continue;
        if (count > 0)
            d.dereg_mr.vkeys[count - 1] = mr->vkey;
        else
            d.dereg_mr.vkey = mr->vkey;
        part[count++] = mr;
    }
    if (count == 0)
        return 0;
    d.dereg_mr.more = count - 1;
    int status = await_place(mrs[0]->session);
    if (status == 0)
        status = client_ask(mrs[0]->session, &d);
    for (uint32_t k = 0; k < count; k++) {
        part[k]->withdraw_tag = d.dereg_mr.tag;
        part[k]->withdrawing = status == 0;
    }
    mrs[0]->session->withdrawals += status == 0;
    return status;
}

static int begin_regions(struct kedge_mr *const *mrs, size_t n)
{
    int status = 0;
    for (size_t i = 0; i < n && (mrs[i]->withdrawing || client_unpublish_all(mrs[i])); i++)
        ;
    for (size_t i = 0; i < n && status == 0;)
        status = begin_some(mrs, n, &i);
    return status;
}

/* A region goes with all its leases. */
static int begin_all(struct kedge_mr *const *mrs, size_t n)
{
    struct kedge_mr *part[1 + SCHEMA_DEREG_MORE];
    int status = begin_regions(mrs, n);
    size_t count = 0;
    for (struct kedge_mr *mr = mrs[0]->session->mrs; mr != NULL && status == 0; mr = mr->next) {
        if (mr->lent != NULL && !mr->withdrawing && mr->lent->of->withdrawing)
            part[count++] = mr;
        if (count < 1 + SCHEMA_DEREG_MORE && mr->next != NULL)
            continue;
        status = begin_regions(part, count);
        count = 0;
    }
    return status;
}

/* Those of a region that is given back are waited for as it is. */
static void await_leases(struct kedge_session *s)
{
    for (struct kedge_mr *mr = s->mrs; mr != NULL; mr = mr->next)
        if (mr->lent != NULL) {
            mr->begun |= mr->lent->of->begun;
            mr->awaited |= mr->lent->of->awaited;
        }
}

static uint32_t count_left(const struct kedge_session *s)
{
    uint32_t n = 0;
    for (const struct kedge_mr *mr = s->mrs; mr != NULL; mr = mr->next)
        n += mr->awaited && !mr->gone;
    return n;
}

/* 0: those that are awaited are gone, or the session ends. */
static int await_all(struct kedge_session *s, uint64_t until_ns)
{
    int status = 0;
    while (status == 0) {
        client_collect(s);
        if (count_left(s) == 0)
            return 0;
        status = client_await(s, until_ns);
    }
    return status;
}

/* Their handles end; the first status that is not 0. */
static int free_awaited(struct kedge_session *s)
{
    int status = 0;
    for (struct kedge_mr *mr = s->mrs, *next; mr != NULL; mr = next) {
        next = mr->next;
        if (!mr->awaited)
            continue;
        status = status != 0 ? status : mr->status;
        *mr->link = next;
        if (next != NULL)
            next->link = mr->link;
        client_free_mr(mr);
    }
    return status != 0 ? client_fail(status, "the agent refused: %s", strerror(-status)) : 0;
}

static void forget_awaited(struct kedge_session *s)
{
    for (struct kedge_mr *mr = s->mrs; mr != NULL; mr = mr->next)
        mr->awaited = false;
}

int kedge_dereg_mrs_begin(struct kedge_mr *const *mrs, size_t n)
{
    int status = check_all(__func__, mrs, n);
    if (status == 0 && n > 0)
        status = client_usable(mrs[0]->session);
    if (status != 0 || n == 0)
        return status;
    mrs[0]->session->told.withdrawn = false;
    mrs[0]->session->told.wanted = true;
    status = begin_all(mrs, n);
    for (size_t i = 0; i < n; i++)
        mrs[i]->begun |= mrs[i]->withdrawing;
    await_leases(mrs[0]->session);
    return status;
}

int kedge_dereg_mrs_wait(struct kedge_session *s, int timeout_ms)
{
    if (client_is_null(s))
        return -EINVAL;
    int status = client_usable(s);
    if (status == -EPERM)
        return status;
    for (struct kedge_mr *mr = s->mrs; mr != NULL; mr = mr->next)
        mr->awaited = mr->begun;
    await_leases(s);
    if (status == 0)
        status =
            await_all(s, timeout_ms < 0 ? UINT64_MAX
                                        : base_clock_ns() + (uint64_t)timeout_ms * BASE_NS_PER_MS);
    if (status != -ETIMEDOUT && status != -EHOSTDOWN) {
        int said = free_awaited(s);
        s->told.withdrawn = true;
        return status != 0 ? status : said;
    }
    uint32_t left = count_left(s);
    forget_awaited(s);
    return status == -ETIMEDOUT ? (int)left : status;
}

int kedge_dereg_mrs(struct kedge_mr *const *mrs, size_t n)
{
    const uint64_t until = base_clock_ns() + CLIENT_TIMEOUT_MS * BASE_NS_PER_MS;
    int status = check_all(__func__, mrs, n);
    if (status != 0 || n == 0)
        return status;
    struct kedge_session *s = mrs[0]->session;
    status = client_usable(s);
    if (status == -EPERM)
        return status;
    if (status == 0)
        status = begin_all(mrs, n);
    for (size_t i = 0; i < n; i++)
        mrs[i]->awaited = true;
    await_leases(s);
    if (status == 0) {
        status = await_all(s, until);
        if (status == -ETIMEDOUT)
            client_fail(status, "of %zu regions %u are not free yet: call it again with the same",
                        n, count_left(s));
    }
    if (status == -ETIMEDOUT || status == -EHOSTDOWN) {
        forget_awaited(s); /* they are still there, to be tried again */
        return -ETIMEDOUT;
    }
    int said = free_awaited(s);
    return status != 0 ? status : said;
}

int kedge_dereg_mr(struct kedge_mr *mr)
{
    if (client_is_null(mr))
        return -EINVAL;
    return kedge_dereg_mrs(&mr, 1);
}

uint32_t kedge_mr_lkey(const struct kedge_mr *mr)
{
    return client_is_null(mr) ? 0 : mr->arena + 1;
}

uint32_t kedge_mr_rkey(const struct kedge_mr *mr)
{
    return client_is_null(mr) ? 0 : mr->vkey;
}

static int fail_revoked(void)
{
    return client_fail(-EACCES, "%s", kedge_reason_str(SCHEMA_REASON_REVOKED));
}

static int fail_withdrawing(void)
{
    return client_fail_text(-EINVAL, "the region is being deregistered");
}

int kedge_mr_status(struct kedge_mr *mr)
{
    if (client_is_null(mr))
        return -EINVAL;
    struct kedge_session *s = mr->session;
    struct client_reply reply;
    struct schema_sq_desc d = {.op = SCHEMA_OP_MR_STATUS, .dereg_mr = {.vkey = mr->vkey}};
    int status = client_usable(s);
    if (status != 0)
        return status;
    if (mr->withdrawing)
        return fail_withdrawing();
    if (mr->revoked)
        return fail_revoked();
    /* The agent counts what it revokes of the session: nothing new, nothing to ask. */
    uint32_t seen = atomic_load_explicit(&s->ro->revoked, memory_order_acquire);
    if (mr->access == 0)
        return 0;
    if (seen == mr->revoked_seen) /* which is 0 also when the session was taken back meanwhile */
        return client_is_taken_back(s) ? client_usable(s) : 0;
    status = client_request(s, &d, &reply);
    if (status == 0)
        mr->revoked_seen = seen;
    mr->revoked = status == -EACCES;
    return status;
}

int client_check_lent(const struct kedge_mr *mr)
{
    if (mr->withdrawing)
        return fail_withdrawing();
    if (mr->revoked)
        return fail_revoked();
    if (mr->access == 0)
        return client_fail_text(-EINVAL,
                                "a region without remote access cannot be exported or published");
    return 0;
}
