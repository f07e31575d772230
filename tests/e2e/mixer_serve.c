/* SPDX-License-Identifier: Apache-2.0 */
/* Who serves in a mixed run: judges each message when it comes, and each byte in the end. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "mixer.h"

enum { RECEIVES = 16, STREAMS = 256 };

struct driver {
    uint32_t life;
    uint64_t round;
    /* What the word and the counter had before this life raised them: known ever better. */
    uint64_t least[2], most[2];
    bool heard;
    uint64_t stream; /* its last one, and the queue pair for answers there: a worker's own */
    uint32_t answers;
};

static struct {
    struct kedge_session *session;
    struct kedge_vqp *port;
    struct kedge_mr *mr;
    struct kedge_counter *counters[DRIVERS];
    uint8_t *region, *receives;
    uint32_t lkey, receives_lkey;
    bool posted[RECEIVES];
    struct driver drivers[DRIVERS];
    struct {
        uint64_t stream, next, used;
    } streams[STREAMS];
    uint64_t heard, lists, overtaken, revoked;
} sv;

static void must(int status, const char *what)
{
    if (status >= 0)
        return;
    printf("%s: %s\n", what, kedge_last_error()); /* the agent went, for one: begin anew */
    exit(3);
}

static void post_receive(uint32_t i)
{
    struct ibv_sge sge = {.addr = (uintptr_t)sv.receives + (uint64_t)i * LONGEST,
                          .length = LONGEST,
                          .lkey = sv.receives_lkey};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};
    must(kedge_post_recv(sv.port, &wr, NULL), "receive");
    sv.posted[i] = true;
}

/* Whole or not at all, so that nobody reads half of it. */
static void publish(const char *path)
{
    char gid[INET6_ADDRSTRLEN], token[KEDGE_TOKEN_MAX], counter[KEDGE_COUNTER_TOKEN_MAX];
    char next[512];
    struct kedge_session_info info;
    kedge_session_query(sv.session, &info);
    snprintf(next, sizeof next, "%s.%d", path, (int)getpid());
    FILE *f = fopen(next, "w");
    if (f == NULL)
        OFFENCE("%s cannot be written", next);
    must(kedge_reg_mr(sv.session, sv.region, REGION,
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                          IBV_ACCESS_REMOTE_ATOMIC,
                      &sv.mr),
         "region");
    must(kedge_mr_export(sv.mr, token, sizeof token), "token");
    fprintf(f, "%d %s %s", (int)getpid(), inet_ntop(AF_INET6, info.gid, gid, sizeof gid), token);
    for (uint32_t i = 0; i < DRIVERS; i++) {
        must(kedge_counter_export(sv.counters[i], counter, sizeof counter), "counter's token");
        fprintf(f, " %s", counter);
    }
    fprintf(f, "\n");
    fclose(f);
    if (rename(next, path) != 0)
        OFFENCE("%s cannot be named", path);
}

static void begin(const char *path)
{
    void *at;
    must(kedge_open(NULL, &sv.session), "open");
    must(kedge_alloc(sv.session, REGION, &at, &sv.lkey), "memory");
    sv.region = at;
    must(kedge_alloc(sv.session, (size_t)RECEIVES * LONGEST, &at, &sv.receives_lkey), "memory");
    sv.receives = at;
    memset(sv.region, 0, REGION);
    for (uint32_t i = 0; i < DRIVERS; i++)
        must(kedge_counter_create(sv.session, &sv.counters[i]), "counter");
    must(kedge_vqp_create(sv.session, NULL, &sv.port), "queue pair");
    must(kedge_bind(sv.port, PORT), "bind");
    for (uint32_t i = 0; i < RECEIVES; i++)
        post_receive(i);
    must(kedge_session_notices(sv.session), "notices");
    publish(path);
    printf("serves\n");
}

/* The messages of a stream come once each and in order. A stream of which nothing was heard for
 * longest makes room for one that begins. */
