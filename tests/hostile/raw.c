/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side of the protocol, without any of libkedge's manners. */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "hostile.h"
#include "schema/peers.h"
#include "schema/phase.h"

enum { ANSWER_MS = 20000, STEP_US = 50 };

int raw_dial(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct timeval t = {.tv_sec = ANSWER_MS / 1000};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
    if (connect(fd, (const struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    int status = -errno;
    close(fd);
    return status;
}

int raw_send(int socket, void *message, uint16_t type, uint32_t bytes, uint32_t tag)
{
    struct schema_control_header *h = message;
    *h = (struct schema_control_header){.magic = SCHEMA_CONTROL_MAGIC,
                                        .version = SCHEMA_CONTROL_VERSION,
                                        .type = type,
                                        .tag = tag,
                                        .size = bytes};
    return base_fds_send(socket, message, bytes, NULL, 0);
}

static int attach(struct raw *r, struct schema_control_attached *out)
{
    struct schema_control_attach ask = {.left_ms = ANSWER_MS};
    union {
        struct schema_control_attached ok;
        struct schema_control_error error;
        uint8_t bytes[SCHEMA_CONTROL_MAX_BYTES];
    } got;
    size_t bytes;
    unsigned count = 0;
    int status = raw_send(r->socket, &ask, SCHEMA_CONTROL_ATTACH, sizeof ask, 1);
    if (status == 0)
        status = base_fds_recv(r->socket, &got, sizeof got, &bytes, r->fd, SCHEMA_FD_COUNT, &count);
    if (status != 0)
        return status;
    if (got.ok.h.type == SCHEMA_CONTROL_ERROR)
        return got.error.status;
    if (got.ok.h.type != SCHEMA_CONTROL_ATTACHED || count != SCHEMA_FD_COUNT)
        hostile_fail("the agent's answer makes no sense");
    *out = got.ok;
    return 0;
}

static void *map(int fd, uint64_t bytes, bool writable)
{
    void *at;
    int status = base_memfd_map(fd, bytes, writable, false, &at);
    if (status != 0)
        hostile_fail("mapping failed: %s", strerror(-status));
    return at;
}

static void look_at_arena(const struct hostile *h, const struct raw *r)
{
    hostile_look_for_secret(r->arena, r->arena_bytes);
    for (uint64_t i = 0; i < r->arena_bytes; i++)
        if (r->arena[i] != 0 && !(h->stained && r->arena[i] == HOSTILE_STAIN))
            hostile_fail("a new arena has old bytes (0x%02x at %llu)", r->arena[i],
                         (unsigned long long)i);
}

int raw_try(const char *path, struct raw *r)
{
    struct schema_control_attached a = {.session = 0};
    *r = (struct raw){.socket = raw_dial(path), .fd = {-1, -1, -1, -1, -1}};
    if (r->socket < 0)
        return r->socket;
    int status = attach(r, &a);
    if (status != 0) {
        close(r->socket);
        return status;
    }
    r->rw_bytes = a.rw_bytes;
    r->ro_bytes = a.ro_bytes;
    r->peers_bytes = a.peers_bytes;
    r->arena_bytes = a.arena_bytes;
    r->rw = map(r->fd[SCHEMA_FD_RW], a.rw_bytes, true);
    r->ro = map(r->fd[SCHEMA_FD_RO], a.ro_bytes, false);
    r->peers = map(r->fd[SCHEMA_FD_PEERS], a.peers_bytes, false);
    r->arena = map(r->fd[SCHEMA_FD_ARENA], a.arena_bytes, true);
    r->ring = (uint8_t *)r->rw + SCHEMA_SQ_OFFSET;
    return 0;
}

int raw_open(struct hostile *h, struct raw *r)
{
    uint64_t give_up = base_clock_ns() + ANSWER_MS * BASE_NS_PER_MS;
    int status;
    while ((status = raw_try(h->socket, r)) == -EAGAIN || status == -EDQUOT) {
        if (base_clock_ns() > give_up)
            hostile_fail("the agent has had no session for %d s", ANSWER_MS / 1000);
        usleep(1000);
    }
    if (status != 0)
        hostile_fail("attaching: %s", strerror(-status));
    look_at_arena(h, r);
    return 0;
}

bool raw_open_more(struct hostile *h, struct raw *r, int sessions)
{
    for (int tries = 0; tries < 3; tries++) {
        if (raw_try(h->socket, r) == 0)
            return true;
        usleep(100000); /* those ahead may be being made */
    }
    if (sessions == 0)
        hostile_fail("the agent has had no session");
    return false;
}

void raw_close(struct raw *r)
{
    munmap(r->rw, r->rw_bytes);
    munmap((void *)(uintptr_t)r->ro, r->ro_bytes);
    munmap((void *)(uintptr_t)r->peers, r->peers_bytes);
    munmap(r->arena, r->arena_bytes);
    for (int i = 0; i < SCHEMA_FD_COUNT; i++)
        close(r->fd[i]);
    close(r->socket);
}

bool raw_ended(const struct raw *r)
{
    struct pollfd p = {.fd = r->socket, .events = POLLRDHUP};
    return atomic_load(&r->ro->ended) != 0 ||
           (poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0);
}

bool raw_ends_within(const struct raw *r, unsigned ms)
{
    for (uint64_t end = base_clock_ns() + ms * BASE_NS_PER_MS; !raw_ended(r); usleep(STEP_US))
        if (base_clock_ns() > end)
            return false;
    return true;
}

void raw_ring(const struct raw *r)
{
    uint64_t one = 1;
    if (write(r->fd[SCHEMA_FD_DOORBELL], &one, sizeof one) < 0 && errno != EAGAIN)
        hostile_fail("ringing: %s", strerror(errno));
}

void raw_put(struct raw *r, const struct schema_sq_desc *d, const void *extra, uint32_t more)
{
    uint32_t mask = r->ro->sq_slots - 1;
    memcpy(r->ring + (size_t)(r->tail & mask) * SCHEMA_LINE, d, sizeof *d);
    for (uint32_t i = 0; i < more; i++)
        memcpy(r->ring + (size_t)((r->tail + 1 + i) & mask) * SCHEMA_LINE,
               (const uint8_t *)extra + (size_t)i * SCHEMA_LINE, SCHEMA_LINE);
    schema_sq_publish(r->rw, (void *)r->ring, mask, r->tail, r->tail + 1 + more);
    atomic_thread_fence(memory_order_seq_cst);
    r->tail += 1 + more;
    if (atomic_load(&r->ro->doorbell) != 0)
        raw_ring(r);
}

int raw_ask(struct raw *r, struct schema_sq_desc *d, uint64_t value[2])
{
    uint64_t end = base_clock_ns() + ANSWER_MS * BASE_NS_PER_MS;
    d->slots = 1;
    d->connect.tag = ++r->tag;
    raw_put(r, d, NULL, 0);
    while (atomic_load(&r->ro->reply[r->tag % SCHEMA_REPLIES].tag) != r->tag) {
        if (raw_ended(r))
            return -EPIPE;
        if (base_clock_ns() > end)
            hostile_fail("the lane has not answered for %d s", ANSWER_MS / 1000);
    }
    if (value != NULL)
        memcpy(value, r->ro->reply[r->tag % SCHEMA_REPLIES].value,
               sizeof r->ro->reply[r->tag % SCHEMA_REPLIES].value);
    return r->ro->reply[r->tag % SCHEMA_REPLIES].status;
}

int raw_poll(struct raw *r, struct schema_cqe *out, unsigned ms)
{
    const struct schema_cqe *ring =
        (const struct schema_cqe *)(const void *)((const uint8_t *)r->ro + SCHEMA_CQ_OFFSET);
    uint32_t head = atomic_load(&r->rw->cq_head);
    uint64_t end = base_clock_ns() + ms * BASE_NS_PER_MS;
    while (atomic_load(&r->ro->cq_tail) == head) {
        if (raw_ended(r))
            return -EPIPE;
        if (base_clock_ns() > end)
            return -ETIMEDOUT;
    }
    *out = ring[head & (r->ro->cq_slots - 1)];
    atomic_store(&r->rw->cq_head, head + 1);
    return out->status;
}

int raw_connect(struct raw *r)
{
    struct schema_sq_desc d = {.op = SCHEMA_OP_CONNECT, .connect = {.pool = r->ro->pool}};
    uint64_t value[2];
    memcpy(d.connect.gid, r->ro->gid, sizeof d.connect.gid);
    int status = raw_ask(r, &d, value);
    if (status != 0)
        return status;
    struct schema_sq_desc bind = {
        .op = SCHEMA_OP_BIND,
        .slots = 1,
        .bind = {.peer_slot = (uint32_t)value[0], .peer_gen = (uint32_t)value[1]}};
    raw_put(r, &bind, NULL, 0);
    return 0;
}
