/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "metaserver/json_read.h"

bool meta_json_is_id(const char *id)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t length = strlen(id);
    return length >= 1 && length < META_STORE_ID_BYTES && strchr(letters, id[0]) != NULL &&
           strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789.-") == length;
}

/* A number as `digits` hexadecimal digits in a string, since JSON's numbers are not 64 bits wide.
 */
static int read_hex(const struct json_at *at, json_t *object, const char *name, bool required,
                    uint64_t *out)
{
    json_t *value = json_object_get(object, name);
    uint8_t bytes[8];
    if (value == NULL)
        return required ? meta_json_bad(at, name, "is missing") : 0;
    if (!json_is_string(value) || base_hex_decode(json_string_value(value), bytes, 8) != 0)
        return meta_json_bad(at, name, "must be a string of 16 hexadecimal digits");
    *out = 0;
    for (int i = 0; i < 8; i++)
        *out = *out << 8 | bytes[i];
    return 0;
}

static int decode_transports(const struct json_at *at, json_t *object,
                             struct schema_endpoint_record *r)
{
    json_t *value = json_object_get(object, "transports"), *one;
    size_t i;
    if (value == NULL)
        return meta_json_bad(at, "transports", "is missing");
    json_array_foreach(value, i, one)
    {
        const char *name = json_is_string(one) ? json_string_value(one) : "";
        uint16_t flag = strcmp(name, "dc") == 0   ? SCHEMA_RECORD_DC
                        : strcmp(name, "rc") == 0 ? SCHEMA_RECORD_RC
                                                  : 0;
        if (flag == 0 || r->flags & flag)
            return meta_json_bad(at, "transports", "must be \"dc\", \"rc\" or both, each once");
        r->flags |= flag;
    }
    if (r->flags == 0)
        return meta_json_bad(at, "transports", "must be an array with \"dc\", \"rc\" or both");
    return 0;
}

static int decode_mtu(const struct json_at *at, json_t *object, enum ibv_mtu *out)
{
    uint64_t mtu = 0;
    int status = meta_json_number(at, object, "mtu", true, 256, 4096, &mtu);
    if (status != 0)
        return status;
    if ((mtu & (mtu - 1)) != 0)
        return meta_json_bad(at, "mtu", "must be 256, 512, 1024, 2048 or 4096");
    *out = (enum ibv_mtu)(__builtin_ctzll(mtu) - 7); /* 256 is 1 ... 4096 is 5 */
    return 0;
}

static int decode_mr_table(const struct json_at *at, json_t *endpoint,
                           struct schema_endpoint_record *r)
{
    static const char *const names[] = {"addr", "rkey", "log2_slots", NULL};
    json_t *object = json_object_get(endpoint, "mr_table");
    struct json_at inner = {.violation = at->violation};
    uint64_t addr = 0, rkey = 0, log2_slots = 0;
    if (object == NULL)
        return 0;
    snprintf(inner.prefix, sizeof inner.prefix, "%.20smr_table.", at->prefix);
    int status = meta_json_only(&inner, object, names);
    if (status == 0)
        status = read_hex(&inner, object, "addr", true, &addr);
    if (status == 0)
        status = meta_json_number(&inner, object, "rkey", true, 0, UINT32_MAX, &rkey);
    if (status == 0)
        status = meta_json_number(&inner, object, "log2_slots", true, 1, 30, &log2_slots);
    if (status != 0)
        return status;
    if (addr >> 48 != 0)
        return meta_json_bad(&inner, "addr", "must be an address below 2^48");
    r->mr_table_addr_hi = (uint16_t)(addr >> 32);
    r->mr_table_addr_lo = (uint32_t)addr;
    r->mr_table_rkey = (uint32_t)rkey;
    r->udqpn_slots |= (uint32_t)log2_slots << 24;
    return 0;
}