static void judge_order(const struct mix_letter *l)
{
    uint32_t oldest = 0, i = 0;
    for (; i < STREAMS && (sv.streams[i].stream != l->stream || sv.streams[i].used == 0); i++)
        if (sv.streams[i].used < sv.streams[oldest].used)
            oldest = i;
    if (i == STREAMS) {
        i = oldest;
        sv.streams[i].stream = l->stream;
        sv.streams[i].next = 0;
    }
    if (l->number != sv.streams[i].next)
        OFFENCE("message %llu of driver %u came in the place of %llu",
                (unsigned long long)l->number, l->of.driver,
                (unsigned long long)sv.streams[i].next);
    sv.streams[i].next++;
    sv.streams[i].used = ++sv.heard;
}

/* [0]: the word, [1]: the counter. Each was raised as often as the driver says. */
static void judge_raised(struct driver *d, const struct mix_letter *l)
{
    static const char *const names[2] = {"word", "counter"};
    uint64_t value[2];
    memcpy(&value[0], sv.region + (size_t)l->of.driver * AREA + WORD_AT, sizeof value[0]);
    must(kedge_counter_read(sv.counters[l->of.driver], &value[1]), "counter");
    for (int i = 0; i < 2; i++) {
        const uint64_t *said = i == 0 ? l->adds : l->raises;
        const uint64_t least = value[i] > said[1] ? value[i] - said[1] : 0;
        if (value[i] < said[0])
            OFFENCE("the %s of driver %u is %llu, and was raised %llu times", names[i],
                    l->of.driver, (unsigned long long)value[i], (unsigned long long)said[0]);
        if (!d->heard || least > d->least[i])
            d->least[i] = least;
        if (!d->heard || value[i] - said[0] < d->most[i])
            d->most[i] = value[i] - said[0];
        if (d->least[i] > d->most[i])
            OFFENCE("the %s of driver %u is %llu: raised %llu to %llu times since it was %llu to "
                    "%llu",
                    names[i], l->of.driver, (unsigned long long)value[i],
                    (unsigned long long)said[0], (unsigned long long)said[1],
                    (unsigned long long)d->most[i], (unsigned long long)d->least[i]);
    }
}

/* Its connection of before is over. */
static void keep_one(struct driver *d, const struct kedge_msg *m, const struct mix_letter *l)
{
    struct kedge_vqp *before = kedge_vqp_find(sv.session, d->answers);
    if (m->from == NULL || (d->stream == l->stream && d->answers == kedge_vqp_num(m->from)))
        return;
    if (before != NULL && before != m->from && before != sv.port)
        kedge_vqp_destroy(before);
    d->stream = l->stream;
    d->answers = kedge_vqp_num(m->from);
}

static bool is_newer(const struct mix_tag *a, const struct mix_tag *b)
{
    return a->life > b->life || (a->life == b->life && a->round > b->round);
}

/* What is heard is there; a later round may have overtaken a message of a connection that broke. */
static void judge_list(const struct mix_letter *l)
{
    const uint8_t *blocks = sv.region + (size_t)l->of.driver * AREA;
    for (uint32_t i = SINGLE + BATCH; i < BLOCKS; i++) {
        struct mix_tag is;
        memcpy(&is, blocks + (size_t)i * BLOCK, sizeof is);
        if (is_newer(&is, &l->of)) {
            sv.overtaken++;
            return;
        }
        if (!mix_holds(blocks + (size_t)i * BLOCK, &l->of, i))
            OFFENCE("a list of driver %u, round %llu, is heard: block %u has round %llu",
                    l->of.driver, (unsigned long long)l->of.round, i, (unsigned long long)is.round);
    }
    sv.lists++;
}

