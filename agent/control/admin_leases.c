/* SPDX-License-Identifier: Apache-2.0 */
/* Workers and leases, for who asks at the admin socket or through a metaserver: lists, single ones,
 * revoking. rdmactl(1) describes it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin_handlers.h"
#include "agent_query.h"
#include "arenas.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "device_objects.h"
#include "pool.h"
#include "revocations.h"
#include "schema/wait_reason.h"
#include "sessions.h"

enum {
    DEFAULT_LIMIT = 100,
    MAX_LIMIT = 1000,
    WORKERS_BYTES = 192 << 10, /* of a page, which ends there: metaservers take a little more */
};

static const char *worker_id(const struct lease_owner *o, char out[AGENT_ID_BYTES])
{
    return agent_worker_id_format(&o->id, out);
}

/* ---- printing */

static void print_access(struct base_text *t, uint32_t access)
{
    static const struct {
        uint32_t flag;
        const char *name;
    } names[] = {{SCHEMA_RECORD_READ, "read"},
                 {SCHEMA_RECORD_WRITE, "write"},
                 {SCHEMA_RECORD_ATOMIC, "atomic"}};
    base_json_array(t, "access");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((access & names[i].flag) == 0)
            continue;
        base_json_string(t, NULL, names[i].name);
    }
    base_json_array_end(t);
}

static void print_owner(const struct pool *p, struct base_text *t, const struct lease_owner *o)
{
    base_json_string(t, "node", p->config->node);
    base_json_string(t, "pool", p->name);
    base_json_string(t, "tenant", o->tenant);
    base_json_u64(t, "uid", o->uid);
    base_json_i64(t, "pid", o->pid);
}

/* The object but for its end. */
static void print_lease(const struct pool *p, struct base_text *t, const struct lease_owner *o,
                        const struct lane_lease *e, const char *state)
{
    static const char *const states[] = {"gone", "live", "withdrawing", "waiting", "revoked"};
    const uint64_t now = world_now_ns(p->world), ms = BASE_NS_PER_MS;
    char worker[AGENT_ID_BYTES], lease[AGENT_ID_BYTES + sizeof "-4294967295"];
    worker_id(o, worker);
    snprintf(lease, sizeof lease, "%s-%u", worker, e->number);
    base_json_object(t, NULL);
    base_json_string(t, "id", lease);
    base_json_string(t, "worker", worker);
    print_owner(p, t, o);
    base_json_string(t, "kind", e->fenced ? "fenced" : e->own ? "own" : "arena");
    base_json_u64(t, "arena", e->arena);
    base_json_u64(t, "offset", e->offset);
    base_json_u64(t, "length", e->length);
    print_access(t, e->access);
    base_json_string(t, "state", state != NULL ? state : states[e->state]);
    base_json_bool(t, "by_operator", e->revoked);
    base_json_u64(t, "age_ms", now > e->born_ns ? (now - e->born_ns) / ms : 0);
    base_json_u64(t, "period_ms", (p->mr_lease_ns + ms - 1) / ms);
    if (state == NULL && e->state == LANE_LEASE_WITHDRAWING && e->due_ns != 0)
        base_json_u64(t, "over_in_ms", e->due_ns > now ? (e->due_ns - now + ms - 1) / ms : 0);
    else
        base_json_null(t, "over_in_ms");
}

/* What it waits for now, and how many of what the reason is counted in do. Who can punch holes in
 * his ring keeps his lane waiting, and is to keep nothing else. */
static void print_waits(struct base_text *t, const struct agent_session *s)
{
    uint32_t count[SCHEMA_WAITS];
    lane_waits(s->rings.memory, s->pool->world->keeps_whole, count);
    base_json_object(t, "waits");
    for (int why = SCHEMA_WAIT_NOTHING + 1; why < SCHEMA_WAITS; why++)
        if (count[why] > 0)
            base_json_u64(t, schema_waits[why].word, count[why]);
    base_json_object_end(t);
}

