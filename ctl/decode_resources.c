/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/resources.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/printable.h"
#include "ctl/format.h"
#include "decode_private.h"

/* ---- showing */

/* A time that is set: it is shown with its unit. */
static bool is_duration(const struct resource_field *field)
{
    return field->type == FIELD_PERIOD;
}

static void show_labels(json_t *object, enum field_type type, char *out, size_t size)
{
    const char *key, *none = type == FIELD_SELECTOR ? "all" : "-";
    json_t *value;
    size_t used = (size_t)snprintf(out, size, "%s", json_object_size(object) == 0 ? none : "");
    json_object_foreach(object, key, value)
    {
        char one[2 * CTL_WORD_BYTES + 2];
        snprintf(one, sizeof one, "%s%.63s=%.63s", used > 0 ? "," : "", key,
                 json_is_string(value) ? json_string_value(value) : "");
        if (used < size)
            (void)base_copy_printable(out + used, size - used, one);
        used += strlen(one);
    }
}

static void show_integer(json_int_t value, const struct resource_field *field, char *out,
                         size_t size)
{
    char amount[CTL_AMOUNT_BYTES];
    const enum field_type type = field != NULL ? field->type : FIELD_COUNT;
    if (value == 0 && (type == FIELD_BOUND || type == FIELD_SIZE))
        snprintf(out, size, "-"); /* no bound */
    else if (value >= 0 && type == FIELD_SIZE)
        snprintf(out, size, "%s", ctl_format_size((uint64_t)value, amount));
    else if (value >= 0 && field != NULL && is_duration(field))
        snprintf(out, size, "%s", ctl_format_duration((uint64_t)value, amount));
    else
        snprintf(out, size, "%" JSON_INTEGER_FORMAT, value);
}

void ctl_show_value(json_t *value, const struct resource_field *field, char *out, size_t size)
{
    size_t i, used = 0;
    json_t *one;
    if (json_is_string(value)) {
        (void)base_copy_printable(out, size, json_string_value(value));
    } else if (json_is_object(value)) {
        show_labels(value, field != NULL ? field->type : FIELD_LABELS, out, size);
    } else if (json_is_true(value)) {
        snprintf(out, size, "yes");
    } else if (json_is_integer(value)) {
        show_integer(json_integer_value(value), field, out, size);
    } else if (json_array_size(value) > 0) {
        json_array_foreach(value, i, one)
        {
            if (used >= size - 1)
                return;
            used += (size_t)snprintf(out + used, size - used, "%s", i > 0 ? "," : "");
            if (used < size - 1)
                ctl_show_value(one, NULL, out + used, size - used);
            used = strlen(out);
        }
    } else {
        snprintf(out, size, "-");
    }
}

/* ---- reading */

int ctl_json_load(const char *body, size_t bytes, json_t **out, struct base_errbuf *err)
{
    json_error_t error;
    *out = json_loadb(body, bytes, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(*out))
        return 0;
    json_decref(*out);
    return base_err(err, -EBADMSG, "the answer is no JSON object: is this a Kedge server?");
}

static int setting_from(const struct resource_table *kind, json_t *object, struct ctl_resource *out,
                        struct base_errbuf *err)
{
    struct ctl_resource s = {.json = NULL};
    const char *name = json_string_value(json_object_get(object, "name"));
    json_int_t revision = json_integer_value(json_object_get(object, "revision"));
    if (name == NULL || revision < 1)
        return base_err(err, -EBADMSG, "the answer holds a %s without name or revision",
                        kind->name);
    (void)base_copy_printable(s.name, sizeof s.name, name);
    s.revision = (uint64_t)revision;
    bool whole = true;
    for (size_t i = 0; i < kind->fields; i++) {
        char value[CTL_VALUE_BYTES];
        ctl_show_value(json_object_get(object, kind->field[i].name), &kind->field[i], value,
                       sizeof value);
        if (kind->field[i].type == FIELD_TIME && json_is_true(json_object_get(object, "expired")))
            (void)base_copy_printable(value, sizeof value, "expired");
        s.value[i] = strdup(value);
        whole &= s.value[i] != NULL;
    }
    (void)base_copy_printable(s.secret, sizeof s.secret,
                              json_string_value(json_object_get(object, "secret")));
    s.json = json_dumps(object, JSON_COMPACT);
    if (s.json == NULL || !whole) {
        ctl_resource_fini(&s);
        return base_err(err, -ENOMEM, "out of memory");
    }
    *out = s;
    return 0;
}

