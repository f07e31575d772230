/* SPDX-License-Identifier: Apache-2.0 */
/* Who drives a mixed run: rounds of WRITEs, READs, batches, atomics, lists, messages and counters.
 * A round in which something fails is done again from its beginning, over new connections. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <sys/random.h>

#include "base/clock.h"
#include "mixer.h"

enum { SLOTS = 64, RECEIVES = 4, PAUSE_US = 20000, PIECE = 64, LARGE_EVERY = 4, PLANT_AT = 5 };

static struct {
    uint32_t driver, life;
    const char *path;
    struct kedge_session *session; /* NULL: none */
    struct kedge_vqp *q, *raiser;  /* NULL: not connected */
    struct kedge_batch *batch;
    uint8_t *out, *in, *letter, *answers, *word;
    uint32_t lkey, in_lkey, letter_lkey, answers_lkey, word_lkey;
    struct kedge_remote to;
    char server[16], gid[64], token[KEDGE_TOKEN_MAX], counter[KEDGE_COUNTER_TOKEN_MAX];
    /* What is out, by wr_id modulo SLOTS. */
    struct {
        uint64_t wr_id;
        uint32_t vqp;
        bool out;
    } slots[SLOTS];
    uint32_t outstanding;
    uint64_t next_wr_id;
    bool receives[RECEIVES];
    uint64_t stream, number, round;
    uint64_t adds[2], raises[2];
    uint64_t since_ns; /* when something went well last */
    uint64_t failed, connects, sessions;
    bool planted;
} dr;

static bool plant(const char *name)
{
    if (dr.planted || dr.round < PLANT_AT || strcmp(mix_plant, name) != 0)
        return false;
    return dr.planted = true;
}

static void impatient(const char *what)
{
    if (base_clock_ns() - dr.since_ns > (uint64_t)mix_patience_ms() * BASE_NS_PER_MS)
        OFFENCE("driver %u, round %llu: %s for too long; %u completions are out: %s", dr.driver,
                (unsigned long long)dr.round, what, dr.outstanding, kedge_last_error());
}

/* ---- completions, each of which comes once */

static uint64_t name_request(const struct kedge_vqp *q)
{
    const uint64_t id = dr.next_wr_id++;
    if (dr.slots[id % SLOTS].out)
        OFFENCE("driver %u has too many requests out", dr.driver);
    dr.slots[id % SLOTS].wr_id = id;
    dr.slots[id % SLOTS].vqp = kedge_vqp_num(q);
    dr.slots[id % SLOTS].out = true;
    dr.outstanding++;
    return id;
}

static void forget_request(uint64_t id)
{
    dr.slots[id % SLOTS].out = false;
    dr.outstanding--;
}

/* What an honest worker may hear where peers die and are revoked, and ways break. */
static bool may_be(const struct ibv_wc *wc)
{
    switch (wc->status) {
    case IBV_WC_SUCCESS:
    case IBV_WC_WR_FLUSH_ERR:
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_GENERAL_ERR:
    case IBV_WC_FATAL_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
        return true;
    default:
        return false;
    }
}

static void account_for(const struct ibv_wc *wc)
{
    const uint64_t at = wc->wr_id % SLOTS;
    if (!dr.slots[at].out || dr.slots[at].wr_id != wc->wr_id || dr.slots[at].vqp != wc->qp_num)
        OFFENCE("driver %u: completion %llu of queue pair %u came, and none is out", dr.driver,
                (unsigned long long)wc->wr_id, wc->qp_num);
    if (!may_be(wc))
        OFFENCE("driver %u: request %llu ended with %d: %s", dr.driver,
                (unsigned long long)wc->wr_id, (int)wc->status, kedge_reason_str(wc->vendor_err));
    forget_request(wc->wr_id);
}

