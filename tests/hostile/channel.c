/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker can do to whoever makes its completion channel readable, or answers it on its
 * attach socket. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "hostile.h"
#include "schema/record.h"

enum { EPOLLS = 100, COPIES = 100, ANSWER_MS = 20000, NEW_ONE = 64 };

/* 0 and the worker's end, or what the agent said. */
static int open_channel(struct raw *r, int *fd)
{
    struct schema_control_channel ask;
    union {
        struct schema_control_header h;
        struct schema_control_error error;
        uint8_t bytes[SCHEMA_CONTROL_MAX_BYTES];
    } got;
    size_t bytes;
    unsigned count = 0;
    int status = raw_send(r->socket, &ask, SCHEMA_CONTROL_CHANNEL, sizeof ask, ++r->tag);
    if (status == 0)
        status = base_fds_recv(r->socket, &got, sizeof got, &bytes, fd, 1, &count);
    if (status == 0 && got.h.type == SCHEMA_CONTROL_ERROR)
        return got.error.status;
    if (status == 0 && (got.h.type != SCHEMA_CONTROL_CHANNEL_OK || count != 1))
        hostile_fail("the agent's answer makes no sense");
    return status;
}

/* 10,000 watches, and a signal beside. What there is room for. */
static uint32_t crowd_descriptor(int fd, int epoll[EPOLLS], int copy[COPIES])
{
    uint32_t watches = 0;
    for (int i = 0; i < COPIES; i++)
        copy[i] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    for (int i = 0; i < EPOLLS; i++) {
        epoll[i] = epoll_create1(EPOLL_CLOEXEC);
        for (int n = 0; n < COPIES; n++) {
            struct epoll_event e = {.events = EPOLLIN | EPOLLET};
            watches += epoll_ctl(epoll[i], EPOLL_CTL_ADD, copy[n], &e) == 0;
        }
    }
    (void)fcntl(fd, F_SETOWN, getpid());
    (void)fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC);
    if (watches < EPOLLS * COPIES / 2)
        hostile_fail("%u watches alone: max_user_watches, or the limit of open files, is less",
                     watches);
    return watches;
}

static void let_go(int fd, int epoll[EPOLLS], int copy[COPIES])
{
    for (int i = 0; i < EPOLLS; i++)
        close(epoll[i]);
    for (int i = 0; i < COPIES; i++)
        close(copy[i]);
    close(fd);
}

/* Its own end is shut, or full, or has what it may not have. */
static void spoil_end(struct hostile *h, int fd)
{
    static const char junk[4096];
    switch (hostile_random(h) % 3) {
    case 0:
        if (send(fd, junk, sizeof junk, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
            hostile_fail("the agent's end takes what a worker sends");
        break;
    case 1:
        (void)shutdown(fd, SHUT_RD);
        break;
    default:
        break;
    }
}

static void connect_to_itself(struct raw *r, struct schema_sq_desc *d)
{
    uint64_t value[2];
    struct schema_sq_desc reg = {.op = SCHEMA_OP_REG_MR,
                                 .reg_mr = {.length = 4096, .access = SCHEMA_RECORD_WRITE}};
    if (raw_connect(r) != 0 || raw_ask(r, &reg, value) != 0)
        hostile_fail("registering own memory failed");
    *d =
        (struct schema_sq_desc){.op = SCHEMA_OP_WRITE,
                                .slots = 1,
                                .num_sge = 1,
                                .flags = SCHEMA_OP_SIGNALED,
                                .post = {.vkey = (uint32_t)value[0], .length = 8, .offset = 65536}};
}

/* Whoever makes its descriptor readable, or closes it, has the kernel tell ten thousand who watch
 * it; and it arms anew with each completion, and gets another one now and then. */
void attack_crowded_descriptor(struct hostile *h)
{
    static int epoll[EPOLLS], copy[COPIES];
    struct raw r;
    struct schema_sq_desc d;
    int fd = -1;
    uint32_t watches = 0, armed = 1;
    (void)signal(SIGIO, SIG_IGN);
    raw_open(h, &r);
    connect_to_itself(&r, &d);
    if (open_channel(&r, &fd) != 0)
        hostile_fail("the agent gives no channel");
    watches = crowd_descriptor(fd, epoll, copy);
    hostile_begin(h);
    while (!hostile_over(h)) {
        struct schema_cqe e;
        char bytes[64];
        atomic_store(&r.rw->armed, armed += 2);
        if (r.tail - atomic_load(&r.ro->sq_head) < r.ro->sq_slots)
            raw_put(&r, &d, NULL, 0);
        while (raw_poll(&r, &e, 0) >= 0)
            h->did++;
        (void)recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (hostile_random(h) % NEW_ONE != 0 || h->did < NEW_ONE)
            continue;
        int next;
        spoil_end(h, fd);
        if (open_channel(&r, &next) != 0) { /* the earlier ones are slow to close */
            h->errors++;
            usleep(1000);
            continue;
        }
        let_go(fd, epoll, copy);
        fd = next;
        watches = crowd_descriptor(fd, epoll, copy);
    }
    raw_close(&r);
    let_go(fd, epoll, copy);
    printf("%u watches on its descriptor\n", watches);
}

/* Asks for what there is none of, until it is ended. */
static void ask_until_ended(struct hostile *h, struct raw *r)
{
    while (!hostile_over(h)) {
        if (raw_ended(r)) {
            h->cut_off++;
            return;
        }
        h->did += raw_find_node(r, "nobody") != -EPIPE;
    }
}

/* Whoever answers it has the kernel tell ten thousand who watch its attach socket. It comes again
 * as soon as it is let in. */
void attack_crowded_socket(struct hostile *h)
{
    static int epoll[EPOLLS], copy[COPIES];
    uint32_t watches = 0;
    int refusal = 0;
    (void)signal(SIGIO, SIG_IGN);
    hostile_begin(h);
    while (!hostile_over(h)) {
        struct raw r;
        const int status = raw_try(h->socket, &r);
        if (status != 0) {
            refusal = status;
            h->errors++;
            usleep(1000);
            continue;
        }
        const int fd = fcntl(r.socket, F_DUPFD_CLOEXEC, 0);
        watches = crowd_descriptor(fd, epoll, copy);
        ask_until_ended(h, &r);
        raw_close(&r);
        let_go(fd, epoll, copy);
    }
    if (watches == 0)
        hostile_fail("it was never let in: asked %u times, the last time %d", (unsigned)h->errors,
                     refusal);
    printf("%u watches on its attach socket\n", watches);
}
