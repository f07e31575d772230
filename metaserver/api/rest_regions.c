/* SPDX-License-Identifier: Apache-2.0 */
/* Names of regions in the REST interface: agents publish those of their workers, and take them
 * back; operators see who has which, and never what grants them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/json_writer.h"
#include "metaserver/json.h"
#include "metaserver/json_read.h"
#include "rest_private.h"

static_assert(META_STORE_GRANT_BYTES == SCHEMA_TOKEN_TEXT, "a grant is a region's token");
static_assert(META_STORE_NAME_BYTES == SCHEMA_NAME_MAX + 1, "any name of a region");
static_assert(META_STORE_ID_BYTES == SCHEMA_NAME_SPACE_BYTES, "any space of names");
static_assert(SCHEMA_NAME_TENANT_MAX == RESOURCE_TENANT_NAME_MAX, "any tenant");
static_assert(META_STORE_ID_BYTES + META_STORE_NAME_BYTES <= REST_CURSOR_BYTES, "a cursor");

#define NAME_MUST   "must be 1 to 255 bytes of UTF-8 without control characters"
#define TENANT_MUST "must be the name of a tenant"
#define FOR_MUST    "must be the name of another tenant"

struct region_write {
    struct meta_write base;
    struct meta_store_name name;
    uint32_t life;                 /* of the node, as it says */
    char digest[BASE_DIGEST_NAME]; /* taking back: of what it grants; "": whatever that is */
    bool created;
    bool again; /* its agent says that it has published it before, and a worker knows */
};

static void free_region_write(struct meta_write *w)
{
    free(w);
}

/* ---- what is said */

static void write_region(struct base_text *out, const struct meta_store_name *name,
                         enum meta_name_life life)
{
    static const char *const states[] = {
        [META_NAME_LIVE] = "live", [META_NAME_AWAY] = "away", [META_NAME_DEAD] = "gone"};
    char id[META_STORE_ID_BYTES + META_STORE_NAME_BYTES], owner[SCHEMA_NAME_SPACE_BYTES];
    const char *reader = schema_name_owner(name->tenant, owner);
    struct schema_token grant = {.length = 0};
    (void)schema_token_parse(name->grant, &grant);
    snprintf(id, sizeof id, "%s/%s", name->tenant, name->name); /* no tenant has a '/' */
    base_json_object(out, NULL);
    base_json_string(out, "id", id);
    base_json_string(out, "tenant", owner);
    if (reader[0] != '\0')
        base_json_string(out, "for", reader);
    base_json_string(out, "name", name->name);
    base_json_string(out, "node", name->node);
    base_json_u64(out, "incarnation", name->incarnation);
    base_json_string(out, "state", states[life]);
    base_json_u64(out, "bytes", grant.length);
    base_json_array(out, "access");
    if (grant.access & SCHEMA_RECORD_READ)
        base_json_string(out, NULL, "read");
    if (grant.access & SCHEMA_RECORD_WRITE)
        base_json_string(out, NULL, "write");
    if (grant.access & SCHEMA_RECORD_ATOMIC)
        base_json_string(out, NULL, "atomic");
    base_json_array_end(out);
    base_json_object_end(out);
}

/* False where this metaserver keeps none; then the answer has been given. */
static bool keeps_names(struct call *c)
{
    if (c->s->names == NULL)
        meta_rest_problem(c, REST_NO_ROUTE, "this metaserver keeps no names of regions");
    return c->s->names != NULL;
}

/* ---- publishing */

/* Whether the node is this life, and lives; else the answer has been given. */
static bool is_life(struct call *c, const struct region_write *r, struct meta_node_view *view)
{
    if (meta_directory_show(c->s->directory, r->name.node, c->now, view) != 0) {
        meta_rest_problem(c, REST_NO_NODE, NULL);
    } else if (view->incarnation > r->life) {
        c->s->count.stale++;
        meta_rest_stale(c, view->incarnation);
    } else if (view->incarnation != r->life || view->state != META_NODE_LIVE) {
        meta_rest_problem(c, REST_REGISTER_AGAIN,
                          "PUT the node: this metaserver does not hold its endpoints");
    } else {
        return true;
    }
    return false;
}

