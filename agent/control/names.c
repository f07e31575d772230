/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "agent/reserve.h"
#include "base/clock.h"
#include "bounds.h"
#include "metaserver_call.h"
#include "names.h"
#include "prefer.h"
#include "quotas.h"
#include "register.h"

/* A worker that asks. */
struct names_waiter {
    struct names_waiter *next;
    names_done *done;
    void *user;
    uint64_t end_ns; /* it waits no longer */
    bool is_late;    /* it came when its question had been put already */
};

/* Put to one metaserver after another, for all that wait for it. */
struct names_question {
    struct names_question *next_question;
    struct agent *agent;
    struct names_account *account;
    struct names_waiter *first, *last;
    uint16_t pool;   /* of the endpoint */
    uint32_t asked;  /* of the metaservers: bit i */
    uint64_t end_ns; /* by then there is an answer: the first that waits */
    int status;      /* so far */
    char name[64];
};

static void ask_next(struct names_question *q);
static bool take_place(struct agent *a, struct names_account *t);

/* ---- answers that are kept */

static struct names_answer *find_kept(struct names_account *t, uint16_t pool, const char *name)
{
    for (uint32_t i = 0; i < NAMES_KEPT; i++)
        if (t->kept[i].pool == pool && strcmp(t->kept[i].name, name) == 0)
            return &t->kept[i];
    return NULL;
}

/* In the place of what was said of that name before, or of what is the oldest. */
static void keep_answer(struct names_question *q, int status, const uint8_t gid[16])
{
    struct names_answer *same = find_kept(q->account, q->pool, q->name), *k = q->account->kept;
    for (uint32_t i = 1; i < NAMES_KEPT; i++)
        if (q->account->kept[i].until_ns < k->until_ns)
            k = &q->account->kept[i];
    k = same != NULL ? same : k;
    *k = (struct names_answer){.until_ns =
                                   world_now_ns(q->agent->world) + NAMES_KEPT_MS * BASE_NS_PER_MS,
                               .status = status,
                               .pool = q->pool};
    memcpy(k->name, q->name, sizeof k->name);
    memcpy(k->gid, gid, sizeof k->gid);
}

/* ---- questions */

static struct names_question *find_question(const struct agent *a, const struct names_account *t,
                                            uint16_t pool, const char *name)
{
    struct names_question *q = a->names.first;
    while (q != NULL && (q->account != t || q->pool != pool || strcmp(q->name, name) != 0))
        q = q->next_question;
    return q;
}

static void remove_question(struct names_question *q)
{
    struct names_question **at = &q->agent->names.first;
    while (*at != q)
        at = &(*at)->next_question;
    *at = q->next_question;
}

/* -ENOMEM: it is as it was. */
static int add_waiter(struct names_question *q, names_done *done, void *user)
{
    struct names_waiter *w = malloc(sizeof *w);
    if (w == NULL)
        return -ENOMEM;
    *w =
        (struct names_waiter){.done = done,
                              .user = user,
                              .end_ns = world_now_ns(q->agent->world) + RESOLVE_MS * BASE_NS_PER_MS,
                              .is_late = q->first != NULL};
    *(q->first == NULL ? &q->first : &q->last->next) = w;
    q->last = w;
    return 0;
}

/* Those that were there when it was put, which are the first; the others stay, and are in time for
 * the next one. */
static struct names_waiter *take_waiters(struct names_question *q)
{
    struct names_waiter *taken = q->first, **end = &taken;
    while (*end != NULL && !(*end)->is_late)
        end = &(*end)->next;
    q->first = *end;
    *end = NULL;
    for (struct names_waiter *w = q->first; w != NULL; w = w->next)
        w->is_late = false;
    return taken;
}

static void tell_waiters(struct names_waiter *first, int status, const uint8_t gid[16],
                         uint16_t pool)
{
    for (struct names_waiter *w = first, *next; w != NULL; w = next) {
        next = w->next;
        w->done(w->user, status, gid, pool);
        free(w);
    }
}

/* All of them are told, whoever came first; and without an answer those whose time has begun later
 * have it put once more. */
