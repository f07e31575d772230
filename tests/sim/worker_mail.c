/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulated worker does with messages: it binds a port and hears there, lets another tenant
 * in and shuts it out, sends to others' ports, in lists, and answers some of what it hears on the
 * queue pair that came with it. mail.h judges. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "kedge_msg.h"
#include "liar.h"
#include "mail.h"
#include "operators.h"
#include "random.h"
#include "request.h"
#include "schema/peers.h"
#include "schema/record.h"
#include "trace.h"
#include "worker_state.h"

enum {
    POPPED_AT_ONCE = 4,
    GUESTS_PPM = 200000,  /* of these it lets another tenant in, or shuts it out */
    HOSTILE_PPM = 500000, /* and of these a hostile one, where there is any */
    LONG_PPM = 20000,     /* lists end with one for which receives are too short */
    LARGE_PPM = 150000,   /* messages are large, where there is room for them on both sides */
    ANSWER_PPM = 300000,  /* of what may be answered is */
    FORGET_PPM = 100000,  /* queue pairs of senders that go, of those that are idle */
    ABANDON_PPM = 10000,
    ABANDONED_S = 10,
    LISTS_PPM = 300000,  /* turns for lists that end with a message */
    IMPORTS_PPM = 20000, /* for tokens of other tenants */
    MAIL_HANG_S = 120
};

static bool happens(struct play_worker *w, uint32_t ppm)
{
    return play_random_happens(&w->random, ppm);
}

/* ---- who answers, and is answered */

static void forget_friend(struct play_worker *w, struct mail_friend *f)
{
    if (f->out)
        play_stream_ended(f->answer, f->number, MAIL_LEFT, "");
    if (f->out && f->large)
        play_letters_over(w, true, true);
    *f = (struct mail_friend){.q = NULL};
}

/* Its queue pair is the same for all that one sender sends, until it is destroyed. */
static struct mail_friend *find_friend(struct play_worker *w, const struct mail_stream *of,
                                       struct kedge_vqp *q)
{
    struct mail_friend *room = NULL;
    for (uint32_t i = 0; i < MAIL_FRIENDS; i++) {
        struct mail_friend *f = &w->mail.friends[i];
        if (f->q != NULL && f->of == of && f->q != q && !play_stream_lies(of))
            play_violation(w->process->name, "messages of one sender come with two queue pairs");
        if (f->q == q)
            return f->of == of ? f : NULL;
        room = f->q == NULL ? f : room;
    }
    if (room == NULL) {
        kedge_vqp_destroy(q);
        return NULL;
    }
    *room = (struct mail_friend){.q = q, .of = of};
    return room;
}

static uint32_t draw_large(struct play_worker *w)
{
    return (uint32_t)play_random_between(&w->random, MAIL_LARGE_LEAST, MAIL_LARGE_MOST);
}

