/* SPDX-License-Identifier: Apache-2.0 */
#include "message/credit.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/siphash.h"

/* ---- windows */

/* What is over at its beginning leaves it, as far as `end`. */
void lane_credit_move_window(struct credit_window *w, uint32_t end)
{
    while (w->first != end && credit_is_over(w, w->first)) {
        w->over[w->first % CREDITS_OPEN / 64] &= ~(1ull << w->first % 64);
        w->first++;
    }
}

static void end_number(struct credit_window *w, uint32_t number, uint32_t end)
{
    w->over[number % CREDITS_OPEN / 64] |= 1ull << number % 64;
    lane_credit_move_window(w, end);
}

/* ---- the receiver's side */

void lane_credit_bank_init(struct credit_bank *b, const uint64_t key[2], uint32_t first)
{
    *b = (struct credit_bank){.epoch = first, .key = {key[0], key[1]}};
}

static uint32_t draw_step(struct credit_bank *b)
{
    uint32_t drawn[4];
    b->opened++;
    base_siphash128(b->key, &b->opened, sizeof b->opened, (uint8_t *)drawn);
    return 1 + drawn[0] % CREDIT_STEP_MOST;
}

void lane_credit_account_open(struct credit_bank *b, struct credit_account *a)
{
    do {
        b->epoch += draw_step(b);
    } while (b->epoch == 0); /* which is none */
    *a = (struct credit_account){.epoch = b->epoch};
}

void lane_credit_account_close(struct credit_bank *b, struct credit_account *a)
{
    b->promised -= a->promised;
    *a = (struct credit_account){.epoch = 0};
}

/* As switches share their memory among ports (Choudhury and Hahne, Dynamic Queue Length Thresholds,
 * 1998): nobody has more than is left, so that each who comes finds as much as those who are there
 * have. */
static uint32_t count_room(const struct credit_bank *b, const struct credit_account *a)
{
    const uint32_t left = b->posted > b->promised ? b->posted - b->promised : 0;
    const uint32_t numbers = CREDITS_OPEN - (a->granted - a->window.first);
    const uint32_t fair = left > a->promised ? (left - a->promised + 1) / 2 : 0;
    return fair < numbers ? fair : numbers;
}

uint32_t lane_credit_grant(struct credit_bank *b, struct credit_account *a, uint32_t more)
{
    const uint32_t room = count_room(b, a);
    more = more < room ? more : room;
    a->granted += more;
    a->promised += more;
    b->promised += more;
    return more;
}

static void end_promise(struct credit_bank *b, struct credit_account *a, uint32_t number)
{
    a->promised--;
    b->promised--;
    if (number + 1 - a->window.first > a->used - a->window.first)
        a->used = number + 1;
    end_number(&a->window, number, a->granted);
}

int lane_credit_arrive(struct credit_bank *b, struct credit_account *a, uint32_t epoch,
                       uint32_t number)
{
    BASE_ASSERT(b->posted > 0);
    b->posted--;
    if (epoch != a->epoch || epoch == 0)
        return -ESTALE;
    const uint32_t open = a->granted - a->window.first;
    if (number - a->window.first >= open)
        return a->window.first - number <= UINT32_MAX / 2 ? -EEXIST : -EPROTO;
    if (credit_is_over(&a->window, number))
        return -EEXIST;
    end_promise(b, a, number);
    return 0;
}

int lane_credit_settle(struct credit_bank *b, struct credit_account *a, uint32_t epoch,
                       uint32_t settled)
{
    if (epoch != a->epoch || epoch == 0)
        return -ESTALE;
    const uint32_t count = settled - a->window.first;
    if (count > a->granted - a->window.first)
        return count > UINT32_MAX / 2 ? 0 : -EPROTO;
    for (uint32_t n = a->window.first; n != settled; n++)
        if (n - a->window.first <= UINT32_MAX / 2 && !credit_is_over(&a->window, n))
            end_promise(b, a, n);
    return 0;
}

/* ---- the sender's side */

static int begin_purse(struct credit_purse *p, const struct credit_said *said, uint64_t now_ns)
{
    if (said->granted - said->used > CREDITS_OPEN)
        return -EPROTO;
    *p = (struct credit_purse){.epoch = said->epoch,
                               .granted = said->granted,
                               .next = said->used,
                               .window.first = said->used,
                               .since_ns = now_ns};
    return 0;
}

int lane_credit_granted(struct credit_purse *p, const struct credit_said *said, uint64_t now_ns,
                        uint64_t late_ns)
{
    if (said->epoch == 0)
        return -EPROTO;
    if (said->epoch != p->epoch) {
        const bool is_later = p->epoch == 0 || said->epoch - p->epoch - 1 < UINT32_MAX / 2;
        return is_later || now_ns - p->since_ns >= late_ns ? begin_purse(p, said, now_ns) : 0;
    }
    if (said->granted - p->granted > UINT32_MAX / 2)
        return 0;
    if (said->granted - p->window.first > CREDITS_OPEN)
        return -EPROTO;
    p->granted = said->granted;
    return 0;
}

/* A peer may come back to an epoch that it has had, by way of others: then what is out is of the
 * former one. */
static bool is_out(const struct credit_purse *p, uint32_t epoch, uint32_t number)
{
    return epoch == p->epoch && number - p->window.first < p->next - p->window.first &&
           !credit_is_over(&p->window, number);
}

void lane_credit_over_late(struct credit_purse *p, uint32_t epoch, uint32_t number)
{
    if (is_out(p, epoch, number))
        end_number(&p->window, number, p->next);
}

void lane_credit_broke(struct credit_purse *p, uint32_t epoch, uint32_t number, uint64_t now_ns)
{
    if (!is_out(p, epoch, number))
        return;
    struct credit_rest *r = &p->rest[p->rest[0].since_ns != 0 && p->rest[0].since_ns != now_ns];
    r->numbers[number % CREDITS_OPEN / 64] |= 1ull << number % 64;
    r->since_ns = now_ns;
}

static void end_rest(struct credit_purse *p)
{
    const uint32_t first = p->window.first;
    for (uint32_t i = 0; i < p->next - first; i++)
        if ((p->rest[0].numbers[(first + i) % CREDITS_OPEN / 64] >> (first + i) % 64 & 1) != 0)
            p->window.over[(first + i) % CREDITS_OPEN / 64] |= 1ull << (first + i) % 64;
    lane_credit_move_window(&p->window, p->next);
    p->rest[0] = p->rest[1];
    p->rest[1] = (struct credit_rest){.since_ns = 0};
}

void lane_credit_look(struct credit_purse *p, uint64_t now_ns, uint64_t rest_ns)
{
    while (p->rest[0].since_ns != 0 && now_ns - p->rest[0].since_ns >= rest_ns)
        end_rest(p);
}

bool lane_credit_return(struct credit_purse *p)
{
    if (p->next == p->granted)
        return false;
    while (p->next != p->granted) {
        const uint32_t number = p->next++;
        end_number(&p->window, number, p->next);
    }
    return true;
}
