/* SPDX-License-Identifier: Apache-2.0 */
/* Follows what operators set: watches one metaserver's document, applies what changes while workers
 * run, and keeps the last one that was applied in the state directory, for when it begins anew and
 * no metaserver answers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "agent_query.h"
#include "applied_report.h"
#include "base/assert.h"
#include "base/clock.h"
#include "control/world_log.h"
#include "control/question.h"
#include "due.h"
#include "fabric/port.h"
#include "follow.h"
#include "bounds.h"
#include "metaserver_call.h"
#include "names.h"
#include "node.h"
#include "pools.h"
#include "prefer.h"
#include "query_streams.h"
#include "quotas.h"
#include "register.h"
#include "sessions.h"
#include "windows.h"

#define FILE_NAME "settings.json"

enum {
    LOOK_MS = 250, /* whether it is time for anything */
    MOVE_MS = 500, /* within which another metaserver is gone to when a stream has ended */
    APPLY_AGAIN_MS = 1000,
    SAVE_AGAIN_MS = 2000,
    STALE_MS = 10000,    /* on a stream, for something newer than an older revision */
    PUT_BACK_MS = 60000, /* metaservers that are not behind have an older one for so long */
};

/* ---- applying */

/* What cannot be of a tenant keeps nothing else from being in force. Whether it may be later. */
static bool apply_tenants(struct agent *a, const struct agent_desired *s)
{
    bool leave[AGENT_TENANT_SLOTS];
    char before[sizeof a->tenants.why];
    memcpy(before, a->tenants.why, sizeof before);
    const bool later = agent_tenants_set(&a->tenants, s->tenant, s->tenants, leave);
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p)) {
        agent_quotas_apply(p);
        for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
            if (leave[i])
                agent_sessions_end_tenant(p, i + 1);
    }
    if (a->tenants.why[0] != '\0' && strcmp(before, a->tenants.why) != 0)
        world_log(a->world, BASE_LOG_ERROR, "not all that is said of tenants can be in force",
                  "revision=%llu why=\"%s\"", (unsigned long long)s->revision, a->tenants.why);
    return later;
}

static bool apply_desired(struct agent *a, const struct agent_desired *s)
{
    const bool later = apply_tenants(a, s);
    a->follow.window = agent_desired_window(s, RESOURCE_WINDOW_DEVICE, "");
    a->follow.destination_window = agent_desired_window(s, RESOURCE_WINDOW_DESTINATION, "");
    agent_node_apply(a, &s->node);
    agent_pools_apply(a, s);
    agent_windows_take(a, s);
    agent_windows_apply(a);
    return later;
}

/* ---- keeping */

static void save_next(struct agent *a);

static void on_saved(void *user)
{
    struct desired_save *save = user;
    struct agent *a = save->agent;
    struct follow *f = &a->follow;
    const bool news = save->task.status != f->save_status;
    f->save_status = save->task.status;
    if (save->task.status != 0) { /* it is tried again, unless there is a newer one to keep */
        f->save_ns = world_now_ns(a->world) + SAVE_AGAIN_MS * BASE_NS_PER_MS;
        if (f->unsaved == NULL) {
            f->unsaved = save->text;
            save->text = NULL;
        }
    }
    if (news && save->task.status != 0)
        world_log(a->world, BASE_LOG_ERROR, "the settings in force are not kept for the next start",
                  "directory=\"%s\" error=\"%s\"", a->config.state_dir,
                  strerror(-save->task.status));
    free(save->text);
    save->text = NULL;
    save_next(a);
}

/* One at a time: what came meanwhile is written after it, the newest alone. */
static void save_next(struct agent *a)
{
    struct follow *f = &a->follow;
    const bool early = f->save_status != 0 && world_now_ns(a->world) < f->save_ns;
    if (f->save.text != NULL || f->unsaved == NULL || early)
        return;
    f->save = (struct desired_save){.agent = a, .text = f->unsaved};
    f->save.task = (struct world_task){.work = WORLD_SAVE_STATE,
                                       .state = {.directory = a->config.state_dir,
                                                 .name = FILE_NAME,
                                                 .text = f->unsaved,
                                                 .length = strlen(f->unsaved)},
                                       .done = on_saved,
                                       .user = &f->save};
    f->unsaved = NULL;
    world_run(a->world, &f->save.task);
}

