/* SPDX-License-Identifier: Apache-2.0 */
#include "control/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "agent/lane_messages.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/ini.h"
#include "base/text.h"
#include "config_parse.h"
#include "fabric/providers.h"
#include "schema/resources.h"

struct option {
    const char *section, *key;
    enum agentd_type type;
    size_t offset;
    uint64_t min, max; /* texts and paths: max is the room, 0 for AGENT_TEXT; A_POOL_...: the
                        * field of the resource says them */
    const char *initial;
    const char *help;
};

#define AT(member) offsetof(struct agent_config, member)
#define OF(member) offsetof(struct agent_tenant_config, member)
#define MS         BASE_NS_PER_MS
#define MIB        (1ull << 20)

static const struct option options[] = {
    {"agent", "node", A_NAME, AT(node), 0, 0, NULL,
     "this node's id; the default is the host's name"},
    {"agent", "socket", A_PATH, AT(socket), 0, AGENT_SOCKET_PATH, "/run/kedge/agent.sock",
     "where workers attach"},
    {"agent", "admin_socket", A_PATH, AT(admin_socket), 0, AGENT_SOCKET_PATH,
     "/run/kedge/agent-admin.sock", "HTTP over a Unix socket: status, metrics"},
    {"agent", "state_dir", A_PATH, AT(state_dir), 0, 0, "/var/lib/kedge-agent",
     "where the incarnation and what operators have set are kept; it must exist"},
    {"agent", "metaservers", A_URLS, 0, 0, 0, "http://127.0.0.1:7480",
     "list of http://host:port or https://host:port, the nearest first"},
    {"agent", "token_file", A_TEXT, AT(token_file), 0, 0, "",
     "what it shows to metaservers: rdmactl token create; empty: nothing"},
    {"agent", "zone", A_TEXT, AT(zone), 0, 64, "",
     "where this node is, as a rack (empty: its label zone): metaservers of the same zone are "
     "asked first"},
    {"agent", "trusted_ca_file", A_PATH_OR_NONE, AT(trusted_ca_file), 0, 0, "",
     "authorities that metaservers' certificates are of, PEM; empty: the system's"},
    {"agent", "cert_file", A_PATH_OR_NONE, AT(cert_file), 0, 0, "",
     "certificate that it shows to metaservers, PEM; empty: none"},
    {"agent", "key_file", A_PATH_OR_NONE, AT(key_file), 0, 0, "", "and its key"},
    {"agent", "crl_file", A_PATH_OR_NONE, AT(crl_file), 0, 0, "",
     "metaservers' certificates that are revoked, PEM"},
    {"agent", "allow_plain_tokens", A_YES_NO, AT(allow_plain_tokens), 0, 0, "no",
     "yes: show the token over plain HTTP beyond loopback, where others see it"},
    {"agent", "prove_every", A_TIME, AT(prove_ns), 0, 60000 * MS, "5s",
     "try whether another node, or a metaserver, is reached; 0ms: never"},
    {"agent", "log_level", A_LEVEL, AT(log_level), 0, 0, "info", "error, warn, info or debug"},
    {"agent", "log_format", A_FORMAT, AT(log_format), 0, 0, "text",
     "text or json: lines, or one object a line"},
    {"fabric", "provider", A_TEXT, AT(provider), 0, 0, "soft",
     "soft: a software RNIC for one host; verbs: an RDMA device"},
    {"fabric", "device", A_TEXT, AT(device), 0, 0, "",
     "soft: its directory on tmpfs; verbs: as rdma link names it; empty: the first that does"},
    {"fabric", "port", A_COUNT, AT(port), 0, 255, "0", "of the device; 0: the first that is up"},
    {"fabric", "gid", A_GID, AT(gid), 0, 0, "::", "GID of this node; :: lets the provider choose"},
#define SERVICE(key, initial, help) {"fabric", key, A_SERVICE, AT(service), 0, 0, initial, help},
    FAB_SERVICE_SETTINGS(SERVICE){
        "fabric", "transport", A_TRANSPORT, AT(transport), 0, 0, "auto",
        "dc, rc, or auto: dc where the device has it; hybrid: dc, and rc beside it"},
    {"fabric", "dci_streams", A_COUNT, AT(dci_streams), 0, 16, "0",
     "dc: nodes that one DC initiator serves at a time, at most; 0: one after the other"},
    {"fabric", "ack_timeout", A_COUNT_OR_AUTO, AT(ack_timeout), 1, 21, "auto",
     "4.096 us * 2^this, 8 times: until a peer is taken for dead; auto: 8 on soft, 13 on verbs"},
    {"fabric", "fault", A_FAULT, AT(fault), 0, 0, "",
     "for tests: what goes wrong on purpose, such as loss=5%, seed=7 (of datagrams)"},
    {"fabric", "model", A_TEXT, AT(model), 0, 0, "",
     "soft: the card whose times it has, connectx-3, connectx-4 or connect-ib; empty: its own"},
    {"pool", "name", A_NAME, AT(pool), 0, AGENT_NAME, "default", "what workers may ask for"},
    {"pool", "number", A_COUNT, AT(pool_number), 0, 65535, "1", "the same on every node"},
    {"pool", "dcis", A_POOL_COUNT, AT(dcis), 0, 0, "8",
     "DC initiators; one of them is for probing"},
    {"pool", "spares", A_POOL_COUNT, AT(spares), 0, 0, "2",
     "DC initiators that replace broken ones"},
    {"pool", "sessions_ahead", A_POOL_COUNT, AT(sessions_ahead), 0, 0, "16", "sessions kept ready"},
    {"pool", "arenas_ahead", A_POOL_COUNT, AT(arenas_ahead), 0, 0, "16", "arenas kept ready"},
    {"pool", "arena_bytes", A_SIZE, AT(arena_bytes), 65536, 1ull << 32, "2MiB",
     "of a session's first arena"},
    {"pool", "connections", A_POOL_COUNT, AT(connections), 0, 0, "64",
     "rc, hybrid: endpoints with a connection of this node at a time; more take turns"},
    {"pool", "connections_per_peer", A_COUNT, AT(connections_per_peer), 1, 8, "1",
     "rc, hybrid: of these, that one endpoint may have; a virtual queue pair uses one of them"},
    {"pool", "responders", A_POOL_COUNT, AT(responders), 0, 0, "1024",
     "rc, hybrid: connections that other nodes may have to this one"},
    {"pool", "queue_pairs_ahead", A_POOL_COUNT, AT(queue_pairs_ahead), 0, 0, "8",
     "rc, hybrid: of either kind, kept ready"},
    {"pool", "mr_lease", A_POOL_PERIOD_OR_AUTO, AT(mr_lease_ns), 0, 0, "auto",
     "how long peers may believe in a memory region of this node; auto: 100ms on soft, 3000ms on "
     "verbs"},
    {"pool", "max_sessions", A_COUNT, AT(max_sessions), 1, 65536, "512", "of all tenants"},
    {"pool", "max_peers", A_COUNT, AT(max_peers), 1, 1 << 20, "16384", "endpoints known"},
    {"pool", "sq_slots", A_POWER, AT(sq_slots), 4, 65536, "256", "of a submission ring"},
    {"pool", "cq_slots", A_POWER, AT(cq_slots), 16, 65536, "1024", "of a completion ring"},
    {"pool", "max_vqps", A_COUNT, AT(max_vqps), 1, 65536, "256", "of one session"},
    {"pool", "max_inflight", A_COUNT, AT(max_inflight), 1, 65536, "256",
     "requests of one session at a time"},
    {"pool", "max_mrs", A_COUNT, AT(max_mrs), 1, 1 << 20, "16384",
     "memory regions of all sessions (512 bytes each); 256 of one session"},
    {"pool", "fenced_regions", A_COUNT, AT(fenced_regions), 0, 1 << 20, "1024",
     "of them, that wait for no lease when they go (KEDGE_MR_FENCED)"},
    {"pool", "regions_ahead", A_COUNT, AT(regions_ahead), 0, 64, "1",
     "registrations for regions to come, of each session's first arena and those kept ready, where "
     "regions have their own (any device but soft); each pins arena_bytes once more"},
    {"pool", "lanes", A_COUNT, AT(lanes), 1, LANE_POOL_LANES, "1",
     "threads that carry requests of this pool's workers, each with queue pairs of its own"},
    {"pool", "lane_cpu", A_CPUS, AT(lane_cpu), 0, 0, "any",
     "the CPU that the lane runs on, or a list of one for each; keep others off it (isolcpus)"},
    {"pool", "polling", A_POLLING, AT(polling), 0, 0, "adaptive",
     "adaptive: the lane sleeps after max_retry polls in vain; busy: never; event: after one"},
    {"pool", "max_retry", A_COUNT, AT(max_retry), 0, 1 << 20, "500",
     "adaptive: polls on end that find nothing before the lane sleeps"},
    {"pool", "merge", A_YES_NO, AT(merge), 0, 0, "yes",
     "adjacent requests of a tenant to one region become one work request"},
    {"pool", "cut", A_YES_NO, AT(cut), 0, 0, "no",
     "long READs and WRITEs are posted in pieces, which others go between"},
    {"pool", "messages", A_YES_NO, AT(messages), 0, 0, "no",
     "workers may send each other messages (kedge_msg.h)"},
    {"pool", "messages_near", A_YES_NO, AT(messages_near), 0, 0, "yes",
     "messages: those from one worker here to another one go by no device"},
    {"pool", "receives", A_COUNT, AT(receives), 16, LANE_RECEIVES_MOST, "256",
     "messages: of all peers, that may be on their way to this pool; 16448 bytes each"},
    {"pool", "window_policy", A_WINDOW_POLICY, AT(window_policy), 0, 0, "ladder",
     "ladder and delay find how many requests do best, beside what is set; static: none does"},
    {"pool", "window_bytes", A_SIZE, AT(window.bytes), 0, 1ull << 48, "0",
     "in flight at a time, of all workers; 0: no limit"},
    {"pool", "window_ops", A_COUNT, AT(window.ops), 0, 1 << 30, "0", "requests, of all workers"},
    {"pool", "destination_window_bytes", A_SIZE, AT(destination_window.bytes), 0, 1ull << 48, "0",
     "to any one endpoint"},
    {"pool", "destination_window_ops", A_COUNT, AT(destination_window.ops), 0, 1 << 30, "0",
     "requests to any one endpoint"},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct option tenant_options[] = {
    {"tenant NAME", "uids", A_UIDS, 0, 0, 0, "", "who belongs to it: www-data, 1000, 2000-2999"},
    {"tenant NAME", "token_sha256", A_HASHES, 0, 0, 0, "",
     "and who shows one of these: printf %s TOKEN | sha256sum"},
    {"tenant NAME", "socket", A_PATH_OR_NONE, OF(socket), 0, AGENT_SOCKET_PATH, "",
     "of its own, to attach at: whoever can open it belongs to it"},
    {"tenant NAME", "socket_mode", A_MODE, OF(socket_mode), 0, 0, "0660", "who can open that"},
    {"tenant NAME", "sessions", A_COUNT, OF(sessions), 1, 65536, "128", "at a time"},
    {"tenant NAME", "vqps", A_COUNT, OF(vqps), 0, 1ull << 32, "0", "of all sessions; 0: no bound"},
    {"tenant NAME", "memory", A_SIZE, OF(memory), 65536, 1ull << 48, "1GiB", "of all arenas"},
    {"tenant NAME", "mrs", A_COUNT, OF(mrs), 0, 1ull << 32, "0", "of all sessions; 0: no bound"},
    {"tenant NAME", "control_ops_per_s", A_COUNT, OF(control_ops_per_s), 0, 1 << 30, "0",
     "what workers ask for beside data operations; 0: no bound"},
    {"tenant NAME", "window_bytes", A_SIZE, OF(window.bytes), 0, 1ull << 48, "0",
     "in flight at a time; 0: no limit"},
    {"tenant NAME", "window_ops", A_COUNT, OF(window.ops), 0, 1 << 30, "0", "requests in flight"},
};
#define TENANT_OPTIONS (sizeof tenant_options / sizeof tenant_options[0])

/* While the file is read. */
struct reading {
    struct agent_config *config;
    bool seen[OPTIONS];
    bool tenant_seen[AGENT_TENANTS][TENANT_OPTIONS];
};

/* Of a setting that operators can say of pools too: "mr_lease" is their "mr_lease_ms". */
static const struct resource_field *field_of(const struct option *o)
{
    char name[32];
    snprintf(name, sizeof name, "%s%s", o->key, o->type == A_POOL_COUNT ? "" : "_ms");
    const struct resource_field *f = resource_field_find(resource_table(RESOURCE_POOL), name);
    BASE_ASSERT(f != NULL);
    return f;
}

static int set_option(struct agent_config *config, struct agent_tenant_config *tenant,
                      const struct option *o, const char *value, struct base_errbuf *must)
{
    if (o->type == A_URLS)
        return agentd_set_urls(config, value, must);
    if (o->type == A_SERVICE)
        return fab_service_set(&config->service, o->key, value, must);
    if (o->type == A_UIDS)
        return agentd_set_uids(tenant, value, must);
    if (o->type == A_HASHES)
        return agentd_set_hashes(tenant, value, must);
    if (o->type == A_CPUS)
        return agentd_set_cpus(&config->lane_cpu, value, must);
    char *at = (tenant != NULL ? (char *)tenant : (char *)config) + o->offset;
    if (o->type == A_POOL_COUNT || o->type == A_POOL_PERIOD_OR_AUTO) {
        const struct resource_field *f = field_of(o);
        const uint64_t unit = o->type == A_POOL_COUNT ? 1 : MS;
        return agentd_set_value(o->type == A_POOL_COUNT ? A_COUNT : A_TIME_OR_AUTO, at,
                                f->min * unit, f->max * unit, value, must);
    }
    return agentd_set_value(o->type, at, o->min, o->max, value, must);
}

static void tenant_defaults(struct agent_config *config, struct agent_tenant_config *t,
                            const char *name)
{
    struct base_errbuf must;
    memset(t, 0, sizeof *t);
    snprintf(t->name, sizeof t->name, "%s", name);
    t->id = agent_tenant_id(name);
    for (size_t i = 0; i < TENANT_OPTIONS; i++) {
        int status = set_option(config, t, &tenant_options[i], tenant_options[i].initial, &must);
        BASE_ASSERT(status == 0);
    }
}

/* As metaservers have them. */
static int check_tenant_name(const char *name, struct base_errbuf *what)
{
    if (base_parse_name(name, AGENT_NAME - 1) == 0)
        return 0;
    return base_err(
        what, -EINVAL,
        "a tenant's name has 1 to 31 of a-z, 0-9, '.' and '-', and begins with a letter "
        "or a digit, as at metaservers: [tenant NAME]");
}

/* The tenant of that name, made if it is new; NULL after saying what is wrong. */
static struct agent_tenant_config *tenant_named(struct agent_config *c, const char *name,
                                                struct base_errbuf *what)
{
    if (check_tenant_name(name, what) != 0)
        return NULL;
    for (uint32_t i = 0; i < c->tenants; i++)
        if (strcmp(c->tenant[i].name, name) == 0)
            return &c->tenant[i];
    if (c->tenants == AGENT_TENANTS) {
        base_err(what, 0, "there are more than %d tenants", AGENT_TENANTS);
        return NULL;
    }
    struct agent_tenant_config *t = &c->tenant[c->tenants];
    tenant_defaults(c, t, name);
    for (uint32_t i = 0; i < c->tenants; i++)
        if (c->tenant[i].id == t->id) {
            base_err(what, 0, "the names %s and %s have the same hash: rename one of them", name,
                     c->tenant[i].name);
            return NULL;
        }
    c->tenants++;
    return t;
}

/* "tenant web" -> "web"; NULL: the section is no tenant's. */
static const char *tenant_of_section(const char *section)
{
    return strncmp(section, "tenant ", 7) == 0 ? section + 7 + strspn(section + 7, " \t") : NULL;
}

/* A tenant without a setting is none. */
static int begin_section(const char *section, struct base_errbuf *what)
{
    const char *name = tenant_of_section(section);
    return name != NULL ? check_tenant_name(name, what)
                        : base_setting_check_section(agent_config_setting, section, what);
}

static int take_line(void *user, const char *section, const char *key, const char *value,
                     struct base_errbuf *what)
{
    struct reading *r = user;
    struct base_errbuf must;
    struct agent_tenant_config *tenant = NULL;
    const struct option *table = options, *o = NULL;
    size_t count = OPTIONS;
    bool *seen = r->seen;
    const char *place = section;
    if (key == NULL)
        return begin_section(section, what);
    if (tenant_of_section(section) != NULL) {
        tenant = tenant_named(r->config, tenant_of_section(section), what);
        if (tenant == NULL)
            return -EINVAL;
        table = tenant_options;
        count = TENANT_OPTIONS;
        seen = r->tenant_seen[tenant - r->config->tenant];
        place = "tenant NAME";
    }
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].section, place) == 0 && strcmp(table[i].key, key) == 0)
            o = &table[i];
    if (o == NULL && strcmp(place, "pool") == 0 && strcmp(key, "spin") == 0) {
        r->config->says_spin = true; /* of the version before this one, with which nodes begin */
        return 0;
    }
    if (o == NULL)
        return base_setting_refuse(agent_config_setting, "kedge-agentd", section, key, what);
    if (seen[o - table])
        return base_err(what, -EINVAL, "%s is set a second time: remove one", key);
    seen[o - table] = true;
    if (set_option(r->config, tenant, o, value, &must) == 0)
        return 0;
    if (o->type == A_HASHES) /* it may be the token itself, which no log is to have */
        return base_err(what, -EINVAL, "%s %.200s", key, must.text);
    return base_err(what, -EINVAL, "%s %.200s, not \"%.60s\"", key, must.text, value);
}

