/* SPDX-License-Identifier: Apache-2.0 */
/* Names of regions at the metaservers: put there, and taken back. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "bounds.h"
#include "metaserver_call.h"
#include "pool.h"
#include "prefer.h"
#include "publication_calls.h"
#include "register.h"

enum {
    QUERY_BYTES = 3 * (SCHEMA_NAME_MAX + 2 * AGENT_NAME) + 128,
    UNKNOWING_MS = 30000, /* one that knows no names may be replaced by one that does */
    TAKEN_MS = 1000,      /* another one has it: until it is tried again */
    SETTLES_MAX_S = 10,   /* of what a metaserver says in Retry-After */
};

enum call { CALL_NOTHING, CALL_PUT, CALL_DELETE };

static enum call wanted_call(const struct publication_at *at)
{
    if (at->of->session == NULL || at->has == PUBLICATION_OTHER)
        return at->has == PUBLICATION_NOTHING ? CALL_NOTHING : CALL_DELETE;
    return at->has == PUBLICATION_THIS && !at->again ? CALL_NOTHING : CALL_PUT;
}

static uint32_t number_of(const struct publication_at *at)
{
    return (uint32_t)(at - at->of->at);
}

static const struct registration *registration_of(const struct publication_at *at)
{
    return &at->of->agent->pools[0]->registration[number_of(at)];
}

/* It takes a region of an endpoint that it has. */
static bool can_ask(const struct publication_at *at, enum call call)
{
    const struct pool *p = call == CALL_PUT ? at->of->session->pool : at->of->agent->pools[0];
    return registration_of(at)->state == REGISTRATION_DONE &&
           pool_endpoint(p)->registration[number_of(at)].state == REGISTRATION_DONE;
}

/* ---- what is left to do */

bool agent_publication_is_wanting(const struct publication *p, bool answers)
{
    for (uint32_t i = 0; i < p->agent->config.metaservers; i++) {
        const struct publication_at *at = &p->at[i];
        const enum call call = wanted_call(at);
        if (call != CALL_NOTHING && can_ask(at, call) &&
            (!answers || (!at->settled && agent_prefer_is_sound(registration_of(at)))))
            return true;
    }
    return false;
}

bool agent_publication_is_gone(const struct publication *p)
{
    for (uint32_t i = 0; i < p->agent->config.metaservers; i++)
        if (p->at[i].has != PUBLICATION_NOTHING || p->at[i].asking)
            return false;
    return p->session == NULL;
}

bool agent_publication_has_judge(const struct publication *p)
{
    for (uint32_t i = 0; i < p->agent->config.metaservers; i++)
        if (!p->at[i].unknowing && can_ask(&p->at[i], CALL_PUT))
            return true;
    return false;
}

void agent_publication_forget_former(struct publication *p)
{
    for (uint32_t i = 0; i < p->agent->config.metaservers; i++)
        if (!p->at[i].asking && p->at[i].has != PUBLICATION_NOTHING &&
            p->at[i].incarnation != p->agent->incarnation)
            p->at[i].has = PUBLICATION_NOTHING;
}

/* Who knows that its store was put back keeps the others, who may not know, from deciding, until it
 * has been asked again and answers otherwise. */
static bool is_waited_for(const struct publication_at *at, uint64_t now)
{
    const uint64_t until_ns = at->settles_ns > at->next_ns ? at->settles_ns : at->next_ns;
    if (at->settles_ns == 0 || until_ns <= now)
        return false;
    agent_publications_note_due(at->of->agent, until_ns);
    return true;
}

static bool goes_before(const struct publication_at *at, const struct publication_at *other)
{
    if ((at->settles_ns != 0) != (other->settles_ns != 0))
        return at->settles_ns != 0;
    return agent_prefer_is_sound(registration_of(at)) &&
           !agent_prefer_is_sound(registration_of(other));
}

/* The one that is asked first, of those whose turn it is: the first of the list, which most agents
 * have in one order, so that of two who want a name one gets it where each metaserver decides by
 * itself. AGENT_METASERVERS: none, or it is being asked. *left: how many may be. */
