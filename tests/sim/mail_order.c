/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind messages is carried out when these have receives, as on a queue pair of one's
 * own: of all streams to a box no more letters stand before WRITEs that were carried out than
 * receives were posted there. A host that was suspended may have kept nothing that it had set
 * aside, and its own WRITEs come late: of its boxes nothing is said. */
#include <string.h>

#include "cluster_state.h"
#include "mail.h"

enum {
    KNOWN = 1 << 14 /* the last ones */,
    PLACE_BITS = 12 /* of a word, as mail_lists.c has it */
};

static struct {
    uint64_t stamp;
    const uint8_t *slot;
    struct mail_stream *stream;
    uint32_t before;
} known[KNOWN];

void play_order_begin(void)
{
    memset(known, 0, sizeof known);
}

void play_order_behind(const struct mail_list *list, const struct play_slot *slot,
                       struct mail_stream *s, uint32_t number)
{
    const uint32_t i = (uint32_t)(list->stamp % KNOWN);
    known[i].stream = NULL;
    if (play_stream_lies(s)) /* its messages may have gone elsewhere */
        return;
    known[i].stamp = list->stamp;
    known[i].slot = slot->region->at + play_slot_offset(slot);
    known[i].stream = s;
    known[i].before = number;
}

void play_order_over(struct mail_box *box, struct mail_behind *b, uint32_t taken)
{
    box->before -= b->before > taken ? b->before - taken : 0;
    b->before = b->before > taken ? taken : b->before;
    b->over = true;
}

static bool was_suspended(uint32_t node, uint64_t since_ns)
{
    return cluster_node(node)->suspended_ns >= since_ns;
}

static void look_at(const struct sim_access *access, uint64_t word)
{
    const uint32_t i = (uint32_t)((word >> PLACE_BITS) % KNOWN);
    const uint64_t place = word & ((1 << PLACE_BITS) - 1);
    if (known[i].stamp != word >> PLACE_BITS || known[i].stream == NULL ||
        (const uint8_t *)access->at < known[i].slot ||
        (const uint8_t *)access->at > known[i].slot + 8 * place)
        return;
    struct mail_box *box = play_stream_to(known[i].stream);
    struct mail_behind *b = play_stream_behind(known[i].stream);
    if (b->over || known[i].before <= b->before)
        return;
    box->before += known[i].before - b->before;
    b->before = known[i].before;
    if (box->live && box->before > box->receives && !was_suspended(access->node, box->opened_ns) &&
        !was_suspended(access->initiator, box->opened_ns))
        play_violation(box->owner,
                       "a WRITE is carried out before a message that stands before it has a "
                       "receive: %llu stand before such, and %llu receives were posted",
                       (unsigned long long)box->before, (unsigned long long)box->receives);
}

void play_order_written(const struct sim_access *access)
{
    uint64_t word;
    if (access->kind != SIM_WRITE || access->written == NULL || access->bytes < 8)
        return;
    /* Where several were merged the last of them comes last. */
    memcpy(&word, (const uint8_t *)access->written + (access->bytes & ~7u) - 8, 8);
    look_at(access, word);
}
