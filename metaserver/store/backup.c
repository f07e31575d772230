/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/backup.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/json_writer.h"
#include "schema/resources.h"

enum {
    FORMAT = 1,
    DIGEST_TEXT = 2 * BASE_DIGEST_BYTES + 1,
    /* Beside one for each millisecond since the backup, which is more than a store writes in the
     * long run: for bursts, and for clocks that differ. */
    REVISIONS_LEFT_OUT = 1000000,
    RESTORE_BYTES = 64,
};

static void raise_revision(struct meta_backup_counts *counts, uint64_t revision)
{
    if (counts->revision < revision)
        counts->revision = revision;
}

/* ---- writing */

struct writing {
    struct base_text *out;
    struct meta_backup_counts counts;
    uint64_t lines;
};

static int write_node(void *user, const struct meta_store_node *node)
{
    struct writing *w = user;
    char gid[33];
    base_json_object(w->out, NULL);
    base_json_string(w->out, "node", node->id);
    base_json_u64(w->out, "incarnation", node->incarnation);
    base_json_u64(w->out, "identity", node->fingerprint.identity);
    base_json_bool(w->out, "expired", node->expired);
    base_json_array(w->out, "prints");
    for (uint32_t i = 0; i < node->fingerprint.count; i++) {
        base_json_array(w->out, NULL);
        base_json_u64(w->out, NULL, node->fingerprint.print[i].key);
        base_json_u64(w->out, NULL, node->fingerprint.print[i].body);
        base_json_array_end(w->out);
    }
    base_json_array_end(w->out);
    base_json_array(w->out, "endpoints");
    for (uint32_t i = 0; i < node->endpoint_count; i++) {
        base_json_array(w->out, NULL);
        base_json_string(w->out, NULL, base_hex_encode(node->endpoint[i].gid, 16, gid));
        base_json_u64(w->out, NULL, node->endpoint[i].pool);
        base_json_array_end(w->out);
    }
    base_json_array_end(w->out);
    base_json_object_end(w->out);
    base_text_append(w->out, "\n", 1);
    w->counts.nodes++;
    w->lines++;
    return w->out->error;
}

static int write_setting(void *user, const struct meta_store_resource *s)
{
    struct writing *w = user;
    base_json_object(w->out, NULL);
    base_json_u64(w->out, "setting", s->revision);
    base_json_string(w->out, "kind", s->kind);
    base_json_string(w->out, "name", s->name);
    base_json_string(w->out, "body", s->body);
    base_json_object_end(w->out);
    base_text_append(w->out, "\n", 1);
    w->counts.resources++;
    raise_revision(&w->counts, s->revision);
    w->counts.tokens += strcmp(s->kind, "token") == 0;
    w->lines++;
    return w->out->error;
}

static int write_change(void *user, const struct meta_store_change *c)
{
    struct writing *w = user;
    base_json_object(w->out, NULL);
    base_json_u64(w->out, "change", c->revision);
    base_json_u64(w->out, "time_ms", c->time_ms);
    base_json_string(w->out, "who", c->who);
    base_json_string(w->out, "kind", c->kind);
    base_json_string(w->out, "name", c->name);
    base_json_string(w->out, "before", c->before);
    base_json_string(w->out, "after", c->after);
    base_json_object_end(w->out);
    base_text_append(w->out, "\n", 1);
    w->counts.changes++;
    raise_revision(&w->counts, c->revision);
    w->lines++;
    return w->out->error;
}

static int digest_of(const char *text, char out[DIGEST_TEXT], struct base_errbuf *err)
{
    uint8_t digest[BASE_DIGEST_BYTES];
    if (base_digest(text, digest) != 0)
        return base_err(err, -EIO, "there is no SHA-256 on this host");
    base_hex_encode(digest, sizeof digest, out);
    return 0;
}

