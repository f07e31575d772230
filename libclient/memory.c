/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas and regions. */
#include "internal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "schema/record.h"
#include "schema/token.h"

enum {
    REMOTE_ACCESS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC
};
static_assert(KEDGE_TOKEN_MAX == KEDGE_TOKEN_TEXT, "the same");

static int more(struct kedge_session *s, size_t size, uint32_t *index)
{
    struct kedge_control_arena ask = {.bytes = size};
    struct kedge_control_arena_ok answer;
    int fd;
    int status = client_message(s, &ask.h, sizeof ask, KEDGE_CONTROL_ARENA, &answer, sizeof answer,
                                KEDGE_CONTROL_ARENA_OK, &fd);
    if (status != 0)
        return status;
    status = client_arena_add(s, answer.arena, answer.bytes, fd);
    if (status == 0)
        *index = answer.arena;
    return status;
}

static int take(struct client_arena *a, uint32_t index, size_t size, void **addr, uint32_t *lkey)
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
    int status = client_usable(s);
    if (status != 0)
        return status;
    if (size == 0)
        return client_fail_text(-EINVAL, "an allocation has at least one byte");
    if (size > (1ull << 40))
        return client_fail(-ENOMEM, "%zu bytes are more than an arena can have", size);
    for (index = 0; index < CLIENT_MAX_ARENAS; index++)
        if (s->arenas[index].addr != NULL && take(&s->arenas[index], index, size, addr, lkey) == 0)
            return 0;
    status = more(s, (size + CLIENT_HEAP_GRANULE - 1) & ~(size_t)(CLIENT_HEAP_GRANULE - 1), &index);
    if (status != 0)
        return status;
    if (take(&s->arenas[index], index, size, addr, lkey) != 0)
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
    if (addr == NULL || *s->alive == 0)
        return;
    int index = arena_of(s, addr, 1);
    if (index < 0 || client_heap_free(&s->arenas[index].heap,
                                      (uint64_t)((uint8_t *)addr - s->arenas[index].addr)) != 0)
        client_fail(-EINVAL, "kedge_free: %p was not allocated here", addr);
}

/* How a region goes. */
enum { KINDS = KEDGE_MR_FENCED | KEDGE_MR_LEASE_ONLY };

static uint32_t access_flags(int access)
{
    return (access & IBV_ACCESS_REMOTE_READ ? KEDGE_RECORD_READ : 0) |
           (access & IBV_ACCESS_REMOTE_WRITE ? KEDGE_RECORD_WRITE : 0) |
           (access & IBV_ACCESS_REMOTE_ATOMIC ? KEDGE_RECORD_ATOMIC : 0);
}

