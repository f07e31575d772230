/* SPDX-License-Identifier: Apache-2.0 */
#include "intruder_state.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/assert.h"
#include "base/clock.h"
#include "request.h"
#include "ledger.h"
#include "os_calls.h"
#include "random.h"
#include "schema/table.h"
#include "schema/token.h"
#include "trace.h"

enum {
    LIFE_S = 8,     /* on average */
    ABSENCE_S = 15, /* likewise */
    SCRAPS = 12,    /* sockets that it holds without having attached */
    FLOOD_VQPS = 12,
    POLLS_ONCE_OF = 8, /* times that who hoards has filled its ring */
    BUFFER_BYTES = 4096
};

enum harm {
    HARM_SCRIBBLE, /* random bytes in its ring, and indices of its choice */
    HARM_ALTER,    /* right descriptors, of which it changes some bytes */
    HARM_GUESS,    /* regions of others without their keys, or with wrong ones */
    HARM_HOARD,    /* posts, and polls seldom */
    HARM_CONNECT,  /* to everybody, and to nobody, again and again */
    HARM_ATTACH,   /* opens and closes sessions */
    HARM_GARBAGE,  /* messages of its own making at the attach socket */
    HARM_OWN,      /* what it posts to a region of its own it changes, and registers oddly */
    HARM_MAIL,     /* where there are messages: it sends to whoever has not let it in */
    HARM_KINDS
};
static const char *const HARMS[HARM_KINDS] = {
    "scribbles in its ring", "alters what it posts",     "guesses keys",
    "polls seldom",          "connects to all and none", "attaches again and again",
    "sends garbage",         "misuses its own region",   "sends where it is not let in"};

static uint64_t draw(struct play_intruder *i, uint64_t n)
{
    return play_intruder_draw(i, n);
}

static void rest(struct play_intruder *i, uint64_t most_ns)
{
    play_process_sleep(1000 + draw(i, most_ns));
}

/* Its first one, which is all that it uses: what is in there is nobody else's either. */
static void note_arena(struct play_intruder *i)
{
    const struct client_arena *a = &i->session->arenas[0];
    i->arena = a->addr;
    play_ledger_arena(i->process, i->session->ro, a->addr, a->bytes);
}

static void forget_memory(struct play_intruder *i)
{
    if (i->region != NULL)
        play_region_free(i->region);
    i->region = NULL;
    if (i->arena != NULL)
        play_ledger_no_arena(i->arena);
    i->arena = NULL;
}

static void close_session(struct play_intruder *i)
{
    forget_memory(i);
    kedge_close(i->session);
}

static bool has_session(struct play_intruder *i)
{
    const struct kedge_open_attr attr = {.socket = i->settings.socket, .wait_ms = 500};
    void *memory;
    if (kedge_open(&attr, &i->session) != 0)
        return false;
    i->own = NULL;
    i->let_in = false;
    i->to = NULL;
    if (kedge_alloc(i->session, BUFFER_BYTES, &memory, &i->lkey) == 0 &&
        kedge_vqp_create(i->session, NULL, &i->q) == 0) {
        i->buffer = memory;
        note_arena(i);
        return true;
    }
    kedge_close(i->session);
    return false;
}

/* ---- its rings */

static void ring_doorbell(const struct play_intruder *i)
{
    const uint64_t one = 1;
    (void)os_write(i->session->doorbell, &one, sizeof one);
}

static uint32_t draw_index(struct play_intruder *i, uint32_t now)
{
    switch (draw(i, 6)) {
    case 0:
        return (uint32_t)base_prng_next(&i->random);
    case 1:
        return now - 1 - (uint32_t)draw(i, 200);
    default:
        return now + (uint32_t)draw(i, 12);
    }
}

static void poll_all(struct play_intruder *i)
{
    struct ibv_wc wc[16];
    int n;
    while ((n = kedge_poll(i->session, 16, wc)) > 0)
        for (int k = 0; k < n; k++)
            if (wc[k].status == IBV_WC_SUCCESS)
                play_violation(i->process->name, "it has no right to a region, and reached it");
}

/* With messages, all that there is of them too. */
static uint8_t draw_op(struct play_intruder *i)
{
    const bool posts = draw(i, 2) == 0;
    if (i->settings.messages)
        return (uint8_t)(posts ? 1 + draw(i, SCHEMA_OP_WRITE_IMM)
                               : SCHEMA_OP_BIND +
                                     draw(i, SCHEMA_OP_PORT_REVOKE + 1 - SCHEMA_OP_BIND));
    return (uint8_t)(posts ? 1 + draw(i, 4) : 16 + draw(i, 24));
}