void ctl_resource_fini(struct ctl_resource *resource)
{
    for (size_t i = 0; i < RESOURCE_FIELDS_MAX; i++) {
        free(resource->value[i]);
        resource->value[i] = NULL;
    }
    free(resource->json);
    resource->json = NULL;
}

void ctl_resources_fini(struct ctl_resources *all)
{
    for (size_t i = 0; i < all->count; i++)
        ctl_resource_fini(&all->item[i]);
    free(all->item);
    *all = (struct ctl_resources){.item = NULL};
}

int ctl_decode_resource(const struct resource_table *kind, const char *body, size_t bytes,
                        struct ctl_resource *out, struct base_errbuf *err)
{
    json_t *root;
    int status = ctl_json_load(body, bytes, &root, err);
    if (status != 0)
        return status;
    status = setting_from(kind, root, out, err);
    json_decref(root);
    return status;
}

int ctl_json_page(const char *body, size_t bytes, const char *of, json_t **root, json_t **array,
                  char *next, size_t size, struct base_errbuf *err)
{
    int status = ctl_json_load(body, bytes, root, err);
    if (status != 0)
        return status;
    const char *cursor = json_string_value(json_object_get(*root, "next_cursor"));
    *array = json_object_get(*root, of);
    if (json_is_array(*array) && (cursor == NULL || strlen(cursor) < size)) {
        snprintf(next, size, "%s", cursor != NULL ? cursor : "");
        return 0;
    }
    json_decref(*root);
    return base_err(err, -EBADMSG, "the answer is no page of %s", of);
}

int ctl_decode_resources(const struct resource_table *kind, const char *body, size_t bytes,
                         struct ctl_resources *all, char *next, size_t size,
                         struct base_errbuf *err)
{
    json_t *root, *array;
    int status = ctl_json_page(body, bytes, kind->plural, &root, &array, next, size, err);
    if (status != 0)
        return status;
    size_t count = json_array_size(array);
    struct ctl_resource *grown = realloc(all->item, (all->count + count + 1) * sizeof *grown);
    if (grown == NULL)
        status = base_err(err, -ENOMEM, "out of memory");
    else
        all->item = grown;
    for (size_t i = 0; i < count && status == 0; i++) {
        status = setting_from(kind, json_array_get(array, i), &all->item[all->count], err);
        all->count += status == 0;
    }
    json_decref(root);
    return status;
}

/* ---- editing */

/* Words with commas between them; uids as numbers, but for ranges, which have to ascend. */
static json_t *read_list(const char *text, bool uids)
{
    json_t *array = json_array();
    while (*text != '\0') {
        char one[64];
        uint64_t uid = 0, last;
        size_t length = strcspn(text, ",");
        if (length == 0 || length >= sizeof one ||
            (text[length] == ',' && text[length + 1] == '\0')) {
            json_decref(array);
            return NULL;
        }
        memcpy(one, text, length);
        one[length] = '\0';
        const bool plain = uids && base_parse_u64(one, 0, UINT32_MAX - 1, &uid) == 0;
        if (uids && !plain && base_parse_range(one, UINT32_MAX - 1, &uid, &last) != 0) {
            json_decref(array);
            return NULL;
        }
        json_array_append_new(array, plain ? json_integer((json_int_t)uid) : json_string(one));
        text += length + (text[length] == ',');
    }
    return array;
}