static void set_defaults(struct agent_config *out)
{
    struct base_errbuf must;
    char host[64] = "";
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < OPTIONS; i++) {
        if (options[i].initial == NULL)
            continue;
        int status = set_option(out, NULL, &options[i], options[i].initial, &must);
        BASE_ASSERT(status == 0);
    }
    (void)gethostname(host, sizeof host - 1);
    for (char *c = host; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    if (agentd_set_value(A_NAME, out->node, 0, 0, host, &must) != 0)
        out->node[0] = '\0'; /* finish_config() asks for one */
}

static int check_sockets(const struct agent_config *c, const char *where, struct base_errbuf *err)
{
    if (strcmp(c->socket, c->admin_socket) == 0)
        return base_err(err, -EINVAL, "%s: socket and admin_socket must differ", where);
    for (uint32_t i = 0; i < c->tenants; i++) {
        const struct agent_tenant_config *t = &c->tenant[i];
        bool taken = strcmp(t->socket, c->socket) == 0 || strcmp(t->socket, c->admin_socket) == 0;
        for (uint32_t k = 0; k < i && t->socket[0] != '\0'; k++)
            taken |= strcmp(t->socket, c->tenant[k].socket) == 0;
        if (taken)
            return base_err(err, -EINVAL,
                            "%s: the socket of [tenant %s] is another one's too: name one of its "
                            "own",
                            where, t->name);
    }
    return 0;
}

