/* SPDX-License-Identifier: Apache-2.0 */
#include "sender.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "message_tables.h"
#include "receive.h"
#include "schema/peers.h"

static struct client_senders *new_senders(const struct kedge_session *s)
{
    struct client_senders *all = calloc(1, sizeof *all + s->max_vqps * sizeof *all->of);
    uint32_t chains = 1;
    if (all == NULL)
        return NULL;
    while (chains < s->max_vqps)
        chains *= 2;
    all->mask = chains - 1;
    all->chain = calloc(chains, sizeof *all->chain);
    if (all->chain != NULL)
        return all;
    free(all);
    return NULL;
}

static struct kedge_vqp *find_answering(struct kedge_session *s, struct client_senders *all,
                                        const struct schema_cqe_sender *from)
{
    for (uint32_t i = *client_senders_chain(all, from->vqp); i != 0; i = all->of[i - 1].next)
        if (memcmp(&all->of[i - 1].is, from, sizeof *from) == 0)
            return &s->vqps[i - 1];
    return NULL;
}

static struct kedge_vqp *make_answering(struct kedge_session *s, struct client_senders *all,
                                        const struct schema_cqe_sender *from)
{
    uint32_t *chain = client_senders_chain(all, from->vqp), slot, gen;
    struct kedge_vqp *q;
    if (kedge_vqp_create(s, NULL, &q) != 0)
        return NULL;
    if (schema_peers_find(s->peers, from->gid, s->pool, &slot, &gen) == 0)
        client_vqp_point(q, slot, gen);
    q->to_kind = SCHEMA_SEND_TO_VQP;
    q->to = from->vqp;
    q->answers = true;
    all->of[q->index] = (struct client_sender){.is = *from, .next = *chain};
    *chain = q->index + 1u;
    return q;
}

struct kedge_vqp *client_sender_vqp(struct kedge_session *s, const struct schema_cqe_sender *from)
{
    struct client_messages *m = s->messages;
    if (m->senders == NULL && (m->senders = new_senders(s)) == NULL)
        return NULL;
    struct kedge_vqp *q = find_answering(s, m->senders, from);
    return q != NULL ? q : make_answering(s, m->senders, from);
}

int client_sender_connect(struct kedge_vqp *q)
{
    struct kedge_session *s = q->session;
    uint32_t slot, gen;
    if (!q->answers)
        return client_fail_text(-ENOTCONN, "the queue pair is not connected");
    const uint8_t *gid = s->messages->senders->of[q->index].is.gid;
    const int status = client_vqp_resolve(q, gid, s->pool, &slot, &gen);
    if (status == 0)
        client_vqp_point(q, slot, gen);
    return status;
}