static void answer_question(struct names_question *q, int status, const uint8_t gid[16])
{
    static const uint8_t none[16];
    const bool is_known = status == 0 || status == -ENOENT;
    struct names_waiter *told = q->first;
    if (is_known)
        keep_answer(q, status, gid);
    if (is_known || q->agent->stopping)
        q->first = NULL;
    else
        told = take_waiters(q);
    q->account->out--;
    const bool again = q->first != NULL && take_place(q->agent, q->account);
    if (!again)
        remove_question(q); /* whoever asks from now on puts another one */
    tell_waiters(told, status, gid, q->pool);
    if (again) {
        q->asked = 0;
        q->end_ns = q->first->end_ns;
        q->status = -EHOSTUNREACH;
        ask_next(q);
    } else {
        tell_waiters(q->first, -EAGAIN, none, 0);
        free(q);
    }
}

/* The endpoint of that pool, of a node that has not expired: 0 and gid, or -ENOENT. */
static int read_endpoint(uint16_t pool, const char *body, uint8_t gid[16])
{
    int status = -ENOENT;
    size_t i;
    json_t *root = json_loads(body, 0, NULL), *endpoint;
    const char *state = json_string_value(json_object_get(root, "state"));
    bool expired = state != NULL && strcmp(state, "expired") == 0;
    json_array_foreach(json_object_get(root, "endpoints"), i, endpoint)
    {
        const char *text = json_string_value(json_object_get(endpoint, "gid"));
        if (!expired && status != 0 && text != NULL && base_gid_parse(text, gid) == 0 &&
            json_integer_value(json_object_get(endpoint, "pool")) == pool)
            status = 0;
    }
    json_decref(root);
    return status;
}

static void on_named(void *user, const struct http_answer *answer)
{
    struct names_question *q = user;
    uint8_t gid[16] = {0};
    if (answer->status == 404)
        q->status = -ENOENT;
    else if (answer->status == 429 && q->status == -EHOSTUNREACH)
        q->status = -EAGAIN;
    else if (answer->status == 200)
        q->status = read_endpoint(q->pool, answer->body, gid);
    if (answer->status == 200 && q->status == 0)
        answer_question(q, 0, gid);
    else
        ask_next(q);
}

/* The metaserver that is asked next; AGENT_METASERVERS: none is left. And how many there are. */
static uint32_t find_next(const struct names_question *q, uint32_t *left)
{
    uint8_t order[AGENT_METASERVERS];
    const struct pool *own = q->agent->pools[0];
    const uint32_t count = agent_prefer_order(own, order);
    uint32_t next = AGENT_METASERVERS;
    *left = 0;
    for (uint32_t i = count; i-- > 0;) {
        const uint32_t number = order[i];
        if ((q->asked >> number & 1) != 0 || own->registration[number].state != REGISTRATION_DONE)
            continue;
        next = number;
        ++*left;
    }
    return next;
}

/* What one metaserver may take, so that those after it can be asked too. */
static uint32_t share_ms(const struct names_question *q, uint32_t metaservers)
{
    uint64_t now = world_now_ns(q->agent->world), left = q->end_ns > now ? q->end_ns - now : 0;
    return (uint32_t)(left / metaservers / BASE_NS_PER_MS) + 1;
}

/* One metaserver after another, until one knows a live node of that name. */
static void ask_next(struct names_question *q)
{
    static const uint8_t none[16];
    struct agent *a = q->agent;
    char url[METASERVER_URL_BYTES];
    uint32_t next, left;
    while (!a->stopping && (next = find_next(q, &left)) < AGENT_METASERVERS) {
        q->asked |= 1u << next;
        snprintf(url, sizeof url, "%s/v1/nodes/%s", a->pools[0]->registration[next].url, q->name);
        const struct http_call c = agent_metaserver_call(a, NULL, url, share_ms(q, left));
        if (world_call(a->world, &c, on_named, q, NULL) == 0)
            return;
    }
    answer_question(q, q->status, none);
}

static bool is_name(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-");
    return n > 0 && n < 64 && name[n] == '\0' && name[0] != '.' && name[0] != '-';
}

/* ---- budgets */

/* That of a tenant, by its id. NULL: so many tenants have come and gone in a second that none is
 * free. */