bool agent_follow_unkept_why(const struct agent *a, char *why, size_t bytes)
{
    if (a->follow.save_status == 0)
        return false;
    snprintf(why, bytes,
             "the settings in force are not kept for the agent's next start: %.200s: %s",
             a->config.state_dir, strerror(-a->follow.save_status));
    return true;
}

static void keep_unsaved(struct agent *a, const char *text, size_t length)
{
    free(a->follow.unsaved);
    a->follow.unsaved = strndup(text, length);
    save_next(a);
}

/* ---- one document */

static void say_refused(struct agent *a, uint64_t revision, const char *why)
{
    struct follow *f = &a->follow;
    if (strcmp(f->why, why) == 0) /* said before */
        return;
    snprintf(f->why, sizeof f->why, "%s", why);
    world_log(a->world, BASE_LOG_ERROR, "settings cannot be applied: those before stay in force",
              "revision=%llu in_force=%llu why=\"%s\"", (unsigned long long)revision,
              (unsigned long long)f->applied, why);
}

static void forget_pending(struct follow *f)
{
    free(f->pending);
    f->pending = NULL;
}

/* It may fit later: the newest one alone is tried again. */
static void put_off(struct agent *a, const char *text, size_t length)
{
    struct follow *f = &a->follow;
    f->pending = strndup(text, length);
    f->again_ns = world_now_ns(a->world) + APPLY_AGAIN_MS * BASE_NS_PER_MS;
}

/* Decodes and applies. What cannot be understood changes nothing; a tenant that there is no room
 * for now is put off. */
static int take_document(struct agent *a, const char *text, size_t length)
{
    struct follow *f = &a->follow;
    struct base_errbuf why = {""};
    struct agent_desired *s = malloc(sizeof *s);
    int status = s == NULL ? base_err(&why, -ENOMEM, "out of memory")
                           : agent_desired_decode(text, length, s, &why);
    forget_pending(f);
    if (status == 0 || (s != NULL && s->revision != 0)) /* it may be all that is understood */
        f->seen = s->revision;
    if (status == 0) {
        if (apply_desired(a, s))
            put_off(a, text, length);
        if (f->applied != s->revision || f->why[0] != '\0')
            world_log(a->world, s->revision < f->applied ? BASE_LOG_WARN : BASE_LOG_INFO,
                      "settings applied",
                      "revision=%llu tenants=%u windows=%u before=%llu metaserver=\"%s\"",
                      (unsigned long long)s->revision, s->tenants, s->windows,
                      (unsigned long long)f->applied, a->config.metaserver[f->metaserver]);
        f->applied = s->revision;
        f->why[0] = '\0';
    } else {
        say_refused(a, f->seen, why.text);
    }
    free(s);
    return status;
}

/* ---- metaservers that share a store: no older revision of it is taken */

static const struct registration *find_followed(const struct agent *a)
{
    return &a->pools[0]->registration[a->follow.metaserver];
}

/* Whether another one may have a newer one. */
static bool has_another(const struct agent *a)
{
    for (uint32_t i = 0; i < a->config.metaservers; i++)
        if (i != a->follow.metaserver && agent_prefer_may_follow(a->pools[0], i))
            return true;
    return false;
}

/* Of another store than what is in force. */
static bool is_of_other(const struct agent *a)
{
    return strcmp(a->follow.store, find_followed(a)->standing.store) != 0;
}

/* One that nobody has ever set anything in is older than all: a metaserver whose prefix or
 * endpoints are wrong begins one. */
