/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of what operators set, and that schema/openapi.yaml, rdmactl(1) and the help of their
 * own rows say the same. */
#include "../man_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/resources.h"

/* From the line behind `from` to the next line that is indented by no more than `indent`. */
static char *cut_section(const char *text, const char *from, size_t indent)
{
    const char *begin = strstr(text, from);
    ck_assert_msg(begin != NULL, "%s", from);
    begin = strchr(begin + 1, '\n') + 1;
    const char *end = begin;
    while (*end != '\0' && strspn(end, " ") > indent)
        end = strchr(end, '\n') + 1;
    return strndup(begin, (size_t)(end - begin));
}

static const struct {
    const char *body, *shown;
} schemas[] = {[RESOURCE_TENANT] = {"\n    TenantBody:", "\n    Tenant:"},
               [RESOURCE_WINDOW] = {"\n    WindowBody:", "\n    Window:"},
               [RESOURCE_TOKEN] = {"\n    TokenBody:", "\n    Token:"},
               [RESOURCE_NODE] = {"\n    NodeSettingsBody:", "\n    NodeSettings:"},
               [RESOURCE_POOL] = {"\n    PoolBody:", "\n    Pool:"}};

/* The line "    NAME:..." of a schema that a property refers to. */
static char *cut_referred(const char *openapi, const char *property)
{
    static const char path[] = "#/components/schemas/";
    const char *name = strstr(property, path);
    char head[96];
    ck_assert_msg(name != NULL, "%s", property);
    name += strlen(path);
    snprintf(head, sizeof head, "\n    %.*s:", (int)strcspn(name, "\""), name);
    const char *begin = strstr(openapi, head);
    ck_assert_msg(begin != NULL, "%s", head);
    return strndup(begin + 1, strcspn(begin + 1, "\n"));
}

/* Whether a name is in "required: [a, b]". */
static bool is_listed(const char *schema, const char *name)
{
    const char *list = strstr(schema, "      required: [");
    const size_t length = strlen(name);
    if (list == NULL)
        return false;
    const char *end = strchr(list, ']');
    for (const char *at = list; (at = strstr(at + 1, name)) != NULL && at < end;)
        if ((at[-1] == '[' || at[-1] == ' ') && (at[length] == ',' || at[length] == ']'))
            return true;
    return false;
}

/* Of the form "    name: value" at that depth, each with what is indented more. */
static char *next_property(char **at, char name[64])
{
    char *line = *at;
    if (*line == '\0')
        return NULL;
    const size_t depth = strspn(line, " ");
    ck_assert_int_eq(sscanf(line + depth, "%63[^:]", name), 1);
    char *end = strchr(line, '\n') + 1;
    while (*end != '\0' && strspn(end, " ") > depth)
        end = strchr(end, '\n') + 1;
    *at = end;
    return strndup(line, (size_t)(end - line));
}

static bool says(const char *property, const char *key, uint64_t value)
{
    char want[64];
    const size_t length = (size_t)snprintf(want, sizeof want, "%s: %" PRIu64, key, value);
    const char *there = strstr(property, want);
    return there != NULL && strspn(there + length, "0123456789") == 0;
}

static void check_range(const struct resource_table *t, const struct resource_field *f,
                        const char *property)
{
    const bool may_be_0 = f->type == FIELD_BOUND || f->type == FIELD_SIZE;
    const uint64_t least = !may_be_0 || f->min > 1 ? f->min : 0;
    if (strstr(property, "schemas/Size") != NULL) { /* 0 to 2^53; a description has more */
        char and_more[32];
        snprintf(and_more, sizeof and_more, "%" PRIu64 " and more", least);
        ck_assert_msg(f->max == RESOURCE_NUMBER_MAX &&
                          (least == 0 || strstr(property, and_more) != NULL),
                      "%s: %s", t->name, f->name);
        return;
    }
    if (strstr(property, "enum:") != NULL) { /* the ends of the range are among them */
        char ends[64];
        snprintf(ends, sizeof ends, "enum: [%" PRIu64 ",", f->min);
        ck_assert_msg(strstr(property, ends) != NULL, "%s: %s", t->name, f->name);
        snprintf(ends, sizeof ends, " %" PRIu64 "]", f->max);
        ck_assert_msg(strstr(property, ends) != NULL, "%s: %s", t->name, f->name);
        return;
    }
    ck_assert_msg(says(property, "minimum", least) && says(property, "maximum", f->max),
                  "%s: %s is from %" PRIu64 " to %" PRIu64 ", and openapi.yaml says %s", t->name,
                  f->name, least, f->max, property);
}

