/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/trail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "metaserver/resources_json.h"

_Static_assert((int)META_LIVENESS_WHO_BYTES == (int)META_RESOURCE_WHO_BYTES,
               "who removed a node is who changes resources");

static bool wants_kind(const struct meta_watch_filter *filter, uint32_t kind)
{
    return filter->kinds == 0 || (filter->kinds & (UINT32_C(1) << kind)) != 0;
}

static bool wants_name(const struct meta_watch_filter *filter, const char *name)
{
    return filter->name[0] == '\0' || strcmp(filter->name, name) == 0;
}

static bool wants_changes(const struct meta_watch_filter *filter)
{
    const uint32_t events = UINT32_C(1) << META_WATCH_LIVENESS | UINT32_C(1)
                                                                     << META_WATCH_CERTIFICATE;
    return filter->kinds == 0 || (filter->kinds & ~events) != 0;
}

static bool wants_liveness(const struct meta_liveness *l, const struct meta_watch_filter *filter)
{
    return l != NULL &&
           (wants_kind(filter, META_WATCH_LIVENESS) || wants_kind(filter, META_WATCH_CERTIFICATE));
}

static bool wants_event(const struct meta_watch_filter *filter,
                        const struct meta_liveness_event *event)
{
    const uint32_t kind =
        event->certificate == META_CERTIFICATE_NONE ? META_WATCH_LIVENESS : META_WATCH_CERTIFICATE;
    return wants_kind(filter, kind) && wants_name(filter, event->node);
}

int meta_trail_parse_kinds(const char *text, uint32_t *kinds)
{
    uint32_t out = 0;
    for (;; text++) {
        char word[16];
        enum meta_resource_kind kind;
        const size_t length = strcspn(text, ",");
        if (length >= sizeof word)
            return -EINVAL;
        memcpy(word, text, length);
        word[length] = '\0';
        if (strcmp(word, "liveness") == 0)
            out |= UINT32_C(1) << META_WATCH_LIVENESS;
        else if (strcmp(word, "certificate") == 0)
            out |= UINT32_C(1) << META_WATCH_CERTIFICATE;
        else if (meta_resource_kind_parse(word, &kind) == 0)
            out |= UINT32_C(1) << kind;
        else
            return -EINVAL;
        text += length;
        if (*text == '\0')
            break;
    }
    *kinds = out;
    return 0;
}

struct trail_place meta_trail_end(const struct meta_resources *s, const struct meta_liveness *l)
{
    return (struct trail_place){meta_resources_revision(s),
                                l != NULL ? meta_liveness_newest(l) : 0};
}

bool meta_trail_has(const struct meta_resources *s, const struct meta_liveness *l,
                    const struct meta_watch_filter *filter, const struct trail_place *place)
{
    return (!wants_changes(filter) || meta_resources_trail_has(s, place->revision)) &&
           (!wants_liveness(l, filter) || meta_liveness_has(l, place->position));
}

/* False: it was the last one. */
static bool count_look(uint32_t *looks)
{
    return looks == NULL || --*looks > 0;
}

bool meta_trail_next(const struct meta_resources *s, const struct meta_liveness *l,
                     const struct meta_watch_filter *filter, uint32_t *looks,
                     struct trail_place *place, struct trail_entry *out)
{
    if (looks != NULL && *looks == 0)
        return false;
    const struct meta_resource_change *change =
        wants_changes(filter) ? meta_resources_change_after(s, place->revision) : NULL;
    const struct meta_liveness_event *event =
        wants_liveness(l, filter) ? meta_liveness_after(l, place->position) : NULL;
    while (change != NULL &&
           !(wants_kind(filter, change->kind) && wants_name(filter, change->name))) {
        place->revision = change->revision;
        if (!count_look(looks))
            return false;
        change = meta_resources_change_after(s, change->revision);
    }
    while (event != NULL && !wants_event(filter, event)) {
        place->position = event->position;
        if (!count_look(looks))
            return false;
        event = meta_liveness_after(l, event->position);
    }
    if (change == NULL && event == NULL) {
        *place = meta_trail_end(s, l);
        return false;
    }
    const bool first = event != NULL && (change == NULL || event->revision < change->revision);
    if (first)
        place->position = event->position;
    else
        place->revision = change->revision;
    *out = (struct trail_entry){.change = first ? NULL : change, .event = first ? event : NULL};
    return true;
}

