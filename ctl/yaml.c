/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/yaml.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

/* ---- reading */

struct reading {
    yaml_parser_t parser;
    yaml_event_t event; /* the present one */
    struct base_errbuf *err;
};

static int refuse_here(struct reading *r, const char *what)
{
    return base_err(r->err, -EINVAL, "line %zu: %s", r->event.start_mark.line + 1, what);
}

/* The next event takes the place of this one. */
static int take_event(struct reading *r)
{
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event))
        return 0;
    memset(&r->event, 0, sizeof r->event);
    return base_err(r->err, -EINVAL, "line %zu: %.100s", r->parser.problem_mark.line + 1,
                    r->parser.problem != NULL ? r->parser.problem : "it makes no sense");
}

static int check_marks(struct reading *r, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor != NULL)
        return refuse_here(r, "anchors and aliases are not taken: write it out");
    return tag != NULL ? refuse_here(r, "tags are not taken") : 0;
}

static bool is_integer(const char *text)
{
    const char *digits = text + (text[0] == '-');
    return digits[0] != '\0' && strspn(digits, "0123456789") == strlen(digits) &&
           (digits[0] != '0' || digits[1] == '\0') && strlen(digits) <= 18;
}

/* What a text without quotes is. */
static json_t *read_plain(const char *text)
{
    if (text[0] == '\0' || strcmp(text, "null") == 0 || strcmp(text, "~") == 0)
        return json_null();
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return json_boolean(text[0] == 't');
    return is_integer(text) ? json_integer(strtoll(text, NULL, 10)) : json_string(text);
}

static int read_scalar(struct reading *r, json_t **out)
{
    const char *text = (const char *)r->event.data.scalar.value;
    int status = check_marks(r, r->event.data.scalar.anchor, r->event.data.scalar.tag);
    if (status != 0)
        return status;
    if (strlen(text) != r->event.data.scalar.length)
        return refuse_here(r, "a text has a NUL");
    *out = r->event.data.scalar.plain_implicit ? read_plain(text) : json_string(text);
    return *out != NULL ? 0 : refuse_here(r, "a text is not UTF-8");
}

static int read_node(struct reading *r, int depth, json_t **out);

static int read_sequence(struct reading *r, int depth, json_t **out)
{
    json_t *array = json_array();
    int status =
        check_marks(r, r->event.data.sequence_start.anchor, r->event.data.sequence_start.tag);
    if (status == 0)
        status = take_event(r);
    while (status == 0 && r->event.type != YAML_SEQUENCE_END_EVENT) {
        json_t *item = NULL;
        status = read_node(r, depth + 1, &item);
        if (status == 0 && json_array_append_new(array, item) != 0)
            status = base_err(r->err, -ENOMEM, "out of memory");
        if (status == 0)
            status = take_event(r);
    }
    if (status == 0)
        *out = array;
    else
        json_decref(array);
    return status;
}

/* A key and its value, into the object. */
static int read_member(struct reading *r, int depth, json_t *object)
{
    json_t *value = NULL;
    char *key = NULL;
    int status = 0;
    if (r->event.type != YAML_SCALAR_EVENT)
        return refuse_here(r, r->event.type == YAML_ALIAS_EVENT
                                  ? "anchors and aliases are not taken: write it out"
                                  : "a key must be a text");
    status = check_marks(r, r->event.data.scalar.anchor, r->event.data.scalar.tag);
    if (status != 0)
        return status;
    key = strdup((const char *)r->event.data.scalar.value);
    if (key == NULL)
        return base_err(r->err, -ENOMEM, "out of memory");
    if (json_object_get(object, key) != NULL)
        status = refuse_here(r, "a key is there twice");
    if (status == 0)
        status = take_event(r);
    if (status == 0)
        status = read_node(r, depth + 1, &value);
    if (status == 0 && json_object_set_new(object, key, value) != 0)
        status = refuse_here(r, "a key is not UTF-8");
    free(key);
    return status == 0 ? take_event(r) : status;
}

static int read_mapping(struct reading *r, int depth, json_t **out)
{
    json_t *object = json_object();
    int status =
        check_marks(r, r->event.data.mapping_start.anchor, r->event.data.mapping_start.tag);
    if (status == 0)
        status = take_event(r);
    while (status == 0 && r->event.type != YAML_MAPPING_END_EVENT)
        status = read_member(r, depth, object);
    if (status == 0)
        *out = object;
    else
        json_decref(object);
    return status;
}

/* The node that the present event begins, up to its last event. */
static int read_node(struct reading *r, int depth, json_t **out)
{
    if (depth > CTL_YAML_DEPTH)
        return refuse_here(r, "it is too deep");
    switch (r->event.type) {
    case YAML_SCALAR_EVENT:
        return read_scalar(r, out);
    case YAML_SEQUENCE_START_EVENT:
        return read_sequence(r, depth, out);
    case YAML_MAPPING_START_EVENT:
        return read_mapping(r, depth, out);
    case YAML_ALIAS_EVENT:
        return refuse_here(r, "anchors and aliases are not taken: write it out");
    default:
        return refuse_here(r, "it makes no sense");
    }
}

