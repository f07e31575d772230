/* SPDX-License-Identifier: Apache-2.0 */
/* The attach socket: too much, too little, and nonsense. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fds.h"
#include "hostile.h"

enum { CUT_OFF_MS = 20000, CONNECTIONS = 3000 };

static void count_answers(struct hostile *h, int socket)
{
    union {
        struct schema_control_header h;
        uint8_t bytes[SCHEMA_CONTROL_MAX_BYTES];
    } got;
    int fds[SCHEMA_CONTROL_MAX_FDS];
    size_t bytes;
    unsigned count = 0;
    (void)fcntl(socket, F_SETFL, O_NONBLOCK);
    while (base_fds_recv(socket, &got, sizeof got, &bytes, fds, SCHEMA_CONTROL_MAX_FDS, &count) ==
           0) {
        h->errors += got.h.type == SCHEMA_CONTROL_ERROR;
        for (unsigned i = 0; i < count; i++)
            close(fds[i]);
        count = 0;
    }
}

/* Asks without an end, and reads no answer until it is cut off. */
void attack_flood(struct hostile *h)
{
    while (!hostile_over(h)) {
        struct raw r;
        raw_open(h, &r);
        (void)fcntl(r.socket, F_SETFL, O_NONBLOCK);
        for (int i = 0; i < 100000 && !raw_ended(&r); i++) {
            struct schema_control_resolve name = {.name = "nobody"};
            struct schema_control_arena arena = {.bytes =
                                                     hostile_random(h) >> hostile_random(h) % 64};
            int status =
                i % 2 == 0
                    ? raw_send(r.socket, &name, SCHEMA_CONTROL_RESOLVE, sizeof name, (uint32_t)i)
                    : raw_send(r.socket, &arena, SCHEMA_CONTROL_ARENA, sizeof arena, (uint32_t)i);
            h->did++;
            if (status != 0 && status != -EAGAIN)
                break;
        }
        if (!raw_ends_within(&r, CUT_OFF_MS))
            hostile_fail("a flood of messages did not end the session");
        h->cut_off++;
        count_answers(h, r.socket);
        raw_close(&r);
    }
}

static bool closes_within(int socket, unsigned ms)
{
    struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    uint8_t bytes[512];
    (void)setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    ssize_t n;
    while ((n = recv(socket, bytes, sizeof bytes, 0)) > 0) {
    }
    return n == 0 || errno == ECONNRESET || errno == EPIPE;
}

void attack_garbage(struct hostile *h)
{
    while (!hostile_over(h)) {
        uint8_t packet[2048];
        size_t bytes = 1 + hostile_random(h) % sizeof packet;
        int fd = raw_dial(h->socket);
        if (fd < 0)
            hostile_fail("connecting: %s", strerror(-fd));
        hostile_fill(h, packet, sizeof packet);
        if (hostile_random(h) % 2 == 0) { /* all right but for one byte of the header */
            struct schema_control_attach ask = {.pool = ""};
            struct schema_control_header *head = &ask.h;
            *head = (struct schema_control_header){SCHEMA_CONTROL_MAGIC, SCHEMA_CONTROL_VERSION,
                                                   SCHEMA_CONTROL_ATTACH, 1, sizeof ask};
            memcpy(packet, &ask, sizeof ask);
            size_t at = hostile_random(h) % 4;
            packet[at] ^= (uint8_t)(1 + hostile_random(h) % 255);
            bytes = sizeof ask;
        }
        if (send(fd, packet, bytes, MSG_NOSIGNAL) > 0)
            h->did++;
        union {
            struct schema_control_error error;
            uint8_t bytes[SCHEMA_CONTROL_MAX_BYTES];
        } got;
        size_t came;
        unsigned count = 0;
        if (base_fds_recv(fd, &got, sizeof got, &came, NULL, 0, &count) == 0) {
            if (schema_control_check(&got, came) != 0 || got.error.h.type != SCHEMA_CONTROL_ERROR)
                hostile_fail("garbage was answered with garbage");
            h->errors++;
        }
        if (!closes_within(fd, CUT_OFF_MS))
            hostile_fail("garbage did not end the connection");
        h->cut_off++;
        close(fd);
    }
}

