/* SPDX-License-Identifier: Apache-2.0 */
/* The attach socket: the handshake, what comes with it, and the few messages after it. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/text.h"
#include "schema/peers.h"

enum { MAX_SLOTS = 1 << 24, MAX_VQPS = 1 << 16 };
#define RAISE_NOFILE                                                                               \
    " (raise this process's RLIMIT_NOFILE: a session takes up to seven descriptors)"

static void begin_message(struct kedge_session *s)
{
    s->message_until_ns = base_clock_ns() + CLIENT_TIMEOUT_MS * BASE_NS_PER_MS;
}

/* 0 would be no limit. */
static int set_limit(int fd, uint64_t us)
{
    const struct timeval t = {.tv_sec = (time_t)(us / 1000000),
                              .tv_usec = (suseconds_t)(us % 1000000)};
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) == 0 &&
                   setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t) == 0
               ? 0
               : -errno;
}

/* What blocks on the socket next ends when the message's time is over. 0 or -errno. */
static int limit_time(const struct kedge_session *s, int fd)
{
    const uint64_t now = base_clock_ns();
    if (now >= s->message_until_ns)
        return -ETIMEDOUT;
    return set_limit(fd, (s->message_until_ns - now + 999) / 1000);
}

static int refuse_socket(int status, const char *path)
{
    if (status == -EPROTOTYPE)
        return client_fail(
            status,
            "%s is no socket that workers attach to, as an admin_socket is not: name "
            "the agent's `socket` (KEDGE_SOCKET)",
            path);
    if (status == -EACCES)
        return client_fail(
            status,
            "%s cannot be opened by uid %u: %s (its mode and those of its directories "
            "say who may, and its agent keeps a uid of no tenant out that comes too often)",
            path, (unsigned)geteuid(), strerror(-status));
    return client_fail(status, "no agent at %s: %s (is kedge-agentd running?)", path,
                       strerror(-status));
}

static int connect_socket(struct kedge_session *s, const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length == 0)
        return client_fail_text(-EINVAL, "the socket's path is empty: name one, or NULL");
    memcpy(a.sun_path, path, length);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return client_fail(-errno, "making a socket failed: %s%s", strerror(errno),
                           errno == EMFILE ? RAISE_NOFILE : "");
    int status = limit_time(s, fd);
    if (status == 0 && connect(fd, (const struct sockaddr *)&a, sizeof a) != 0)
        status = errno == EAGAIN ? -ETIMEDOUT : -errno;
    if (status != 0) {
        close(fd);
        return refuse_socket(status, path);
    }
    s->socket = fd;
    return 0;
}

static void close_all(const int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
}

/* One message that is well formed, and its descriptors. */
static int receive_message(const struct kedge_session *s, void *message, int *fds, unsigned *count)
{
    size_t bytes;
    int status;
    do {
        status = limit_time(s, s->socket);
        if (status == -ETIMEDOUT) /* of this process too: what has come meanwhile is an answer */
            status = set_limit(s->socket, 1);
        if (status == 0)
            status = base_fds_recv(s->socket, message, SCHEMA_CONTROL_MAX_BYTES, &bytes, fds,
                                   SCHEMA_CONTROL_MAX_FDS, count);
    } while (status == -EINTR);
    if (status == -EAGAIN || status == -ETIMEDOUT)
        return client_fail(-ETIMEDOUT, "the agent did not answer within %d s",
                           CLIENT_TIMEOUT_MS / 1000);
    if (status == -EMFILE)
        return client_fail_text(status, "the agent's descriptors do not fit" RAISE_NOFILE);
    if (status != 0)
        return client_fail(status, "the agent closed the connection: %s", strerror(-status));
    status = schema_control_check(message, bytes);
    if (status == 0)
        return 0;
    close_all(fds, *count);
    if (status == -EPROTONOSUPPORT)
        return client_fail(status, SCHEMA_CONTROL_VERSIONS,
                           ((const struct schema_control_header *)message)->version,
                           SCHEMA_CONTROL_VERSION);
    return client_fail_text(status, "the agent's message makes no sense");
}

union control_message {
    struct schema_control_header h;
    struct schema_control_error error;
    uint8_t bytes[SCHEMA_CONTROL_MAX_BYTES];
};

/* What is wanted in answer: a message of one type and size, with so many descriptors. */
struct wanted_answer {
    uint16_t type;
    size_t bytes;
    void *message; /* where it goes */
    unsigned fds;
};