static bool is_older(struct agent *a, const char *text, size_t length)
{
    const struct follow *f = &a->follow;
    struct agent_desired *s = NULL;
    bool is = false;
    if (f->store[0] == '\0' || find_followed(a)->standing.store[0] == '\0')
        return false;
    s = malloc(sizeof *s);
    if (s != NULL && agent_desired_decode(text, length, s, NULL) == 0)
        is = s->revision < (is_of_other(a) && f->applied > 0 ? 1 : f->applied);
    free(s);
    return is;
}

/* A metaserver that is behind is waited for, or passed over while there is another one. One that
 * says for long that it has all there is, and has less, has it of a store that was put back. False:
 * it is taken. */
static bool refuse_older(struct agent *a)
{
    struct follow *f = &a->follow;
    const uint64_t now_ns = world_now_ns(a->world);
    if (f->older_ns == 0)
        world_log(a->world, BASE_LOG_WARN,
                  is_of_other(a)
                      ? "a metaserver has another store, in which nothing was ever set: what is in "
                        "force stays (are prefix and endpoints in its [store] right?)"
                      : "a metaserver has older settings than are in force: another one is asked",
                  "metaserver=\"%s\" in_force=%llu", a->config.metaserver[f->metaserver],
                  (unsigned long long)f->applied);
    f->older_ns = f->older_ns == 0 ? now_ns : f->older_ns;
    f->stale_ns = f->stale_ns == 0 ? now_ns : f->stale_ns;
    if (is_of_other(a) || find_followed(a)->standing.behind ||
        now_ns - f->older_ns < PUT_BACK_MS * BASE_NS_PER_MS)
        return true;
    world_log(a->world, BASE_LOG_WARN,
              "a metaserver that is not behind its store has older settings: that was put back, "
              "and they are in force",
              "metaserver=\"%s\" in_force=%llu", a->config.metaserver[f->metaserver],
              (unsigned long long)f->applied);
    return false;
}

/* Whether the stream is to end, since what came on it is older and nothing newer has followed. */
static bool is_passed_over(const struct agent *a)
{
    const struct follow *f = &a->follow;
    const uint64_t wait_ms = has_another(a) ? 0 : STALE_MS;
    return f->stale_ns != 0 && world_now_ns(a->world) - f->stale_ns >= wait_ms * BASE_NS_PER_MS;
}

static void note_taken(struct agent *a)
{
    struct follow *f = &a->follow;
    f->older_ns = f->stale_ns = 0;
    snprintf(f->store, sizeof f->store, "%s", find_followed(a)->standing.store);
}

static int take_line(void *user, const char *text, size_t length)
{
    struct agent *a = user;
    struct follow *f = &a->follow;
    if (length == 0) /* it is still there */
        return is_passed_over(a);
    if (agent_line_is_renewal(text, length)) {
        agent_registrations_renew(a, f->metaserver, agent_renewal_is_of_many(text, length));
        return 0;
    }
    if (agent_line_is_question(text, length)) {
        agent_query_take(a, f->metaserver, text, length);
        return 0;
    }
    if (is_older(a, text, length) && refuse_older(a))
        return is_passed_over(a);
    f->pause[f->metaserver].backoff_ms = 0;
    if (take_document(a, text, length) == 0) {
        note_taken(a);
        keep_unsaved(a, text, length);
    }
    agent_report_step(a);
    return 0;
}

/* Of a document that is in force but for tenants that there was no room for. */
static void apply_pending(struct agent *a)
{
    struct follow *f = &a->follow;
    struct agent_desired *s = malloc(sizeof *s);
    bool later = true;
    f->again_ns = world_now_ns(a->world) + APPLY_AGAIN_MS * BASE_NS_PER_MS;
    if (s != NULL && agent_desired_decode(f->pending, strlen(f->pending), s, NULL) == 0) {
        later = apply_tenants(a, s);
        agent_windows_apply(a);
    }
    if (!later)
        forget_pending(f);
    free(s);
}