/* What looks like a time, or is none, is left to the server, which knows times. */
static json_t *read_time(const char *text)
{
    char when[32];
    uint64_t ns;
    struct tm tm;
    if (base_parse_duration(text, &ns) != 0)
        return text[0] == '\0' || strchr(text, '-') != NULL ? json_string(text) : NULL;
    time_t seconds = (time_t)(base_clock_wall_ms() / 1000 + ns / BASE_NS_PER_S);
    if (gmtime_r(&seconds, &tm) == NULL ||
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        return NULL;
    return json_string(when);
}

static json_t *read_labels(const char *text)
{
    json_t *object = json_object();
    while (*text != '\0') {
        char key[CTL_WORD_BYTES], value[CTL_WORD_BYTES];
        size_t length = strcspn(text, ","), equals = strcspn(text, "=");
        if (equals >= length || equals >= sizeof key || length - equals - 1 >= sizeof value ||
            (text[length] == ',' && text[length + 1] == '\0')) {
            json_decref(object);
            return NULL;
        }
        snprintf(key, sizeof key, "%.*s", (int)equals, text);
        if (json_object_get(object, key) != NULL) { /* the later would silently win */
            json_decref(object);
            return NULL;
        }
        snprintf(value, sizeof value, "%.*s", (int)(length - equals - 1), text + equals + 1);
        json_object_set_new(object, key, json_string(value));
        text += length + (text[length] == ',');
    }
    return object;
}

/* Milliseconds, or with a unit. */
static json_t *read_duration(const char *text)
{
    uint64_t number;
    if (base_parse_u64(text, 0, INT64_MAX, &number) == 0)
        return json_integer((json_int_t)number);
    if (base_parse_duration(text, &number) != 0 || number % BASE_NS_PER_MS != 0)
        return NULL;
    return json_integer((json_int_t)(number / BASE_NS_PER_MS));
}

/* NULL: the value is no such. What it may be beyond that, the server knows. */
static json_t *read_value(const struct resource_field *field, const char *text)
{
    uint64_t number;
    switch (field->type) {
    case FIELD_UIDS:
        return read_list(text, true);
    case FIELD_REFERENCES:
    case FIELD_GIDS:
        return read_list(text, false);
    case FIELD_TIME:
        return read_time(text);
    case FIELD_CHOICE:
    case FIELD_REFERENCE:
    case FIELD_GID:
    case FIELD_TEXT:
        return json_string(text);
    case FIELD_PERIOD:
        return read_duration(text);
    case FIELD_SIZE:
        return base_parse_bytes(text, &number) == 0 ? json_integer((json_int_t)number) : NULL;
    case FIELD_LABELS:
        return read_labels(text);
    case FIELD_SELECTOR:
        return strcmp(text, "all") == 0 ? json_object()
               : text[0] != '\0'        ? read_labels(text)
                                        : NULL;
    case FIELD_BOOL:
        return strcmp(text, "true") == 0    ? json_true()
               : strcmp(text, "false") == 0 ? json_false()
                                            : NULL;
    case FIELD_BOUND:
    case FIELD_COUNT:
    case FIELD_POWER:
        return base_parse_u64(text, 0, INT64_MAX, &number) == 0 ? json_integer((json_int_t)number)
                                                                : NULL;
    }
    return NULL;
}

static int no_such_key(const struct resource_table *kind, const char *word, struct base_errbuf *err)
{
    char names[RESOURCE_FIELDS_MAX * 24];
    size_t used = 0;
    for (size_t i = 0; i < kind->fields && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                                 kind->field[i].name);
    return base_err(err, -EINVAL, "\"%.60s\" sets nothing of a %s: say KEY=VALUE, with one of %s",
                    word, kind->name, names);
}

static int no_such_value(const struct resource_field *key, const char *text,
                         struct base_errbuf *err)
{
    static const char *const forms[] = {
        [FIELD_BOUND] = "a number such as 64, or 0 for no bound",
        [FIELD_SIZE] = "a size such as 4GiB, or 0 for no bound",
        [FIELD_UIDS] = "uids, which are numbers below 4294967295, and ascending ranges of them, "
                       "such as 1000,2000-2999",
        [FIELD_CHOICE] = "a word",
        [FIELD_REFERENCE] = "a word",
        [FIELD_GID] = "a word",
        [FIELD_TEXT] = "a word",
        [FIELD_REFERENCES] = "words with commas between them",
        [FIELD_GIDS] = "words with commas between them",
        [FIELD_TIME] = "a time such as 2027-01-31T00:00:00Z, or a duration such as 30d",
        [FIELD_COUNT] = "a number, or nothing to take back what was said",
        [FIELD_POWER] = "a number, or nothing to take back what was said",
        [FIELD_PERIOD] = "a duration such as 30s, or a number of milliseconds",
        [FIELD_LABELS] = "labels such as zone=a,rack=7, each of them once",
        [FIELD_BOOL] = "true or false",
        [FIELD_SELECTOR] = "all, or labels such as zone=a,rack=7, each of them once",
    };
    return base_err(err, -EINVAL, "%s must be %s, not \"%.60s\"", key->name, forms[key->type],
                    text);
}

static bool is_list(const struct resource_field *key)
{
    return key->type == FIELD_UIDS || key->type == FIELD_REFERENCES || key->type == FIELD_GIDS;
}

/* KEY+=VALUE, KEY-=VALUE. */
static int edit_items(const struct resource_field *key, json_t *root, const char *text, bool add,
                      struct base_errbuf *err)
{
    if (!is_list(key))
        return base_err(err, -EINVAL, "%s is no list: say %s=VALUE", key->name, key->name);
    json_t *delta = text[0] != '\0' ? read_value(key, text) : NULL;
    if (delta == NULL)
        return no_such_value(key, text, err);
    const int status = ctl_edit_list(key, root, delta, add, err);
    json_decref(delta);
    return status;
}

static int edit_key(const struct resource_table *kind, json_t *root, const char *word,
                    struct base_errbuf *err)
{
    const size_t equals = strcspn(word, "=");
    const char sign = equals > 0 ? word[equals - 1] : '\0';
    const bool edits = sign == '+' || sign == '-';
    const size_t length = edits ? equals - 1 : equals;
    for (size_t i = 0; i < kind->fields && word[equals] == '='; i++) {
        const struct resource_field *key = &kind->field[i];
        const char *text = word + equals + 1;
        if (strlen(key->name) != length || strncmp(key->name, word, length) != 0)
            continue;
        if (edits)
            return edit_items(key, root, text, sign == '+', err);
        if (key->type >= FIELD_CHOICE && text[0] == '\0') {
            json_object_del(root, key->name);
            return 0;
        }
        if (json_object_set_new(root, key->name, read_value(key, text)) != 0) /* or NULL */
            return no_such_value(key, text, err);
        return 0;
    }
    return no_such_key(kind, word, err);
}

int ctl_json_units(const struct resource_table *kind, json_t *object, struct base_errbuf *err)
{
    for (size_t i = 0; i < kind->fields; i++) {
        const struct resource_field *key = &kind->field[i];
        const char *text = json_string_value(json_object_get(object, key->name));
        if (text != NULL &&
            (key->type == FIELD_BOUND || key->type == FIELD_COUNT || key->type == FIELD_POWER))
            return base_err(err, -EINVAL, "%s is a decimal number without quotes, not \"%.60s\"",
                            key->name, text);
        if (text == NULL ||
            (key->type != FIELD_SIZE && key->type != FIELD_TIME && !is_duration(key)))
            continue;
        json_t *value = read_value(key, text);
        if (value == NULL)
            return no_such_value(key, text, err);
        if (json_object_set_new(object, key->name, value) != 0)
            return base_err(err, -ENOMEM, "out of memory");
    }
    return 0;
}

int ctl_json_dump(json_t *object, struct base_text *out, struct base_errbuf *err)
{
    char *text = json_dumps(object, JSON_COMPACT);
    if (text != NULL)
        base_text_append(out, text, strlen(text));
    free(text);
    return text != NULL && out->error == 0 ? 0 : base_err(err, -ENOMEM, "out of memory");
}

int ctl_json_body(const char *body, size_t bytes, json_t **out, uint64_t *revision,
                  struct base_errbuf *err)
{
    json_t *root = NULL;
    *revision = 0;
    if (body == NULL) {
        *out = json_object();
        return *out != NULL ? 0 : base_err(err, -ENOMEM, "out of memory");
    }
    int status = ctl_json_load(body, bytes, &root, err);
    if (status != 0)
        return status;
    json_int_t known = json_integer_value(json_object_get(root, "revision"));
    if (known < 1) {
        json_decref(root);
        return base_err(err, -EBADMSG, "the answer has no revision: is this a Kedge server?");
    }
    *revision = (uint64_t)known;
    json_object_del(root, "name");
    json_object_del(root, "revision");
    *out = root;
    return 0;
}

/* That something is for every node is said, and does not come of saying nothing. */
static int check_selector(const struct resource_table *kind, json_t *root, struct base_errbuf *err)
{
    for (size_t i = 0; i < kind->fields; i++)
        if (kind->field[i].type == FIELD_SELECTOR &&
            json_object_get(root, kind->field[i].name) == NULL)
            return base_err(err, -EINVAL,
                            "say which nodes have this %s: %s=zone=a, with their labels, or "
                            "%s=all",
                            kind->name, kind->field[i].name, kind->field[i].name);
    return 0;
}

int ctl_edit_resource(const struct resource_table *kind, const char *body, size_t bytes,
                      const char *const *words, size_t count, struct base_text *out,
                      uint64_t *revision, struct base_errbuf *err)
{
    json_t *root;
    int status = ctl_json_body(body, bytes, &root, revision, err);
    if (status != 0)
        return status;
    if (body == NULL && kind->field[0].type == FIELD_UIDS)
        json_object_set_new(root, kind->field[0].name, json_array()); /* nobody, until it is said */
    for (size_t i = 0; i < count && status == 0; i++)
        status = edit_key(kind, root, words[i], err);
    if (status == 0)
        status = check_selector(kind, root, err);
    if (status == 0)
        status = ctl_json_dump(root, out, err);
    json_decref(root);
    return status;
}