static int decode_numbers(const struct json_at *at, json_t *object,
                          struct schema_endpoint_record *r)
{
    bool dc = r->flags & SCHEMA_RECORD_DC, rc = r->flags & SCHEMA_RECORD_RC;
    uint64_t pool = 0, dct = 0, ud_qpn = 0, ud_qkey = 0, lid = 0, dc_key = 0;
    int status = meta_json_number(at, object, "pool", true, 0, UINT16_MAX, &pool);
    if (status == 0)
        status = meta_json_number(at, object, "dct_number", dc, dc ? 1 : 0, 0xffffff, &dct);
    if (status == 0)
        status = read_hex(at, object, "dc_key", dc, &dc_key);
    if (status == 0)
        status = meta_json_number(at, object, "ud_qpn", rc, rc ? 1 : 0, 0xffffff, &ud_qpn);
    if (status == 0)
        status = meta_json_number(at, object, "ud_qkey", rc, 0, UINT32_MAX, &ud_qkey);
    if (status == 0)
        status = meta_json_number(at, object, "lid", false, 0, UINT16_MAX, &lid);
    r->pool = (uint16_t)pool;
    r->dctn_mtu |= (uint32_t)dct;
    r->dc_key = dc_key;
    r->udqpn_slots |= (uint32_t)ud_qpn;
    r->ud_qkey = (uint32_t)ud_qkey;
    r->lid = (uint16_t)lid;
    return status;
}

/* An endpoint that is made anew is one above its former one. What is published of it is its node's
 * until that has a later life: so it is not far above that one. */
enum { ENDPOINT_LIVES = 65536 };

static int decode_endpoint(const struct json_at *at, json_t *object,
                           struct schema_endpoint_record *r)
{
    static const char *const names[] = {"gid",    "pool",     "transports",  "dct_number",
                                        "dc_key", "mtu",      "ud_qpn",      "ud_qkey",
                                        "lid",    "mr_table", "incarnation", NULL};
    enum ibv_mtu mtu = 0;
    uint64_t incarnation = r->incarnation; /* the node's */
    const uint64_t most = incarnation + ENDPOINT_LIVES;
    int status = meta_json_only(at, object, names);
    if (status == 0)
        status = meta_json_number(at, object, "incarnation", false, r->incarnation,
                                  most < UINT32_MAX ? most : UINT32_MAX - 1, &incarnation);
    r->incarnation = (uint32_t)incarnation;
    if (status == 0)
        status = meta_json_gid(at, object, "gid", true, r->gid);
    if (status == 0)
        status = decode_transports(at, object, r);
    if (status == 0)
        status = decode_mtu(at, object, &mtu);
    r->dctn_mtu = (uint32_t)mtu << 24;
    if (status == 0)
        status = decode_numbers(at, object, r);
    if (status == 0)
        status = decode_mr_table(at, object, r);
    r->flags |= SCHEMA_RECORD_LIVE;
    return status;
}

static int decode_endpoints(struct json_at *at, json_t *array, struct meta_registration *out)
{
    size_t count = json_array_size(array); /* 0 of what is no array */
    if (count < 1 || count > META_STORE_NODE_ENDPOINTS)
        return meta_json_bad(at, "endpoints", "must be an array of 1 to 16 endpoints");
    for (size_t i = 0; i < count; i++) {
        struct schema_endpoint_record *r = &out->endpoint[i];
        snprintf(at->prefix, sizeof at->prefix, "endpoints[%u].", (unsigned)i);
        r->incarnation = out->incarnation;
        int status = decode_endpoint(at, json_array_get(array, i), r);
        if (status != 0)
            return status;
        for (size_t k = 0; k < i; k++)
            if (r->pool == out->endpoint[k].pool &&
                memcmp(r->gid, out->endpoint[k].gid, sizeof r->gid) == 0)
                return meta_json_bad(at, "", "has the same gid and pool as an earlier one");
    }
    out->endpoint_count = (uint32_t)count;
    return 0;
}

static bool has_pool(const struct meta_registration *r, uint64_t pool)
{
    for (uint32_t i = 0; i < r->endpoint_count; i++)
        if (r->endpoint[i].pool == pool)
            return true;
    return false;
}

