/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/qpn.h"

#include <errno.h>
#include <stdlib.h>

#include "verbs/verbs.h"

int verbs_ring_make(struct verbs_qpn *n, uint32_t slots)
{
    struct verbs_ring *had = atomic_load(&n->ring);
    if (had != NULL && had->mask >= slots - 1)
        return 0;
    struct verbs_ring *made = calloc(1, sizeof *made + slots * sizeof made->slot[0]);
    if (made == NULL)
        return -ENOMEM;
    made->mask = slots - 1;
    made->older = had;
    atomic_store(&n->ring, made);
    return 0;
}

void verbs_ring_begin(struct verbs_qpn *n, uint64_t epoch)
{
    struct verbs_ring *r = atomic_load(&n->ring);
    for (uint32_t i = 0; i <= r->mask; i++)
        atomic_store_explicit(&r->slot[i].id, 0, memory_order_relaxed);
    atomic_store(&n->ringed, epoch);
}

bool verbs_ring_complete(struct verbs_qpn *n, struct ibv_wc *wc)
{
    struct verbs_ring *r = atomic_load_explicit(&n->ring, memory_order_acquire);
    struct verbs_slot *s = &r->slot[(uint32_t)wc->wr_id & r->mask];
    if (atomic_load_explicit(&s->id, memory_order_acquire) != wc->wr_id)
        return false; /* of a life that has ended since */
    wc->wr_id = s->wr_id;
    const bool silent = s->silent;
    atomic_store_explicit(&s->id, 0, memory_order_release);
    return !silent || wc->status != IBV_WC_SUCCESS;
}

void verbs_qpn_free(struct verbs_fab *f)
{
    for (int i = 0; i < VERBS_QPN_PAGE; i++) {
        struct verbs_qpn *page = atomic_load(&f->qpn_page[i]);
        for (int k = 0; page != NULL && k < VERBS_QPN_PAGE; k++)
            for (struct verbs_ring *r = atomic_load(&page[k].ring), *older; r != NULL; r = older) {
                older = r->older;
                free(r);
            }
        free(page);
    }
}