static void answer(struct play_worker *w, struct mail_friend *f)
{
    struct mail_box *to = play_stream_answers(f->of);
    struct mail_pieces at;
    struct ibv_send_wr wr = {.wr_id = ++w->last_id,
                             .sg_list = at.sge,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    if (to == NULL || f->out || f->failed || !happens(w, ANSWER_PPM))
        return;
    if (f->answer == NULL)
        f->answer = play_stream_begin(to, w->settings.tenant, NULL);
    const bool large =
        to->most == MAIL_LARGE_MOST && play_letters_have_bag(w, true) && happens(w, LARGE_PPM);
    f->number = play_letters_answer(w, f, large ? draw_large(w) : MAIL_LEAST, &at);
    wr.num_sge = at.count;
    f->wr_id = wr.wr_id;
    f->out = true;
    if (kedge_post_send(f->q, &wr, &bad) == 0) {
        w->count.messages++;
        return;
    }
    play_stream_ended(f->answer, f->number, MAIL_UNKNOWN, w->process->name);
    if (f->large)
        play_letters_over(w, true, false);
    f->out = false;
    f->failed = true;
}

static void judge_answer(struct play_worker *w, struct mail_friend *f, const struct ibv_wc *wc)
{
    if (!f->out || wc->wr_id != f->wr_id) {
        play_violation(w->process->name, "a completion of no answer that is out");
        return;
    }
    f->out = false;
    f->failed = wc->status != IBV_WC_SUCCESS;
    play_stream_ended(f->answer, f->number,
                      !f->failed                  ? MAIL_TAKEN
                      : kedge_never_sent(wc) == 1 ? MAIL_NOT_SENT
                                                  : MAIL_UNKNOWN,
                      w->process->name);
    if (f->large)
        play_letters_over(w, true, false);
}

/* ---- what is heard */

/* A large one of the node whose agent lies is READ from where that says: nothing need tell whose it
 * is. */
static bool is_of_liar(const struct play_worker *w, const struct kedge_msg *msg)
{
    if (msg->from == NULL)
        return false;
    const struct schema_peers_header *h = w->session->peers;
    const struct schema_peer *peers = (const void *)((const uint8_t *)h + h->peers_offset);
    return play_liar_has_gid(peers[msg->from->peer_slot].gid);
}

static struct mail_stream *read_message(struct play_worker *w, const struct kedge_msg *msg,
                                        bool far, uint32_t i)
{
    struct mail_box *box = far ? w->mail.answers : w->mail.box;
    const uint32_t bytes = msg->wc.byte_len;
    if (msg->wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM)
        return play_box_popped_imm(box, ntohl(msg->wc.imm_data), bytes, msg->tenant);
    const uint8_t *content = play_letters_read(w, far, i, bytes);
    if (bytes >= MAIL_LARGE_LEAST && is_of_liar(w, msg) && !play_is_letter(content, bytes))
        return NULL;
    return play_box_popped(box, content, bytes, msg->tenant);
}

/* Of a tenant whose workers write what they like. */
static bool is_hostile(const struct play_worker *w, const struct kedge_msg *msg)
{
    return w->settings.hostile != 0 && msg->wc.status == IBV_WC_SUCCESS &&
           msg->tenant == schema_tenant_number(play_tenant_name(w->settings.hostile - 1));
}

static void hear_hostile(struct play_worker *w, const struct kedge_msg *msg, bool far, uint32_t i)
{
    struct worker_mail *m = &w->mail;
    play_box_popped_hostile(far ? m->answers : m->box, w->settings.hostile);
    w->count.hostile++;
    play_letters_await(w, far ? m->courier : m->port, far, i);
    if (msg->from != NULL)
        kedge_vqp_destroy(msg->from);
}

static void hear(struct play_worker *w, const struct kedge_msg *msg)
{
    struct worker_mail *m = &w->mail;
    const bool far = m->courier != NULL && msg->wc.qp_num == kedge_vqp_num(m->courier);
    const bool near = m->port != NULL && msg->wc.qp_num == kedge_vqp_num(m->port);
    const uint64_t id = msg->wc.wr_id, i = id & (MAIL_FAR_ID - 1);
    if (!far && !near) /* of a queue pair that is gone */
        return;
    if (far != (id >= MAIL_FAR_ID) || i >= play_letters_awaited(w, far)) {
        play_violation(w->process->name, "a receive ends that was not posted there");
        return;
    }
    struct mail_stream *of = NULL;
    if (is_hostile(w, msg)) {
        hear_hostile(w, msg, far, (uint32_t)i);
        return;
    }
    if (msg->wc.status == IBV_WC_SUCCESS)
        of = read_message(w, msg, far, (uint32_t)i);
    if (of != NULL && !play_stream_lies(of) && !play_list_is_there(play_stream_list(of), w->region))
        play_violation(w->process->name, "a message comes, and not all that was written before it");
    w->count.heard += of != NULL;
    w->count.large += of != NULL && msg->wc.byte_len >= MAIL_LARGE_LEAST;
    play_letters_await(w, far ? m->courier : m->port, far, (uint32_t)i);
    if (near && of != NULL && msg->from != NULL) {
        struct mail_friend *f = find_friend(w, of, msg->from);
        if (f != NULL)
            answer(w, f);
    }
}

void play_worker_hear(struct play_worker *w)
{
    struct worker_mail *m = &w->mail;
    struct kedge_msg msg[POPPED_AT_ONCE];
    int n = 0;
    if (!w->settings.messages || w->session == NULL)
        return;
    while ((n = kedge_pop_msgs(w->session, POPPED_AT_ONCE, msg)) > 0)
        for (int i = 0; i < n; i++)
            hear(w, &msg[i]);
    if (n < 0)
        return;
    if (m->box != NULL)
        play_box_is_empty(m->box);
    if (m->answers != NULL)
        play_box_is_empty(m->answers);
    play_lists_look(w);
}

/* ---- its port */

static void open_port(struct play_worker *w)
{
    struct worker_mail *m = &w->mail;
    const uint32_t port = play_box_next_port();
    if (!play_letters_open(w) ||
        !play_worker_is_possible(w, kedge_vqp_create(w->session, NULL, &m->port),
                                 "make a queue pair to hear"))
        return;
    if (!play_worker_is_possible(w, kedge_bind(m->port, port), "bind a port")) {
        if (w->session != NULL)
            kedge_vqp_destroy(m->port);
        m->port = NULL;
        return;
    }
    m->box = play_box_open(w->process->name, w->session->gid, w->settings.tenant, port);
    m->box->most = m->near_most;
    for (uint32_t i = 0; i < play_letters_awaited(w, false); i++)
        play_letters_await(w, m->port, false, i);
    play_trace(w->process->name, "hears at port %u", port);
}

static void close_port(struct play_worker *w)
{
    struct worker_mail *m = &w->mail;
    play_worker_hear(w);
    play_box_close(m->box);
    kedge_vqp_destroy(m->port);
    m->port = NULL;
    m->box = NULL;
}

/* Whoever is shut out has nothing come any more behind what there was to pop. */
static void change_guests(struct play_worker *w)
{
    struct mail_box *b = w->mail.box;
    const bool hostile = w->settings.hostile != 0 && happens(w, HOSTILE_PPM);
    const uint32_t tenant =
        hostile ? w->settings.hostile : 1 + w->settings.tenant % w->settings.tenants;
    const char *name = play_tenant_name(tenant - 1);
    if (tenant == b->tenant)
        return;
    if (!b->lets_in[tenant]) {
        b->lets_in[tenant] = b->let_in[tenant] = true;
        if (play_worker_is_possible(w, kedge_port_grant(w->mail.port, name), "let a tenant in"))
            play_trace(w->process->name, "lets %s in at port %u", name, b->port);
        return;
    }
    const int status = kedge_port_revoke(w->mail.port, name);
    if (!play_worker_is_possible(w, status == -ENOENT ? 0 : status, "shut a tenant out"))
        return;
    play_worker_hear(w);
    b->lets_in[tenant] = false;
    play_trace(w->process->name, "shuts %s out at port %u", name, b->port);
}

/* ---- what it sends */

static void dismiss_courier(struct play_worker *w)
{
    struct worker_mail *m = &w->mail;
    play_letters_over(w, false, m->done < m->posted);
    for (; m->done < m->posted; m->done++)
        play_stream_ended(m->stream, m->first + m->done, MAIL_LEFT, w->process->name);
    play_box_close(m->answers);
    if (w->session != NULL)
        kedge_vqp_destroy(m->courier);
    m->courier = NULL;
    m->answers = NULL;
    m->posted = m->done = 0;
}

static void send_courier(struct play_worker *w)
{
    struct worker_mail *m = &w->mail;
    struct mail_box *box = play_box_choose(&w->random);
    if (box == NULL || !play_worker_is_possible(w, kedge_vqp_create(w->session, NULL, &m->courier),
                                                "make a queue pair"))
        return;
    const int status = box->tenant == w->settings.tenant
                           ? kedge_connect_port(m->courier, box->gid, box->port)
                           : kedge_connect_port_of(m->courier, box->gid,
                                                   play_tenant_name(box->tenant - 1), box->port);
    if (!play_worker_is_possible(w, status, "connect to a port")) {
        if (w->session != NULL)
            kedge_vqp_destroy(m->courier);
        m->courier = NULL;
        return;
    }
    m->answers = play_box_open(w->process->name, w->session->gid, w->settings.tenant, 0);
    m->answers->lets_in[box->tenant] = true; /* who sends to another's port lets that one answer */
    m->stream = play_stream_begin(box, w->settings.tenant, m->answers);
    m->answers->most = m->far_most;
    for (uint32_t i = 0; i < play_letters_awaited(w, true); i++)
        play_letters_await(w, m->courier, true, i);
    play_trace(w->process->name, "sends to port %u of %s", box->port, box->owner);
}

/* Where receives are for large ones one of 1,032 bytes is not too long, and nothing that may be
 * sent is. */
static uint32_t draw_letter(struct play_worker *w, bool is_long)
{
    const uint32_t most = MAIL_LEAST << base_prng_below(&w->random, 6);
    const bool room = play_letters_have_bag(w, false);
    if (is_long)
        return room && happens(w, 300000) ? draw_large(w) : MAIL_MOST + 8;
    if (room && play_stream_to(w->mail.stream)->most == MAIL_LARGE_MOST && happens(w, LARGE_PPM))
        return draw_large(w);
    return (uint32_t)play_random_between(&w->random, MAIL_LEAST, most);
}

static int post_letters(struct play_worker *w, uint32_t n)
{
    struct worker_mail *m = &w->mail;
    struct ibv_send_wr wr[MAIL_LIST], *bad = NULL;
    struct mail_pieces at[MAIL_LIST];
    const bool has_long = happens(w, LONG_PPM);
    play_letters_over(w, false, false);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t bytes = draw_letter(w, has_long && i + 1 == n);
        const uint32_t number = play_letters_write(w, m->stream, i, bytes, &at[i]);
        m->first = i == 0 ? number : m->first;
        wr[i] = (struct ibv_send_wr){.wr_id = ++w->last_id,
                                     .next = i + 1 < n ? &wr[i + 1] : NULL,
                                     .sg_list = at[i].sge,
                                     .num_sge = at[i].count,
                                     .opcode = IBV_WR_SEND,
                                     .send_flags = IBV_SEND_SIGNALED};
    }
    m->first_id = wr[0].wr_id;
    m->failed = false;
    m->done = 0;
    const int status = kedge_post_send(m->courier, wr, &bad);
    m->posted = status == 0 ? n : (uint32_t)(bad - wr);
    w->count.messages += m->posted;
    for (uint32_t i = m->posted; i < n; i++) {
        play_stream_ended(m->stream, m->first + i, MAIL_NOT_SENT, w->process->name);
        m->failed = true;
    }
    return status == -ENOMEM ? 0 : status;
}