int meta_backup_write(struct meta_store *store, uint64_t wall_ms, struct base_text *out,
                      struct meta_backup_counts *counts, struct base_errbuf *err)
{
    struct writing w = {.out = out, .counts.time_ms = wall_ms, .lines = 1};
    const struct meta_store_visitor visitor = {write_setting, write_change, &w, NULL};
    char digest[DIGEST_TEXT];
    err->text[0] = '\0';
    base_json_object(out, NULL);
    base_json_string(out, "backup", "kedge-metad");
    base_json_i64(out, "format", FORMAT);
    base_json_string(out, "version", KEDGE_VERSION);
    base_json_u64(out, "time_ms", wall_ms);
    base_json_object_end(out);
    base_text_append(out, "\n", 1);
    int status = meta_store_load(store, write_node, &w, err);
    if (status == 0)
        status = meta_store_load_resources(store, &visitor, err);
    if (status == 0)
        status = out->error;
    if (status == 0)
        status = digest_of(base_text_str(out), digest, err);
    if (status == 0) {
        base_json_object(out, NULL);
        base_json_u64(out, "lines", w.lines);
        base_json_string(out, "sha256", digest);
        base_json_object_end(out);
        base_text_append(out, "\n", 1);
        status = out->error;
    }
    if (status != 0)
        return err->text[0] != '\0' ? status : base_err(err, status, "out of memory");
    *counts = w.counts;
    return 0;
}

/* ---- reading */

struct reading {
    const char *at, *end; /* of the lines between the first and the last */
    uint64_t line;
    json_t *root; /* what the last item borrows from */
    struct meta_backup_counts counts;
    struct meta_backup_restorer *by;
    char body[RESTORE_BYTES]; /* of the restore's own entry */
    bool over;                /* which was the last item */
};

static int refuse_line(const struct reading *r, struct base_errbuf *err)
{
    return base_err(err, -EBADMSG,
                    "line %" PRIu64
                    " is nothing that this version of kedge-metad knows: restore it "
                    "with the version that made it",
                    r->line);
}

static bool read_number(json_t *root, const char *name, uint64_t max, uint64_t *out)
{
    json_t *value = json_object_get(root, name);
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > max)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static bool read_pair(json_t *array, size_t i, uint64_t max, json_t **first, uint64_t *second)
{
    json_t *pair = json_array_get(array, i), *last = json_array_get(pair, 1);
    *first = json_array_get(pair, 0);
    if (json_array_size(pair) != 2 || !json_is_integer(last) || json_integer_value(last) < 0 ||
        (uint64_t)json_integer_value(last) > max)
        return false;
    *second = (uint64_t)json_integer_value(last);
    return true;
}

static bool read_prints(json_t *array, struct meta_store_fingerprint *p)
{
    json_t *key;
    uint64_t body;
    if (!json_is_array(array) || json_array_size(array) > META_STORE_NODE_ENDPOINTS)
        return false;
    for (; p->count < json_array_size(array); p->count++) {
        if (!read_pair(array, p->count, UINT32_MAX, &key, &body) || !json_is_integer(key) ||
            json_integer_value(key) < 0 || json_integer_value(key) > UINT32_MAX)
            return false;
        p->print[p->count] =
            (struct meta_store_print){(uint32_t)json_integer_value(key), (uint32_t)body};
    }
    return true;
}

static bool read_endpoints(json_t *array, struct meta_store_node *node)
{
    json_t *gid;
    uint64_t pool;
    if (!json_is_array(array) || json_array_size(array) > META_STORE_NODE_ENDPOINTS)
        return false;
    for (; node->endpoint_count < json_array_size(array); node->endpoint_count++) {
        struct meta_store_endpoint *e = &node->endpoint[node->endpoint_count];
        if (!read_pair(array, node->endpoint_count, UINT16_MAX, &gid, &pool) ||
            !json_is_string(gid) || json_string_length(gid) != 32 ||
            base_hex_decode(json_string_value(gid), e->gid, 16) != 0)
            return false;
        e->pool = (uint16_t)pool;
    }
    return true;
}

