/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/config_file.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/ini.h"
#include "base/log.h"
#include "base/setting.h"
#include "base/text.h"
#include "metaserver/names.h"

enum type { TEXT, LEVEL, FORMAT, ACCESS, STORE, YES_NO, COUNT, DURATION, GID, SERVICE };

struct option {
    const char *section, *key;
    enum type type;
    size_t offset;
    uint64_t min, max; /* COUNT; DURATION in ns */
    const char *initial;
    const char *help;
};

#define AT(member) offsetof(struct meta_config, member)
#define MS         BASE_NS_PER_MS
#define DAY        (24 * 3600 * BASE_NS_PER_S)

#define ANONYMOUS_PART 4 /* of connections one in so many is for who shows no token */
#define ADDRESS_PART   4 /* and of these for one address, unless it is set */

static const struct option options[] = {
    {"metaserver", "listen", TEXT, AT(listen), 0, 0, "127.0.0.1:7480",
     "address and port of the REST interface; port 0: any; empty: none"},
    {"metaserver", "admin_socket", TEXT, AT(admin_socket), 0, 0, "/run/kedge/metad.sock",
     "Unix socket with the same interface, for root and this user; empty: none"},
    {"metaserver", "access", ACCESS, AT(tokens_needed), 0, 0, "tokens",
     "tokens: each request has to show one; open: who reaches the port may do everything"},
    {"metaserver", "advertise", TEXT, AT(advertise), 0, 0, "",
     "URL by which others reach the REST interface; empty: as listen says"},
    {"metaserver", "cert_file", TEXT, AT(cert_file), 0, 0, "",
     "certificate for HTTPS on listen, PEM, with those between; empty: plain HTTP"},
    {"metaserver", "key_file", TEXT, AT(key_file), 0, 0, "", "and its key"},
    {"metaserver", "trusted_ca_file", TEXT, AT(trusted_ca_file), 0, 0, "",
     "authorities that clients' certificates are to be of; empty: clients show none"},
    {"metaserver", "client_cert_auth", YES_NO, AT(client_cert_auth), 0, 0, "no",
     "yes: each client has to show a certificate"},
    {"metaserver", "client_crl_file", TEXT, AT(client_crl_file), 0, 0, "",
     "clients' certificates that are revoked, PEM"},
    {"metaserver", "allow_plain_tokens", YES_NO, AT(allow_plain_tokens), 0, 0, "no",
     "yes: take tokens over plain HTTP beyond loopback, where others see them"},
    {"metaserver", "data_dir", TEXT, AT(data_dir), 0, 0, "/var/lib/kedge-metad",
     "directory of the store; it must exist"},
    {"metaserver", "zone", TEXT, AT(zone), 0, 0, "",
     "where it is, as a rack: agents whose zone is the same ask it first"},
    {"metaserver", "max_endpoints", COUNT, AT(max_endpoints), 1, 1 << 24, "16384",
     "endpoints that the table is made for (512 bytes each)"},
    {"metaserver", "max_names", COUNT, AT(max_names), 1, META_NAMES_MAX, "4096",
     "names of regions that the table of names is made for (1 KiB each)"},
    {"metaserver", "max_nodes", COUNT, AT(max_nodes), 1, 1 << 24, "16384",
     "nodes that are remembered"},
    {"metaserver", "node_lease", DURATION, AT(node_lease_ns), 100 * MS, DAY, "10s",
     "a node that is silent for longer expires"},
    {"metaserver", "forget_after", DURATION, AT(forget_after_ns), 0, 3650 * DAY, "7d",
     "an expired node is forgotten after this"},
    {"metaserver", "connections", COUNT, AT(connections), 1, 65536, "4096",
     "HTTP connections at a time; clients that show no token have a quarter"},
    {"metaserver", "client_connections", COUNT, AT(client_connections), 0, 65536, "0",
     "of one address, without a token; 0: a quarter of what those share"},
    {"metaserver", "token_connections", COUNT, AT(token_connections), 1, 65536, "64",
     "of one token; more get 429"},
    {"metaserver", "client_rate", COUNT, AT(client_rate), 0, 1000000, "2000",
     "requests a second of one token, or of all that show none; more get 429; 0: no bound"},
    {"metaserver", "hosts", TEXT, AT(hosts), 0, 0, "",
     "names that requests on loopback may be for, beside localhost and addresses"},
    {"metaserver", "max_watches", COUNT, AT(max_watches), 0, 65536, "2048",
     "streams at a time: every agent has one at every metaserver; fewer than connections"},
    {"metaserver", "reader_watches", COUNT, AT(reader_watches), 1, 65536, "256",
     "of these, those of clients that are no agents"},
    {"metaserver", "events", COUNT, AT(events), 16, 65536, "1024",
     "changes by operators that the trail remembers"},
    {"metaserver", "log_level", LEVEL, AT(log_level), 0, 0, "info", "error, warn, info or debug"},
    {"metaserver", "log_format", FORMAT, AT(log_format), 0, 0, "text",
     "text or json: lines, or one object a line"},
    {"store", "kind", STORE, AT(store_shared), 0, 0, "sqlite",
     "sqlite: a file in data_dir, this metaserver's own; etcd: shared by several"},
    {"store", "member", TEXT, AT(member), 0, 0, "",
     "this metaserver's name among those that share the store; empty: the host's"},
    {"store", "endpoints", TEXT, AT(store_endpoints), 0, 0, "http://127.0.0.1:2379",
     "URLs of etcd, separated by commas: any of them, in turn"},
    {"store", "prefix", TEXT, AT(store_prefix), 0, 0, "/kedge/", "of all keys in etcd"},
    {"store", "user", TEXT, AT(store_user), 0, 0, "", "of etcd; empty: none"},
    {"store", "password_file", TEXT, AT(store_password_file), 0, 0, "",
     "that user's password, one line; nobody else may read it"},
    {"store", "trusted_ca_file", TEXT, AT(store_ca), 0, 0, "",
     "certificates that etcd's is checked by; empty: the system's"},
    {"store", "cert_file", TEXT, AT(store_cert), 0, 0, "", "that is shown to etcd; empty: none"},
    {"store", "key_file", TEXT, AT(store_key), 0, 0, "", "of that certificate"},
    {"fabric", "provider", TEXT, AT(provider), 0, 0, "soft",
     "soft: a software RNIC for one host; verbs: an RDMA device"},
    {"fabric", "device", TEXT, AT(device), 0, 0, "",
     "soft: its directory on tmpfs; verbs: as rdma link names it; empty: the first that does"},
    {"fabric", "port", COUNT, AT(port), 0, 255, "0", "of the device; 0: the first that is up"},
    {"fabric", "gid", GID, AT(gid), 0, 0,
     "::", "GID of this metaserver; :: lets the provider choose"},
#define ROW(key, initial, help) {"fabric", key, SERVICE, AT(service), 0, 0, initial, help},
    FAB_SERVICE_SETTINGS(ROW)};
