/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a simulated worker has for messages: of receives, and of what it sends. Large
 * ones are in several pieces, the last of which is first in memory, where they are sent from and
 * where they go. */
#include <string.h>

#include "kedge_notify.h"
#include "random.h"
#include "trace.h"
#include "worker_state.h"

enum {
    LARGE_RECEIVES = 3,
    LARGE_ANSWERS = 2,
    LARGE_PPM = 500000, /* of workers have room for large ones, and of these: */
    FAR_PPM = 500000,   /* for large answers */
    ANSWER_BAG = MAIL_BAGS - 1,
    NEAR_BYTES = LARGE_RECEIVES * MAIL_LARGE_MOST,
    FAR_BYTES = LARGE_ANSWERS * MAIL_LARGE_MOST,
    OUT_BYTES = MAIL_LIST * 2 * MAIL_MOST,
    FRIEND_BYTES = MAIL_FRIENDS * MAIL_LEAST,
    LISTS_BYTES = (LISTS_OUT + 1) * (LIST_BYTES + KEDGE_NOTIFICATION_MOST)
};

static uint32_t room_of(bool large, uint32_t large_bytes, uint32_t count)
{
    return large ? large_bytes : count * MAIL_MOST;
}

static size_t bytes_of(bool large)
{
    return (size_t)room_of(large, NEAR_BYTES, MAIL_RECEIVES) +
           room_of(large, FAR_BYTES, MAIL_ANSWERS) + OUT_BYTES + FRIEND_BYTES + LISTS_BYTES +
           (large ? MAIL_BAGS * MAIL_LARGE_MOST : 0);
}

bool play_letters_open(struct play_worker *w)
{
    struct worker_mail *m = &w->mail;
    void *at;
    if (m->memory != NULL)
        return true;
    m->large = w->settings.large && play_random_happens(&w->random, LARGE_PPM);
    m->near_most = m->large ? MAIL_LARGE_MOST : MAIL_MOST;
    m->far_most =
        m->large && play_random_happens(&w->random, FAR_PPM) ? MAIL_LARGE_MOST : MAIL_MOST;
    if (!play_worker_is_possible(w, kedge_alloc(w->session, bytes_of(m->large), &at, &m->lkey),
                                 "have memory for messages"))
        return false;
    m->memory = at;
    play_worker_note_arenas(w);
    return true;
}

void play_letters_close(struct play_worker *w)
{
    if (w->mail.memory != NULL)
        play_mail_forget(w->mail.memory, bytes_of(w->mail.large));
}

/* ---- where what is */

static uint8_t *receive_memory(const struct play_worker *w, bool far, uint32_t i)
{
    const struct worker_mail *m = &w->mail;
    if (!far)
        return m->memory + (size_t)i * m->near_most;
    return m->memory + room_of(m->large, NEAR_BYTES, MAIL_RECEIVES) + (size_t)i * m->far_most;
}

static uint8_t *out_memory(const struct play_worker *w, uint32_t i)
{
    return receive_memory(w, true, 0) + room_of(w->mail.large, FAR_BYTES, MAIL_ANSWERS) +
           (size_t)i * 2 * MAIL_MOST;
}

static uint8_t *friend_memory(const struct play_worker *w, uint32_t i)
{
    return out_memory(w, MAIL_LIST) + (size_t)i * MAIL_LEAST;
}

uint8_t *play_letters_list(const struct play_worker *w, uint32_t place)
{
    return friend_memory(w, MAIL_FRIENDS) + (size_t)place * (LIST_BYTES + KEDGE_NOTIFICATION_MOST);
}

static uint8_t *bag_memory(const struct play_worker *w, uint32_t i)
{
    return play_letters_list(w, LISTS_OUT + 1) + (size_t)i * MAIL_LARGE_MOST;
}

/* Of so many bytes in all, in `count` pieces of odd lengths. */
static struct mail_pieces cut(const struct play_worker *w, uint8_t *at, uint32_t bytes, int count)
{
    struct mail_pieces p = {.count = count};
    uint32_t done = 0;
    for (int i = 0; i < count; i++) {
        const uint32_t rest = bytes - done;
        const uint32_t n = i + 1 == count ? rest : rest / 3 + 1;
        p.sge[i] = (struct ibv_sge){(uintptr_t)at + rest - n, n, w->mail.lkey};
        done += n;
    }
    return p;
}

