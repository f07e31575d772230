/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl explain KIND and KIND.FIELD: what the tables of resources say of what can be set, and the
 * REST interface's document of what is only shown. Asks nobody. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "ctl/command_table.h"
#include "ctl/commands.h"
#include "ctl/json.h"
#include "ctl/shown.h"
#include "schema/resources.h"

enum { OUTPUT_BYTES = 1 << 20, KINDS_TEXT = 100, TEXT_BYTES = 160 };

static const char *type_text(const struct resource_field *f)
{
    static const char *const texts[] = {
        [FIELD_BOUND] = "integer",
        [FIELD_SIZE] = "size, with a unit or in bytes",
        [FIELD_UIDS] = "uids and ranges of them, with commas",
        [FIELD_SELECTOR] = "labels of nodes, with commas, or all",
        [FIELD_CHOICE] = "word",
        [FIELD_REFERENCE] = "name",
        [FIELD_GID] = "GID",
        [FIELD_TEXT] = "text",
        [FIELD_REFERENCES] = "names, with commas",
        [FIELD_GIDS] = "GIDs, with commas",
        [FIELD_TIME] = "time, or a duration from now on",
        [FIELD_COUNT] = "integer",
        [FIELD_POWER] = "integer, a power of two",
        [FIELD_PERIOD] = "duration, with a unit or in milliseconds",
        [FIELD_LABELS] = "labels, with commas",
        [FIELD_BOOL] = "true or false",
    };
    return texts[f->type];
}

static const char *range_text(const struct resource_field *f, char out[TEXT_BYTES])
{
    char words[RESOURCE_MUST_BYTES];
    out[0] = '\0';
    if (f->type == FIELD_CHOICE)
        snprintf(out, TEXT_BYTES, "%s", resource_words_text(f->words, "", words));
    else if (f->type == FIELD_REFERENCE || f->type == FIELD_REFERENCES)
        snprintf(out, TEXT_BYTES, "of a %s, up to %" PRIu32 " characters%s",
                 resource_table(f->of)->name, resource_table(f->of)->name_max,
                 f->type == FIELD_REFERENCES ? " each" : "");
    else if (f->type == FIELD_TEXT)
        snprintf(out, TEXT_BYTES, "up to %d characters", RESOURCE_TEXT_MAX);
    else if (f->type == FIELD_BOUND || f->type == FIELD_SIZE)
        snprintf(out, TEXT_BYTES, "0, or %" PRIu64 " to %" PRIu64, f->min, f->max);
    else if (f->is_number)
        snprintf(out, TEXT_BYTES, "%" PRIu64 " to %" PRIu64, f->min, f->max);
    return out;
}

/* The help of an integer that may be left out ends with it, as in "(never)". */
static const char *default_text(const struct resource_table *t, const struct resource_field *f,
                                char out[TEXT_BYTES])
{
    const char *open = strrchr(f->help, '('), *text = "none";
    const size_t length = strlen(f->help);
    if (resource_field_is_required(f))
        text = "none: it has to be said";
    else if (f->type == FIELD_BOUND || f->type == FIELD_SIZE)
        text = "0, which is no bound";
    else if (f->type == FIELD_BOOL)
        text = "false";
    else if (f->is_number && t == resource_table(RESOURCE_POOL))
        text = "as each agent's own file says";
    snprintf(out, TEXT_BYTES, "%s", text);
    if (f->is_number && open != NULL && f->help[length - 1] == ')')
        snprintf(out, TEXT_BYTES, "%.*s", (int)(f->help + length - 1 - (open + 1)), open + 1);
    return out;
}

/* ---- shown */

static void field_json(struct base_text *t, const struct resource_table *table,
                       const struct resource_field *f)
{
    char text[TEXT_BYTES];
    base_json_object(t, NULL);
    base_json_string(t, "field", f->name);
    base_json_string(t, "type", type_text(f));
    base_json_string(t, "range", range_text(f, text));
    base_json_string(t, "default", default_text(table, f, text));
    base_json_bool(t, "required", resource_field_is_required(f));
    base_json_bool(t, "read_only", false);
    base_json_string(t, "help", f->help);
    base_json_object_end(t);
}