/* Whose worker it is must not depend on the order of sections. */
static int check_tenants(const struct agent_config *c, const char *where, struct base_errbuf *err)
{
    uid_t uid;
    for (uint32_t i = 0; i < c->tenants; i++)
        for (uint32_t k = 0; k < i; k++)
            if (agent_uids_overlap(&c->tenant[i], &c->tenant[k], &uid))
                return base_err(err, -EINVAL,
                                "%s: uid %u is in `uids` of both [tenant %s] and [tenant %s]: "
                                "take it out of one",
                                where, (unsigned)uid, c->tenant[k].name, c->tenant[i].name);
            else if (agent_tokens_overlap(&c->tenant[i], &c->tenant[k]))
                return base_err(err, -EINVAL,
                                "%s: one token is in `token_sha256` of both [tenant %s] and "
                                "[tenant %s]: take it out of one",
                                where, c->tenant[k].name, c->tenant[i].name);
    return 0;
}

/* What several lanes of a pool cannot be right with yet is refused, and not done half. */
static int check_lanes(const struct agent_config *c, const char *where, struct base_errbuf *err)
{
    const unsigned long long lanes = c->lanes;
    if (c->lane_cpu.count > 0 && c->lane_cpu.count != c->lanes)
        return base_err(err, -EINVAL,
                        "%s: lane_cpu names %u CPUs, and there are %llu lanes: name one for each, "
                        "or set it to any",
                        where, c->lane_cpu.count, lanes);
    if (c->lanes > 1 && c->max_sessions < c->lanes)
        return base_err(err, -EINVAL, "%s: max_sessions must be at least lanes, which is %llu",
                        where, lanes);
    return 0;
}

