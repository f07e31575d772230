/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent_process.h"
#include "base/assert.h"
#include "base/clock.h"
#include "calls.h"
#include "cluster_state.h"
#include "common_looks.h"
#include "common_store.h"
#include "device_provider.h"
#include "disk.h"
#include "faults.h"
#include "history.h"
#include "intruder.h"
#include "kept.h"
#include "ledger.h"
#include "liar.h"
#include "lives.h"
#include "metad_process.h"
#include "operators.h"
#include "os.h"
#include "os_calls.h"
#include "post_looks.h"
#include "published.h"
#include "random.h"
#include "refusals.h"
#include "registrations.h"
#include "sqlite_files.h"
#include "trace.h"

enum {
    PROGRESS_S = 60,      /* in the last part of which every worker has a success */
    STEPS_MOST = 1000000, /* at one time */
    PACKET_LIFE_MS = 400, /* in two of three */
    SHORT_LIFE_MS = 50,
    ECHO_MS = 20,
    STALL_PPM = 20000, /* of READs take STALL_MS at most, in many pieces */
    STALL_MS = 20,
    HERD_S = 4,          /* between two herds, on average */
    END_S = 60,          /* within this, everything has ended that was told to */
    INTRUDERS_APART = 3, /* hosts */
    HEED_PPM = 300000    /* of turns a worker heeds operators */
};

/* Of packets, when nothing is wrong. */
static const uint32_t REPEATS_PPM[] = {0, 50000, 300000};

struct cluster cluster;

static uint64_t next_of_net(void *user)
{
    return sim_net_next_due(user);
}

static void run_net(void *user, uint64_t until_ns)
{
    sim_net_run_until(user, until_ns);
}

/* Nobody does anything in it, but by itself. */
static bool is_at_rest(void)
{
    return cluster.settings.workers == 0 || cluster.settings.pause_ns >= CLUSTER_NO_TURN_NS;
}

/* ---- its beginning */

struct node *cluster_node(uint32_t number)
{
    BASE_ASSERT(number < cluster.count);
    return &cluster.node[number];
}

static void name_host(struct play_host *h, const char *what, uint32_t number)
{
    if (number < 26)
        (void)snprintf(h->name, sizeof h->name, "%s-%c", what, (char)('a' + number));
    else
        (void)snprintf(h->name, sizeof h->name, "%s-%u", what, number);
}

static void begin_host(struct node *n, uint32_t number)
{
    n->host.number = number;
    n->host.clock_began_ns = BASE_NS_PER_S * play_random_between(&cluster.random, 10, 100000);
    n->host.wall_ms = 1750000000000ull + base_prng_below(&cluster.random, 2000);
    const uint32_t most = cluster_clock_ppm(number);
    n->host.clock_ppm =
        (int32_t)play_random_between(&cluster.random, 0, 2 * (uint64_t)most) - (int32_t)most;
    n->host.disk = play_disk_new(cluster.settings.seed, number);
    BASE_ASSERT(n->host.disk != NULL);
}

static void start_agent(void *user)
{
    cluster_start_agent(user);
}

static void start_metad(void *user)
{
    cluster_start_metad(user);
}

/* Who shares a store may be asked in any order. */
uint32_t cluster_metaserver_of(const struct node *n, uint32_t place)
{
    const uint32_t turn = cluster.settings.shared ? n->host.number : 0;
    return cluster.settings.nodes + (place + turn) % cluster.settings.metaservers;
}

void cluster_start_agent(struct node *n)
{
    n->gone_ns = n->overflowed_ns = 0;
    struct play_agent_settings s = {.workers =
                                        cluster.settings.workers > 0 ? cluster.settings.workers : 1,
                                    .metaservers = cluster.settings.metaservers,
                                    .arena_bytes = cluster.settings.arena_bytes,
                                    .window = cluster.window,
                                    .queue_pairs_ahead = cluster.queue_pairs_ahead,
                                    .tenants = cluster.tenants + cluster.intruders};
    (void)snprintf(s.node, sizeof s.node, "%s", n->host.name);
    cluster_gid(n->host.number, s.gid);
    for (uint32_t i = 0; i < s.metaservers; i++)
        (void)snprintf(s.metaserver[i], sizeof s.metaserver[i], "http://%s:7480",
                       cluster_node(cluster_metaserver_of(n, i))->host.name);
    for (uint32_t i = 0; i < s.tenants; i++) {
        const uint32_t uid = play_tenant_uid(i);
        s.tenant[i] = (struct agent_tenant_config){.uids = {{uid, uid + 999}},
                                                   .uid_ranges = 1,
                                                   .sessions = s.workers,
                                                   .memory = 1ull << 30};
        (void)snprintf(s.tenant[i].name, sizeof s.tenant[i].name, "%s", play_tenant_name(i));
    }
    cluster_give_transport(n->host.number, &s);
    play_published_new_life(n->host.number);
    n->agent = play_agent_start(&n->host, &s, cluster.settings.seed);
}

