/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulated worker does with messages: it binds a port and hears there, lets another tenant
 * in and shuts it out, sends to others' ports, in lists, and answers some of what it hears on the
 * queue pair that came with it. mail.h judges. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "kedge_msg.h"
#include "mail.h"
#include "operators.h"
#include "random.h"
#include "trace.h"
#include "worker_state.h"

enum {
    POPPED_AT_ONCE = 4,
    FAR_ID = 1 << 20,    /* of receives for answers, and of answers, from here on */
    GUESTS_PPM = 200000, /* of these it lets another tenant in, or shuts it out */
    LONG_PPM = 20000,    /* lists end with one for which receives are too short */
    ANSWER_PPM = 300000, /* of what may be answered is */
    FORGET_PPM = 100000, /* queue pairs of senders that go, of those that are idle */
    ABANDON_PPM = 10000,
    ABANDONED_S = 10,
    MAIL_HANG_S = 120
};

static bool happens(struct play_worker *w, uint32_t ppm)
{
    return play_random_happens(&w->random, ppm);
}

/* ---- memory: receives of the port, receives of answers, what is sent, and answers */

static uint8_t *port_memory(const struct play_worker *w, uint32_t i)
{
    return w->mail.memory + (size_t)i * MAIL_MOST;
}

static uint8_t *answer_memory(const struct play_worker *w, uint32_t i)
{
    return port_memory(w, MAIL_RECEIVES + i);
}

static uint8_t *out_memory(const struct play_worker *w, uint32_t i)
{
    return answer_memory(w, MAIL_ANSWERS) + (size_t)i * 2 * MAIL_MOST;
}

static uint8_t *friend_memory(const struct play_worker *w, uint32_t i)
{
    return out_memory(w, MAIL_LIST) + (size_t)i * MAIL_LEAST;
}

enum {
    MAIL_BYTES =
        (MAIL_RECEIVES + MAIL_ANSWERS + 2 * MAIL_LIST) * MAIL_MOST + MAIL_FRIENDS * MAIL_LEAST
};

