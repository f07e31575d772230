/* SPDX-License-Identifier: Apache-2.0 */
#include "message_tables.h"

#include <stdlib.h>

static void free_senders(struct client_senders *all)
{
    if (all != NULL)
        free(all->chain);
    free(all);
}

void client_messages_free(struct client_messages *m)
{
    if (m == NULL)
        return;
    free_senders(m->senders);
    free(m->aside);
    free(m->place);
    free(m);
}

/* ---- receives */

void client_receive_free(struct client_messages *m, struct client_receive *r)
{
    r->state = RECEIVE_FREE;
    r->round++;
    r->next = m->free;
    m->free = (uint32_t)(r - m->place) + 1;
    m->held--;
}

/* Without those of that VQP. */
static void leave_ended(struct client_messages *m, const struct kedge_vqp *q)
{
    uint32_t *link = &m->first;
    m->last = 0;
    while (*link != 0) {
        struct client_receive *r = &m->place[*link - 1];
        if (r->vqp == q->index && r->vqp_gen == q->gen) {
            *link = r->next;
            m->ended--;
        } else {
            m->last = *link;
            link = &r->next;
        }
    }
}

void client_receives_forget(struct kedge_vqp *q)
{
    struct client_messages *m = q->session->messages;
    if (q->receives == 0)
        return;
    leave_ended(m, q);
    for (uint32_t i = 0; i < m->fresh; i++) {
        struct client_receive *r = &m->place[i];
        if (r->state != RECEIVE_FREE && r->vqp == q->index && r->vqp_gen == q->gen)
            client_receive_free(m, r);
    }
    q->receives = 0;
}

/* ---- senders */

void client_sender_forget(struct kedge_vqp *q)
{
    if (!q->answers)
        return;
    struct client_senders *all = q->session->messages->senders;
    struct client_sender *mine = &all->of[q->index];
    uint32_t *link = client_senders_chain(all, mine->is.vqp);
    while (*link != q->index + 1u)
        link = &all->of[*link - 1].next;
    *link = mine->next;
    q->answers = false;
}