static void take(const struct kedge_msg *m)
{
    const uint32_t i = (uint32_t)m->wc.wr_id;
    struct mix_letter l;
    if (i >= RECEIVES || !sv.posted[i])
        OFFENCE("receive %llu came twice", (unsigned long long)m->wc.wr_id);
    sv.posted[i] = false;
    if (m->wc.status != IBV_WC_SUCCESS)
        OFFENCE("a receive ended with %d", (int)m->wc.status);
    if (!mix_read_letter(sv.receives + (size_t)i * LONGEST, m->wc.byte_len, &l))
        OFFENCE("a message of %u bytes holds something else", m->wc.byte_len);
    struct driver *d = &sv.drivers[l.of.driver];
    judge_order(&l);
    if (!d->heard || l.of.life > d->life)
        *d = (struct driver){.life = l.of.life, .stream = d->stream, .answers = d->answers};
    keep_one(d, m, &l);
    if (l.of.life == d->life) { /* and not one of a life that is over */
        judge_raised(d, &l);
        d->heard = true;
        d->round = l.of.round;
        if (l.listed)
            judge_list(&l);
    }
    struct ibv_sge sge = {.addr = (uintptr_t)sv.receives + (uint64_t)i * LONGEST,
                          .length = sizeof l,
                          .lkey = sv.receives_lkey};
    struct ibv_send_wr wr = {.wr_id = i,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};
    if (m->from == NULL || kedge_post_send(m->from, &wr, NULL) != 0) {
        printf("an answer failed: %s\n", kedge_last_error());
        kedge_vqp_destroy(m->from);
    }
    post_receive(i);
}

static void judge_area(uint32_t driver)
{
    static const uint32_t parts[4] = {0, SINGLE, SINGLE + BATCH, BLOCKS};
    const uint8_t *area = sv.region + (size_t)driver * AREA;
    struct mix_tag tag, other;
    memcpy(&tag, area, sizeof tag);
    for (uint32_t part = 0; part < 3; part++)
        for (uint32_t i = parts[part]; i < parts[part + 1]; i++) {
            memcpy(&other, area + (size_t)i * BLOCK, sizeof other);
            if (tag.round == 0 ? other.round != 0 : !mix_holds(area + (size_t)i * BLOCK, &tag, i))
                OFFENCE("block %u of driver %u has round %llu of its life %u, and not %llu of %u",
                        i, driver, (unsigned long long)other.round, other.life,
                        (unsigned long long)tag.round, tag.life);
        }
    for (uint32_t i = WORD_AT + 8; i < AREA; i++)
        if (area[i] != 0)
            OFFENCE("byte %u of the area of driver %u is nobody's, and not 0", i, driver);
    printf("area %u life %u round %llu\n", driver, tag.life, (unsigned long long)tag.round);
}

static void look_at_lease(const char *path)
{
    if ((kedge_session_notices(sv.session) & KEDGE_NOTICE_REVOKED) == 0 ||
        kedge_mr_status(sv.mr) != -EACCES)
        return;
    int status;
    do
        status = kedge_dereg_mr(sv.mr);
    while (status == -ETIMEDOUT);
    must(status, "give back");
    sv.revoked++;
    publish(path);
}

void mix_serve(const char *path)
{
    begin(path);
    while (!mix_over) {
        struct kedge_msg m;
        struct ibv_wc wc;
        bool any = false;
        for (; kedge_pop_msgs(sv.session, 1, &m) == 1; any = true)
            take(&m);
        for (; kedge_poll(sv.session, 1, &wc) == 1; any = true)
            if (wc.status != IBV_WC_SUCCESS) { /* its sender has gone, or the way broke */
                printf("an answer failed: %s\n", kedge_reason_str(wc.vendor_err));
                if (kedge_vqp_find(sv.session, wc.qp_num) != sv.port)
                    kedge_vqp_destroy(kedge_vqp_find(sv.session, wc.qp_num));
            }
        look_at_lease(path);
        const int status = any ? 0 : kedge_wait(sv.session, 100);
        must(status == -EHOSTDOWN ? 0 : status, "wait");
    }
    for (uint32_t i = 0; i < DRIVERS; i++)
        judge_area(i);
    printf("right: %llu messages, %llu lists, %llu overtaken, revoked %llu times\n",
           (unsigned long long)sv.heard, (unsigned long long)sv.lists,
           (unsigned long long)sv.overtaken, (unsigned long long)sv.revoked);
    kedge_close(sv.session);
}