/* Takes one completion if there is one. */
static int take_one(struct ibv_wc *wc)
{
    const int n = kedge_poll(dr.session, 1, wc);
    if (n != 1)
        return n;
    if (wc->status == IBV_WC_SUCCESS && plant("lose"))
        return 0;
    account_for(wc);
    if (plant("twice"))
        account_for(wc);
    dr.since_ns = base_clock_ns();
    return 1;
}

static int sleep_a_little(const char *what)
{
    impatient(what);
    const int status = kedge_wait(dr.session, 100);
    return status == -EHOSTDOWN ? 0 : status;
}

/* Until nothing is out. False: something failed, or the session is over. */
static bool finish(void)
{
    bool good = true;
    while (dr.outstanding > 0) {
        struct ibv_wc wc;
        int status = take_one(&wc);
        if (status == 0)
            status = sleep_a_little("no completion");
        else if (status == 1)
            good &= wc.status == IBV_WC_SUCCESS;
        if (status < 0 && status != -EHOSTDOWN)
            return false;
    }
    return good;
}

/* ---- sessions and connections */

static void end_session(void)
{
    kedge_close(dr.session); /* what is out has no completion any more */
    dr.session = NULL;
    dr.q = dr.raiser = NULL;
    dr.batch = NULL;
    dr.token[0] = '\0';
    memset(dr.slots, 0, sizeof dr.slots);
    dr.outstanding = 0;
}

static void disconnect(void)
{
    kedge_vqp_destroy(dr.q);
    kedge_vqp_destroy(dr.raiser);
    dr.q = dr.raiser = NULL;
}

static bool get_memory(uint8_t **at, size_t bytes, uint32_t *lkey)
{
    void *got;
    const bool good = kedge_alloc(dr.session, bytes, &got, lkey) == 0;
    *at = good ? got : NULL;
    return good;
}

static bool open_session(void)
{
    if (kedge_open(NULL, &dr.session) != 0) {
        dr.session = NULL;
        return false;
    }
    dr.sessions++;
    return get_memory(&dr.out, (size_t)BLOCKS * BLOCK, &dr.lkey) &&
           get_memory(&dr.in, (size_t)BLOCKS * BLOCK, &dr.in_lkey) &&
           get_memory(&dr.letter, LONGEST, &dr.letter_lkey) &&
           get_memory(&dr.answers, RECEIVES * sizeof(struct mix_letter), &dr.answers_lkey) &&
           get_memory(&dr.word, sizeof(uint64_t), &dr.word_lkey);
}

/* Who serves, where it is now: another one has a region of its own, and of what this one has
 * raised there was nothing. */
static bool look_up(void)
{
    char server[16], gid[64], token[KEDGE_TOKEN_MAX];
    FILE *f = fopen(dr.path, "r");
    bool good = f != NULL && fscanf(f, "%15s %63s %95s", server, gid, token) == 3;
    for (uint32_t i = 0; good && i <= dr.driver; i++)
        good = fscanf(f, "%63s", dr.counter) == 1;
    if (f != NULL)
        fclose(f);
    if (!good)
        return false;
    if (strcmp(server, dr.server) != 0)
        memset(dr.adds, 0, sizeof dr.adds), memset(dr.raises, 0, sizeof dr.raises);
    memcpy(dr.server, server, sizeof server);
    memcpy(dr.gid, gid, sizeof gid);
    if (strcmp(token, dr.token) == 0)
        return true;
    if (dr.batch != NULL && kedge_batch_destroy(dr.batch) != 0)
        return false;
    dr.batch = NULL;
    if (dr.token[0] != '\0')
        (void)kedge_unimport(dr.session, &dr.to);
    dr.token[0] = '\0';
    if (kedge_import(dr.session, token, &dr.to) != 0)
        return false;
    memcpy(dr.token, token, sizeof token);
    dr.to.addr += (uint64_t)dr.driver * AREA;
    return true;
}

static bool other_serves(void)
{
    char server[16] = "";
    FILE *f = fopen(dr.path, "r");
    const bool good = f != NULL && fscanf(f, "%15s", server) == 1;
    if (f != NULL)
        fclose(f);
    return good && strcmp(server, dr.server) != 0;
}

