/* SPDX-License-Identifier: Apache-2.0 */
#include "operators.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/text.h"
#include "calls.h"
#include "inbox.h"
#include "ledger.h"
#include "os_calls.h"
#include "random.h"
#include "trace.h"

enum {
    OP_WINDOWS = 4,
    OP_POOLS = 2,
    OP_TOKENS = 3,
    OP_NODES = 64, /* settings are of the first ones */
    OP_PATHS = OP_WINDOWS + OP_POOLS + OP_TOKENS + PLAY_TENANTS + OP_NODES,
    OP_TRIES = 3,
    OP_ANSWER = 64 << 10,
    OP_BODY = 1024,
    OP_LOOK_PPM = 300000,
    OP_BACK_S = 25, /* within this all that was set is taken back */
    OP_LATE_S = 10, /* after so long nothing that was asked for is under way, if nothing is wrong */
    OP_FORCE_S = 60, /* after so long an agent has done what it was told to, or will not */
    OP_RETRY_MS = 500
};

static const char *const POOLS[OP_POOLS] = {"gold", "silver"};

/* Where windows come first that name tenants, and pools that have them: what refers to others goes
 * first in the end. */
enum op_kind { OP_WINDOW, OP_POOL, OP_TOKEN, OP_NODE, OP_TENANT, OP_KINDS };

struct op_path {
    enum op_kind kind;
    uint32_t number;
    char path[96];
    struct play_known known[4]; /* of each metaserver */
    struct play_secret secret[4];
};

struct play_operators {
    struct play_host host;
    struct play_process *process;
    struct play_inbox inbox;
    struct play_operators_settings settings;
    struct base_prng random;
    uint64_t pause_ns;
    uint64_t marks, changes;
    uint64_t losses[4];  /* of each metaserver: of its disk */
    uint64_t *forced_ns; /* of each node */
    bool done;
    uint32_t paths;
    struct op_path path[OP_PATHS];
    /* the call that is under way */
    bool answered;
    int status;
    char answer[OP_ANSWER];
};

static uint64_t draw(struct play_operators *o, uint64_t n)
{
    return base_prng_below(&o->random, n);
}

/* ---- calls */

static void on_answer(void *user, const struct http_answer *answer)
{
    struct play_operators *o = user;
    o->answered = true;
    o->status = answer->status;
    (void)snprintf(o->answer, sizeof o->answer, "%s", answer->body);
}

/* token: that is shown, or NULL. Returns the status, or -errno. */
static int call_with(struct play_operators *o, uint32_t metaserver, const char *method,
                     const char *path, const char *body, const char *token)
{
    char url[256];
    const struct http_call call = {.method = method,
                                   .url = url,
                                   .token = token,
                                   .body = body,
                                   .body_length = body != NULL ? strlen(body) : 0};
    if (o->settings.shared > 0)
        metaserver = (uint32_t)draw(o, o->settings.shared);
    (void)snprintf(url, sizeof url, "http://%s:7480%s", o->settings.metaserver[metaserver], path);
    o->answered = false;
    const int status = play_call_begin(&o->inbox, &call, on_answer, o, NULL);
    BASE_ASSERT(status == 0);
    while (!o->answered)
        (void)play_inbox_step(&o->inbox, PLAY_NEVER);
    return o->status;
}

static int call_metaserver(struct play_operators *o, uint32_t metaserver, const char *method,
                           const char *path, const char *body)
{
    return call_with(o, metaserver, method, path, body, NULL);
}

/* A server that stops leaves open whether it has stored what was asked for, and says so. */
static int status_of(const struct play_operators *o)
{
    if (o->settings.shared > 0 && o->status == 503)
        return 504;
    return o->status == 503 && strstr(o->answer, "whether anything") != NULL ? 504 : o->status;
}

/* ---- what they change */

__attribute__((format(printf, 3, 4))) static void say(char *out, size_t *used, const char *format,
                                                      ...)
{
    va_list args;
    va_start(args, format);
    *used += (size_t)vsnprintf(out + *used, OP_BODY - *used, format, args);
    va_end(args);
    BASE_ASSERT(*used < OP_BODY);
}

