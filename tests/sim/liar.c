/* SPDX-License-Identifier: Apache-2.0 */
#include "liar.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cluster_state.h"
#include "fabric/sim.h"
#include "ledger.h"
#include "random.h"
#include "schema/handshake.h"
#include "schema/message.h"
#include "trace.h"

enum {
    KEPT = 64,       /* of what was said, of each kind */
    FASHION_S = 4,   /* how long it lies in one way, on average */
    KEYS_PPM = 3000, /* of its READs and WRITEs name another key */
    FLOOD_MOST = 40, /* datagrams in place of one */
    WHOLE = 100
};

/* What it lies about, for a while. */
enum fashion {
    NOTHING,
    ALL,
    CREDIT,
    NOTES,
    ONE_NOTE, /* the same of all, over and over */
    WHO,
    SAID,
    HEADERS,
    PARTS,
    FLOOD,
    FASHIONS
};
static const char *const FASHION[FASHIONS] = {
    "nothing",   "all it can",  "credit",   "streams",        "streams, in one way",
    "who it is", "nothing new", "messages", "large messages", "more than there is"};

static struct {
    bool is; /* there is one */
    uint32_t node;
    struct base_prng random;
    enum fashion fashion;
    uint32_t percent; /* of what it sends it alters */
    uint64_t until_ns, lies;
    struct schema_note one;
    struct schema_datagram datagram[KEPT];
    struct schema_handshake handshake[KEPT];
    struct schema_message message[KEPT];
    uint32_t datagrams, handshakes, messages;
} liar;

void play_liar_begin(uint64_t seed, uint32_t nodes)
{
    memset(&liar, 0, sizeof liar);
    if (nodes == 0)
        return;
    liar.is = true;
    liar.random = play_random_of(seed, "liar", 0);
    liar.node = (uint32_t)base_prng_below(&liar.random, nodes);
}

bool play_liar_is(uint32_t node)
{
    return liar.is && node == liar.node;
}

bool play_liar_has_gid(const uint8_t gid[16])
{
    uint8_t own[16];
    cluster_gid(liar.node, own);
    return liar.is && memcmp(own, gid, sizeof own) == 0;
}

bool play_liar_has_worker(const char *name)
{
    const char *host = liar.is ? cluster_node(liar.node)->host.name : NULL;
    const size_t n = host != NULL ? strlen(host) : 0;
    return host != NULL && strncmp(name, host, n) == 0 && name[n] == '/' &&
           strncmp(name + n + 1, "worker", 6) == 0;
}

uint64_t play_lies(void)
{
    return liar.lies;
}

static uint64_t draw(uint64_t n)
{
    return base_prng_below(&liar.random, n);
}

/* Of any size. */
static uint32_t draw_any(void)
{
    return (uint32_t)base_prng_next(&liar.random) >> draw(32);
}

/* Near what is so, or anything. */
static void alter(uint32_t *is)
{
    const uint32_t near = 1 + (uint32_t)draw(draw(2) == 0 ? 40 : 3);
    *is = draw(4) == 0 ? draw_any() : draw(2) == 0 ? *is + near : *is - near;
}

static const struct schema_datagram *find_datagram(void)
{
    return &liar.datagram[draw(liar.datagrams < KEPT ? liar.datagrams : KEPT)];
}

/* ---- datagrams */

static void alter_credit(struct schema_datagram *d)
{
    switch (draw(6)) {
    case 0:
        alter(&d->granted);
        break;
    case 1:
        alter(&d->used);
        break;
    case 2:
        d->account_epoch = draw(2) == 0 ? d->account_epoch + 1 : find_datagram()->account_epoch;
        break;
    case 3:
        alter(&d->settled);
        break;
    case 4:
        d->purse_epoch =
            draw(2) == 0 ? d->purse_epoch + 1 - (uint32_t)draw(3) : find_datagram()->purse_epoch;
        break;
    default:
        d->wants = draw_any();
    }
}

static void alter_note(struct schema_note *n)
{
    const struct schema_datagram *other = find_datagram();
    switch (draw(6)) {
    case 0:
    case 1:
        alter(&n->number);
        break;
    case 2:
        n->kind = (uint8_t)(1 + draw(SCHEMA_NOTE_READS));
        break;
    case 3:
        n->aside = (uint16_t)draw_any();
        break;
    case 4:
        if (other->notes > 0)
            *n = other->note[draw(other->notes)];
        if (draw(2) == 0)
            alter(&n->number);
        break;
    default:
        n->kind = SCHEMA_NOTE_REFUSED;
        n->wait_us = draw_any();
    }
}

/* What no reader would take is said as it must be. */
static void mend_note(struct schema_note *n)
{
    const bool aside = n->kind == SCHEMA_NOTE_TAKEN || n->kind == SCHEMA_NOTE_ANSWER;
    n->wait_us = n->kind == SCHEMA_NOTE_REFUSED ? n->wait_us : 0;
    n->status = n->kind == SCHEMA_NOTE_FAILED ? (uint8_t)(n->status % 20 + 1) : 0;
    n->aside = aside ? n->aside : 0;
}