void cluster_start_metad(struct node *n)
{
    n->overflowed_ns = 0;
    struct play_metad_settings s = {.max_nodes = cluster.settings.nodes + 8,
                                    .node_lease_ns = CLUSTER_LEASE_S * BASE_NS_PER_S,
                                    .shared = cluster.settings.shared,
                                    .number = n->host.number - cluster.settings.nodes};
    cluster_gid(n->host.number, s.gid);
    (void)snprintf(s.authority, sizeof s.authority, "%s:7480", n->host.name);
    n->metad = play_metad_start(&n->host, &s, cluster.settings.seed);
}

void cluster_start_worker(struct node *n, uint32_t number)
{
    struct play_worker_settings s = {
        .tenant = number % cluster.tenants + 1,
        .uid = play_tenant_uid(number % cluster.tenants),
        .pause_ns = cluster.settings.pause_ns,
        .operation_ns = cluster.settings.operation_ns,
        .buffer_bytes = cluster.settings.arena_bytes < CLUSTER_ARENA_USUAL ? WORKER_BUFFERS_LEAST
                                                                           : WORKER_BUFFERS_USUAL,
        .in_parts = cluster.settings.hybrid,
        .heed_ppm = cluster.operators != NULL ? HEED_PPM : 0,
        .calm_ns = cluster.calm_ns,
        .change_ppm = is_at_rest() ? 0 : cluster.settings.change_ppm,
        .batches = cluster.batches,
        .messages = cluster.settings.messages,
        .large = cluster.settings.arena_bytes >= CLUSTER_ARENA_USUAL,
        .by_descriptor = cluster.settings.messages && (number + n->host.number) % 2 == 1,
        .names = cluster.settings.shared,
        .tenants = cluster.tenants,
        .hostile = cluster.intruders && cluster.settings.messages ? cluster.tenants + 1 : 0,
        .no_atomics = cluster.device.no_atomics,
        .no_lease_only = cluster.suspends};
    char name[PLAY_NAME];
    play_agent_path(&n->host, s.socket, sizeof s.socket);
    (void)snprintf(name, sizeof name, "worker-%u", number + 1);
    n->worker[number] = play_worker_start(&n->host, name, &s, cluster.settings.seed);
}

static void start_workers(void *user)
{
    struct node *n = user;
    for (uint32_t i = 0; i < cluster.settings.workers; i++)
        if (n->worker[i] == NULL)
            cluster_start_worker(n, i);
}

void cluster_start_all(struct node *n)
{
    const bool is_metad = n->host.number >= cluster.settings.nodes;
    if (is_metad && n->metad == NULL)
        cluster_start_metad(n);
    if (!is_metad && n->agent == NULL)
        cluster_start_agent(n);
    if (!is_metad)
        start_workers(n);
}

static void begin_node(struct node *n, void (*start)(void *user), uint64_t most_ns)
{
    n->begin = (struct play_event){.happen = start, .user = n};
    play_event_after(&n->begin, base_prng_below(&cluster.random, most_ns));
}

static void begin_cluster(void)
{
    const struct play_cluster_settings *s = &cluster.settings;
    for (uint32_t i = 0; i < cluster.count; i++) {
        struct node *n = &cluster.node[i];
        const bool is_metad = i >= s->nodes;
        begin_host(n, i);
        name_host(&n->host, is_metad ? "metad" : "node", is_metad ? i - s->nodes : i);
        if (is_metad) {
            begin_node(n, start_metad, BASE_NS_PER_S / 2);
        } else {
            begin_node(n, start_agent, 2 * BASE_NS_PER_S);
            n->begin_workers = (struct play_event){.happen = start_workers, .user = n};
            play_event_at(&n->begin_workers, 3 * BASE_NS_PER_S);
        }
    }
}

