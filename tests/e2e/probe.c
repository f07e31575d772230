/* SPDX-License-Identifier: Apache-2.0 */
/* One question to an agent, for the scripts beside this: prints one line that says what came. Not
 * installed. The agent is $KEDGE_SOCKET's.
 *
 *   silent | garbage     says nothing, or nonsense, and prints what the agent says to that
 *   crowd N              opens N connections and prints what the first one is told
 *   descriptors N        sends a memfd of N MiB, closes it, "sent", and "cut off"; or why not
 *   twice                attaches, asks for two arenas at once, prints what comes to each tag
 *   beside N SOCKET      opens N connections, and then attaches at another socket
 *   guess N              N times shows a wrong token and hangs up at once, without waiting
 *   watch                attaches, prints "attached", and then why the session ended
 *   sleep                likewise, and sleeps until it hears of something: "drains", or what else
 *   connect NODE         by its name: "connected in N ms", or why not
 *   regions N | vqps N   takes as many, prints how many it got and what the next one was told, and
 *                        keeps them until it is killed
 *   fenced N             the same with KEDGE_MR_FENCED regions that hold the text "fenced"; before
 *                        it, their tokens, a line for each
 *   back | fenced-back   registers a region and gives it back: "back", or why not
 *   arenas N             likewise of arenas, beside its first one
 *   quiet N              waits N ms for a completion, with nothing out: "quiet", or why not
 *   huge                 asks for 1 TiB, and prints what it was told
 *   lookup NAME [TEXT]   finds a region by its name: its key, or why not; and reads it, if it is
 *                        to hold the text
 *   lookup-of TENANT NAME [TEXT]   likewise of one of another tenant
 *   reader TOKEN TEXT    reads the region again and again, which must hold the text, connecting
 * again after each failure, until its key is refused; a line for each change of what came, and when
 * the agent stands still and goes on
 *   gaps TOKEN TEXT      likewise; and a line for each time without a READ that is the longest yet
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <kedge.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/text.h"
#include "schema/control.h"

enum { PATIENCE_MS = 60000, REGION = 64, MOST = 4096, PAUSE_US = 2000 };

static int fail(const char *what, const char *why)
{
    printf("%s: %s\n", what, why);
    return 1;
}

/* ---- without libkedge */

static int dial(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const char *path = getenv("KEDGE_SOCKET");
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path != NULL ? path : KEDGE_DEFAULT_SOCKET);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (const struct sockaddr *)&at, sizeof at) != 0)
        return -errno;
    return fd;
}