static int access_of(uint32_t flags)
{
    return (flags & KEDGE_RECORD_READ ? IBV_ACCESS_REMOTE_READ : 0) |
           (flags & KEDGE_RECORD_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0) |
           (flags & KEDGE_RECORD_ATOMIC ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

/* The part of registering that the lane does. */
static int publish(struct kedge_mr *mr)
{
    struct client_reply reply;
    struct kedge_sq_desc d = {
        .op = KEDGE_OP_REG_MR,
        .reg_mr = {.arena = mr->arena,
                   .offset = (uint64_t)(mr->addr - mr->session->arenas[mr->arena].addr),
                   .length = mr->length,
                   .vaddr = (uintptr_t)mr->addr,
                   .access = access_flags(mr->access) | mr->kind}};
    mr->revoked_seen = atomic_load_explicit(&mr->session->ro->revoked, memory_order_acquire);
    int status = client_request(mr->session, &d, &reply);
    if (status != 0)
        return status;
    mr->vkey = (uint32_t)reply.value[0];
    memcpy(mr->secret, reply.secret, sizeof mr->secret);
    return 0;
}

int kedge_reg_mr(struct kedge_session *s, void *addr, size_t length, int access,
                 struct kedge_mr **out)
{
    int status = client_usable(s);
    if (status != 0)
        return status;
    if ((access & ~(REMOTE_ACCESS | IBV_ACCESS_LOCAL_WRITE | KINDS)) != 0)
        return client_fail(-EINVAL, "access %#x holds what a region cannot have", access);
    if ((access & KINDS) == KINDS)
        return client_fail_text(-EINVAL, "KEDGE_MR_FENCED wants a registration for the region, and "
                                         "KEDGE_MR_LEASE_ONLY none: leave one of them away");
    if ((access & KINDS) != 0 && (access & REMOTE_ACCESS) == 0)
        return client_fail(-EINVAL,
                           "%s is about peers that may use a region: give it remote "
                           "access, or leave it away",
                           access & KEDGE_MR_FENCED ? "KEDGE_MR_FENCED" : "KEDGE_MR_LEASE_ONLY");
    int arena = length == 0 ? -1 : arena_of(s, addr, length);
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
                            .kind = (access & KEDGE_MR_FENCED ? KEDGE_REG_FENCED : 0) |
                                    (access & KEDGE_MR_LEASE_ONLY ? KEDGE_REG_LEASE_ONLY : 0),
                            .arena = (uint32_t)arena};
    if (mr->access != 0)
        status = publish(mr);
    if (status != 0) {
        free(mr);
        return status;
    }
    mr->next = s->mrs;
    mr->link = &s->mrs;
    if (mr->next != NULL)
        mr->next->link = &mr->next;
    s->mrs = mr;
    *out = mr;
    return 0;
}

static int withdraw(struct kedge_mr *mr)
{
    struct kedge_session *s = mr->session;
    struct client_reply reply;
    struct kedge_sq_desc d = {.op = KEDGE_OP_DEREG_MR, .dereg_mr = {.vkey = mr->vkey}};
    int status;
    if (mr->withdraw_tag != 0 && mr->withdraw_tag == s->owed_tag) {
        status = client_usable(s);
        if (status == 0)
            status = client_request_again(s, &reply);
    } else if (mr->withdraw_tag != 0) {
        status = 0; /* its late answer was met by another request: the lane had done it */
    } else {
        status = client_request(s, &d, &reply);
    }
    /* Only if it was our own request that ran out of time, not one before it. */
    if (status == -ETIMEDOUT && d.dereg_mr.tag != 0 && d.dereg_mr.tag == s->owed_tag)
        mr->withdraw_tag = s->tag;
    return status;
}

int kedge_dereg_mr(struct kedge_mr *mr)
{
    int status = client_usable(mr->session);
    if (status == -EPERM)
        return status;
    if (mr->access != 0)
        status = withdraw(mr);
    else
        status = 0;
    if (status == -ETIMEDOUT)
        return status; /* it is still there, to be tried again */
    *mr->link = mr->next;
    if (mr->next != NULL)
        mr->next->link = mr->link;
    free(mr);
    return status;
}

uint32_t kedge_mr_lkey(const struct kedge_mr *mr)
{
    return mr->arena + 1;
}

uint32_t kedge_mr_rkey(const struct kedge_mr *mr)
{
    return mr->vkey;
}

static int revoked(void)
{
    return client_fail(-EACCES, "%s", kedge_reason_str(KEDGE_REASON_REVOKED));
}

int kedge_mr_status(struct kedge_mr *mr)
{
    struct kedge_session *s = mr->session;
    struct client_reply reply;
    struct kedge_sq_desc d = {.op = KEDGE_OP_MR_STATUS, .dereg_mr = {.vkey = mr->vkey}};
    int status = client_usable(s);
    if (status != 0)
        return status;
    if (mr->revoked)
        return revoked();
    /* The agent counts what it revokes of the session: nothing new, nothing to ask. */
    uint32_t seen = atomic_load_explicit(&s->ro->revoked, memory_order_acquire);
    if (mr->access == 0 || seen == mr->revoked_seen)
        return 0;
    status = client_request(s, &d, &reply);
    if (status == 0)
        mr->revoked_seen = seen;
    mr->revoked = status == -EACCES;
    return status;
}

int kedge_mr_export(const struct kedge_mr *mr, char *text, size_t size)
{
    if (mr->revoked)
        return revoked();
    if (size < KEDGE_TOKEN_MAX)
        return client_fail(-ENOSPC, "a token takes %d bytes", KEDGE_TOKEN_MAX);
    if (mr->access == 0)
        return client_fail_text(-EINVAL, "a region without remote access cannot be exported");
    struct kedge_token t = {.pool = mr->session->pool,
                            .access = (uint16_t)access_flags(mr->access),
                            .vkey = mr->vkey,
                            .addr = (uintptr_t)mr->addr,
                            .length = mr->length};
    memcpy(t.gid, mr->session->gid, sizeof t.gid);
    memcpy(t.secret, mr->secret, sizeof t.secret);
    kedge_token_format(&t, text);
    return 0;
}

int kedge_import(struct kedge_session *s, const char *text, struct kedge_remote *out)
{
    struct kedge_token t;
    struct client_reply reply;
    int status = client_usable(s);
    if (status != 0)
        return status;
    if (kedge_token_parse(text, &t) != 0)
        return client_fail_text(-EINVAL, "the text is no token, or it is damaged");
    if (t.pool != s->pool)
        return client_fail(-EXDEV,
                           "the region is in pool number %u and this session in %u, which are kept "
                           "apart: both workers must be of one pool",
                           t.pool, s->pool);
    struct kedge_sq_desc d = {.op = KEDGE_OP_IMPORT, .import = {.vkey = t.vkey}};
    memcpy(d.import.secret, t.secret, sizeof d.import.secret);
    /* While there is room for certain the answer can only be yes, and whatever is posted comes
     * after the request: it is not waited for. */
    status = s->imports < KEDGE_SESSION_IMPORTS ? client_ask(s, &d) : client_request(s, &d, &reply);
    s->imports++;
    if (status != 0)
        return status;
    *out = (struct kedge_remote){
        .addr = t.addr, .length = t.length, .rkey = t.vkey, .access = access_of(t.access)};
    memcpy(out->gid, t.gid, sizeof out->gid);
    return 0;
}
