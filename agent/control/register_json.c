/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent says to a metaserver in registering, and what it is answered, as JSON. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "agent/connector.h"
#include "pool.h"
#include "pools.h"
#include "register_json.h"
#include "table_initiators.h"

/* ---- what is said */

static json_t *json_hex64(uint64_t value)
{
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)value);
    return json_string(text);
}

/* How peers reach this node. */
static json_t *describe_endpoint(const struct pool *p)
{
    const struct agent_device *d = &p->device;
    const struct fab_caps *caps = &d->fab->caps;
    char gid[BASE_GID_TEXT];
    json_t *e = json_pack("{s:s, s:i, s:[s, s*], s:i}", "gid", base_gid_format(caps->gid, gid),
                          "pool", (int)p->number, "transports", d->rc ? "rc" : "dc",
                          d->hybrid ? "rc" : NULL, "mtu", 128 << fab_pd_mtu(d->pd));
    if (e == NULL)
        return NULL;
    if (p->incarnation != p->agent->incarnation)
        json_object_set_new(e, "incarnation", json_integer(p->incarnation));
    if (caps->lid != 0)
        json_object_set_new(e, "lid", json_integer(caps->lid));
    if (d->connector != NULL) {
        json_object_set_new(e, "ud_qpn", json_integer(connector_ud_qpn(d->connector)));
        json_object_set_new(e, "ud_qkey", json_integer(connector_ud_qkey(d->connector)));
    }
    if (!d->rc) {
        json_object_set_new(e, "dct_number", json_integer(d->dct->dctn));
        json_object_set_new(e, "dc_key", json_hex64(d->dct->dc_key));
        if (d->messages.receives != 0 && d->connector == NULL) { /* where it hears of messages */
            json_object_set_new(e, "ud_qpn", json_integer(d->messages.qpn));
            json_object_set_new(e, "ud_qkey", json_integer(d->messages.qkey));
        }
    }
    return e;
}

/* rc: the queue pair that will READ this metaserver's table. */
static json_t *describe_initiator(const struct pool *p, const struct table_initiator *initiator)
{
    const struct fab_caps *caps = &p->device.fab->caps;
    char gid[BASE_GID_TEXT];
    json_t *e = json_pack("{s:s, s:i, s:i, s:i}", "gid", base_gid_format(caps->gid, gid), "qpn",
                          (int)initiator->qp->qpn, "psn", (int)initiator->psn, "mtu",
                          128 << p->agent->port.mtu);
    if (!pool_is_own(p)) /* whose endpoint comes first */
        json_object_set_new(e, "pool", json_integer(p->number));
    if (p->first != NULL)
        json_object_set_new(e, "lane", json_integer(p->lane_number));
    if (caps->lid != 0)
        json_object_set_new(e, "lid", json_integer(caps->lid));
    return e;
}

/* Those that peers may reach: one that goes as long as anything of it is left. */
static json_t *describe_endpoints(const struct agent *a)
{
    json_t *list = json_array();
    for (const struct pool *p = agent_pools_next_endpoint(a, NULL); p != NULL;
         p = agent_pools_next_endpoint(a, p)) {
        const struct agent_device *d = &p->device;
        if (p->stage != POOL_RUNS && p->stage != POOL_LEAVING)
            continue;
        json_t *table = json_pack("{s:o, s:I, s:i}", "addr", json_hex64(d->table->mr->addr), "rkey",
                                  (json_int_t)d->table->mr->rkey, "log2_slots", (int)d->mr_log2);
        json_t *endpoint = describe_endpoint(p);
        json_object_set_new(endpoint, "mr_table", table);
        json_array_append_new(list, endpoint);
    }
    return list;
}