static uint32_t find_judge(const struct publication *p, uint64_t now, uint32_t *left)
{
    uint32_t found = AGENT_METASERVERS;
    bool waits = false;
    *left = 0;
    for (uint32_t i = 0; i < p->agent->config.metaservers; i++) {
        const struct publication_at *at = &p->at[i];
        if (at->asking && at->puts && at->put_for == p->life)
            return AGENT_METASERVERS;
        waits |= is_waited_for(at, now);
        if (at->asking || at->unknowing || !can_ask(at, CALL_PUT) || at->next_ns > now ||
            wanted_call(at) != CALL_PUT)
            continue;
        ++*left;
        if (found == AGENT_METASERVERS || goes_before(at, &p->at[found]))
            found = i;
    }
    return waits && found != AGENT_METASERVERS && p->at[found].settles_ns == 0 ? AGENT_METASERVERS
                                                                               : found;
}

/* What is to be asked there now. */
static enum call ready_call(const struct publication_at *at, uint64_t now)
{
    const struct publication *p = at->of;
    const enum call call = wanted_call(at);
    uint32_t left;
    if (call == CALL_NOTHING || at->asking || !can_ask(at, call))
        return CALL_NOTHING;
    if (at->next_ns > now) {
        agent_publications_note_due(p->agent, at->next_ns);
        return CALL_NOTHING;
    }
    if (call == CALL_PUT && !p->decided && find_judge(p, now, &left) != number_of(at))
        return CALL_NOTHING;
    return call;
}

/* ---- asking */

static uint64_t now_of(const struct publication *p)
{
    return world_now_ns(p->agent->world);
}

static void ask_again(struct publication_at *at)
{
    struct world *w = at->of->agent->world;
    uint64_t ms = at->backoff_ms != 0 ? at->backoff_ms : BACKOFF_MS;
    uint32_t random = 0;
    at->backoff_ms = ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : ms * 2;
    (void)world_random(w, &random, sizeof random); /* else none */
    at->next_ns = world_now_ns(w) + (ms - random % (ms / 2 + 1)) * BASE_NS_PER_MS;
}

/* A share of what its worker still waits for, so that others can be asked too. */
static uint32_t share_ms(const struct publication *p, uint64_t now)
{
    uint32_t left = 1;
    if (p->session == NULL || p->established || p->end_ns <= now)
        return CALL_MS;
    if (!p->decided)
        (void)find_judge(p, now, &left);
    return (uint32_t)((p->end_ns - now) / (left > 0 ? left : 1) / BASE_NS_PER_MS) + 1;
}

static void format_grant(const struct publication *p, char token[SCHEMA_TOKEN_TEXT])
{
    struct schema_token grant = {.pool = p->pool,
                                 .access = (uint16_t)p->lease.access,
                                 .vkey = p->grant.vkey,
                                 .addr = p->grant.vaddr,
                                 .length = p->lease.length};
    memcpy(grant.gid, p->session->pool->device.fab->caps.gid, sizeof grant.gid);
    memcpy(grant.secret, p->grant.secret, sizeof grant.secret);
    schema_token_format(&grant, token);
}

bool agent_publication_digest(const struct publication *p, char out[BASE_DIGEST_NAME])
{
    char token[SCHEMA_TOKEN_TEXT];
    if (p->session == NULL)
        return false;
    format_grant(p, token);
    return base_digest_name(token, out) == 0;
}

bool agent_publication_read_digest(const json_t *object, char out[BASE_DIGEST_NAME])
{
    const char *text = json_string_value(json_object_get(object, "digest"));
    if (text == NULL || strlen(text) != BASE_DIGEST_NAME - 1 ||
        strspn(text, "0123456789abcdef") != BASE_DIGEST_NAME - 1)
        return false;
    memcpy(out, text, BASE_DIGEST_NAME);
    return true;
}

static bool knows_digests(const struct publication_at *at)
{
    return agent_publications_know_digests(at->of->agent, number_of(at));
}

static void describe_publication(const struct publication_at *at, struct base_text *t)
{
    const struct publication *p = at->of;
    char token[SCHEMA_TOKEN_TEXT];
    format_grant(p, token);
    base_json_object(t, NULL);
    base_json_u64(t, "incarnation", p->agent->incarnation);
    base_json_string(t, "tenant", p->tenant);
    if (p->reader[0] != '\0')
        base_json_string(t, "for", p->reader);
    base_json_string(t, "name", p->name);
    base_json_string(t, "grant", token);
    if (p->established && knows_digests(at))
        base_json_bool(t, "again", true);
    base_json_object_end(t);
}

static void print_escaped(struct base_text *t, const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~", *c))
            base_text_append(t, c, 1);
        else
            base_text_printf(t, "%%%02X", (unsigned)(uint8_t)*c);
}