/* held: a descriptor that keeps a place free until the message is out, or -1. */
static int send_message(struct kedge_session *s, struct schema_control_header *m, size_t bytes,
                        int held)
{
    m->magic = SCHEMA_CONTROL_MAGIC;
    m->version = SCHEMA_CONTROL_VERSION;
    m->tag = ++s->message_tag;
    m->size = (uint32_t)bytes;
    int status = limit_time(s, s->socket);
    if (status == 0)
        status = base_fds_send(s->socket, m, bytes, NULL, 0);
    if (held >= 0)
        close(held);
    if (status != 0 && status != -EPIPE && status != -ECONNRESET) /* then it may have said why */
        return client_fail(status == -EAGAIN ? -ETIMEDOUT : status,
                           "sending to the agent failed: %s", strerror(-status));
    return 0;
}

/* The answer to the message of that tag, or what the agent says unasked before it closes. */
static int receive_answer(const struct kedge_session *s, uint32_t tag, union control_message *got,
                          int *fds, unsigned *count)
{
    for (;;) {
        const int status = receive_message(s, got, fds, count);
        if (status != 0)
            return status;
        if (got->h.tag == tag || (got->h.tag == 0 && got->h.type == SCHEMA_CONTROL_ERROR))
            return 0;
        close_all(fds, *count); /* the late answer to a question that was given up */
    }
}

/* After begin_message(), sends and receives. fds has room for SCHEMA_CONTROL_MAX_FDS, and has
 * those that are wanted after a success. held: as of send_message(). */
static int exchange_messages(struct kedge_session *s, struct schema_control_header *m, size_t bytes,
                             int held, const struct wanted_answer *wanted, int *fds)
{
    union control_message got;
    unsigned count = 0;
    int status = send_message(s, m, bytes, held);
    if (status == 0)
        status = receive_answer(s, m->tag, &got, fds, &count);
    if (status != 0)
        return status;
    if (got.h.type == wanted->type && got.h.size == wanted->bytes && count == wanted->fds) {
        memcpy(wanted->message, &got, wanted->bytes);
        return 0;
    }
    close_all(fds, count);
    if (got.h.type == SCHEMA_CONTROL_ERROR) {
        s->retry_ms = got.error.retry_ms;
        return client_fail(got.error.status, "%s", got.error.text);
    }
    return client_fail_text(-EPROTO, "the agent's answer is not what was asked for");
}

int client_message(struct kedge_session *s, struct schema_control_header *message, size_t bytes,
                   uint16_t type, void *answer, size_t answer_bytes, uint16_t answer_type, int *fd)
{
    int fds[SCHEMA_CONTROL_MAX_FDS], held = -1;
    const struct wanted_answer wanted = {
        .type = answer_type, .bytes = answer_bytes, .message = answer, .fds = fd != NULL};
    message->type = type;
    begin_message(s);
    if (fd != NULL && (held = fcntl(s->socket, F_DUPFD_CLOEXEC, 0)) < 0)
        return client_fail(-errno, "no descriptor can be had for what the agent is asked for: %s%s",
                           strerror(errno), errno == EMFILE ? RAISE_NOFILE : "");
    int status = exchange_messages(s, message, bytes, held, &wanted, fds);
    if (status == 0 && fd != NULL)
        *fd = fds[0];
    return status;
}

static int map_failed(const char *what, int status)
{
    return client_fail(status, "mapping the agent's %s failed: %s", what, strerror(-status));
}

int client_arena_map(struct kedge_session *s, uint32_t index)
{
    struct client_arena *a = &s->arenas[index];
    void *addr;
    int status = base_memfd_map(a->unmapped - 1, a->bytes, true, false, &addr);
    if (status != 0)
        return map_failed("arena", status);
    status = client_heap_init(&a->heap, a->bytes);
    if (status != 0) {
        munmap(addr, a->bytes);
        return client_fail(status, "an arena of %zu bytes cannot be managed", a->bytes);
    }
    a->addr = addr;
    close(a->unmapped - 1);
    a->unmapped = 0;
    return 0;
}

int client_arena_add(struct kedge_session *s, uint32_t index, uint64_t bytes, int fd)
{
    if (index >= CLIENT_MAX_ARENAS || s->arenas[index].addr != NULL ||
        s->arenas[index].unmapped != 0) {
        close(fd);
        return client_fail(-EPROTO, "the agent's arena has the impossible number %u", index);
    }
    s->arenas[index] = (struct client_arena){.bytes = bytes, .unmapped = fd + 1};
    return client_arena_map(s, index);
}

static bool is_power_of_two(uint32_t n, uint32_t least)
{
    return n >= least && n <= MAX_SLOTS && (n & (n - 1)) == 0;
}

