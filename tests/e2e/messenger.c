/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that send each other messages, for messages.sh. Not installed. The agent is
 * $KEDGE_SOCKET's. Each message says whose it is, which one, how long, and has bytes that follow
 * from that; whoever hears it checks all of them.
 *
 *   max                         prints how many receives a session may have
 *   echo PORT                   hears a port, and answers each message with itself, until killed
 *   sink PORT                   likewise, and answers none
 *   drain PORT                  likewise, whatever they hold
 *   hear PORT RECEIVES BYTES    hears a port with so many receives of so many bytes; prints what
 *                               each ends with, and posts none again, until killed
 *   deaf PORT RECEIVES          likewise, and never pops one
 *   bind PORT                   "bound", or why not
 *   ping GID PORT N BYTES DEPTH sends N messages, DEPTH of them not answered at a time, and hears
 *                               the answers; BYTES 0: of all lengths
 *   post GID PORT N BYTES       sends N, one when the one before is there, and prints what the
 *                               slowest of 100 took ("p99 N us")
 *   send GID PORT N BYTES       sends N (64 at most) at once, and prints what each ends with: a
 *                               line for all that end alike, behind each other, and how long it
 *                               took
 *   beside GID PORT OTHER BYTES one message to PORT; until it ends pings OTHER, and 100 times
 *                               more then, with messages of 16 KiB
 *   stream GID PORT BYTES       sends until one fails: prints how many went well, and with what
 *                               and after how many ms without a completion the next one ended
 *
 * Those that hear print "hears GID" first. MESSENGER_GRANT: a tenant that they let in, which they
 * shut out when they get SIGUSR1, and say so; MESSENGER_OWNER: the tenant whose ports they send to
 * (their own). MESSENGER_MOST is of how many bytes buffers are, and the longest message of a mode
 * with BYTES 0 (16384); MESSENGER_MEMORY_MIB how much memory each kind of buffers has at most, or
 * two of them if that is more (32). */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kedge_msg.h>

#include "base/clock.h"
#include "base/text.h"

enum { SMALL = 16384, LARGEST = 1 << 26, LEAST = 24, BUFFERS = 64, PATIENCE_MS = 20000 };
enum { MEMORY_MIB = 32, MOST_MIB = 1024 };

struct letter {
    uint64_t sender, number;
    uint32_t bytes, zero;
};

static struct kedge_session *session;
static struct kedge_session_info info;
static uint32_t most = SMALL, buffers = BUFFERS;
static uint8_t *sends, *receives; /* buffers of most */
static uint32_t sends_lkey, receives_lkey;

static _Noreturn void die(const char *what)
{
    printf("%s: %s\n", what, kedge_last_error());
    exit(1);
}

static void must(int status, const char *what)
{
    if (status < 0)
        die(what);
}

static _Noreturn void die_of(const char *what, const struct ibv_wc *wc)
{
    printf("%s: status %d, %s\n", what, (int)wc->status, kedge_reason_str(wc->vendor_err));
    exit(1);
}

static uint32_t number_of(const char *text)
{
    uint64_t n = 0;
    if (base_parse_u64(text, 0, UINT32_MAX, &n) != 0) {
        printf("no number: %s\n", text);
        exit(2);
    }
    return (uint32_t)n;
}

/* Of a message, which a buffer has room for. */
static uint32_t bytes_of(const char *text)
{
    const uint32_t n = number_of(text);
    if (n > most) {
        printf("%u bytes, of %u (MESSENGER_MOST)\n", n, most);
        exit(2);
    }
    return n;
}

static void begin(void)
{
    const char *longest = getenv("MESSENGER_MOST");
    const char *mib = getenv("MESSENGER_MEMORY_MIB");
    const uint32_t memory = (mib != NULL ? number_of(mib) % MOST_MIB : MEMORY_MIB) << 20;
    void *at;
    if (longest != NULL)
        most = number_of(longest);
    if (most < SMALL || most > LARGEST) {
        printf("MESSENGER_MOST is %d to %d\n", SMALL, LARGEST);
        exit(2);
    }
    if (buffers > memory / most)
        buffers = most > memory / 2 ? 2 : memory / most;
    must(kedge_open(NULL, &session), "open");
    kedge_session_query(session, &info);
    must(kedge_alloc(session, (size_t)buffers * most, &at, &sends_lkey), "memory");
    sends = at;
    must(kedge_alloc(session, (size_t)buffers * most, &at, &receives_lkey), "memory");
    receives = at;
}