char *agent_register_json_describe(const struct pool *p, const struct table_initiator *initiator)
{
    json_t *root = json_pack("{s:I, s:o}", "incarnation", (json_int_t)p->agent->incarnation,
                             "endpoints", describe_endpoints(p->agent));
    if (initiator != NULL)
        json_object_set_new(root, "reader", describe_initiator(p, initiator));
    char *text = root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

/* ---- what is heard */

static bool read_hex(const json_t *object, const char *key, uint64_t *out)
{
    const char *text = json_string_value(json_object_get(object, key));
    char *end = NULL;
    if (text == NULL || strlen(text) != 16)
        return false;
    *out = strtoull(text, &end, 16);
    return *end == '\0';
}

bool agent_register_json_number(const json_t *object, const char *key, uint64_t max, uint64_t *out)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > max)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

/* The metaserver's end of the connection that was offered. */
static bool understand_initiator(const json_t *endpoint, struct table_initiator_peer *peer)
{
    const json_t *rc = json_object_get(endpoint, "rc");
    uint64_t qpn = 0, psn = 0, mtu = 0, reads = 0;
    if (!agent_register_json_number(rc, "qpn", 0xffffff, &qpn) || qpn == 0 ||
        !agent_register_json_number(rc, "psn", 0xffffff, &psn) ||
        !agent_register_json_number(rc, "mtu", 4096, &mtu) || mtu < 256 || (mtu & (mtu - 1)) != 0 ||
        !agent_register_json_number(rc, "reads", UINT8_MAX, &reads) || reads == 0)
        return false;
    *peer = (struct table_initiator_peer){.qpn = (uint32_t)qpn,
                                          .psn = (uint32_t)psn,
                                          .mtu = (enum ibv_mtu)(__builtin_ctzll(mtu) - 7),
                                          .reads = (uint8_t)reads};
    return true;
}

/* How to READ a table. False: it makes no sense, or records are of another version. */
static bool understand_table(const json_t *t, enum schema_table_kind kind,
                             struct schema_table_desc *out)
{
    struct schema_table_desc d = {.kind = (uint16_t)kind};
    uint64_t rkey = 0, log2_slots = 0, version = 0;
    if (!read_hex(t, "addr", &d.addr) ||
        !agent_register_json_number(t, "rkey", UINT32_MAX, &rkey) ||
        !agent_register_json_number(t, "log2_slots", 30, &log2_slots) || log2_slots < 1 ||
        !read_hex(t, "seed", &d.seed) || !read_hex(t, "generation", &d.generation) ||
        !agent_register_json_number(t, "version", UINT16_MAX, &version) ||
        version != SCHEMA_RECORD_VERSION)
        return false;
    d.rkey = (uint32_t)rkey;
    d.log2_slots = (uint32_t)log2_slots;
    d.version = (uint16_t)version;
    *out = d;
    return true;
}

/* As kedge-metad takes it: a shorter one would have its agent do nothing but renew. */
enum { LEAST_LEASE_MS = 100, MOST_LEASE_MS = 24 * 3600 * 1000 };

/* The answer to a registration: how to READ that metaserver's tables. One of names that makes no
 * sense is none: endpoints are looked up all the same. */
const char *agent_register_json_understand(struct registration *r, const char *body,
                                           struct table_initiator_peer *peer)
{
    uint8_t *gid = peer->gid;
    json_t *root = json_loads(body, JSON_REJECT_DUPLICATES, NULL);
    const json_t *m = json_object_get(root, "metaserver"), *e = json_object_get(m, "endpoint");
    const char *text = json_string_value(json_object_get(e, "gid"));
    struct schema_table_desc d, names = {.log2_slots = 0};
    uint64_t dctn = 0, key = 0, lease = 0, lid = 0;
    bool ok = text != NULL &&
              (r->offered != NULL ? understand_initiator(e, peer)
                                  : agent_register_json_number(e, "dct_number", 0xffffff, &dctn) &&
                                        read_hex(e, "dc_key", &key)) &&
              base_gid_parse(text, gid) == 0 &&
              understand_table(json_object_get(m, "table"), SCHEMA_TABLE_ENDPOINTS, &d) &&
              agent_register_json_number(root, "node_lease_ms", INT64_MAX, &lease);
    (void)understand_table(json_object_get(m, "names"), SCHEMA_TABLE_NAMES, &names);
    (void)agent_register_json_number(e, "lid", UINT16_MAX, &lid); /* Ethernet has none */
    json_decref(root);
    if (!ok)
        return "its answer is not a metaserver's, or of another version";
    if (lease < LEAST_LEASE_MS || lease > MOST_LEASE_MS)
        return "its node_lease is none of 100ms to 1d, which kedge-metad takes: is it one?";
    peer->lid = (uint16_t)lid;
    r->answered = (struct registration_answer){
        .lease_ms = lease, .dctn = (uint32_t)dctn, .dc_key = key, .table = d, .names = names};
    return NULL;
}

