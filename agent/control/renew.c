/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping what is registered: renewed in time. A renewal that gets no answer loses nothing: the
 * metaserver still has the node until the lease ends, and its table can be READ without it. It is
 * lost when the metaserver says so, or when by this node's clock the lease may be over. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "bounds.h"
#include "control/world_log.h"
#include "due.h"
#include "lane_setup.h"
#include "pool.h"
#include "pools.h"
#include "prefer.h"
#include "publications.h"
#include "register_json.h"
#include "register_private.h"

enum {
    RENEWAL_BYTES = 64,
    RENEWAL_LEAST_MS = 1000, /* that one may take, however short the lease */
    CLOCKS_DIFFER = 8,       /* a lease counts for so much less here than at the metaserver, whose
                              * clock may be the faster one */
};

bool agent_registration_is_no_answer(int status)
{
    return status < 0 || status == 408 || status == 429 || status >= 500;
}

static uint64_t lease_ns(const struct registration *r)
{
    return r->answered.lease_ms * BASE_NS_PER_MS;
}

static void renew_later(struct registration *r)
{
    world_timer_after(r->pool->world, &r->timer, lease_ns(r) / 3);
}

void agent_registration_answered(struct registration *r, uint64_t asked_ns)
{
    const bool was_quiet = r->quiet[0] != '\0';
    r->quiet[0] = '\0';
    r->backoff_ms = BACKOFF_MS;
    r->late_ms = 0;
    r->kept_ns = asked_ns + lease_ns(r) - lease_ns(r) / CLOCKS_DIFFER;
    renew_later(r);
    if (was_quiet)
        agent_prefer_tell_lane(r->pool);
}

/* ---- without an answer */

static void note_quiet(struct registration *r, int status, const char *why)
{
    const bool news = r->quiet[0] == '\0';
    uint32_t suppressed;
    if (status < 0)
        snprintf(r->quiet, sizeof r->quiet, "%.150s", why);
    else
        snprintf(r->quiet, sizeof r->quiet, "it answers %d", status);
    if (!news)
        return;
    agent_prefer_tell_lane(r->pool);
    if (base_log_allow(&r->log, world_now_ns(r->pool->world), LOSS_LOGGED_S * BASE_NS_PER_S,
                       LOSSES_LOGGED, &suppressed))
        world_log(r->pool->world, BASE_LOG_WARN,
                  "a metaserver does not answer: others are asked first, and the registration is "
                  "kept while its lease runs",
                  "pool=%s metaserver=\"%s\" why=\"%s\" suppressed=%u", r->pool->name, r->url,
                  r->quiet, suppressed);
}

/* What is being put says by its own end whether it is lost. */
static bool is_over(const struct registration *r)
{
    return world_now_ns(r->pool->world) >= r->kept_ns && !r->putting && !r->resolving &&
           r->offered == NULL;
}

/* What is left of the lease has room for another try, as long as there is any. */
static uint64_t bound_pause_ms(const struct registration *r, uint64_t ms, uint64_t end_ns)
{
    const uint64_t now_ns = world_now_ns(r->pool->world);
    const uint64_t left_ms = end_ns > now_ns ? (end_ns - now_ns) / BASE_NS_PER_MS : 0;
    const uint64_t most_ms = left_ms / 2 < BACKOFF_MS ? BACKOFF_MS : left_ms / 2;
    return ms < most_ms ? ms : most_ms;
}

static void ask_again(struct registration *r)
{
    const uint64_t ms = bound_pause_ms(r, agent_registration_backoff_ms(r), r->kept_ns);
    world_timer_after(r->pool->world, &r->timer, ms * BASE_NS_PER_MS);
}

uint64_t agent_registration_lost_pause_ms(struct registration *r)
{
    const uint64_t ms = agent_registration_backoff_ms(r);
    const uint64_t end_ns = r->kept_ns == 0 ? 0 : r->kept_ns + lease_ns(r) / CLOCKS_DIFFER;
    return end_ns > world_now_ns(r->pool->world) ? bound_pause_ms(r, ms, end_ns) : ms;
}

