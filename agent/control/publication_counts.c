/* SPDX-License-Identifier: Apache-2.0 */
/* Names of regions as the agent's status and metrics show them. */
#include "agent.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "publication_calls.h"

struct counts {
    uint64_t shown, waiting, taking_back, without_room;
};

static struct counts count_publications(const struct agent *a)
{
    struct counts n = {0};
    for (const struct publication *p = a->publications.first; p != NULL; p = p->next) {
        const bool waits = agent_publication_is_wanting(p, false);
        n.taking_back += p->session == NULL;
        n.waiting += p->session != NULL && (waits || !p->decided);
        n.shown += p->session != NULL && !waits && p->decided;
    }
    for (uint32_t i = 0; i < a->config.metaservers; i++)
        n.without_room += a->publications.listing[i].without_room;
    return n;
}

void agent_publications_status(const struct agent *a, struct base_text *t)
{
    const struct counts n = count_publications(a);
    base_json_object(t, "region_names");
    base_json_u64(t, "published", n.shown);
    base_json_u64(t, "max_published", PUBLICATIONS_MOST);
    base_json_u64(t, "waiting", n.waiting);
    base_json_u64(t, "taking_back", n.taking_back);
    base_json_u64(t, "without_room", n.without_room);
    base_json_u64(t, "asked_for", a->publications.begun);
    base_json_u64(t, "refused", a->publications.refused);
    base_json_u64(t, "lost", a->publications.lost);
    base_json_object_end(t);
}

void agent_publications_metrics(const struct agent *a, struct base_text *t)
{
    const struct counts n = count_publications(a);
    base_metric_one(t, "kedge_agent_region_names", BASE_METRIC_GAUGE,
                    "Names under which workers' regions are published.", n.shown);
    base_metric_one(t, "kedge_agent_region_names_waiting", BASE_METRIC_GAUGE,
                    "Names that a metaserver that is reached does not show yet.", n.waiting);
    base_metric_one(t, "kedge_agent_region_names_taking_back", BASE_METRIC_GAUGE,
                    "Names that are taken back, and that a metaserver may still have.",
                    n.taking_back);
    base_metric_one(t, "kedge_agent_region_names_without_room", BASE_METRIC_GAUGE,
                    "Names that metaservers have for this node, that nobody here has, and that "
                    "cannot be taken back yet.",
                    n.without_room);
    base_metric_one(t, "kedge_agent_region_names_refused_total", BASE_METRIC_COUNTER,
                    "Times that a worker was refused a name for a region.",
                    a->publications.refused);
    base_metric_one(t, "kedge_agent_region_names_lost_total", BASE_METRIC_COUNTER,
                    "Names of workers' regions that are others' by now.", a->publications.lost);
}
