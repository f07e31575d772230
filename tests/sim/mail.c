/* SPDX-License-Identifier: Apache-2.0 */
#include "mail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "cluster_state.h"
#include "control/config.h"
#include "fabric/sim.h"
#include "ledger.h"
#include "liar.h"
#include "operators.h"
#include "post_looks.h"
#include "raises.h"
#include "schema/record.h"

enum {
    BOXES = 1 << 16,
    STREAMS = 1 << 18,
    IMM_LETTER = 14,
    IMM_LETTERS = (1 << IMM_LETTER) - 1,
    LENT = 4096, /* the last ones */
    LEFT_S = 60  /* what was left is withdrawn by the rule of leases, by an agent that lives */
};

/* Memory that a letter is READ from, or was before others were. Packets that come twice have a READ
 * carried out once more, when its answer was heard: what its receiver has said is over nobody asks
 * for again. What it has not the owner has waited for until nothing more can come. */
struct lent {
    const uint8_t *at; /* NULL: none */
    const struct mail_stream *of;
    uint32_t number, bytes;
    uint64_t left_ns, over_ns; /* 0: it was not, or is not */
    bool withdrawn;            /* it was not over by what its receiver said */
};

struct letter {
    uint32_t bytes;
    uint8_t end; /* enum mail_end */
    bool popped;
    bool imm; /* it is an immediate */
    struct mail_list list;
};

struct mail_stream {
    uint64_t number; /* its place, and 1 */
    struct mail_box *to, *answers;
    uint32_t tenant;
    bool lies;                    /* of one end the agent lies: of what it does nothing is known */
    uint64_t taken_ns;            /* when its receiver last took one, as its sender was told */
    uint32_t letters, room, next; /* next: the one that is to be popped next */
    struct letter *letter;
    struct mail_behind behind;
};

static struct {
    struct mail_box *box[BOXES];
    struct mail_stream *stream[STREAMS];
    uint32_t boxes, streams, lents;
    uint64_t heard;
    struct lent lent[LENT];
} mail;

void play_mail_begin(void)
{
    mail.heard = 0;
    play_lists_begin();
    play_order_begin();
    play_counters_begin();
}

void play_mail_end(void)
{
    for (uint32_t i = 0; i < mail.boxes; i++)
        free(mail.box[i]);
    for (uint32_t i = 0; i < mail.streams; i++) {
        free(mail.stream[i]->letter);
        free(mail.stream[i]);
    }
    play_counters_end();
    mail.boxes = mail.streams = mail.lents = 0;
    memset(mail.lent, 0, sizeof mail.lent);
}

uint64_t play_mail_heard(void)
{
    return mail.heard;
}

/* ---- boxes */

struct mail_box *play_box_open(const char *owner, const uint8_t gid[16], uint32_t tenant,
                               uint32_t port)
{
    struct mail_box *b = calloc(1, sizeof *b);
    BASE_ASSERT(b != NULL && mail.boxes < BOXES && tenant <= MAIL_TENANTS);
    (void)snprintf(b->owner, sizeof b->owner, "%s", owner);
    memcpy(b->gid, gid, sizeof b->gid);
    b->tenant = tenant;
    b->port = port;
    b->most = MAIL_MOST;
    b->answers = port == 0;
    b->opened_ns = play_now_ns();
    b->live = b->lets_in[tenant] = true;
    return mail.box[mail.boxes++] = b;
}

uint32_t play_box_next_port(void)
{
    return mail.boxes + 1;
}

void play_box_close(struct mail_box *box)
{
    if (box != NULL)
        box->live = false;
}

struct mail_box *play_box_of(const char *owner)
{
    for (uint32_t i = mail.boxes; i > 0; i--) {
        struct mail_box *b = mail.box[i - 1];
        if (b->live && !b->answers && strcmp(b->owner, owner) == 0)
            return b;
    }
    return NULL;
}

