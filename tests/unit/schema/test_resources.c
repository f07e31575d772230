/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of what operators set, and that schema/openapi.yaml and rdmactl(1) say the same. */
#include "../check_main.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/resources.h"

/* A file of the source tree, whole. */
static char *read_source(const char *path)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s/%s", KEDGE_SOURCE_DIR, path);
    FILE *file = fopen(whole, "r");
    ck_assert_msg(file != NULL, "%s", whole);
    char *text = calloc(1, 1 << 20);
    const size_t bytes = fread(text, 1, (1 << 20) - 1, file);
    ck_assert(bytes > 0 && bytes < (1 << 20) - 1);
    fclose(file);
    return text;
}

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

static const char *const bodies[] = {[RESOURCE_TENANT] = "\n    TenantBody:",
                                     [RESOURCE_WINDOW] = "\n    WindowBody:",
                                     [RESOURCE_TOKEN] = "\n    TokenBody:",
                                     [RESOURCE_NODE] = "\n    NodeSettingsBody:",
                                     [RESOURCE_POOL] = "\n    PoolBody:"};

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
    const bool may_be_0 =
        f->type == FIELD_BOUND || f->type == FIELD_SIZE || f->type == FIELD_TIMEOUT;
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

START_TEST(openapi_has_the_same_fields_and_ranges)
{
    char *openapi = read_source("schema/openapi.yaml");
    for (int kind = 0; kind < RESOURCE_KINDS; kind++) {
        const struct resource_table *t = resource_table((enum resource_kind)kind);
        char *body = cut_section(openapi, bodies[kind], 4);
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
            if (f->is_number)
                check_range(t, f, one);
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

/* A word of an item's head, which is a line (".It Cm dcis , spares") or what is between ".It Xo"
 * and ".Xc". */
static bool is_item(const char *page, const char *name)
{
    const size_t length = strlen(name);
    for (const char *head = strstr(page, "\n.It "); head != NULL;
         head = strstr(head + 1, "\n.It ")) {
        const bool is_long = strncmp(head, "\n.It Xo", 7) == 0;
        const char *end = is_long ? strstr(head, "\n.Xc") : strchr(head + 1, '\n');
        for (const char *at = head; (at = strstr(at + 1, name)) != NULL && at < end;)
            if (at[-1] == ' ' && (at[length] == ' ' || at[length] == '\n'))
                return true;
    }
    return false;
}

START_TEST(the_man_page_names_each_field)
{
    char *page = read_source("docs/man/rdmactl.1");
    for (int kind = 0; kind < RESOURCE_KINDS; kind++) {
        const struct resource_table *t = resource_table((enum resource_kind)kind);
        for (size_t i = 0; i < t->fields && kind != RESOURCE_NODE; i++) /* set by verbs */
            ck_assert_msg(is_item(page, t->field[i].name), "rdmactl(1) has no %s of a %s",
                          t->field[i].name, t->name);
    }
    free(page);
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
    T(openapi_has_the_same_fields_and_ranges)                                                      \
    T(the_man_page_names_each_field)                                                               \
    T(numbers_have_ranges_and_may_be_left_out)                                                     \
    T(what_is_left_out_is_not_written)
KEDGE_CHECK_MAIN("schema resources", TESTS)