static void describe_name(const struct publication_at *at, struct base_text *t)
{
    base_text_printf(t, "?incarnation=%u&tenant=", at->incarnation);
    print_escaped(t, at->of->tenant);
    if (at->of->reader[0] != '\0') {
        base_text_printf(t, "&for=");
        print_escaped(t, at->of->reader);
    }
    base_text_printf(t, "&name=");
    print_escaped(t, at->of->name);
    if (at->digest[0] != '\0' && knows_digests(at))
        base_text_printf(t, "&digest=%s", at->digest);
}

/* Why it is not there yet. */
static void note_why(struct publication *p, int status, const char *why)
{
    if (p->decided)
        return;
    p->status = status;
    snprintf(p->why, sizeof p->why, "%s", why);
}

static void on_put(void *user, const struct http_answer *answer);
/* What is there is of another region of this node than was meant: that goes, unless it is the one
 * that is to be there. */
static bool has_another(struct publication_at *at, const struct http_answer *answer)
{
    json_t *problem = json_loads(answer->body, 0, NULL);
    char own[BASE_DIGEST_NAME] = "", digest[BASE_DIGEST_NAME];
    const bool said = agent_publication_read_digest(problem, digest);
    json_decref(problem);
    (void)agent_publication_digest(at->of, own);
    if (!said || strcmp(own, digest) == 0)
        return false;
    memcpy(at->digest, digest, sizeof at->digest);
    return true;
}

static void on_deleted(void *user, const struct http_answer *answer);

/* ---- how many are out */

/* Whether one more may be, in its metaserver's part; *out: how many are, of whom takes turns. */
static bool may_ask(const struct publication_at *at, uint32_t *out)
{
    const struct agent *a = at->of->agent;
    const struct publications_listing *l = &a->publications.listing[number_of(at)];
    const struct publications_account *t = at->of->account;
    *out = t == NULL ? l->out : t->out;
    return t == NULL ? *out < PUBLICATIONS_RETURNED_OUT
                     : l->of_workers < PUBLICATIONS_OUT / a->config.metaservers;
}

static void count_call(struct publication_at *at)
{
    struct publications *all = &at->of->agent->publications;
    at->returned = at->of->account == NULL;
    if (at->returned) {
        all->listing[number_of(at)].out++;
    } else {
        at->of->account->out++;
        all->listing[number_of(at)].of_workers++;
        all->out++;
    }
}

/* A worker may have taken over the name meanwhile. */
static void uncount_call(const struct publication_at *at)
{
    struct publications *all = &at->of->agent->publications;
    if (at->returned) {
        all->listing[number_of(at)].out--;
    } else {
        at->of->account->out--;
        all->listing[number_of(at)].of_workers--;
        all->out--;
    }
}

static void begin_call(struct publication_at *at, enum call call)
{
    struct publication *p = at->of;
    const uint64_t now = now_of(p);
    const bool puts = call == CALL_PUT;
    char url[METASERVER_URL_BYTES + QUERY_BYTES];
    struct base_text text;
    base_text_init(&text, 1024);
    if (puts)
        describe_publication(at, &text);
    else
        describe_name(at, &text);
    snprintf(url, sizeof url, "%s/v1/nodes/%s/regions%s", registration_of(at)->url,
             p->agent->config.node, puts ? "" : base_text_str(&text));
    struct http_call c =
        agent_metaserver_call(p->agent, puts ? "PUT" : "DELETE", url, share_ms(p, now));
    if (puts) {
        c.body = base_text_str(&text);
        c.body_length = text.length;
    }
    const int status = world_call(p->agent->world, &c, puts ? on_put : on_deleted, at, NULL);
    base_text_fini(&text);
    if (status != 0) {
        note_why(p, -EAGAIN, "the agent asks for too much at once, or has no token");
        ask_again(at);
        return;
    }
    at->asking = true;
    at->doubted = false;
    at->puts = puts;
    count_call(at);
    if (puts) {
        note_why(p, -ETIMEDOUT, "it has not answered in time");
        at->has = PUBLICATION_THIS;
        at->again = true;
        at->absent = false;
        if (!agent_publication_digest(p, at->digest))
            at->digest[0] = '\0';
        at->put_for = p->life;
        at->incarnation = p->agent->incarnation;
    }
}

/* Of all that may be asked now that of the tenant of whom the least is out, or of a metaserver of
 * whose own names that is. */