static void judge_letter(struct play_worker *w, const struct ibv_wc *wc)
{
    struct worker_mail *m = &w->mail;
    const bool well = wc->status == IBV_WC_SUCCESS;
    if (m->done == m->posted || wc->wr_id != m->first_id + m->done) {
        play_violation(w->process->name, "a completion of no message that is out, or too soon");
        return;
    }
    if (well && m->failed)
        play_violation(w->process->name, "a message ends well behind one that has failed");
    if (wc->status == IBV_WC_RETRY_EXC_ERR)
        play_stream_silent(m->stream, w->settings.calm_ns, w->process->name);
    play_stream_ended(m->stream, m->first + m->done,
                      well                        ? MAIL_TAKEN
                      : kedge_never_sent(wc) == 1 ? MAIL_NOT_SENT
                                                  : MAIL_UNKNOWN,
                      w->process->name);
    m->done++;
    m->failed |= !well;
    w->count.answered += well;
    if (!well)
        play_trace(w->process->name, "a message failed: %s: %s", kedge_wc_status_str(wc->status),
                   wc->vendor_err != 0 ? kedge_reason_str(wc->vendor_err) : "");
}

bool play_worker_judge_mail(struct play_worker *w, const struct ibv_wc *wc)
{
    struct worker_mail *m = &w->mail;
    if (m->courier != NULL && wc->qp_num == kedge_vqp_num(m->courier)) {
        judge_letter(w, wc);
        return true;
    }
    for (uint32_t i = 0; i < MAIL_FRIENDS; i++)
        if (m->friends[i].q != NULL && wc->qp_num == kedge_vqp_num(m->friends[i].q)) {
            judge_answer(w, &m->friends[i], wc);
            return true;
        }
    return false;
}