/* Devices have windows in half of all clusters, narrow ones, and few queue pairs that are ready. */
static void choose_settings(void)
{
    struct base_prng *r = &cluster.random;
    cluster.rc = base_prng_below(r, 2) == 0 && !cluster.settings.hybrid;
    cluster.queue_pairs_ahead = 1 + (uint32_t)base_prng_below(r, 8);
    if (base_prng_below(r, 2) == 0)
        cluster.window = (struct agent_limits){.bytes = 4096ull << base_prng_below(r, 5),
                                               .ops = 1 + base_prng_below(r, 32)};
    cluster.good_link = (struct sim_link){
        .delay_ns = 2000, .jitter_ns = 1000, .repeat_ppm = REPEATS_PPM[base_prng_below(r, 3)]};
    cluster.herds = base_prng_below(r, 4) != 0 && !is_at_rest();
}

static void make_world(void)
{
    const struct play_cluster_settings *s = &cluster.settings;
    const struct sim_hooks hooks = cluster_hooks();
    const struct play_calls_network calls = {.delay_ns = 200000, .jitter_ns = 100000};
    cluster_choose_devices();
    json_set_alloc_funcs(os_malloc, os_free);
    json_object_seed(1);
    cluster.packet_life_ns =
        (base_prng_below(&cluster.random, 3) == 0 ? SHORT_LIFE_MS : PACKET_LIFE_MS) *
        BASE_NS_PER_MS;
    cluster.net = sim_net_new(s->seed, &hooks, cluster.packet_life_ns);
    BASE_ASSERT(cluster.net != NULL &&
                sim_link_set(cluster.net, SIM_ANY_NODE, SIM_ANY_NODE, &cluster.good_link) == 0);
    if (s->faults)
        sim_net_stall_reads(cluster.net, STALL_PPM, STALL_MS * BASE_NS_PER_MS);
    const struct play_source source = {next_of_net, run_net, cluster.net};
    play_events_init(&source);
    play_trace_init(s->trace, s->trace_from_ns);
    os_init();
    play_sqlite_init(s->seed);
    play_kept_init();
    play_ledger_init();
    play_lives_init();
    play_refusals_init();
    play_calls_init(s->seed, &calls);
    play_history_begin();
    play_registrations_begin();
    play_published_begin(cluster.calm_ns);
    if (s->shared)
        play_common_begin(s->seed);
    play_common_looks_begin();
    play_provider_init(cluster.net, &cluster.device);
}

/* ---- its time */

static void look_at_leak(const struct play_process *p)
{
    if (p->ended && os_bytes_of(p) != 0)
        play_violation(p->name, "%llu bytes of memory are left when it has ended",
                       (unsigned long long)os_bytes_of(p));
}

static bool has_ended(const struct node *n)
{
    return (n->agent != NULL && n->agent->process->ended) ||
           (n->metad != NULL && n->metad->process->ended);
}

/* What ends by itself its host begins anew, a second later. */
static void supervise(void *user)
{
    (void)user;
    for (uint32_t i = 0; i < cluster.count; i++) {
        struct node *n = &cluster.node[i];
        if (i < cluster.settings.nodes) {
            cluster_look_at_dead(n);
            cluster_look_at_follower(n);
            cluster_look_at_clock(n);
            cluster_look_at_memory(n);
            if (n->agent != NULL)
                play_agent_look_at_rest(n->agent);
        }
        if (n->metad != NULL)
            play_metad_look_at_rest(n->metad);
        if (n->metad != NULL && cluster.settings.shared)
            play_common_look_at(n->metad);
        cluster_look_at_device(n);
        if (!has_ended(n))
            continue;
        look_at_leak(n->agent != NULL ? n->agent->process : n->metad->process);
        if (n->agent != NULL) {
            play_agent_kill(n->agent);
            cluster_start_agent(n);
        } else {
            play_metad_kill(n->metad);
            cluster_start_metad(n);
        }
    }
    play_published_look_at_rest();
    play_event_after(&cluster.supervise, BASE_NS_PER_S);
}

static void for_workers(void (*what)(struct node *n, uint32_t number))
{
    for (uint32_t i = 0; i < cluster.settings.nodes; i++)
        for (uint32_t k = 0; k < cluster.settings.workers; k++)
            if (cluster.node[i].worker[k] != NULL)
                what(&cluster.node[i], k);
}

static void gather_worker(struct node *n, uint32_t number)
{
    play_worker_call(n->worker[number]);
}

/* All workers go on at once, as if something had told them to: what one does meets what others do.
 */
static void gather_herd(void *user)
{
    (void)user;
    for_workers(gather_worker);
    play_event_after(&cluster.herd,
                     base_prng_below(&cluster.random, 3) == 0 /* what has broken is wanted again */
                         ? base_prng_below(&cluster.random, ECHO_MS * BASE_NS_PER_MS)
                         : play_random_wait(&cluster.random, HERD_S * BASE_NS_PER_S));
}

