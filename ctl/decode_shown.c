/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/shown.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "ctl/yaml.h"

static const struct {
    const char *kind, *schema;
} kinds[] = {{"tenant", "Tenant"}, {"window", "Window"}, {"token", "Token"}, {"node", "Node"},
             {"pool", "Pool"},     {"worker", "Worker"}, {"lease", "Lease"}, {"region", "Region"}};

enum { KINDS = sizeof kinds / sizeof kinds[0], REFERENCES_MAX = 8 };

const char *ctl_shown_kind(size_t i)
{
    return i < KINDS ? kinds[i].kind : NULL;
}

/* What a reference of the document's leads to, or NULL. */
static json_t *find_reference(json_t *schemas, const char *text)
{
    static const char prefix[] = "#/components/schemas/";
    json_t *at = schemas;
    if (strncmp(text, prefix, sizeof prefix - 1) != 0)
        return NULL;
    for (text += sizeof prefix - 1; at != NULL && *text != '\0';) {
        char part[CTL_SHOWN_NAME];
        const size_t length = strcspn(text, "/");
        snprintf(part, sizeof part, "%.*s", (int)length, text);
        at = json_object_get(at, part);
        text += length + (text[length] == '/');
    }
    return at;
}

/* Of several the first, which is what the others add to: { allOf: [it], description: ... }. */
static json_t *base_of(json_t *schema)
{
    return json_array_get(json_object_get(schema, "allOf"), 0);
}

/* The schema that it refers to, if it is a reference, or what is built on one. */
static json_t *follow_references(json_t *schemas, json_t *schema)
{
    for (int i = 0; i < REFERENCES_MAX; i++) {
        const char *text = json_string_value(json_object_get(schema, "$ref"));
        json_t *next = text != NULL ? find_reference(schemas, text) : base_of(schema);
        if (next == NULL)
            return schema;
        schema = next;
    }
    return schema;
}

/* Its own description, or that of what it refers to. NULL: none has one. */
static const char *description_of(json_t *schemas, json_t *schema)
{
    for (int i = 0; schema != NULL && i < REFERENCES_MAX; i++) {
        const char *help = json_string_value(json_object_get(schema, "description"));
        const char *text = json_string_value(json_object_get(schema, "$ref"));
        if (help != NULL)
            return help;
        schema = text != NULL ? find_reference(schemas, text) : base_of(schema);
    }
    return NULL;
}

static json_t *properties_of(json_t *schemas, json_t *schema)
{
    json_t *at = follow_references(schemas, schema), *items = json_object_get(at, "items");
    if (items != NULL)
        at = follow_references(schemas, items);
    return json_object_get(at, "properties");
}

/* "a", "a or b", "a, b or c". */
static void add_word(char out[CTL_SHOWN_TYPE], size_t i, size_t count, const char *word)
{
    const size_t used = strlen(out);
    snprintf(out + used, CTL_SHOWN_TYPE - used, "%s%s",
             i == 0           ? ""
             : i + 1 == count ? " or "
                              : ", ",
             word);
}

static void describe_words(json_t *words, char out[CTL_SHOWN_TYPE])
{
    for (size_t i = 0; i < json_array_size(words); i++) {
        json_t *word = json_array_get(words, i);
        char number[24];
        snprintf(number, sizeof number, "%lld", json_integer_value(word));
        add_word(out, i, json_array_size(words),
                 json_is_string(word) ? json_string_value(word) : number);
    }
}

static const char *name_type(json_t *at)
{
    const char *type = json_string_value(json_object_get(at, "type"));
    if (type == NULL)
        return "any";
    if (strcmp(type, "string") == 0)
        return "text";
    if (strcmp(type, "boolean") == 0)
        return "true or false";
    return json_object_get(at, "additionalProperties") != NULL ? "names with values" : type;
}

static void describe_type(json_t *schemas, json_t *schema, char out[CTL_SHOWN_TYPE])
{
    json_t *at = follow_references(schemas, schema), *items = json_object_get(at, "items");
    json_t *words = json_object_get(at, "enum"), *either = json_object_get(at, "oneOf");
    char of[CTL_SHOWN_TYPE];
    out[0] = '\0';
    for (size_t i = 0; i < json_array_size(either); i++) {
        describe_type(schemas, json_array_get(either, i), of);
        add_word(out, i, json_array_size(either), of);
    }
    if (words != NULL) {
        describe_words(words, out);
    } else if (items != NULL) {
        describe_type(schemas, items, of);
        snprintf(out, CTL_SHOWN_TYPE, "list of %.150s", of);
    } else if (either == NULL) {
        snprintf(out, CTL_SHOWN_TYPE, "%s", name_type(at));
    }
}

static void describe_range(json_t *at, char out[CTL_SHOWN_TYPE])
{
    json_t *least = json_object_get(at, "minimum"), *most = json_object_get(at, "maximum");
    out[0] = '\0';
    if (json_is_integer(least) && json_is_integer(most))
        snprintf(out, CTL_SHOWN_TYPE, "%lld to %lld", json_integer_value(least),
                 json_integer_value(most));
}

/* Texts of several lines become one. */
static void describe_member(json_t *schemas, const char *name, json_t *schema,
                            struct ctl_shown_member *out)
{
    const char *help = description_of(schemas, schema);
    snprintf(out->name, sizeof out->name, "%s", name);
    snprintf(out->help, sizeof out->help, "%s", help != NULL ? help : "");
    for (char *c = out->help; *c != '\0'; c++)
        if (*c == '\n')
            *c = c[1] != '\0' ? ' ' : '\0';
    describe_type(schemas, schema, out->type);
    describe_range(follow_references(schemas, schema), out->range);
}

static int describe_schema(json_t *schemas, const char *kind, json_t *schema, const char *path,
                           struct ctl_shown *out)
{
    const char *name = kind, *key;
    char part[CTL_SHOWN_NAME];
    json_t *member;
    while (schema != NULL && *path != '\0') {
        const size_t length = strcspn(path, ".");
        snprintf(part, sizeof part, "%.*s", (int)length, path);
        schema = json_object_get(properties_of(schemas, schema), part);
        path += length + (path[length] == '.');
        name = part;
    }
    if (schema == NULL)
        return -ENOENT;
    describe_member(schemas, name, schema, &out->self);
    out->members = 0;
    json_object_foreach(properties_of(schemas, schema), key, member)
    {
        if (out->members < CTL_SHOWN_MEMBERS)
            describe_member(schemas, key, member, &out->member[out->members++]);
    }
    return 0;
}

int ctl_shown_find(const char *kind, const char *path, struct ctl_shown *out,
                   struct base_errbuf *err)
{
    json_t *documents;
    int status = ctl_yaml_read(ctl_schemas, strlen(ctl_schemas), &documents, err);
    if (status != 0)
        return base_err(err, status == -EINVAL ? -EBADMSG : status,
                        "what rdmactl knows of fields cannot be read");
    json_t *schemas = json_object_get(json_array_get(documents, 0), "schemas");
    status = -ENOENT;
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(kinds[i].kind, kind) == 0)
            status = describe_schema(schemas, kind, json_object_get(schemas, kinds[i].schema), path,
                                     out);
    json_decref(documents);
    return status;
}