static bool prepare_batch(void)
{
    enum { PIECES = BATCH * BLOCK / PIECE };
    static struct kedge_batch_desc desc[PIECES];
    for (uint32_t i = 0; i < PIECES; i++) {
        const uint32_t at = SINGLE * BLOCK + i * 53 % PIECES * PIECE; /* in no order */
        desc[i] = (struct kedge_batch_desc){
            .opcode = IBV_WR_RDMA_WRITE,
            .rkey = dr.to.rkey,
            .local = {.addr = (uintptr_t)dr.out + at, .length = PIECE, .lkey = dr.lkey},
            .remote_addr = dr.to.addr + at};
    }
    return dr.batch != NULL || kedge_batch_prepare(dr.session, desc, PIECES, &dr.batch) == 0;
}

static bool post_receive(uint32_t i)
{
    struct ibv_sge sge = {.addr = (uintptr_t)dr.answers + i * sizeof(struct mix_letter),
                          .length = sizeof(struct mix_letter),
                          .lkey = dr.answers_lkey};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};
    return dr.receives[i] = kedge_post_recv(dr.q, &wr, NULL) == 0;
}

static bool connect_all(void)
{
    uint8_t gid[16];
    if (!look_up() || inet_pton(AF_INET6, dr.gid, gid) != 1 || !prepare_batch() ||
        kedge_vqp_create(dr.session, NULL, &dr.q) != 0 ||
        kedge_vqp_create(dr.session, NULL, &dr.raiser) != 0 ||
        kedge_connect_port(dr.q, gid, PORT) != 0 ||
        kedge_connect_counter(dr.raiser, dr.counter) != 0)
        return false;
    dr.number = 0;
    if (getrandom(&dr.stream, sizeof dr.stream, 0) != (ssize_t)sizeof dr.stream)
        return false;
    for (uint32_t i = 0; i < RECEIVES; i++)
        if (!post_receive(i))
            return false;
    dr.connects++;
    return true;
}

/* Ready for a round. Each time it is not something has broken, which has an end. */
static void be_connected(void)
{
    while (dr.q == NULL) {
        if ((dr.session != NULL || open_session()) && connect_all())
            return;
        impatient("not connected");
        if (dr.session != NULL && kedge_session_status(dr.session) != 0 &&
            kedge_session_status(dr.session) != -EHOSTDOWN)
            end_session();
        else
            disconnect();
        usleep(PAUSE_US);
    }
}

/* ---- a round */

static bool posted(int status, uint64_t id)
{
    if (status == 0)
        return true;
    forget_request(id);
    return false;
}

static bool post(enum ibv_wr_opcode opcode, uint8_t *local, uint32_t lkey, uint32_t offset,
                 uint32_t bytes)
{
    const uint64_t id = name_request(dr.q);
    struct ibv_sge sge = {.addr = (uintptr_t)local, .length = bytes, .lkey = lkey};
    struct ibv_send_wr wr = {.wr_id = id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = dr.to.addr + offset, .rkey = dr.to.rkey}};
    return posted(kedge_post_send(dr.q, &wr, NULL), id);
}

static bool add_one(void)
{
    const uint64_t id = name_request(dr.q);
    struct ibv_sge sge = {.addr = (uintptr_t)dr.word, .length = 8, .lkey = dr.word_lkey};
    struct ibv_send_wr wr = {.wr_id = id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.atomic = {.remote_addr = dr.to.addr + WORD_AT,
                                           .compare_add = 1 + plant("add"),
                                           .rkey = dr.to.rkey}};
    if (!posted(kedge_post_send(dr.q, &wr, NULL), id))
        return false;
    dr.adds[1]++;
    if (!finish())
        return false;
    dr.adds[0]++;
    return true;
}

