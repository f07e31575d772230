/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of simulated workers, as both ends know them together: each stream's come once each, in
 * order and whole, to the box that they were sent to, from whom may send there; what was
 * acknowledged has come, and what is said to have never been sent never does. The memory that a
 * large one is READ from nobody READs but its receiver, and not when it is over. A WRITE is carried
 * out when for each letter before it a receive has been posted. What is not so is a violation. One
 * thread. */
#ifndef SIM_MAIL_H
#define SIM_MAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "ledger.h"
#include "process.h"

enum {
    MAIL_LEAST = 24,  /* bytes of a letter */
    MAIL_MOST = 1024, /* that go into a receive, but where that is one for large ones: */
    MAIL_LARGE_LEAST = (16 << 10) + 1, /* which their receiver READs */
    MAIL_LARGE_MOST = 20 << 10,
    MAIL_TENANTS = 4 /* their numbers are from 1 on */
};

/* What its sender knows of a letter. */
enum mail_end {
    MAIL_OUT,
    MAIL_TAKEN,
    MAIL_NOT_SENT,
    MAIL_UNKNOWN,
    MAIL_LEFT /* its queue pair went with it out: likewise, and its memory may yet be READ */
};

/* Where letters come to: a port, or a queue pair that hears answers. Its owner's while it is live,
 * and there until the cluster ends. */
struct mail_box {
    char owner[PLAY_NAME];
    uint8_t gid[16];
    uint32_t port, tenant;
    uint32_t most;      /* bytes of a receive there */
    bool live, answers; /* answers: it has no port, and nobody finds it */
    bool lets_in[MAIL_TENANTS + 1];
    bool let_in[MAIL_TENANTS + 1]; /* at some time */
    uint64_t unheard;              /* letters that are acknowledged, and were not popped */
    /* mail_order.c: receives that were posted there, and letters that stand before WRITEs which
     * have been carried out. */
    uint64_t receives, before, opened_ns;
};

/* Of a stream: as before, of it alone; over: one of its letters may not have been taken. */
struct mail_behind {
    uint32_t before;
    bool over;
};

/* What was WRITTEN in a slot before a message that comes behind it: words that say their place
 * there, and stamp, as do all later ones with a higher stamp. bytes 0: nothing was. */
struct mail_list {
    uint64_t region, turn, stamp; /* turn: of the slot's user */
    uint32_t slot, at, bytes;
};

struct mail_stream;
struct play_region;
struct sim_access;

void play_lists_begin(void);
/* The next one, which is of words of 8 bytes, and at `out` in the same place as in its slot. */
struct mail_list play_list_make(const struct play_slot *slot, uint32_t at, uint32_t bytes,
                                uint8_t *out);
/* Its message has come to the owner of that region, NULL: who has none. False: not all of it is
 * there. */
bool play_list_is_there(const struct mail_list *list, const struct play_region *of_owner);

/* mail_order.c: those of the story before are known no more. */
void play_order_begin(void);
/* What the list writes stands behind all letters of that stream up to `number`. */
void play_order_behind(const struct mail_list *list, const struct play_slot *slot,
                       struct mail_stream *s, uint32_t number);
/* Not all of its letters from here on may be taken: `taken` were. */
void play_order_over(struct mail_box *box, struct mail_behind *b, uint32_t taken);
/* A device carries out a WRITE in memory of a region. */
void play_order_written(const struct sim_access *access);
struct mail_behind *play_stream_behind(struct mail_stream *s);

void play_mail_begin(void);
void play_mail_end(void);
/* Letters that have been popped. */
uint64_t play_mail_heard(void);

/* port 0: for answers. Its receives are of MAIL_MOST bytes. */
struct mail_box *play_box_open(const char *owner, const uint8_t gid[16], uint32_t tenant,
                               uint32_t port);
/* That no box has had. */
uint32_t play_box_next_port(void);
/* Its queue pair, or its session, is no more. NULL: there was none. */
void play_box_close(struct mail_box *box);
/* One that is live and has a port, by chance; NULL: there is none. */
struct mail_box *play_box_choose(struct base_prng *r);
/* That worker's. NULL: it has none. */
struct mail_box *play_box_of(const char *owner);

/* answers: where those who hear it may answer; NULL: they may not. */
struct mail_stream *play_stream_begin(struct mail_box *to, uint32_t tenant,
                                      struct mail_box *answers);
struct mail_box *play_stream_answers(const struct mail_stream *s);
struct mail_box *play_stream_to(const struct mail_stream *s);
/* The next letter is posted: its number. out: so many bytes, its content. */
uint32_t play_stream_post(struct mail_stream *s, uint32_t bytes, uint8_t *out);
/* The same of one behind a list, and of one that is a WRITE's immediate, which has no content. */
uint32_t play_stream_post_list(struct mail_stream *s, uint32_t bytes, uint8_t *out,
                               const struct mail_list *list);
uint32_t play_stream_post_imm(struct mail_stream *s, uint32_t bytes, const struct mail_list *list,
                              uint32_t *imm);
/* That letter is READ from there, which is nothing else's as long as it is not over. */
void play_stream_lends(struct mail_stream *s, uint32_t number, const uint8_t *at);
/* That memory is its worker's no more. */
void play_mail_forget(const uint8_t *at, size_t bytes);
/* A device of another node READs memory of a worker's that is in no region. NULL: that is a letter,
 * and it may; else what is wrong with it. */
const char *play_mail_read(const struct sim_access *access);
/* Its sender has a completion of it, or will never have one (UNKNOWN). */
void play_stream_ended(struct mail_stream *s, uint32_t number, enum mail_end end, const char *who);

/* Its sender was told that its receiver's agent is silent, and nothing has gone wrong since then.
 */
void play_stream_silent(const struct mail_stream *s, uint64_t calm_ns, const char *who);

/* Whether its first bytes say that it is one of those that are sent. */
bool play_is_letter(const uint8_t *content, uint32_t bytes);
/* box's owner has popped that, which says that it is of a tenant of that number
 * (schema_tenant_number()). Whose stream it is; NULL: nobody's. */
struct mail_stream *play_box_popped(struct mail_box *box, const uint8_t *content, uint32_t bytes,
                                    uint32_t tenant);
struct mail_stream *play_box_popped_imm(struct mail_box *box, uint32_t imm, uint32_t bytes,
                                        uint32_t tenant);
/* One of its ends has an agent that lies: it is judged by nobody. */
bool play_stream_lies(const struct mail_stream *s);
/* box's owner has popped what a hostile worker of that tenant sent. */
void play_box_popped_hostile(const struct mail_box *box, uint32_t tenant);
bool play_stream_is_imm(const struct mail_stream *s, uint32_t number);
/* What the letter that was popped last comes behind. */
const struct mail_list *play_stream_list(const struct mail_stream *s);
/* There was nothing to pop. */
void play_box_is_empty(const struct mail_box *box);

#endif
