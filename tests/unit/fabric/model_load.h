/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that keep requests out between one card of the model and several others: what papers
 * measure. In virtual time, from a seed. */
#ifndef TEST_MODEL_LOAD_H
#define TEST_MODEL_LOAD_H

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/random.h"
#include "model/nic.h"

enum { LOAD_MOST_CLIENTS = 16 };

struct load {
    const char *preset;
    struct model_request request;
    bool out_bound;   /* the one card's threads, to the clients; else theirs, to it */
    uint32_t threads; /* of the one, or of each client */
    uint32_t clients;
    uint32_t qps; /* of a thread for each client; 0: all threads share `shared_qps` */
    uint32_t shared_qps;
    uint32_t depth, list; /* requests that a thread has out; posted so many at a time */
    uint64_t think_ns;    /* of a thread before each list */
    uint32_t counters;    /* that atomics are of; 0: one */
    uint64_t for_ns;
};

struct load_result {
    double mops, latency_us;
    struct fab_model_counters one; /* of the one card */
};

enum load_stage { AT_POST, AT_UNIT, AT_SEND, AT_SERVE, AT_ANSWER, AT_COMPLETE, AT_SEEN };

struct load_card {
    struct model_nic *nic;
    struct model_qp *qps; /* of all threads */
    uint32_t count;
};

struct load_op {
    struct base_heap_node node;
    enum load_stage stage;
    struct load_list *of;
    uint64_t posted_ns;
};

/* So many requests that are posted together. */
struct load_list {
    struct load_op *op;
    uint32_t left;
    uint32_t thread, from, to, qp, far_qp;
};

struct load_run {
    const struct load *load;
    struct load_card card[1 + LOAD_MOST_CLIENTS];
    struct base_heap heap;
    struct base_prng prng;
    uint64_t serial, now_ns, done, latency_ns;
};

static void load_at(struct load_run *run, struct load_op *op, enum load_stage stage, uint64_t ns)
{
    op->stage = stage;
    op->node = (struct base_heap_node){.key = ns, .order = ++run->serial};
    base_heap_add(&run->heap, &op->node);
}

static void load_post(struct load_run *run, struct load_list *l)
{
    const struct load *o = run->load;
    const uint32_t mine = o->qps * (o->out_bound ? o->clients : 1);
    if (o->out_bound)
        l->to = 1 + (uint32_t)base_prng_below(&run->prng, o->clients);
    struct load_card *from = &run->card[l->from];
    l->qp = mine == 0 ? l->thread % o->shared_qps
                      : l->thread * mine + (uint32_t)base_prng_below(&run->prng, mine);
    l->far_qp = o->out_bound ? l->qp : (l->from - 1) * o->threads * o->qps + l->qp;
    l->far_qp %= run->card[l->to].count;
    l->left = o->list;
    const uint64_t at = model_doorbell(from->nic, run->now_ns, o->list,
                                       (uint64_t)o->list * model_wqe_bytes(&o->request));
    for (uint32_t i = 0; i < o->list; i++) {
        l->op[i].posted_ns = run->now_ns;
        model_take(from->nic, &from->qps[l->qp], o->request.bytes);
        load_at(run, &l->op[i], AT_UNIT, at);
    }
}

static void load_seen(struct load_run *run, struct load_op *op)
{
    struct load_list *l = op->of;
    run->done++;
    run->latency_ns += run->now_ns - op->posted_ns;
    if (--l->left == 0)
        load_at(run, &l->op[0], AT_POST, run->now_ns + run->load->think_ns);
}