static bool is_bound(const struct resource_field *f)
{
    return f->type == FIELD_BOUND || f->type == FIELD_SIZE;
}

static void has(const struct resource_table *t, const struct resource_field *f,
                const char *property, const char *what)
{
    ck_assert_msg(strstr(property, what) != NULL, "openapi.yaml: %s of a %s lacks \"%s\": %s",
                  f->name, t->name, what, property);
}

static void has_number(const struct resource_table *t, const struct resource_field *f,
                       const char *property, const char *key, uint64_t value)
{
    ck_assert_msg(says(property, key, value), "openapi.yaml: %s of a %s has not %s: %" PRIu64,
                  f->name, t->name, key, value);
}

static void check_integer(const struct resource_table *t, const struct resource_field *f,
                          const char *openapi, const char *property)
{
    if (is_bound(f)) {
        char *size = cut_referred(openapi, property);
        has(t, f, size, "Size: {type: integer,");
        has(t, f, size, "default: 0,");
        free(size);
    } else {
        has(t, f, property, "type: integer");
    }
    if (!is_bound(f))
        ck_assert_msg(strstr(property, "default:") == NULL, "%s of a %s has no default", f->name,
                      t->name);
    check_range(t, f, property);
}

static void check_choice(const struct resource_table *t, const struct resource_field *f,
                         const char *openapi, const char *property)
{
    char *scope = cut_referred(openapi, property), list[128];
    size_t used = (size_t)snprintf(list, sizeof list, "{type: string, enum: [");
    for (size_t i = 0; f->words[i] != NULL; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "",
                                 f->words[i]);
    snprintf(list + used, sizeof list - used, "]");
    has(t, f, scope, list);
    free(scope);
}

static void check_names(const struct resource_table *t, const struct resource_field *f,
                        const char *property)
{
    char pattern[32];
    snprintf(pattern, sizeof pattern, "[a-z0-9.-]{0,%u}$", resource_table(f->of)->name_max - 1);
    has(t, f, property, "type: array");
    has_number(t, f, property, "maxItems", RESOURCE_TENANTS_MAX);
    has(t, f, property, pattern);
}

static void check_labels(const struct resource_table *t, const struct resource_field *f,
                         const char *openapi, const char *property)
{
    char *labels = cut_section(openapi, "\n    Labels:", 4);
    has(t, f, property, "schemas/Labels");
    has_number(t, f, labels, "maxProperties", RESOURCE_LABELS_MAX);
    free(labels);
}

static void check_property(const struct resource_table *t, const struct resource_field *f,
                           const char *openapi, const char *property)
{
    switch (f->type) {
    case FIELD_UIDS:
        has(t, f, property, "type: array");
        has(t, f, property, "default: []");
        has_number(t, f, property, "maxItems", RESOURCE_UIDS_MAX);
        return;
    case FIELD_SELECTOR:
    case FIELD_LABELS:
        check_labels(t, f, openapi, property);
        return;
    case FIELD_CHOICE:
        check_choice(t, f, openapi, property);
        return;
    case FIELD_REFERENCE:
        has(t, f, property, "type: string");
        return;
    case FIELD_GID:
        has(t, f, property, "schemas/Gid");
        return;
    case FIELD_TEXT:
        has(t, f, property, "type: string");
        has_number(t, f, property, "maxLength", RESOURCE_TEXT_MAX);
        return;
    case FIELD_REFERENCES:
        check_names(t, f, property);
        return;
    case FIELD_GIDS:
        has(t, f, property, "schemas/Gid");
        has_number(t, f, property, "maxItems", RESOURCE_GIDS_MAX);
        return;
    case FIELD_TIME:
        has(t, f, property, "type: string, format: date-time");
        return;
    case FIELD_BOOL:
        has(t, f, property, "type: boolean, default: false");
        return;
    case FIELD_BOUND:
    case FIELD_SIZE:
    case FIELD_COUNT:
    case FIELD_POWER:
    case FIELD_PERIOD:
        check_integer(t, f, openapi, property);
        return;
    }
}