/* Sends that, if it is something, and prints the error that comes. */
static int say(int fd, const char *what, size_t bytes)
{
    union {
        struct schema_control_error error;
        uint8_t bytes[SCHEMA_CONTROL_MAX_BYTES];
    } got;
    size_t came = 0;
    unsigned fds = 0;
    uint64_t begin = base_clock_ns();
    if (fd < 0)
        return fail("connecting", strerror(-fd));
    if (bytes > 0 && send(fd, what, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
        return fail("sending", strerror(errno));
    int status = base_fds_recv(fd, &got, sizeof got, &came, NULL, 0, &fds);
    if (status != 0)
        return fail("no answer", strerror(-status));
    if (schema_control_check(&got, came) != 0 || got.error.h.type != SCHEMA_CONTROL_ERROR)
        return fail("the answer", "no error message");
    unsigned long long ms = (base_clock_ns() - begin) / BASE_NS_PER_MS;
    printf("%s: %s after %llu ms\n", strerrorname_np(-got.error.status), got.error.text, ms);
    status = base_fds_recv(fd, &got, sizeof got, &came, NULL, 0, &fds);
    close(fd);
    return status == -EPIPE || status == -ECONNRESET ? 0 : fail("then", "it is not closed");
}

static int crowd(unsigned connections)
{
    int first = dial();
    for (unsigned i = 1; i < connections; i++)
        (void)dial();
    return say(first, NULL, 0);
}

static int guess(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        struct schema_control_attach ask = {.h = {SCHEMA_CONTROL_MAGIC, SCHEMA_CONTROL_VERSION,
                                                  SCHEMA_CONTROL_ATTACH, 1, sizeof ask}};
        snprintf(ask.token, sizeof ask.token, "guess %u", i);
        int fd = dial();
        if (fd < 0)
            return fail("connecting", strerror(-fd));
        (void)!send(fd, &ask, sizeof ask, MSG_NOSIGNAL); /* it may have been refused already */
        close(fd);
    }
    return 0;
}

static int descriptors(unsigned mib)
{
    struct schema_control_attach ask = {
        .h = {SCHEMA_CONTROL_MAGIC, SCHEMA_CONTROL_VERSION, SCHEMA_CONTROL_ATTACH, 1, sizeof ask}};
    const size_t bytes = (size_t)mib << 20;
    char byte;
    int fd = dial(), memory = memfd_create("large", MFD_CLOEXEC);
    if (fd < 0 || memory < 0 || fallocate(memory, 0, 0, (off_t)bytes) != 0)
        return fail("a memfd", strerror(errno));
    int status = base_fds_send(fd, &ask, sizeof ask, &memory, 1);
    close(memory);
    if (status != 0)
        return fail("not sent", strerrorname_np(-status));
    puts("sent");
    fflush(stdout);
    while (recv(fd, &byte, 1, 0) > 0) {
    }
    puts("cut off");
    close(fd);
    return 0;
}

static int print_answer(int fd)
{
    union {
        struct schema_control_error error;
        uint8_t bytes[SCHEMA_CONTROL_MAX_BYTES];
    } got;
    int fds[SCHEMA_FD_COUNT];
    unsigned count = 0;
    size_t came;
    const int status = base_fds_recv(fd, &got, sizeof got, &came, fds, SCHEMA_FD_COUNT, &count);
    if (status != 0)
        return fail("no answer", strerror(-status));
    const bool refused = got.error.h.type == SCHEMA_CONTROL_ERROR;
    printf("%u: ", got.error.h.tag);
    if (refused)
        puts(got.error.text);
    else
        printf("%u descriptors\n", count);
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
    return 0;
}

static int twice(void)
{
    struct schema_control_attach ask = {
        .h = {SCHEMA_CONTROL_MAGIC, SCHEMA_CONTROL_VERSION, SCHEMA_CONTROL_ATTACH, 1, sizeof ask},
        .left_ms = 5000};
    struct schema_control_arena more = {
        .h = {SCHEMA_CONTROL_MAGIC, SCHEMA_CONTROL_VERSION, SCHEMA_CONTROL_ARENA, 2, sizeof more},
        .bytes = 128 << 20}; /* which takes long enough to be made for both to come meanwhile */
    const int fd = dial();
    if (fd < 0 || send(fd, &ask, sizeof ask, MSG_NOSIGNAL) < 0 || print_answer(fd) != 0)
        return fail("attaching", strerror(errno));
    for (int i = 0; i < 2; i++, more.h.tag++)
        if (send(fd, &more, sizeof more, MSG_NOSIGNAL) < 0)
            return fail("sending", strerror(errno));
    return print_answer(fd) != 0 || print_answer(fd) != 0;
}

/* ---- with it */

static int beside(unsigned connections, const char *socket)
{
    const struct kedge_open_attr at = {.socket = socket};
    struct kedge_session *s;
    for (unsigned i = 0; i < connections; i++)
        if (dial() < 0)
            return fail("connecting", strerror(errno));
    if (kedge_open(&at, &s) != 0)
        return fail("not attached", kedge_last_error());
    puts("attached");
    kedge_close(s);
    return 0;
}

static int watch(struct kedge_session *s)
{
    puts("attached");
    fflush(stdout);
    while (kedge_session_status(s) == 0)
        usleep(1000);
    return fail("ended", kedge_last_error());
}

static int connect_node(struct kedge_session *s, const char *node)
{
    struct kedge_vqp *q;
    uint64_t begin = base_clock_ns();
    if (kedge_vqp_create(s, NULL, &q) != 0 || kedge_connect_node(q, node) != 0)
        return fail("not connected", kedge_last_error());
    printf("connected in %llu ms\n",
           (unsigned long long)((base_clock_ns() - begin) / BASE_NS_PER_MS));
    return 0;
}

static void keep(unsigned got, const char *why)
{
    printf("%u, then: %s\n", got, why);
    fflush(stdout);
    (void)pause();
}

static int regions(struct kedge_session *s, unsigned wanted, int more_access)
{
    const int access = IBV_ACCESS_REMOTE_READ | more_access;
    char token[KEDGE_TOKEN_MAX], *memory;
    struct kedge_mr *mr;
    uint32_t lkey;
    unsigned got = 0;
    if (kedge_alloc(s, (size_t)REGION * MOST, (void **)&memory, &lkey) != 0)
        return fail("memory", kedge_last_error());
    for (; got < wanted; got++) {
        if (kedge_reg_mr(s, memory + REGION * got, REGION, access, &mr) != 0)
            break;
        memcpy(memory + REGION * got, "fenced", sizeof "fenced");
        if (more_access != 0 && kedge_mr_export(mr, token, sizeof token) == 0)
            puts(token);
    }
    keep(got, got < wanted ? kedge_last_error() : "enough");
    return 0;
}

static int back(struct kedge_session *s, int more_access)
{
    struct kedge_mr *mr;
    uint32_t lkey;
    void *memory;
    if (kedge_alloc(s, REGION, &memory, &lkey) != 0 ||
        kedge_reg_mr(s, memory, REGION, IBV_ACCESS_REMOTE_READ | more_access, &mr) != 0)
        return fail("registering", kedge_last_error());
    int status = kedge_dereg_mr(mr);
    puts(status == 0 ? "back" : strerrorname_np(-status));
    return 0;
}

/* Each block is larger than an arena of the usual size, and so takes one of its own. */
static int arenas(struct kedge_session *s, unsigned wanted)
{
    uint32_t lkey;
    unsigned got = 0;
    void *memory;
    while (got < wanted && kedge_alloc(s, ((size_t)2 << 20) + 1, &memory, &lkey) == 0)
        got++;
    keep(got, got < wanted ? kedge_last_error() : "enough");
    return 0;
}

static int quiet(struct kedge_session *s, unsigned ms)
{
    int status = kedge_wait(s, (int)ms);
    if (status != 0)
        return fail("not quiet", status > 0 ? "a completion" : kedge_last_error());
    puts("quiet");
    return 0;
}

static int sleep_until_told(struct kedge_session *s)
{
    puts("attached");
    fflush(stdout);
    int status = kedge_session_notices(s);
    if (status == 0)
        status = kedge_wait(s, -1);
    if (status == 1)
        status = kedge_session_notices(s);
    if (status < 0)
        return fail("ended", kedge_last_error());
    puts(status == KEDGE_NOTICE_DRAIN     ? "drains"
         : status == KEDGE_NOTICE_REVOKED ? "revoked"
                                          : "another notice");
    return 0;
}

static int huge(struct kedge_session *s)
{
    uint32_t lkey;
    void *memory;
    puts(kedge_alloc(s, (size_t)1 << 40, &memory, &lkey) == 0 ? "got it" : kedge_last_error());
    return 0;
}

/* A queue pair is there once it is bound; that it is not, its first request says. */
static int vqps(struct kedge_session *s, unsigned wanted)
{
    struct kedge_session_info info;
    const char *why = "enough";
    unsigned got = 0;
    kedge_session_query(s, &info);
    for (bool more = true; more && got < wanted; got += more) {
        struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED}, *bad;
        struct ibv_wc wc;
        struct kedge_vqp *q;
        if (kedge_vqp_create(s, NULL, &q) != 0 || kedge_connect(q, info.gid) != 0 ||
            kedge_post_send(q, &wr, &bad) != 0 || kedge_wait(s, PATIENCE_MS) != 1 ||
            kedge_poll(s, 1, &wc) != 1)
            return fail("a queue pair", kedge_last_error());
        more = strstr(kedge_reason_str(wc.vendor_err), "quota") == NULL;
        if (!more)
            why = kedge_reason_str(wc.vendor_err);
    }
    keep(got, why);
    return 0;
}

