/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of a simulated worker's: WRITEs in a slot of somebody else's region, and behind them a
 * message to that worker's port or a raise of its counter, which are to say that they are there. It
 * has counters of its own, and raises others' without a list too. mail.h and raises.h judge. */
#include <arpa/inet.h>
#include <errno.h>
#include <kedge_notify.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "random.h"
#include "trace.h"
#include "worker_state.h"

enum {
    KEEP_PPM = 700000,    /* turns in which it goes on with what it has */
    RAISES_PPM = 300000,  /* others in which it raises a counter, and writes nothing */
    COUNTER_PPM = 500000, /* lists that end so */
    IMM_PPM = 250000,     /* of others end with a WRITE with immediate */
    WRONG_PPM = 30000,    /* have a WRITE to where nothing is lent */
    DEAD_PPM = 50000,     /* raises of a counter that is gone */
    ALONE_PPM = 500000,   /* counters that one worker at a time raises */
    DROP_PPM = 50000,     /* turns in which a counter of its own goes */
    LEAVE_PPM = 10000,
    LOOK_PPM = 500000, /* turns with a READ, or an atomic, behind its lists */
    ADD_PPM = 300000,  /* of these */
    WAIT_PPM = 100000, /* turns in which it waits for a counter to go on */
    WAIT_MS = 20,
    LEFT_S = 10,
    HANG_S = 120
};

static bool happens(struct play_worker *w, uint32_t ppm)
{
    return play_random_happens(&w->random, ppm);
}

/* ---- its own counters */

static void make_counter(struct play_worker *w, struct own_counter *c)
{
    char token[KEDGE_COUNTER_TOKEN_MAX];
    if (!play_worker_is_possible(w, kedge_counter_create(w->session, &c->counter),
                                 "make a counter")) {
        c->counter = NULL;
        return;
    }
    if (kedge_counter_export(c->counter, token, sizeof token) != 0)
        play_violation(w->process->name, "a counter has no token: %s", kedge_last_error());
    c->known = play_counter_open(w->process->name, token, happens(w, ALONE_PPM));
}

static void drop_counter(struct play_worker *w, struct own_counter *c)
{
    const int status = kedge_counter_destroy(c->counter);
    if (status == -ETIMEDOUT)
        return;
    play_counter_close(c->known, status == 0);
    *c = (struct own_counter){.counter = NULL};
    (void)play_worker_is_possible(w, status, "give a counter back");
}

void play_lists_look(struct play_worker *w)
{
    uint64_t value;
    for (uint32_t i = 0; i < OWN_COUNTERS; i++) {
        const struct own_counter *c = &w->lists.own[i];
        if (c->counter != NULL && kedge_counter_read(c->counter, &value) == 0)
            play_counter_seen(c->known, value, w->region);
    }
}

static void await_counter(struct play_worker *w, const struct own_counter *c)
{
    const uint64_t wanted = c->known->seen + 1;
    const int status = kedge_counter_wait(c->counter, wanted, WAIT_MS);
    uint64_t value;
    if (status < 0) {
        (void)play_worker_survives(w, status);
        return;
    }
    if (kedge_counter_read(c->counter, &value) != 0)
        return;
    if (status == 1 && value < wanted)
        play_violation(w->process->name, "a counter is said to say what it does not");
    play_counter_seen(c->known, value, w->region);
}

static void mind_counters(struct play_worker *w)
{
    struct own_counter *c = &w->lists.own[base_prng_below(&w->random, OWN_COUNTERS)];
    if (c->counter == NULL)
        make_counter(w, c);
    else if (happens(w, DROP_PPM))
        drop_counter(w, c);
    else if (happens(w, WAIT_PPM))
        await_counter(w, c);
}

/* ---- where its lists go */

static void forget_goal(struct play_worker *w, enum mail_end end)
{
    struct worker_lists *n = &w->lists;
    for (; n->done < n->posted; n->done++) {
        if (n->stream != NULL)
            play_stream_ended(n->stream, n->first + n->done, end, w->process->name);
        else
            play_counter_ended(n->counter, end, n->posted_ns, w->process->name);
        if (n->slot != NULL)
            n->slot->lost = true;
    }
    if (n->slot != NULL) {
        n->slot->lost |= n->looks;
        play_slot_give(n->slot);
    }
    if (n->counter != NULL)
        play_counter_give(n->counter);
    n->slot = NULL;
    n->counter = NULL;
    n->stream = NULL;
    n->q = NULL;
    n->looks = false;
    n->posted = n->done = 0;
}

