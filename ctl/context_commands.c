/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl context list|get|use|set|delete: these ask nobody. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "ctl/commands.h"
#include "ctl/json.h"
#include "ctl/rows.h"

enum { OUTPUT_BYTES = 1 << 20, KEY_BYTES = 64 };

static int no_such(const char *name, const struct ctl_contexts *contexts, struct base_errbuf *err)
{
    return base_err(err, -ENOENT,
                    "there is no context \"%.60s\" in %.200s: see rdmactl context list", name,
                    contexts->path);
}

/* ---- list and get */

static void fields_json(struct base_text *t, const struct ctl_context *c)
{
    base_json_string(t, "name", c->name);
    for (size_t i = 0; i < CTL_CONTEXT_KEYS; i++) {
        if (ctl_context_value(c, i)[0] == '\0')
            continue;
        base_json_string(t, ctl_context_keys[i], ctl_context_value(c, i));
    }
}

static void add_row(const struct ctl_context *c, bool chosen, struct ctl_rows *rows)
{
    struct base_text json;
    const char *cells[2 + CTL_CONTEXT_KEYS] = {chosen ? "*" : "", c->name};
    for (size_t k = 0; k < CTL_CONTEXT_KEYS; k++) {
        const char *value = ctl_context_value(c, k);
        cells[2 + k] = value[0] != '\0' ? value : "-";
    }
    base_text_init(&json, OUTPUT_BYTES);
    base_json_object(&json, NULL);
    fields_json(&json, c);
    base_json_object_end(&json);
    ctl_rows_add(rows, c->name, base_text_str(&json), cells);
    base_text_fini(&json);
}

static int fill_rows(const struct ctl_options *o, struct ctl_rows *rows, struct base_errbuf *err)
{
    static const char *const headings[] = {"",           "NAME",         "SERVER",
                                           "TOKEN FILE", "AGENT SOCKET", "OUTPUT"};
    static struct ctl_contexts contexts;
    const int status = ctl_contexts_read(&contexts, err);
    if (status != 0)
        return status;
    const char *chosen = ctl_context_chosen(o, &contexts);
    ctl_rows_head(rows, headings, o->wide ? 6 : 3);
    base_json_string(&rows->more, "file", contexts.path);
    base_json_string(&rows->more, "chosen", chosen);
    for (size_t i = 0; i < contexts.count; i++)
        add_row(&contexts.item[i], chosen != NULL && strcmp(chosen, contexts.item[i].name) == 0,
                rows);
    return 0;
}

static void say_none(const struct ctl_options *o)
{
    (void)o;
    puts("there is no context yet: rdmactl context set NAME server=URL makes one");
}

int ctl_context_list(const struct ctl_options *o, struct base_errbuf *err)
{
    static const struct ctl_list list = {
        .kind = "context", .plural = "contexts", .fill = fill_rows, .say_none = say_none};
    return ctl_list_run(o, &list, NULL, err);
}

static int show_context(const struct ctl_options *o, const struct ctl_context *c,
                        struct base_errbuf *err)
{
    struct base_text t;
    if (o->json) {
        base_text_init(&t, OUTPUT_BYTES);
        ctl_json_begin(&t);
        fields_json(&t, c);
        base_json_object_end(&t);
        return ctl_json_finish(&t, err);
    }
    printf("%-14s %s\n", "name", c->name);
    for (size_t i = 0; i < CTL_CONTEXT_KEYS; i++)
        printf("%-14s %s\n", ctl_context_keys[i],
               ctl_context_value(c, i)[0] != '\0' ? ctl_context_value(c, i) : "-");
    return 0;
}

int ctl_context_get(const struct ctl_options *o, struct base_errbuf *err)
{
    static struct ctl_contexts contexts;
    int status = ctl_contexts_read(&contexts, err);
    if (status != 0)
        return status;
    const struct ctl_context *c = ctl_contexts_find(&contexts, o->id);
    return c != NULL ? show_context(o, c, err) : no_such(o->id, &contexts, err);
}

/* ---- changing */

struct editing {
    const struct ctl_options *o;
    struct ctl_context result; /* of set */
    bool was_current;          /* of delete */
};

