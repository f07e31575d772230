/* SPDX-License-Identifier: Apache-2.0 */
/* Says to each metaserver what is in force of the settings, and why no more: when that changes, and
 * again when a metaserver has forgotten. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "applied_report.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "base/printable.h"
#include "base/text.h"
#include "bounds.h"
#include "due.h"
#include "follow.h"
#include "metaserver_call.h"
#include "pools.h"
#include "prefer.h"
#include "proofs.h"
#include "register.h"

enum { TEXT_BYTES = 2048, AGAIN_MS = 1000, LATER_MS = 30000 };

void agent_desired_why(const struct agent *a, char why[DESIRED_WHY])
{
    const struct follow *f = &a->follow;
    snprintf(why, DESIRED_WHY, "%s", f->why[0] != '\0' ? f->why : a->tenants.why);
    if (f->why[0] == '\0')
        agent_pools_why(a, why, DESIRED_WHY);
}

void agent_desired_metrics(const struct agent *a, struct base_text *t)
{
    const struct follow *f = &a->follow;
    char why[DESIRED_WHY];
    agent_desired_why(a, why);
    base_metric_one(t, "kedge_agent_settings_revision", BASE_METRIC_GAUGE,
                    "Of the settings of metaservers, the revision in force; 0: none is.",
                    f->applied);
    base_metric_one(t, "kedge_agent_settings_behind", BASE_METRIC_GAUGE,
                    "Whether another revision was seen than the one in force.",
                    f->seen != f->applied || f->why[0] != '\0');
    base_metric_one(t, "kedge_agent_settings_incomplete", BASE_METRIC_GAUGE,
                    "Whether anything that was seen is not in force, or who belongs to a tenant by "
                    "the file is not let in: the status says what.",
                    why[0] != '\0');
}

/* How many workers are left changes all the time: it is told while somebody waits for it. */
static void describe_applied(const struct agent *a, struct base_text *t)
{
    const struct follow *f = &a->follow;
    char why[DESIRED_WHY];
    agent_desired_why(a, why);
    (void)base_copy_printable(why, sizeof why, why); /* the metaserver takes no other */
    base_json_object(t, NULL);
    base_json_u64(t, "incarnation", a->incarnation);
    base_json_u64(t, "revision", f->applied);
    base_json_u64(t, "seen", f->seen);
    if (a->node.desired.cordoned)
        base_json_u64(t, "sessions", agent_pools_workers_left(a));
    base_json_string(t, "why", why);
    base_json_object_end(t);
}

static void on_told(void *user, const struct http_answer *answer)
{
    struct registration *r = user;
    r->pool->calls--;
    r->telling = false;
    if (answer->status == 204)
        return;
    /* Who has forgotten the node says so to its next renewal too, and is told again when it is
     * registered; an older metaserver knows no such path. */
    r->told = 0;
    r->tell_ns = world_now_ns(r->pool->world) +
                 (answer->status == 404 ? LATER_MS : AGAIN_MS) * BASE_NS_PER_MS;
}

static void tell_metaserver(struct registration *r, const struct base_text *t, uint64_t hash)
{
    char url[METASERVER_URL_BYTES];
    snprintf(url, sizeof url, "%s/v1/nodes/%s/applied", r->url, r->pool->config->node);
    struct http_call c = agent_metaserver_call(r->pool->agent, "PUT", url, CALL_MS);
    c.body = base_text_str(t);
    c.body_length = t->length;
    if (world_call(r->pool->world, &c, on_told, r, NULL) != 0)
        return;
    r->pool->calls++;
    r->telling = true;
    r->told = hash;
    agent_proofs_forgotten(r->pool->agent, (uint32_t)(r - r->pool->registration));
}

/* Of all that describe_applied() says. */
static uint64_t hash_applied(const struct agent *a)
{
    const uint64_t numbers[] = {a->incarnation, a->follow.applied, a->follow.seen,
                                a->node.desired.cordoned ? agent_pools_workers_left(a) + 1 : 0};
    char why[DESIRED_WHY];
    agent_desired_why(a, why);
    const uint32_t crc = base_crc32c(0, numbers, sizeof numbers);
    return base_crc32c(crc, why, strlen(why)) | UINT64_C(1) << 32;
}

static bool is_to_be_told(const struct registration *r, uint64_t hash)
{
    return agent_prefer_is_sound(r) && !r->telling && r->told != hash;
}

uint64_t agent_report_due_ns(const struct agent *a)
{
    uint64_t due_ns = DUE_NEVER;
    for (uint32_t i = 0; i < a->config.metaservers && !a->stopping; i++) {
        const struct registration *r = &a->pools[0]->registration[i];
        due_ns = due_first(due_ns, due_if(is_to_be_told(r, a->follow.described), r->tell_ns));
    }
    return due_ns;
}

static void tell_applied(struct registration *r, uint64_t hash)
{
    struct base_text t;
    base_text_init(&t, TEXT_BYTES);
    describe_applied(r->pool->agent, &t);
    if (t.error == 0)
        tell_metaserver(r, &t, hash);
    base_text_fini(&t);
}

void agent_report_step(struct agent *a)
{
    const uint64_t now = world_now_ns(a->world);
    if (a->stopping)
        return;
    const uint64_t hash = hash_applied(a);
    a->follow.described = hash;
    for (uint32_t i = 0; i < a->config.metaservers; i++) {
        struct registration *r = &a->pools[0]->registration[i];
        if (is_to_be_told(r, hash) && now >= r->tell_ns)
            tell_applied(r, hash);
    }
}