static const char *name_of(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_SUCCESS:
        return "served";
    case IBV_WC_WR_FLUSH_ERR:
        return "WR_FLUSH_ERR";
    case IBV_WC_REM_ACCESS_ERR:
        return "REM_ACCESS_ERR";
    case IBV_WC_RETRY_EXC_ERR:
        return "RETRY_EXC_ERR";
    default:
        return "another status";
    }
}

static unsigned long long since_ms(uint64_t begin)
{
    return (base_clock_ns() - begin) / BASE_NS_PER_MS;
}

/* For a completion, over the time for which the agent stands still. */
static int wait_patiently(struct kedge_session *s, uint64_t begin)
{
    bool still = false;
    int status;
    while ((status = kedge_wait(s, PATIENCE_MS)) == -EHOSTDOWN) {
        if (!still)
            printf("%llu ms: %s\n", since_ms(begin), kedge_last_error());
        fflush(stdout);
        still = true;
    }
    if (still)
        printf("%llu ms: the agent goes on\n", since_ms(begin));
    return status;
}

static int read_once(struct kedge_session *s, struct kedge_vqp *q, const struct kedge_remote *from,
                     struct ibv_sge *to, struct ibv_wc *wc, uint64_t begin)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .sg_list = to,
                             .num_sge = 1,
                             .wr.rdma = {.remote_addr = from->addr, .rkey = from->rkey}};
    struct ibv_send_wr *bad;
    int status = kedge_post_send(q, &wr, &bad);
    if (status == 0)
        status = wait_patiently(s, begin);
    return status < 0 ? status : kedge_poll(s, 1, wc) == 1 ? 0 : -ETIMEDOUT;
}