static bool read_node(json_t *root, struct meta_store_node *node)
{
    const char *id = json_string_value(json_object_get(root, "node"));
    json_t *expired = json_object_get(root, "expired");
    uint64_t incarnation, identity;
    *node = (struct meta_store_node){.incarnation = 0};
    if (id == NULL || id[0] == '\0' || strlen(id) >= sizeof node->id || !json_is_boolean(expired) ||
        !read_number(root, "incarnation", UINT32_MAX, &incarnation) || incarnation == 0 ||
        !read_number(root, "identity", UINT32_MAX, &identity))
        return false;
    memcpy(node->id, id, strlen(id) + 1);
    node->incarnation = (uint32_t)incarnation;
    node->fingerprint.identity = (uint32_t)identity;
    node->expired = json_is_true(expired);
    return read_prints(json_object_get(root, "prints"), &node->fingerprint) &&
           read_endpoints(json_object_get(root, "endpoints"), node);
}

static bool read_setting(json_t *root, struct meta_store_resource *s)
{
    *s = (struct meta_store_resource){.kind = json_string_value(json_object_get(root, "kind")),
                                      .name = json_string_value(json_object_get(root, "name")),
                                      .body = json_string_value(json_object_get(root, "body"))};
    return s->kind != NULL && s->name != NULL && s->body != NULL &&
           read_number(root, "setting", INT64_MAX, &s->revision) && s->revision > 0;
}

static bool read_change(json_t *root, struct meta_store_change *c)
{
    *c = (struct meta_store_change){.who = json_string_value(json_object_get(root, "who")),
                                    .kind = json_string_value(json_object_get(root, "kind")),
                                    .name = json_string_value(json_object_get(root, "name")),
                                    .before = json_string_value(json_object_get(root, "before")),
                                    .after = json_string_value(json_object_get(root, "after"))};
    return c->who != NULL && c->kind != NULL && c->name != NULL &&
           (c->before != NULL || c->after != NULL) &&
           read_number(root, "change", INT64_MAX, &c->revision) && c->revision > 0 &&
           read_number(root, "time_ms", INT64_MAX, &c->time_ms);
}

/* The next line, whole. */
static json_t *take_line(struct reading *r)
{
    const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at));
    json_error_t error;
    if (end == NULL)
        return NULL;
    json_t *root = json_loadb(r->at, (size_t)(end - r->at), JSON_REJECT_DUPLICATES, &error);
    r->at = end + 1;
    r->line++;
    return root;
}

static void write_restore(char out[RESTORE_BYTES], uint64_t revision)
{
    struct base_text body;
    base_text_init(&body, RESTORE_BYTES - 1);
    base_json_object(&body, NULL);
    base_json_u64(&body, "revision", revision);
    base_json_object_end(&body);
    snprintf(out, RESTORE_BYTES, "%s", base_text_str(&body));
    base_text_fini(&body);
}

static int add_restore(struct reading *r, struct meta_store_item *item, struct base_errbuf *err)
{
    const uint64_t now = r->by->wall_ms, then = r->counts.time_ms, last = r->counts.revision;
    const uint64_t more = (now > then ? now - then : 0) + REVISIONS_LEFT_OUT;
    if (more > RESOURCE_NUMBER_MAX || last > RESOURCE_NUMBER_MAX - more ||
        r->by->above > RESOURCE_NUMBER_MAX - more)
        return base_err(err, -ERANGE, "the backup's last revision, or its date, is too large");
    r->by->revision = last + more > r->by->above ? last + more : r->by->above + 1;
    r->over = true;
    write_restore(r->body, last);
    item->kind = META_STORE_CHANGE;
    item->change = (struct meta_store_change){.revision = r->by->revision,
                                              .time_ms = now,
                                              .who = r->by->who,
                                              .kind = "restore",
                                              .name = "store",
                                              .after = r->body};
    return 1;
}