static struct kedge_vqp *new_vqp(void)
{
    struct kedge_vqp *q;
    must(kedge_vqp_create(session, NULL, &q), "queue pair");
    return q;
}

/* ---- what a message holds */

static uint8_t byte_of(const struct letter *l, uint32_t i)
{
    return (uint8_t)(l->sender + l->number * 31 + i * 7 + i / 256 + (i >> 16) * 13);
}

static uint32_t length_of(uint64_t number, uint32_t bytes)
{
    return bytes != 0 ? bytes : LEAST + (uint32_t)(number * 2654435761u % (most - LEAST + 1));
}

static void write_letter(uint8_t *at, uint64_t sender, uint64_t number, uint32_t bytes)
{
    const struct letter l = {.sender = sender, .number = number, .bytes = bytes};
    memcpy(at, &l, sizeof l);
    for (uint32_t i = sizeof l; i < bytes; i++)
        at[i] = byte_of(&l, i);
}

static struct letter read_letter(const uint8_t *at, uint32_t bytes)
{
    struct letter l;
    memcpy(&l, at, sizeof l);
    bool good = bytes >= sizeof l && l.bytes == bytes;
    for (uint32_t i = sizeof l; good && i < bytes; i++)
        good = at[i] == byte_of(&l, i);
    if (good)
        return l;
    printf("a message of %u bytes holds something else\n", bytes);
    exit(1);
}

/* ---- posting */

enum { PIECES = 3 };

/* What is longer than small ones is in several pieces. Returns how many. */
static int cut(const uint8_t *at, uint32_t lkey, uint32_t bytes, struct ibv_sge sge[PIECES])
{
    const uint32_t lengths[PIECES] = {1001, bytes / 2, bytes - bytes / 2 - 1001};
    if (bytes <= SMALL) {
        sge[0] = (struct ibv_sge){.addr = (uintptr_t)at, .length = bytes, .lkey = lkey};
        return 1;
    }
    for (int i = 0; i < PIECES; at += lengths[i++])
        sge[i] = (struct ibv_sge){.addr = (uintptr_t)at, .length = lengths[i], .lkey = lkey};
    return PIECES;
}

static void post_receive(struct kedge_vqp *q, uint32_t i, uint32_t bytes)
{
    struct ibv_sge sge[PIECES];
    const int pieces = cut(receives + (size_t)i * most, receives_lkey, bytes, sge);
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = sge, .num_sge = pieces}, *bad;
    must(kedge_post_recv(q, &wr, &bad), "receive");
}

static struct ibv_send_wr request(uint64_t wr_id, const uint8_t *at, uint32_t lkey, uint32_t bytes,
                                  struct ibv_sge sge[PIECES])
{
    return (struct ibv_send_wr){.wr_id = wr_id,
                                .sg_list = sge,
                                .num_sge = cut(at, lkey, bytes, sge),
                                .opcode = IBV_WR_SEND,
                                .send_flags = IBV_SEND_SIGNALED};
}

static int post_send(struct kedge_vqp *q, uint64_t wr_id, const uint8_t *at, uint32_t lkey,
                     uint32_t bytes)
{
    struct ibv_sge sge[PIECES];
    struct ibv_send_wr wr = request(wr_id, at, lkey, bytes, sge), *bad;
    return kedge_post_send(q, &wr, &bad);
}

static void wait_for(int ms)
{
    must(kedge_wait(session, ms), "wait");
}

static struct kedge_vqp *connect_to(const char *gid_text, const char *port)
{
    uint8_t gid[16];
    struct kedge_vqp *q = new_vqp();
    if (inet_pton(AF_INET6, gid_text, gid) != 1) {
        printf("no GID: %s\n", gid_text);
        exit(2);
    }
    const char *owner = getenv("MESSENGER_OWNER");
    must(owner == NULL ? kedge_connect_port(q, gid, number_of(port))
                       : kedge_connect_port_of(q, gid, owner, number_of(port)),
         "connect");
    return q;
}

/* ---- those that hear */

static const char *guest;
static volatile sig_atomic_t shuts_out;

static void on_shut_out(int signal)
{
    (void)signal;
    shuts_out = 1;
}

static void look_at_guest(struct kedge_vqp *q)
{
    if (!shuts_out || guest == NULL)
        return;
    must(kedge_port_revoke(q, guest), "revoke");
    printf("shut out\n");
    fflush(stdout);
    guest = NULL;
}