static void print_worker(struct base_text *t, const struct agent_session *s)
{
    const struct pool *p = s->pool;
    struct lease_owner o;
    struct lane_lease lease;
    char id[AGENT_ID_BYTES];
    uint64_t bytes = 0, operations, operation_bytes;
    uint32_t leases = 0;
    agent_session_owner(s, &o);
    for (uint32_t i = 0; i < s->arenas; i++)
        bytes += s->arena[i]->bytes;
    for (uint32_t i = 0; i < lane_leases(s->rings.memory); i++)
        leases += lane_lease(s->rings.memory, i, &lease);
    base_json_object(t, NULL);
    base_json_string(t, "id", worker_id(&o, id));
    base_json_u64(t, "session", o.id.session);
    print_owner(p, t, &o);
    base_json_string(t, "state", s->stage == STAGE_LIVE ? "live" : "ending");
    base_json_u64(t, "age_ms", (world_now_ns(p->world) - s->attached_ns) / BASE_NS_PER_MS);
    base_json_u64(t, "arenas", s->arenas);
    base_json_u64(t, "arena_bytes", bytes);
    base_json_u64(t, "leases", leases);
    lane_posted_of(s->rings.memory, &operations, &operation_bytes);
    base_json_u64(t, "operations", operations);
    base_json_u64(t, "operation_bytes", operation_bytes);
    print_waits(t, s);
    base_json_object_end(t);
}

/* ---- lists */

/* Whom a list is of, and where it goes on: the session's number, and the lease's place. */
struct filter {
    const char *tenant; /* NULL: all */
    bool of_worker;
    struct agent_worker_id worker;
    uint64_t limit;
    struct agent_cursor at; /* the first */
};

static bool bad_query(const struct held_request *request, const char *detail)
{
    agent_asker_refuse(request->by, EINVAL, detail);
    return false;
}

static bool parse_filter(const struct held_request *request, struct filter *out)
{
    const char *limit = request->limit, *cursor = request->cursor, *worker = request->worker;
    *out = (struct filter){.limit = DEFAULT_LIMIT, .tenant = request->tenant};
    if (limit != NULL && base_parse_u64(limit, 1, MAX_LIMIT, &out->limit) != 0)
        return bad_query(request, "limit must be a number from 1 to 1000");
    out->of_worker = worker != NULL;
    if (worker != NULL && !agent_worker_id_parse(worker, &out->worker, NULL))
        return bad_query(request, "worker must be the id of one, as rdmactl worker list shows it");
    if (cursor == NULL)
        return true;
    return agent_cursor_parse(cursor, &out->at) ||
           bad_query(request, "cursor must be the next_cursor of an earlier answer");
}

/* The session, if the filter lets it through. */
static const struct agent_session *shown_session(const struct agent *a, const struct filter *f,
                                                 uint64_t number)
{
    const struct agent_session *s = agent_session_at(a, (uint32_t)number);
    if (s == NULL || !agent_session_has_leases(s) ||
        (f->of_worker && (number != f->worker.session || s->serial != f->worker.serial)))
        return NULL;
    return f->tenant == NULL || strcmp(f->tenant, a->tenants.at[s->tenant - 1].config.name) == 0
               ? s
               : NULL;
}

/* next: where the next page begins; NULL: there is none. */
static void end_list(struct base_text *t, const struct agent_cursor *next)
{
    char cursor[AGENT_CURSOR_BYTES];
    base_json_array_end(t);
    if (next != NULL)
        base_json_string(t, "next_cursor", agent_cursor_format(next, cursor));
    base_json_object_end(t);
    base_text_append(t, "\n", 1);
}

static void list_leases(struct agent *a, const struct held_request *request)
{
    struct base_text *t = &a->answer;
    struct filter f;
    struct lease_owner owner;
    struct lane_lease lease;
    if (!parse_filter(request, &f))
        return;
    uint64_t n = 0;
    struct agent_cursor at = f.at;
    base_json_object(t, NULL);
    base_json_array(t, "leases");
    for (; at.session < POOLS * a->config.max_sessions; at.session++, at.place = 0) {
        const struct agent_session *s = shown_session(a, &f, at.session);
        if (s == NULL)
            continue;
        agent_session_owner(s, &owner);
        for (; at.place < lane_leases(s->rings.memory); at.place++) {
            if (!lane_lease(s->rings.memory, at.place, &lease))
                continue;
            if (n++ == f.limit) { /* there are more */
                end_list(t, &at);
                agent_asker_reply(a, request->by, 200);
                return;
            }
            print_lease(s->pool, t, &owner, &lease, NULL);
            base_json_object_end(t);
        }
    }
    end_list(t, NULL);
    agent_asker_reply(a, request->by, 200);
}

static void list_workers(struct agent *a, const struct held_request *request)
{
    struct base_text *t = &a->answer;
    struct filter f;
    if (!parse_filter(request, &f))
        return;
    uint64_t n = 0;
    struct agent_cursor at = {.session = f.at.session};
    base_json_object(t, NULL);
    base_json_array(t, "workers");
    for (; at.session < POOLS * a->config.max_sessions; at.session++) {
        const struct agent_session *s = shown_session(a, &f, at.session);
        if (s == NULL)
            continue;
        if (n++ == f.limit || t->length > WORKERS_BYTES)
            break;
        print_worker(t, s);
    }
    end_list(t, at.session < POOLS * a->config.max_sessions ? &at : NULL);
    agent_asker_reply(a, request->by, 200);
}