#define OPTIONS (sizeof options / sizeof options[0])

/* While the file is read. */
struct reading {
    struct meta_config *config;
    bool seen[OPTIONS];
};

static const struct option *find_option(const char *section, const char *key)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (strcmp(options[i].section, section) == 0 && strcmp(options[i].key, key) == 0)
            return &options[i];
    return NULL;
}

/* "auto" was open on a loopback address, where workers are too: whoever relied on it has to choose,
 * and is told what it was. */
static int set_access(struct meta_config *config, const char *value, struct base_errbuf *must)
{
    const bool tokens = strcmp(value, "tokens") == 0;
    if (!tokens && strcmp(value, "open") != 0)
        return base_err(must, -EINVAL, "must be tokens or open%s",
                        strcmp(value, "auto") != 0
                            ? ""
                            : " (open is what auto was on loopback: every process that reaches "
                              "the port may do everything)");
    config->tokens_needed = tokens;
    return 0;
}

/* 0, or -EINVAL and what the value must be. */
static int set_option(struct meta_config *config, const struct option *o, const char *value,
                      struct base_errbuf *must)
{
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    void *at = (char *)config + o->offset;
    enum base_log_format format;
    bool known = false;
    switch (o->type) {
    case LEVEL:
        for (size_t i = 0; i < 4; i++)
            known |= strcmp(levels[i], value) == 0;
        if (!known)
            return base_err(must, -EINVAL, "must be error, warn, info or debug");
        memcpy(at, value, strlen(value) + 1);
        return 0;
    case FORMAT:
        if (base_log_parse_format(value, &format) != 0)
            return base_err(must, -EINVAL, "must be text or json");
        memcpy(at, value, strlen(value) + 1);
        return 0;
    case ACCESS:
        return set_access(config, value, must);
    case STORE:
        config->store_shared = strcmp(value, "etcd") == 0;
        return config->store_shared || strcmp(value, "sqlite") == 0
                   ? 0
                   : base_err(must, -EINVAL, "must be sqlite or etcd");
    case YES_NO: {
        const bool yes = strcmp(value, "yes") == 0;
        if (!yes && strcmp(value, "no") != 0)
            return base_err(must, -EINVAL, "must be yes or no");
        memcpy(at, &yes, sizeof yes);
        return 0;
    }
    case TEXT:
        if (strlen(value) >= META_CONFIG_TEXT_BYTES)
            return base_err(must, -EINVAL, "has at most %d characters", META_CONFIG_TEXT_BYTES - 1);
        memcpy(at, value, strlen(value) + 1);
        return 0;
    case COUNT:
        if (base_parse_u64(value, o->min, o->max, at) != 0)
            return base_err(must, -EINVAL, "must be a number from %llu to %llu",
                            (unsigned long long)o->min, (unsigned long long)o->max);
        return 0;
    case DURATION: {
        uint64_t ns;
        if (base_parse_duration(value, &ns) != 0 || ns < o->min || ns > o->max)
            return base_err(must, -EINVAL,
                            "must be a duration such as 10s, from %llu ms to %llu days",
                            (unsigned long long)(o->min / MS), (unsigned long long)(o->max / DAY));
        memcpy(at, &ns, sizeof ns);
        return 0;
    }
    case SERVICE:
        return fab_service_set(at, o->key, value, must);
    case GID:
        return base_setting_gid(value, at, must);
    }
    return -EINVAL;
}