static struct kedge_vqp *hear(const char *port)
{
    char gid[INET6_ADDRSTRLEN];
    struct kedge_vqp *q = new_vqp();
    must(kedge_bind(q, number_of(port)), "bind");
    guest = getenv("MESSENGER_GRANT");
    if (guest != NULL)
        must(kedge_port_grant(q, guest), "grant");
    signal(SIGUSR1, on_shut_out);
    printf("hears %s\n", inet_ntop(AF_INET6, info.gid, gid, sizeof gid));
    fflush(stdout);
    return q;
}

/* A sender's messages come in order; senders come and go. */
static void check_order(const struct letter *l)
{
    enum { SENDERS = 64 };
    static struct letter last[SENDERS];
    static uint32_t known;
    uint32_t i = 0;
    while (i < known && last[i].sender != l->sender)
        i++;
    const uint64_t next = i < known ? last[i].number + 1 : 0;
    if (l->number != next || i == SENDERS) {
        printf("message %llu came in the place of %llu\n", (unsigned long long)l->number,
               (unsigned long long)next);
        exit(1);
    }
    known += i == known;
    last[i] = *l;
}

static void take(const struct kedge_msg *m, struct kedge_vqp *q, bool answers)
{
    const uint32_t i = (uint32_t)m->wc.wr_id;
    const uint8_t *at = receives + (size_t)i * most;
    if (m->wc.status != IBV_WC_SUCCESS)
        die_of("a receive", &m->wc);
    const struct letter l = read_letter(at, m->wc.byte_len);
    check_order(&l);
    if (!answers || m->from == NULL ||
        post_send(m->from, i, at, receives_lkey, m->wc.byte_len) != 0) /* its sender has gone */
        post_receive(q, i, most);
}

/* A sender that has gone costs nobody else a message. */
enum hearing { HEARS, HEARS_ANSWERS, HEARS_ANY };

static void hear_all(const char *port, enum hearing how)
{
    struct kedge_vqp *q = hear(port);
    for (uint32_t i = 0; i < buffers && i < info.max_recvs; i++)
        post_receive(q, i, most);
    for (;;) {
        struct kedge_msg m;
        struct ibv_wc wc;
        bool any = false;
        for (; kedge_pop_msgs(session, 1, &m) == 1; any = true) {
            if (how == HEARS_ANY)
                post_receive(q, (uint32_t)m.wc.wr_id, most);
            else
                take(&m, q, how == HEARS_ANSWERS);
            look_at_guest(q); /* there may always be another message */
        }
        for (; kedge_poll(session, 1, &wc) == 1; any = true) {
            struct kedge_vqp *from = kedge_vqp_find(session, wc.qp_num);
            if (wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR && from != NULL)
                kedge_vqp_destroy(from); /* and what else was to go there */
            post_receive(q, (uint32_t)wc.wr_id, most);
        }
        look_at_guest(q);
        if (!any)
            wait_for(guest != NULL ? 20 : -1);
    }
}

static void hear_some(const char *port, uint32_t count, uint32_t bytes, bool pops)
{
    struct kedge_vqp *q = hear(port);
    for (uint32_t i = 0; i < count; i++)
        post_receive(q, i, bytes);
    while (!pops)
        pause();
    for (;;) {
        struct kedge_msg m;
        while (kedge_pop_msgs(session, 1, &m) == 1) {
            printf("receive %d %u\n", (int)m.wc.status, m.wc.byte_len);
            fflush(stdout);
        }
        wait_for(-1);
    }
}

/* ---- those that send */

struct pinging {
    struct kedge_vqp *q;
    uint64_t sender, sent, done, answered, count;
    uint32_t bytes, depth;
};

static void ping_more(struct pinging *p)
{
    for (; p->sent < p->count && p->sent - p->answered < p->depth && p->sent - p->done < p->depth;
         p->sent++) {
        const uint32_t i = (uint32_t)(p->sent % p->depth), bytes = length_of(p->sent, p->bytes);
        uint8_t *at = sends + (size_t)i * most;
        write_letter(at, p->sender, p->sent, bytes);
        must(post_send(p->q, p->sent, at, sends_lkey, bytes), "send");
    }
}

