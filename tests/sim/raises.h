/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of simulated workers, as their owners and who raises them know them together: each says
 * no less than the raises of which somebody was told that they are in, no more than those and what
 * may yet come, and never less than it did; what a list wrote is there when it says that list's
 * raise; and one that its owner has given back nobody raises. What is not so is a violation. One
 * thread. */
#ifndef SIM_RAISES_H
#define SIM_RAISES_H

#include <kedge_notify.h>
#include <stdbool.h>
#include <stdint.h>

#include "mail.h"

enum { RAISES_KEPT = 64 /* lists of the last ones */ };

struct play_counter {
    char owner[PLAY_NAME], token[KEDGE_COUNTER_TOKEN_MAX];
    bool live;
    uint64_t gone_ns;          /* when its owner was told that it is; 0: it was not */
    uint64_t sure, open, seen; /* raises that are in, that may be, and what its owner saw last */
    bool one;                  /* one worker at a time raises it: */
    bool taken;                /* one does */
    bool lies;                 /* an agent that lies has had to do with it */
    bool mixed;                /* since raises are open for good nobody knows which is which */
    struct mail_list list[RAISES_KEPT]; /* by what it says then */
};

void play_counters_begin(void);
void play_counters_end(void);

struct play_counter *play_counter_open(const char *owner, const char *token, bool one);
/* Its session is over; told: its owner was told that it is gone. NULL: there was none. */
void play_counter_close(struct play_counter *c, bool told);
/* That may be raised, by chance: that worker's, or anybody's, where owner is NULL; dead: one that
 * is gone. It is given back. NULL: there is none. */
struct play_counter *play_counter_take(struct base_prng *r, const char *owner, bool dead);
void play_counter_give(struct play_counter *c);

/* Any that lives: for who has no right to it. */
struct play_counter *play_counter_find(struct base_prng *r);

/* A raise is posted, behind that list. */
void play_counter_post(struct play_counter *c, const struct mail_list *list);
/* The first one that is out of one worker's has ended so: TAKEN, NOT_SENT or UNKNOWN. */
void play_counter_ended(struct play_counter *c, enum mail_end end, uint64_t posted_ns,
                        const char *who);
/* Its owner sees that, and has that region. */
void play_counter_seen(struct play_counter *c, uint64_t value, const struct play_region *region);
/* All that was raised, as counters say. */
uint64_t play_counters_raised(void);

#endif
