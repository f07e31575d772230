/* SPDX-License-Identifier: Apache-2.0 */
/* `agent status`: what the agent says of itself in sections, and then each list: with a column for
 * each of its things, where these have many fields (pools, tenants), else with a row for each. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ctl/commands.h"
#include "ctl/decode.h"
#include "ctl/fetch.h"
#include "ctl/format.h"
#include "ctl/json.h"
#include "ctl/nodes.h"
#include "ctl/print_table.h"

enum {
    COLUMNS = 5, /* things beside each other: more come below */
    FIELDS = 16, /* of a thing that is a row */
    NAME_BYTES = 64,
};

/* Lists whose things are rows: where the command is that has all of them. */
static const struct rows {
    const char *list, *all;
} rows_of[] = {
    {"sessions_list", "rdmactl worker list and -o json have"},
    {"metaservers", "-o json has"},
    {"windows.tenants", "-o json has"},
    {"windows.destinations", "-o json has"},
    {"windows.named", "-o json has"},
};

/* Of the things of one list those that stand beside each other. */
struct part {
    char list[NAME_BYTES];
    size_t first, count;
};

/* "pools[0].lane.posted" is of pools, number 0, and its lane.posted. */
static bool split_path(const char *path, char list[NAME_BYTES], size_t *index, const char **field)
{
    const char *open = strchr(path, '['), *close = open != NULL ? strchr(open, ']') : NULL;
    if (close == NULL || (size_t)(open - path) >= NAME_BYTES)
        return false;
    snprintf(list, NAME_BYTES, "%.*s", (int)(open - path), path);
    *index = strtoul(open + 1, NULL, 10);
    *field = close[1] == '.' ? close + 2 : close + 1;
    return true;
}