static void hear_answers(struct pinging *p)
{
    struct kedge_msg m;
    while (kedge_pop_msgs(session, 1, &m) == 1) {
        const uint32_t i = (uint32_t)m.wc.wr_id;
        if (m.wc.status != IBV_WC_SUCCESS)
            die_of("an answer", &m.wc);
        const struct letter l = read_letter(receives + (size_t)i * most, m.wc.byte_len);
        if (l.number != p->answered || l.sender != p->sender || m.from != p->q) {
            printf("answer %llu came in the place of %llu\n", (unsigned long long)l.number,
                   (unsigned long long)p->answered);
            exit(1);
        }
        p->answered++;
        post_receive(p->q, i, most);
    }
}

static struct pinging begin_pinging(struct kedge_vqp *q, uint64_t count, uint32_t bytes,
                                    uint32_t depth)
{
    static uint64_t sender;
    struct pinging p = {.q = q,
                        .sender = ((uint64_t)getpid() << 16) + sender++,
                        .count = count,
                        .bytes = bytes,
                        .depth = depth};
    for (uint32_t i = 0; i < depth; i++)
        post_receive(q, i, most);
    return p;
}

static void ping(struct kedge_vqp *q, uint64_t count, uint32_t bytes, uint32_t depth)
{
    struct pinging p = begin_pinging(q, count, bytes, depth);
    while (p.answered < count || p.done < count) {
        const uint64_t before = p.answered + p.done;
        struct ibv_wc wc;
        ping_more(&p);
        for (; kedge_poll(session, 1, &wc) == 1; p.done++)
            if (wc.status != IBV_WC_SUCCESS || wc.wr_id != p.done)
                die_of("a message", &wc);
        hear_answers(&p);
        if (p.answered + p.done == before && kedge_wait(session, PATIENCE_MS) != 1)
            die("no answer");
    }
    printf("%llu answered\n", (unsigned long long)count);
}

enum { TIMED = 100000 };