static void scribble(struct play_intruder *i)
{
    struct kedge_session *s = i->session;
    const uint32_t slots = s->sq_mask + 1;
    for (uint64_t n = draw(i, 20); n > 0; n--) {
        struct schema_sq_desc *d = &s->sq[draw(i, slots)];
        play_random_fill(&i->random, d, sizeof *d);
        if (draw(i, 4) != 0)
            d->op = draw_op(i);
        if (draw(i, 2) == 0)
            d->vqp = (uint16_t)draw(i, 4);
        d->slots = (uint8_t)(draw(i, 8) == 0 ? d->slots : 1 + draw(i, 3));
    }
    if (draw(i, 3) == 0)
        atomic_store(&s->rw->cq_head, draw_index(i, atomic_load(&s->ro->cq_tail)));
    atomic_store(&s->rw->sq_tail, draw_index(i, atomic_load(&s->ro->sq_head)));
    atomic_store(&s->rw->want_wake, (uint32_t)draw(i, 2));
    atomic_store(&s->rw->sleeps_on, (uint32_t)draw(i, 8));
    ring_doorbell(i);
    poll_all(i);
}

/* ---- what it posts */

static struct ibv_send_wr make_wr(struct play_intruder *i, struct ibv_sge *sge,
                                  const struct kedge_remote *remote)
{
    static const enum ibv_wr_opcode OPCODES[] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
                                                 IBV_WR_ATOMIC_FETCH_AND_ADD};
    struct ibv_send_wr wr = {.wr_id = ++i->last_id,
                             .sg_list = sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED,
                             .opcode = OPCODES[draw(i, 3)]};
    *sge = (struct ibv_sge){(uintptr_t)i->buffer, 8, i->lkey};
    if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = remote->addr;
        wr.wr.atomic.rkey = remote->rkey;
        wr.wr.atomic.compare_add = 1;
        return wr;
    }
    sge->length = (uint32_t)(1 + draw(i, BUFFER_BYTES));
    wr.wr.rdma.remote_addr = remote->addr;
    wr.wr.rdma.rkey = remote->rkey;
    return wr;
}

/* A region of others by chance, whose key is not what it should be. False: there is none. */
static bool choose_region(struct play_intruder *i, struct kedge_remote *out, char *text)
{
    const uint32_t tenant = 1 + (uint32_t)draw(i, i->settings.tenants);
    struct play_slot *slot = play_slot_take(&i->random, i->process->name, tenant);
    struct schema_token token;
    if (slot == NULL)
        return false;
    const int status = schema_token_parse(slot->region->token, &token);
    play_slot_give(slot);
    BASE_ASSERT(status == 0);
    *out = (struct kedge_remote){.addr = token.addr, .length = token.length, .rkey = token.vkey};
    memcpy(out->gid, token.gid, sizeof out->gid);
    token.secret[draw(i, sizeof token.secret)] ^= (uint8_t)(1 + draw(i, 255));
    if (draw(i, 4) == 0)
        token.vkey ^= 1u << draw(i, 32);
    schema_token_format(&token, text);
    return true;
}

static void post_one(struct play_intruder *i, const struct kedge_remote *remote)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = make_wr(i, &sge, remote), *bad;
    i->posts += kedge_post_send(i->q, &wr, &bad) == 0;
}

static void guess_keys(struct play_intruder *i)
{
    struct kedge_remote remote, other;
    char text[SCHEMA_TOKEN_TEXT];
    if (!choose_region(i, &remote, text))
        return;
    if (draw(i, 2) == 0)
        (void)kedge_import(i->session, text, &other);
    if (draw(i, 4) == 0)
        remote.rkey = (uint32_t)base_prng_next(&i->random);
    if (draw(i, 4) == 0)
        remote.addr += draw(i, 1 << 20);
    if (kedge_connect(i->q, remote.gid) != 0)
        return;
    for (uint64_t n = 1 + draw(i, 8); n > 0; n--)
        post_one(i, &remote);
    (void)kedge_wait(i->session, 100);
    poll_all(i);
}

/* Whether an address that differs in some middle bit is in the region still depends on where this
 * process has its memory, and the seed's story must not: the highest byte is changed in place of
 * those. */
static size_t find_byte(size_t byte)
{
    const size_t address = offsetof(struct schema_sq_desc, post.remote_addr);
    return byte > address && byte < address + 8 ? address + 7 : byte;
}

void play_intruder_alter(struct play_intruder *i)
{
    struct kedge_session *s = i->session;
    for (uint64_t n = 1 + draw(i, 4); n > 0; n--) {
        const uint32_t at = (s->sq_tail - (uint32_t)draw(i, 4)) & s->sq_mask;
        const size_t byte = find_byte(draw(i, sizeof *s->sq));
        ((uint8_t *)&s->sq[at])[byte] ^= (uint8_t)(1 << draw(i, 8));
    }
    atomic_store(&s->rw->sq_tail, s->sq_tail + (uint32_t)draw(i, 3));
    ring_doorbell(i);
}

