/* SPDX-License-Identifier: Apache-2.0 */
/* The trail, as rdmactl reads it. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "ctl/resources.h"
#include "decode_private.h"

/* NULL: it is not known here. */
static const struct resource_field *field_of(const char *kind, const char *key)
{
    const struct resource_table *k = resource_table_find(kind);
    return k != NULL ? resource_field_find(k, key) : NULL;
}

/* Of a key that is there no more. */
static size_t describe_gone(const char *kind, const char *key, json_t *value, const char *comma,
                            char *out, size_t size)
{
    char old[96];
    ctl_show_value(value, field_of(kind, key), old, sizeof old);
    return (size_t)snprintf(out, size, "%s%.40s: %s -> -", comma, key, old);
}

/* Appends "key: old -> new" for each that differs; from may be NULL. */
static void describe_change(const char *kind, json_t *from, json_t *to, char *out, size_t size)
{
    const char *key;
    json_t *value;
    size_t used = (size_t)snprintf(out, size, "%s", from == NULL ? "created" : "");
    json_object_foreach(to, key, value)
    {
        char old[96], new[96];
        json_t *before = json_object_get(from, key);
        if (used >= size || (before != NULL && json_equal(before, value)))
            continue;
        ctl_show_value(before, field_of(kind, key), old, sizeof old);
        ctl_show_value(value, field_of(kind, key), new, sizeof new);
        if (strcmp(old, new) == 0)
            continue;
        used += (size_t)snprintf(out + used, size - used, "%s%.40s: ", used > 0 ? ", " : "", key);
        if (used < size)
            used += (size_t)snprintf(out + used, size - used, "%s%s%s", from != NULL ? old : "",
                                     from != NULL ? " -> " : "", new);
    }
    json_object_foreach(from, key, value)
    {
        if (json_object_get(to, key) == NULL && used < size)
            used += describe_gone(kind, key, value, used > 0 ? ", " : "", out + used, size - used);
    }
}

/* What an agent was asked to take back, or failed to. */
static void describe_revocation(json_t *from, char *out, size_t size)
{
    const char *lease = json_string_value(json_object_get(from, "lease"));
    const char *worker = json_string_value(json_object_get(from, "worker"));
    char of[96], failed[96];
    (void)base_copy_printable(of, sizeof of, lease != NULL ? lease : worker);
    (void)base_copy_printable(failed, sizeof failed,
                              json_string_value(json_object_get(from, "failed")));
    snprintf(out, size, "revocation of %s%s%s%s%s", lease != NULL ? "" : "all of worker ", of,
             json_is_true(json_object_get(from, "force")) ? ", by force" : "",
             failed[0] != '\0' ? ", failed: " : "", failed);
}

/* "node expired, incarnation 5, last heard of at ..." */
static void describe_liveness(json_t *object, json_t *from, json_t *to, char *out, size_t size)
{
    char state[CTL_WORD_BYTES], was[CTL_WORD_BYTES], heard[CTL_WORD_BYTES];
    const char *text = json_string_value(json_object_get(to, "last_heard"));
    const json_int_t incarnation = json_integer_value(json_object_get(to, "incarnation"));
    const json_int_t before = json_integer_value(json_object_get(from, "incarnation"));
    const json_int_t times = json_integer_value(json_object_get(object, "times"));
    (void)base_copy_printable(state, sizeof state, json_string_value(json_object_get(to, "state")));
    (void)base_copy_printable(was, sizeof was, json_string_value(json_object_get(from, "state")));
    (void)base_copy_printable(heard, sizeof heard, text);
    size_t used = (size_t)snprintf(out, size, "node %s, incarnation %" JSON_INTEGER_FORMAT, state,
                                   incarnation);
    if (was[0] != '\0' && before != incarnation)
        used += (size_t)snprintf(out + used, size - used, " after %s with %" JSON_INTEGER_FORMAT,
                                 was, before);
    else if (was[0] != '\0')
        used += (size_t)snprintf(out + used, size - used, " after %s", was);
    if (text != NULL)
        used += (size_t)snprintf(out + used, size - used, ", last heard of at %s", heard);
    if (times > 1)
        snprintf(out + used, size - used, ", %" JSON_INTEGER_FORMAT " times by now", times);
}

/* "certificate for etcd expiring, ends at ..." */
static void describe_certificate(json_t *to, char *out, size_t size)
{
    char state[CTL_WORD_BYTES], of[CTL_WORD_BYTES], ends[CTL_WORD_BYTES];
    (void)base_copy_printable(state, sizeof state, json_string_value(json_object_get(to, "state")));
    (void)base_copy_printable(of, sizeof of, json_string_value(json_object_get(to, "of")));
    (void)base_copy_printable(ends, sizeof ends, json_string_value(json_object_get(to, "ends")));
    snprintf(out, size, "certificate for %s %s, ends at %s", of, state, ends);
}

/* That a store was put back to an older state is told with that state's revision, and has no
 * "after"; and so is that names of regions, which had to wait then, no longer do. */
