/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulated worker has of messages, of lists that end with one, and of tokens that it
 * imports. Private to worker_*.c. */
#ifndef SIM_WORKER_MESSAGES_H
#define SIM_WORKER_MESSAGES_H

#include <kedge_notify.h>

#include "mail.h"
#include "raises.h"

struct play_worker;

enum {
    MAIL_RECEIVES = 8,
    MAIL_ANSWERS = 4,
    MAIL_LIST = 8,
    MAIL_FRIENDS = 8,
    MAIL_BAGS = 3, /* in which large messages are: of a list, and the last one of an answer */
    MAIL_PIECES = 3,
    MAIL_FAR_ID = 1 << 20 /* of receives for answers, from here on */
};

/* Whose messages it has heard, with the queue pair that came with them. */
struct mail_friend {
    struct kedge_vqp *q; /* NULL: nobody */
    const struct mail_stream *of;
    struct mail_stream *answer; /* NULL: none was sent yet */
    uint64_t wr_id;
    uint32_t number; /* of the last one, which is: */
    bool out, failed, large;
};

/* Where its bytes are, the first ones first. */
struct mail_pieces {
    struct ibv_sge sge[MAIL_PIECES];
    int count;
};

struct worker_mail {
    uint8_t *memory; /* NULL: it has none for messages */
    uint32_t lkey;
    bool large;                   /* it has room for large ones */
    uint32_t near_most, far_most; /* bytes of a receive of its port, of one for answers */
    uint32_t bags, left;          /* bit i: in that bag a message is out; one was left behind */
    struct kedge_vqp *port;       /* NULL: it hears nowhere */
    struct mail_box *box;
    struct kedge_vqp *courier; /* NULL: it sends to nobody */
    struct mail_box *answers;
    struct mail_stream *stream;
    uint64_t first_id;
    uint32_t first, posted, done; /* of the list that is out */
    bool failed;
    struct mail_friend friends[MAIL_FRIENDS];
};

enum { LISTS_OUT = 3, LIST_WRITES = 6, LIST_BYTES = 1024, OWN_COUNTERS = 2 };

struct own_counter {
    struct kedge_counter *counter; /* NULL: there is none */
    struct play_counter *known;
};

/* Where its lists go: WRITEs to the slot (NULL: they have none), and a message on the stream, or
 * raises of the counter. */
struct worker_lists {
    struct kedge_vqp *q; /* NULL: nowhere */
    struct play_slot *slot;
    struct kedge_remote remote;
    struct mail_stream *stream;
    struct play_counter *counter;
    uint64_t first_id, posted_ns;
    uint32_t first, last, posted, done;
    bool failed, wrong[LISTS_OUT]; /* a WRITE of it goes nowhere */
    /* Behind the lists: a READ of what the last one wrote, or one that adds to the slot's counter.
     */
    bool looks, adds;
    uint64_t look_id, added_to;
    struct mail_list last_list;
    struct own_counter own[OWN_COUNTERS];
};

enum { IMPORTS_MOST = 40 /* at once: in three messages */ };

struct worker_imports {
    char text[IMPORTS_MOST][PLAY_TOKEN];
    const char *texts[IMPORTS_MOST];
    struct kedge_remote remote[IMPORTS_MOST];
    uint32_t count, one; /* the one that it uses */
};

/* worker_mail.c. Hears, and sends a list of messages. */
void play_worker_do_mail(struct play_worker *w);
/* Pops all that there is. */
void play_worker_hear(struct play_worker *w);
/* Whether that completion is a message's; it is judged. */
bool play_worker_judge_mail(struct play_worker *w, const struct ibv_wc *wc);
/* Its session is over. */
void play_worker_forsake_mail(struct play_worker *w);
/* worker_letters.c. What messages are in: takes the memory. Whether it has it. */
bool play_letters_open(struct play_worker *w);
/* Posts a receive with that number, of its port, or of answers where far. */
void play_letters_await(struct play_worker *w, struct kedge_vqp *q, bool far, uint32_t i);
uint32_t play_letters_awaited(const struct play_worker *w, bool far);
/* What has come there. Until the next one is asked for. */
const uint8_t *play_letters_read(struct play_worker *w, bool far, uint32_t i, uint32_t bytes);
/* The next letter of s, in the place of its list, or in that of a friend's answer. */
uint32_t play_letters_write(struct play_worker *w, struct mail_stream *s, uint32_t place,
                            uint32_t bytes, struct mail_pieces *out);
uint32_t play_letters_answer(struct play_worker *w, struct mail_friend *f, uint32_t bytes,
                             struct mail_pieces *out);
/* Whether a large letter of a list may be written, or of an answer. */
bool play_letters_have_bag(const struct play_worker *w, bool answer);
/* LIST_BYTES of what a list writes, and behind them what its message says. */
uint8_t *play_letters_list(const struct play_worker *w, uint32_t place);
/* All of a list is over, or the answer is; left: its queue pair went with it out. */
void play_letters_over(struct play_worker *w, bool answer, bool left);
/* Its session is over, and the memory with it. */
void play_letters_close(struct play_worker *w);
/* worker_imports.c. Imports what others lend, many at once, uses one of it and gives all back. */
void play_worker_do_imports(struct play_worker *w);
/* worker_lists.c. Posts lists that end with a message or a raise, and awaits them. */
void play_worker_do_lists(struct play_worker *w);
/* Looks at its own counters. */
void play_lists_look(struct play_worker *w);
/* Its session is over. */
void play_lists_forsake(struct play_worker *w);

#endif