/* Whoever shows a wrong one gets no session, though his uid has a tenant: what comes is an error,
 * or nothing. */
void attack_tokens(struct hostile *h)
{
    while (!hostile_over(h)) {
        struct schema_control_attach ask = {.h = {SCHEMA_CONTROL_MAGIC, SCHEMA_CONTROL_VERSION,
                                                  SCHEMA_CONTROL_ATTACH, 1, sizeof ask}};
        union {
            struct schema_control_error error;
            uint8_t bytes[SCHEMA_CONTROL_MAX_BYTES];
        } got;
        size_t came, length = 1 + hostile_random(h) % (sizeof ask.token - 1);
        unsigned count = 0;
        for (size_t i = 0; i < length; i++)
            ask.token[i] = (char)(1 + hostile_random(h) % 255);
        int fd = raw_dial(h->socket);
        if (fd < 0)
            hostile_fail("connecting: %s", strerror(-fd));
        if (send(fd, &ask, sizeof ask, MSG_NOSIGNAL) > 0)
            h->did++;
        if (hostile_random(h) % 8 == 0) { /* else it hangs up at once */
            int status = base_fds_recv(fd, &got, sizeof got, &came, NULL, 0, &count);
            if (status == -EPROTO || (status == 0 && (schema_control_check(&got, came) != 0 ||
                                                      got.error.h.type != SCHEMA_CONTROL_ERROR)))
                hostile_fail("a wrong token got more than an error");
            h->errors += status == 0;
        }
        close(fd);
    }
}

/* As many as the process may have; none says anything. An honest attachment must still work in
 * between. */
void attack_connections(struct hostile *h)
{
    static int fd[CONNECTIONS];
    int open = 0;
    while (!hostile_over(h)) {
        int one = raw_dial(h->socket);
        if (one >= 0) {
            h->did++;
            if (open < CONNECTIONS) {
                fd[open++] = one;
                continue;
            }
            close(one);
        }
        for (int i = 0; i < open; i++)
            close(fd[i]);
        open = 0;
    }
    for (int i = 0; i < open; i++)
        close(fd[i]);
}

/* Descriptors that come with a message must not pile up in the agent. */
void attack_descriptors(struct hostile *h)
{
    while (!hostile_over(h)) {
        int fd = raw_dial(h->socket), null = open("/dev/null", O_RDWR | O_CLOEXEC);
        int many[SCHEMA_CONTROL_MAX_FDS];
        struct schema_control_attach ask = {.h = {SCHEMA_CONTROL_MAGIC, SCHEMA_CONTROL_VERSION,
                                                  SCHEMA_CONTROL_ATTACH, 1, sizeof ask}};
        if (fd < 0 || null < 0)
            hostile_fail("connecting: %s", strerror(errno));
        for (int i = 0; i < SCHEMA_CONTROL_MAX_FDS; i++)
            many[i] = null;
        int status = base_fds_send(fd, &ask, sizeof ask, many, SCHEMA_CONTROL_MAX_FDS);
        h->did++;
        if (status == -EPERM) /* the kernel refuses them for the agent */
            shutdown(fd, SHUT_RDWR);
        if (!closes_within(fd, CUT_OFF_MS))
            hostile_fail("unwanted descriptors did not end the connection");
        h->cut_off++;
        close(null);
        close(fd);
    }
}

enum { UNREAD_MOST = 16384 };

/* Asks for a session, and takes no descriptor: 0: there are some to be read; or what the agent
 * said, and whether for what is unread: there may be no session just then. */
static int attach_unread(int socket, bool *for_unread)
{
    struct schema_control_attach ask = {.left_ms = UINT32_MAX};
    struct schema_control_error said = {.status = 0};
    *for_unread = false;
    int status = raw_send(socket, &ask, SCHEMA_CONTROL_ATTACH, sizeof ask, 1);
    if (status != 0)
        return status;
    const ssize_t n = recv(socket, &said, sizeof said, MSG_PEEK);
    if (n <= 0)
        return n == 0 ? -EPIPE : -errno;
    if (said.h.type != SCHEMA_CONTROL_ERROR)
        return 0;
    *for_unread = said.status == -EAGAIN && (strstr(said.text, "unread") != NULL ||
                                             strstr(said.text, "have not read") != NULL);
    return said.status;
}