static void say_number(struct play_operators *o, char *out, size_t *used, const char *name,
                       uint64_t least, uint64_t most)
{
    if (draw(o, 2) == 0)
        say(out, used, ",\"%s\":%llu", name,
            (unsigned long long)play_random_between(&o->random, least, most));
}

static void say_gid(struct play_operators *o, char *out, size_t *used, uint32_t node)
{
    uint8_t gid[16];
    char text[BASE_GID_TEXT];
    o->settings.gid(node, gid);
    say(out, used, "\"%s\"", base_gid_format(gid, text));
}

/* One destination, by either of its names, and as one pool sees it or all do. */
static void say_destination(struct play_operators *o, char *out, size_t *used)
{
    const uint32_t node = (uint32_t)draw(o, o->settings.nodes);
    if (draw(o, 2) == 0) {
        say(out, used, ",\"node\":\"%s\"", o->settings.node[node]);
    } else {
        say(out, used, ",\"gid\":");
        say_gid(o, out, used, node);
    }
    if (draw(o, 2) == 0)
        say(out, used, ",\"pool\":\"%s\"", POOLS[draw(o, OP_POOLS)]);
}

static void make_window(struct play_operators *o, char *out, size_t *used)
{
    switch (draw(o, 4)) {
    case 0:
        say(out, used, "\"scope\":\"device\"");
        break;
    case 1:
        say(out, used, "\"scope\":\"tenant\",\"tenant\":\"%s\"",
            play_tenant_name((uint32_t)draw(o, PLAY_TENANTS)));
        break;
    case 2:
        say(out, used, "\"scope\":\"destination\"");
        say_destination(o, out, used);
        break;
    default:
        say(out, used, "\"scope\":\"destination\"");
    }
    say_number(o, out, used, "ops", 1, 16);
    say_number(o, out, used, "bytes", 1000, 64000);
}

/* What its packets are marked with. A switch tells its paths apart by one of the two labels. */
static void say_service(struct play_operators *o, char *out, size_t *used)
{
    say_number(o, out, used, "service_level", 0, 7);
    say_number(o, out, used, "traffic_class", 0, 255);
    say_number(o, out, used, "pkey_index", 0, 3);
    if (draw(o, 2) == 0)
        say_number(o, out, used, "flow_label", 1, 1048575);
    else
        say_number(o, out, used, "udp_source_port", 49152, 65535);
    if (draw(o, 2) == 0)
        say(out, used, ",\"mtu\":%u", 256u << draw(o, 5));
}

/* Either may have the other one's number, or a lease that is too short for the device. */
static void make_pool(struct play_operators *o, char *out, size_t *used)
{
    static const char *const NODES[] = {"{}", "{\"zone\":\"a\"}", "{\"zone\":\"b\"}"};
    say(out, used, "\"nodes\":%s,\"tenants\":[", NODES[draw(o, 3)]);
    for (uint32_t i = 0; i < o->settings.tenants; i++)
        if (draw(o, 2) == 0)
            say(out, used, "%s\"%s\"", out[*used - 1] == '[' ? "" : ",", play_tenant_name(i));
    say(out, used, "]");
    say_number(o, out, used, "sessions_ahead", 1, 4);
    say_number(o, out, used, "arenas_ahead", 1, 4);
    say_number(o, out, used, "ahead_max", 4, 16);
    say_number(o, out, used, "grace_ms", 0, 20000);
    say_number(o, out, used, "mr_lease_ms", 1500, 5000);
    say_number(o, out, used, "spares", 0, 4);
    say_number(o, out, used, "dcis", 2, 8);
    say_number(o, out, used, "connections", 4, 64);
    say_number(o, out, used, "queue_pairs_ahead", 1, 16);
    say_number(o, out, used, "responders", 1, 64);
    if (draw(o, 2) == 0)
        say_number(o, out, used, "number", 2, 5);
    if (o->settings.lanes > 0) /* else seeds tell other stories than before */
        say_number(o, out, used, "lanes", 1, o->settings.lanes);
    say_service(o, out, used);
}