START_TEST(openapi_has_the_same_fields_types_ranges_and_defaults)
{
    char *openapi = read_source("schema/openapi.yaml");
    for (int kind = 0; kind < RESOURCE_KINDS; kind++) {
        const struct resource_table *t = resource_table((enum resource_kind)kind);
        char *body = cut_section(openapi, schemas[kind].body, 4);
        char *properties = cut_section(body, "      properties:", 6), *at = properties, *one;
        char name[64];
        size_t known = 0;
        while ((one = next_property(&at, name)) != NULL) {
            const struct resource_field *f = resource_field_find(t, name);
            /* What a token is made with, and what is shown of it. */
            if (f == NULL && kind == RESOURCE_TOKEN &&
                (strcmp(name, "secret") == 0 || strcmp(name, "expired") == 0)) {
                free(one);
                continue;
            }
            ck_assert_msg(f != NULL, "openapi.yaml has %s of a %s", name, t->name);
            check_property(t, f, openapi, one);
            ck_assert_msg(is_listed(body, name) == resource_field_is_required(f),
                          "openapi.yaml: whether %s of a %s has to be said", name, t->name);
            known++;
            free(one);
        }
        ck_assert_msg(known == t->fields, "openapi.yaml has %zu of %zu fields of a %s", known,
                      t->fields, t->name);
        free(properties);
        free(body);
    }
    free(openapi);
}
END_TEST

/* What is left out of what is written has to be left out of what is required of answers. */
static bool is_always_shown(const struct resource_table *t, const struct resource_field *f)
{
    return is_bound(f) || resource_field_is_required(f) || f->type == FIELD_UIDS ||
           f->type == FIELD_LABELS || f->type == FIELD_BOOL ||
           /* A metaserver chooses one where none is said. */
           (t == resource_table(RESOURCE_POOL) && strcmp(f->name, "number") == 0);
}

START_TEST(openapi_shows_all_fields_and_requires_those_that_always_are)
{
    char *openapi = read_source("schema/openapi.yaml"), line[64];
    for (int kind = 0; kind < RESOURCE_KINDS; kind++) {
        const struct resource_table *t = resource_table((enum resource_kind)kind);
        char *shown = cut_section(openapi, schemas[kind].shown, 4);
        for (size_t i = 0; i < t->fields; i++) {
            const struct resource_field *f = &t->field[i];
            snprintf(line, sizeof line, "\n        %s: {", f->name);
            ck_assert_msg(strstr(shown, line) != NULL, "openapi.yaml shows no %s of a %s", f->name,
                          t->name);
            ck_assert_msg(is_listed(shown, f->name) == is_always_shown(t, f),
                          "openapi.yaml: whether %s of a %s is always shown", f->name, t->name);
        }
        free(shown);
    }
    free(openapi);
}
END_TEST

/* "1 to 1024", "256, 512 or 1024": a man page's or a help's words for a range. */
static const char *range_text(const struct resource_field *f, char out[RESOURCE_MUST_BYTES])
{
    if (f->type == FIELD_POWER) {
        (void)resource_number_must(f, out);
        memmove(out, out + strlen("must be "), strlen(out) + 1 - strlen("must be "));
    } else {
        snprintf(out, RESOURCE_MUST_BYTES, "%" PRIu64 " to %" PRIu64, f->min, f->max);
    }
    return out;
}

/* Of a bound the page says once for all what it may be; a grace's is longer than anybody wants. */
static bool has_range(const struct resource_field *f)
{
    return f->is_number && !is_bound(f) && f->max != RESOURCE_GRACE_MAX_MS;
}

START_TEST(the_man_page_names_each_field_and_its_range)
{
    char *page = read_source("docs/man/rdmactl.1"), range[RESOURCE_MUST_BYTES];
    for (int kind = 0; kind < RESOURCE_KINDS; kind++) {
        const struct resource_table *t = resource_table((enum resource_kind)kind);
        for (size_t i = 0; i < t->fields && kind != RESOURCE_NODE; i++) { /* set by verbs */
            const struct resource_field *f = &t->field[i];
            char *item = cut_item(page, f->name);
            ck_assert_msg(item != NULL, "rdmactl(1) has no %s of a %s", f->name, t->name);
            ck_assert_msg(!has_range(f) || strstr(item, range_text(f, range)) != NULL,
                          "rdmactl(1): %s of a %s is %s: %s", f->name, t->name,
                          range_text(f, range), item);
            for (size_t k = 0; f->words != NULL && f->words[k] != NULL; k++)
                ck_assert_msg(strstr(page, f->words[k]) != NULL, "rdmactl(1) has no %s",
                              f->words[k]);
            free(item);
        }
    }
    free(page);
}
END_TEST

