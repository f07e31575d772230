/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/json_read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "base/text.h"
#include "schema/resource_read.h"

enum { MORE_MAX = 4 }; /* members beside a kind's fields */

int meta_json_bad(const struct json_at *at, const char *field, const char *detail)
{
    size_t prefix = strlen(at->prefix);
    if (field[0] == '\0' && prefix > 0 && at->prefix[prefix - 1] == '.')
        prefix--;
    snprintf(at->violation->field, sizeof at->violation->field, "%.*s%.20s", (int)prefix,
             at->prefix, field);
    snprintf(at->violation->detail, sizeof at->violation->detail, "%s", detail);
    return -EINVAL;
}

int meta_json_parse(const void *body, size_t bytes, const struct json_at *at, json_t **out)
{
    json_error_t error;
    char text[sizeof at->violation->detail];
    if (bytes > META_JSON_MAX_BYTES)
        return meta_json_bad(at, "", "the body is too large");
    *out = json_loadb(body, bytes, JSON_REJECT_DUPLICATES, &error);
    if (*out == NULL) {
        snprintf(text, sizeof text, "not JSON: line %d, column %d: %.120s", error.line,
                 error.column, error.text);
        return meta_json_bad(at, "", text);
    }
    if (json_is_object(*out))
        return 0;
    json_decref(*out);
    return meta_json_bad(at, "", "must be an object");
}

int meta_json_only(const struct json_at *at, json_t *object, const char *const *names)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return meta_json_bad(at, "", "must be an object");
    json_object_foreach(object, key, value)
    {
        const char *const *name = names;
        while (*name != NULL && strcmp(*name, key) != 0)
            name++;
        if (*name == NULL)
            return meta_json_bad(at, key, "unknown field");
    }
    return 0;
}

int meta_json_only_fields(const struct json_at *at, json_t *object, const struct resource_table *t,
                          const char *const *more)
{
    const char *names[RESOURCE_FIELDS_MAX + MORE_MAX + 1] = {NULL};
    size_t count = 0;
    for (size_t i = 0; i < t->fields; i++)
        names[count++] = t->field[i].name;
    for (size_t i = 0; more[i] != NULL && i < MORE_MAX; i++)
        names[count++] = more[i];
    return meta_json_only(at, object, names);
}

int meta_json_fields(const struct json_at *at, json_t *object, const struct resource_table *t,
                     bool stored, void *out)
{
    struct resource_violation wrong;
    const int status = resource_read(t, object, RESOURCE_TYPES_ALL, stored, out, &wrong);
    if (status == 0)
        return 0;
    snprintf(at->violation->field, sizeof at->violation->field, "%s", wrong.field);
    snprintf(at->violation->detail, sizeof at->violation->detail, "%s", wrong.detail);
    return status;
}

int meta_json_number(const struct json_at *at, json_t *object, const char *name, bool required,
                     uint64_t min, uint64_t max, uint64_t *out)
{
    json_t *value = json_object_get(object, name);
    char text[80];
    if (value == NULL)
        return required ? meta_json_bad(at, name, "is missing") : 0;
    if (json_is_integer(value) && json_integer_value(value) >= 0 &&
        (uint64_t)json_integer_value(value) >= min && (uint64_t)json_integer_value(value) <= max) {
        *out = (uint64_t)json_integer_value(value);
        return 0;
    }
    snprintf(text, sizeof text, "must be an integer from %llu to %llu", (unsigned long long)min,
             (unsigned long long)max);
    return meta_json_bad(at, name, text);
}

int meta_json_parse_agents(const void *body, size_t bytes, const struct json_at *at,
                           const char *const *names, json_t **out, uint32_t *incarnation)
{
    uint64_t number;
    json_t *root;
    int status = meta_json_parse(body, bytes, at, &root);
    if (status != 0)
        return status;
    status = meta_json_only(at, root, names);
    if (status == 0)
        status = meta_json_number(at, root, "incarnation", true, 1, UINT32_MAX, &number);
    if (status != 0) {
        json_decref(root);
        return status;
    }
    *out = root;
    *incarnation = (uint32_t)number;
    return 0;
}

int meta_json_gid(const struct json_at *at, json_t *object, const char *name, bool required,
                  uint8_t out[16])
{
    static const uint8_t none[16];
    json_t *value = json_object_get(object, name);
    uint8_t gid[16];
    if (value == NULL)
        return required ? meta_json_bad(at, name, "is missing") : 0;
    if (!json_is_string(value) || base_gid_parse(json_string_value(value), gid) != 0 ||
        memcmp(gid, none, sizeof none) == 0 || gid[0] == 0xff)
        return meta_json_bad(at, name, "must be a unicast IPv6 address");
    memcpy(out, gid, sizeof gid);
    return 0;
}

int meta_json_text(const struct json_at *at, json_t *object, const char *name, char *out,
                   size_t size)
{
    json_t *value = json_object_get(object, name);
    char detail[64];
    if (value == NULL)
        return 0;
    if (json_is_string(value) && !base_is_printable(json_string_value(value)))
        return meta_json_bad(at, name, "must have no control characters");
    if (json_is_string(value) && json_string_length(value) < size) {
        memcpy(out, json_string_value(value), json_string_length(value) + 1);
        return 0;
    }
    snprintf(detail, sizeof detail, "must be a string of at most %zu bytes", size - 1);
    return meta_json_bad(at, name, detail);
}
