/* SPDX-License-Identifier: Apache-2.0 */
#include "mail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "ledger.h"
#include "operators.h"
#include "schema/record.h"

enum { BOXES = 1 << 16, STREAMS = 1 << 18 };

struct letter {
    uint32_t bytes;
    uint8_t end; /* enum mail_end */
    bool popped;
};

struct mail_stream {
    uint64_t number; /* its place, and 1 */
    struct mail_box *to, *answers;
    uint32_t tenant;
    uint32_t letters, room, next; /* next: the one that is to be popped next */
    struct letter *letter;
};

static struct {
    struct mail_box *box[BOXES];
    struct mail_stream *stream[STREAMS];
    uint32_t boxes, streams;
    uint64_t heard;
} mail;

void play_mail_begin(void)
{
    mail.heard = 0;
}

void play_mail_end(void)
{
    for (uint32_t i = 0; i < mail.boxes; i++)
        free(mail.box[i]);
    for (uint32_t i = 0; i < mail.streams; i++) {
        free(mail.stream[i]->letter);
        free(mail.stream[i]);
    }
    mail.boxes = mail.streams = 0;
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
    b->answers = port == 0;
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
    return s;
}

struct mail_box *play_stream_answers(const struct mail_stream *s)
{
    return s->answers;
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

uint32_t play_stream_post(struct mail_stream *s, uint32_t bytes, uint8_t *out)
{
    if (s->letters == s->room) {
        s->room = 2 * s->room + 16;
        s->letter = realloc(s->letter, s->room * sizeof s->letter[0]);
        BASE_ASSERT(s->letter != NULL);
    }
    s->letter[s->letters] = (struct letter){.bytes = bytes, .end = MAIL_OUT};
    fill_letter(s, s->letters, bytes, out);
    return s->letters++;
}

void play_stream_ended(struct mail_stream *s, uint32_t number, enum mail_end end, const char *who)
{
    struct letter *l = &s->letter[number];
    if (end == MAIL_NOT_SENT && l->popped)
        play_violation(who, "a message is said to have never been sent, and was heard");
    if (end == MAIL_TAKEN && number > 0 && s->letter[number - 1].end == MAIL_NOT_SENT)
        play_violation(who, "a message ends well behind one that was never sent");
    l->end = (uint8_t)end;
    s->to->unheard += end == MAIL_TAKEN && !l->popped;
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
    return head[1] < s->letters ? s : NULL;
}

static const char *find_fault(const struct mail_box *box, const struct mail_stream *s,
                              uint32_t number, const uint8_t *content, uint32_t bytes)
{
    uint8_t as_sent[2 * MAIL_MOST];
    const struct letter *l = &s->letter[number];
    if (l->bytes != bytes || bytes > sizeof as_sent)
        return "a message comes with another length than it was sent with";
    fill_letter(s, number, bytes, as_sent);
    if (memcmp(as_sent, content, bytes) != 0)
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

struct mail_stream *play_box_popped(struct mail_box *box, const uint8_t *content, uint32_t bytes,
                                    uint32_t tenant)
{
    uint32_t number = 0;
    struct mail_stream *s = find_stream(content, bytes, &number);
    if (s == NULL) {
        play_violation(box->owner, "a message comes that nobody has sent");
        return NULL;
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

void play_box_is_empty(const struct mail_box *box)
{
    if (box->live && box->unheard > 0)
        play_violation(box->owner, "%llu messages were acknowledged, and never come",
                       (unsigned long long)box->unheard);
}