START_TEST(a_range_that_a_help_says_is_the_row_s)
{
    for (int kind = 0; kind < RESOURCE_KINDS; kind++) {
        const struct resource_table *t = resource_table((enum resource_kind)kind);
        for (size_t i = 0; i < t->fields; i++) {
            const struct resource_field *f = &t->field[i];
            const char *to = strstr(f->help, " to "), *digits = "0123456789";
            char range[RESOURCE_MUST_BYTES];
            const bool up = to != NULL && to - f->help >= 2 && strncmp(to - 2, "up", 2) == 0;
            if (up && strchr(digits, to[4]) != NULL)
                ck_assert_uint_eq(strtoull(to + 4, NULL, 10), f->max);
            else if (f->is_number && to != NULL && strchr(digits, to[4]) != NULL)
                ck_assert_msg(strstr(f->help, range_text(f, range)) != NULL, "%s: %s", f->name,
                              f->help);
            if (f->type == FIELD_POWER)
                ck_assert_str_eq(f->help, range_text(f, range));
        }
    }
}
END_TEST

START_TEST(numbers_have_ranges_and_may_be_left_out)
{
    const struct resource_table *t = resource_table_find("pool");
    const struct resource_field *dcis = resource_field_find(t, "dcis");
    struct pool_numbers n;
    char must[RESOURCE_MUST_BYTES];
    ck_assert_ptr_eq(t, resource_table_of_list("pools"));
    ck_assert_ptr_null(resource_table_find("planet"));
    ck_assert_ptr_null(resource_field_find(t, "planet"));
    resource_numbers_clear(t, &n);
    ck_assert_uint_eq(n.dcis, RESOURCE_UNSAID);
    ck_assert_ptr_null(resource_numbers_check(t, &n));
    for (uint64_t value = 0; value < 40; value++)
        ck_assert_int_eq(resource_number_is_right(dcis, value), value >= 2 && value <= 32);
    *resource_number(dcis, &n) = 33;
    ck_assert_uint_eq(n.dcis, 33);
    ck_assert_ptr_eq(resource_numbers_check(t, &n), dcis);
    ck_assert_str_eq(resource_number_must(dcis, must), "must be an integer from 2 to 32");
    const struct resource_table *tenant = resource_table(RESOURCE_TENANT);
    const struct resource_field *memory = resource_field_find(tenant, "memory_bytes");
    struct tenant_numbers bounds;
    resource_numbers_clear(tenant, &bounds);
    ck_assert_uint_eq(bounds.memory_bytes, 0); /* no bound */
    ck_assert(resource_number_is_right(memory, 0) && !resource_number_is_right(memory, 65535));
    ck_assert(resource_number_is_right(memory, 65536) &&
              !resource_number_is_right(memory, RESOURCE_UNSAID));
    ck_assert_str_eq(resource_number_must(memory, must), "must be 0 or at least 65536");
    ck_assert_str_eq(resource_number_must(resource_field_find(tenant, "vqps"), must),
                     "must be at most 9007199254740992");
}
END_TEST

START_TEST(what_is_left_out_is_not_written)
{
    const struct resource_table *t = resource_table(RESOURCE_POOL);
    struct resource_pool p;
    struct resource_window w;
    struct base_text text;
    base_text_init(&text, 4096);
    resource_clear(t, &p);
    resource_write(&text, t, &p);
    ck_assert_str_eq(base_text_str(&text), "\"nodes\":{}");
    p.numbers.spares = 0;
    p.numbers.grace_ms = 7;
    p.tenants.count = 1;
    snprintf(p.tenants.name[0], sizeof p.tenants.name[0], "web");
    base_text_reset(&text);
    resource_write(&text, t, &p);
    ck_assert_str_eq(base_text_str(&text),
                     "\"nodes\":{},\"spares\":0,\"grace_ms\":7,\"tenants\":[\"web\"]");
    resource_clear(resource_table(RESOURCE_WINDOW), &w);
    w.scope = RESOURCE_WINDOW_DESTINATION;
    w.gid[15] = 1;
    w.numbers.ops = 3;
    base_text_reset(&text);
    resource_write(&text, resource_table(RESOURCE_WINDOW), &w); /* bounds always are */
    ck_assert_str_eq(base_text_str(&text),
                     "\"scope\":\"destination\",\"gid\":\"::1\",\"bytes\":0,\"ops\":3");
    base_text_fini(&text);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(openapi_has_the_same_fields_types_ranges_and_defaults)                                       \
    T(openapi_shows_all_fields_and_requires_those_that_always_are)                                 \
    T(the_man_page_names_each_field_and_its_range)                                                 \
    T(a_range_that_a_help_says_is_the_row_s)                                                       \
    T(numbers_have_ranges_and_may_be_left_out)                                                     \
    T(what_is_left_out_is_not_written)
KEDGE_CHECK_MAIN("schema resources", TESTS)