static struct mail_pieces cut_receive(const struct play_worker *w, bool far, uint32_t i)
{
    const uint32_t bytes = far ? w->mail.far_most : w->mail.near_most;
    return cut(w, receive_memory(w, far, i), bytes,
               bytes == MAIL_LARGE_MOST ? 1 + (int)i % MAIL_PIECES : 1);
}

/* ---- receives */

uint32_t play_letters_awaited(const struct play_worker *w, bool far)
{
    if (far)
        return w->mail.far_most == MAIL_LARGE_MOST ? LARGE_ANSWERS : MAIL_ANSWERS;
    return w->mail.near_most == MAIL_LARGE_MOST ? LARGE_RECEIVES : MAIL_RECEIVES;
}

void play_letters_await(struct play_worker *w, struct kedge_vqp *q, bool far, uint32_t i)
{
    struct mail_pieces p = cut_receive(w, far, i);
    struct ibv_recv_wr *bad,
        wr = {.wr_id = far ? MAIL_FAR_ID + i : i, .sg_list = p.sge, .num_sge = p.count};
    memset(receive_memory(w, far, i), 0, far ? w->mail.far_most : w->mail.near_most);
    struct mail_box *box = far ? w->mail.answers : w->mail.box;
    box->receives++; /* before the lane may know of it */
    if (kedge_post_recv(q, &wr, &bad) != 0)
        play_trace(w->process->name, "posts no receive: %s", kedge_last_error());
}

const uint8_t *play_letters_read(struct play_worker *w, bool far, uint32_t i, uint32_t bytes)
{
    static uint8_t whole[MAIL_LARGE_MOST];
    const struct mail_pieces p = cut_receive(w, far, i);
    uint32_t done = 0;
    for (int k = 0; k < p.count && done < bytes; k++) {
        const uint32_t n = bytes - done < p.sge[k].length ? bytes - done : p.sge[k].length;
        memcpy(whole + done, (const void *)(uintptr_t)p.sge[k].addr, n);
        done += n;
    }
    return whole;
}

/* ---- what it sends */

bool play_letters_have_bag(const struct play_worker *w, bool answer)
{
    const uint32_t free_ones = ~(w->mail.bags | w->mail.left) & ((1u << MAIL_BAGS) - 1);
    return w->mail.large && (free_ones & (answer ? 1u << ANSWER_BAG : (1u << ANSWER_BAG) - 1)) != 0;
}

static uint32_t write_letter(struct play_worker *w, struct mail_stream *s, uint8_t *at,
                             uint32_t bytes, struct mail_pieces *out)
{
    static uint8_t whole[MAIL_LARGE_MOST];
    const uint32_t number = play_stream_post(s, bytes, whole);
    const bool large = bytes >= MAIL_LARGE_LEAST;
    *out = cut(w, at, bytes, large ? 1 + (int)base_prng_below(&w->random, MAIL_PIECES) : 1);
    for (int i = 0, done = 0; i < out->count; done += (int)out->sge[i++].length)
        memcpy((void *)(uintptr_t)out->sge[i].addr, whole + done, out->sge[i].length);
    if (large)
        play_stream_lends(s, number, at);
    return number;
}

static uint8_t *take_bag(struct play_worker *w, bool answer)
{
    uint32_t i = answer ? ANSWER_BAG : 0;
    while (((w->mail.bags | w->mail.left) >> i & 1) != 0)
        i++;
    w->mail.bags |= 1u << i;
    return bag_memory(w, i);
}

uint32_t play_letters_write(struct play_worker *w, struct mail_stream *s, uint32_t place,
                            uint32_t bytes, struct mail_pieces *out)
{
    uint8_t *at = bytes >= MAIL_LARGE_LEAST ? take_bag(w, false) : out_memory(w, place);
    return write_letter(w, s, at, bytes, out);
}

uint32_t play_letters_answer(struct play_worker *w, struct mail_friend *f, uint32_t bytes,
                             struct mail_pieces *out)
{
    f->large = bytes >= MAIL_LARGE_LEAST;
    uint8_t *at = f->large ? take_bag(w, true) : friend_memory(w, (uint32_t)(f - w->mail.friends));
    return write_letter(w, f->answer, at, bytes, out);
}

/* What was left behind is READ for as long as its agent needs to withdraw it, of which the worker
 * does not hear: that memory it does not use again. */
void play_letters_over(struct play_worker *w, bool answer, bool left)
{
    const uint32_t those = answer ? 1u << ANSWER_BAG : (1u << ANSWER_BAG) - 1;
    if (left)
        w->mail.left |= w->mail.bags & those;
    w->mail.bags &= ~those;
}
