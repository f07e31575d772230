/* SPDX-License-Identifier: Apache-2.0 */
/* Completions of a queue pair that was reset or destroyed must not be polled any more: who reuses
 * it would take them for those of its new requests. Other devices' libraries remove them from the
 * CQ; librxe does not. So on rxe a worker takes everything out of the CQ, and keeps what belongs
 * to other queue pairs for the lane, which gets that first. The lane may have to wait for that:
 * another reason why rxe is for tests. */
#include <errno.h>
#include <stdlib.h>

#include "verbs/verbs.h"

int verbs_filter_init(struct verbs_cq *c)
{
    c->kept = calloc(c->base.cqe, sizeof *c->kept);
    if (c->kept == NULL)
        return -ENOMEM;
    pthread_mutex_init(&c->lock, NULL);
    return 0;
}

void verbs_filter_fini(struct verbs_cq *c)
{
    if (c->kept == NULL)
        return;
    pthread_mutex_destroy(&c->lock);
    free(c->kept);
    c->kept = NULL;
}

int verbs_filter_poll(struct verbs_cq *c, int n, struct ibv_wc *wc)
{
    int got = 0, more = 0;
    pthread_mutex_lock(&c->lock);
    for (; got < n && c->kept_count > 0; c->kept_count--)
        wc[got++] = c->kept[c->kept_first++];
    if (got < n)
        more = ibv_poll_cq(c->cq, n - got, wc + got);
    pthread_mutex_unlock(&c->lock);
    return more >= 0 ? got + more : more;
}

void verbs_filter_purge(struct fab_cq *cq, uint32_t qpn)
{
    struct verbs_cq *c = (struct verbs_cq *)cq;
    struct ibv_wc wc;
    uint32_t n = 0;
    if (c->kept == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    for (uint32_t i = c->kept_first; i < c->kept_first + c->kept_count; i++)
        if (c->kept[i].qp_num != qpn)
            c->kept[n++] = c->kept[i];
    /* There is room: a CQ that is not dead holds no more than cqe in all. */
    while (n < c->base.cqe && ibv_poll_cq(c->cq, 1, &wc) == 1)
        if (wc.qp_num != qpn)
            c->kept[n++] = wc;
    c->kept_first = 0;
    c->kept_count = n;
    pthread_mutex_unlock(&c->lock);
}
