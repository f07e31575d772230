/* SPDX-License-Identifier: Apache-2.0 */
/* What lists write that end with a message, and whether it is there when that is heard. */
#include <string.h>

#include "mail.h"

enum { PLACE_BITS = 12 };

static uint64_t stamps;

void play_lists_begin(void)
{
    stamps = 0;
}

struct mail_list play_list_make(const struct play_slot *slot, uint32_t at, uint32_t bytes,
                                uint8_t *out)
{
    const struct mail_list list = {.region = slot->region->id,
                                   .turn = slot->turn,
                                   .stamp = ++stamps,
                                   .slot = slot->number,
                                   .at = at,
                                   .bytes = bytes};
    for (uint32_t i = 0; i < bytes; i += 8) {
        const uint64_t word = list.stamp << PLACE_BITS | (at + i) / 8;
        memcpy(out + i, &word, 8);
    }
    return list;
}

bool play_list_is_there(const struct mail_list *list, const struct play_region *of_owner)
{
    if (list->bytes == 0 || of_owner == NULL || of_owner->id != list->region ||
        of_owner->slot[list->slot].turn != list->turn)
        return true;
    const uint8_t *slot = of_owner->at + play_slot_offset(&of_owner->slot[list->slot]);
    for (uint32_t i = list->at; i < list->at + list->bytes; i += 8) {
        uint64_t word;
        memcpy(&word, slot + i, 8);
        if (word >> PLACE_BITS < list->stamp || (word & ((1 << PLACE_BITS) - 1)) != i / 8)
            return false;
    }
    return true;
}