static void leave_goal(struct play_worker *w)
{
    if (w->session != NULL && w->lists.q != NULL)
        kedge_vqp_destroy(w->lists.q);
    forget_goal(w, MAIL_LEFT);
}

static bool find_slot(struct play_worker *w)
{
    struct worker_lists *n = &w->lists;
    char token[PLAY_TOKEN];
    n->slot = play_slot_take(&w->random, w->process->name, w->settings.tenant);
    if (n->slot == NULL)
        return false;
    (void)snprintf(token, sizeof token, "%s", n->slot->region->token);
    return play_worker_is_possible(w, kedge_import(w->session, token, &n->remote),
                                   "import a region");
}

/* Its message goes to the port of the region's owner, or raises a counter of his. */
static bool find_hearer(struct play_worker *w)
{
    struct worker_lists *n = &w->lists;
    const char *owner = n->slot != NULL ? n->slot->region->owner : NULL;
    struct mail_box *box = owner != NULL ? play_box_of(owner) : NULL;
    if (box != NULL && !happens(w, COUNTER_PPM)) {
        n->stream = play_stream_begin(box, w->settings.tenant, NULL);
        return true;
    }
    n->counter = play_counter_take(&w->random, owner, owner == NULL && happens(w, DEAD_PPM));
    return n->counter != NULL;
}

static bool find_goal(struct play_worker *w)
{
    struct worker_lists *n = &w->lists;
    const bool raises = happens(w, RAISES_PPM);
    if ((!raises && !find_slot(w)) || w->session == NULL || !find_hearer(w) ||
        !play_worker_is_possible(w, kedge_vqp_create(w->session, NULL, &n->q),
                                 "make a queue pair")) {
        n->q = NULL;
        return false;
    }
    int status;
    if (n->counter != NULL) {
        status = kedge_connect_counter(n->q, n->counter->token);
    } else {
        const struct mail_box *to = play_stream_to(n->stream);
        status = kedge_connect_port(n->q, to->gid, to->port);
    }
    return play_worker_is_possible(w, status, "connect to who is to hear of its lists");
}

/* ---- posting */

struct written {
    struct ibv_send_wr wr[LIST_WRITES + 1];
    struct ibv_sge sge[LIST_WRITES + 1];
    uint32_t count; /* of the WRITEs */
};

/* Which together write one run of words, each its part. */
static void write_run(struct play_worker *w, struct written *l, const struct mail_list *list,
                      const uint8_t *from)
{
    const struct worker_lists *n = &w->lists;
    const uint32_t words = list->bytes / 8;
    const uint64_t at = n->remote.addr + play_slot_offset(n->slot) + list->at;
    uint32_t done = 0;
    while (done < words) {
        const bool last = l->count + 1 == LIST_WRITES;
        const uint32_t rest = words - done,
                       many = last ? rest : (uint32_t)play_random_between(&w->random, 1, rest);
        l->sge[l->count] = (struct ibv_sge){(uintptr_t)from + 8ull * done, 8 * many, w->mail.lkey};
        l->wr[l->count++] = (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE,
                                                 .num_sge = 1,
                                                 .wr.rdma = {at + 8ull * done, n->remote.rkey}};
        done += many;
    }
}

/* The message behind them. A WRITE with immediate is the last of them itself. */
static void add_message(struct play_worker *w, struct written *l, const struct mail_list *list,
                        uint8_t *letter)
{
    struct worker_lists *n = &w->lists;
    struct ibv_send_wr *last = &l->wr[l->count];
    uint32_t imm;
    if (n->stream == NULL) {
        play_counter_post(n->counter, list);
        *last = (struct ibv_send_wr){.opcode = IBV_WR_SEND};
    } else if (l->count > 0 && happens(w, IMM_PPM)) {
        last = &l->wr[--l->count];
        last->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        n->last = play_stream_post_imm(n->stream, l->sge[l->count].length, list, &imm);
        last->imm_data = htonl(imm);
    } else {
        const uint32_t bytes =
            (uint32_t)play_random_between(&w->random, MAIL_LEAST, KEDGE_NOTIFICATION_MOST);
        n->last = play_stream_post_list(n->stream, bytes, letter, list);
        l->sge[l->count] = (struct ibv_sge){(uintptr_t)letter, bytes, w->mail.lkey};
        *last = (struct ibv_send_wr){.opcode = IBV_WR_SEND, .num_sge = 1};
    }
    last->send_flags = IBV_SEND_SIGNALED;
    last->wr_id = ++w->last_id;
}