/* Until the endpoint is there, or the session is over. */
static void connect_patiently(struct kedge_session *s, struct kedge_vqp *q, const uint8_t gid[16],
                              uint64_t begin)
{
    for (bool first = true; kedge_connect(q, gid) != 0 && kedge_session_status(s) == 0;
         first = false) {
        if (first)
            printf("%llu ms: not connected, %s\n", since_ms(begin), kedge_last_error());
        usleep(PAUSE_US);
    }
}

/* What is at the region that was found. */
static int read_found(struct kedge_session *s, const struct kedge_remote *from, const char *text)
{
    struct kedge_vqp *q;
    struct ibv_wc wc;
    uint32_t lkey;
    char *memory;
    if (kedge_vqp_create(s, NULL, &q) != 0 ||
        kedge_alloc(s, MOST + 1, (void **)&memory, &lkey) != 0 || from->length > MOST)
        return fail("beginning", kedge_last_error());
    struct ibv_sge to = {.addr = (uintptr_t)memory, .length = (uint32_t)from->length, .lkey = lkey};
    memset(memory, 0, MOST + 1);
    if (kedge_connect(q, from->gid) != 0)
        return fail("not connected", kedge_last_error());
    if (read_once(s, q, from, &to, &wc, base_clock_ns()) != 0)
        return fail("ended", kedge_last_error());
    if (wc.status != IBV_WC_SUCCESS)
        return fail(name_of(wc.status), wc.vendor_err != 0 ? kedge_reason_str(wc.vendor_err) : "");
    return strcmp(memory, text) == 0 ? 0 : fail("OTHER BYTES", memory);
}

/* owner: NULL: the session's own tenant. */
static int lookup(struct kedge_session *s, const char *owner, const char *name, const char *text)
{
    struct kedge_remote from;
    const int status =
        owner != NULL ? kedge_lookup_of(s, owner, name, &from) : kedge_lookup(s, name, &from);
    if (status != 0)
        return fail("not found", kedge_last_error());
    printf("%u\n", from.rkey);
    return text != NULL ? read_found(s, &from, text) : 0;
}

/* When the last READ has come, and the longest time without one. */
static void note_gap(uint64_t *last, uint64_t *longest, uint64_t begin)
{
    const uint64_t now = base_clock_ns(), gap = now - *last;
    *last = now;
    if (gap / BASE_NS_PER_MS <= *longest / BASE_NS_PER_MS)
        return;
    *longest = gap;
    printf("%llu ms: none for %llu ms\n", since_ms(begin),
           (unsigned long long)(gap / BASE_NS_PER_MS));
}

