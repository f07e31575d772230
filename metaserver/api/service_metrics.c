/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver tells Prometheus. */
#include "base/clock.h"
#include "base/metrics.h"
#include "metaserver/directory_reach.h"
#include "metaserver/service.h"
#include "service_private.h"

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
    base_metric_one(out, "kedge_metad_table_responders_taken_total", BASE_METRIC_COUNTER,
                    "Queue pairs of further lanes that first lanes needed.", c.taken);
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
                    meta_service_is_read_only(s));
}

static void hearing_metrics(const struct meta_service *s, struct base_text *out)
{
    const struct meta_hearing *h = &s->hearing;
    const bool lags = h->shared && h->heard_ns != 0 && s->at > h->heard_ns;
    const uint64_t heard_ns = lags ? s->at - h->heard_ns : 0;
    base_metric_one(out, "kedge_metad_store_behind", BASE_METRIC_GAUGE,
                    "Whether others may have written to the store what is not here yet.",
                    meta_service_is_behind(s, s->at));
    base_metric_one(out, "kedge_metad_store_open", BASE_METRIC_GAUGE,
                    "Whether everybody who reaches etcd may write the store.",
                    meta_service_is_open_to_all(s));
    base_metric_head(out, "kedge_metad_store_heard_seconds", BASE_METRIC_GAUGE,
                     "How long ago all was here that the store had; 0 where it never was, and of a "
                     "store of one's own.");
    base_metric_double(out, "kedge_metad_store_heard_seconds", NULL, 0,
                       (double)heard_ns / (double)BASE_NS_PER_S);
    base_metric_one(out, "kedge_metad_metaservers", BASE_METRIC_GAUGE,
                    "Metaservers of the store that live, as far as is known here.",
                    h->shared ? h->member_count : 1);
}

static void names_metrics(const struct meta_names *n, struct base_text *out)
{
    base_metric_one(out, "kedge_metad_region_names", BASE_METRIC_GAUGE,
                    "Names of regions that nodes have.", meta_names_count(n));
    base_metric_one(out, "kedge_metad_region_names_max", BASE_METRIC_GAUGE,
                    "As many as there is room for: max_names.", meta_names_max(n));
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
        (uint64_t)s->certificate[META_CERTIFICATE_API].expires_s);
    base_metric_one(out, "kedge_metad_store_certificate_expiry_timestamp_seconds",
                    BASE_METRIC_GAUGE,
                    "When the certificate ends that etcd is shown, likewise; 0: it is shown none.",
                    (uint64_t)s->certificate[META_CERTIFICATE_ETCD].expires_s);
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
    base_metric_one(out, "kedge_metad_endpoints_max", BASE_METRIC_GAUGE,
                    "As many as there is room for: max_endpoints.", now.max_endpoints);
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
    hearing_metrics(s, out);
    if (s->names != NULL)
        names_metrics(s->names, out);
    http_metrics(c, out);
    tls_metrics(s, out);
}