void agent_registration_silent(struct registration *r, int status, const char *why)
{
    note_quiet(r, status, why);
    r->late = status == -ETIMEDOUT;
    if (is_over(r))
        agent_registration_lose(r, r->quiet);
    else
        ask_again(r);
}

void agent_registration_unanswered(struct registration *r, const struct http_answer *answer)
{
    const uint64_t most_s = r->answered.lease_ms / 3 / 1000; /* its lease may end before that */
    const uint64_t after_s = answer->retry_after_s < most_s ? answer->retry_after_s : most_s;
    if (answer->retry_after_s > 0 && !is_over(r))
        agent_registration_come_again(r, (uint32_t)after_s);
    else
        agent_registration_silent(r, answer->status, answer->why);
}

/* ---- renewals */

/* The other end of the queue pair to its table has broken: what is out ends at once, and another
 * pair is made meanwhile. One that was connected after this was written is not what it names. */
static void heed_broken(struct registration *r, const char *body)
{
    const struct table_initiator *initiator = agent_table_initiator_of(r, r->lane.qp);
    if (initiator == NULL || !agent_register_json_is_broken(body, initiator->rtr.dest_qp_num))
        return;
    world_log(r->pool->world, BASE_LOG_WARN,
              "a metaserver says that its end of the queue pair to its table broke: another one is "
              "made",
              "pool=%s metaserver=\"%s\"", r->pool->name, r->url);
    agent_pool_command(r->pool,
                       &(struct lane_command){.kind = LANE_COMMAND_QP_RETIRE, .qp = r->lane.qp});
    agent_registration_put(r);
}

static void take_renewal(struct registration *r, const struct http_answer *answer)
{
    const struct metaserver_standing before = r->standing;
    const bool moved = agent_nearness_measured(r, world_now_ns(r->pool->world) - r->asked_ns);
    r->standing = agent_register_json_standing(answer->body);
    agent_registration_answered(r, r->asked_ns);
    if (moved || before.behind != r->standing.behind || before.read_only != r->standing.read_only ||
        strcmp(before.zone, r->standing.zone) != 0)
        agent_prefer_tell_lane(r->pool);
    heed_broken(r, answer->body);
    if (r->pool != r->pool->agent->pools[0])
        return;
    agent_registration_tell_endpoints(r);
    if (before.names_anew != r->standing.names_anew) /* its store was put back, perhaps */
        agent_publications_registered(r->pool->agent, (uint32_t)(r - r->pool->registration), 0);
}

/* Renewed in time, put anew when a metaserver says that it has forgotten, or has another table than
 * this pool reads: one that was started again knows the node as soon as any of its pools has put
 * it. What was lost since it was asked is put anew all the same, whatever it answers. */
static void on_renewed(void *user, const struct http_answer *answer)
{
    struct registration *r = user;
    const bool soon = r->renew_soon;
    r->pool->calls--;
    r->renewing = r->renew_soon = false;
    if (r->pool->stopping || r->state != REGISTRATION_DONE)
        return;
    if (answer->status == 404 ||
        (answer->status == 200 && !agent_register_json_is_of_table(r, answer->body))) {
        renew_later(r);
        agent_registration_put(r);
    } else if (answer->status == 200) {
        take_renewal(r, answer);
    } else if (agent_registration_is_no_answer(answer->status)) {
        agent_registration_unanswered(r, answer);
    } else {
        agent_registration_refuse(r, answer);
    }
    if (soon && r->state == REGISTRATION_DONE)
        world_timer_after(r->pool->world, &r->timer, 0);
}

/* No longer than until its turn comes again, or its lease ends: it may have been lost on its way.
 */
static uint32_t patience_ms(const struct registration *r)
{
    const uint64_t now_ns = world_now_ns(r->pool->world);
    const uint64_t left_ms = r->kept_ns > now_ns ? (r->kept_ns - now_ns) / BASE_NS_PER_MS : 0;
    uint64_t ms = r->answered.lease_ms / 3;
    ms = left_ms < ms ? left_ms : ms;
    ms = ms < RENEWAL_LEAST_MS ? RENEWAL_LEAST_MS : ms;
    return ms < CALL_MS ? (uint32_t)ms : CALL_MS;
}