static bool raise_one(void)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    wr.wr_id = name_request(dr.raiser);
    if (!posted(kedge_post_send(dr.raiser, &wr, NULL), wr.wr_id))
        return false;
    dr.raises[1]++;
    if (!finish())
        return false;
    dr.raises[0]++;
    if (plant("raise"))
        dr.raises[0]++, dr.raises[1]++;
    return true;
}

/* What of the answer to the last message is to be there. */
static bool hear_answer(const struct mix_letter *sent)
{
    for (;;) {
        struct kedge_msg m;
        struct mix_letter l;
        int status = kedge_pop_msgs(dr.session, 1, &m);
        if (status == 0)
            status = sleep_a_little("no answer");
        else if (status == 1) {
            const uint32_t i = (uint32_t)m.wc.wr_id;
            if (i >= RECEIVES || !dr.receives[i])
                OFFENCE("driver %u: receive %u came twice", dr.driver, i);
            dr.receives[i] = false;
            if (m.wc.status != IBV_WC_SUCCESS || m.wc.byte_len != sizeof l || m.from != dr.q)
                OFFENCE("driver %u: an answer ended with %d, %u bytes", dr.driver, (int)m.wc.status,
                        m.wc.byte_len);
            memcpy(&l, dr.answers + i * sizeof l, sizeof l);
            if (memcmp(&l, sent, sizeof l) != 0)
                OFFENCE("driver %u: the answer is to message %llu, and not to %llu", dr.driver,
                        (unsigned long long)l.number, (unsigned long long)sent->number);
            dr.since_ns = base_clock_ns();
            return post_receive(i);
        }
        if (status < 0 && status != -EHOSTDOWN)
            return false;
        if (status == 0 && other_serves())
            return false; /* who has heard it was killed before it answered */
        if (base_clock_ns() - dr.since_ns > (uint64_t)mix_patience_ms() * BASE_NS_PER_MS / 4) {
            printf("unanswered\n"); /* which who serves has to know of */
            return false;
        }
    }
}

static struct mix_letter letter_of(const struct mix_tag *tag, uint32_t bytes, uint32_t listed)
{
    struct mix_letter l = {.stream = dr.stream,
                           .number = dr.number++,
                           .of = *tag,
                           .bytes = bytes,
                           .listed = listed,
                           .adds = {dr.adds[0], dr.adds[1]},
                           .raises = {dr.raises[0], dr.raises[1]}};
    mix_write_letter(dr.letter, &l);
    if (bytes > sizeof l && plant("letter"))
        dr.letter[bytes - 1] ^= 1;
    if (plant("skip"))
        dr.number++;
    return l;
}

static bool send_list(const struct mix_tag *tag)
{
    struct ibv_send_wr wr[LIST + 1] = {0}, *bad;
    struct ibv_sge sge[LIST + 1];
    const struct mix_letter l = letter_of(tag, sizeof l, 1);
    const bool lacks_one = plant("list");
    for (uint32_t i = 0; i <= LIST; i++) {
        const uint32_t at = (SINGLE + BATCH + i - (lacks_one && i == 3)) * BLOCK;
        sge[i] = (struct ibv_sge){.addr = (uintptr_t)dr.out + at, .length = BLOCK, .lkey = dr.lkey};
        wr[i].sg_list = &sge[i];
        wr[i].num_sge = 1;
        wr[i].opcode = IBV_WR_RDMA_WRITE;
        wr[i].wr.rdma.remote_addr = dr.to.addr + at;
        wr[i].wr.rdma.rkey = dr.to.rkey;
        wr[i].next = i < LIST ? &wr[i + 1] : NULL;
    }
    sge[LIST] =
        (struct ibv_sge){.addr = (uintptr_t)dr.letter, .length = l.bytes, .lkey = dr.letter_lkey};
    wr[LIST].opcode = IBV_WR_SEND;
    wr[LIST].send_flags = IBV_SEND_SIGNALED;
    wr[LIST].wr_id = name_request(dr.q);
    return posted(kedge_post_notify(dr.q, wr, &bad), wr[LIST].wr_id) && finish() && hear_answer(&l);
}