static int reader(struct kedge_session *s, const char *token, const char *text, bool gaps)
{
    struct ibv_wc wc, last = {.status = IBV_WC_GENERAL_ERR};
    struct kedge_remote from;
    struct kedge_vqp *q;
    uint64_t begin = base_clock_ns(), came = begin, longest = 0;
    uint32_t lkey;
    char *memory;
    if (kedge_import(s, token, &from) != 0 || kedge_vqp_create(s, NULL, &q) != 0 ||
        kedge_alloc(s, MOST + 1, (void **)&memory, &lkey) != 0 || from.length > MOST)
        return fail("beginning", kedge_last_error());
    struct ibv_sge to = {.addr = (uintptr_t)memory, .length = (uint32_t)from.length, .lkey = lkey};
    do {
        memset(memory, 0, MOST + 1);
        if (last.status != IBV_WC_SUCCESS)
            connect_patiently(s, q, from.gid, begin);
        if (read_once(s, q, &from, &to, &wc, begin) != 0)
            return fail("ended", kedge_last_error());
        if (wc.status == IBV_WC_SUCCESS && strcmp(memory, text) != 0)
            return fail("OTHER BYTES", memory);
        if (gaps && wc.status == IBV_WC_SUCCESS)
            note_gap(&came, &longest, begin);
        if (wc.status != last.status || wc.vendor_err != last.vendor_err)
            printf("%llu ms: %s%s%s\n", since_ms(begin), name_of(wc.status),
                   wc.vendor_err != 0 ? ", " : "",
                   wc.vendor_err != 0 ? kedge_reason_str(wc.vendor_err) : "");
        fflush(stdout);
        last = wc;
        usleep(PAUSE_US);
    } while (wc.status != IBV_WC_REM_ACCESS_ERR);
    return 0;
}

int main(int argc, char **argv)
{
    static const char nonsense[] = "This is no message of the attach protocol.";
    const char *what = argc > 1 ? argv[1] : "";
    struct kedge_session *s;
    uint64_t n = 0;
    bool counted = argc >= 3 && base_parse_u64(argv[2], 1, MOST, &n) == 0;
    if (strcmp(what, "crowd") == 0 && counted)
        return crowd((unsigned)n);
    if (strcmp(what, "guess") == 0 && counted)
        return guess((unsigned)n);
    if (strcmp(what, "descriptors") == 0 && counted)
        return descriptors((unsigned)n);
    if (strcmp(what, "beside") == 0 && counted && argc == 4)
        return beside((unsigned)n, argv[3]);
    if (strcmp(what, "twice") == 0)
        return twice();
    if (strcmp(what, "silent") == 0)
        return say(dial(), NULL, 0);
    if (strcmp(what, "garbage") == 0)
        return say(dial(), nonsense, sizeof nonsense);
    if (kedge_open(NULL, &s) != 0)
        return fail("not attached", kedge_last_error());
    int status = 2;
    if (strcmp(what, "watch") == 0)
        status = watch(s);
    else if (strcmp(what, "sleep") == 0)
        status = sleep_until_told(s);
    else if (strcmp(what, "connect") == 0 && argc == 3)
        status = connect_node(s, argv[2]);
    else if (strcmp(what, "lookup") == 0 && (argc == 3 || argc == 4))
        status = lookup(s, NULL, argv[2], argc == 4 ? argv[3] : NULL);
    else if (strcmp(what, "lookup-of") == 0 && (argc == 4 || argc == 5))
        status = lookup(s, argv[2], argv[3], argc == 5 ? argv[4] : NULL);
    else if ((strcmp(what, "reader") == 0 || strcmp(what, "gaps") == 0) && argc == 4)
        status = reader(s, argv[2], argv[3], what[0] == 'g');
    else if (strcmp(what, "huge") == 0)
        status = huge(s);
    else if (strcmp(what, "back") == 0 || strcmp(what, "fenced-back") == 0)
        status = back(s, strcmp(what, "back") == 0 ? 0 : KEDGE_MR_FENCED);
    else if (counted && strcmp(what, "quiet") == 0)
        status = quiet(s, (unsigned)n);
    else if (counted && strcmp(what, "vqps") == 0)
        status = vqps(s, (unsigned)n);
    else if (counted)
        status = strcmp(what, "arenas") == 0
                     ? arenas(s, (unsigned)n)
                     : regions(s, (unsigned)n, strcmp(what, "fenced") == 0 ? KEDGE_MR_FENCED : 0);
    kedge_close(s);
    return status;
}