/* The incarnation of the node's endpoint by which what the name grants is reached; 0: the store has
 * it, as another metaserver wrote it; the table here does not. -ENOENT: the node has none such. */
static int64_t find_endpoint(const struct meta_node_view *view, const struct meta_store_name *name)
{
    struct schema_token grant = {.pool = 0};
    const bool parsed = schema_token_parse(name->grant, &grant) == 0;
    for (uint32_t i = 0; parsed && i < view->endpoint_count; i++)
        if (view->endpoint[i].pool == grant.pool &&
            memcmp(view->endpoint[i].gid, grant.gid, sizeof grant.gid) == 0)
            return view->endpoint[i].incarnation;
    return -ENOENT;
}

/* What a node grants is reached through an endpoint of its own, whose incarnation the name has:
 * where the endpoint was made anew since, nobody takes the name for one of what is there now. */
static bool is_of_node(struct call *c, struct meta_store_name *name,
                       const struct meta_node_view *view)
{
    const int64_t endpoint = find_endpoint(view, name);
    if (endpoint < 0) {
        meta_rest_malformed(c, "grant",
                            "must be the token of a region of one of the node's endpoints");
        return false;
    }
    name->incarnation = (uint32_t)endpoint;
    if (endpoint > 0)
        return true;
    meta_rest_problem(c, REST_REGISTER_AGAIN,
                      "PUT the node: this metaserver does not show that endpoint yet");
    return false;
}

/* How many names a tenant may have, in all of its spaces. */
static uint64_t names_of(const struct meta_service *s, const char *owner)
{
    const struct meta_resource *r = meta_resources_find(s->resources, META_TENANT, owner);
    const uint64_t said = r != NULL ? r->tenant.numbers.region_names : RESOURCE_UNSAID;
    return said != RESOURCE_UNSAID ? said : META_NAMES_OF_TENANT;
}

/* Others may publish at other metaservers at this moment: each of these keeps room for one. */
static bool has_room(struct call *c, const struct meta_store_name *name)
{
    const struct meta_names *names = c->s->names;
    const uint32_t max = meta_names_max(names), half = max / 2,
                   of_node = half < META_NAMES_OF_NODE ? half : META_NAMES_OF_NODE,
                   kept = max / 4 < META_STORE_MEMBERS_MAX ? max / 4 : META_STORE_MEMBERS_MAX;
    const bool is_new = meta_names_find(names, name->tenant, name->name) == NULL;
    char detail[160], owner[SCHEMA_NAME_SPACE_BYTES];
    (void)schema_name_owner(name->tenant, owner);
    if (is_new && meta_names_of_tenant(names, owner) >= names_of(c->s, owner)) {
        snprintf(detail, sizeof detail,
                 "tenant %s has %" PRIu64 " names of regions at most (region_names)", owner,
                 names_of(c->s, owner));
        meta_rest_problem(c, REST_QUOTA, detail);
    } else if (is_new && meta_names_of_node(names, name->node) >= of_node) {
        snprintf(detail, sizeof detail, "a node has %" PRIu32 " names of regions at most", of_node);
        meta_rest_problem(c, REST_QUOTA, detail);
    } else if ((is_new && c->s->hearing.shared && meta_names_count(names) + kept >= max) ||
               meta_names_check(names, name) != 0)
        meta_rest_problem(c, REST_FULL, "raise max_names in the metaserver's configuration");
    else
        return true;
    return false;
}

static void answer_published(struct call *c, const struct region_write *r)
{
    c->answer->status = r->created ? 201 : 200;
    write_region(c->body, &r->name, META_NAME_LIVE);
    base_text_append(c->body, "\n", 1);
}