static void print_field(const struct resource_table *t, const struct resource_field *f)
{
    char text[TEXT_BYTES];
    const bool words = t->suffix[0] == '\0'; /* nodes are set by verbs */
    printf("%-8s %s.%s\n%-8s %s\n", "field", t->name, f->name, "type", type_text(f));
    if (range_text(f, text)[0] != '\0')
        printf("%-8s %s\n", "range", text);
    printf("%-8s %s\n", "default", default_text(t, f, text));
    if (words)
        printf("%-8s rdmactl %s set NAME %s=VALUE\n", "set by", t->name, f->name);
    else
        printf("%-8s rdmactl node label, cordon or drain, or apply\n", "set by");
    for (size_t i = 0; i < ctl_field_option_count; i++)
        if (strcmp(ctl_field_option_rows[i].kind, t->name) == 0 &&
            strcmp(ctl_field_option_rows[i].field, f->name) == 0)
            printf("%-8s --%s\n", "option", ctl_field_option_rows[i].option);
    printf("\n%s\n", f->help);
}

static void print_about(const char *kind)
{
    for (size_t i = 0; i < ctl_word_count; i++)
        if (strcmp(ctl_word_rows[i].word, kind) == 0)
            printf("%s\n\n", ctl_word_rows[i].about);
}

/* Those that are set, and behind them those that are only shown. t NULL: nothing is set of it. */
static void print_kind(const struct resource_table *t, const struct ctl_shown *shown)
{
    const char *kind = shown->self.name;
    bool any = false;
    print_about(kind);
    for (size_t i = 0; t != NULL && i < t->fields; i++) {
        const struct resource_field *f = &t->field[i];
        printf("%-18s %s\n%-18s   %s\n", f->name, type_text(f), "", f->help);
    }
    for (size_t i = 0; i < shown->members; i++) {
        const struct ctl_shown_member *m = &shown->member[i];
        if (t != NULL && resource_field_find(t, m->name) != NULL)
            continue;
        if (!any && t != NULL)
            puts("\nonly shown:\n");
        any = true;
        printf("%-18s %s\n", m->name, m->type);
        if (m->help[0] != '\0')
            printf("%-18s   %s\n", "", m->help);
    }
    printf("\nrdmactl explain %s.FIELD has %s.\n", kind,
           t != NULL ? "a field's range and default" : "a field's range and members");
}

/* ---- what is only shown */

static void print_shown(const char *path, const struct ctl_shown *shown)
{
    const struct ctl_shown_member *m = &shown->self;
    printf("%-8s %s\n%-8s %s\n", "field", path, "type", m->type);
    if (m->range[0] != '\0')
        printf("%-8s %s\n", "range", m->range);
    printf("%-8s nobody: it is only shown\n", "set by");
    if (m->help[0] != '\0')
        printf("\n%s\n", m->help);
    if (shown->members > 0)
        puts("");
    for (size_t i = 0; i < shown->members; i++) {
        printf("%-18s %s\n", shown->member[i].name, shown->member[i].type);
        if (shown->member[i].help[0] != '\0')
            printf("%-18s   %s\n", "", shown->member[i].help);
    }
}

static void shown_json(struct base_text *t, const char *name, const struct ctl_shown_member *m)
{
    base_json_object(t, NULL);
    base_json_string(t, "field", name);
    base_json_string(t, "type", m->type);
    base_json_string(t, "range", m->range);
    base_json_bool(t, "read_only", true);
    base_json_string(t, "help", m->help);
    base_json_object_end(t);
}