static void alter_posts(struct play_intruder *i)
{
    guess_keys(i);
    play_intruder_alter(i);
}

/* ---- a region of its own, to which it has every right */

static bool lend_own(struct play_intruder *i, struct kedge_remote *out)
{
    const int access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    struct kedge_mr *mr;
    char text[KEDGE_TOKEN_MAX];
    void *memory;
    if (kedge_alloc(i->session, PLAY_REGION_BYTES, &memory, &i->lkey) != 0)
        return false;
    i->region = play_region_new(i->host->number, i->process->name, i->settings.tenants + 1, memory);
    if (kedge_reg_mr(i->session, memory, PLAY_REGION_BYTES, access, &mr) != 0 ||
        kedge_mr_export(mr, text, sizeof text) != 0 || kedge_import(i->session, text, out) != 0 ||
        kedge_connect(i->q, out->gid) != 0)
        return false;
    play_region_lend(i->region, i->session->gid, text);
    return true;
}

/* By a name that is a multiple of 8 where its place is none: what is aligned by the one is not by
 * the other. */
static void register_oddly(struct play_intruder *i)
{
    struct kedge_session *s = i->session;
    struct client_reply reply;
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_REG_MR,
        .reg_mr = {.offset = (uint64_t)(i->region->at - s->arenas[0].addr) + 1 + draw(i, 7),
                   .length = PLAY_REGION_BYTES - 8,
                   .vaddr = (uintptr_t)i->region->at,
                   .access = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC}};
    if (client_request(s, &d, &reply) != 0)
        return;
    struct ibv_sge sge = {(uintptr_t)i->buffer, 8, i->lkey};
    struct ibv_send_wr wr = {.wr_id = ++i->last_id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED,
                             .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD},
                       *bad;
    wr.wr.atomic.remote_addr = d.reg_mr.vaddr;
    wr.wr.atomic.rkey = (uint32_t)reply.value[0];
    i->posts += kedge_post_send(i->q, &wr, &bad) == 0;
}

/* All in a pass, or as soon as a lane may have looked. What becomes of it nobody asks: that each
 * access is one which it may have, other looks see to. */
static void misuse_own(struct play_intruder *i)
{
    struct kedge_remote remote;
    struct ibv_wc wc[16];
    if (i->region == NULL && !lend_own(i, &remote))
        return;
    if (i->region->token[0] == '\0' || kedge_import(i->session, i->region->token, &remote) != 0 ||
        kedge_connect(i->q, remote.gid) != 0)
        return;
    if (draw(i, 4) == 0)
        register_oddly(i);
    for (uint64_t n = 1 + draw(i, 20); n > 0; n--)
        post_one(i, &remote);
    rest(i, draw(i, 2) == 0 ? 20 * BASE_NS_PER_US : 2 * BASE_NS_PER_MS);
    play_intruder_alter(i);
    (void)kedge_wait(i->session, 100);
    while (kedge_poll(i->session, 16, wc) > 0) {
    }
}

static void hoard(struct play_intruder *i)
{
    struct kedge_remote remote;
    char text[SCHEMA_TOKEN_TEXT];
    if (!choose_region(i, &remote, text) || kedge_connect(i->q, remote.gid) != 0)
        return;
    for (int n = 0; n < 200; n++)
        post_one(i, &remote);
    if (draw(i, POLLS_ONCE_OF) == 0)
        poll_all(i);
}

static void flood_connects(struct play_intruder *i)
{
    struct kedge_vqp *q[FLOOD_VQPS];
    uint32_t made = 0;
    uint8_t gid[16] = {0xfd};
    while (made < FLOOD_VQPS && kedge_vqp_create(i->session, NULL, &q[made]) == 0) {
        gid[14] = (uint8_t)draw(i, 2);
        gid[15] = (uint8_t)draw(i, 24);
        (void)kedge_connect(q[made++], gid);
        if (draw(i, 8) == 0)
            (void)kedge_connect_node(q[made - 1], "node-z");
    }
    while (made > 0)
        kedge_vqp_destroy(q[--made]);
}

/* ---- at the attach socket */

