/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-agentd's settings: one table says name, type, default, bounds and help of each. One thread.
 */
#ifndef CONTROL_CONFIG_H
#define CONTROL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "agent/lane_config.h"
#include "agent/polling.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/setting.h"
#include "fabric/network_service.h"
#include "schema/resources.h"

#define AGENT_ANY_CPU UINT64_MAX /* FAB_ANY_CPU */

enum {
    AGENT_TEXT = 256,                          /* bytes of a text setting, with the NUL */
    AGENT_NAME = RESOURCE_TENANT_NAME_MAX + 1, /* of a tenant or pool */
    AGENT_METASERVERS = 8,                     /* LANE_MAX_METASERVERS */
    AGENT_TENANTS = RESOURCE_TENANTS_MAX,      /* sections; and as many are said by metaservers */
    AGENT_UID_RANGES = RESOURCE_UIDS_MAX,      /* of one tenant */
    AGENT_TOKENS = 16,                         /* of one tenant */
    AGENT_SOCKET_PATH = 108                    /* sockaddr_un */
};

/* CPUs, one for each lane; none: any. */
struct agent_cpus {
    uint32_t count;
    uint64_t at[LANE_POOL_LANES];
};

/* first .. last, both included. */
struct agent_uids {
    uid_t first, last;
};

/* How much may be in flight; 0: no limit. */
struct agent_limits {
    uint64_t bytes, ops;
};

/* What both allow. */
struct agent_limits agent_limits_narrower(struct agent_limits a, struct agent_limits b);

/* What a worker may show instead of its uid: the hash of it alone is known. */
struct agent_token {
    uint8_t sha256[BASE_DIGEST_BYTES];
    uint64_t expires_ms; /* since 1970; 0: never */
};

/* [tenant NAME] */
struct agent_tenant_config {
    char name[AGENT_NAME];
    uint32_t id; /* a hash of the name, so that it is the same on every node; never 0 */
    struct agent_uids uids[AGENT_UID_RANGES];
    uint32_t uid_ranges;
    struct agent_token token[AGENT_TOKENS];
    uint32_t tokens;
    uint64_t sessions, vqps, mrs; /* all sessions together; vqps and mrs 0: no bound of its own */
    uint64_t memory;              /* bytes of arenas */
    uint64_t control_ops_per_s;   /* of all its workers; 0: no bound */
    uint64_t region_names;        /* likewise; 0: what one has of which nothing is said */
    struct agent_limits window;
    /* Of its own, which the file alone can say; "": none. Whoever can open it is of the tenant. */
    char socket[AGENT_SOCKET_PATH];
    uint64_t socket_mode;
    char pool[AGENT_NAME]; /* that its workers get, as metaservers say; "": the agent's own */
};

/* Whether both have some uid, and which: its number in *uid. */
bool agent_uids_overlap(const struct agent_tenant_config *a, const struct agent_tenant_config *b,
                        uid_t *uid);
/* Whether both have some token. */
bool agent_tokens_overlap(const struct agent_tenant_config *a, const struct agent_tenant_config *b);

struct agent_config {
    /* [agent] */
    char node[AGENT_TEXT];
    char socket[AGENT_TEXT], admin_socket[AGENT_TEXT];
    char state_dir[AGENT_TEXT];
    char metaserver[AGENT_METASERVERS][AGENT_TEXT]; /* http(s)://host:port, no '/' at the end */
    uint32_t metaservers;
    char token_file[AGENT_TEXT];                            /* "": none */
    char trusted_ca_file[AGENT_TEXT], crl_file[AGENT_TEXT]; /* of metaservers */
    char cert_file[AGENT_TEXT], key_file[AGENT_TEXT];       /* own ones */
    bool allow_plain_tokens;
    char zone[64];     /* where this node is; "": nobody has said */
    uint64_t prove_ns; /* 0: never */
    char log_level[AGENT_TEXT], log_format[AGENT_TEXT];
    /* [fabric] */
    char provider[AGENT_TEXT], device[AGENT_TEXT];
    uint64_t port;   /* 0: the first that is up */
    uint8_t gid[16]; /* zero: the provider chooses */
    struct fab_service service;
    char transport[AGENT_TEXT]; /* auto, dc, rc or hybrid */
    char fault[AGENT_TEXT];     /* a fault_plan's text; empty: none */
    char model[AGENT_TEXT];     /* a preset of the cost model (fabric/model.h); empty: none */
    uint64_t dci_streams;
    uint64_t ack_timeout; /* as verbs count it */
    /* [pool] */
    char pool[AGENT_TEXT];
    uint64_t pool_number;
    uint64_t connections, responders, queue_pairs_ahead, connections_per_peer; /* rc */
    uint64_t dcis, spares, sessions_ahead, arenas_ahead, arena_bytes, mr_lease_ns;
    uint64_t max_sessions, max_peers, sq_slots, cq_slots, max_vqps, max_inflight, max_mrs;
    uint64_t fenced_regions, regions_ahead;
    enum polling_mode polling;
    uint64_t max_retry;
    uint64_t lanes; /* of the agent's own pool: others have one */
    struct agent_cpus lane_cpu;
    bool says_spin; /* which is no setting any more, and changes nothing */
    bool merge, cut;
    bool messages;      /* workers send each other messages, with `receives` in each pool */
    bool messages_near; /* those of one lane's workers to each other go by no device */
    uint64_t receives;
    enum lane_window_policy window_policy;
    struct agent_limits window, destination_window; /* of the device, to each endpoint */
    /* [tenant NAME] */
    struct agent_tenant_config tenant[AGENT_TENANTS];
    uint32_t tenants;
};

/* The defaults, then what the file says (path NULL: no file). Without a tenant there is one,
 * "default", with the uid that runs this. -errno and a sentence that names the line. */
int agent_config_read(const char *path, struct agent_config *out, struct base_errbuf *err);

/* Takes what may change while the agent runs, the windows and tenants' tokens, from another
 * configuration; a tenant's from that of the same name. Returns whether anything else differs. */
bool agent_config_update(struct agent_config *config, const struct agent_config *from);

/* The one's tokens become the other's. */
void agent_tenant_config_take_tokens(struct agent_tenant_config *to,
                                     const struct agent_tenant_config *from);

/* Gives ack_timeout and mr_lease_ns, where they are 0 (auto), what is right for the provider. */
void agent_config_choose_times(struct agent_config *config);

/* A tenant's number in records: the same on every node. */
uint32_t agent_tenant_id(const char *name);

/* The table, for --help. */
void agent_config_help(FILE *out);
/* The i-th row of it, for what is held against it. False: there are no more. */
bool agent_config_setting(size_t i, struct base_setting *out);

#endif