struct mail_box *play_box_choose(struct base_prng *r)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < mail.boxes; i++)
        count += mail.box[i]->live && !mail.box[i]->answers;
    uint64_t which = count > 0 ? base_prng_below(r, count) : 0;
    for (uint32_t i = 0; i < mail.boxes && count > 0; i++)
        if (mail.box[i]->live && !mail.box[i]->answers && which-- == 0)
            return mail.box[i];
    return NULL;
}

/* ---- streams */

struct mail_stream *play_stream_begin(struct mail_box *to, uint32_t tenant,
                                      struct mail_box *answers)
{
    struct mail_stream *s = calloc(1, sizeof *s);
    BASE_ASSERT(s != NULL && mail.streams < STREAMS);
    mail.stream[mail.streams++] = s;
    *s = (struct mail_stream){
        .number = mail.streams, .to = to, .answers = answers, .tenant = tenant};
    s->lies = play_liar_is(play_process->host->number) || play_liar_has_gid(to->gid);
    return s;
}

struct mail_box *play_stream_answers(const struct mail_stream *s)
{
    return s->answers;
}

struct mail_box *play_stream_to(const struct mail_stream *s)
{
    return s->to;
}

struct mail_behind *play_stream_behind(struct mail_stream *s)
{
    return &s->behind;
}

/* Which stream, which letter, and what follows from both. */
static void fill_letter(const struct mail_stream *s, uint32_t number, uint32_t bytes, uint8_t *out)
{
    struct base_prng r;
    const uint64_t head[2] = {s->number, number};
    base_prng_seed(&r, s->number << 32 | number);
    memcpy(out, head, sizeof head);
    for (uint32_t i = sizeof head; i < bytes; i += 8) {
        const uint64_t word = base_prng_next(&r);
        memcpy(out + i, &word, bytes - i < 8 ? bytes - i : 8);
    }
}

static uint32_t add_letter(struct mail_stream *s, const struct letter *letter)
{
    if (s->letters == s->room) {
        s->room = 2 * s->room + 16;
        s->letter = realloc(s->letter, s->room * sizeof s->letter[0]);
        BASE_ASSERT(s->letter != NULL);
    }
    s->letter[s->letters] = *letter;
    return s->letters++;
}

uint32_t play_stream_post(struct mail_stream *s, uint32_t bytes, uint8_t *out)
{
    fill_letter(s, s->letters, bytes, out);
    return add_letter(s, &(struct letter){.bytes = bytes});
}

uint32_t play_stream_post_list(struct mail_stream *s, uint32_t bytes, uint8_t *out,
                               const struct mail_list *list)
{
    fill_letter(s, s->letters, bytes, out);
    return add_letter(s, &(struct letter){.bytes = bytes, .list = *list});
}

/* The low bits of both numbers. */
uint32_t play_stream_post_imm(struct mail_stream *s, uint32_t bytes, const struct mail_list *list,
                              uint32_t *imm)
{
    *imm = (uint32_t)(s->number << IMM_LETTER | (s->letters & IMM_LETTERS));
    return add_letter(s, &(struct letter){.bytes = bytes, .imm = true, .list = *list});
}

/* ---- what is lent */

static struct lent *find_lent(const struct mail_stream *s, uint32_t number)
{
    for (uint32_t i = 0; i < LENT && i < mail.lents; i++)
        if (mail.lent[i].at != NULL && mail.lent[i].of == s && mail.lent[i].number == number)
            return &mail.lent[i];
    return NULL;
}

void play_stream_lends(struct mail_stream *s, uint32_t number, const uint8_t *at)
{
    mail.lent[mail.lents++ % LENT] =
        (struct lent){.at = at, .of = s, .number = number, .bytes = s->letter[number].bytes};
}

void play_mail_forget(const uint8_t *at, size_t bytes)
{
    for (uint32_t i = 0; i < LENT; i++)
        if (mail.lent[i].at >= at && mail.lent[i].at < at + bytes)
            mail.lent[i].at = NULL;
}