static bool is_nothing(const char *value)
{
    return value == NULL || *value == '\0' || strcmp(value, "0") == 0 || strcmp(value, "-") == 0;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Whether what a path says is how long ago something was, or how long from now. */
static bool is_age(const char *path)
{
    static const char *const ages[] = {"age_ms", "uptime_ms", "for_ms", "ends_in_ms", "over_in_ms"};
    for (size_t i = 0; i < sizeof ages / sizeof ages[0]; i++)
        if (ends_with(path, ages[i]))
            return true;
    return false;
}

static const char *format_amount(const char *path, uint64_t number, char out[CTL_AMOUNT_BYTES])
{
    return strstr(path, "bytes") != NULL ? ctl_format_size(number, out)
           : is_age(path)                ? ctl_format_age(number, out)
           : ends_with(path, "_ms")      ? ctl_format_duration(number, out)
                                         : NULL;
}

/* Sizes and times as other tables show them. What is no number stays, and 0, which is left out; but
 * their names are without the unit too, as a row has one name for all of its things. */
static void show_unit(struct ctl_pair *pair)
{
    uint64_t number;
    char amount[CTL_AMOUNT_BYTES];
    const bool is_number = base_parse_u64(pair->value, 1, UINT64_MAX, &number) == 0;
    const char *text = is_number ? format_amount(pair->path, number, amount) : NULL;
    if (text != NULL)
        snprintf(pair->value, sizeof pair->value, "%s", text);
    if (ends_with(pair->path, "_ms"))
        pair->path[strlen(pair->path) - strlen("_ms")] = '\0';
}

static const char *value_of(const struct ctl_pairs *pairs, const struct part *part, size_t i,
                            const char *field)
{
    char path[2 * NAME_BYTES + CTL_PATH_BYTES];
    snprintf(path, sizeof path, "%s[%zu]%s%s", part->list, part->first + i,
             *field != '\0' ? "." : "", field);
    return ctl_pairs_find(pairs, path);
}

static int end_table(struct ctl_table *table)
{
    int status = ctl_table_print(table);
    ctl_table_free(table);
    return status;
}

/* What each of them is called is in its first field. */
static int print_part(const struct ctl_pairs *pairs, const struct part *part)
{
    const char *headings[COLUMNS + 1] = {part->list}, *cells[COLUMNS + 1];
    struct ctl_table *table = NULL;
    size_t rows = 0;
    int status = 0;
    for (size_t n = 0; n < pairs->count && status == 0; n++) {
        char list[NAME_BYTES];
        const char *field;
        size_t index;
        if (!split_path(pairs->pair[n].path, list, &index, &field) ||
            strcmp(list, part->list) != 0 || index != part->first)
            continue;
        bool nothing = true;
        cells[0] = field;
        for (size_t i = 0; i < part->count; i++) {
            const char *value = value_of(pairs, part, i, field);
            nothing = nothing && is_nothing(value);
            cells[i + 1] = value != NULL ? value : "";
        }
        if (table == NULL) {
            memcpy(headings + 1, cells + 1, part->count * sizeof cells[0]);
            status = ctl_table_new(headings, part->count + 1, &table);
        } else if (!nothing) {
            ctl_table_row(table, cells);
            rows++;
        }
    }
    if (status != 0 || rows == 0) {
        ctl_table_free(table);
        return status;
    }
    puts("");
    return end_table(table);
}

/* The fields that one of the things has something in: at most FIELDS of them. */
static size_t find_fields(const struct ctl_pairs *pairs, const struct part *part,
                          const char *fields[FIELDS])
{
    size_t count = 0;
    for (size_t n = 0; n < pairs->count && count < FIELDS; n++) {
        char list[NAME_BYTES];
        const char *field;
        size_t index;
        if (!split_path(pairs->pair[n].path, list, &index, &field) ||
            strcmp(list, part->list) != 0 || index != 0)
            continue;
        bool nothing = true;
        for (size_t i = 0; i < part->count; i++)
            nothing = nothing && is_nothing(value_of(pairs, part, i, field));
        if (!nothing)
            fields[count++] = field;
    }
    return count;
}

static void make_heading(const char *field, char out[NAME_BYTES])
{
    size_t i = 0;
    for (; field[i] != '\0' && i + 1 < NAME_BYTES; i++)
        out[i] = (char)toupper((unsigned char)field[i]);
    out[i] = '\0';
}

static int print_rows(const struct ctl_pairs *pairs, const struct part *part)
{
    const char *fields[FIELDS], *cells[FIELDS];
    char headings[FIELDS][NAME_BYTES];
    struct ctl_table *table;
    const size_t count = find_fields(pairs, part, fields);
    if (count == 0)
        return 0;
    for (size_t k = 0; k < count; k++) {
        make_heading(fields[k], headings[k]);
        cells[k] = headings[k];
    }
    int status = ctl_table_new(cells, count, &table);
    if (status != 0)
        return status;
    for (size_t i = 0; i < part->count; i++) {
        for (size_t k = 0; k < count; k++) {
            const char *value = value_of(pairs, part, i, fields[k]);
            cells[k] = value != NULL ? value : "";
        }
        ctl_table_row(table, cells);
    }
    printf("\n%s\n", part->list);
    return end_table(table);
}

/* What of a list is not shown, as ctl_decode_pairs() has cut it off, and where it is. */
static void print_left(const struct ctl_pairs *pairs, const char *list, size_t shown,
                       const char *all)
{
    char path[NAME_BYTES + 8];
    uint64_t count;
    snprintf(path, sizeof path, "%s.count", list);
    const char *text = ctl_pairs_find(pairs, path);
    if (text != NULL && base_parse_u64(text, shown + 1, UINT64_MAX, &count) == 0)
        printf("and %llu more: %s all\n", (unsigned long long)(count - shown), all);
}

static size_t count_items(const struct ctl_pairs *pairs, const char *list)
{
    size_t count = 0;
    for (size_t n = 0; n < pairs->count; n++) {
        char of[NAME_BYTES];
        const char *field;
        size_t index;
        if (split_path(pairs->pair[n].path, of, &index, &field) && strcmp(of, list) == 0 &&
            index >= count)
            count = index + 1;
    }
    return count;
}

static int print_columns(const struct ctl_pairs *pairs, const char *list, size_t count)
{
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i += COLUMNS) {
        struct part part = {.first = i, .count = count - i < COLUMNS ? count - i : COLUMNS};
        snprintf(part.list, sizeof part.list, "%s", list);
        status = print_part(pairs, &part);
    }
    return status;
}

static int print_list(const struct ctl_pairs *pairs, const char *list)
{
    const size_t count = count_items(pairs, list);
    const struct rows *rows = NULL;
    for (size_t i = 0; i < sizeof rows_of / sizeof rows_of[0]; i++)
        if (strcmp(rows_of[i].list, list) == 0)
            rows = &rows_of[i];
    struct part all = {.count = count};
    snprintf(all.list, sizeof all.list, "%s", list);
    const int status = rows != NULL ? print_rows(pairs, &all) : print_columns(pairs, list, count);
    print_left(pairs, list, count, rows != NULL ? rows->all : "-o json has");
    return status;
}

/* ---- what is no list's */