/* The next line that is of something else than a region's name: those that older versions wrote are
 * passed over, since agents publish again what they have. False: there is none. */
static bool take_item(struct reading *r)
{
    while (r->at != r->end) {
        r->root = take_line(r);
        if (json_object_get(r->root, "region") == NULL)
            return true;
        json_decref(r->root);
        r->root = NULL;
    }
    return false;
}

static int next_item(void *user, struct meta_store_item *item, struct base_errbuf *err)
{
    struct reading *r = user;
    json_decref(r->root);
    r->root = NULL;
    if (!take_item(r))
        return r->over ? 0 : add_restore(r, item, err);
    bool good = false;
    if (json_object_get(r->root, "node") != NULL) {
        item->kind = META_STORE_NODE;
        good = read_node(r->root, &item->node);
        r->counts.nodes++;
    } else if (json_object_get(r->root, "setting") != NULL) {
        item->kind = META_STORE_RESOURCE;
        good = read_setting(r->root, &item->resource);
        raise_revision(&r->counts, good ? item->resource.revision : 0);
        r->counts.resources++;
        r->counts.tokens += good && strcmp(item->resource.kind, "token") == 0;
    } else if (json_object_get(r->root, "change") != NULL) {
        item->kind = META_STORE_CHANGE;
        good = read_change(r->root, &item->change);
        raise_revision(&r->counts, good ? item->change.revision : 0);
        r->counts.changes++;
    }
    return good ? 1 : refuse_line(r, err);
}

/* Where the last line begins; NULL: there is none. */
static const char *last_line(const char *text, size_t length)
{
    if (length < 2 || text[length - 1] != '\n' || strlen(text) != length)
        return NULL;
    const char *before = memrchr(text, '\n', length - 1);
    return before == NULL ? NULL : before + 1;
}

/* Whether the lines before `last` are those that it was written after. */
static int check_sum(const char *text, const char *last, struct base_errbuf *err)
{
    char digest[DIGEST_TEXT], *before = strndup(text, (size_t)(last - text));
    json_error_t error;
    if (before == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    int status = digest_of(before, digest, err);
    free(before);
    if (status != 0)
        return status;
    json_t *root = json_loads(last, JSON_REJECT_DUPLICATES, &error);
    const char *sum = json_string_value(json_object_get(root, "sha256"));
    uint64_t lines = 0, said = 0;
    for (const char *p = text; p < last; p = strchr(p, '\n') + 1)
        lines++;
    if (sum == NULL || strcmp(sum, digest) != 0 || !read_number(root, "lines", UINT32_MAX, &said) ||
        said != lines)
        status = base_err(err, -EBADMSG,
                          "that is no whole backup of a kedge-metad, or it was changed: its last "
                          "line does not have the number and the SHA-256 of those before it");
    json_decref(root);
    return status;
}

int meta_backup_restore(struct meta_store *store, const char *text, size_t length,
                        struct meta_backup_restorer *by, struct meta_backup_counts *counts,
                        struct base_errbuf *err)
{
    const char *last = last_line(text, length);
    struct reading r = {.at = text, .end = last, .by = by};
    uint64_t format = 0;
    if (last == NULL)
        return base_err(err, -EBADMSG, "that is no whole backup of a kedge-metad");
    int status = check_sum(text, last, err);
    if (status != 0)
        return status;
    json_t *head = take_line(&r);
    if (json_object_get(head, "backup") == NULL || !read_number(head, "format", FORMAT, &format) ||
        !read_number(head, "time_ms", INT64_MAX, &r.counts.time_ms))
        status = refuse_line(&r, err);
    json_decref(head);
    if (status == 0)
        status = meta_store_replace(store, next_item, &r, err);
    json_decref(r.root);
    if (status == 0)
        *counts = r.counts;
    return status;
}