/* Until all that it has sent has completed, or the session is over. */
static void await_letters(struct play_worker *w)
{
    const uint64_t until_ns = play_now_ns() + MAIL_HANG_S * BASE_NS_PER_S;
    struct ibv_wc wc[MAIL_LIST];
    while (w->session != NULL && w->mail.done < w->mail.posted) {
        int n = kedge_poll(w->session, MAIL_LIST, wc);
        for (int i = 0; i < n; i++)
            if (!play_worker_judge_mail(w, &wc[i]))
                play_violation(w->process->name, "a completion of nothing that is out");
        if (n > 0)
            continue;
        play_worker_hear(w);
        n = n == 0 ? play_worker_wait(w) : n;
        if (!play_worker_survives(w, n))
            return;
        if (play_now_ns() > until_ns) {
            play_violation(w->process->name, "%u messages have not completed in %d s",
                           w->mail.posted - w->mail.done, MAIL_HANG_S);
            return;
        }
    }
}

static void do_letters(struct play_worker *w)
{
    struct worker_mail *m = &w->mail;
    if (m->courier == NULL)
        send_courier(w);
    if (m->courier == NULL)
        return;
    const int status = post_letters(w, 1 + (uint32_t)base_prng_below(&w->random, MAIL_LIST));
    if (status < 0 && !play_worker_survives(w, status))
        return;
    if (happens(w, ABANDON_PPM)) {
        dismiss_courier(w);
        play_process_sleep(ABANDONED_S * BASE_NS_PER_S);
        return;
    }
    await_letters(w);
    if (w->session != NULL && (m->failed || happens(w, FORGET_PPM)))
        dismiss_courier(w);
}