/* The store was put back, and may have lost who has the name, or who gave it up: until all who live
 * have said what they have, or are dead, it is nobody's that did not have it. Those who had it get
 * it if nobody is in their way; who is there may be about to take it back. */
static bool is_unsettled(struct call *c, const struct region_write *r,
                         const struct meta_store_name *known)
{
    char detail[96];
    if (c->now >= c->s->hearing.settles_ns || (r->created && r->again) ||
        (!r->created &&
         (!r->again || meta_store_name_equals(known, &r->name) || strcmp(known->node, c->id) == 0)))
        return false;
    snprintf(detail, sizeof detail, "names are given to others again in %" PRIu64 " s at most",
             (uint64_t)((c->s->hearing.settles_ns - c->now) / BASE_NS_PER_S + 1));
    meta_rest_problem(c, REST_SETTLING, detail);
    return true;
}

static bool begin_publishing(struct call *c, struct meta_write *w)
{
    struct region_write *r = (struct region_write *)w;
    struct meta_node_view view;
    if (meta_service_is_behind(c->s, c->now)) { /* whom it takes for the owner may be dead */
        meta_rest_problem(c, REST_BEHIND, "it does not know who has which name");
        return false;
    }
    if (!is_life(c, r, &view) || !is_of_node(c, &r->name, &view))
        return false;
    const struct meta_store_name *known =
        meta_names_find(c->s->names, r->name.tenant, r->name.name);
    r->created = known == NULL || meta_service_name_life(c->s, known) == META_NAME_DEAD;
    if (is_unsettled(c, r, known))
        return false;
    if (!r->created && !meta_store_name_equals(known, &r->name)) {
        meta_rest_name_taken(c, known);
        return false;
    }
    if (!has_room(c, &r->name))
        return false;
    if (!r->created && !c->s->hearing.shared) { /* nothing is to be written: nobody waits for it */
        meta_service_put_name(c->s, &r->name, c->now); /* it may not be shown yet */
        answer_published(c, r);
        return false;
    }
    w->job.txn = (struct meta_store_txn){.publish = &r->name};
    return true;
}

/* What is there already, as agents say it that have lost an answer, or hear of a put-back. Not
 * where others write the store too: one of them may have taken it back, and this one not heard of
 * it. */
static bool is_publication_kept(struct call *c, const struct meta_write *w)
{
    const struct region_write *r = (const struct region_write *)w;
    struct meta_store_name name = r->name;
    struct meta_node_view view;
    int64_t endpoint = 0;
    if (c->s->hearing.shared || meta_service_is_behind(c->s, c->now) ||
        meta_directory_show(c->s->directory, name.node, c->now, &view) != 0 ||
        view.incarnation != r->life || view.state != META_NODE_LIVE ||
        (endpoint = find_endpoint(&view, &name)) <= 0)
        return false;
    name.incarnation = (uint32_t)endpoint;
    const struct meta_store_name *known = meta_names_find(c->s->names, name.tenant, name.name);
    return known != NULL && meta_store_name_equals(known, &name);
}

static void end_publishing(struct call *c, struct meta_write *w)
{
    const struct region_write *r = (const struct region_write *)w;
    if (w->job.outcome.status == -EEXIST) {
        meta_rest_name_taken(c, meta_names_find(c->s->names, r->name.tenant, r->name.name));
    } else if (w->job.outcome.status == -ESTALE) {
        meta_rest_problem(c, REST_REGISTER_AGAIN,
                          "PUT the node: the store does not have this life of it");
    } else if (meta_write_is_stored(c, w)) {
        meta_service_put_name(c->s, &r->name, c->now);
        answer_published(c, r);
    }
}

/* What was given as a tenant and as another one, for whom it is ("": none is named). Returns which
 * of the two is wrong, or NULL. */
