/* SPDX-License-Identifier: Apache-2.0 */
/* What there is of a hostile worker. Private to intruder.c and intruder_mail.c. */
#ifndef SIM_INTRUDER_STATE_H
#define SIM_INTRUDER_STATE_H

#include <kedge.h>

#include "base/random.h"
#include "events.h"
#include "intruder.h"

struct mail_box;
struct play_region;

struct play_intruder {
    struct play_host *host;
    struct play_intruder_settings settings;
    struct play_process *process; /* NULL: it is away */
    struct play_event come, go;
    struct base_prng random;
    uint64_t seed, posts;
    /* of its present life */
    struct kedge_session *session;
    void *arena; /* that the ledger has; NULL: none */
    uint8_t *buffer;
    uint32_t lkey;
    struct kedge_vqp *q;
    const struct mail_box *to; /* where it has sent last; NULL: nowhere yet */
    bool let_in;               /* q has been connected to a port that had let it in by then */
    struct kedge_vqp *own;     /* that hears what others of its tenant send; NULL: none does */
    uint64_t last_id;
    struct play_region *region; /* that it lends to itself; NULL: none */
};

static inline uint64_t play_intruder_draw(struct play_intruder *i, uint64_t n)
{
    return base_prng_below(&i->random, n);
}

/* intruder.c. What it has posted it changes before the lane takes it, or while it waits there. */
void play_intruder_alter(struct play_intruder *i);
/* intruder_mail.c. Messages to ports that do not let it in, raises of counters of which it has no
 * token, and what it says to others of its tenant, with some of which its ring has else. */
void play_intruder_mail(struct play_intruder *i);

#endif
