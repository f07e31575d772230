/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of simulated workers, as both ends know them together: each stream's come once each, in
 * order and whole, to the box that they were sent to, from whom may send there; what was
 * acknowledged has come, and what is said to have never been sent never does. What is not so is a
 * violation. One thread. */
#ifndef SIM_MAIL_H
#define SIM_MAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "process.h"

enum {
    MAIL_LEAST = 24,  /* bytes of a letter */
    MAIL_MOST = 1024, /* that go into a receive */
    MAIL_TENANTS = 4  /* their numbers are from 1 on */
};

/* What its sender knows of a letter. */
enum mail_end { MAIL_OUT, MAIL_TAKEN, MAIL_NOT_SENT, MAIL_UNKNOWN };

/* Where letters come to: a port, or a queue pair that hears answers. Its owner's while it is live,
 * and there until the cluster ends. */
struct mail_box {
    char owner[PLAY_NAME];
    uint8_t gid[16];
    uint32_t port, tenant;
    bool live, answers; /* answers: it has no port, and nobody finds it */
    bool lets_in[MAIL_TENANTS + 1];
    uint64_t unheard; /* letters that are acknowledged, and were not popped */
};

struct mail_stream;

void play_mail_begin(void);
void play_mail_end(void);
/* Letters that have been popped. */
uint64_t play_mail_heard(void);

/* port 0: for answers. */
struct mail_box *play_box_open(const char *owner, const uint8_t gid[16], uint32_t tenant,
                               uint32_t port);
/* That no box has had. */
uint32_t play_box_next_port(void);
/* Its queue pair, or its session, is no more. NULL: there was none. */
void play_box_close(struct mail_box *box);
/* One that is live and has a port, by chance; NULL: there is none. */
struct mail_box *play_box_choose(struct base_prng *r);

/* answers: where those who hear it may answer; NULL: they may not. */
struct mail_stream *play_stream_begin(struct mail_box *to, uint32_t tenant,
                                      struct mail_box *answers);
struct mail_box *play_stream_answers(const struct mail_stream *s);
/* The next letter is posted: its number. out: so many bytes, its content. */
uint32_t play_stream_post(struct mail_stream *s, uint32_t bytes, uint8_t *out);
/* Its sender has a completion of it, or will never have one (UNKNOWN). */
void play_stream_ended(struct mail_stream *s, uint32_t number, enum mail_end end, const char *who);

/* box's owner has popped that, which says that it is of a tenant of that number
 * (schema_tenant_number()). Whose stream it is; NULL: nobody's. */
struct mail_stream *play_box_popped(struct mail_box *box, const uint8_t *content, uint32_t bytes,
                                    uint32_t tenant);
/* There was nothing to pop. */
void play_box_is_empty(const struct mail_box *box);

#endif
