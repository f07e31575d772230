/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/relay.h"

#include <errno.h>

#include "base/assert.h"
#include "lane_state.h"
#include "transmit/lane_events.h"
#include "transmit/operation.h"
#include "transmit/own_read.h"
#include "transmit/physical_qp.h"
#include "transmit/wr.h"

void lane_relay_want(struct lane *l, const struct lane_metaserver *m, uint64_t generation,
                     const struct lookup_span *span, uint32_t place, uint32_t tag)
{
    l->lookups.relays.out++;
    l->lookups.relays.of[l->scratch.owner[place]]++;
    lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_WANT_RELAY,
                                            .want_relay = {.addr = span->addr,
                                                           .generation = generation,
                                                           .rkey = span->rkey,
                                                           .bytes = span->bytes,
                                                           .place = place,
                                                           .tag = tag,
                                                           .metaserver = (uint8_t)m->number}});
}

void lane_relay_answered(struct lane *l, uint32_t place)
{
    l->lookups.relays.out--;
    l->lookups.relays.of[l->scratch.owner[place]]--;
}

static void answer_relay(struct lane *l, uint32_t lane, uint32_t tag, int status)
{
    lane_event_push(
        l, &(struct lane_event){.kind = LANE_EVENT_RELAYED,
                                .relayed = {.lane = (uint8_t)lane, .tag = tag, .status = status}});
}

static bool has_table(const struct schema_table_desc *table, const struct lane_relay *wanted)
{
    return table->log2_slots != 0 && table->generation == wanted->generation &&
           table->rkey == wanted->rkey;
}

/* Its place in the list; NULL: there is none with that table, which it has no more when it was
 * started again. */
static struct physical_qp *find_way(const struct lane *l, const struct lane_relay *wanted)
{
    for (uint32_t i = 0; i < l->metaservers; i++) {
        const struct lane_metaserver *m = &l->metaserver[i];
        if (m->number == wanted->metaserver &&
            (has_table(&m->table, wanted) || has_table(&m->names, wanted)))
            return l->metaserver_phys[i];
    }
    return NULL;
}

static uint32_t find_free(const struct relays *all)
{
    uint32_t i = 0;
    while (all->at[i].used)
        BASE_ASSERT(++i < LANE_RELAYS);
    return i;
}

void lane_relay_post(struct lane *l, const struct lane_relay *wanted)
{
    struct physical_qp *p = find_way(l, wanted);
    struct wr *w = lane_physical_qp_has_room(p) ? lane_own_read_take(l) : NULL;
    if (w == NULL) {
        answer_relay(l, wanted->lane, wanted->tag, p != NULL ? -EAGAIN : -ENOTCONN);
        return;
    }
    w->op = operation_of(SCHEMA_OP_READ);
    w->kind = WR_RELAY_READ;
    w->flow = NULL;
    w->index = find_free(&l->lookups.relays);
    w->signaled = 1;
    l->lookups.relays.at[w->index] = (struct relayed_read){
        .used = true, .lane = wanted->lane, .metaserver = wanted->metaserver, .tag = wanted->tag};
    w->sge[0] =
        (struct ibv_sge){.addr = wanted->local, .length = wanted->bytes, .lkey = wanted->lkey};
    w->fab = (struct fab_wr){.sg_list = w->sge,
                             .num_sge = 1,
                             .opcode = w->op->opcode,
                             .key.rkey = wanted->rkey,
                             .remote_addr = wanted->addr};
    lane_physical_qp_chain(l, p, w);
    COUNT(l, relays, 1);
}

void lane_relay_done(struct lane *l, const struct wr *w, enum ibv_wc_status status)
{
    struct relayed_read *r = &l->lookups.relays.at[w->index];
    r->used = false;
    for (uint32_t i = 0; i < l->metaservers; i++)
        if (l->metaserver[i].number == r->metaserver)
            lane_lookup_heard(l, i, status);
    answer_relay(l, r->lane, r->tag, (int)status);
}