/* The agent's page must describe what was mapped; then its numbers are copied, once. */
static int take_geometry(struct kedge_session *s)
{
    const struct schema_session_ro *ro = s->ro;
    uint32_t sq_slots = ro->sq_slots, cq_slots = ro->cq_slots, max_vqps = ro->max_vqps;
    if (ro->magic != SCHEMA_SESSION_MAGIC)
        return client_fail_text(-EPROTO, "what the agent gave is no session");
    if (ro->version != SCHEMA_SESSION_VERSION)
        return client_fail(
            -EPROTONOSUPPORT,
            "the agent's sessions have version %u, this library's %u: run the worker "
            "with the libkedge of its host's Kedge",
            ro->version, SCHEMA_SESSION_VERSION);
    /* The largest descriptor takes three slots, and its BIND one. */
    if (!is_power_of_two(sq_slots, 4) || !is_power_of_two(cq_slots, 1) || max_vqps == 0 ||
        max_vqps > MAX_VQPS || s->rw_bytes < SCHEMA_SESSION_RW_BYTES(sq_slots) ||
        s->ro_bytes < SCHEMA_SESSION_RO_BYTES(cq_slots))
        return client_fail(-EPROTO, "the agent's session has an impossible geometry: %u, %u, %u",
                           sq_slots, cq_slots, max_vqps);
    s->sq = (struct schema_sq_desc *)((uint8_t *)s->rw + SCHEMA_SQ_OFFSET);
    s->cq = (const struct schema_cqe *)((const uint8_t *)ro + SCHEMA_CQ_OFFSET);
    s->sq_mask = sq_slots - 1;
    s->cq_mask = cq_slots - 1;
    s->sq_tail = s->sq_published = s->sq_head_seen = s->rung_tail = atomic_load(&ro->sq_head);
    s->cq_head = s->cq_tail_seen = atomic_load(&ro->cq_tail);
    for (uint32_t i = 0; i < SCHEMA_REPLIES; i++) { /* so that the first tag differs from all */
        uint32_t seen = atomic_load(&ro->reply[i].tag);
        s->tag = seen > s->tag ? seen : s->tag;
    }
    s->max_vqps = max_vqps;
    s->max_inflight = ro->max_inflight;
    s->pool = ro->pool;
    memcpy(s->gid, ro->gid, sizeof s->gid);
    return 0;
}

/* Maps all that came. Takes the descriptors; what is mapped stays for client_detach(). */
static int map_session(struct kedge_session *s, const struct schema_control_attached *a,
                       const int *fds)
{
    void *map;
    int arena_fd = fds[SCHEMA_FD_ARENA];
    int status = base_memfd_map(fds[SCHEMA_FD_RW], a->rw_bytes, true, true, &map);
    s->doorbell = fds[SCHEMA_FD_DOORBELL];
    if (status == 0) {
        s->rw = map;
        s->rw_bytes = a->rw_bytes;
        status = base_memfd_map(fds[SCHEMA_FD_RO], a->ro_bytes, false, true, &map);
    }
    if (status == 0) {
        s->ro = map;
        s->ro_bytes = a->ro_bytes;
        status = base_memfd_map(fds[SCHEMA_FD_PEERS], a->peers_bytes, false, false, &map);
    }
    if (status == 0) {
        s->peers = map;
        s->peers_bytes = a->peers_bytes;
        status = schema_peers_check(s->peers, s->peers_bytes);
    }
    if (status != 0) {
        map_failed("session", status);
    } else if (s->rw_bytes < sizeof *s->rw || s->ro_bytes < sizeof *s->ro) {
        status = client_fail_text(-EPROTO, "the agent's session is too small");
    } else {
        status = take_geometry(s);
    }
    if (status == 0) {
        status = client_arena_add(s, a->arena, a->arena_bytes, arena_fd);
        arena_fd = -1;
    }
    close(fds[SCHEMA_FD_RW]);
    close(fds[SCHEMA_FD_RO]);
    close(fds[SCHEMA_FD_PEERS]);
    if (arena_fd >= 0)
        close(arena_fd);
    return status;
}

/* attr's string, else the environment's, else the last resort, copied with its NUL. */
static int copy_option(char *to, size_t size, const char *given, const char *variable,
                       const char *what)
{
    const char *text = given;
    if (text == NULL && variable != NULL)
        text = getenv(variable);
    if (text == NULL)
        return 0;
    size_t length = strlen(text);
    if (length >= size)
        return client_fail(-EINVAL, "the %s has %zu bytes: at most %zu are possible", what, length,
                           size - 1);
    memcpy(to, text, length);
    return 0;
}