static const char *read_space(const char *tenant, const char *reader, char out[META_STORE_ID_BYTES])
{
    if (!meta_resource_is_name(tenant, RESOURCE_TENANT_NAME_MAX))
        return "tenant";
    if (reader[0] != '\0' &&
        (!meta_resource_is_name(reader, RESOURCE_TENANT_NAME_MAX) || strcmp(reader, tenant) == 0))
        return "for";
    return schema_name_space(tenant, reader, out) == 0 ? NULL : "tenant";
}

static int decode_publication(struct call *c, struct meta_store_name *out, bool *again,
                              struct meta_violation *violation)
{
    static const char *const names[] = {"incarnation", "tenant", "for", "name",
                                        "grant",       "again",  NULL};
    const struct json_at at = {.violation = violation};
    char tenant[META_STORE_ID_BYTES] = "", reader[META_STORE_ID_BYTES] = "";
    const char *wrong;
    json_t *root;
    int status = meta_json_parse_agents(c->request->body, c->request->body_bytes, &at, names, &root,
                                        &out->incarnation);
    if (status != 0)
        return status;
    status = meta_json_text(&at, root, "tenant", tenant, sizeof tenant);
    if (status == 0)
        status = meta_json_text(&at, root, "for", reader, sizeof reader);
    if (status == 0)
        status = meta_json_text(&at, root, "name", out->name, sizeof out->name);
    if (status == 0)
        status = meta_json_text(&at, root, "grant", out->grant, sizeof out->grant);
    const json_t *said = json_object_get(root, "again");
    *again = json_is_true(said);
    if (status == 0 && said != NULL && !json_is_boolean(said))
        status = meta_json_bad(&at, "again", "must be true or false");
    if (status == 0 && (wrong = read_space(tenant, reader, out->tenant)) != NULL)
        status = meta_json_bad(&at, wrong, wrong[0] == 't' ? TENANT_MUST : FOR_MUST);
    if (status == 0 && schema_name_check(out->name) != 0)
        status = meta_json_bad(&at, "name", NAME_MUST);
    json_decref(root);
    memcpy(out->node, c->id, sizeof out->node);
    return status;
}

static struct region_write *new_region_write(struct call *c, const struct meta_write_kind *kind)
{
    struct region_write *r = calloc(1, sizeof *r);
    if (r == NULL)
        meta_rest_problem(c, REST_CROWDED, "out of memory: try again");
    else
        meta_write_init(&r->base, kind, c);
    return r;
}

void meta_rest_put_region(struct call *c)
{
    static const struct meta_write_kind publishing = {.what = "publishing a region",
                                                      .of_names = true,
                                                      .begin = begin_publishing,
                                                      .is_kept = is_publication_kept,
                                                      .end = end_publishing,
                                                      .free = free_region_write};
    struct meta_store_name name = {.incarnation = 0};
    struct meta_violation violation;
    bool again;
    if (!keeps_names(c) || !meta_rest_has_json(c))
        return;
    if (decode_publication(c, &name, &again, &violation) != 0) {
        meta_rest_malformed(c, violation.field, violation.detail);
        return;
    }
    struct region_write *r = new_region_write(c, &publishing);
    if (r == NULL)
        return;
    r->name = name;
    r->life = name.incarnation;
    r->again = again;
    meta_write_decide(c, &r->base);
}

/* ---- taking back */

/* Whether that life of the node has published it. */
static bool is_of_life(struct call *c, const struct meta_store_name *name, uint32_t life)
{
    struct meta_node_view view;
    return name->incarnation == life ||
           (name->incarnation > life &&
            meta_directory_show(c->s->directory, name->node, c->now, &view) == 0 &&
            view.incarnation == life);
}

/* So that a late one takes nothing back that was published since. */
static bool is_meant(const struct region_write *r, const struct meta_store_name *known)
{
    char digest[BASE_DIGEST_NAME];
    return r->digest[0] == '\0' ||
           (base_digest_name(known->grant, digest) == 0 && strcmp(digest, r->digest) == 0);
}

