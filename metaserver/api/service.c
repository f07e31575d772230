/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "metaserver/directory_reach.h"
#include "service_private.h"

static bool is_live(void *user, const char *id)
{
    const struct meta_service *s = user;
    struct meta_node_view view;
    return meta_directory_show(s->directory, id, 0, &view) == 0 && view.state == META_NODE_LIVE;
}

/* ---- liveness */

void meta_service_at(struct meta_service *s, uint64_t now, uint64_t wall_ms)
{
    s->at = now;
    s->at_wall_ms = wall_ms;
}

uint64_t meta_service_wall_ms(const struct meta_service *s, uint64_t at)
{
    return at >= s->at ? s->at_wall_ms + (at - s->at) / BASE_NS_PER_MS
                       : s->at_wall_ms - (s->at - at) / BASE_NS_PER_MS;
}

/* Tells those who watch, at the next tick. */
static void announce_event(struct meta_service *s, const char *node, const char *who, uint64_t now,
                           struct meta_liveness_event *event)
{
    if (s->liveness == NULL)
        return;
    event->time_ms = meta_service_wall_ms(s, now);
    event->revision = s->resources != NULL ? meta_resources_revision(s->resources) : 0;
    snprintf(event->node, sizeof event->node, "%s", node);
    snprintf(event->who, sizeof event->who, "%s", who);
    meta_liveness_add(s->liveness, event);
}

/* before: what the node was until now. */
static void announce_live(struct meta_service *s, const struct meta_node_view *before,
                          const struct meta_registration *r, uint64_t now)
{
    if (before->state == META_NODE_LIVE && before->incarnation == r->incarnation)
        return;
    announce_event(s, r->id, "", now,
                   &(struct meta_liveness_event){.incarnation = r->incarnation,
                                                 .state = META_LIVENESS_LIVE,
                                                 .from = before->state,
                                                 .from_incarnation = before->incarnation});
}

struct lapsing {
    struct meta_service *s;
    uint64_t now;
};

static void announce_lapse(void *user, const struct meta_lapse *lapse)
{
    const struct lapsing *l = user;
    if (lapse->elsewhere)
        return;
    l->s->count.expiries++;
    const bool heard = lapse->from == META_NODE_LIVE;
    announce_event(l->s, lapse->id, "", l->now,
                   &(struct meta_liveness_event){
                       .incarnation = lapse->incarnation,
                       .state = META_LIVENESS_EXPIRED,
                       .from = lapse->from,
                       .from_incarnation = lapse->incarnation,
                       .heard_ms = heard ? meta_service_wall_ms(l->s, lapse->heard) : 0});
}

void meta_service_heard_expiry(struct meta_service *s, const struct meta_lapse *lapse, uint64_t now)
{
    announce_lapse(&(struct lapsing){s, now}, lapse);
}

void meta_service_lapse(struct meta_service *s, uint64_t now)
{
    const uint64_t before = s->count.expiries;
    uint32_t lapsed =
        meta_directory_lapse(s->directory, now, announce_lapse, &(struct lapsing){s, now});
    if (lapsed == 0)
        return;
    s->names_stale = true;
    if (s->responders != NULL)
        meta_responders_sweep(s->responders, is_live, s);
    if (s->count.expiries != before)
        meta_world_log(s->world, BASE_LOG_INFO, "nodes expired", "count=%" PRIu64,
                       s->count.expiries - before);
}

/* ---- what clients ask for */

void meta_service_store_failed(struct meta_service *s, const char *what, const char *name,
                               uint64_t now, const struct base_errbuf *err)
{
    uint32_t suppressed;
    s->count.store_errors++;
    if (base_log_allow(&s->store_log, now, 10 * BASE_NS_PER_S, 10, &suppressed))
        meta_world_log(s->world, BASE_LOG_ERROR, "the store failed",
                       "while=\"%s\" name=%s error=\"%s\" suppressed=%u", what, name, err->text,
                       suppressed);
}

int meta_service_check(struct meta_service *s, const struct meta_registration *r,
                       struct meta_verdict *verdict)
{
    int status = meta_directory_check(s->directory, r, verdict);
    s->count.stale += status == -ESTALE;
    s->count.taken += status == -EEXIST;
    s->count.full += status == -ENOSPC;
    return status;
}