/* Relative paths are those of the directory in which they are said. */
static int set_word(struct ctl_context *c, const char *word, struct base_errbuf *err)
{
    char key[KEY_BYTES], value[2 * CTL_CONTEXTS_PATH_BYTES], here[CTL_CONTEXTS_PATH_BYTES];
    const size_t length = strcspn(word, "=");
    if (length >= sizeof key || word[length] != '=')
        return base_err(err, -EINVAL, "\"%.60s\" sets nothing: say KEY=VALUE", word);
    const char *text = word + length + 1;
    snprintf(key, sizeof key, "%.*s", (int)length, word);
    static const char *const paths[] = {"token_file", "cacert", "cert", "key", "agent_socket"};
    bool path = false;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        path |= strcmp(key, paths[i]) == 0;
    if (!path || text[0] == '\0' || text[0] == '/')
        return ctl_context_set(c, key, text, err);
    if (getcwd(here, sizeof here) == NULL)
        return base_err(err, -errno, "the working directory is not known: say an absolute path");
    snprintf(value, sizeof value, "%s/%.1000s", here, text);
    return ctl_context_set(c, key, value, err);
}

static int edit_set(void *user, struct ctl_contexts *contexts, struct base_errbuf *err)
{
    struct editing *e = user;
    struct ctl_context *c = ctl_contexts_find(contexts, e->o->id);
    int status = ctl_context_name_check(e->o->id, err);
    if (status != 0)
        return status;
    if (c == NULL && contexts->count == CTL_CONTEXTS_MAX)
        return base_err(err, -ENOSPC, "there are %d contexts, which is the most: delete one",
                        CTL_CONTEXTS_MAX);
    if (c == NULL) {
        c = &contexts->item[contexts->count++];
        *c = (struct ctl_context){.name = ""};
        snprintf(c->name, sizeof c->name, "%s", e->o->id);
    }
    size_t says = 0;
    for (size_t i = 0; i < e->o->word_count && status == 0; i++)
        status = set_word(c, e->o->words[i], err);
    if (status != 0)
        return status;
    for (size_t i = 0; i < CTL_CONTEXT_KEYS; i++)
        says += ctl_context_value(c, i)[0] != '\0';
    if (says == 0)
        return base_err(err, -EINVAL,
                        "the context %s would say nothing: rdmactl context delete takes it away",
                        c->name);
    e->result = *c;
    return 0;
}

int ctl_context_change(const struct ctl_options *o, struct base_errbuf *err)
{
    struct editing e = {.o = o};
    int status = ctl_contexts_change(edit_set, &e, err);
    if (status != 0)
        return status;
    if (!o->json)
        printf("context %s is set:\n", o->id);
    return show_context(o, &e.result, err);
}

static int edit_use(void *user, struct ctl_contexts *contexts, struct base_errbuf *err)
{
    const struct ctl_options *o = ((struct editing *)user)->o;
    const bool none = strcmp(o->id, CTL_NO_CONTEXT) == 0;
    if (!none && ctl_contexts_find(contexts, o->id) == NULL)
        return no_such(o->id, contexts, err);
    snprintf(contexts->current, sizeof contexts->current, "%s", none ? "" : o->id);
    return 0;
}

int ctl_context_use(const struct ctl_options *o, struct base_errbuf *err)
{
    struct editing e = {.o = o};
    const char *now = getenv("KEDGE_CONTEXT");
    int status = ctl_contexts_change(edit_use, &e, err);
    if (status != 0)
        return status;
    if (o->json) {
        struct base_text t;
        base_text_init(&t, OUTPUT_BYTES);
        ctl_json_begin(&t);
        base_json_string(&t, "current", strcmp(o->id, CTL_NO_CONTEXT) == 0 ? NULL : o->id);
        base_json_object_end(&t);
        return ctl_json_finish(&t, err);
    }
    if (strcmp(o->id, CTL_NO_CONTEXT) == 0)
        puts("rdmactl uses no context");
    else
        printf("rdmactl uses the context %s\n", o->id);
    if (now != NULL && now[0] != '\0')
        printf("but not here, as long as KEDGE_CONTEXT is \"%s\"\n", now);
    return 0;
}

static int edit_delete(void *user, struct ctl_contexts *contexts, struct base_errbuf *err)
{
    struct editing *e = user;
    struct ctl_context *c = ctl_contexts_find(contexts, e->o->id);
    if (c == NULL)
        return no_such(e->o->id, contexts, err);
    memmove(c, c + 1, (size_t)(&contexts->item[contexts->count] - (c + 1)) * sizeof *c);
    contexts->count--;
    e->was_current = strcmp(contexts->current, e->o->id) == 0;
    if (e->was_current)
        contexts->current[0] = '\0';
    return 0;
}

int ctl_context_delete(const struct ctl_options *o, struct base_errbuf *err)
{
    struct editing e = {.o = o};
    int status = ctl_contexts_change(edit_delete, &e, err);
    if (status != 0)
        return status;
    if (o->json)
        return ctl_json_deleted("context", o->id, err);
    printf("context %s is deleted%s\n", o->id,
           e.was_current ? ", and was the one that rdmactl used: it uses none now" : "");
    return 0;
}