/* Its sessions end at once, and their sockets stay open on its side. Then it tries again and again,
 * and keeps what it has, be the agent another one by then. */
void attack_unread(struct hostile *h)
{
    static int fd[UNREAD_MOST];
    struct rlimit files;
    int open = 0;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    while (!hostile_over(h) || h->errors == 0) {
        int one = raw_dial(h->socket);
        bool for_unread = false;
        const int status = one >= 0 ? attach_unread(one, &for_unread) : one;
        if (status == 0 && open < UNREAD_MOST) {
            (void)shutdown(one, SHUT_WR);
            fd[open++] = one;
            h->did++;
            continue;
        }
        if (status == 0 || (one < 0 && (open == 0 || one == -EMFILE || one == -ENFILE)))
            hostile_fail("%d sockets with descriptors that nobody reads: %s", open,
                         one < 0 ? strerror(-one) : "and more would go");
        h->errors += for_unread;
        if (one >= 0)
            close(one);
        usleep(1000);
    }
    for (int i = 0; i < open; i++)
        close(fd[i]);
}

/* A TCP connection with bytes that nobody reads; whoever closes it last waits for a minute. */
static int make_lingering(int *other)
{
    static const struct linger linger = {.l_onoff = 1, .l_linger = 60};
    static const char bytes[65536];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int small = 4096, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    if (bind(listener, (const struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &length) != 0 ||
        connect(fd, (const struct sockaddr *)&at, sizeof at) != 0)
        hostile_fail("a TCP connection: %s", strerror(errno));
    *other = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    close(listener);
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    } /* much more than the other side's window */
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    return fd;
}

enum { LINGERING = 4 };

/* Behind other messages, so that the agent has not closed them before we have: it is to be the last
 * one. */
static int send_behind(int socket, const int fd[LINGERING])
{
    enum { AHEAD = 150 };
    struct schema_control_resolve name = {.name = "nobody"};
    struct schema_control_attach ask = {
        .h = {SCHEMA_CONTROL_MAGIC, SCHEMA_CONTROL_VERSION, SCHEMA_CONTROL_ATTACH, 1, sizeof ask}};
    (void)base_fds_send(socket, &ask, sizeof ask, NULL, 0);
    (void)fcntl(socket, F_SETFL, O_NONBLOCK);
    for (int i = 0; i < AHEAD; i++)
        (void)raw_send(socket, &name, SCHEMA_CONTROL_RESOLVE, sizeof name, 2);
    (void)fcntl(socket, F_SETFL, 0);
    return base_fds_send(socket, &ask, sizeof ask, fd, LINGERING);
}

/* A child sends them and ends at once: nothing lingers in a process that ends, if it was the last
 * all the same. */
static void send_lingering(struct hostile *h, int socket)
{
    int fd[LINGERING], other[LINGERING], go[2], status;
    char byte = 0;
    if (pipe2(go, O_CLOEXEC) != 0)
        hostile_fail("no pipe: %s", strerror(errno));
    for (int i = 0; i < LINGERING; i++)
        fd[i] = make_lingering(&other[i]);
    pid_t child = fork();
    if (child == 0) {
        (void)!read(go[0], &byte, 1);
        _exit(send_behind(socket, fd) == -EPERM);
    }
    for (int i = 0; i < LINGERING; i++)
        close(fd[i]);
    if (child < 0 || write(go[1], &byte, 1) != 1 || waitpid(child, &status, 0) != child)
        hostile_fail("the child that sends: %s", strerror(errno));
    close(go[0]);
    close(go[1]);
    h->did++;
    if (WEXITSTATUS(status) != 0) /* the kernel refuses them for the agent */
        shutdown(socket, SHUT_RDWR);
    if (!closes_within(socket, CUT_OFF_MS))
        hostile_fail("unwanted descriptors did not end the connection");
    h->cut_off++;
    for (int i = 0; i < LINGERING; i++)
        close(other[i]);
}

void attack_linger(struct hostile *h)
{
    while (!hostile_over(h)) {
        int fd = raw_dial(h->socket);
        if (fd < 0)
            hostile_fail("connecting: %s", strerror(-fd));
        send_lingering(h, fd);
        close(fd);
    }
}