static void send_garbage(struct play_intruder *i, int *scrap)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    uint8_t message[512];
    const size_t bytes =
        draw(i, 2) == 0 ? sizeof(struct schema_control_attach) : 1 + draw(i, sizeof message - 1);
    (void)snprintf(to.sun_path, sizeof to.sun_path, "%s", i->settings.socket);
    if (*scrap >= 0)
        (void)os_close(*scrap);
    *scrap = os_socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (os_connect(*scrap, (struct sockaddr *)&to, sizeof to) != 0)
        return;
    play_random_fill(&i->random, message, sizeof message);
    if (draw(i, 3) != 0) {
        struct schema_control_header h = {.magic = SCHEMA_CONTROL_MAGIC,
                                          .version = SCHEMA_CONTROL_VERSION,
                                          .type = (uint16_t)(1 + draw(i, 8)),
                                          .tag = (uint32_t)draw(i, 3),
                                          .size = (uint32_t)bytes};
        memcpy(message, &h, sizeof h);
    }
    for (uint64_t n = draw(i, 4); n > 0; n--)
        (void)os_base_fds_send(*scrap, message, bytes, NULL, 0);
}

/* ---- its lives */

static void harm_by_session(struct play_intruder *i, enum harm harm)
{
    if (!has_session(i)) {
        rest(i, BASE_NS_PER_S);
        return;
    }
    for (uint64_t n = 1 + draw(i, 200); n > 0 && atomic_load(&i->session->ro->ended) == 0; n--) {
        if (harm == HARM_SCRIBBLE)
            scribble(i);
        else if (harm == HARM_ALTER)
            alter_posts(i);
        else if (harm == HARM_GUESS)
            guess_keys(i);
        else if (harm == HARM_HOARD)
            hoard(i);
        else if (harm == HARM_CONNECT)
            flood_connects(i);
        else if (harm == HARM_OWN)
            misuse_own(i);
        else if (harm == HARM_MAIL)
            play_intruder_mail(i);
        rest(i, draw(i, 4) == 0 ? BASE_NS_PER_S : 100 * BASE_NS_PER_MS);
    }
    close_session(i);
}

static void attach_and_leave(struct play_intruder *i)
{
    if (has_session(i))
        close_session(i);
    rest(i, 500 * BASE_NS_PER_MS);
}

static void harm_socket(struct play_intruder *i, int scrap[SCRAPS])
{
    send_garbage(i, &scrap[draw(i, SCRAPS)]);
    rest(i, 200 * BASE_NS_PER_MS);
}

static void run_intruder(void *user)
{
    struct play_intruder *i = user;
    const enum harm harm = (enum harm)draw(i, HARM_KINDS - !i->settings.messages);
    int scrap[SCRAPS];
    for (int k = 0; k < SCRAPS; k++)
        scrap[k] = -1;
    play_trace(i->process->name, "%s", HARMS[harm]);
    for (;;)
        if (harm == HARM_GARBAGE)
            harm_socket(i, scrap);
        else if (harm == HARM_ATTACH)
            attach_and_leave(i);
        else
            harm_by_session(i, harm);
}

static void on_killed(struct play_process *process, void *user)
{
    (void)process;
    forget_memory(user);
}

static void come(void *user)
{
    struct play_intruder *i = user;
    const uint64_t life_ns = play_random_wait(&i->random, LIFE_S * BASE_NS_PER_S);
    if (play_now_ns() + life_ns >= i->settings.until_ns)
        return;
    i->process = play_process_new(i->host, "intruder", i->seed, run_intruder, i);
    BASE_ASSERT(i->process != NULL);
    i->process->killed = on_killed;
    i->process->spins = true;
    i->process->uid = i->settings.uid;
    play_event_after(&i->go, life_ns);
}

static void go(void *user)
{
    struct play_intruder *i = user;
    play_trace(i->process->name, "is killed");
    play_process_kill(i->process);
    i->process = NULL;
    play_event_after(&i->come, play_random_wait(&i->random, ABSENCE_S * BASE_NS_PER_S));
}

struct play_intruder *play_intruder_begin(struct play_host *host,
                                          const struct play_intruder_settings *settings,
                                          uint64_t seed)
{
    struct play_intruder *i = calloc(1, sizeof *i);
    if (i == NULL)
        return NULL;
    i->host = host;
    i->settings = *settings;
    i->seed = seed;
    i->random = play_random_of(seed, "intruder", host->number);
    i->come = (struct play_event){.happen = come, .user = i};
    i->go = (struct play_event){.happen = go, .user = i};
    play_event_after(&i->come, play_random_wait(&i->random, ABSENCE_S * BASE_NS_PER_S));
    return i;
}

void play_intruder_kill(struct play_intruder *i)
{
    if (i->process == NULL)
        return;
    play_event_cancel(&i->go);
    go(i);
}

void play_intruder_end(struct play_intruder *i)
{
    play_event_cancel(&i->come);
    play_event_cancel(&i->go);
    if (i->process != NULL)
        play_process_kill(i->process);
    free(i);
}

uint64_t play_intruder_posts(const struct play_intruder *i)
{
    return i->posts;
}