/* What is right depends on what a wire may lose and delay. Nodes of one cluster have one provider,
 * and so agree. */
void agent_config_choose_times(struct agent_config *c)
{
    struct base_errbuf err;
    const struct fab_provider *provider = fab_provider_find(c->provider, &err);
    const bool wire = provider == NULL || provider->wire; /* opening says that there is none */
    if (c->ack_timeout == 0)
        c->ack_timeout = wire ? 13 : 8; /* 34 ms, which devices may stretch to 134; 1 ms */
    if (c->mr_lease_ns == 0)
        c->mr_lease_ns = (wire ? 3000 : 100) * MS;
}

/* What concerns more than one setting. */
static int finish_config(struct agent_config *c, const char *path, struct base_errbuf *err)
{
    char self[32];
    struct base_errbuf must;
    const char *where = path == NULL ? "the configuration" : path;
    agent_config_choose_times(c);
    if (c->node[0] == '\0')
        return base_err(err, -EINVAL, "%s: the host's name cannot be a node's id: set node", where);
    if (c->max_inflight > c->cq_slots)
        return base_err(err, -EINVAL, "%s: max_inflight %llu needs as many cq_slots, not %llu",
                        where, (unsigned long long)c->max_inflight,
                        (unsigned long long)c->cq_slots);
    int status = check_lanes(c, where, err);
    if (status == 0)
        status = check_sockets(c, where, err);
    if (status != 0 || c->tenants > 0)
        return status != 0 ? status : check_tenants(c, where, err);
    tenant_defaults(c, &c->tenant[0], "default");
    snprintf(self, sizeof self, "%u", (unsigned)geteuid());
    c->tenants = 1;
    return agentd_set_uids(&c->tenant[0], self, &must);
}