static bool begin_taking_back(struct call *c, struct meta_write *w)
{
    struct region_write *r = (struct region_write *)w;
    const struct meta_store_name *known =
        meta_names_find(c->s->names, r->name.tenant, r->name.name);
    if (known == NULL || strcmp(known->node, r->name.node) != 0 || !is_of_life(c, known, r->life)) {
        meta_rest_not_published(c, NULL);
        return false;
    }
    if (!is_meant(r, known)) {
        meta_rest_not_published(c, known);
        return false;
    }
    r->name = *known;
    w->job.txn = (struct meta_store_txn){.withdraw = &r->name, .withdraw_count = 1};
    return true;
}

static void end_taking_back(struct call *c, struct meta_write *w)
{
    if (!meta_write_is_stored(c, w))
        return;
    meta_names_remove(c->s->names, &((const struct region_write *)w)->name);
    c->answer->status = 204;
}

/* The query's incarnation; else the answer has been given. */
static bool read_life(struct call *c, uint32_t *out)
{
    const char *text = c->request->parameter[META_PARAMETER_INCARNATION];
    uint64_t incarnation = 0;
    if (text == NULL || base_parse_u64(text, 1, UINT32_MAX, &incarnation) != 0)
        meta_rest_malformed(c, "incarnation", "must be a number from 1 to 4294967295");
    *out = (uint32_t)incarnation;
    return incarnation != 0;
}

/* The query's other parameters; else the answer has been given. */
static bool read_which(struct call *c, struct meta_store_name *out)
{
    const char *const *given = c->request->parameter;
    const char *tenant = given[META_PARAMETER_TENANT], *name = given[META_PARAMETER_NAME],
               *reader = given[META_PARAMETER_FOR];
    const char *wrong =
        read_space(tenant != NULL ? tenant : "", reader != NULL ? reader : "", out->tenant);
    const char *digest = given[META_PARAMETER_DIGEST];
    if (!read_life(c, &out->incarnation))
        return false;
    if (wrong != NULL)
        meta_rest_malformed(c, wrong, wrong[0] == 't' ? TENANT_MUST : FOR_MUST);
    else if (name == NULL || schema_name_check(name) != 0)
        meta_rest_malformed(c, "name", NAME_MUST);
    else if (digest != NULL && strspn(digest, "0123456789abcdef") != BASE_DIGEST_NAME - 1)
        meta_rest_malformed(c, "digest", "must be 32 hexadecimal digits");
    else {
        snprintf(out->name, sizeof out->name, "%s", name);
        memcpy(out->node, c->id, sizeof out->node);
        return true;
    }
    return false;
}

void meta_rest_delete_region(struct call *c)
{
    static const struct meta_write_kind taking_back = {.what = "taking back a region's name",
                                                       .of_names = true,
                                                       .begin = begin_taking_back,
                                                       .end = end_taking_back,
                                                       .free = free_region_write};
    const char *digest = c->request->parameter[META_PARAMETER_DIGEST];
    struct meta_store_name name = {.incarnation = 0};
    if (!keeps_names(c) || !read_which(c, &name))
        return;
    struct region_write *r = new_region_write(c, &taking_back);
    if (r == NULL)
        return;
    r->name = name;
    r->life = name.incarnation;
    snprintf(r->digest, sizeof r->digest, "%s", digest != NULL ? digest : "");
    meta_write_decide(c, &r->base);
}

/* ---- listing */

/* A cursor is "SPACE/NAME": no tenant has a '/'. */
static bool read_region_cursor(struct call *c, struct meta_store_name *after)
{
    char cursor[REST_CURSOR_BYTES];
    if (!meta_rest_read_cursor(c, cursor))
        return false;
    const size_t length = strcspn(cursor, "/");
    if (cursor[0] == '\0')
        return true;
    if (cursor[length] == '/' && length < sizeof after->tenant &&
        schema_name_check(cursor + length + 1) == 0) {
        memcpy(after->tenant, cursor, length);
        snprintf(after->name, sizeof after->name, "%s", cursor + length + 1);
        return true;
    }
    meta_rest_bad_cursor(c);
    return false;
}

