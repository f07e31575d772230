/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys the next region gets. New ones, as long as there are any; or, where a test asks for
 * it, those that regions gave back: mlx5 keeps them in a cache and hands out the last one first. */
#include "soft/keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

static const char RETURN[] = "return";
/* Of so many draws with a seed one is for new keys, and one for any that came back. */
enum { DRAWS = 8, DRAWN_NEW = 0, DRAWN_ANY = 1 };

int soft_keys_init(struct soft_keys *k, struct base_errbuf *err)
{
    const char *wanted = getenv("KEDGE_SOFT_KEYS");
    const size_t length = sizeof RETURN - 1;
    *k = (struct soft_keys){.count = 0};
    if (wanted == NULL || wanted[0] == '\0')
        return 0;
    k->come_back = strncmp(wanted, RETURN, length) == 0;
    if (k->come_back &&
        (wanted[length] == '\0' ||
         (wanted[length] == ':' &&
          base_parse_u64(wanted + length + 1, 0, UINT64_MAX, &k->prng.state) == 0))) {
        k->seeded = k->prng.state != 0;
        return 0;
    }
    return base_err(err, -EINVAL,
                    "soft device: KEDGE_SOFT_KEYS=%s must be return or return:SEED (or unset it)",
                    wanted);
}

int64_t soft_keys_next(struct soft_keys *k)
{
    if (k->count == 0)
        return -ENOENT;
    uint32_t at = k->count - 1;
    uint64_t draw = k->seeded ? base_prng_below(&k->prng, DRAWS) : DRAWS;
    if (draw == DRAWN_NEW)
        return -ENOENT;
    if (draw == DRAWN_ANY)
        at = (uint32_t)base_prng_below(&k->prng, k->count);
    const uint16_t index = k->index[at];
    k->count--;
    memmove(&k->index[at], &k->index[at + 1], (k->count - at) * sizeof k->index[0]);
    return index;
}

void soft_keys_give(struct soft_keys *k, uint32_t index)
{
    if (!k->come_back)
        return;
    if (k->count == SOFT_KEYS) { /* the oldest is forgotten */
        k->count--;
        memmove(&k->index[0], &k->index[1], k->count * sizeof k->index[0]);
    }
    k->index[k->count++] = (uint16_t)index;
}