/* ---- hostile workers */

/* On some hosts, until nothing is to go wrong any more. */
static void begin_intruders(void)
{
    const struct play_cluster_settings *s = &cluster.settings;
    struct play_intruder_settings i = {.uid = play_tenant_uid(cluster.tenants),
                                       .messages = s->messages,
                                       .tenants = cluster.tenants,
                                       .until_ns = s->duration_ns - CLUSTER_CALM_S * BASE_NS_PER_S};
    if (!cluster.intruders || s->duration_ns <= (CLUSTER_FIRST_S + CLUSTER_CALM_S) * BASE_NS_PER_S)
        return;
    for (uint32_t k = 0; k < s->nodes && k < 2 * INTRUDERS_APART; k += INTRUDERS_APART) {
        play_agent_path(&cluster.node[k].host, i.socket, sizeof i.socket);
        cluster.node[k].intruder = play_intruder_begin(&cluster.node[k].host, &i, s->seed);
        BASE_ASSERT(cluster.node[k].intruder != NULL);
    }
}

static void end_intruder(struct node *n)
{
    if (n->intruder != NULL)
        play_intruder_end(n->intruder);
    n->intruder = NULL;
}

static void run_until(uint64_t until_ns)
{
    uint64_t now_ns = play_now_ns(), steps = 0;
    while (play_violated() == NULL && play_events_step(until_ns)) {
        steps = play_now_ns() == now_ns ? steps + 1 : 0;
        now_ns = play_now_ns();
        if (steps == STEPS_MOST)
            play_violation("time", "it stands still: %d events at once", STEPS_MOST);
    }
}

static void look_at_progress(struct node *n, uint32_t number)
{
    struct play_worker *w = n->worker[number];
    if (play_liar_is(n->host.number))
        return;
    if (play_worker_counts(w)->last_success_ns + PROGRESS_S * BASE_NS_PER_S < play_now_ns())
        play_violation(play_worker_process(w)->name,
                       "nothing has gone wrong for %d s, and no request succeeded", PROGRESS_S);
}

/* ---- its end */

static void stop_worker(struct node *n, uint32_t number)
{
    play_worker_stop(n->worker[number]);
}

static uint32_t workers_left;

static void count_left(struct node *n, uint32_t number)
{
    workers_left += !play_worker_has_ended(n->worker[number]);
}

static bool are_workers_left(void)
{
    workers_left = 0;
    for_workers(count_left);
    return workers_left > 0;
}

static bool are_daemons_left(uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        const struct node *n = &cluster.node[i];
        if ((n->agent != NULL && !n->agent->process->ended) ||
            (n->metad != NULL && !n->metad->process->ended))
            return true;
    }
    return false;
}

static void end_worker(struct node *n, uint32_t number)
{
    cluster_note_worker(n->worker[number]);
    look_at_leak(play_worker_process(n->worker[number]));
    play_worker_kill(n->worker[number]);
    n->worker[number] = NULL;
}

void cluster_note_worker(struct play_worker *w)
{
    const struct play_worker_counts *c = play_worker_counts(w);
    uint64_t *sum = (uint64_t *)&cluster.gone;
    for (size_t i = 0; i < sizeof *c / sizeof *sum; i++)
        sum[i] += ((const uint64_t *)c)[i];
}

static void await_end(bool (*left)(void), const char *who)
{
    const uint64_t until_ns = play_now_ns() + END_S * BASE_NS_PER_S;
    while (left() && play_violated() == NULL)
        if (!play_events_step(until_ns)) {
            play_violation(who, "some have not ended %d s after they were told to", END_S);
            return;
        }
}

static bool are_agents_left(void)
{
    return are_daemons_left(0, cluster.settings.nodes);
}

static bool are_metads_left(void)
{
    return are_daemons_left(cluster.settings.nodes, cluster.count);
}

static void stop_all(void)
{
    for_workers(stop_worker);
    await_end(are_workers_left, "workers");
    run_until(play_now_ns() + CLUSTER_GONE_S * BASE_NS_PER_S);
    cluster_look_at_agents();
    for (uint32_t i = 0; i < cluster.settings.nodes; i++)
        if (cluster.node[i].agent != NULL)
            play_agent_stop(cluster.node[i].agent);
    await_end(are_agents_left, "agents");
    for (uint32_t i = cluster.settings.nodes; i < cluster.count; i++)
        if (cluster.node[i].metad != NULL)
            play_metad_stop(cluster.node[i].metad);
    await_end(are_metads_left, "metaservers");
}

