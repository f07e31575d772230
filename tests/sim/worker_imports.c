/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulated worker does with tokens of other tenants: it imports some at once, READs what
 * one of them is of, gives them back, and tries again. Of many at once each is as good as alone,
 * one that is broken spoils all, and what was given back is of no use. */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "random.h"
#include "schema/session.h"
#include "schema/token.h"
#include "trace.h"
#include "worker_state.h"

enum {
    BROKEN_PPM = 100000,
    GUESS_PPM = 200000, /* of what was given back it tries, each of which is a guess at a key */
    READ_BYTES = 8,
    HANG_S = 120
};

static bool happens(struct play_worker *w, uint32_t ppm)
{
    return play_random_happens(&w->random, ppm);
}

static void break_token(char *text)
{
    text[strlen(text) - 1] ^= 1;
}

/* The owners of all that is lent now by another tenant than its own may have given it that. */
static bool gather(struct play_worker *w, struct worker_imports *m)
{
    m->count = play_regions_of_others(w->settings.tenant, m->text, IMPORTS_MOST);
    for (uint32_t i = 0; i < m->count; i++)
        m->texts[i] = m->text[i];
    if (m->count == 0)
        return false;
    m->one = (uint32_t)base_prng_below(&w->random, m->count);
    play_region_grant(m->text[m->one], w->settings.tenant);
    return true;
}

static void compare(struct play_worker *w, const struct worker_imports *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        struct schema_token t;
        const int status = schema_token_parse(m->text[i], &t);
        BASE_ASSERT(status == 0);
        const struct kedge_remote *r = &m->remote[i];
        if (r->addr != t.addr || r->length != t.length || r->rkey != t.vkey ||
            memcmp(r->gid, t.gid, sizeof t.gid) != 0)
            play_violation(w->process->name, "token %u of %u is imported as another one", i,
                           m->count);
    }
}

/* False: they are not. */
static bool import_all(struct play_worker *w, struct worker_imports *m)
{
    if (happens(w, BROKEN_PPM)) {
        char *broken = m->text[base_prng_below(&w->random, m->count)];
        break_token(broken);
        if (kedge_import_many(w->session, m->texts, m->count, m->remote) == 0)
            play_violation(w->process->name, "a broken token is imported among others");
        break_token(broken);
    }
    const int status = kedge_import_many(w->session, m->texts, m->count, m->remote);
    if (!play_worker_is_possible(w, status, "import many regions"))
        return false;
    compare(w, m);
    w->count.imports += m->count;
    return true;
}

static bool await_read(struct play_worker *w, const struct kedge_vqp *q, struct ibv_wc *out)
{
    const uint64_t until_ns = play_now_ns() + HANG_S * BASE_NS_PER_S;
    while (w->session != NULL) {
        struct ibv_wc wc;
        int n = kedge_poll(w->session, 1, &wc);
        if (n == 1 && wc.qp_num == kedge_vqp_num(q)) {
            *out = wc;
            return true;
        }
        if (n == 1 && !play_worker_judge_mail(w, &wc))
            play_violation(w->process->name, "a completion of nothing that is out");
        if (n == 1)
            continue;
        play_worker_hear(w);
        n = n == 0 ? play_worker_wait(w) : n;
        if (!play_worker_survives(w, n))
            return false;
        if (play_now_ns() > until_ns) {
            play_violation(w->process->name, "a READ by a token has not completed in %d s", HANG_S);
            return false;
        }
    }
    return false;
}

/* Whether it has an end, and which. */
static bool read_one(struct play_worker *w, struct kedge_vqp *q, const struct kedge_remote *remote,
                     struct ibv_wc *wc)
{
    struct ibv_sge sge = {(uintptr_t)w->buffers, READ_BYTES, w->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = ++w->last_id,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_READ,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {remote->addr, remote->rkey}};
    return play_worker_is_possible(w, kedge_connect(q, remote->gid), "connect") &&
           play_worker_is_possible(w, kedge_post_send(q, &wr, &bad), "READ by a token") &&
           await_read(w, q, wc);
}

/* What many at once did not bring one alone is not to bring either, as long as it is lent. */
static void try_alone(struct play_worker *w, struct kedge_vqp *q, struct worker_imports *m)
{
    struct kedge_remote *remote = &m->remote[m->one];
    struct ibv_wc wc;
    if (play_worker_is_possible(w, kedge_import(w->session, m->text[m->one], remote),
                                "import a region") &&
        read_one(w, q, remote, &wc) && wc.status == IBV_WC_SUCCESS)
        play_violation(w->process->name,
                       "a token is good alone, and was not when %u were imported at once",
                       m->count);
}

static void give_back(struct play_worker *w, struct kedge_vqp *q, struct worker_imports *m)
{
    struct ibv_wc wc;
    for (uint32_t i = 0; i < m->count && w->session != NULL; i++) {
        const int status = kedge_unimport(w->session, &m->remote[i]);
        if (!play_worker_is_possible(w, status == -ENOENT ? 0 : status, "give an import back"))
            return;
    }
    if (happens(w, GUESS_PPM) && w->session != NULL && read_one(w, q, &m->remote[m->one], &wc) &&
        wc.status == IBV_WC_SUCCESS)
        play_violation(w->process->name, "a region is READ by a token that was given back");
}

void play_worker_do_imports(struct play_worker *w)
{
    struct worker_imports *m = &w->imports;
    struct kedge_vqp *q;
    struct ibv_wc wc;
    if (!gather(w, m) || !import_all(w, m) ||
        !play_worker_is_possible(w, kedge_vqp_create(w->session, NULL, &q), "make a queue pair"))
        return;
    if (read_one(w, q, &m->remote[m->one], &wc) && wc.status != IBV_WC_SUCCESS &&
        wc.vendor_err == SCHEMA_REASON_VKEY)
        try_alone(w, q, m);
    if (w->session != NULL)
        give_back(w, q, m);
    if (w->session != NULL)
        kedge_vqp_destroy(q);
}
