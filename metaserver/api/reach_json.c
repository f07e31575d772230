/* SPDX-License-Identifier: Apache-2.0 */
#include "reach_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "metaserver/json_read.h"

#define MOST_MS (365ull * 24 * 3600 * 1000)

static int decode_error(const struct json_at *at, json_t *object, enum meta_reach_error *out)
{
    const char *text = json_string_value(json_object_get(object, "error"));
    *out = META_REACH_OK;
    if (json_object_get(object, "error") == NULL)
        return 0;
    for (int i = META_REACH_OK + 1; text != NULL && i < META_REACH_ERRORS; i++)
        if (strcmp(text, meta_reach_error_name((enum meta_reach_error)i)) == 0)
            *out = (enum meta_reach_error)i;
    return *out != META_REACH_OK
               ? 0
               : meta_json_bad(at, "error", "must be timeout, unreachable, refused or device");
}

static int decode_tried(const struct json_at *at, json_t *object, bool table,
                        struct meta_reach_attempt *out)
{
    static const char *const names[] = {"gid", "for_ms", "error", NULL};
    uint64_t for_ms = 0;
    int status = meta_json_only(at, object, names + table);
    if (status == 0 && !table)
        status = meta_json_gid(at, object, "gid", true, out->gid);
    if (status == 0)
        status = meta_json_number(at, object, "for_ms", false, 0, MOST_MS, &for_ms);
    out->for_ns = for_ms * BASE_NS_PER_MS;
    return status == 0 ? decode_error(at, object, &out->error) : status;
}

static int decode_targets(struct json_at *at, json_t *root, uint16_t pool,
                          struct meta_reach_claims *out)
{
    json_t *array = json_object_get(root, "targets"), *one;
    size_t i;
    int status = 0;
    if (!json_is_array(array) || json_array_size(array) > META_REACH_TARGETS)
        return meta_json_bad(at, "targets", "must be an array of at most 16 endpoints");
    json_array_foreach(array, i, one)
    {
        struct meta_reach_attempt *t = &out->tried[out->count++];
        snprintf(at->prefix, sizeof at->prefix, "targets[%u].", (unsigned)i);
        t->pool = pool;
        if (status == 0)
            status = decode_tried(at, one, false, t);
    }
    return status;
}

int meta_reach_json_decode(const void *body, size_t bytes, uint32_t *incarnation, uint16_t *pool,
                           struct meta_reach_claims *out, struct meta_violation *violation)
{
    static const char *const names[] = {"incarnation", "pool", "table", "targets", NULL};
    struct meta_reach_claims r = {.count = 0};
    struct meta_reach_attempt table = {.pool = 0};
    struct json_at at = {.violation = violation};
    uint64_t number = 0;
    uint32_t known;
    json_t *root;
    int status = meta_json_parse_agents(body, bytes, &at, names, &root, &known);
    if (status != 0)
        return status;
    status = meta_json_number(&at, root, "pool", true, 0, UINT16_MAX, &number);
    r.has_table = json_object_get(root, "table") != NULL;
    if (status == 0 && r.has_table) {
        struct json_at inner = {.violation = violation, .prefix = "table."};
        status = decode_tried(&inner, json_object_get(root, "table"), true, &table);
    }
    r.table =
        (struct meta_reach_tried){.node = UINT32_MAX, .error = table.error, .for_ns = table.for_ns};
    if (status == 0)
        status = decode_targets(&at, root, (uint16_t)number, &r);
    json_decref(root);
    if (status != 0)
        return status;
    *incarnation = known;
    *pool = (uint16_t)number;
    *out = r;
    return 0;
}

void meta_reach_json_answer(struct base_text *out, const struct meta_reach_peer *peers,
                            uint32_t count, const struct meta_reach_unreached *unreached)
{
    char gid[BASE_GID_TEXT];
    base_json_object(out, NULL);
    base_json_array(out, "prove");
    for (uint32_t i = 0; i < count; i++) {
        base_json_object(out, NULL);
        base_json_string(out, "node", peers[i].id);
        base_json_string(out, "gid", base_gid_format(peers[i].gid, gid));
        base_json_object_end(out);
    }
    base_json_array_end(out);
    if (unreached != NULL) {
        base_json_object(out, "unreached");
        base_json_u64(out, "by", unreached->by);
        base_json_u64(out, "tried_by", unreached->tried_by);
        base_json_u64(out, "for_ms", unreached->for_ns / BASE_NS_PER_MS);
        base_json_object_end(out);
    }
    base_json_object_end(out);
    base_text_append(out, "\n", 1);
}

void meta_reach_json_write(struct base_text *out, const struct meta_directory *m,
                           const struct meta_reach_view *v)
{
    if (v->tried == 0 && v->tried_by == 0 && v->state == META_REACH_STATE_UNKNOWN)
        return;
    base_json_object(out, "fabric");
    base_json_string(out, "state", meta_reach_state_name(v->state));
    if (v->state >= META_REACH_STATE_UNDECIDED)
        base_json_u64(out, "for_ms", v->for_ns / BASE_NS_PER_MS);
    base_json_u64(out, "tried", v->tried);
    base_json_array(out, "failing");
    for (uint32_t i = 0; i < v->failing; i++) {
        const struct meta_reach_tried *t = &v->towards[i];
        base_json_object(out, NULL);
        if (v->table && i + 1 == v->failing)
            base_json_bool(out, "table", true);
        else
            base_json_string(out, "node", meta_directory_reach_name(m, t->node));
        base_json_string(out, "error", meta_reach_error_name(t->error));
        base_json_u64(out, "for_ms", t->for_ns / BASE_NS_PER_MS);
        base_json_object_end(out);
    }
    base_json_array_end(out);
    base_json_u64(out, "tried_by", v->tried_by);
    base_json_u64(out, "failed_by", v->failed_by);
    if (v->has_by)
        base_json_string(out, "not_reached_by", meta_directory_reach_name(m, v->by));
    base_json_object_end(out);
}
