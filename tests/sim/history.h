/* SPDX-License-Identifier: Apache-2.0 */
/* What a store that several metaservers share came to hold, change by change, and whether what they
 * answer could be so. The moment of each change is known here, so that no order has to be searched
 * for: an answer about a change that is the same as one that was carried out while it was asked for
 * is linearizable, and what is read may be behind, but never behind itself, nor for long. Of each
 * revision it is known what the resource held. What is not so is a violation. One thread. */
#ifndef SIM_HISTORY_H
#define SIM_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void play_history_begin(void);
void play_history_end(void);

/* The store has carried out a change of that resource. body: what it holds from now on, as the
 * trail has it: JSON; NULL: it is gone. */
void play_history_changed(const char *who, const char *kind, const char *name, uint64_t revision,
                          const char *body, uint64_t now_ns);

/* The store was put back to what it was once: begin; each resource that it has now, with the
 * revision of that; end, with the last revision of its trail. */
void play_history_put_back_begin(void);
void play_history_returned(const char *kind, const char *name, uint64_t revision);
void play_history_put_back_end(uint64_t last, uint64_t now_ns);
/* Whether somebody may have been told, or may be told now, of what was undone so. */
bool play_history_is_uncertain(uint64_t told_ns, uint64_t now_ns);

/* A request at a metaserver, and what that answers. */
struct play_history_answer {
    const char *who;    /* the process */
    uint64_t life;      /* of that, from 1 on, of all */
    const char *method; /* GET, PUT or DELETE */
    const char *kind, *name;
    int status;
    uint64_t revision; /* 0: none was said */
    const char *body;  /* JSON; NULL: it is not looked at */
    const char *asked; /* what a PUT was to put there, likewise */
    size_t asked_bytes;
    uint64_t asked_ns, now_ns;
    uint64_t since_ns; /* it says that it knows all that was there then, or later; 0: it does not */
};
void play_history_judge(const struct play_history_answer *a);

/* Somebody follows the trail from that revision on, and is told of the next change. */
struct play_history_told {
    uint64_t revision;
    const char *kind, *name;
    const char *to; /* JSON; NULL: nothing is there */
};
void play_history_told(const char *who, uint64_t after, const struct play_history_told *told);
/* The revision of the last change; 0: there was none. */
uint64_t play_history_last(void);

#endif