/* For how long a lane may stand still before that is said. */
static int choose_patience(struct kedge_session *s, int given_ms)
{
    const char *text = getenv("KEDGE_AGENT_TIMEOUT_MS");
    uint64_t ms = CLIENT_PATIENCE_MS;
    if (given_ms > 0)
        ms = (uint64_t)given_ms;
    else if (given_ms == 0 && text != NULL && base_parse_u64(text, 0, INT32_MAX, &ms) != 0)
        return client_fail(
            -EINVAL,
            "KEDGE_AGENT_TIMEOUT_MS is \"%.32s\": it is a number of milliseconds, or "
            "0 for no limit",
            text);
    s->patience_ns = ms * BASE_NS_PER_MS;
    if (given_ms < 0 || ms == 0)
        s->patience_ns = UINT64_MAX;
    else if (ms < CLIENT_PATIENCE_LEAST_MS)
        s->patience_ns = CLIENT_PATIENCE_LEAST_MS * BASE_NS_PER_MS;
    return 0;
}

/* A token that somebody read from a file may have its newline, which nobody sees. */
static int explain_refusal(int status, const char *token)
{
    const size_t length = strlen(token);
    char said[512];
    if (status != -EACCES || length == 0 || strchr(" \t\r\n", token[length - 1]) == NULL)
        return status;
    snprintf(said, sizeof said, "%s", kedge_last_error());
    return client_fail(status, "%.400s (the token that was shown ends with a blank or a newline)",
                       said);
}

/* By which the agent knows when it is given up, also where it reads the message late. */
static void say_when(const struct kedge_session *s, struct schema_control_attach *ask)
{
    ask->sent_ns = base_clock_ns();
    if (ask->sent_ns < s->message_until_ns)
        ask->left_ms = (uint32_t)((s->message_until_ns - ask->sent_ns) / BASE_NS_PER_MS);
}

int client_attach(struct kedge_session *s, const struct kedge_open_attr *attr)
{
    static const struct kedge_open_attr none;
    struct schema_control_attach ask = {.h = {.type = SCHEMA_CONTROL_ATTACH}};
    struct schema_control_attached answer;
    int fds[SCHEMA_CONTROL_MAX_FDS];
    char path[sizeof((struct sockaddr_un *)0)->sun_path] = KEDGE_DEFAULT_SOCKET;
    const char *named = getenv("KEDGE_SOCKET");
    if (attr == NULL)
        attr = &none;
    const char *socket_path = attr->socket;
    if (socket_path == NULL && named != NULL && named[0] != '\0')
        socket_path = named;
    if (socket_path != NULL)
        memset(path, 0, sizeof path);
    int status = choose_patience(s, attr->agent_timeout_ms);
    if (status == 0)
        status = copy_option(path, sizeof path, socket_path, NULL, "socket's path");
    if (status == 0)
        status = copy_option(ask.pool, sizeof ask.pool, attr->pool, NULL, "pool's name");
    if (status == 0)
        status =
            copy_option(ask.token, sizeof ask.token, attr->token, "KEDGE_WORKER_TOKEN", "token");
    begin_message(s);
    if (status == 0)
        status = connect_socket(s, path);
    if (status == 0) {
        say_when(s, &ask);
        const struct wanted_answer wanted = {.type = SCHEMA_CONTROL_ATTACHED,
                                             .bytes = sizeof answer,
                                             .message = &answer,
                                             .fds = SCHEMA_FD_COUNT};
        status = exchange_messages(s, &ask.h, sizeof ask, -1, &wanted, fds);
        status = explain_refusal(status, ask.token);
    }
    explicit_bzero(ask.token, sizeof ask.token);
    if (status != 0)
        return status;
    s->session = answer.session;
    s->tenant = answer.tenant;
    s->features = answer.features;
    return map_session(s, &answer, fds);
}

static void unmap_memory(const void *map, uint64_t bytes)
{
    if (map != NULL)
        munmap((void *)(uintptr_t)map, bytes);
}

void client_detach(struct kedge_session *s)
{
    /* A forked child may hold the socket too: shutdown() ends the session all the same. A child
     * that closes its copy must not. */
    if (s->socket >= 0 && *s->alive != 0)
        shutdown(s->socket, SHUT_RDWR);
    if (s->socket >= 0)
        close(s->socket);
    if (s->doorbell >= 0)
        close(s->doorbell);
    if (s->channel >= 0)
        close(s->channel);
    unmap_memory(s->rw, s->rw_bytes);
    unmap_memory(s->ro, s->ro_bytes);
    unmap_memory(s->peers, s->peers_bytes);
    for (uint32_t i = 0; i < CLIENT_MAX_ARENAS; i++) {
        unmap_memory(s->arenas[i].addr, s->arenas[i].bytes);
        client_heap_fini(&s->arenas[i].heap);
        if (s->arenas[i].unmapped != 0)
            close(s->arenas[i].unmapped - 1);
    }
}