/* ---- one */

/* The lease of an id, and its session; NULL: there is none, and the request has its answer. */
static struct agent_session *lease_of(struct agent *a, const struct held_request *request,
                                      struct lane_lease *out)
{
    struct agent_worker_id wanted;
    uint32_t number;
    if (!agent_worker_id_parse(request->id, &wanted, &number)) {
        agent_asker_refuse(request->by, EINVAL, "that is no lease's id: see rdmactl lease list");
        return NULL;
    }
    struct agent_session *s = agent_session_of_worker(a, &wanted);
    if (s != NULL && agent_session_find_lease(s, number, out))
        return s;
    agent_asker_refuse(request->by, ENOENT,
                       "there is no such lease here: its worker has deregistered it or ended, "
                       "or never had it");
    return NULL;
}

static struct agent_session *worker_of(struct agent *a, const struct held_request *request,
                                       const char *id)
{
    struct agent_worker_id wanted;
    if (!agent_worker_id_parse(id, &wanted, NULL)) {
        agent_asker_refuse(request->by, EINVAL, "that is no worker's id: see rdmactl worker list");
        return NULL;
    }
    struct agent_session *s = agent_session_of_worker(a, &wanted);
    if (s == NULL)
        agent_asker_refuse(request->by, ENOENT, "there is no such worker here: it has ended");
    return s;
}

static void get_lease(struct agent *a, const struct held_request *request)
{
    struct lane_lease lease;
    struct lease_owner owner;
    const struct agent_session *s = lease_of(a, request, &lease);
    if (s == NULL)
        return;
    agent_session_owner(s, &owner);
    print_lease(s->pool, &a->answer, &owner, &lease, NULL);
    base_json_object_end(&a->answer);
    base_text_append(&a->answer, "\n", 1);
    agent_asker_reply(a, request->by, 200);
}

static void get_worker(struct agent *a, const struct held_request *request)
{
    const struct agent_session *s = worker_of(a, request, request->id);
    if (s == NULL)
        return;
    print_worker(&a->answer, s);
    base_text_append(&a->answer, "\n", 1);
    agent_asker_reply(a, request->by, 200);
}

/* ---- revoking */

static void print_leases(const struct revocation *r, struct base_text *t)
{
    const struct agent_session *s = agent_session_of_worker(r->pool->agent, &r->owner.id);
    for (uint32_t i = 0; i < r->count; i++) {
        struct lane_lease lease = r->lease[i], now;
        const char *state = "gone";
        if (s != NULL && agent_session_find_lease(s, lease.number, &now)) {
            lease = now;
            state = agent_revocation_is_over_for(r, &lease) ? "revoked" : NULL;
        }
        print_lease(r->pool, t, &r->owner, &lease, state);
        base_json_bool(t, "asked_for", r->number == 0 || lease.number == r->number);
        base_json_object_end(t);
    }
}

static bool takes_registrations(const struct revocation *r)
{
    bool at_once = false; /* and not after its period, when nobody believes in it */
    for (uint32_t i = 0; i < r->count; i++)
        at_once |= r->lease[i].fenced || (r->force && r->lease[i].own);
    return at_once || r->freed != 0;
}

static const char *describe_breaks(const struct revocation *r)
{
    if (!takes_registrations(r))
        return "nothing: requests to these leases are refused before they reach a connection";
    if (r->pool->device.rc)
        return "requests to these leases that nodes had begun, or begin until their period is "
               "over, end with IBV_WC_REM_ACCESS_ERR; connections that carried one are made anew; "
               "what other workers had behind it goes again, but for WRITEs and atomics behind a "
               "READ or an atomic, which end with IBV_WC_WR_FLUSH_ERR";
    return "requests to these leases that nodes had begun, or begin until their period is over, "
           "end with IBV_WC_REM_ACCESS_ERR; DC initiators that carried one are replaced; what "
           "other workers had behind it goes again, but for WRITEs and atomics to this node, which "
           "end with IBV_WC_WR_FLUSH_ERR";
}

static void refuse_revocation(struct asker by, int status)
{
    agent_asker_refuse(by, status,
                       status == -ENOENT ? "it went at the same moment"
                       : status == -EBUSY
                           ? "leases of this worker are being revoked at this moment: look at "
                             "them, and try again if need be"
                           : NULL);
}

/* Nothing is forced without a registration to take the former one's place; the leases go by
 * themselves. */
