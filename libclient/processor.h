/* SPDX-License-Identifier: Apache-2.0 */
/* The processor that a worker runs on, and what it does where the lane has none but that. The
 * worker's thread. */
#ifndef LIBCLIENT_PROCESSOR_H
#define LIBCLIENT_PROCESSOR_H

#include <stdbool.h>
#include <stdint.h>

struct kedge_session;

struct client_processor {
    uint32_t cpu;        /* as rw->cpu has it */
    uint32_t out;        /* requests with a completion that was not taken yet: of all queue pairs */
    uint32_t polls;      /* on end that found nothing */
    uint32_t tail, vain; /* what was posted by then; sleeps since, of none of which came anything */
    bool sure;           /* of the last one something did */
};

/* The lane sees where this thread runs. Costs a call of the C library, and no system call where the
 * kernel has rseq. */
void client_say_processor(struct kedge_session *s);
/* Whether that is where the lane ran lately; it must have been said. */
bool client_shares_processor(const struct kedge_session *s);
/* Lets the lane have the processor: sleeps for 0.1 ms unless ready(s), or until the lane has
 * something. Not where that was in vain for what was posted last. */
void client_give_processor(struct kedge_session *s,
                           bool (*ready)(struct kedge_session *, uint32_t));

#endif