static int read_documents(struct reading *r, json_t *documents)
{
    int status = take_event(r);
    while (status == 0 && r->event.type != YAML_STREAM_END_EVENT) {
        json_t *document = NULL;
        if (r->event.type == YAML_DOCUMENT_START_EVENT) {
            if (json_array_size(documents) == CTL_YAML_DOCUMENTS)
                return refuse_here(r, "there are too many documents");
            status = take_event(r);
            if (status == 0)
                status = read_node(r, 1, &document);
            if (status == 0 && json_array_append_new(documents, document) != 0)
                status = base_err(r->err, -ENOMEM, "out of memory");
        }
        if (status == 0)
            status = take_event(r);
    }
    return status;
}

int ctl_yaml_read(const char *text, size_t bytes, json_t **out, struct base_errbuf *err)
{
    struct reading r = {.err = err};
    json_t *documents = json_array();
    if (documents == NULL || !yaml_parser_initialize(&r.parser)) {
        json_decref(documents);
        return base_err(err, -ENOMEM, "out of memory");
    }
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, bytes);
    const int status = read_documents(&r, documents);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    if (status == 0)
        *out = documents;
    else
        json_decref(documents);
    return status;
}

/* ---- writing */

/* Whether any reader takes it for a text without quotes. */
static bool is_plain(const char *text)
{
    static const char *const words[] = {"y",   "n",    "yes",   "no",  "on",
                                        "off", "true", "false", "null"};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const size_t length = strlen(text);
    if (length == 0 || strchr(letters, text[0]) == NULL ||
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") !=
            length)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(text, words[i]) == 0)
            return false;
    return true;
}

static bool emit_scalar(yaml_emitter_t *e, const char *text, bool quoted)
{
    yaml_event_t event;
    return yaml_scalar_event_initialize(
               &event, NULL, NULL, (const yaml_char_t *)text, (int)strlen(text), 1, 1,
               quoted ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE) &&
           yaml_emitter_emit(e, &event);
}

static bool emit_value(yaml_emitter_t *e, json_t *value);

static bool emit_array(yaml_emitter_t *e, json_t *array)
{
    yaml_event_t event;
    size_t i;
    json_t *item;
    if (!yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE) ||
        !yaml_emitter_emit(e, &event))
        return false;
    json_array_foreach(array, i, item) if (!emit_value(e, item)) return false;
    return yaml_sequence_end_event_initialize(&event) && yaml_emitter_emit(e, &event);
}

static bool emit_object(yaml_emitter_t *e, json_t *object)
{
    yaml_event_t event;
    const char *key;
    json_t *value;
    if (!yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE) ||
        !yaml_emitter_emit(e, &event))
        return false;
    json_object_foreach(object, key, value)
    {
        if (!emit_scalar(e, key, !is_plain(key)) || !emit_value(e, value))
            return false;
    }
    return yaml_mapping_end_event_initialize(&event) && yaml_emitter_emit(e, &event);
}

static bool emit_value(yaml_emitter_t *e, json_t *value)
{
    if (json_is_array(value))
        return emit_array(e, value);
    if (json_is_object(value))
        return emit_object(e, value);
    if (json_is_string(value))
        return emit_scalar(e, json_string_value(value), !is_plain(json_string_value(value)));
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    const bool emitted = text != NULL && emit_scalar(e, text, false);
    free(text);
    return emitted;
}

static bool emit_document(yaml_emitter_t *e, json_t *root)
{
    yaml_event_t event;
    return yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) &&
           yaml_emitter_emit(e, &event) &&
           yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 0) &&
           yaml_emitter_emit(e, &event) && emit_value(e, root) &&
           yaml_document_end_event_initialize(&event, 1) && yaml_emitter_emit(e, &event) &&
           yaml_stream_end_event_initialize(&event) && yaml_emitter_emit(e, &event);
}

int ctl_yaml_print(const char *json, FILE *to)
{
    yaml_emitter_t emitter;
    json_t *root = json_loads(json, JSON_DECODE_ANY, NULL);
    if (root == NULL)
        return -EBADMSG;
    if (!yaml_emitter_initialize(&emitter)) {
        json_decref(root);
        return -ENOMEM;
    }
    yaml_emitter_set_output_file(&emitter, to);
    yaml_emitter_set_unicode(&emitter, 0);
    yaml_emitter_set_width(&emitter, -1);
    const bool done = emit_document(&emitter, root);
    yaml_emitter_delete(&emitter);
    json_decref(root);
    return done ? 0 : -ENOMEM;
}
