/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/printable.h"
#include "ctl/metaservers.h"
#include "decode_private.h"

/* What is missing, or is no number, is 0. */
static uint64_t read_number(json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
}

static void read_text(json_t *object, const char *name, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(object, name));
    (void)base_copy_printable(out, size, text != NULL ? text : "");
}

static bool read_member(json_t *object, struct ctl_metaserver *out)
{
    *out = (struct ctl_metaserver){.self = json_is_true(json_object_get(object, "self"))};
    read_text(object, "name", out->name, sizeof out->name);
    read_text(object, "version", out->version, sizeof out->version);
    read_text(object, "url", out->url, sizeof out->url);
    return out->name[0] != '\0';
}

static void read_state(json_t *root, struct ctl_metaserver_state *out)
{
    json_t *store = json_object_get(root, "store"), *table = json_object_get(root, "table");
    *out = (struct ctl_metaserver_state){
        .shared = json_is_true(json_object_get(store, "shared")),
        .behind = json_is_true(json_object_get(store, "behind")),
        .says_heard = json_object_get(store, "heard_ms_ago") != NULL,
        .revision = read_number(store, "revision"),
        .heard_ms_ago = read_number(store, "heard_ms_ago"),
        .waiting = read_number(store, "waiting"),
        .errors = read_number(store, "errors"),
        .slots = read_number(table, "slots"),
        .used = read_number(table, "live"),
        .max_endpoints = read_number(table, "max_endpoints"),
        .awaited = read_number(table, "awaited"),
        .live = read_number(json_object_get(root, "nodes"), "live"),
        .agents = read_number(root, "agents"),
        .followers = read_number(root, "followers"),
    };
    read_text(table, "generation", out->generation, sizeof out->generation);
    read_text(store, "kind", out->kind, sizeof out->kind);
    read_text(store, "prefix", out->prefix, sizeof out->prefix);
    read_text(store, "id", out->id, sizeof out->id);
    read_text(store, "error", out->error, sizeof out->error);
    read_text(store, "warning", out->warning, sizeof out->warning);
}

int ctl_decode_metaservers(const char *body, size_t bytes,
                           struct ctl_metaserver out[CTL_METASERVERS_MAX], size_t *count,
                           struct ctl_metaserver_state *self, struct base_errbuf *err)
{
    json_t *root, *one;
    size_t i;
    int status = ctl_json_load(body, bytes, &root, err);
    if (status != 0)
        return status;
    json_t *array = json_object_get(root, "metaservers");
    if (!json_is_array(array) || !json_is_object(json_object_get(root, "store"))) {
        json_decref(root);
        return base_err(err, -EBADMSG, "the answer does not say which metaservers there are");
    }
    *count = 0;
    json_array_foreach(array, i, one) if (*count < CTL_METASERVERS_MAX) *count +=
        read_member(one, &out[*count]);
    read_state(root, self);
    json_decref(root);
    return 0;
}

int ctl_metaserver_json(const struct ctl_metaserver *m, const char *body, size_t bytes,
                        const char *why, struct base_text *out, struct base_errbuf *err)
{
    json_t *own = NULL;
    json_t *root =
        json_pack("{s:s, s:b, s:b}", "name", m->name, "self", m->self, "answers", body != NULL);
    int status = body != NULL ? ctl_json_load(body, bytes, &own, err) : 0;
    bool whole = root != NULL;
    if (m->url[0] != '\0')
        whole = whole && json_object_set_new(root, "url", json_string(m->url)) == 0;
    if (m->version[0] != '\0')
        whole = whole && json_object_set_new(root, "version", json_string(m->version)) == 0;
    if (body == NULL)
        whole = whole && json_object_set_new(root, "error", json_string(why)) == 0;
    if (own != NULL) {
        (void)json_object_del(own, "metaservers"); /* each has them */
        whole = whole && json_object_update(root, own) == 0;
    }
    if (status == 0)
        status = whole ? ctl_json_dump(root, out, err) : base_err(err, -ENOMEM, "out of memory");
    json_decref(own);
    json_decref(root);
    return status;
}