static void link_list(struct written *l)
{
    for (uint32_t i = 0; i <= l->count; i++) {
        l->wr[i].sg_list = l->wr[i].num_sge != 0 ? &l->sge[i] : NULL;
        l->wr[i].next = i < l->count ? &l->wr[i + 1] : NULL;
    }
}

/* False: nothing of it was posted. */
static bool post_list(struct play_worker *w, uint32_t place)
{
    struct worker_lists *n = &w->lists;
    struct written l = {.count = 0};
    struct mail_list list = {.bytes = 0};
    uint8_t *memory = play_letters_list(w, place);
    if (n->slot != NULL) {
        const uint32_t bytes = 8 * (uint32_t)play_random_between(&w->random, 1, LIST_BYTES / 8);
        const uint32_t at =
            8 * (uint32_t)base_prng_below(&w->random, (PLAY_SLOT_BYTES - bytes) / 8 + 1);
        list = play_list_make(n->slot, at, bytes, memory);
        memcpy(n->slot->content + at, memory, bytes);
        write_run(w, &l, &list, memory);
    }
    n->wrong[place] = n->slot != NULL && happens(w, WRONG_PPM);
    if (n->wrong[place])
        l.wr[base_prng_below(&w->random, l.count)].wr.rdma.remote_addr += PLAY_REGION_BYTES;
    add_message(w, &l, &list, memory + LIST_BYTES);
    if (n->slot != NULL && n->stream != NULL)
        play_order_behind(&list, n->slot, n->stream, n->last);
    n->last_list = list;
    n->first = place == 0 ? n->last : n->first;
    n->first_id = place == 0 ? w->last_id : n->first_id;
    link_list(&l);
    struct ibv_send_wr *bad;
    if (kedge_post_notify(n->q, l.wr, &bad) == 0) {
        w->count.lists++;
        return true;
    }
    if (n->stream != NULL)
        play_stream_ended(n->stream, n->last, MAIL_NOT_SENT, w->process->name);
    else
        play_counter_ended(n->counter, MAIL_NOT_SENT, n->posted_ns, w->process->name);
    if (n->slot != NULL)
        n->slot->lost = true;
    return false;
}

/* What stands behind all of them, and ends behind them. */
static void post_look(struct play_worker *w)
{
    struct worker_lists *n = &w->lists;
    uint8_t *memory = play_letters_list(w, LISTS_OUT);
    const uint64_t slot = n->remote.addr + play_slot_offset(n->slot);
    struct ibv_sge sge = {(uintptr_t)memory, n->last_list.bytes, w->mail.lkey};
    struct ibv_send_wr wr = {.wr_id = ++w->last_id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {slot + n->last_list.at, n->remote.rkey}},
                       *bad;
    n->adds = !w->settings.no_atomics && happens(w, ADD_PPM);
    n->look_id = wr.wr_id;
    if (n->adds) {
        sge.length = 8;
        wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wr.wr.atomic.remote_addr = n->remote.addr + play_slot_counter_offset(n->slot);
        wr.wr.atomic.compare_add = 1;
        wr.wr.atomic.rkey = n->remote.rkey;
    }
    n->looks = kedge_post_send(n->q, &wr, &bad) == 0;
    n->added_to = n->slot->counter;
    n->slot->counter += n->adds && n->looks;
    w->count.reads += n->looks && !n->adds;
    w->count.atomics += n->looks && n->adds;
}

/* ---- their ends */

static void judge_list_look(struct play_worker *w, const struct ibv_wc *wc)
{
    struct worker_lists *n = &w->lists;
    const uint8_t *memory = play_letters_list(w, LISTS_OUT);
    n->looks = false;
    if (n->done < n->posted)
        play_violation(w->process->name, "a request ends before lists that it stands behind");
    if (wc->status != IBV_WC_SUCCESS) {
        n->failed = n->slot->lost = true;
        return;
    }
    if (n->failed)
        play_violation(w->process->name, "a request ends well behind a list that has failed");
    if (n->adds ? memcmp(memory, &n->added_to, 8) != 0
                : memcmp(memory, n->slot->content + n->last_list.at, n->last_list.bytes) != 0)
        play_violation(w->process->name, "a request behind lists finds what was before them");
}

