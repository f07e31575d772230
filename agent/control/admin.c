/* SPDX-License-Identifier: Apache-2.0 */
/* What the admin socket has: the agent's status, its metrics, whether it is ready; workers and
 * leases are admin_leases.c's. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "address_change.h"
#include "admin_counters.h"
#include "admin_handlers.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "base/version.h"
#include "clock_watch.h"
#include "follow.h"
#include "leases.h"
#include "pools.h"
#include "quotas.h"
#include "register.h"
#include "revocations.h"

enum { ANSWER_MAX = 1 << 20 };

enum { READY_WHY_BYTES = 800 };

/* Why the nearest metaserver does not have the pool: "" before it was asked. */
static const char *say_nearest(const struct pool *p)
{
    return p != NULL && p->config->metaservers > 0 ? p->registration[0].why : "";
}

/* Whether workers are served, and what there is to say about it; "": all is well. Once registered,
 * an agent that has lost all metaservers serves its workers as before, but for nodes that it has
 * not met: to be taken out of service for that would make it worse. */
static bool is_ready(const struct agent *a, char why[READY_WHY_BYTES])
{
    const struct pool *own = a->pools[0], *missed = agent_registrations_missed(a);
    const bool has_own = own != NULL && agent_registrations_count(own) > 0;
    const char *nearest = say_nearest(has_own && missed != NULL ? missed : own);
    const char *from = nearest[0] != '\0' ? a->config.metaserver[0] : "";
    agent_address_why(a, why, READY_WHY_BYTES);
    if (why[0] == '\0')
        agent_pkey_watch_why(a, why, READY_WHY_BYTES);
    if (why[0] != '\0')
        return a->was_registered;
    if (!a->was_registered)
        snprintf(why, READY_WHY_BYTES,
                 "no metaserver has had this node since its agent began: workers attach, and find "
                 "no nodes, not even this one%s%.100s%s%.400s; see rdmactl agent status",
                 from[0] != '\0' ? ": " : "", from, from[0] != '\0' ? ": " : "", nearest);
    else if (!has_own)
        snprintf(why, READY_WHY_BYTES,
                 "no metaserver has this node any more: workers attach, and reach the nodes that "
                 "are known here%s%.100s%s%.400s; see rdmactl agent status",
                 from[0] != '\0' ? ": " : "", from, from[0] != '\0' ? ": " : "", nearest);
    else if (missed != NULL)
        snprintf(
            why, READY_WHY_BYTES,
            "no metaserver has pool %.63s of this node: its workers attach, and reach the nodes "
            "that it knows: %.100s: %.400s; see rdmactl agent status",
            missed->name, from, nearest);
    else if (!agent_follow_unkept_why(a, why, READY_WHY_BYTES))
        agent_clock_why(a, why, READY_WHY_BYTES);
    if (why[0] == '\0' && !a->world->keeps_whole)
        snprintf(why, READY_WHY_BYTES,
                 "workers can punch holes in memory that they are given, or make huge pages of it, "
                 "and so have lanes wait: give the agent CAP_LINUX_IMMUTABLE, and run Linux 6.0 or "
                 "newer; its log says which of these");
    return a->was_registered;
}

/* What a->answer has. */
static void reply_text(struct agent *a, struct world_request *r, const char *content_type)
{
    const struct base_text *t = &a->answer;
    const struct admin_answer answer = {
        .status = 200, .content_type = content_type, .body = base_text_str(t), .length = t->length};
    if (t->error != 0)
        world_refuse(a->world, r, t->error, NULL);
    else
        world_answer(a->world, r, &answer);
}

/* 200 with a "why" where something is amiss; 503 with the same as its detail. */
static void reply_ready(struct agent *a, struct world_request *r)
{
    struct base_text *t = &a->answer;
    char why[READY_WHY_BYTES];
    if (!is_ready(a, why)) {
        world_refuse(a->world, r, EHOSTUNREACH, why);
        return;
    }
    base_json_object(t, NULL);
    base_json_string(t, "status", "ready");
    base_json_u64(t, "metaservers", agent_registrations_done(a));
    if (why[0] != '\0')
        base_json_string(t, "why", why);
    base_json_object_end(t);
    base_text_append(t, "\n", 1);
    reply_text(a, r, NULL);
}

static void print_version(struct base_text *t)
{
    base_json_object(t, NULL);
    base_json_string(t, "program", "kedge-agentd");
    base_json_string(t, "version", KEDGE_VERSION);
    base_json_string(t, "commit", base_version_commit());
    base_json_object_end(t);
    base_text_append(t, "\n", 1);
}

static void print_health(struct base_text *t)
{
    base_json_object(t, NULL);
    base_json_string(t, "status", "ok");
    base_json_object_end(t);
    base_text_append(t, "\n", 1);
}

bool agent_admin_take(struct agent *a, struct world_request *r, const struct admin_request *request)
{
    struct base_text *t = &a->answer;
    const char *content_type = NULL, *path = request->path;
    bool answered;
    base_text_reset(t);
    if (agent_leases_handle(a, r, request, &answered))
        return answered;
    if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
        agent_admin_refuse_method(a, r, "GET, HEAD");
        return true;
    }
    if (strcmp(path, "/v1/status") == 0) {
        (void)agent_quotas_recount(a);
        agent_status_print(a, t);
    } else if (strcmp(path, "/metrics") == 0) {
        (void)agent_quotas_recount(a);
        agent_metrics_print(a, t);
        content_type = BASE_METRICS_TYPE;
    } else if (strcmp(path, "/version") == 0) {
        print_version(t);
    } else if (strcmp(path, "/readyz") == 0) {
        reply_ready(a, r);
        return true;
    } else if (strcmp(path, "/healthz") == 0) {
        print_health(t);
    } else {
        world_refuse(a->world, r, ENOENT,
                     "there are /v1/status, /v1/workers, /v1/leases, /metrics, /healthz, /readyz "
                     "and /version");
        return true;
    }
    reply_text(a, r, content_type);
    return true;
}

void agent_admin_forget(struct agent *a, const struct world_request *r)
{
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        agent_leases_forget_request(p, r);
}

void agent_admin_init(struct agent *a)
{
    base_text_init(&a->answer, ANSWER_MAX);
}

void agent_admin_fini(struct agent *a)
{
    base_text_fini(&a->answer);
}
