/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/metaservers: which metaservers share the store, and how this one is. How another one is
 * it says itself, at its URL. */
#include <string.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "metaserver/json.h"
#include "rest_private.h"

static void write_member(struct base_text *out, const struct meta_store_member *m, bool self)
{
    struct meta_json_about about;
    meta_json_about(m->about, &about);
    base_json_object(out, NULL);
    base_json_string(out, "name", m->name);
    base_json_bool(out, "self", self);
    if (about.version[0] != '\0')
        base_json_string(out, "version", about.version);
    if (about.url[0] != '\0')
        base_json_string(out, "url", about.url);
    base_json_object_end(out);
}

static void write_members(struct call *c)
{
    const struct meta_hearing *h = &c->s->hearing;
    bool listed = false;
    base_json_array(c->body, "metaservers");
    for (uint32_t i = 0; h->shared && i < h->member_count; i++) {
        const bool self = strcmp(h->member[i].name, h->self.name) == 0;
        write_member(c->body, &h->member[i], self);
        listed |= self;
    }
    if (!listed) /* it shares the store with nobody, or nobody has heard of it yet */
        write_member(c->body, &h->self, true);
    base_json_array_end(c->body);
}

static void write_store(struct call *c)
{
    const struct meta_service *s = c->s;
    const struct meta_hearing *h = &s->hearing;
    base_json_object(c->body, "store");
    base_json_string(c->body, "kind", s->store->ops->name);
    base_json_bool(c->body, "shared", h->shared);
    if (s->store->prefix[0] != '\0')
        base_json_string(c->body, "prefix", s->store->prefix);
    if (s->store_id[0] != '\0')
        base_json_string(c->body, "id", s->store_id);
    base_json_u64(c->body, "revision", meta_resources_revision(s->resources));
    base_json_bool(c->body, "behind", meta_service_is_behind(s, c->now));
    if (h->shared && h->heard_ns != 0)
        base_json_u64(c->body, "heard_ms_ago",
                      c->now > h->heard_ns ? (c->now - h->heard_ns) / BASE_NS_PER_MS : 0);
    if (meta_service_is_open_to_all(s))
        base_json_string(c->body, "warning", meta_service_open_to_all);
    base_json_u64(c->body, "waiting", s->writes.count);
    base_json_u64(c->body, "errors", s->count.store_errors);
    if (h->why.text[0] != '\0' || s->writes.why.text[0] != '\0')
        base_json_string(c->body, "error",
                         h->why.text[0] != '\0' ? h->why.text : s->writes.why.text);
    base_json_object_end(c->body);
}

static void write_table(struct call *c)
{
    const struct meta_directory_counts count = meta_directory_count(c->s->directory);
    const struct schema_table_desc *table = meta_directory_table(c->s->directory);
    base_json_object(c->body, "table");
    base_json_hex64(c->body, "generation", table->generation);
    base_json_u64(c->body, "slots", (uint64_t)1 << table->log2_slots);
    base_json_u64(c->body, "max_endpoints", count.max_endpoints);
    base_json_u64(c->body, "live", count.published);
    base_json_u64(c->body, "awaited", count.awaited);
    base_json_object_end(c->body);
    base_json_object(c->body, "nodes");
    base_json_u64(c->body, "live", count.live);
    base_json_u64(c->body, "waiting", count.waiting);
    base_json_u64(c->body, "expired", count.expired);
    base_json_object_end(c->body);
    base_json_u64(c->body, "agents", c->s->agent_watches);
    base_json_u64(c->body, "followers", meta_watch_followers(c->s));
}

void meta_rest_list_metaservers(struct call *c)
{
    base_json_object(c->body, NULL);
    write_members(c);
    write_store(c);
    write_table(c);
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}