static int take_option(void *user, const char *section, const char *key, const char *value,
                       struct base_errbuf *what)
{
    struct reading *r = user;
    struct base_errbuf must;
    if (key == NULL)
        return base_setting_check_section(meta_config_setting, section, what);
    const struct option *o = find_option(section, key);
    if (o == NULL)
        return base_setting_refuse(meta_config_setting, "kedge-metad", section, key, what);
    if (r->seen[o - options])
        return base_err(what, -EINVAL, "%s is set a second time: remove one", key);
    r->seen[o - options] = true;
    if (set_option(r->config, o, value, &must) != 0)
        return base_err(what, -EINVAL, "%s %.200s, not \"%.60s\"", key, must.text, value);
    return 0;
}

/* What would mean less than whoever wrote it thinks. */
static int check_tls(const struct meta_config *c, const char *path, struct base_errbuf *err)
{
    if (c->cert_file[0] == '\0' && (c->key_file[0] != '\0' || c->trusted_ca_file[0] != '\0'))
        return base_err(err, -EINVAL, "%s: %s is of no use without cert_file", path,
                        c->key_file[0] != '\0' ? "key_file" : "trusted_ca_file");
    if (c->cert_file[0] != '\0' && c->key_file[0] == '\0')
        return base_err(err, -EINVAL, "%s: cert_file needs key_file", path);
    if (c->trusted_ca_file[0] == '\0' && (c->client_cert_auth || c->client_crl_file[0] != '\0'))
        return base_err(err, -EINVAL, "%s: %s needs trusted_ca_file", path,
                        c->client_cert_auth ? "client_cert_auth" : "client_crl_file");
    return 0;
}

/* Who has forgotten `kind` would have a store of its own beside the one that is meant. */
static int check_store(const struct reading *r, const char *path, struct base_errbuf *err)
{
    const struct meta_config *c = r->config;
    for (size_t i = 0; i < OPTIONS && !c->store_shared; i++)
        if (r->seen[i] && strcmp(options[i].section, "store") == 0 &&
            strcmp(options[i].key, "kind") != 0)
            return base_err(err, -EINVAL, "%s: %s in [store] is of etcd alone: set kind = etcd",
                            path, options[i].key);
    if (c->member[0] != '\0' && base_parse_name(c->member, META_STORE_ID_BYTES - 1) != 0)
        return base_err(err, -EINVAL,
                        "%s: member has up to %d of a-z, 0-9, '.' and '-', and begins with a "
                        "letter or a digit, not \"%.60s\"",
                        path, META_STORE_ID_BYTES - 1, c->member);
    return 0;
}

/* Where nobody needs a token, agents are anonymous clients too. */
unsigned meta_config_anonymous(const struct meta_config *config)
{
    const unsigned all = (unsigned)config->connections;
    return config->tokens_needed ? (all + ANONYMOUS_PART - 1) / ANONYMOUS_PART : all;
}

unsigned meta_config_of_address(const struct meta_config *config)
{
    const unsigned part = (meta_config_anonymous(config) + ADDRESS_PART - 1) / ADDRESS_PART;
    return config->client_connections > 0 ? (unsigned)config->client_connections : part;
}

int meta_config_read(const char *path, struct meta_config *out, struct base_errbuf *err)
{
    struct reading r = {.config = out};
    struct base_errbuf must;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < OPTIONS; i++) {
        int status = set_option(out, &options[i], options[i].initial, &must);
        BASE_ASSERT(status == 0);
    }
    int status = path != NULL ? base_ini_read(path, take_option, &r, err) : 0;
    if (status == 0)
        status = check_tls(out, path, err);
    if (status == 0)
        status = check_store(&r, path, err);
    if (status == 0 && out->listen[0] == '\0' && out->admin_socket[0] == '\0')
        return base_err(err, -EINVAL, "%s: nobody could connect: set listen, admin_socket or both",
                        path);
    return status;
}

bool meta_config_setting(size_t i, struct base_setting *out)
{
    if (i >= OPTIONS)
        return false;
    const struct option *o = &options[i];
    *out = (struct base_setting){.section = o->section, .key = o->key, .initial = o->initial};
    if (o->type == COUNT || o->type == DURATION)
        base_range_format(o->type == COUNT ? BASE_UNIT_NONE : BASE_UNIT_NS, o->min, o->max,
                          out->range);
    return true;
}

void meta_config_print_help(FILE *out)
{
    const char *section = "";
    for (size_t i = 0; i < OPTIONS; i++) {
        if (strcmp(section, options[i].section) != 0)
            fprintf(out, "  [%s]\n", options[i].section);
        section = options[i].section;
        fprintf(out, "  %-18s = %-22s  %s\n", options[i].key, options[i].initial, options[i].help);
    }
}