int agent_config_read(const char *path, struct agent_config *out, struct base_errbuf *err)
{
    struct reading r = {.config = out};
    set_defaults(out);
    int status = path != NULL ? base_ini_read(path, take_line, &r, err) : 0;
    return status != 0 ? status : finish_config(out, path, err);
}

static void describe_range(const struct option *o, char out[BASE_RANGE_TEXT])
{
    const enum base_unit unit = o->type == A_SIZE ? BASE_UNIT_BYTES
                                : o->type == A_TIME || o->type == A_POOL_PERIOD_OR_AUTO
                                    ? BASE_UNIT_NS
                                    : BASE_UNIT_NONE;
    const struct resource_field *f =
        o->type == A_POOL_COUNT || o->type == A_POOL_PERIOD_OR_AUTO ? field_of(o) : NULL;
    out[0] = '\0';
    if (f != NULL)
        base_range_format(unit, f->min * (unit == BASE_UNIT_NS ? MS : 1),
                          f->max * (unit == BASE_UNIT_NS ? MS : 1), out);
    else if (o->type == A_COUNT || o->type == A_POWER || o->type == A_COUNT_OR_AUTO ||
             unit != BASE_UNIT_NONE)
        base_range_format(unit, o->min, o->max, out);
}

bool agent_config_setting(size_t i, struct base_setting *out)
{
    if (i >= OPTIONS + TENANT_OPTIONS)
        return false;
    const struct option *o = i < OPTIONS ? &options[i] : &tenant_options[i - OPTIONS];
    *out = (struct base_setting){.section = o->section, .key = o->key, .initial = o->initial};
    describe_range(o, out->range);
    return true;
}

void agent_config_help(FILE *out)
{
    const char *section = "";
    for (size_t i = 0; i < OPTIONS + TENANT_OPTIONS; i++) {
        const struct option *o = i < OPTIONS ? &options[i] : &tenant_options[i - OPTIONS];
        if (strcmp(section, o->section) != 0)
            fprintf(out, "  [%s]\n", o->section);
        section = o->section;
        fprintf(out, "  %-24s = %-28s  %s\n", o->key, o->initial == NULL ? "" : o->initial,
                o->help);
    }
}