/* Of one field, which may be of others (path), or of all of a kind. */
static int print_json(const char *kind, const struct resource_table *t,
                      const struct resource_field *only, const struct ctl_shown *shown,
                      const char *path, struct base_errbuf *err)
{
    struct base_text out;
    base_text_init(&out, OUTPUT_BYTES);
    ctl_json_begin(&out);
    base_json_string(&out, "kind", kind);
    base_json_array(&out, "fields");
    for (size_t i = 0; t != NULL && i < t->fields; i++)
        if (only == NULL ? path[0] == '\0' : only == &t->field[i])
            field_json(&out, t, &t->field[i]);
    if (only == NULL && path[0] != '\0')
        shown_json(&out, path, &shown->self);
    for (size_t i = 0; only == NULL && i < shown->members; i++) {
        char name[2 * CTL_SHOWN_NAME];
        if (path[0] == '\0' && t != NULL && resource_field_find(t, shown->member[i].name) != NULL)
            continue;
        snprintf(name, sizeof name, "%.63s%s%s", path, path[0] != '\0' ? "." : "",
                 shown->member[i].name);
        shown_json(&out, name, &shown->member[i]);
    }
    base_json_array_end(&out);
    base_json_object_end(&out);
    return ctl_json_finish(&out, err);
}

/* ---- what there is not */

static int no_such_kind(const char *text, struct base_errbuf *err)
{
    char kinds[KINDS_TEXT] = "";
    size_t used = 0;
    for (size_t i = 0; ctl_shown_kind(i) != NULL && used < sizeof kinds; i++)
        used += (size_t)snprintf(kinds + used, sizeof kinds - used, "%s%s",
                                 i == 0                          ? ""
                                 : ctl_shown_kind(i + 1) == NULL ? " and "
                                                                 : ", ",
                                 ctl_shown_kind(i));
    return base_err(err, -EINVAL,
                    "there is nothing to explain of \"%.60s\": there are %s, as in pool or "
                    "pool.dcis",
                    text, kinds);
}

static int no_such_field(const char *kind, const char *path, const struct resource_table *t,
                         struct base_errbuf *err)
{
    char keys[400] = "";
    size_t used = 0;
    for (size_t i = 0; t != NULL && i < t->fields && used < sizeof keys; i++)
        used += (size_t)snprintf(keys + used, sizeof keys - used, "%s%s", i > 0 ? ", " : "",
                                 t->field[i].name);
    if (t == NULL)
        return base_err(err, -EINVAL, "a %s has no field \"%.60s\": see rdmactl explain %s", kind,
                        path, kind);
    return base_err(err, -EINVAL,
                    "a %s has no field \"%.60s\", but to be set %s; what else is shown of it has "
                    "rdmactl explain %s",
                    kind, path, keys, kind);
}

int ctl_explain(const struct ctl_options *o, struct base_errbuf *err)
{
    static struct ctl_shown shown;
    char kind[CTL_KIND_BYTES];
    const size_t length = strcspn(o->id, ".");
    const char *path = o->id[length] == '.' ? o->id + length + 1 : "";
    snprintf(kind, sizeof kind, "%.*s", (int)length, o->id);
    const struct resource_table *t = resource_table_find(kind);
    const struct resource_field *f = t != NULL ? resource_field_find(t, path) : NULL;
    int status = length < sizeof kind ? ctl_shown_find(kind, "", &shown, err) : -ENOENT;
    if (status == -ENOENT)
        return no_such_kind(o->id, err);
    if (status == 0 && f == NULL && o->id[length] == '.')
        status = path[0] != '\0' ? ctl_shown_find(kind, path, &shown, err) : -ENOENT;
    if (status == -ENOENT)
        return no_such_field(kind, path, t, err);
    if (status != 0)
        return status;
    if (o->json)
        return print_json(kind, t, f, &shown, path, err);
    if (f != NULL)
        print_field(t, f);
    else if (path[0] != '\0')
        print_shown(o->id, &shown);
    else
        print_kind(t, &shown);
    return 0;
}