void agent_registration_renew(struct registration *r)
{
    struct base_text body;
    struct base_errbuf why;
    if (r->renewing) {
        r->renew_soon = true;
        return;
    }
    if (r->quiet[0] != '\0' && is_over(r)) {
        agent_registration_lose(r, r->quiet);
        return;
    }
    renew_later(r);
    r->asked_ns = world_now_ns(r->pool->world);
    base_text_init(&body, RENEWAL_BYTES);
    base_json_object(&body, NULL);
    base_json_u64(&body, "incarnation", r->pool->agent->incarnation);
    base_json_object_end(&body);
    const int status = agent_registration_call(r, "POST", "/renew", base_text_str(&body),
                                               patience_ms(r), on_renewed, &why);
    base_text_fini(&body);
    r->renewing = status == 0;
    if (status == -ENOKEY) /* which its operator is to hear of */
        agent_registration_lose(r, why.text);
    else if (status != 0)
        agent_registration_silent(r, status, why.text);
}

/* ---- before its time
 *
 * A renewal, or the next try, comes sooner when there is reason to believe that its metaserver was
 * started again. The moments differ, since as many agents may have that reason at once, and none
 * asks so more often than once a second, whatever others say. */

void agent_registration_look_soon(struct registration *r)
{
    struct world *w = r->pool->world;
    const uint64_t now_ns = world_now_ns(w), due_ns = world_timer_due_ns(&r->timer);
    uint32_t random = 0;
    (void)world_random(w, &random, sizeof random); /* else at once */
    const uint64_t soon_ns = now_ns + random % LOOK_SOON_MS * BASE_NS_PER_MS;
    if (r->pool->stopping || due_ns == UINT64_MAX || due_ns <= soon_ns ||
        (r->looked_ns != 0 && now_ns < r->looked_ns + LOOK_AGAIN_MS * BASE_NS_PER_MS))
        return;
    r->looked_ns = now_ns;
    world_timer_at(w, &r->timer, soon_ns);
}

/* Within a part of the lease, of which the metaserver may wait for the answer. */
void agent_registration_renew_asked(struct registration *r, bool of_many)
{
    struct world *w = r->pool->world;
    const uint64_t quarter_ms = r->answered.lease_ms / 4,
                   most_ms = quarter_ms < RENEW_SOON_MS ? quarter_ms : RENEW_SOON_MS;
    uint64_t due_ns = world_now_ns(w);
    uint32_t random = 0;
    if (of_many && most_ms > 0 && world_random(w, &random, sizeof random) == 0)
        due_ns += random % most_ms * BASE_NS_PER_MS;
    if (r->asked_ns != 0)
        due_ns = due_last(due_ns, r->asked_ns + LOOK_AGAIN_MS * BASE_NS_PER_MS);
    if (due_ns < world_timer_due_ns(&r->timer))
        world_timer_at(w, &r->timer, due_ns);
}

void agent_registrations_renew(struct agent *a, uint32_t metaserver, bool of_many)
{
    for (uint32_t i = 0; i < POOLS; i++) {
        if (!pool_has_begun(a->pools[i]))
            continue;
        struct registration *r = &a->pools[i]->registration[metaserver];
        if (r->pool != NULL && r->state == REGISTRATION_DONE)
            agent_registration_renew_asked(r, of_many);
    }
}

/* Each pool registers by itself. Those that do not know the table that one of them is told of now
 * learn of it by asking. */
void agent_registration_look_with_others(const struct registration *r)
{
    const struct agent *a = r->pool->agent;
    for (uint32_t i = 0; i < POOLS; i++) {
        if (!pool_has_begun(a->pools[i]))
            continue;
        struct registration *other = &a->pools[i]->registration[r - r->pool->registration];
        if (other->pool != NULL &&
            (other->state != REGISTRATION_DONE ||
             other->answered.table.generation != r->answered.table.generation))
            agent_registration_look_soon(other);
    }
}