static void end_all(void)
{
    for_workers(end_worker);
    for (uint32_t i = 0; i < cluster.count; i++) {
        struct node *n = &cluster.node[i];
        end_intruder(n);
        play_event_cancel(&n->begin);
        play_event_cancel(&n->begin_workers);
        if (n->agent != NULL) {
            look_at_leak(n->agent->process);
            play_agent_kill(n->agent);
        }
        if (n->metad != NULL) {
            look_at_leak(n->metad->process);
            play_metad_kill(n->metad);
        }
        play_disk_free(n->host.disk);
    }
}

static void fill_result(struct play_cluster_result *r)
{
    r->violation = play_violated();
    r->hash = play_trace_hash() ^ sim_net_hash(cluster.net);
    r->simulated_ns = play_now_ns();
    r->events = play_events_count();
    r->net_events = sim_net_events(cluster.net);
    r->accesses = play_ledger_accesses();
    r->merged = play_posts_merged();
    r->lies = play_lies();
    r->faults = cluster.faults;
    r->workers = cluster.gone;
}

static void set_good_link(uint32_t from, uint32_t to)
{
    const int status = sim_link_set(cluster.net, from, to, &cluster.good_link);
    BASE_ASSERT(status == 0);
}

/* Of links that a fault was of each has what it was given when that was over. */
static void repeat_nothing(void)
{
    cluster.good_link.repeat_ppm = 0;
    set_good_link(SIM_ANY_NODE, SIM_ANY_NODE);
    for (uint32_t from = 0; from < cluster.count; from++)
        for (uint32_t to = 0; to < cluster.count; to++)
            if (sim_link_get(cluster.net, from, to).repeat_ppm != 0)
                set_good_link(from, to);
}

/* Until all that goes wrong is over. With DC that packets come twice is some of it: a target that
 * refuses a READ that came twice ends the connection, and nobody tells the initiator. */
static void run_faulty(const struct play_cluster_settings *s)
{
    if (s->duration_ns <= CLUSTER_CALM_S * BASE_NS_PER_S)
        return;
    run_until(s->duration_ns - CLUSTER_CALM_S * BASE_NS_PER_S);
    sim_net_stall_reads(cluster.net, 0, 0);
    if (!cluster.rc)
        repeat_nothing();
}

void play_cluster_run(const struct play_cluster_settings *settings,
                      struct play_cluster_result *result)
{
    memset(&cluster, 0, sizeof cluster);
    cluster.settings = *settings;
    cluster.random = play_random_of(settings->seed, "cluster", 0);
    cluster.count = settings->nodes + settings->metaservers;
    cluster.node = calloc(cluster.count, sizeof *cluster.node);
    BASE_ASSERT(cluster.node != NULL);
    choose_settings();
    cluster.calm_ns = settings->duration_ns > PROGRESS_S * BASE_NS_PER_S
                          ? settings->duration_ns - PROGRESS_S * BASE_NS_PER_S
                          : PLAY_NEVER;
    cluster_choose_people();
    make_world();
    play_liar_begin(settings->seed, settings->liar ? settings->nodes : 0);
    begin_cluster();
    *result = (struct play_cluster_result){.violation = NULL};
    cluster.herd = (struct play_event){.happen = gather_herd};
    if (cluster.herds)
        play_event_after(&cluster.herd, BASE_NS_PER_S);
    cluster.supervise = (struct play_event){.happen = supervise};
    play_event_after(&cluster.supervise, BASE_NS_PER_S);
    cluster_begin_faults(result);
    cluster_begin_operators();
    begin_intruders();
    run_faulty(settings);
    run_until(settings->duration_ns);
    if (play_violated() == NULL && settings->duration_ns > PROGRESS_S * BASE_NS_PER_S &&
        !is_at_rest())
        for_workers(look_at_progress);
    play_event_cancel(&cluster.supervise);
    play_event_cancel(&cluster.herd);
    if (play_violated() == NULL)
        stop_all();
    cluster_end_operators();
    end_all();
    play_faults_end();
    fill_result(result);
    play_history_end();
    play_registrations_end();
    play_published_end();
    if (settings->shared)
        play_common_end();
    play_ledger_fini();
    play_lives_fini();
    play_kept_fini();
    play_events_fini();
    sim_net_free(cluster.net);
    play_refusals_fini();
    (void)os_fini();
    free(cluster.node);
}