static const char *title_of(const char *section)
{
    static const struct {
        const char *section, *title;
    } titles[] = {
        {"", "Agent"},
        {"sessions", "Sessions"},
        {"memory", "Memory"},
        {"lane", "Lanes"},
        {"windows", "Windows"},
        {"clock", "Clock"},
        {"node_state", "Set of the node"},
        {"fabric", "Fabric"},
        {"settings", "Settings in force"},
    };
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        if (strcmp(titles[i].section, section) == 0)
            return titles[i].title;
    return section; /* of an agent that is newer */
}

/* "lane.posted" is of the section lane; what has no part is of "". */
static bool is_of_section(const char *path, const char *section)
{
    const size_t length = strlen(section);
    return length == 0 ? strchr(path, '.') == NULL
                       : strncmp(path, section, length) == 0 && path[length] == '.';
}

/* The agent's own pool is the first of the pools. */
static bool is_shown(const struct ctl_pair *p)
{
    return strchr(p->path, '[') == NULL && strncmp(p->path, "pool.", 5) != 0 &&
           !is_nothing(p->value);
}

static void print_section(const struct ctl_pairs *pairs, const char *section)
{
    const size_t skipped = *section != '\0' ? strlen(section) + 1 : 0;
    size_t width = 0;
    for (size_t i = 0; i < pairs->count; i++) {
        const char *path = pairs->pair[i].path;
        if (is_shown(&pairs->pair[i]) && is_of_section(path, section) &&
            strlen(path) - skipped > width)
            width = strlen(path) - skipped;
    }
    printf("%s%s\n", skipped > 0 ? "\n" : "", title_of(section));
    for (size_t i = 0; i < pairs->count; i++) {
        const struct ctl_pair *p = &pairs->pair[i];
        if (is_shown(p) && is_of_section(p->path, section))
            printf("  %-*s  %s\n", (int)width, p->path + skipped, p->value);
    }
}

/* Each in the place of what it says first. */
static void print_sections(const struct ctl_pairs *pairs)
{
    char before[NAME_BYTES] = "";
    print_section(pairs, "");
    for (size_t i = 0; i < pairs->count; i++) {
        const char *path = pairs->pair[i].path, *dot = strchr(path, '.');
        char section[NAME_BYTES];
        if (dot == NULL || (size_t)(dot - path) >= sizeof section || !is_shown(&pairs->pair[i]))
            continue;
        snprintf(section, sizeof section, "%.*s", (int)(dot - path), path);
        if (strcmp(section, before) != 0)
            print_section(pairs, section);
        memcpy(before, section, sizeof before);
    }
}

static int print_all(const struct ctl_pairs *pairs)
{
    char before[NAME_BYTES] = "";
    int status = 0;
    print_sections(pairs);
    for (size_t n = 0; n < pairs->count && status == 0; n++) {
        char list[NAME_BYTES];
        const char *field;
        size_t index;
        if (!split_path(pairs->pair[n].path, list, &index, &field) || strcmp(list, before) == 0)
            continue;
        snprintf(before, sizeof before, "%s", list);
        status = print_list(pairs, list);
    }
    if (status == 0)
        puts("\nWhat is 0 or not set is left out, in a table where it is so of all: -o json has "
             "all.");
    return status;
}

int ctl_agent_status_print(const char *body, size_t bytes, struct base_errbuf *err)
{
    struct ctl_pairs pairs;
    int status = ctl_decode_pairs(body, bytes, &pairs, err);
    if (status != 0)
        return status;
    for (size_t i = 0; i < pairs.count; i++)
        show_unit(&pairs.pair[i]);
    status = print_all(&pairs);
    if (status != 0)
        base_err(err, status, "printing failed: %s", strerror(-status));
    ctl_pairs_fini(&pairs);
    return status;
}

/* Of a node that is named through the metaserver, else of this host's own. */
static int fetch_status(const struct ctl_options *o, struct http_result *out,
                        struct base_errbuf *err)
{
    char node[CTL_NODE_PATH_BYTES], path[sizeof node + sizeof "/status"];
    if (o->node == NULL)
        return ctl_fetch_agent(o, "/v1/status", out, err);
    const int status = ctl_node_path(o->node, node, err);
    if (status != 0)
        return status;
    snprintf(path, sizeof path, "%s/status", node);
    return ctl_fetch_server(o, path, out, err);
}

int ctl_agent_status(const struct ctl_options *o, struct base_errbuf *err)
{
    struct http_result result;
    int status = fetch_status(o, &result, err);
    if (status != 0)
        return status;
    status = o->json ? ctl_json_print(result.body, err)
                     : ctl_agent_status_print(result.body, result.body_length, err);
    http_result_fini(&result);
    return status;
}