/* ---- the stream */

/* The next one is gone to at once, but by each agent at a moment of its own: those that a
 * metaserver had lose it together. */
static void try_next(struct agent *a, bool late)
{
    struct follow *f = &a->follow;
    struct follow_pause *p = &f->pause[f->metaserver];
    uint32_t random = 0;
    p->backoff_ms = p->backoff_ms == 0 ? STREAM_TRY_MS : p->backoff_ms;
    p->try_ns = agent_stream_next_ns(a, &p->backoff_ms, late);
    (void)world_random(a->world, &random, sizeof random); /* else at once */
    f->move_ns = world_now_ns(a->world) + random % MOVE_MS * BASE_NS_PER_MS;
    f->call = 0;
    f->stale_ns = 0;
    f->metaserver = (f->metaserver + 1) % a->config.metaservers;
}

/* The first behind the one before that may be followed, and that no failure keeps from it. False:
 * there is none yet. */
static bool find_next(const struct agent *a, uint32_t *metaserver)
{
    const struct follow *f = &a->follow;
    for (uint32_t i = 0; i < a->config.metaservers; i++) {
        const uint32_t at = (f->metaserver + i) % a->config.metaservers;
        if (world_now_ns(a->world) >= f->pause[at].try_ns &&
            agent_prefer_may_follow(a->pools[0], at)) {
            *metaserver = at;
            return true;
        }
    }
    return false;
}

/* Of those that may be followed: which these are is heard when their registrations change. */
static uint64_t stream_due_ns(const struct agent *a)
{
    const struct follow *f = &a->follow;
    uint64_t due_ns = DUE_NEVER;
    for (uint32_t i = 0; i < a->config.metaservers; i++)
        due_ns =
            due_first(due_ns, due_if(agent_prefer_may_follow(a->pools[0], i), f->pause[i].try_ns));
    return due_last(due_ns, f->move_ns);
}

static void on_end(void *user, const struct http_answer *answer)
{
    struct agent *a = user;
    if (answer->status == -ECANCELED && a->stopping)
        return;
    world_log(a->world, BASE_LOG_DEBUG, "no more settings from here",
              "metaserver=\"%s\" status=%d why=\"%s\"", a->config.metaserver[a->follow.metaserver],
              answer->status, answer->why);
    /* Its token was deleted, or changed; or its store, put back, does not have the node. */
    if (answer->status == 401 || answer->status == 403 || answer->status == 404)
        agent_registrations_doubt(a, a->follow.metaserver);
    try_next(a, answer->status == -ETIMEDOUT);
}

/* Only of one that knows this node: others say 404. All of it is asked for each time: another
 * metaserver, or one whose store was put back, may mean something else by the same revision. */
static void watch_configuration(struct agent *a)
{
    struct follow *f = &a->follow;
    char url[METASERVER_URL_BYTES];
    if (!find_next(a, &f->metaserver))
        return;
    snprintf(url, sizeof url, "%s/v1/nodes/%s/configuration?watch=1&answers=1",
             a->config.metaserver[f->metaserver], a->config.node);
    struct http_call c = agent_metaserver_call(a, NULL, url, 0);
    c.timeout_ms = UINT32_MAX;
    c.silence_timeout_ms = STREAM_SILENCE_MS;
    c.max_response_bytes = AGENT_SETTINGS_BYTES;
    c.on_line = take_line;
    if (world_call(a->world, &c, on_end, a, &f->call) != 0)
        try_next(a, false);
    else
        agent_query_stream_end(a, f->metaserver); /* questions come on this one */
}

const char *agent_follow_metaserver(const struct agent *a)
{
    return a->follow.call != 0 ? a->config.metaserver[a->follow.metaserver] : "";
}

static void note_lookups(struct agent *a)
{
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        agent_registrations_note_lookups(p);
}

/* How many of workers' lookups fail no lane tells, and how many workers are left nobody. Without
 * any there is little to be seen, and what metaservers say is told at once: that goes with the
 * looks at the port. */
