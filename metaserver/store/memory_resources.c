/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "memory_private.h"

/* A store for tests: it need not outlive a lack of memory. */
static char *copy_text(const char *text)
{
    char *own = text == NULL ? NULL : strdup(text);
    KEDGE_ASSERT(text == NULL || own != NULL);
    return own;
}

static struct kedge_store_change copy_change(const struct kedge_store_change *c)
{
    struct kedge_store_change own = *c;
    own.who = copy_text(c->who);
    own.kind = copy_text(c->kind);
    own.name = copy_text(c->name);
    own.before = copy_text(c->before);
    own.after = copy_text(c->after);
    own.setting = copy_text(c->setting);
    return own;
}

static void free_change(struct kedge_store_change *c)
{
    const char *const texts[] = {c->who, c->kind, c->name, c->before, c->after, c->setting};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free((void *)(uintptr_t)texts[i]);
}

/* An array with room for one more. */
static struct kedge_store_change *grow_array(struct kedge_store_change *array, uint32_t count)
{
    array = realloc(array, (count + 1) * sizeof *array);
    KEDGE_ASSERT(array != NULL);
    return array;
}

static void set_or_drop(struct memory *s, const struct kedge_store_change *c)
{
    uint32_t at = 0;
    int order = 1;
    for (; at < s->setting_count; at++) {
        order = strcmp(s->settings[at].kind, c->kind);
        order = order != 0 ? order : strcmp(s->settings[at].name, c->name);
        if (order >= 0)
            break;
    }
    bool found = at < s->setting_count && order == 0;
    if (found)
        free_change(&s->settings[at]);
    if (found && c->after == NULL) {
        s->setting_count--;
        memmove(&s->settings[at], &s->settings[at + 1],
                (s->setting_count - at) * sizeof s->settings[0]);
    }
    if (c->after == NULL)
        return;
    if (!found) {
        s->settings = grow_array(s->settings, s->setting_count);
        memmove(&s->settings[at + 1], &s->settings[at],
                (s->setting_count - at) * sizeof s->settings[0]);
        s->setting_count++;
    }
    s->settings[at] = copy_change(c);
}

int memory_change(struct kedge_store *store, const struct kedge_store_change *change,
                  struct kedge_errbuf *err)
{
    struct memory *s = (struct memory *)store;
    uint32_t gone = 0;
    int status = memory_failing(s, err);
    if (status != 0)
        return status;
    set_or_drop(s, change);
    s->trail = grow_array(s->trail, s->trail_count);
    s->trail[s->trail_count++] = copy_change(change);
    while (s->trail[gone].revision <= change->forget)
        free_change(&s->trail[gone++]);
    s->trail_count -= gone;
    memmove(s->trail, &s->trail[gone], s->trail_count * sizeof s->trail[0]);
    return 0;
}

void memory_keep(struct memory *s, const struct kedge_store_item *item)
{
    const struct kedge_store_setting *own = &item->setting;
    if (item->kind == KEDGE_STORE_CHANGE) {
        s->trail = grow_array(s->trail, s->trail_count);
        s->trail[s->trail_count++] = copy_change(&item->change);
        return;
    }
    const struct kedge_store_change c = {
        .revision = own->revision, .kind = own->kind, .name = own->name, .after = own->body};
    set_or_drop(s, &c);
}

int memory_load_settings(struct kedge_store *store, const struct kedge_store_visitor *visitor,
                         struct kedge_errbuf *err)
{
    const struct memory *s = (const struct memory *)store;
    int status = 0;
    (void)err;
    for (uint32_t i = 0; i < s->setting_count && status == 0; i++) {
        const struct kedge_store_change *c = &s->settings[i];
        struct kedge_store_setting setting = {c->kind, c->name, c->revision,
                                              c->setting != NULL ? c->setting : c->after};
        status = visitor->setting(visitor->user, &setting);
    }
    for (uint32_t i = 0; i < s->trail_count && status == 0; i++) {
        struct kedge_store_change change = s->trail[i];
        change.forget = 0;
        change.setting = NULL;
        status = visitor->change(visitor->user, &change);
    }
    return status;
}

void memory_free_settings(struct memory *s)
{
    for (uint32_t i = 0; i < s->setting_count; i++)
        free_change(&s->settings[i]);
    for (uint32_t i = 0; i < s->trail_count; i++)
        free_change(&s->trail[i]);
    free(s->settings);
    free(s->trail);
}