/* Of one node, which may have its own GID, and another one's beside it. */
static void say_agent(struct play_operators *o, char *out, size_t *used)
{
    const uint32_t node = (uint32_t)draw(o, o->settings.nodes);
    say(out, used, "\"scope\":\"agent\",\"node\":\"%s\",\"gids\":[", o->settings.node[node]);
    say_gid(o, out, used, node);
    if (o->settings.nodes > 1 && draw(o, 2) == 0) {
        say(out, used, ",");
        say_gid(o, out, used, (node + 1) % o->settings.nodes);
    }
    say(out, used, "]");
}

static void make_token(struct play_operators *o, const struct op_path *p, char *out, size_t *used)
{
    static const char *const SCOPES[] = {"reader", "operator", "admin"};
    const uint64_t scope = draw(o, 4);
    if (p->number == 0 && scope < 3)
        say(out, used, "\"scope\":\"%s\"", SCOPES[scope]);
    else if (p->number == 0)
        say_agent(o, out, used);
    else
        say(out, used, "\"scope\":\"worker\",\"tenant\":\"%s\"",
            play_tenant_name((uint32_t)draw(o, PLAY_TENANTS)));
    if (draw(o, 2) == 0)
        say(out, used, ",\"expires\":\"2099-12-%02u\"", 1 + (unsigned)draw(o, 30));
    if (strstr(out, "expires") != NULL) {
        *used -= 1;
        say(out, used, "T00:00:00Z\"");
    }
}

static void make_node(struct play_operators *o, char *out, size_t *used)
{
    say(out, used, "\"labels\":{\"zone\":\"%c\"}", (char)('a' + draw(o, 2)));
    const uint64_t how = draw(o, 4);
    if (how < 2)
        return;
    say(out, used, ",\"cordoned\":true,\"reason\":\"number %llu\"", (unsigned long long)++o->marks);
    if (how < 3)
        return;
    say(out, used, ",\"draining\":true");
    say_number(o, out, used, "grace_ms", 0, 20000);
}

static void make_tenant(struct play_operators *o, const struct op_path *p, char *out, size_t *used)
{
    const uint32_t uid = play_tenant_uid(p->number);
    say(out, used, "\"uids\":[\"%u-%u\"]", uid, uid + 999);
    say_number(o, out, used, "sessions", 1, 16);
    say_number(o, out, used, "vqps", 1, 8);
    say_number(o, out, used, "mrs", 1, 8);
    say_number(o, out, used, "memory_bytes", 1 << 20, 8 << 20);
    say_number(o, out, used, "window_bytes", 1000, 64000);
    say_number(o, out, used, "window_ops", 1, 16);
    say_number(o, out, used, "control_ops_per_s", 1, 1000);
}

static void make_body(struct play_operators *o, const struct op_path *p, char out[OP_BODY])
{
    size_t used = 0;
    say(out, &used, "{");
    if (p->kind == OP_WINDOW)
        make_window(o, out, &used);
    else if (p->kind == OP_POOL)
        make_pool(o, out, &used);
    else if (p->kind == OP_TOKEN)
        make_token(o, p, out, &used);
    else if (p->kind == OP_NODE)
        make_node(o, out, &used);
    else
        make_tenant(o, p, out, &used);
    say(out, &used, "}");
}

/* ---- changes, and what is shown */

/* A token's secret is shown but once. */
static const char *body_of(const struct play_operators *o, const struct op_path *p)
{
    return p->kind == OP_TOKEN ? "" : o->answer;
}

