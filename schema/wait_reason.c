/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/wait_reason.h"

#include <stddef.h>
#include <string.h>

#define VQP_UNIT                       "virtual queue pair"
#define VQP_ROW(name, word, sentence)  [SCHEMA_WAIT_##name] = {word, VQP_UNIT, sentence},
#define RING_ROW(name, word, sentence) [SCHEMA_WAIT_##name] = {word, "ring slot", sentence},
#define LATE_ROW(name, word, sentence) [SCHEMA_WAIT_##name] = {word, "request", sentence},

/* clang-format off */
const struct schema_wait_row schema_waits[SCHEMA_WAITS] = {
    [SCHEMA_WAIT_NOTHING] = {"nothing", "", ""},
    SCHEMA_VQP_WAITS(VQP_ROW)
    SCHEMA_RING_WAITS(RING_ROW)
    SCHEMA_LATE_WAITS(LATE_ROW)
};
/* clang-format on */

const struct schema_wait_row *schema_wait_find(const char *word)
{
    for (int i = SCHEMA_WAIT_NOTHING + 1; i < SCHEMA_WAITS; i++)
        if (strcmp(schema_waits[i].word, word) == 0)
            return &schema_waits[i];
    return NULL;
}