/* Of pools that the node no longer has; of a life before all. */
static void drop_readers(struct meta_service *s, const struct meta_registration *r,
                         const struct meta_verdict *verdict)
{
    uint16_t pools[META_STORE_NODE_ENDPOINTS];
    uint32_t count = verdict->known_incarnation == r->incarnation ? r->endpoint_count : 0;
    for (uint32_t i = 0; i < count; i++)
        pools[i] = r->endpoint[i].pool;
    meta_responders_drop(s->responders, r->id, pools, count);
}

void meta_service_registered(struct meta_service *s, const struct meta_registration *r,
                             const struct meta_verdict *verdict, uint64_t now)
{
    struct meta_node_view before = {.state = META_NODE_FREE};
    (void)meta_directory_show(s->directory, r->id, now, &before);
    meta_directory_apply(s->directory, r, now);
    s->names_stale |= before.state != META_NODE_LIVE || before.incarnation != r->incarnation;
    announce_live(s, &before, r, now);
    if (s->responders != NULL)
        drop_readers(s, r, verdict);
    s->count.registrations++;
    if (verdict->write)
        meta_world_log(s->world, BASE_LOG_INFO, "node registered",
                       "node=%s incarnation=%u endpoints=%u", r->id, r->incarnation,
                       r->endpoint_count);
}

void meta_service_removed(struct meta_service *s, const char *id, const char *who, uint64_t now)
{
    struct meta_node_view view;
    if (meta_directory_show(s->directory, id, 0, &view) != 0)
        return;
    (void)meta_directory_remove(s->directory, id);
    s->names_stale = true;
    announce_event(s, id, who, now,
                   &(struct meta_liveness_event){.incarnation = view.incarnation,
                                                 .state = META_LIVENESS_REMOVED,
                                                 .from = view.state,
                                                 .from_incarnation = view.incarnation});
    if (s->responders != NULL)
        meta_responders_drop(s->responders, id, NULL, 0);
    s->count.removals++;
    meta_world_log(s->world, BASE_LOG_INFO, "node removed", "node=%s", id);
}

/* ---- metrics */

static void write_labelled(struct base_text *out, const char *name, const char *label,
                           const char *value, uint64_t number)
{
    struct base_metric_label labels[] = {{label, value}};
    base_metric_u64(out, name, labels, 1, number);
}

static void reader_metrics(struct meta_responders_counts c, struct base_text *out)
{
    base_metric_one(out, "kedge_metad_table_responders", BASE_METRIC_GAUGE,
                    "Nodes' pools that read the table through a queue pair of their own.", c.kept);
    base_metric_one(out, "kedge_metad_table_responders_spare", BASE_METRIC_GAUGE,
                    "Queue pairs that are ready for the next reader.", c.spare);
    base_metric_head(out, "kedge_metad_table_responder_failures_total", BASE_METRIC_COUNTER,
                     "Registrations that got no queue pair for their reader.");
    write_labelled(out, "kedge_metad_table_responder_failures_total", "why", "full", c.refused);
    write_labelled(out, "kedge_metad_table_responder_failures_total", "why", "device", c.failed);
    write_labelled(out, "kedge_metad_table_responder_failures_total", "why", "given_up",
                   c.given_up);
}

static void setting_metrics(const struct meta_service *s, struct base_text *out)
{
    base_metric_head(out, "kedge_metad_settings", BASE_METRIC_GAUGE, "What operators have set.");
    for (int kind = 0; kind < META_RESOURCE_KINDS; kind++)
        write_labelled(out, "kedge_metad_settings", "kind",
                       meta_resource_kind_name((enum meta_resource_kind)kind),
                       meta_resources_count(s->resources, (enum meta_resource_kind)kind));
    base_metric_one(out, "kedge_metad_settings_revision", BASE_METRIC_GAUGE, "Of the last change.",
                    meta_resources_revision(s->resources));
    base_metric_one(out, "kedge_metad_changes_total", BASE_METRIC_COUNTER, "Changes by operators.",
                    s->count.changes);
    base_metric_one(
        out, "kedge_metad_nodes_behind", BASE_METRIC_GAUGE,
        "Live nodes whose agents have not said that the last change is in force.",
        meta_directory_count_behind(s->directory, meta_resources_revision(s->resources)));
    base_metric_one(out, "kedge_metad_watches", BASE_METRIC_GAUGE, "Streams that are open.",
                    s->watch_count);
}