/* Until it is answered, or for so many times. */
static int change(struct play_operators *o, struct op_path *p, uint32_t metaserver,
                  const char *method, const char *body)
{
    struct play_known *k = &p->known[metaserver];
    int status = -1;
    for (int i = 0; i < OP_TRIES && status < 0; i++) {
        const uint64_t losses = o->losses[metaserver];
        status = call_metaserver(o, metaserver, method, p->path, body);
        if (o->losses[metaserver] != losses) /* the answer may be of before */
            status = o->status = -ECONNRESET;
        if (!play_known_change(k, method, status_of(o), body_of(o, p)) && o->settings.shared == 0)
            play_violation(o->settings.metaserver[metaserver],
                           "%s %s is answered with %d, and there is: %.300s", method, p->path,
                           status, k->body);
        if (p->kind == OP_TOKEN)
            play_secret_change(&p->secret[metaserver], method, status_of(o), o->answer);
        if (status < 0)
            play_process_sleep(OP_RETRY_MS * BASE_NS_PER_MS);
    }
    o->changes += status / 100 == 2;
    play_trace(o->process->name, "%s %s at %s: %d%s%.500s", method, p->path,
               o->settings.metaserver[metaserver], status, body != NULL ? ": " : "",
               body != NULL ? body : "");
    if (status == 400 || status == 403 || status == 405 || status == 422)
        play_trace(o->process->name, "%s", o->answer);
    return status;
}

static void look_at(struct play_operators *o, const struct op_path *p, uint32_t metaserver)
{
    const struct play_known *k = &p->known[metaserver];
    const uint64_t losses = o->losses[metaserver];
    const int status = call_metaserver(o, metaserver, "GET", p->path, NULL);
    if (o->losses[metaserver] == losses && !play_known_allows(k, status, body_of(o, p)))
        play_violation(o->settings.metaserver[metaserver],
                       "%s is answered with %d: %.150s; it has answered before: %s%.150s", p->path,
                       status, o->answer, k->what == ANSWERED_BODY ? "" : "it is gone ", k->body);
}

/* What its token says is another look's: it is known, or is not. */
static void show_secret(struct play_operators *o, const struct op_path *p, uint32_t metaserver,
                        bool live)
{
    const struct play_secret *s = &p->secret[metaserver];
    const char *token = live ? s->live : s->gone;
    if (token[0] == '\0')
        return;
    const uint64_t losses = o->losses[metaserver];
    const int status = call_with(o, metaserver, "GET", "/v1/windows", NULL, token);
    if (o->losses[metaserver] == losses && !play_secret_allows(live, status))
        play_violation(o->settings.metaserver[metaserver],
                       "the secret of %s, which %s, is answered with %d", p->path,
                       live ? "there is" : "was deleted", status);
}

static void look_at_all(struct play_operators *o, uint32_t metaserver)
{
    if (o->settings.shared > 0)
        return;
    for (uint32_t i = 0; i < o->paths; i++) {
        const struct op_path *p = &o->path[i];
        if (p->known[metaserver].what != ANSWERED_NOTHING)
            look_at(o, p, metaserver);
        if (p->kind != OP_TOKEN)
            continue;
        show_secret(o, p, metaserver, true);
        show_secret(o, p, metaserver, false);
    }
}

static void change_something(struct play_operators *o)
{
    char body[OP_BODY];
    const enum op_kind kind = (enum op_kind)draw(o, OP_KINDS);
    uint32_t of = 0;
    for (uint32_t i = 0; i < o->paths; i++)
        of += o->path[i].kind == kind;
    uint32_t which = (uint32_t)draw(o, of), at = 0;
    while (o->path[at].kind != kind || which-- > 0)
        at++;
    struct op_path *p = &o->path[at];
    const bool deletes = draw(o, 3) == 0;
    if (!deletes)
        make_body(o, p, body);
    for (uint32_t i = 0; i < o->settings.metaservers; i++)
        (void)change(o, p, i, deletes ? "DELETE" : "PUT", deletes ? NULL : body);
}

/* ---- leases */

/* Of an id of a lease or a worker: "node-a:12-9f01ab34-1". */
static void note_forced(struct play_operators *o, const char *id)
{
    const size_t length = strcspn(id, ":");
    for (uint32_t i = 0; i < o->settings.nodes; i++)
        if (strlen(o->settings.node[i]) == length && memcmp(o->settings.node[i], id, length) == 0)
            o->forced_ns[i] = play_now_ns();
}