static bool is_wanted(const struct call *c, const struct meta_store_name *name)
{
    const char *tenant = c->request->parameter[META_PARAMETER_TENANT];
    const char *node = c->request->parameter[META_PARAMETER_NODE];
    const char *wants = c->request->parameter[META_PARAMETER_FOR];
    char owner[SCHEMA_NAME_SPACE_BYTES];
    const char *reader = schema_name_owner(name->tenant, owner);
    return (tenant == NULL || strcmp(tenant, owner) == 0) &&
           (wants == NULL || strcmp(wants, reader) == 0) &&
           (node == NULL || strcmp(node, name->node) == 0);
}

/* after: of the last one that is on it; NULL: there are no more. */
static void end_page(struct call *c, const struct meta_store_name *after)
{
    char cursor[REST_CURSOR_BYTES];
    base_json_array_end(c->body);
    if (after != NULL) {
        snprintf(cursor, sizeof cursor, "%.*s/%.*s", META_STORE_ID_BYTES - 1, after->tenant,
                 META_STORE_NAME_BYTES - 1, after->name);
        meta_rest_next_cursor(c, cursor);
    }
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}

void meta_rest_list_regions(struct call *c)
{
    struct meta_store_name after = {.incarnation = 0};
    const struct meta_store_name *at = NULL;
    char position[TRAIL_POSITION_BYTES];
    uint64_t limit, n = 0, looks = 0;
    if (!keeps_names(c))
        return;
    if (c->request->parameter[META_PARAMETER_WATCH] != NULL ||
        c->request->parameter[META_PARAMETER_POSITION] != NULL) {
        meta_rest_watch_regions(c);
        return;
    }
    if (!meta_rest_read_limit(c, &limit) || !read_region_cursor(c, &after))
        return;
    base_json_object(c->body, NULL);
    meta_rest_names_position(c->s, position);
    base_json_string(c->body, "position", position);
    base_json_array(c->body, "regions");
    while ((at = meta_names_after(c->s->names, after.tenant, after.name)) != NULL && n < limit &&
           looks < REST_LOOKS) {
        after = *at;
        if (is_wanted(c, at)) {
            base_text_printf(c->body, n++ == 0 ? "\n" : ",\n");
            write_region(c->body, at, meta_service_name_life(c->s, at));
        } else {
            looks++;
        }
    }
    end_page(c, at != NULL ? &after : NULL);
}

/* What a life of a node has, for its agent: which of it is what that has put is told by digests, so
 * that it takes back what it has not, where a store was put back, and says what is missing. */
void meta_rest_list_node_regions(struct call *c)
{
    struct meta_store_name after = {.incarnation = 0};
    const struct meta_store_name *at = NULL;
    char owner[SCHEMA_NAME_SPACE_BYTES];
    uint64_t limit, n = 0;
    uint32_t life;
    if (!keeps_names(c) || !read_life(c, &life) || !meta_rest_read_limit(c, &limit) ||
        !read_region_cursor(c, &after))
        return;
    base_json_object(c->body, NULL);
    base_json_array(c->body, "regions");
    while ((at = meta_names_after_of_node(c->s->names, c->id, after.tenant, after.name)) != NULL &&
           n < limit) {
        after = *at;
        if (!is_of_life(c, at, life))
            continue;
        const char *reader = schema_name_owner(at->tenant, owner);
        base_text_printf(c->body, n++ == 0 ? "\n" : ",\n");
        base_json_object(c->body, NULL);
        base_json_string(c->body, "tenant", owner);
        if (reader[0] != '\0')
            base_json_string(c->body, "for", reader);
        base_json_string(c->body, "name", at->name);
        meta_rest_write_digest(c, at);
        base_json_object_end(c->body);
    }
    end_page(c, at != NULL ? &after : NULL);
}