static bool send_letter(const struct mix_tag *tag)
{
    const uint32_t least = sizeof(struct mix_letter);
    const uint32_t most = tag->round % LARGE_EVERY == 0 ? LONGEST : 2048;
    const uint32_t bytes = least + (uint32_t)(tag->round * 2654435761u % (most - least + 1));
    const struct mix_letter l = letter_of(tag, bytes, 0);
    return post(IBV_WR_SEND, dr.letter, dr.letter_lkey, 0, bytes) && finish() && hear_answer(&l);
}

static bool read_back(const struct mix_tag *tag, uint32_t first, uint32_t blocks)
{
    memset(dr.in, 0xee, (size_t)BLOCKS * BLOCK);
    if (!post(IBV_WR_RDMA_READ, dr.in, dr.in_lkey, first * BLOCK, blocks * BLOCK) || !finish())
        return false;
    for (uint32_t i = 0; i < blocks; i++)
        if (!mix_holds(dr.in + (size_t)i * BLOCK, tag, first + i)) {
            struct mix_tag is;
            memcpy(&is, dr.in + (size_t)i * BLOCK, sizeof is);
            OFFENCE("driver %u, life %u, round %llu: block %u is READ with round %llu of life %u",
                    dr.driver, dr.life, (unsigned long long)dr.round, first + i,
                    (unsigned long long)is.round, is.life);
        }
    return true;
}

static bool go_round(void)
{
    enum { AT_ONCE = 8 };
    const struct mix_tag tag = {.driver = dr.driver, .life = dr.life, .round = dr.round};
    for (uint32_t i = 0; i < BLOCKS; i++)
        mix_fill(dr.out + (size_t)i * BLOCK, &tag, i);
    if (plant("byte"))
        dr.out[3 * BLOCK + 100] ^= 4;
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        const uint32_t at = i * (SINGLE / AT_ONCE) * BLOCK;
        if (!post(IBV_WR_RDMA_WRITE, dr.out + at, dr.lkey, at, SINGLE / AT_ONCE * BLOCK))
            return false;
    }
    if (!finish() || !read_back(&tag, 0, SINGLE))
        return false;
    const uint64_t id = name_request(dr.q);
    return posted(kedge_batch_post(dr.q, dr.batch, id), id) && finish() && add_one() &&
           raise_one() && send_list(&tag) && send_letter(&tag) &&
           read_back(&tag, SINGLE, BATCH + LIST);
}

/* What is out of connections that broke comes back, all of it, before they go. */
static void after_failure(void)
{
    dr.failed++;
    (void)finish();
    if (dr.outstanding == 0 && kedge_session_status(dr.session) == 0)
        disconnect();
    else
        end_session();
    usleep(PAUSE_US);
}

void mix_drive(uint32_t driver, uint32_t life, const char *path)
{
    dr.driver = driver;
    dr.life = life;
    dr.path = path;
    dr.since_ns = base_clock_ns();
    for (dr.round = 1;; dr.round++) {
        struct ibv_wc wc;
        for (be_connected(); !go_round(); be_connected())
            after_failure();
        if (take_one(&wc) == 1)
            OFFENCE("driver %u: a completion came after the round", driver);
        if (dr.round % 16 == 0 && dr.round % 32 == 0)
            disconnect();
        else if (dr.round % 16 == 0)
            end_session();
        dr.since_ns = base_clock_ns();
        printf("round %llu\n", (unsigned long long)dr.round);
        if (mix_over)
            break;
    }
    printf("driver %u life %u round %llu, %llu failures, %llu connects, %llu sessions\n", driver,
           life, (unsigned long long)dr.round, (unsigned long long)dr.failed,
           (unsigned long long)dr.connects, (unsigned long long)dr.sessions);
    if (dr.session != NULL)
        end_session();
}