static void revoke_something(struct play_operators *o)
{
    const uint32_t metaserver = (uint32_t)draw(o, o->settings.metaservers);
    const bool whole = draw(o, 4) == 0, forced = draw(o, 2) == 0;
    char id[PLAY_LEASE_ID], path[160];
    if (call_metaserver(o, metaserver, "GET", "/v1/leases?limit=100", NULL) != 200 ||
        !play_choose_lease(o->answer, whole ? "worker" : "id", &o->random, id))
        return;
    (void)snprintf(path, sizeof path, whole ? "/v1/leases?worker=%s%s" : "/v1/leases/%s%s", id,
                   !forced ? ""
                   : whole ? "&force=1"
                           : "?force=1");
    if (forced)
        note_forced(o, id);
    const int status = call_metaserver(o, metaserver, "DELETE", path, NULL);
    play_trace(o->process->name, "DELETE %s: %d %.120s", path, status, o->answer);
}

static void read_something(struct play_operators *o)
{
    static const char *const PATHS[] = {
        "/v1/nodes",  "/v1/workers", "/v1/leases?limit=2", "/v1/events?limit=50",
        "/metrics",   "/v1/windows", "/v1/tenants",        "/v1/pools",
        "/v1/tokens", "/readyz",     "/healthz",           "/v1/nodes?label=zone=a",
    };
    const char *path = PATHS[draw(o, sizeof PATHS / sizeof PATHS[0])];
    (void)call_metaserver(o, (uint32_t)draw(o, o->settings.metaservers), "GET", path, NULL);
}

/* ---- their life */

static void do_something(struct play_operators *o)
{
    if (play_random_happens(&o->random, OP_LOOK_PPM))
        look_at_all(o, (uint32_t)draw(o, o->settings.metaservers));
    else if (draw(o, 5) == 0)
        revoke_something(o);
    else if (draw(o, 5) == 0)
        read_something(o);
    else
        change_something(o);
}

/* Nodes' settings are there as long as they are registered, or somebody has set them. */
static bool take_back(struct play_operators *o, uint32_t metaserver)
{
    bool all = true;
    for (uint32_t i = 0; i < o->paths; i++) {
        struct op_path *p = &o->path[i];
        const enum play_answered what = p->known[metaserver].what;
        if (what == ANSWERED_GONE || what == ANSWERED_NOTHING)
            continue;
        (void)change(o, p, metaserver, "DELETE", NULL);
        all &= p->known[metaserver].what == ANSWERED_GONE;
    }
    return all;
}

/* What one metaserver did not answer it may do later, when another one has answered the next. */
static void doubt_all(struct play_operators *o)
{
    play_process_sleep(OP_LATE_S * BASE_NS_PER_S);
    for (uint32_t i = 0; i < o->paths; i++)
        if (o->path[i].known[0].what != ANSWERED_NOTHING)
            o->path[i].known[0].what = ANSWERED_UNKNOWN;
}

static void take_all_back(struct play_operators *o)
{
    if (o->settings.shared > 0)
        doubt_all(o);
    const uint64_t until_ns = play_now_ns() + OP_BACK_S * BASE_NS_PER_S;
    for (uint32_t i = 0; i < o->settings.metaservers; i++)
        while (!take_back(o, i)) {
            if (play_now_ns() > until_ns) {
                play_violation(o->process->name,
                               "nothing goes wrong, and %s does not let go of "
                               "what was set, within %d s",
                               o->settings.metaserver[i], OP_BACK_S);
                return;
            }
            play_process_sleep(OP_RETRY_MS * BASE_NS_PER_MS);
        }
    for (uint32_t i = 0; i < o->settings.metaservers; i++)
        look_at_all(o, i);
    o->done = true;
}

static void run_operators(void *user)
{
    struct play_operators *o = user;
    while (play_now_ns() + o->pause_ns < o->settings.until_ns) {
        const uint64_t ns = play_random_wait(&o->random, o->pause_ns),
                       left_ns = o->settings.until_ns - play_now_ns();
        play_process_sleep(ns < left_ns ? ns : left_ns);
        do_something(o);
    }
    if (play_now_ns() < o->settings.until_ns)
        play_process_sleep(o->settings.until_ns - play_now_ns());
    play_trace(o->process->name, "take back all that they have set");
    take_all_back(o);
}