static int decode_reader(struct json_at *at, json_t *root, const struct meta_registration *r,
                         struct meta_responder_peer *out)
{
    static const char *const names[] = {"gid", "qpn", "psn", "mtu", "lid", "pool", "lane", NULL};
    json_t *object = json_object_get(root, "reader");
    uint64_t qpn = 0, psn = 0, lid = 0, lane = 0, pool = r->endpoint[0].pool;
    if (object == NULL)
        return 0;
    snprintf(at->prefix, sizeof at->prefix, "reader.");
    int status = meta_json_only(at, object, names);
    if (status == 0)
        status = meta_json_gid(at, object, "gid", true, out->gid);
    if (status == 0)
        status = meta_json_number(at, object, "qpn", true, 1, 0xffffff, &qpn);
    if (status == 0)
        status = meta_json_number(at, object, "psn", true, 0, 0xffffff, &psn);
    if (status == 0)
        status = decode_mtu(at, object, &out->mtu);
    if (status == 0)
        status = meta_json_number(at, object, "lid", false, 0, UINT16_MAX, &lid);
    if (status == 0)
        status = meta_json_number(at, object, "pool", false, 0, UINT16_MAX, &pool);
    if (status == 0 && !has_pool(r, pool))
        status = meta_json_bad(at, "pool", "must be the pool of one of the endpoints");
    if (status == 0)
        status = meta_json_number(at, object, "lane", false, 0, META_RESPONDERS_LANES - 1, &lane);
    out->qpn = (uint32_t)qpn;
    out->psn = (uint32_t)psn;
    out->lid = (uint16_t)lid;
    out->pool = (uint16_t)pool;
    out->lane = (uint8_t)lane;
    return status;
}

int meta_json_registration(const char *id, const void *body, size_t bytes,
                           struct meta_registration *out, struct meta_responder_peer *initiator,
                           struct meta_violation *violation)
{
    static const char *const names[] = {"incarnation", "endpoints", "reader", NULL};
    struct meta_responder_peer peer = {.qpn = 0};
    struct meta_registration r = {.incarnation = 0};
    struct json_at at = {.violation = violation};
    uint32_t incarnation;
    json_t *root;
    if (!meta_json_is_id(id))
        return meta_json_bad(&at, "id",
                             "must be 1 to 63 of a-z, 0-9, '.' and '-', and begin with a letter or "
                             "digit");
    int status = meta_json_parse_agents(body, bytes, &at, names, &root, &incarnation);
    if (status != 0)
        return status;
    memcpy(r.id, id, strlen(id));
    r.incarnation = incarnation;
    status = decode_endpoints(&at, json_object_get(root, "endpoints"), &r);
    if (status == 0)
        status = decode_reader(&at, root, &r, &peer);
    json_decref(root);
    if (status == 0) {
        *out = r;
        *initiator = peer;
    }
    return status;
}

int meta_json_renewal(const void *body, size_t bytes, uint32_t *incarnation,
                      struct meta_violation *violation)
{
    static const char *const names[] = {"incarnation", NULL};
    struct json_at at = {.violation = violation};
    json_t *root;
    int status = meta_json_parse_agents(body, bytes, &at, names, &root, incarnation);
    if (status == 0)
        json_decref(root);
    return status;
}

int meta_json_report(const void *body, size_t bytes, uint32_t *incarnation, struct meta_report *out,
                     struct meta_violation *violation)
{
    static const char *const names[] = {"incarnation", "revision", "seen", "sessions", "why", NULL};
    struct meta_report r = {.reported = true, .sessions = UINT32_MAX};
    struct json_at at = {.violation = violation};
    uint64_t sessions = UINT32_MAX;
    uint32_t known;
    json_t *root;
    int status = meta_json_parse_agents(body, bytes, &at, names, &root, &known);
    if (status != 0)
        return status;
    status = meta_json_number(&at, root, "revision", true, 0, INT64_MAX, &r.revision);
    if (status == 0)
        status = meta_json_number(&at, root, "seen", true, 0, INT64_MAX, &r.seen);
    if (status == 0)
        status = meta_json_number(&at, root, "sessions", false, 0, UINT32_MAX - 1, &sessions);
    if (status == 0)
        status = meta_json_text(&at, root, "why", r.why, sizeof r.why);
    json_decref(root);
    if (status != 0)
        return status;
    r.sessions = (uint32_t)sessions;
    *incarnation = known;
    *out = r;
    return 0;
}

static void copy_short(const json_t *object, const char *name, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(object, name));
    snprintf(out, size, "%s", text != NULL && strlen(text) < size ? text : "");
}

/* Anybody may have written it who can write to the store. */
void meta_json_about(const char *json, struct meta_json_about *out)
{
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
    copy_short(root, "version", out->version, sizeof out->version);
    copy_short(root, "url", out->url, sizeof out->url);
    json_decref(root);
}