static const char *find_wrong_read(const struct lent *n, const struct sim_access *access)
{
    const struct mail_box *to = n->of->to;
    const uint32_t tenant = agent_tenant_id(play_tenant_name(to->tenant - 1));
    uint8_t gid[16];
    cluster_gid(access->initiator, gid);
    if (access->kind != SIM_READ)
        return "in a message";
    if (n->of->lies)
        return NULL; /* it is trusted with it until its lender knows that it is over */
    if (memcmp(gid, to->gid, sizeof gid) != 0)
        return "in a message that was sent to somebody else";
    if (n->left_ns != 0 && play_now_ns() > n->left_ns + LEFT_S * BASE_NS_PER_S)
        return "in a message that was left behind long ago";
    const uint64_t posted_ns = play_posts_reach_ns(access, tenant);
    if (posted_ns == 0)
        return "in a message, and nobody of its receiver's tenant has asked for it";
    if (n->over_ns != 0 && (posted_ns > n->over_ns || n->withdrawn))
        return "in a message that is over";
    return NULL;
}

/* The newest one says what is wrong. */
const char *play_mail_read(const struct sim_access *access)
{
    const uint8_t *at = access->at;
    const char *wrong = NULL;
    for (uint32_t i = 1; i <= LENT && i <= mail.lents; i++) {
        const struct lent *n = &mail.lent[(mail.lents - i) % LENT];
        if (n->at == NULL || at < n->at || at + access->bytes > n->at + n->bytes)
            continue;
        const char *why = find_wrong_read(n, access);
        if (why == NULL)
            return NULL;
        wrong = wrong != NULL ? wrong : why;
    }
    return wrong != NULL ? wrong : "in memory that it does not lend";
}

/* ---- its end */

void play_stream_ended(struct mail_stream *s, uint32_t number, enum mail_end end, const char *who)
{
    struct letter *l = &s->letter[number];
    if (s->lies)
        return;
    if (end == MAIL_NOT_SENT && l->popped)
        play_violation(who, "a message is said to have never been sent, and was heard");
    if (end == MAIL_TAKEN && number > 0 && s->letter[number - 1].end == MAIL_NOT_SENT)
        play_violation(who, "a message ends well behind one that was never sent");
    struct lent *n = find_lent(s, number);
    if (n != NULL)
        *(end == MAIL_LEFT ? &n->left_ns : &n->over_ns) = play_now_ns();
    if (n != NULL)
        n->withdrawn = end == MAIL_UNKNOWN;
    s->taken_ns = end == MAIL_TAKEN ? play_now_ns() : s->taken_ns;
    l->end = (uint8_t)end;
    if (end != MAIL_TAKEN)
        play_order_over(s->to, &s->behind, s->next);
    s->to->unheard += end == MAIL_TAKEN && !l->popped;
}

void play_stream_silent(const struct mail_stream *s, uint64_t calm_ns, const char *who)
{
    if (!s->lies && s->taken_ns > calm_ns)
        play_violation(who, "nothing has gone wrong since a message was taken, and now its "
                            "receiver's agent is held to be silent");
}

/* ---- what comes */

static struct mail_stream *find_stream(const uint8_t *content, uint32_t bytes, uint32_t *number)
{
    uint64_t head[2];
    if (bytes < MAIL_LEAST)
        return NULL;
    memcpy(head, content, sizeof head);
    if (head[0] == 0 || head[0] > mail.streams)
        return NULL;
    struct mail_stream *s = mail.stream[head[0] - 1];
    *number = (uint32_t)head[1];
    return head[1] < s->letters && !s->letter[head[1]].imm ? s : NULL;
}

bool play_is_letter(const uint8_t *content, uint32_t bytes)
{
    uint32_t number;
    return find_stream(content, bytes, &number) != NULL;
}

static struct mail_stream *find_immediate(uint32_t imm, uint32_t *number)
{
    const uint64_t stream = imm >> IMM_LETTER;
    if (stream == 0 || stream > mail.streams)
        return NULL;
    struct mail_stream *s = mail.stream[stream - 1];
    *number = s->next + ((imm - s->next) & IMM_LETTERS);
    if (s->lies && *number >= s->letters)
        *number = s->letters - 1;
    return *number < s->letters && (s->letter[*number].imm || s->lies) ? s : NULL;
}