static uint64_t look_due_ns(const struct agent *a)
{
    const struct follow *f = &a->follow;
    return f->was_idle && agent_pools_are_idle(a)
               ? due_first(fab_port_next_look_ns(f->looked_ns), agent_report_due_ns(a))
               : DUE_NOW;
}

uint64_t agent_follow_due_ns(const struct agent *a)
{
    const struct follow *f = &a->follow;
    const bool saves = f->unsaved != NULL && f->save.text == NULL;
    uint64_t due_ns = look_due_ns(a);
    due_ns = due_first(due_ns, due_if(saves, f->save_status != 0 ? f->save_ns : DUE_NOW));
    due_ns = due_first(due_ns, due_if(f->pending != NULL, f->again_ns));
    due_ns = due_last(due_ns, f->looked_ns + LOOK_MS * BASE_NS_PER_MS);
    if (f->begun && f->call == 0) /* not with the looks, which many agents may have together */
        due_ns = due_first(due_ns, stream_due_ns(a));
    return due_if(f->begun, due_ns);
}

void agent_follow_tick(struct agent *a)
{
    struct follow *f = &a->follow;
    const uint64_t now = world_now_ns(a->world);
    if (now < agent_follow_due_ns(a))
        return;
    f->looked_ns = now;
    f->was_idle = agent_pools_are_idle(a);
    agent_report_step(a);
    note_lookups(a);
    save_next(a);
    if (f->pending != NULL && now >= f->again_ns)
        apply_pending(a);
    if (f->call == 0 && now >= stream_due_ns(a))
        watch_configuration(a);
}

/* ---- its beginning and end */

/* The document in the state directory, the caller's to free; NULL: there is none. */
static char *load_document(const struct agent *a, size_t *length)
{
    char *text = malloc(AGENT_SETTINGS_BYTES);
    const int status = text != NULL
                           ? world_load(a->world, FILE_NAME, text, AGENT_SETTINGS_BYTES, length)
                           : -ENOMEM;
    if (status != 0 && status != -ENOENT)
        world_log(a->world, BASE_LOG_ERROR, "the settings that were in force cannot be read",
                  "file=\"%s/" FILE_NAME "\" error=\"%s\"", a->config.state_dir, strerror(-status));
    if (status == 0)
        return text;
    free(text);
    return NULL;
}

struct agent_pool_config agent_follow_read(struct agent *a)
{
    size_t length = 0;
    struct agent_desired *s = calloc(1, sizeof *s);
    char *text = load_document(a, &length);
    BASE_ASSERT(s != NULL); /* nothing has begun yet */
    if (text != NULL && agent_desired_decode(text, length, s, NULL) != 0)
        memset(s, 0, sizeof *s); /* agent_follow_load() says so */
    const struct agent_pool_config pool = agent_desired_pool(s, a->config.pool);
    free(text);
    free(s);
    return pool;
}

void agent_follow_load(struct agent *a)
{
    size_t length = 0;
    char *text = load_document(a, &length);
    if (text != NULL)
        (void)take_document(a, text, length);
    free(text);
}

void agent_follow_start(struct agent *a)
{
    struct follow *f = &a->follow;
    if (a->config.metaservers == 0)
        return;
    f->looked_ns = world_now_ns(a->world);
    /* By then all that answer have the node: the first of them, and not who was the quickest. */
    f->move_ns = f->looked_ns + LOOK_MS * BASE_NS_PER_MS;
    f->begun = true;
}

void agent_follow_stop(struct agent *a)
{
    struct follow *f = &a->follow;
    if (f->call != 0)
        (void)world_cancel(a->world, f->call);
    f->call = 0;
    f->begun = false;
    agent_query_streams_stop(a);
    forget_pending(f);
}

void agent_follow_fini(struct agent *a)
{
    free(a->follow.unsaved);
    a->follow.unsaved = NULL;
}