static int compare_ns(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void post_each(struct kedge_vqp *q, uint64_t count, uint32_t bytes)
{
    static uint64_t took_ns[TIMED];
    const uint64_t sender = (uint64_t)getpid() << 16;
    if (count == 0 || count > TIMED) {
        printf("%llu, of %d\n", (unsigned long long)count, TIMED);
        exit(2);
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t begun_ns = base_clock_ns();
        struct ibv_wc wc;
        write_letter(sends, sender, i, bytes);
        must(post_send(q, i, sends, sends_lkey, bytes), "send");
        while (kedge_poll(session, 1, &wc) != 1)
            if (kedge_wait(session, PATIENCE_MS) != 1)
                die("no completion");
        if (wc.status != IBV_WC_SUCCESS)
            die_of("a message", &wc);
        took_ns[i] = base_clock_ns() - begun_ns;
    }
    qsort(took_ns, count, sizeof took_ns[0], compare_ns);
    printf("p99 %llu us\n", (unsigned long long)took_ns[count - 1 - count / 100] / 1000);
}

static void print_ends(const struct ibv_wc *wc, uint32_t count)
{
    if (count > 0)
        printf("%u ended with %d: %s\n", count, (int)wc->status, kedge_reason_str(wc->vendor_err));
}

/* As one list, so that all are there when the first one is refused. */
static void post_all(struct kedge_vqp *q, uint32_t count, uint32_t bytes)
{
    static struct ibv_send_wr wr[BUFFERS], *bad;
    static struct ibv_sge sge[BUFFERS][PIECES];
    if (count < 1 || count > buffers) {
        printf("%u at once, of %u\n", count, buffers);
        exit(2);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *at = sends + (size_t)i * most;
        write_letter(at, (uint64_t)getpid() << 16, i, bytes);
        wr[i] = request(i, at, sends_lkey, bytes, sge[i]);
        wr[i].next = i + 1 < count ? &wr[i + 1] : NULL;
    }
    must(kedge_post_send(q, wr, &bad), "send");
}

static void send_some(struct kedge_vqp *q, uint32_t count, uint32_t bytes)
{
    const uint64_t begun_ns = base_clock_ns();
    struct ibv_wc wc, last = {.status = IBV_WC_SUCCESS};
    uint32_t alike = 0;
    post_all(q, count, bytes);
    for (uint32_t i = 0; i < count; i++) {
        while (kedge_poll(session, 1, &wc) != 1)
            if (kedge_wait(session, PATIENCE_MS) != 1)
                die("no completion");
        if (wc.status != last.status) {
            print_ends(&last, alike);
            alike = 0;
        }
        last = alike++ == 0 ? wc : last; /* the first one's reason */
    }
    print_ends(&last, alike);
    printf("after %llu ms\n", (unsigned long long)((base_clock_ns() - begun_ns) / BASE_NS_PER_MS));
}

/* The one that fails is in nobody's way but its own queue pair's. */
static void beside(struct kedge_vqp *bad, struct kedge_vqp *good, uint32_t bytes)
{
    enum { MORE = 100, BAD = 1 << 30 };
    struct pinging p = begin_pinging(good, 1, SMALL, 1);
    bool over = false;
    write_letter(sends + most, 1, 0, bytes);
    must(post_send(bad, BAD, sends + most, sends_lkey, bytes), "send");
    for (uint64_t last = UINT64_MAX; p.answered < last;) {
        struct ibv_wc wc;
        bool any = false;
        ping_more(&p);
        for (; kedge_poll(session, 1, &wc) == 1; any = true) {
            if (wc.wr_id != BAD && wc.status != IBV_WC_SUCCESS)
                die_of("a message beside it", &wc);
            p.done += wc.wr_id != BAD;
            if (wc.wr_id != BAD)
                continue;
            print_ends(&wc, 1);
            printf("beside %s\n", p.answered > 0 ? "others" : "nothing");
            over = true;
            last = p.answered + MORE;
        }
        const uint64_t before = p.answered;
        hear_answers(&p);
        any |= p.answered != before;
        p.count = p.answered + 1;
        if (!any && kedge_wait(session, PATIENCE_MS) != 1)
            die(over ? "no answer" : "no completion");
    }
    printf("and 100 behind it\n");
}

static void stream(struct kedge_vqp *q, uint32_t bytes)
{
    const uint32_t ahead = buffers < 16 ? buffers : 16, begun = most > SMALL ? 3 : 1000;
    uint64_t sent = 0, done = 0, last_ns = base_clock_ns();
    for (;;) {
        struct ibv_wc wc;
        for (; sent - done < ahead; sent++) {
            const uint32_t length = length_of(sent, bytes);
            uint8_t *at = sends + sent % ahead * most;
            write_letter(at, (uint64_t)getpid() << 16, sent, length);
            must(post_send(q, sent, at, sends_lkey, length), "send");
        }
        if (kedge_poll(session, 1, &wc) != 1) {
            wait_for(PATIENCE_MS);
            continue;
        }
        if (wc.status != IBV_WC_SUCCESS) {
            printf("%llu went well\n", (unsigned long long)done);
            print_ends(&wc, 1);
            printf("after %llu ms\n",
                   (unsigned long long)((base_clock_ns() - last_ns) / BASE_NS_PER_MS));
            return;
        }
        done++;
        last_ns = base_clock_ns();
        if (done == begun) {
            printf("streams\n");
            fflush(stdout);
        }
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    begin();
    if (strcmp(what, "max") == 0)
        printf("%u\n", info.max_recvs);
    else if (strcmp(what, "echo") == 0 && argc == 3)
        hear_all(argv[2], HEARS_ANSWERS);
    else if (strcmp(what, "sink") == 0 && argc == 3)
        hear_all(argv[2], HEARS);
    else if (strcmp(what, "drain") == 0 && argc == 3)
        hear_all(argv[2], HEARS_ANY);
    else if (strcmp(what, "bind") == 0 && argc == 3)
        (void)hear(argv[2]);
    else if (strcmp(what, "hear") == 0 && argc == 5)
        hear_some(argv[2], number_of(argv[3]), number_of(argv[4]), true);
    else if (strcmp(what, "deaf") == 0 && argc == 4)
        hear_some(argv[2], number_of(argv[3]), most, false);
    else if (strcmp(what, "ping") == 0 && argc == 7)
        ping(connect_to(argv[2], argv[3]), number_of(argv[4]), bytes_of(argv[5]),
             number_of(argv[6]));
    else if (strcmp(what, "post") == 0 && argc == 6)
        post_each(connect_to(argv[2], argv[3]), number_of(argv[4]), bytes_of(argv[5]));
    else if (strcmp(what, "send") == 0 && argc == 6)
        send_some(connect_to(argv[2], argv[3]), number_of(argv[4]), bytes_of(argv[5]));
    else if (strcmp(what, "beside") == 0 && argc == 6)
        beside(connect_to(argv[2], argv[3]), connect_to(argv[2], argv[4]), bytes_of(argv[5]));
    else if (strcmp(what, "stream") == 0 && argc == 5)
        stream(connect_to(argv[2], argv[3]), bytes_of(argv[4]));
    else
        return 2;
    kedge_close(session);
    return 0;
}
