/* SPDX-License-Identifier: Apache-2.0 */
/* An agent inside the test: it serves the attach socket with memory that it made, and the test
 * plays the lane on the mapped rings (fake_lane.h). */
#ifndef TESTS_UNIT_LIBCLIENT_FAKE_AGENT_H
#define TESTS_UNIT_LIBCLIENT_FAKE_AGENT_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <kedge_msg.h>

#include "../check_main.h"
#include "base/fds.h"
#include "schema/control.h"
#include "schema/peers.h"
#include "schema/session.h"

enum { SQ_SLOTS = 16, CQ_SLOTS = 8, MAX_VQPS = 4, MAX_PEERS = 8, ARENA_BYTES = 1 << 16 };

struct fake_agent {
    char dir[64], path[96];
    int listener, connection, fds[SCHEMA_FD_COUNT];
    struct schema_session_rw *rw;
    struct schema_session_ro *ro;
    void *peers;
    uint8_t *arena;
    struct schema_control_attached attached; /* what is answered to ATTACH; a test may spoil it */
    unsigned send_fds;
    struct schema_control_error error; /* answered instead, if its status is set */
    pthread_t thread;
    struct schema_sq_desc asked;     /* by fake_agent_answer(): the request, */
    uint8_t extra[SCHEMA_MAX_EXTRA]; /* and what stood behind it */
    struct schema_reply reply;       /* and its answer */
    int delay_us;
    int timeout_ms;   /* agent_timeout_ms of who opens a session */
    unsigned refused; /* attaches */
};

#define MAKE_MEMORY(what, bytes, to, map)                                                          \
    ck_assert_int_eq(base_memfd_new("m", bytes, BASE_MEMFD_##to, a->fds + SCHEMA_FD_##what, map), 0)

static inline void fake_agent_start(struct fake_agent *a)
{
    struct sockaddr_un u = {.sun_family = AF_UNIX};
    void *rw, *ro, *arena;
    size_t rw_bytes = SCHEMA_SESSION_RW_BYTES(SQ_SLOTS),
           ro_bytes = SCHEMA_SESSION_RO_BYTES(CQ_SLOTS);
    memset(a, 0, sizeof *a);
    snprintf(a->dir, sizeof a->dir, "/tmp/kedge-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(a->dir));
    snprintf(a->path, sizeof a->path, "%s/agent.sock", a->dir);
    a->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    memcpy(u.sun_path, a->path, strlen(a->path));
    ck_assert_int_eq(bind(a->listener, (struct sockaddr *)&u, sizeof u), 0);
    ck_assert_int_eq(listen(a->listener, 4), 0);
    MAKE_MEMORY(RW, rw_bytes, WRITE, &rw);
    MAKE_MEMORY(RO, ro_bytes, READ, &ro);
    MAKE_MEMORY(PEERS, schema_peers_bytes(MAX_PEERS), SEALED, &a->peers);
    MAKE_MEMORY(ARENA, ARENA_BYTES, WRITE, &arena);
    a->fds[SCHEMA_FD_DOORBELL] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    a->rw = rw;
    a->ro = ro;
    a->arena = arena;
    schema_peers_format(a->peers, MAX_PEERS, 1);
    a->ro->magic = SCHEMA_SESSION_MAGIC;
    a->ro->version = SCHEMA_SESSION_VERSION;
    a->ro->sq_slots = SQ_SLOTS;
    a->ro->cq_slots = CQ_SLOTS;
    a->ro->max_vqps = MAX_VQPS;
    a->ro->max_inflight = SQ_SLOTS;
    a->ro->pool = 1;
    a->ro->gid[0] = 0xfd;
    /* So that all tests wrap. */
    a->ro->sq_head = a->ro->cq_tail = a->rw->sq_tail = a->rw->cq_head = UINT32_MAX - 2;
    a->attached = (struct schema_control_attached){.rw_bytes = rw_bytes,
                                                   .ro_bytes = ro_bytes,
                                                   .peers_bytes = schema_peers_bytes(MAX_PEERS),
                                                   .arena_bytes = ARENA_BYTES,
                                                   .session = 77,
                                                   .tenant = 5,
                                                   .features = SCHEMA_FEATURE_PHASES};
    a->send_fds = SCHEMA_FD_COUNT;
}

/* Answers one message; header fields are the question's. */
static inline void fake_agent_send(int socket, struct schema_control_header *h, uint32_t tag,
                                   uint16_t type, uint32_t size, const int *fds, unsigned count)
{
    *h = (struct schema_control_header){.magic = SCHEMA_CONTROL_MAGIC,
                                        .version = SCHEMA_CONTROL_VERSION,
                                        .type = type,
                                        .tag = tag,
                                        .size = size};
    ck_assert_int_eq(base_fds_send(socket, h, size, fds, count), 0);
}

static inline void *fake_agent_serve_attach(void *argument)
{
    struct fake_agent *a = argument;
    struct schema_control_attach m;
    size_t bytes;
    unsigned count;
    a->connection = accept(a->listener, NULL, NULL);
    ck_assert_int_eq(base_fds_recv(a->connection, &m, sizeof m, &bytes, NULL, 0, &count), 0);
    ck_assert_int_eq(schema_control_check(&m, bytes), 0);
    if (a->error.status != 0)
        fake_agent_send(a->connection, &a->error.h, m.h.tag, SCHEMA_CONTROL_ERROR, sizeof a->error,
                        NULL, 0);
    else
        fake_agent_send(a->connection, &a->attached.h, m.h.tag, SCHEMA_CONTROL_ATTACHED,
                        sizeof a->attached, a->fds, a->send_fds);
    return NULL;
}

static inline int fake_agent_try_open(struct fake_agent *a, struct kedge_session **out)
{
    struct kedge_open_attr attr = {.socket = a->path, .agent_timeout_ms = a->timeout_ms};
    ck_assert_int_eq(pthread_create(&a->thread, NULL, fake_agent_serve_attach, a), 0);
    int status = kedge_open(&attr, out);
    pthread_join(a->thread, NULL);
    return status;
}

static inline struct kedge_session *fake_agent_open(struct fake_agent *a)
{
    struct kedge_session *s = NULL;
    int status = fake_agent_try_open(a, &s);
    ck_assert_msg(status == 0, "%d: %s", status, kedge_last_error());
    return s;
}

static inline void fake_agent_stop(struct fake_agent *a)
{
    for (int i = 0; i < SCHEMA_FD_COUNT; i++)
        close(a->fds[i]);
    close(a->connection);
    close(a->listener);
    unlink(a->path);
    rmdir(a->dir);
    munmap(a->rw, SCHEMA_SESSION_RW_BYTES(SQ_SLOTS));
    munmap(a->ro, SCHEMA_SESSION_RO_BYTES(CQ_SLOTS));
    munmap(a->peers, schema_peers_bytes(MAX_PEERS));
    munmap(a->arena, ARENA_BYTES);
}

#endif
