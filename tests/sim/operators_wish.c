/* SPDX-License-Identifier: Apache-2.0 */
#include "operators_wish.h"

#include <errno.h>

#include "random.h"

enum play_wish play_operators_wish(struct kedge_session *s, struct kedge_mr *mr, uint32_t heed_ppm,
                                   struct base_prng *random)
{
    if (heed_ppm == 0 || !play_random_happens(random, heed_ppm))
        return WISH_NOTHING;
    const int notices = kedge_session_notices(s);
    if (notices < 0)
        return WISH_NOTHING;
    if (notices & KEDGE_NOTICE_DRAIN)
        return WISH_CLOSE;
    return mr != NULL && kedge_mr_status(mr) == -EACCES ? WISH_WITHDRAW : WISH_NOTHING;
}
