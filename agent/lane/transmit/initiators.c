/* SPDX-License-Identifier: Apache-2.0 */
#include "transmit/initiators.h"

#include "lane_state.h"
#include "transmit/physical_qp.h"
#include "transmit/wr.h"

static uint32_t count_out(const struct physical_qp *p)
{
    return p->tail - p->head;
}

/* UINT32_MAX: none works. */
static uint32_t find_least_loaded(const struct lane *l, uint32_t from, uint32_t to)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = from; i < to; i++) {
        const struct physical_qp *p = &l->phys[l->dci[i]];
        if (physical_qp_works(p) &&
            (best == UINT32_MAX || count_out(p) < count_out(&l->phys[l->dci[best]])))
            best = i;
    }
    return best;
}

uint32_t lane_initiator_that_works(const struct lane *l, uint32_t from, uint32_t to, uint32_t had)
{
    uint32_t best = find_least_loaded(l, from, to);
    if (best == UINT32_MAX)
        best = find_least_loaded(l, 0, l->res.dcis);
    return best != UINT32_MAX ? best : had;
}

/* ---- endpoints that take shorter packets */

/* The last place is for whoever is silent, so that it is theirs too; and where there are three or
 * more the one before it is for those that are not. */
void lane_initiators_init(struct lane *l)
{
    l->narrow.ordinary = l->res.dcis > 1 ? l->res.dcis - 1 : 1;
    l->narrow.from = l->res.dcis;
}

static enum ibv_mtu mtu_of_place(const struct lane *l, uint32_t place)
{
    return place >= l->narrow.from ? (enum ibv_mtu)l->narrow.mtu : 0;
}

bool lane_initiators_narrow(struct lane *l, enum ibv_mtu mtu)
{
    const uint32_t dcis = l->res.dcis;
    if (l->narrow.mtu != 0 && mtu >= l->narrow.mtu)
        return false;
    l->narrow.mtu = (uint8_t)mtu;
    l->narrow.from = dcis > 2 ? dcis - 2 : dcis - 1;
    l->narrow.ordinary = dcis > 2 ? dcis - 2 : 1;
    return true;
}

uint32_t lane_initiator_narrow_place(const struct lane *l, bool apart)
{
    const uint32_t place = apart ? l->res.dcis - 1 : l->narrow.from;
    if (physical_qp_works(&l->phys[l->dci[place]]))
        return place;
    const uint32_t other = find_least_loaded(l, l->narrow.from, l->res.dcis);
    return other != UINT32_MAX ? other : place;
}

/* ---- places */

/* Another queue pair is at this place, or the one there broke. */
static void lose_place(struct lane *l, uint32_t place)
{
    l->narrow.lost_ns[place] = l->now_ns;
    physical_qp_join(l, &l->phys[l->dci[place]]);
}

/* p has another place. Endpoints to which requests are out there go on there until nothing is,
 * which keeps the order of these; their former place is another's. */
static void stay_where_out(const struct lane *l, const struct physical_qp *p, uint32_t place)
{
    for (uint32_t i = p->head; i != p->tail; i++) {
        const struct wr *w = *ring_at(l, p, i);
        if (w != NULL && w->flow != NULL)
            w->flow->dci = (uint16_t)place;
    }
}

/* What goes to suspect endpoints has one place alone, and would wait for a queue pair that may
 * never be repaired: the least loaded of the others comes there, and the broken one to that one's
 * place, where others choose. */
static void keep_probing(struct lane *l)
{
    const uint32_t last = l->res.dcis - 1, broken = l->dci[last];
    if (l->phys[broken].broken != BROKEN)
        return;
    const uint32_t best = find_least_loaded(l, l->narrow.mtu != 0 ? l->narrow.from : 0, last);
    if (best == UINT32_MAX)
        return;
    l->dci[last] = l->dci[best];
    l->dci[best] = broken;
    lose_place(l, last);
    lose_place(l, best);
    stay_where_out(l, &l->phys[l->dci[last]], last);
}

void lane_initiator_lost(struct lane *l, const struct physical_qp *p)
{
    for (uint32_t i = 0; i < l->spare_count; i++) /* a spare can break too: it comes back as one */
        if (&l->phys[l->spare[i]] == p)
            l->spare[i] = l->spare[--l->spare_count];
    for (uint32_t i = 0; i < l->res.dcis; i++) {
        if (&l->phys[l->dci[i]] != p)
            continue;
        if (mtu_of_place(l, i) == 0 && l->spare_count > 0)
            l->dci[i] = l->spare[--l->spare_count];
        lose_place(l, i);
    }
    keep_probing(l);
}

/* Its own rather than another's, so that none has two; of others one for which it was brought up.
 */
static uint32_t find_place(const struct lane *l, uint32_t number)
{
    for (uint32_t i = 0; i < l->res.dcis; i++)
        if (l->dci[i] == number)
            return i;
    for (uint32_t i = 0; i < l->res.dcis; i++)
        if (l->phys[l->dci[i]].broken == BROKEN &&
            mtu_of_place(l, i) == (enum ibv_mtu)l->narrow.phys[number])
            return i;
    return UINT32_MAX;
}

enum ibv_mtu lane_initiator_mtu(const struct lane *l, const struct physical_qp *p)
{
    const uint32_t place = find_place(l, (uint32_t)(p - l->phys));
    return place != UINT32_MAX ? mtu_of_place(l, place) : 0;
}

bool lane_initiator_back(struct lane *l, const struct physical_qp *p)
{
    const uint32_t number = (uint32_t)(p - l->phys), place = find_place(l, number);
    if (place == UINT32_MAX) {
        l->spare[l->spare_count++] = number;
        return true;
    }
    l->dci[place] = number;
    physical_qp_join(l, &l->phys[number]); /* of the one before it was said when that broke */
    keep_probing(l);
    return false;
}
