/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdio.h>

#include "operators.h"

bool play_choose_lease(const char *answer, const char *key, struct base_prng *r,
                       char id[PLAY_LEASE_ID])
{
    json_t *root = json_loads(answer, 0, NULL);
    const json_t *all = json_object_get(root, "leases");
    const size_t n = json_array_size(all);
    const char *text =
        n > 0 ? json_string_value(json_object_get(json_array_get(all, base_prng_below(r, n)), key))
              : NULL;
    if (text != NULL)
        (void)snprintf(id, PLAY_LEASE_ID, "%s", text);
    json_decref(root);
    return text != NULL;
}