static struct publication_at *choose_next(struct agent *a, enum call *call)
{
    const uint64_t now = world_now_ns(a->world);
    struct publication_at *best = NULL;
    uint32_t least = UINT32_MAX, out;
    for (struct publication *p = a->publications.first; p != NULL; p = p->next) {
        for (uint32_t i = 0; i < a->config.metaservers; i++) {
            if (!may_ask(&p->at[i], &out) || out >= least)
                continue;
            const enum call ready = ready_call(&p->at[i], now);
            if (ready == CALL_NOTHING)
                continue;
            best = &p->at[i];
            least = out;
            *call = ready;
            break;
        }
    }
    return best;
}

void agent_publication_calls_begin(struct agent *a)
{
    struct publication_at *at;
    enum call call = CALL_NOTHING;
    while ((at = choose_next(a, &call)) != NULL)
        begin_call(at, call);
}

/* ---- answers */

/* "urn:kedge:problem:" and that. */
static bool is_problem(const json_t *problem, const char *type)
{
    static const char head[] = "urn:kedge:problem:";
    const char *text = json_string_value(json_object_get(problem, "type"));
    return text != NULL && strncmp(text, head, sizeof head - 1) == 0 &&
           strcmp(text + sizeof head - 1, type) == 0;
}

/* The metaserver may not have had it, or may still do it. */
static void take_no_answer(struct publication_at *at, const struct http_answer *answer)
{
    char why[PUBLICATIONS_WHY];
    if (answer->status < 0)
        snprintf(why, sizeof why, "%.150s", answer->why);
    else
        snprintf(why, sizeof why, "it answers %d", answer->status);
    note_why(at->of,
             answer->status == -ETIMEDOUT ? -ETIMEDOUT
             : answer->status == 503      ? -EAGAIN
                                          : -EHOSTUNREACH,
             why);
    at->settled = true;
    ask_again(at);
}

/* What of another region may still be there, or come. */
static void has_not(struct publication_at *at)
{
    at->has = at->uncertain_ns > now_of(at->of) ? PUBLICATION_OTHER : PUBLICATION_NOTHING;
}

/* Another region has the name, or there is no room: that is for who decides to say. One that had
 * it, and is told so by a metaserver that has forgotten, may be early: who has it there may be
 * about to be refused it elsewhere. own: what has it is a former region of this node's. */
static void take_refusal(struct publication_at *at, bool own, int status, const char *detail)
{
    struct publication *p = at->of;
    const uint64_t now = now_of(p);
    has_not(at);
    if (own)
        at->has = PUBLICATION_OTHER;
    if (status == -EEXIST && at->has == PUBLICATION_OTHER) {
        /* It may be what was put here for another region before: that goes first. */
        note_why(p, status, detail);
        ask_again(at);
        return;
    }
    if (!p->established) {
        agent_publication_refuse(p, status, detail);
        return;
    }
    at->settled = true;
    if (status != -EEXIST) {
        ask_again(at);
        return;
    }
    at->refused_ns = at->refused_ns != 0 ? at->refused_ns : now;
    at->next_ns = now + TAKEN_MS * BASE_NS_PER_MS;
    if (now - at->refused_ns >= PUBLICATIONS_LOST_MS * BASE_NS_PER_MS)
        agent_publication_lose(p, detail);
}

/* It is of a region that had it before in this life of the node: so says a store that was put back
 * since. */
static bool is_own(const struct publication_at *at, const json_t *problem)
{
    const struct agent *a = at->of->agent;
    const char *node = json_string_value(json_object_get(problem, "node"));
    return node != NULL && strcmp(node, a->config.node) == 0 &&
           json_integer_value(json_object_get(problem, "incarnation")) >=
               (json_int_t)a->incarnation;
}

static void take_problem(struct publication_at *at, int status, const json_t *problem)
{
    struct publication *p = at->of;
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    char why[PUBLICATIONS_WHY];
    snprintf(why, sizeof why, "it answers %d: %.120s", status, detail != NULL ? detail : "");
    if (is_problem(problem, "name-taken")) {
        if (!is_own(at, problem) || !agent_publication_read_digest(problem, at->digest))
            at->digest[0] = '\0';
        take_refusal(at, is_own(at, problem), -EEXIST,
                     detail != NULL ? detail : "it is of another region");
    } else if (is_problem(problem, "over-quota")) {
        take_refusal(at, false, -EDQUOT,
                     detail != NULL ? detail : "the tenant has as many as it may");
    } else if (is_problem(problem, "full")) {
        take_refusal(at, false, -ENOSPC, "the metaserver's table of names is full");
    } else if (is_problem(problem, "unknown-route")) {
        note_why(p, -EOPNOTSUPP, "the metaserver keeps no names of regions");
        has_not(at);
        at->unknowing = at->settled = true;
        at->next_ns = now_of(p) + UNKNOWING_MS * BASE_NS_PER_MS;
    } else {
        /* It does not have the node as it is now, or the token is not what it was. */
        note_why(p, status == 429 ? -EAGAIN : -EHOSTUNREACH, why);
        has_not(at);
        if (status == 404)
            agent_registrations_doubt(p->agent, number_of(at));
        at->settled = status != 404 && status != 429;
        ask_again(at);
    }
}