static void load_step(struct load_run *run, struct load_op *op)
{
    struct load_list *l = op->of;
    struct load_card *from = &run->card[l->from], *to = &run->card[l->to];
    struct model_request request = run->load->request, *r = &request;
    const uint64_t now = run->now_ns;
    if (run->load->counters > 0)
        request.remote_addr = 8 * base_prng_below(&run->prng, run->load->counters);
    switch (op->stage) {
    case AT_POST:
        load_post(run, l);
        return;
    case AT_UNIT:
        load_at(run, op, AT_SEND, model_unit(from->nic, &from->qps[l->qp], now, r));
        return;
    case AT_SEND:
        load_at(run, op, AT_SERVE, model_send(from->nic, now, now, r) + model_wire_ns(from->nic));
        return;
    case AT_SERVE:
        load_at(run, op, AT_ANSWER, model_serve(to->nic, &to->qps[l->far_qp], now, r));
        return;
    case AT_ANSWER:
        load_at(run, op, AT_COMPLETE, model_answer(to->nic, now, r) + model_wire_ns(to->nic));
        return;
    case AT_COMPLETE:
        model_over(from->nic, &from->qps[l->qp], r->bytes);
        load_at(run, op, AT_SEEN, model_complete(from->nic, now, now, r));
        return;
    default:
        load_seen(run, op);
    }
}

static void load_card_init(struct load_card *card, const struct load *o, uint32_t threads,
                           uint32_t others)
{
    card->count = o->qps == 0 ? o->shared_qps : threads * o->qps * others;
    card->nic = model_nic_new(fab_model_find(o->preset));
    card->qps = calloc(card->count, sizeof card->qps[0]);
    for (uint32_t i = 0; i < card->count; i++)
        model_qp_begin(card->nic, &card->qps[i]);
}

static void load_begin(struct load_run *run, struct load_list *lists)
{
    const struct load *o = run->load;
    const uint32_t each = o->depth / o->list, cards = o->out_bound ? 1 : o->clients;
    uint32_t n = 0;
    for (uint32_t card = 0; card < cards; card++)
        for (uint32_t t = 0; t < o->threads; t++)
            for (uint32_t i = 0; i < each; i++, n++) {
                struct load_list *l = &lists[n];
                l->thread = t;
                l->from = o->out_bound ? 0 : 1 + card;
                l->op = calloc(o->list, sizeof l->op[0]);
                for (uint32_t k = 0; k < o->list; k++)
                    l->op[k].of = l;
                load_at(run, &l->op[0], AT_POST, 1000 + base_prng_below(&run->prng, 2000));
            }
}

static struct load_result load_measure(const struct load *o)
{
    struct load_run run = {.load = o, .now_ns = 1000};
    const uint32_t lists = (o->out_bound ? 1 : o->clients) * o->threads * (o->depth / o->list);
    struct load_list *list = calloc(lists, sizeof *list);
    uint64_t warm = 0, warm_latency = 0;
    const uint64_t warm_ns = 1000 + o->for_ns / 4, end_ns = warm_ns + o->for_ns;
    base_prng_seed(&run.prng, 7);
    load_card_init(&run.card[0], o, o->threads * (o->out_bound ? 1 : o->clients),
                   o->out_bound ? o->clients : 1);
    for (uint32_t i = 1; i <= o->clients; i++)
        load_card_init(&run.card[i], o, o->threads, 1);
    load_begin(&run, list);
    while (run.heap.first != NULL && run.heap.first->key < end_ns) {
        struct load_op *op = (struct load_op *)(void *)run.heap.first;
        base_heap_take_out(&run.heap, &op->node);
        if (run.now_ns < warm_ns && op->node.key >= warm_ns) {
            warm = run.done;
            warm_latency = run.latency_ns;
        }
        run.now_ns = op->node.key;
        load_step(&run, op);
    }
    const double done = (double)(run.done - warm);
    const struct load_result r = {.mops = done * 1e3 / (double)o->for_ns,
                                  .latency_us =
                                      (double)(run.latency_ns - warm_latency) / done / 1e3,
                                  .one = model_nic_facts(run.card[0].nic)->counters};
    for (uint32_t i = 0; i <= o->clients; free(run.card[i].qps), i++)
        model_nic_free(run.card[i].nic);
    for (uint32_t i = 0; i < lists; i++)
        free(list[i].op);
    free(list);
    return r;
}

#endif