static void ask_metrics(const struct meta_service *s, struct base_text *out)
{
    const struct meta_queries_counters *n = &s->queries.n;
    base_metric_one(out, "kedge_metad_queries_open", BASE_METRIC_GAUGE,
                    "Queries to agents that wait for their answers.", s->queries.count);
    base_metric_one(out, "kedge_metad_queries_total", BASE_METRIC_COUNTER,
                    "Queries that were sent to agents.", n->asked);
    base_metric_head(out, "kedge_metad_answers_total", BASE_METRIC_COUNTER,
                     "What agents answered.");
    write_labelled(out, "kedge_metad_answers_total", "what", "sensible",
                   n->answered - n->senseless);
    write_labelled(out, "kedge_metad_answers_total", "what", "senseless", n->senseless);
    write_labelled(out, "kedge_metad_answers_total", "what", "unwanted", n->unwanted);
    base_metric_head(out, "kedge_metad_queries_failed_total", BASE_METRIC_COUNTER,
                     "Queries that got no answer, or could not be sent.");
    write_labelled(out, "kedge_metad_queries_failed_total", "why", "unreachable", n->unreachable);
    write_labelled(out, "kedge_metad_queries_failed_total", "why", "late", n->late);
    write_labelled(out, "kedge_metad_queries_failed_total", "why", "too_many", n->refused);
}

static void store_metrics(const struct meta_service *s, struct base_text *out)
{
    base_metric_one(out, "kedge_metad_store_waiting", BASE_METRIC_GAUGE,
                    "Changes that are with the store, or wait for it.", s->writes.count);
    base_metric_one(out, "kedge_metad_registrations_waiting", BASE_METRIC_GAUGE,
                    "Of these, registrations.", s->writes.registrations);
    base_metric_one(out, "kedge_metad_registrations_put_off_total", BASE_METRIC_COUNTER,
                    "Registrations that found no room and were told when to come again.",
                    s->count.put_off);
    base_metric_one(out, "kedge_metad_registrations_left_total", BASE_METRIC_COUNTER,
                    "Registrations whose agents had hung up before they were read.", s->count.left);
    base_metric_one(out, "kedge_metad_store_errors_total", BASE_METRIC_COUNTER,
                    "Writes that the store refused.", s->count.store_errors);
    base_metric_head(out, "kedge_metad_store_transaction_seconds", BASE_METRIC_HISTOGRAM,
                     "How long transactions were with the store.");
    base_latency_print(out, "kedge_metad_store_transaction_seconds", NULL, 0, &s->count.store_took);
    base_metric_one(out, "kedge_metad_store_failing", BASE_METRIC_GAUGE,
                    "Whether the store has failed to do what it was given last.",
                    s->writes.why.text[0] != '\0');
}

static void http_metrics(const struct meta_service_counters *c, struct base_text *out)
{
    base_metric_one(out, "kedge_metad_http_refused_connections_total", BASE_METRIC_COUNTER,
                    "Connections above a bound.", c->http_refused);
    base_metric_one(out, "kedge_metad_http_rejected_requests_total", BASE_METRIC_COUNTER,
                    "Requests that were malformed, too large, too slow or too many.",
                    c->http_rejected);
    base_metric_one(out, "kedge_metad_http_limited_total", BASE_METRIC_COUNTER,
                    "Connections and requests above a bound of their client.", c->http_limited);
    base_metric_one(out, "kedge_metad_http_over_time_total", BASE_METRIC_COUNTER,
                    "Of these, requests of readers that had taken too much of the thread's time.",
                    c->http_over_time);
    base_metric_one(out, "kedge_metad_http_dropped_connections_total", BASE_METRIC_COUNTER,
                    "Connections without a token that made room for others.", c->http_dropped);
    base_metric_head(out, "kedge_metad_http_connections", BASE_METRIC_GAUGE,
                     "Open connections, by what their last request has shown.");
    static const char *const shown[] = {"nothing", "reader", "more"};
    for (int i = 0; i < 3; i++)
        write_labelled(out, "kedge_metad_http_connections", "shown", shown[i],
                       c->http_connections[i]);
    base_metric_head(out, "kedge_metad_http_requests_total", BASE_METRIC_COUNTER,
                     "Requests answered, by status.");
    for (int status = 0; status < 600; status++) {
        char code[] = {(char)('0' + status / 100), (char)('0' + status / 10 % 10),
                       (char)('0' + status % 10), '\0'};
        if (c->http[status] > 0)
            write_labelled(out, "kedge_metad_http_requests_total", "code", code, c->http[status]);
    }
}

