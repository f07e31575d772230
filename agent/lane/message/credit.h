/* SPDX-License-Identifier: Apache-2.0 */
/* Credits: a message goes on a shared queue pair only with one, which stands for a receive that is
 * posted where it goes (docs/messages.md#credits). Private to agent/lane, and the lane thread's.
 *
 * Credits of an account are numbers, from 0 on and modulo 2^32. Those before `granted` may be used,
 * each once. One is promised a receive from when it is granted until its message arrives or its
 * sender says that it is settled: nothing of it is under way, nor ever will be.
 *
 * Invariant of the receiver: no more is promised than is posted, whatever peers say. */
#ifndef LANE_CREDIT_H
#define LANE_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"

enum { CREDITS_OPEN = 256 }; /* of one account, from the first that is not settled on */

/* Which numbers from `first` on are over. */
struct credit_window {
    uint32_t first; /* all before it are over */
    uint64_t over[CREDITS_OPEN / 64];
};

static inline bool credit_is_over(const struct credit_window *w, uint32_t number)
{
    return (w->over[number % CREDITS_OPEN / 64] >> number % 64 & 1) != 0;
}
void lane_credit_move_window(struct credit_window *w, uint32_t end);
/* Its first number is over, which most often is the only one. */
static inline void credit_end_first(struct credit_window *w, uint32_t end)
{
    w->first++;
    if (credit_is_over(w, w->first))
        lane_credit_move_window(w, end);
}

/* ---- the receiver's side */

/* What all accounts of a lane have in common. */
struct credit_bank {
    uint32_t posted;   /* receives that the device has */
    uint32_t promised; /* of them, to peers */
    uint32_t epoch;    /* of the account that was opened last */
    uint64_t opened;   /* so many were */
    uint64_t key[2];   /* of the steps from one epoch to the next, which nobody knows */
};

/* Of one life of a peer's endpoint. */
struct credit_account {
    uint32_t epoch; /* 0: it is closed */
    uint32_t granted;
    uint32_t promised; /* of [window.first, granted) those that are not over */
    uint32_t used;     /* one past the last number that is over */
    struct credit_window window;
};

/* What is said to be settled, and has not come. */
struct credit_late {
    uint64_t since_ns; /* 0: nothing */
    uint32_t epoch, settled;
};

/* Epochs grow by CREDIT_STEP_MOST at the most, by how much nobody can tell: who is told one of his
 * own knows none of others'. Which of two is the later can be told, as long as no more than half of
 * all numbers are between them, which is what 128 accounts may take. first: none is before it. */
enum { CREDIT_STEP_MOST = 1 << 24 };
void lane_credit_bank_init(struct credit_bank *b, const uint64_t key[2], uint32_t first);
void lane_credit_account_open(struct credit_bank *b, struct credit_account *a);
/* Nothing of its peer's is under way any more, and what it says is of an account that is closed. */
void lane_credit_account_close(struct credit_bank *b, struct credit_account *a);
/* Grants up to `more` further ones, as far as there is room; who has many gets none while others
 * could come. Returns how many it were. */
uint32_t lane_credit_grant(struct credit_bank *b, struct credit_account *a, uint32_t more);
/* A message with that credit has taken a receive. 0; -ESTALE: of an account that is not this one;
 * -EEXIST: it has arrived before, or was settled; -EPROTO: it was never granted. The receive is
 * gone in any case, and to be posted again (lane_credit_posted()). */
int lane_credit_arrive(struct credit_bank *b, struct credit_account *a, uint32_t epoch,
                       uint32_t number);
/* Likewise of the one that comes next when none is late or lost. False: it is another one, and
 * nothing was done. */
static inline bool lane_credit_arrive_next(struct credit_bank *b, struct credit_account *a,
                                           uint32_t epoch, uint32_t number)
{
    if (epoch != a->epoch || epoch == 0 || number != a->window.first || number == a->granted)
        return false;
    b->posted--;
    b->promised--;
    a->promised--;
    a->used += a->used == number;
    credit_end_first(&a->window, a->granted);
    return true;
}
static inline uint32_t lane_credit_used(const struct credit_account *a)
{
    return a->used;
}
/* The sender says that all before `settled` are. What it has said before may come later, and says
 * nothing new. 0, -ESTALE, or -EPROTO: some of them were never granted. */
int lane_credit_settle(struct credit_bank *b, struct credit_account *a, uint32_t epoch,
                       uint32_t settled);
static inline void lane_credit_posted(struct credit_bank *b, uint32_t receives)
{
    b->posted += receives;
}

/* ---- the sender's side */

/* Numbers whose queue pair broke: their messages may still come, until that has rested. */
struct credit_rest {
    uint64_t numbers[CREDITS_OPEN / 64];
    uint64_t since_ns; /* of the last of them; 0: there are none */
};

/* Of one life of a peer's endpoint. Zeroed, it has none. */
struct credit_purse {
    uint32_t epoch; /* 0: none was ever granted */
    uint32_t granted, next;
    struct credit_window window; /* its first: what may be said to be settled */
    struct credit_rest rest[2];  /* the second: of those that broke while the first one waits */
    uint64_t since_ns;           /* since when it has that epoch */
};

/* What a peer says of its account. */
struct credit_said {
    uint32_t epoch, granted;
    uint32_t used; /* all that have arrived or are settled are before it */
};
/* In any order, and late_ns late at the most. 0; or -EPROTO: it makes no sense. One of an epoch
 * that is over says nothing; a later epoch is another account, and what is out under the former one
 * is nobody's concern: so is any other one when the present one is older than what may be late. Of
 * an account that was had before, and forgotten when nothing was out, none before `used` is used
 * again. */
int lane_credit_granted(struct credit_purse *p, const struct credit_said *said, uint64_t now_ns,
                        uint64_t late_ns);
static inline uint32_t lane_credit_left(const struct credit_purse *p)
{
    return p->granted - p->next;
}
/* So many are left: the number of the first of these, behind which the others come. */
static inline uint32_t lane_credit_take_some(struct credit_purse *p, uint32_t count)
{
    const uint32_t first = p->next;
    BASE_ASSERT(lane_credit_left(p) >= count);
    p->next += count;
    return first;
}
/* Nothing of the message with that credit is under way any more. One of a former epoch, or that was
 * never taken: nothing. */
void lane_credit_over_late(struct credit_purse *p, uint32_t epoch, uint32_t number);
static inline void lane_credit_over(struct credit_purse *p, uint32_t epoch, uint32_t number)
{
    if (epoch == p->epoch && number == p->window.first && number != p->next)
        credit_end_first(&p->window, p->next);
    else
        lane_credit_over_late(p, epoch, number);
}
/* Its queue pair broke: the device has given it back, and it may come all the same until that has
 * rested. Likewise. */
void lane_credit_broke(struct credit_purse *p, uint32_t epoch, uint32_t number, uint64_t now_ns);
/* What broke rest_ns ago or earlier is over. Each is within twice that. */
void lane_credit_look(struct credit_purse *p, uint64_t now_ns, uint64_t rest_ns);
static inline bool lane_credit_is_resting(const struct credit_purse *p)
{
    return p->rest[0].since_ns != 0;
}
/* Gives back what is left: it is settled as if it had been used. Returns whether there was any. */
bool lane_credit_return(struct credit_purse *p);

#endif