__attribute__((format(printf, 4, 5))) static void
add_path(struct play_operators *o, enum op_kind kind, uint32_t number, const char *format, ...)
{
    BASE_ASSERT(o->paths < OP_PATHS);
    struct op_path *p = &o->path[o->paths++];
    va_list args;
    p->kind = kind;
    p->number = number;
    va_start(args, format);
    (void)vsnprintf(p->path, sizeof p->path, format, args);
    va_end(args);
}

static void add_paths(struct play_operators *o)
{
    const uint32_t nodes = o->settings.nodes < OP_NODES ? o->settings.nodes : OP_NODES;
    for (uint32_t i = 0; i < OP_WINDOWS; i++)
        add_path(o, OP_WINDOW, i, "/v1/windows/window-%u", i);
    for (uint32_t i = 0; i < OP_POOLS; i++)
        add_path(o, OP_POOL, i, "/v1/pools/%s", POOLS[i]);
    for (uint32_t i = 0; i < OP_TOKENS; i++)
        add_path(o, OP_TOKEN, i, "/v1/tokens/token-%u", i);
    for (uint32_t i = 0; i < nodes; i++)
        add_path(o, OP_NODE, i, "/v1/nodes/%s/settings", o->settings.node[i]);
    for (uint32_t i = 0; i < PLAY_TENANTS; i++)
        add_path(o, OP_TENANT, i, "/v1/tenants/%s", play_tenant_name(i));
}

static void on_killed(struct play_process *process, void *user)
{
    struct play_operators *o = user;
    (void)process;
    play_calls_end(&o->inbox, false);
}

struct play_operators *play_operators_start(const struct play_operators_settings *settings)
{
    struct play_operators *o = calloc(1, sizeof *o);
    if (o == NULL || (o->forced_ns = calloc(settings->nodes, sizeof *o->forced_ns)) == NULL) {
        free(o);
        return NULL;
    }
    BASE_ASSERT(settings->metaservers <= sizeof o->path[0].known / sizeof o->path[0].known[0]);
    (void)snprintf(o->host.name, sizeof o->host.name, "office");
    o->host.number = UINT32_MAX; /* it has no device */
    o->settings = *settings;
    o->random = play_random_of(settings->seed, "operators", 1);
    /* What is set is for all nodes: of more of them each takes part in less. */
    o->pause_ns =
        BASE_NS_PER_S * (1 + base_prng_below(&o->random, 20)) / 2 * (1 + settings->nodes / 8);
    add_paths(o);
    o->process = play_process_new(&o->host, "operators", settings->seed, run_operators, o);
    BASE_ASSERT(o->process != NULL);
    o->process->killed = on_killed;
    play_inbox_init(&o->inbox, o->process);
    return o;
}

bool play_operators_are_done(const struct play_operators *o)
{
    return o->done;
}

uint64_t play_operators_changes(const struct play_operators *o)
{
    return o->changes;
}

bool play_operators_may_force(const struct play_operators *o, uint32_t node)
{
    return o->forced_ns[node] != 0 &&
           play_now_ns() < o->forced_ns[node] + OP_FORCE_S * BASE_NS_PER_S;
}

/* Whether what they ask for just now is done before that or after it, nobody knows. */
void play_operators_lost(struct play_operators *o, uint32_t metaserver)
{
    o->losses[metaserver]++;
    for (uint32_t i = 0; i < o->paths; i++) {
        struct op_path *p = &o->path[i];
        if (p->known[metaserver].what != ANSWERED_NOTHING)
            p->known[metaserver].what = ANSWERED_UNKNOWN;
        play_secret_lost(&p->secret[metaserver]);
    }
}

void play_operators_kill(struct play_operators *o)
{
    play_process_kill(o->process);
    free(o->forced_ns);
    free(o);
}