/* False: the agent ends, and nothing follows. */
static bool end_call(struct publication_at *at)
{
    at->asking = false;
    uncount_call(at);
    return !at->of->agent->stopping;
}

/* Another one may have the name, and has not said so yet: it is to be asked for again. */
static bool is_settling(const struct http_answer *answer, char why[PUBLICATIONS_WHY])
{
    json_t *problem = answer->status == 503 ? json_loads(answer->body, 0, NULL) : NULL;
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    const bool is = is_problem(problem, "settling");
    if (is)
        snprintf(why, PUBLICATIONS_WHY, "its store was put back: %.120s",
                 detail != NULL ? detail : "");
    json_decref(problem);
    return is;
}

static void note_settling(struct publication_at *at, uint64_t after_s)
{
    after_s = after_s < 1 ? 1 : after_s > SETTLES_MAX_S ? SETTLES_MAX_S : after_s;
    if (at->put_for == at->of->life)
        at->settles_ns = now_of(at->of) + after_s * BASE_NS_PER_S;
}

static bool is_no_answer(int status)
{
    return status < 0 || status == 408 || (status >= 500 && status != 507);
}

static void on_put(void *user, const struct http_answer *answer)
{
    struct publication_at *at = user;
    struct publication *p = at->of;
    char why[PUBLICATIONS_WHY];
    if (!end_call(at))
        return;
    if (at->settles_ns <= now_of(p))
        at->settles_ns = 0;
    if (at->put_for != p->life) /* the name is another region's meanwhile */
        at->has = PUBLICATION_OTHER;
    if (answer->status == 200 || answer->status == 201) {
        at->unknowing = false;
        at->backoff_ms = at->next_ns = at->refused_ns = at->settles_ns = 0;
        at->again = at->doubted || at->put_for != p->life;
        p->decided |= !at->again;
    } else if (is_settling(answer, why)) {
        note_why(p, -EAGAIN, why);
        has_not(at);
        at->settled = p->decided;
        note_settling(at, answer->retry_after_s);
        ask_again(at);
    } else if (is_no_answer(answer->status)) {
        at->uncertain_ns = now_of(p) + CALL_MS * BASE_NS_PER_MS;
        take_no_answer(at, answer);
    } else if (at->put_for != p->life || p->session == NULL) {
        has_not(at);
    } else {
        json_t *problem = json_loads(answer->body, 0, NULL);
        take_problem(at, answer->status, problem);
        json_decref(problem);
    }
    agent_publications_turn(p->agent);
}

static void on_deleted(void *user, const struct http_answer *answer)
{
    struct publication_at *at = user;
    struct agent *a = at->of->agent;
    if (!end_call(at))
        return;
    if (answer->status == 404 && has_another(at, answer)) {
        ask_again(at);
    } else if (answer->status == 204 || answer->status == 404) {
        const bool late = at->uncertain_ns > world_now_ns(a->world) && at->of->session == NULL;
        at->settled = at->of->session == NULL;
        at->absent = true;
        at->next_ns = 0;
        if (at->of->session == NULL) /* else that grows until it takes what is to be there */
            at->backoff_ms = 0;
        /* To an older one it says a name, not a region: it may have taken the name from the one
         * that has it by now, at others of that store too. */
        const bool again = at->of->session != NULL && !knows_digests(at);
        for (uint32_t i = 0; again && i < a->config.metaservers; i++)
            at->of->at[i].again |= at->of->at[i].has == PUBLICATION_THIS;
        if (late) /* what was put may come after this */
            at->next_ns = at->uncertain_ns;
        else
            at->has = PUBLICATION_NOTHING;
    } else {
        at->settled |= answer->status != 429;
        ask_again(at);
    }
    agent_publications_turn(a);
}
