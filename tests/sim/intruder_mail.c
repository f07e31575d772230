/* SPDX-License-Identifier: Apache-2.0 */
/* What a hostile worker does with messages. None that it sends to a port that has not let it in,
 * and no raise of a counter of others, may end well; that nobody hears of them mail.h and raises.h
 * see. */
#include <kedge_notify.h>
#include <string.h>

#include "base/assert.h"
#include "cluster_state.h"
#include "intruder_state.h"
#include "ledger.h"
#include "mail.h"
#include "operators.h"
#include "raises.h"
#include "random.h"
#include "schema/counter.h"

enum {
    OWN_PORTS = 4, /* at which intruders hear each other, behind FIRST_OWN: no box has those */
    FIRST_OWN = 1 << 30,
    SENDS_MOST = 12,
    RECEIVES_MOST = 6,
    OWN_BYTES = 4096 /* of its buffer */
};

static uint64_t draw(struct play_intruder *i, uint64_t n)
{
    return play_intruder_draw(i, n);
}

/* Receives that name anything, of which its lane takes some. */
static void hear(struct play_intruder *i)
{
    if (i->own == NULL && kedge_vqp_create(i->session, NULL, &i->own) != 0) {
        i->own = NULL;
        return;
    }
    (void)kedge_bind(i->own, FIRST_OWN + (uint32_t)draw(i, OWN_PORTS));
    for (uint64_t n = draw(i, RECEIVES_MOST); n > 0; n--) {
        struct ibv_sge sge = {(uintptr_t)i->buffer + draw(i, OWN_BYTES), (uint32_t)draw(i, 8192),
                              i->lkey};
        struct ibv_recv_wr *bad, wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1};
        (void)kedge_post_recv(i->own, &wr, &bad);
    }
    if (draw(i, 4) == 0)
        (void)kedge_port_grant(i->own, "default");
}

/* True: somebody is there, who may have let it in. */
static bool find_port(struct play_intruder *i)
{
    const struct mail_box *box = play_box_choose(&i->random);
    if (box == NULL)
        return false;
    if (draw(i, 3) == 0)
        return kedge_connect_port(i->q, box->gid, box->port) == 0; /* its own tenant's */
    i->to = box;
    return kedge_connect_port_of(i->q, box->gid, play_tenant_name(box->tenant - 1), box->port) == 0;
}

/* By a token of which some of the secret is wrong, or all. */
static bool find_counter(struct play_intruder *i)
{
    struct play_counter *c = play_counter_find(&i->random);
    struct schema_counter_token token;
    char text[SCHEMA_COUNTER_TOKEN_TEXT];
    if (c == NULL)
        return false;
    const int status = schema_counter_token_parse(c->token, &token);
    BASE_ASSERT(status == 0);
    token.secret ^= draw(i, 2) == 0 ? 1ull << draw(i, 64) : 1 + draw(i, UINT64_MAX);
    schema_counter_token_format(&token, text);
    return kedge_connect_counter(i->q, text) == 0;
}

static void send(struct play_intruder *i, bool raises)
{
    for (uint64_t n = 1 + draw(i, SENDS_MOST); n > 0; n--) {
        const uint32_t bytes = raises ? 0 : (uint32_t)draw(i, OWN_BYTES + 1);
        struct ibv_sge sge = {(uintptr_t)i->buffer, bytes, i->lkey};
        struct ibv_send_wr *bad,
            wr = {.wr_id = ++i->last_id,
                  .sg_list = &sge,
                  .num_sge = bytes > 0,
                  .opcode = draw(i, 4) == 0 && !raises ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
                  .send_flags = IBV_SEND_SIGNALED};
        i->posts += (draw(i, 3) == 0 ? kedge_post_notify(i->q, &wr, &bad)
                                     : kedge_post_send(i->q, &wr, &bad)) == 0;
    }
}

/* What others of its tenant send it may have, and they what it sends. */
static void look(struct play_intruder *i)
{
    struct kedge_msg msg[4];
    struct ibv_wc wc[16];
    int n;
    (void)kedge_wait(i->session, 50);
    while ((n = kedge_pop_msgs(i->session, 4, msg)) > 0) {
        for (int k = 0; k < n; k++)
            if (msg[k].from != NULL)
                kedge_vqp_destroy(msg[k].from);
    }
    i->let_in |= i->to != NULL && i->to->let_in[i->settings.tenants + 1];
    while ((n = kedge_poll(i->session, 16, wc)) > 0)
        for (int k = 0; k < n; k++)
            if (wc[k].status == IBV_WC_SUCCESS && !i->let_in && wc[k].qp_num == kedge_vqp_num(i->q))
                play_violation(i->process->name, "it is let in nowhere, and somebody took it");
}

static void send_own(struct play_intruder *i)
{
    struct kedge_vqp *q;
    uint8_t gid[16];
    cluster_gid((uint32_t)draw(i, cluster.settings.nodes), gid);
    if (kedge_vqp_create(i->session, NULL, &q) != 0)
        return;
    struct kedge_vqp *others = i->q;
    i->q = q;
    if (kedge_connect_port(q, gid, FIRST_OWN + (uint32_t)draw(i, OWN_PORTS)) == 0)
        send(i, false);
    i->q = others;
    if (draw(i, 2) == 0) {
        look(i);
        play_intruder_alter(i);
    }
    kedge_vqp_destroy(q);
}

/* What is altered may be of the queue pair of its own. */
void play_intruder_mail(struct play_intruder *i)
{
    const bool raises = draw(i, 3) == 0;
    hear(i);
    if (draw(i, 3) == 0)
        send_own(i);
    if (!(raises ? find_counter(i) : find_port(i)))
        return;
    send(i, raises);
    look(i);
}