/* The stream and the number are what they are. */
static void say_one(struct schema_note *n)
{
    n->kind = liar.one.kind;
    n->number -= liar.one.number;
    n->wait_us = liar.one.wait_us;
    n->aside = liar.one.aside;
}

static void alter_who(struct schema_datagram *d)
{
    const struct schema_datagram *other = find_datagram();
    switch (draw(5)) {
    case 0:
        memcpy(d->from_gid, other->from_gid, sizeof d->from_gid);
        d->from_incarnation = other->from_incarnation;
        break;
    case 1:
        d->from_incarnation += 1 - 2 * (uint32_t)draw(2);
        d->from_incarnation += d->from_incarnation == 0;
        break;
    case 2:
        d->to_incarnation = draw(2) == 0 ? 0 : draw_any();
        break;
    case 3:
        d->qpn = other->qpn;
        d->qkey = other->qkey;
        break;
    default:
        d->pool = (uint16_t)draw_any();
        d->lid = (uint16_t)draw_any();
    }
}

/* In as many bytes as there are: what more notes another had is left out. */
static void say_again(struct schema_datagram *d)
{
    const uint32_t room = d->notes, to = d->to_incarnation;
    *d = *find_datagram();
    d->notes = d->notes < room ? d->notes : room;
    if (draw(2) == 0)
        d->to_incarnation = to;
}

static bool is_about(enum fashion what)
{
    return liar.fashion == what || (liar.fashion == ALL && draw(2) == 0);
}

static bool alter_datagram(struct schema_datagram *d)
{
    const uint64_t before = liar.lies;
    const bool again = is_about(SAID) && ++liar.lies;
    if (again)
        say_again(d);
    if (is_about(CREDIT) && ++liar.lies)
        alter_credit(d);
    if (is_about(WHO) && ++liar.lies)
        alter_who(d);
    const bool notes = is_about(NOTES) || (again && draw(2) == 0);
    for (uint32_t i = 0; i < d->notes && notes && ++liar.lies; i++)
        alter_note(&d->note[i]);
    for (uint32_t i = 0; i < d->notes && liar.fashion == ONE_NOTE && ++liar.lies; i++)
        say_one(&d->note[i]);
    for (uint32_t i = 0; i < d->notes; i++)
        mend_note(&d->note[i]);
    return liar.lies != before;
}

/* What it says has as many bytes as what its lane says. */
static void lie_in_datagram(const struct sim_sent *sent, struct schema_datagram *d)
{
    uint8_t bytes[SCHEMA_DATAGRAM_BYTES + SCHEMA_DATAGRAM_NOTES * SCHEMA_NOTE_BYTES];
    const uint32_t notes = d->notes;
    if (!alter_datagram(d))
        return;
    while (d->notes < notes) {
        d->note[d->notes] = (struct schema_note){
            .stream = 1 + draw_any(), .kind = SCHEMA_NOTE_ASK, .number = draw_any()};
        d->notes++;
    }
    (void)schema_datagram_write(d, bytes);
    memcpy(sent->data, bytes, sent->bytes);
}

/* ---- messages */

static void alter_header(struct schema_message *m)
{
    const struct schema_message *other =
        &liar.message[draw(liar.messages < KEPT ? liar.messages : KEPT)];
    switch (draw(9)) {
    case 0:
        alter(&m->number);
        break;
    case 1:
        alter(&m->credit);
        break;
    case 2:
        m->epoch = draw(4) == 0 ? m->epoch + 3 - (uint32_t)draw(7) : find_datagram()->account_epoch;
        m->epoch += m->epoch == 0;
        break;
    case 3:
        m->stream = draw(2) == 0 ? 1 + draw_any() : other->stream;
        break;
    case 4:
        m->opens = !m->opens;
        break;
    case 5:
        alter(&m->to_incarnation);
        break;
    case 6:
        if (other->kind == m->kind) {
            m->to = other->to;
            m->to_tenant = other->to_tenant;
        }
        break;
    case 7:
        m->secret = m->secret != 0 ? m->secret ^ 1ull << draw(64) : 0;
        break;
    default:
        m->length = m->length + 1 - 2 * (uint32_t)draw(2);
    }
}

/* Where a large message is. */
static void alter_parts(const struct schema_message *m, uint8_t *at)
{
    struct schema_part parts[SCHEMA_PARTS_MOST];
    if (schema_parts_read(at, m, parts) != 0)
        return;
    struct schema_part *p = &parts[draw(m->parts)];
    liar.lies++;
    if (draw(3) == 0)
        p->addr += draw(2) == 0 ? draw_any() : 1ull << draw(64);
    else if (draw(2) == 0)
        p->vkey = draw(2) == 0 ? draw_any() : p->vkey ^ 1u << draw(32);
    else
        alter(&p->length);
    schema_parts_write(parts, m->parts, at);
}