static void refuse_force(struct asker by, const struct revocation *r)
{
    struct base_errbuf why;
    char text[sizeof why.text + 160];
    (void)agent_device_why(r->pool->world, r->failed, &why);
    snprintf(text, sizeof text,
             "%s was forced, since the registration could not be replaced (%.300s); the leases are "
             "being withdrawn instead, and are over within %llu ms",
             r->freed == 0 ? "nothing" : "not all", why.text,
             (unsigned long long)(r->pool->mr_lease_ns / BASE_NS_PER_MS + 1));
    agent_asker_refuse(by, ENOSPC, text);
}

static void write_revocation(const struct revocation *r, struct base_text *t, bool over)
{
    char id[AGENT_ID_BYTES];
    base_text_reset(t);
    base_json_object(t, NULL);
    base_json_string(t, "worker", worker_id(&r->owner, id));
    base_json_bool(t, "forced", r->freed != 0);
    base_json_array(t, "leases");
    print_leases(r, t);
    base_json_array_end(t);
    base_json_bool(t, "over", over);
    base_json_string(t, "breaks", describe_breaks(r));
    base_json_object_end(t);
    base_text_append(t, "\n", 1);
}

void agent_revocation_reply(struct revocation *r, int status)
{
    struct agent *a = r->pool->agent;
    const bool over = agent_revocation_is_over(r);
    if (status == 0 && r->failed == 0 && agent_revocation_is_awaited(r))
        write_revocation(r, &a->answer, over);
    for (int i = 0; i < REVOCATION_ASKERS; i++) {
        const struct asker by = r->by[i];
        r->by[i] = (struct asker){.request = NULL};
        if (!asker_waits(by))
            continue;
        if (status != 0)
            refuse_revocation(by, status);
        else if (r->failed != 0)
            refuse_force(by, r);
        else
            agent_asker_reply(a, by, over ? 200 : 202);
    }
}

/* Whether it is under way; else the answer has been given. */
static bool begin_revocation(const struct held_request *request, struct agent_session *s,
                             uint32_t number)
{
    const bool forced = request->force != NULL && strcmp(request->force, "1") == 0;
    if (request->force != NULL && !forced && strcmp(request->force, "0") != 0)
        return bad_query(request, "force must be 0 or 1");
    if (s->stage != STAGE_LIVE) {
        agent_asker_refuse(request->by, EBUSY,
                           "its worker has ended, and all that it had is being withdrawn");
        return false;
    }
    int status = agent_revocation_begin(request->by, s, number, forced);
    if (status != 0)
        refuse_revocation(request->by, status);
    return status == 0;
}

bool agent_leases_revoke(struct agent *a, const struct held_request *request)
{
    struct lane_lease lease;
    struct agent_session *s;
    if (request->id != NULL) {
        s = lease_of(a, request, &lease);
        return s != NULL && begin_revocation(request, s, lease.number);
    }
    if (request->worker == NULL)
        return bad_query(request, "name a lease in the path, or say whose with worker=");
    s = worker_of(a, request, request->worker);
    return s != NULL && begin_revocation(request, s, 0);
}

/* ---- all of it */

void agent_leases_look(struct agent *a, const struct held_request *request, bool leases)
{
    if (leases && request->id == NULL)
        list_leases(a, request);
    else if (leases)
        get_lease(a, request);
    else if (request->id == NULL)
        list_workers(a, request);
    else
        get_worker(a, request);
}

/* What follows the prefix: "" alone is NULL, "/ID" is the id. False: another path. */
static bool match_prefix(const char *path, const char *prefix, const char **id)
{
    const size_t length = strlen(prefix);
    if (strncmp(path, prefix, length) != 0 || (path[length] != '\0' && path[length] != '/'))
        return false;
    *id = path[length] == '/' ? path + length + 1 : NULL;
    return true;
}

bool agent_leases_handle(struct agent *a, struct world_request *r,
                         const struct admin_request *request, bool *answered)
{
    const char *id;
    const bool leases = match_prefix(request->path, "/v1/leases", &id);
    if (!leases && !match_prefix(request->path, "/v1/workers", &id))
        return false;
    const bool get = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
    const struct held_request held = {.by = {.world = a->world, .request = r},
                                      .id = id,
                                      .limit = request->limit,
                                      .cursor = request->cursor,
                                      .tenant = request->tenant,
                                      .worker = request->worker,
                                      .force = request->force};
    *answered = true;
    if (leases && strcmp(request->method, "DELETE") == 0)
        *answered = !agent_leases_revoke(a, &held);
    else if (!get)
        agent_admin_refuse_method(a, r, leases ? "GET, HEAD, DELETE" : "GET, HEAD");
    else
        agent_leases_look(a, &held, leases);
    return true;
}