static bool is_as_sent(const struct mail_stream *s, uint32_t number, const uint8_t *content,
                       uint32_t bytes)
{
    static uint8_t as_sent[MAIL_LARGE_MOST];
    if (s->letter[number].bytes != bytes || bytes > sizeof as_sent)
        return false;
    fill_letter(s, number, bytes, as_sent);
    return memcmp(as_sent, content, bytes) == 0;
}

static const char *find_fault(const struct mail_box *box, const struct mail_stream *s,
                              uint32_t number, const uint8_t *content, uint32_t bytes)
{
    const struct letter *l = &s->letter[number];
    if (l->bytes != bytes)
        return "a message comes with another length than it was sent with";
    if (content != NULL && !is_as_sent(s, number, content, bytes))
        return "a message comes with other bytes than it was sent with";
    if (s->to != box)
        return "a message comes that was sent to somebody else";
    if (!box->lets_in[s->tenant])
        return "a message comes of a tenant that is not let in";
    if (l->popped)
        return "a message comes twice";
    if (number != s->next)
        return "a message comes out of its order";
    if (l->end == MAIL_NOT_SENT)
        return "a message comes that was never sent, as its sender was told";
    return NULL;
}

/* content NULL: it has none. */
static struct mail_stream *take_letter(struct mail_box *box, struct mail_stream *s, uint32_t number,
                                       const uint8_t *content, uint32_t bytes, uint32_t tenant)
{
    if (s == NULL) {
        play_violation(box->owner, "a message comes that nobody has sent");
        return NULL;
    }
    if (s->lies) { /* what it says, its payload is what was sent */
        if (content != NULL && bytes < MAIL_LARGE_LEAST && !is_as_sent(s, number, content, bytes))
            play_violation(box->owner, "a message comes with bytes that nobody has written");
        s->next = number + 1;
        mail.heard++;
        return s;
    }
    const char *fault = find_fault(box, s, number, content, bytes);
    if (fault == NULL && tenant != schema_tenant_number(play_tenant_name(s->tenant - 1)))
        fault = "a message says that it is another tenant's";
    if (fault != NULL)
        play_violation(box->owner, "%s", fault);
    struct letter *l = &s->letter[number];
    box->unheard -= l->end == MAIL_TAKEN && !l->popped;
    l->popped = true;
    s->next = number + 1;
    mail.heard++;
    return s;
}

struct mail_stream *play_box_popped(struct mail_box *box, const uint8_t *content, uint32_t bytes,
                                    uint32_t tenant)
{
    uint32_t number = 0;
    struct mail_stream *s = find_stream(content, bytes, &number);
    return take_letter(box, s, number, content, bytes, tenant);
}

struct mail_stream *play_box_popped_imm(struct mail_box *box, uint32_t imm, uint32_t bytes,
                                        uint32_t tenant)
{
    uint32_t number = 0;
    struct mail_stream *s = find_immediate(imm, &number);
    return take_letter(box, s, number, NULL, bytes, tenant);
}

void play_box_popped_hostile(const struct mail_box *box, uint32_t tenant)
{
    if (!box->lets_in[tenant])
        play_violation(box->owner, "a message comes of a hostile worker that is not let in");
}

bool play_stream_lies(const struct mail_stream *s)
{
    return s->lies;
}

bool play_stream_is_imm(const struct mail_stream *s, uint32_t number)
{
    return s->letter[number].imm;
}

const struct mail_list *play_stream_list(const struct mail_stream *s)
{
    return &s->letter[s->next - 1].list;
}

void play_box_is_empty(const struct mail_box *box)
{
    if (box->live && box->unheard > 0)
        play_violation(box->owner, "%llu messages were acknowledged, and never come",
                       (unsigned long long)box->unheard);
}