void meta_trail_write_position(uint64_t generation, uint64_t position,
                               char out[TRAIL_POSITION_BYTES])
{
    snprintf(out, TRAIL_POSITION_BYTES, "%016" PRIx64 "-%" PRIu64, generation, position);
}

int meta_trail_parse_position(const char *text, uint64_t *generation, uint64_t *position)
{
    uint8_t bytes[8];
    char hex[17];
    if (strlen(text) < 18 || text[16] != '-')
        return -EINVAL;
    memcpy(hex, text, 16);
    hex[16] = '\0';
    if (base_hex_decode(hex, bytes, sizeof bytes) != 0 ||
        base_parse_u64(text + 17, 0, UINT64_MAX, position) != 0)
        return -EINVAL;
    *generation = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        *generation = *generation << 8 | bytes[i];
    return 0;
}

static const char *from_name(enum meta_node_state from)
{
    return from == META_NODE_LAPSED ? "expired" : meta_node_state_name(from);
}

static void write_event_head(struct base_text *out, uint64_t generation,
                             const struct meta_liveness_event *event, const char *kind,
                             const char *id)
{
    char position[TRAIL_POSITION_BYTES], when[META_JSON_TIME_BYTES];
    meta_trail_write_position(generation, event->position, position);
    base_json_object(out, NULL);
    base_json_u64(out, "revision", event->revision);
    base_json_string(out, "time", meta_json_time(event->time_ms, when));
    base_json_string(out, "who", event->who[0] != '\0' ? event->who : "kedge-metad");
    base_json_string(out, "kind", kind);
    base_json_string(out, "name", event->node);
    base_json_string(out, "id", id);
    base_json_string(out, "position", position);
    base_json_u64(out, "times", event->times);
}

/* There is nothing that it was before: what holds until its end is no event. */
static void write_certificate(struct base_text *out, uint64_t generation,
                              const struct meta_liveness_event *event)
{
    const char *of = meta_certificate_name(event->certificate);
    const char *state = meta_certificate_state_name(event->certificate_state);
    char ends[META_JSON_TIME_BYTES], id[META_STORE_ID_BYTES + META_JSON_TIME_BYTES + 32];
    (void)meta_json_time(event->ends_ms, ends);
    snprintf(id, sizeof id, "%s/%s/%s/%s", event->node, of, ends, state);
    write_event_head(out, generation, event, "certificate", id);
    base_json_null(out, "from");
    base_json_object(out, "to");
    base_json_string(out, "of", of);
    base_json_string(out, "state", state);
    base_json_string(out, "ends", ends);
    base_json_object_end(out);
    base_json_object_end(out);
}

static void write_event(struct base_text *out, uint64_t generation,
                        const struct meta_liveness_event *event)
{
    const char *state = meta_liveness_state_name(event->state);
    char id[META_STORE_ID_BYTES + 32], when[META_JSON_TIME_BYTES];
    snprintf(id, sizeof id, "%s/%" PRIu32 "/%s", event->node, event->incarnation, state);
    write_event_head(out, generation, event, "liveness", id);
    if (event->from == META_NODE_FREE)
        base_json_null(out, "from");
    else {
        base_json_object(out, "from");
        base_json_u64(out, "incarnation", event->from_incarnation);
        base_json_string(out, "state", from_name(event->from));
        base_json_object_end(out);
    }
    base_json_object(out, "to");
    base_json_u64(out, "incarnation", event->incarnation);
    base_json_string(out, "state", state);
    if (event->heard_ms != 0)
        base_json_string(out, "last_heard", meta_json_time(event->heard_ms, when));
    base_json_object_end(out);
    base_json_object_end(out);
}

void meta_trail_write(struct base_text *out, const struct meta_liveness *l,
                      const struct trail_entry *entry)
{
    if (entry->change != NULL)
        meta_json_write_change(out, entry->change);
    else if (entry->event->certificate != META_CERTIFICATE_NONE)
        write_certificate(out, meta_liveness_generation(l), entry->event);
    else
        write_event(out, meta_liveness_generation(l), entry->event);
}
