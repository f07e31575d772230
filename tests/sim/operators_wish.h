/* SPDX-License-Identifier: Apache-2.0 */
/* What operators want of a worker, as libkedge tells it. One thread: in the worker. */
#ifndef SIM_OPERATORS_WISH_H
#define SIM_OPERATORS_WISH_H

#include <kedge.h>

#include "base/random.h"

enum play_wish {
    WISH_NOTHING,
    WISH_CLOSE,   /* its session is to go */
    WISH_WITHDRAW /* its region was revoked */
};

/* So many times in a million: a worker heeds what it is told sooner or later. mr: NULL: it lends
 * nothing. */
enum play_wish play_operators_wish(struct kedge_session *s, struct kedge_mr *mr, uint32_t heed_ppm,
                                   struct base_prng *random);

#endif