static void copy_text(const json_t *object, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (text != NULL && strlen(text) < size)
        snprintf(out, size, "%s", text);
}

struct metaserver_standing agent_register_json_standing(const char *body)
{
    struct metaserver_standing s = {.behind = false};
    json_t *root = json_loads(body, JSON_REJECT_DUPLICATES, NULL);
    const json_t *m = json_object_get(root, "metaserver");
    m = m != NULL ? m : root;
    s.behind = json_is_true(json_object_get(m, "behind"));
    s.read_only = json_is_true(json_object_get(m, "read_only"));
    (void)agent_register_json_number(m, "names_anew", INT64_MAX, &s.names_anew);
    (void)agent_register_json_number(m, "names_version", INT64_MAX, &s.names_version);
    copy_text(m, "store", s.store, sizeof s.store);
    copy_text(m, "zone", s.zone, sizeof s.zone);
    json_decref(root);
    return s;
}

/* Every metaserver says the generation: one that does not is asked for all of it. With DC it says
 * its target's number as well, which is another one when its address or P_Key has moved. */
bool agent_register_json_is_of_table(const struct registration *r, const char *body)
{
    uint64_t generation = 0, dctn = r->answered.dctn;
    json_t *root = json_loads(body, JSON_REJECT_DUPLICATES, NULL);
    const json_t *m = json_object_get(root, "metaserver");
    const json_t *table = json_object_get(m, "table"), *endpoint = json_object_get(m, "endpoint");
    if (r->answered.dctn != 0) /* else it is read through a connection */
        (void)agent_register_json_number(endpoint != NULL ? endpoint : root, "dct_number", 0xffffff,
                                         &dctn);
    const bool is = read_hex(table != NULL ? table : root, "generation", &generation) &&
                    generation == r->answered.table.generation && dctn == r->answered.dctn;
    json_decref(root);
    return is;
}

bool agent_register_json_is_broken(const char *body, uint32_t qpn)
{
    json_t *root = json_loads(body, JSON_REJECT_DUPLICATES, NULL), *broken;
    bool is = false;
    size_t i;
    json_array_foreach(json_object_get(root, "broken_qpns"), i, broken) is |=
        json_is_integer(broken) && json_integer_value(broken) == (json_int_t)qpn;
    json_decref(root);
    return is;
}

static void name_gid(const struct registration *r, char *why, size_t size)
{
    static const char BLANK[] = "gids=GID";
    char gid[BASE_GID_TEXT], rest[sizeof r->why];
    char *at = strstr(why, BLANK);
    if (at == NULL)
        return;
    snprintf(rest, sizeof rest, "%s", at + sizeof BLANK - 1);
    snprintf(at, size - (size_t)(at - why), "gids=%s%s",
             base_gid_format(r->pool->device.fab->caps.gid, gid), rest);
}

void agent_register_json_explain(const struct registration *r, char *why, size_t size)
{
    if (strstr(why, "reader.lane: unknown field") != NULL)
        snprintf(why, size,
                 "it is of an older version, which knows no lanes: workers come to the first lane "
                 "of the pool, unless another metaserver has this one");
    else
        name_gid(r, why, size);
}