/* ---- all */

static void leave_friends(struct play_worker *w)
{
    for (uint32_t i = 0; i < MAIL_FRIENDS; i++) {
        struct mail_friend *f = &w->mail.friends[i];
        if (f->q == NULL || f->out || (!f->failed && !happens(w, FORGET_PPM)))
            continue;
        kedge_vqp_destroy(f->q);
        forget_friend(w, f);
    }
}

void play_worker_do_mail(struct play_worker *w)
{
    play_worker_hear(w);
    leave_friends(w);
    if (w->mail.port == NULL)
        open_port(w);
    else if (happens(w, GUESTS_PPM))
        change_guests(w);
    else if (happens(w, GUESTS_PPM / 8))
        close_port(w);
    if (w->session == NULL || w->mail.memory == NULL)
        return;
    if (happens(w, IMPORTS_PPM))
        play_worker_do_imports(w);
    else if (happens(w, LISTS_PPM))
        play_worker_do_lists(w);
    else
        do_letters(w);
}

void play_worker_forsake_mail(struct play_worker *w)
{
    struct worker_mail *m = &w->mail;
    for (uint32_t i = 0; i < MAIL_FRIENDS; i++)
        if (m->friends[i].q != NULL)
            forget_friend(w, &m->friends[i]);
    play_letters_close(w);
    for (; m->done < m->posted; m->done++)
        play_stream_ended(m->stream, m->first + m->done, MAIL_UNKNOWN, w->process->name);
    play_box_close(m->answers);
    play_box_close(m->box);
    *m = (struct worker_mail){.port = NULL};
}