static struct names_account *find_account(struct agent *a, uint32_t id)
{
    struct names_account *spare = NULL;
    const uint64_t now = world_now_ns(a->world);
    for (uint32_t i = 0; i < NAMES_ACCOUNTS; i++) {
        struct names_account *t = &a->names.account[i];
        if (t->tenant == id)
            return t;
        if (t->out == 0 && t->whole_ns <= now && (spare == NULL || t->whole_ns < spare->whole_ns))
            spare = t;
    }
    if (spare != NULL)
        *spare = (struct names_account){.tenant = id};
    return spare;
}

/* The place of a tenant of that id; AGENT_TENANT_SLOTS: it has gone. */
static uint32_t find_place(const struct agent *a, uint32_t id)
{
    uint32_t i = 0;
    while (i < AGENT_TENANT_SLOTS &&
           (a->tenants.at[i].state == AGENT_TENANT_FREE || a->tenants.at[i].config.id != id))
        i++;
    return i;
}

/* Whether one more may be out, of the tenant at that place, beside what is out of all: those that
 * have gone have no part. */
static bool has_room(const struct agent *a, uint32_t place)
{
    uint32_t out[AGENT_TENANT_SLOTS + 1] = {0}, reserved[AGENT_TENANT_SLOTS + 1] = {0};
    agent_quotas_reserve(a, NULL, NAMES_OUT, reserved);
    for (uint32_t i = 0; i < NAMES_ACCOUNTS; i++)
        if (a->names.account[i].out > 0)
            out[find_place(a, a->names.account[i].tenant)] += a->names.account[i].out;
    return lane_reserve_allows(NAMES_OUT, out, reserved, AGENT_TENANT_SLOTS + 1, place);
}

/* One more of that tenant's. False: it has as many out as it may, or has asked for a second's. */
static bool take_place(struct agent *a, struct names_account *t)
{
    const uint64_t now = world_now_ns(a->world);
    uint32_t tenants = 0;
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        tenants += a->tenants.at[i].state == AGENT_TENANT_LIVE;
    const uint64_t from_ns = t->whole_ns > now ? t->whole_ns : now;
    const uint64_t then_ns = from_ns + (tenants > 0 ? tenants : 1) * BASE_NS_PER_S / NAMES_PER_S;
    if (then_ns > now + BASE_NS_PER_S || !has_room(a, find_place(a, t->tenant)))
        return false;
    t->whole_ns = then_ns;
    t->out++;
    return true;
}

/* A question that is not put yet; NULL: the tenant may ask no more just now. */
static struct names_question *begin_question(struct agent *a, struct names_account *t,
                                             uint16_t pool, const char *name)
{
    struct names_question *q = t != NULL ? malloc(sizeof *q) : NULL;
    if (q == NULL || !take_place(a, t)) {
        free(q);
        return NULL;
    }
    *q = (struct names_question){.next_question = a->names.first,
                                 .agent = a,
                                 .account = t,
                                 .pool = pool,
                                 .end_ns = world_now_ns(a->world) + RESOLVE_MS * BASE_NS_PER_MS,
                                 .status = -EHOSTUNREACH};
    snprintf(q->name, sizeof q->name, "%s", name);
    a->names.first = q;
    return q;
}

void agent_names_resolve(struct agent *a, uint32_t tenant, uint16_t pool, const char *name,
                         names_done *done, void *user)
{
    static const uint8_t none[16];
    if (!is_name(name)) {
        done(user, -ENOENT, none, 0);
        return;
    }
    struct names_account *t = find_account(a, a->tenants.at[tenant - 1].config.id);
    const struct names_answer *kept = t != NULL ? find_kept(t, pool, name) : NULL;
    if (kept != NULL && kept->until_ns > world_now_ns(a->world)) {
        done(user, kept->status, kept->gid, pool);
        return;
    }
    struct names_question *q = t != NULL ? find_question(a, t, pool, name) : NULL;
    const bool is_new = q == NULL;
    if (is_new)
        q = begin_question(a, t, pool, name);
    if (q == NULL || add_waiter(q, done, user) != 0) {
        if (is_new && q != NULL)
            answer_question(q, -EAGAIN, none);
        done(user, -EAGAIN, none, 0);
        return;
    }
    if (is_new)
        ask_next(q);
}