static void tls_metrics(const struct meta_service *s, struct base_text *out)
{
    base_metric_one(
        out, "kedge_metad_tls_certificate_expiry_timestamp_seconds", BASE_METRIC_GAUGE,
        "When the metaserver's certificate ends, in seconds since 1970; 0: it has none.",
        (uint64_t)s->tls_expires_s);
    base_metric_one(out, "kedge_metad_tls_handshakes_failed_total", BASE_METRIC_COUNTER,
                    "Connections that ended before a request.", s->count.tls_handshakes_failed);
    base_metric_one(out, "kedge_metad_tls_refused_total", BASE_METRIC_COUNTER,
                    "Handshakes and certificates of clients that were refused.",
                    s->count.tls_refused);
}

void meta_service_metrics(const struct meta_service *s, struct base_text *out)
{
    const struct meta_service_counters *c = &s->count;
    struct meta_directory_counts now = meta_directory_count(s->directory);
    const struct schema_table_desc *table = meta_directory_table(s->directory);
    base_metric_build_info(out, "kedge_metad_build_info");
    base_metric_one(out, "kedge_metad_log_dropped_total", BASE_METRIC_COUNTER,
                    "Lines of the log that nobody took in time.", c->log_dropped);
    base_metric_head(out, "kedge_metad_nodes", BASE_METRIC_GAUGE, "Nodes that are known.");
    write_labelled(out, "kedge_metad_nodes", "state", "live", now.live);
    write_labelled(out, "kedge_metad_nodes", "state", "waiting", now.waiting);
    write_labelled(out, "kedge_metad_nodes", "state", "expired", now.expired);
    const struct meta_reach_counts reach = meta_directory_reach_count(s->directory);
    base_metric_one(out, "kedge_metad_nodes_unreachable", BASE_METRIC_GAUGE,
                    "Live nodes that two and more, and most of those that tried, do not reach.",
                    reach.unreachable);
    base_metric_one(out, "kedge_metad_table_tried", BASE_METRIC_GAUGE,
                    "Nodes that say whether they can READ this metaserver's table.",
                    reach.table_tried);
    base_metric_one(out, "kedge_metad_table_failed", BASE_METRIC_GAUGE,
                    "Of them, those that cannot.", reach.table_failed);
    base_metric_one(out, "kedge_metad_endpoints", BASE_METRIC_GAUGE, "Endpoints that nodes own.",
                    now.endpoints);
    base_metric_one(out, "kedge_metad_table_slots", BASE_METRIC_GAUGE,
                    "Homes in the endpoint table.", (uint64_t)1 << table->log2_slots);
    base_metric_one(out, "kedge_metad_table_live", BASE_METRIC_GAUGE,
                    "Records in the endpoint table.", now.published);
    base_metric_one(out, "kedge_metad_table_awaited", BASE_METRIC_GAUGE,
                    "Endpoints of the store whose agents have not registered them here yet.",
                    now.awaited);
    base_metric_one(out, "kedge_metad_registrations_total", BASE_METRIC_COUNTER,
                    "Registrations accepted.", c->registrations);
    base_metric_one(out, "kedge_metad_renewals_total", BASE_METRIC_COUNTER, "Leases renewed.",
                    c->renewals);
    base_metric_one(out, "kedge_metad_removals_total", BASE_METRIC_COUNTER,
                    "Nodes removed on request.", c->removals);
    base_metric_one(out, "kedge_metad_expiries_total", BASE_METRIC_COUNTER,
                    "Nodes whose lease ended.", c->expiries);
    base_metric_head(out, "kedge_metad_refused_total", BASE_METRIC_COUNTER,
                     "Registrations and renewals refused.");
    write_labelled(out, "kedge_metad_refused_total", "why", "stale", c->stale);
    write_labelled(out, "kedge_metad_refused_total", "why", "taken", c->taken);
    write_labelled(out, "kedge_metad_refused_total", "why", "full", c->full);
    write_labelled(out, "kedge_metad_refused_total", "why", "reader", c->readerless);
    if (s->responders != NULL)
        reader_metrics(meta_responders_count(s->responders), out);
    if (s->resources != NULL)
        setting_metrics(s, out);
    ask_metrics(s, out);
    store_metrics(s, out);
    http_metrics(c, out);
    tls_metrics(s, out);
}