static void lie_in_message(const struct sim_sent *sent, struct schema_message *m)
{
    uint8_t *behind = sent->data + SCHEMA_MESSAGE_BYTES;
    if (m->parts > 0 && is_about(PARTS))
        alter_parts(m, behind);
    if (!is_about(HEADERS))
        return;
    liar.lies++;
    alter_header(m);
    schema_message_write(m, sent->data);
}

/* ---- handshakes */

static void alter_handshake(struct schema_handshake *h)
{
    const struct schema_handshake other =
        liar.handshake[draw(liar.handshakes < KEPT ? liar.handshakes : KEPT)];
    switch (draw(9)) {
    case 0:
        h->kind = (uint8_t)(1 + draw(SCHEMA_HANDSHAKE_MESSAGES));
        h->reason = h->kind == SCHEMA_HANDSHAKE_REFUSE ? (uint8_t)(1 + draw(3)) : 0;
        break;
    case 1:
        memcpy(h->from_gid, other.from_gid, sizeof h->from_gid);
        h->from_incarnation = other.from_incarnation;
        break;
    case 2:
        h->from_incarnation += 1 - 2 * (uint32_t)draw(2);
        break;
    case 3:
        h->nonce = draw(2) == 0 ? other.nonce : base_prng_next(&liar.random);
        break;
    case 4:
        h->qpn = draw(2) == 0 ? other.qpn : draw_any() & 0xffffff;
        break;
    case 5:
        h->psn = draw_any();
        break;
    case 6:
        h->rd_atomic = (uint8_t)draw_any();
        break;
    case 7:
        h->mtu = (uint8_t)(1 + draw(5));
        break;
    default:
        *h = other; /* what somebody has said */
    }
}

/* ---- all that it sends */

static void choose_fashion(void)
{
    static const uint32_t percents[] = {20, 60, WHOLE};
    if (play_now_ns() < liar.until_ns)
        return;
    liar.until_ns = play_now_ns() + play_random_wait(&liar.random, FASHION_S * BASE_NS_PER_S);
    liar.fashion = (enum fashion)draw(FASHIONS);
    liar.fashion = draw(2) == 0 ? ALL : liar.fashion;
    liar.percent = percents[draw(3)];
    liar.one = (struct schema_note){.kind = (uint8_t)(1 + draw(SCHEMA_NOTE_READS)),
                                    .number = (uint32_t)draw(2),
                                    .wait_us = draw_any(),
                                    .aside = (uint16_t)draw_any()};
    play_trace(cluster_node(liar.node)->host.name, "lies about %s, in %u of a hundred cases",
               FASHION[liar.fashion], liar.percent);
}

static bool lies_now(void)
{
    return liar.fashion != NOTHING && draw(WHOLE) < liar.percent;
}

static void hear_datagram(const struct sim_sent *sent, bool own)
{
    struct schema_datagram d;
    if (schema_datagram_read(sent->data, sent->bytes, &d) != 0)
        return;
    if (sent->copies == 0)
        liar.datagram[liar.datagrams++ % KEPT] = d;
    if (own && lies_now())
        lie_in_datagram(sent, &d);
}

static bool hear_handshake(const struct sim_sent *sent, bool own)
{
    struct schema_handshake h;
    if (schema_handshake_read(sent->data, sent->bytes, &h) != 0)
        return false;
    if (sent->copies == 0)
        liar.handshake[liar.handshakes++ % KEPT] = h;
    if (!own || !lies_now() || !is_about(WHO))
        return true;
    liar.lies++;
    alter_handshake(&h);
    memcpy(sent->data, &h, sizeof h);
    return true;
}

static void hear_message(const struct sim_sent *sent)
{
    struct schema_message m;
    if (schema_message_read(sent->data, sent->bytes, &m) != 0)
        return;
    liar.message[liar.messages++ % KEPT] = m;
    if (lies_now())
        lie_in_message(sent, &m);
}

uint32_t play_liar_sends(void *user, const struct sim_sent *sent)
{
    (void)user;
    if (!liar.is)
        return 0;
    const bool own = sent->node == liar.node;
    if (own)
        choose_fashion();
    if (sent->datagram && !hear_handshake(sent, own))
        hear_datagram(sent, own);
    else if (own && !sent->datagram && sent->data != NULL)
        hear_message(sent);
    else if (own && !sent->datagram && *sent->rkey != 0 && liar.fashion != NOTHING &&
             play_random_happens(&liar.random, KEYS_PPM) && ++liar.lies)
        *sent->rkey ^= 1 + draw_any();
    const bool floods = own && liar.fashion == FLOOD && sent->copies == 0 && lies_now();
    return floods ? (uint32_t)draw(FLOOD_MOST) : 0;
}