/* One that fails by a WRITE of it had no message, unless that WRITE is the message. */
static enum mail_end end_of(const struct worker_lists *n, const struct ibv_wc *wc)
{
    if (wc->status == IBV_WC_SUCCESS)
        return MAIL_TAKEN;
    const bool by_write = wc->opcode == IBV_WC_RDMA_WRITE &&
                          (n->stream == NULL || !play_stream_is_imm(n->stream, n->first + n->done));
    return by_write || kedge_never_sent(wc) == 1 ? MAIL_NOT_SENT : MAIL_UNKNOWN;
}

static void judge_list(struct play_worker *w, const struct ibv_wc *wc)
{
    struct worker_lists *n = &w->lists;
    if (n->done == n->posted || wc->wr_id != n->first_id + n->done) {
        play_violation(w->process->name, "a completion of no list that is out, or too soon");
        return;
    }
    const enum mail_end end = end_of(n, wc);
    if (end == MAIL_TAKEN && n->failed)
        play_violation(w->process->name, "a list ends well behind one that has failed");
    if (end == MAIL_TAKEN && n->wrong[n->done])
        play_violation(w->process->name, "a list ends well of which a WRITE goes nowhere");
    if (n->stream != NULL && wc->status == IBV_WC_RETRY_EXC_ERR)
        play_stream_silent(n->stream, w->settings.calm_ns, w->process->name);
    if (n->stream != NULL)
        play_stream_ended(n->stream, n->first + n->done, end, w->process->name);
    else
        play_counter_ended(n->counter, end, n->posted_ns, w->process->name);
    n->done++;
    n->failed |= end != MAIL_TAKEN;
    if (end != MAIL_TAKEN && n->slot != NULL)
        n->slot->lost = true;
    if (end != MAIL_TAKEN)
        play_trace(w->process->name, "a list failed: %s: %s", kedge_wc_status_str(wc->status),
                   wc->vendor_err != 0 ? kedge_reason_str(wc->vendor_err) : "");
}

static void await_lists(struct play_worker *w)
{
    const uint64_t until_ns = play_now_ns() + HANG_S * BASE_NS_PER_S;
    struct ibv_wc wc[LISTS_OUT];
    while (w->session != NULL && (w->lists.done < w->lists.posted || w->lists.looks)) {
        int n = kedge_poll(w->session, LISTS_OUT, wc);
        for (int i = 0; i < n; i++)
            if (w->lists.looks && wc[i].wr_id == w->lists.look_id)
                judge_list_look(w, &wc[i]);
            else if (wc[i].qp_num == kedge_vqp_num(w->lists.q))
                judge_list(w, &wc[i]);
            else if (!play_worker_judge_mail(w, &wc[i]))
                play_violation(w->process->name, "a completion of nothing that is out");
        if (n > 0)
            continue;
        play_worker_hear(w);
        n = n == 0 ? play_worker_wait(w) : n;
        if (!play_worker_survives(w, n))
            return;
        if (play_now_ns() > until_ns) {
            play_violation(w->process->name, "%u lists have not completed in %d s",
                           w->lists.posted - w->lists.done, HANG_S);
            return;
        }
    }
}

void play_worker_do_lists(struct play_worker *w)
{
    struct worker_lists *n = &w->lists;
    mind_counters(w);
    if (w->session != NULL && n->q != NULL && !happens(w, KEEP_PPM))
        leave_goal(w);
    if (w->session == NULL || (n->q == NULL && !find_goal(w))) {
        leave_goal(w);
        return;
    }
    const uint32_t count = 1 + (uint32_t)base_prng_below(&w->random, LISTS_OUT);
    n->posted = n->done = 0;
    n->failed = false;
    n->posted_ns = play_now_ns();
    while (n->posted < count && post_list(w, n->posted))
        n->posted++;
    n->failed |= n->posted < count;
    n->looks = false;
    if (n->posted > 0 && !n->failed && n->slot != NULL && happens(w, LOOK_PPM))
        post_look(w);
    if (happens(w, LEAVE_PPM)) {
        leave_goal(w);
        play_process_sleep(LEFT_S * BASE_NS_PER_S);
        return;
    }
    await_lists(w);
    if (w->session != NULL && (n->failed || (n->slot != NULL && n->slot->lost)))
        leave_goal(w);
}

void play_lists_forsake(struct play_worker *w)
{
    forget_goal(w, MAIL_UNKNOWN);
    for (uint32_t i = 0; i < OWN_COUNTERS; i++)
        play_counter_close(w->lists.own[i].known, false);
    w->lists = (struct worker_lists){.slot = NULL};
}