static void describe_put_back(json_t *from, char *out, size_t size)
{
    snprintf(out, size,
             json_is_true(json_object_get(from, "settled"))
                 ? "names of regions are settled since revision %lld"
                 : "the store was found put back to revision %lld",
             (long long)json_integer_value(json_object_get(from, "revision")));
}

/* A newer metaserver may have entries of other kinds: what was there before, and what after it. */
static void describe_unknown(json_t *from, json_t *to, char *out, size_t size)
{
    json_t *const sides[] = {from, to};
    size_t used = 0;
    for (int i = 0; i < 2; i++) {
        char text[224];
        char *json = json_dumps(sides[i], JSON_COMPACT | JSON_ENCODE_ANY);
        (void)base_copy_printable(text, sizeof text, json);
        free(json);
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? " -> " : "", text);
    }
}

static bool is_known(const char *kind)
{
    return resource_table_find(kind) != NULL || strcmp(kind, "lease") == 0 ||
           strcmp(kind, "restore") == 0;
}

static int event_from(json_t *object, struct ctl_event *out, struct base_errbuf *err)
{
    struct ctl_event e = {.json = NULL};
    json_t *from = json_object_get(object, "from"), *to = json_object_get(object, "to");
    const json_t *number = json_object_get(object, "revision");
    const json_int_t revision = json_integer_value(number);
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const bool liveness = kind != NULL && strcmp(kind, "liveness") == 0;
    const bool known = kind != NULL && is_known(kind);
    if (!json_is_integer(number) ||
        revision < known) /* of others: nobody need have changed anything */
        return base_err(err, -EBADMSG, "the answer holds an event without a revision");
    e.revision = (uint64_t)revision;
    (void)base_copy_printable(e.time, sizeof e.time,
                              json_string_value(json_object_get(object, "time")));
    (void)base_copy_printable(e.who, sizeof e.who,
                              json_string_value(json_object_get(object, "who")));
    (void)base_copy_printable(e.position, sizeof e.position,
                              json_string_value(json_object_get(object, "position")));
    (void)base_copy_printable(e.kind, sizeof e.kind, kind);
    (void)base_copy_printable(e.name, sizeof e.name,
                              json_string_value(json_object_get(object, "name")));
    if (liveness)
        describe_liveness(object, from, to, e.what, sizeof e.what);
    else if (strcmp(e.kind, "certificate") == 0)
        describe_certificate(to, e.what, sizeof e.what);
    else if (!known)
        describe_unknown(from, to, e.what, sizeof e.what);
    else if (json_is_object(to) && strcmp(e.kind, "restore") == 0)
        snprintf(e.what, sizeof e.what, "restored from a backup of revision %lld",
                 (long long)json_integer_value(json_object_get(to, "revision")));
    else if (json_is_object(to))
        describe_change(e.kind, json_is_object(from) ? from : NULL, to, e.what, sizeof e.what);
    else if (strcmp(e.kind, "lease") == 0)
        describe_revocation(from, e.what, sizeof e.what);
    else if (strcmp(e.kind, "restore") == 0)
        describe_put_back(from, e.what, sizeof e.what);
    else
        snprintf(e.what, sizeof e.what, "deleted");
    e.json = json_dumps(object, JSON_COMPACT);
    if (e.json == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    *out = e;
    return 0;
}

int ctl_decode_revision(const char *body, size_t bytes, uint64_t *out,
                        char position[CTL_WORD_BYTES], struct base_errbuf *err)
{
    json_t *root;
    int status = ctl_json_load(body, bytes, &root, err);
    if (status != 0)
        return status;
    json_t *revision = json_object_get(root, "revision");
    if (json_is_integer(revision) && json_integer_value(revision) >= 0)
        *out = (uint64_t)json_integer_value(revision);
    else
        status = base_err(err, -EBADMSG, "the answer has no revision: is this a Kedge server?");
    (void)base_copy_printable(position, CTL_WORD_BYTES,
                              json_string_value(json_object_get(root, "position")));
    json_decref(root);
    return status;
}

void ctl_event_fini(struct ctl_event *event)
{
    free(event->json);
    event->json = NULL;
}

int ctl_decode_event(const char *body, size_t bytes, struct ctl_event *out, struct base_errbuf *err)
{
    json_t *root;
    int status = ctl_json_load(body, bytes, &root, err);
    if (status != 0)
        return status;
    status = event_from(root, out, err);
    json_decref(root);
    return status;
}

int ctl_decode_events(const char *body, size_t bytes,
                      void (*each)(void *user, const struct ctl_event *event), void *user,
                      char *next, size_t size, struct base_errbuf *err)
{
    json_t *root, *array;
    int status = ctl_json_page(body, bytes, "events", &root, &array, next, size, err);
    if (status != 0)
        return status;
    for (size_t i = 0; i < json_array_size(array) && status == 0; i++) {
        struct ctl_event event;
        status = event_from(json_array_get(array, i), &event, err);
        if (status != 0)
            break;
        each(user, &event);
        ctl_event_fini(&event);
    }
    json_decref(root);
    return status;
}