static void post_receive(struct play_worker *w, struct kedge_vqp *q, uint64_t wr_id)
{
    uint8_t *at = wr_id >= FAR_ID ? answer_memory(w, (uint32_t)(wr_id - FAR_ID))
                                  : port_memory(w, (uint32_t)wr_id);
    struct ibv_sge sge = {(uintptr_t)at, MAIL_MOST, w->mail.lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
    memset(at, 0, MAIL_MOST);
    if (kedge_post_recv(q, &wr, &bad) != 0)
        play_trace(w->process->name, "posts no receive: %s", kedge_last_error());
}

/* ---- who answers, and is answered */

static void forget_friend(struct mail_friend *f)
{
    if (f->out)
        play_stream_ended(f->answer, f->number, MAIL_UNKNOWN, "");
    *f = (struct mail_friend){.q = NULL};
}

/* Its queue pair is the same for all that one sender sends, until it is destroyed. */
static struct mail_friend *find_friend(struct play_worker *w, const struct mail_stream *of,
                                       struct kedge_vqp *q)
{
    struct mail_friend *room = NULL;
    for (uint32_t i = 0; i < MAIL_FRIENDS; i++) {
        struct mail_friend *f = &w->mail.friends[i];
        if (f->q != NULL && f->of == of && f->q != q)
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

static void answer(struct play_worker *w, struct mail_friend *f)
{
    struct mail_box *to = play_stream_answers(f->of);
    uint8_t *at = friend_memory(w, (uint32_t)(f - w->mail.friends));
    struct ibv_sge sge = {(uintptr_t)at, MAIL_LEAST, w->mail.lkey};
    struct ibv_send_wr wr = {.wr_id = ++w->last_id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    if (to == NULL || f->out || f->failed || !happens(w, ANSWER_PPM))
        return;
    if (f->answer == NULL)
        f->answer = play_stream_begin(to, w->settings.tenant, NULL);
    f->number = play_stream_post(f->answer, MAIL_LEAST, at);
    f->wr_id = wr.wr_id;
    f->out = true;
    if (kedge_post_send(f->q, &wr, &bad) == 0) {
        w->count.messages++;
        return;
    }
    play_stream_ended(f->answer, f->number, MAIL_UNKNOWN, w->process->name);
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
}

/* ---- what is heard */

static void hear(struct play_worker *w, const struct kedge_msg *msg)
{
    struct worker_mail *m = &w->mail;
    const bool far = m->courier != NULL && msg->wc.qp_num == kedge_vqp_num(m->courier);
    const bool near = m->port != NULL && msg->wc.qp_num == kedge_vqp_num(m->port);
    const uint64_t id = msg->wc.wr_id;
    if (!far && !near) /* of a queue pair that is gone */
        return;
    if (far != (id >= FAR_ID) || (id & (FAR_ID - 1)) >= (far ? MAIL_ANSWERS : MAIL_RECEIVES)) {
        play_violation(w->process->name, "a receive ends that was not posted there");
        return;
    }
    const uint8_t *at =
        far ? answer_memory(w, (uint32_t)(id - FAR_ID)) : port_memory(w, (uint32_t)id);
    struct mail_stream *of = NULL;
    if (msg->wc.status == IBV_WC_SUCCESS)
        of = play_box_popped(far ? m->answers : m->box, at, msg->wc.byte_len, msg->tenant);
    w->count.heard += of != NULL;
    post_receive(w, far ? m->courier : m->port, id);
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
}

/* ---- its port */

static void open_port(struct play_worker *w)
{
    struct worker_mail *m = &w->mail;
    void *at;
    const uint32_t port = play_box_next_port();
    if (m->memory == NULL &&
        play_worker_is_possible(w, kedge_alloc(w->session, MAIL_BYTES, &at, &m->lkey),
                                "have memory for messages")) {
        m->memory = at;
        play_worker_note_arenas(w);
    }
    if (m->memory == NULL ||
        !play_worker_is_possible(w, kedge_vqp_create(w->session, NULL, &m->port),
                                 "make a queue pair to hear"))
        return;
    if (!play_worker_is_possible(w, kedge_bind(m->port, port), "bind a port")) {
        if (w->session != NULL)
            kedge_vqp_destroy(m->port);
        m->port = NULL;
        return;
    }
    for (uint32_t i = 0; i < MAIL_RECEIVES; i++)
        post_receive(w, m->port, i);
    m->box = play_box_open(w->process->name, w->session->gid, w->settings.tenant, port);
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
    const uint32_t tenant = 1 + w->settings.tenant % w->settings.tenants;
    const char *name = play_tenant_name(tenant - 1);
    if (tenant == b->tenant)
        return;
    if (!b->lets_in[tenant]) {
        b->lets_in[tenant] = true;
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
    for (; m->done < m->posted; m->done++)
        play_stream_ended(m->stream, m->first + m->done, MAIL_UNKNOWN, w->process->name);
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
    for (uint32_t i = 0; i < MAIL_ANSWERS; i++)
        post_receive(w, m->courier, FAR_ID + i);
    play_trace(w->process->name, "sends to port %u of %s", box->port, box->owner);
}

static int post_letters(struct play_worker *w, uint32_t n)
{
    struct worker_mail *m = &w->mail;
    struct ibv_send_wr wr[MAIL_LIST], *bad = NULL;
    struct ibv_sge sge[MAIL_LIST];
    const bool has_long = happens(w, LONG_PPM);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t most = MAIL_LEAST << base_prng_below(&w->random, 6);
        uint32_t bytes = (uint32_t)play_random_between(&w->random, MAIL_LEAST, most);
        if (has_long && i + 1 == n)
            bytes = MAIL_MOST + 8;
        const uint32_t number = play_stream_post(m->stream, bytes, out_memory(w, i));
        m->first = i == 0 ? number : m->first;
        sge[i] = (struct ibv_sge){(uintptr_t)out_memory(w, i), bytes, m->lkey};
        wr[i] = (struct ibv_send_wr){.wr_id = ++w->last_id,
                                     .next = i + 1 < n ? &wr[i + 1] : NULL,
                                     .sg_list = &sge[i],
                                     .num_sge = 1,
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
        forget_friend(f);
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
    if (w->session != NULL && w->mail.memory != NULL)
        do_letters(w);
}

void play_worker_forsake_mail(struct play_worker *w)
{
    struct worker_mail *m = &w->mail;
    for (uint32_t i = 0; i < MAIL_FRIENDS; i++)
        if (m->friends[i].q != NULL)
            forget_friend(&m->friends[i]);
    for (; m->done < m->posted; m->done++)
        play_stream_ended(m->stream, m->first + m->done, MAIL_UNKNOWN, w->process->name);
    play_box_close(m->answers);
    play_box_close(m->box);
    *m = (struct worker_mail){.port = NULL};
}
