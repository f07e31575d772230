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
    BASE_ASSERT(text == NULL || own != NULL);
    return own;
}

static struct meta_store_change copy_change(const struct meta_store_change *c)
{
    struct meta_store_change own = *c;
    own.who = copy_text(c->who);
    own.kind = copy_text(c->kind);
    own.name = copy_text(c->name);
    own.before = copy_text(c->before);
    own.after = copy_text(c->after);
    own.resource = copy_text(c->resource);
    return own;
}

static void free_change(struct meta_store_change *c)
{
    const char *const texts[] = {c->who, c->kind, c->name, c->before, c->after, c->resource};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free((void *)(uintptr_t)texts[i]);
}

/* An array with room for one more. */
static struct meta_store_change *grow_array(struct meta_store_change *array, uint32_t count)
{
    array = realloc(array, (count + 1) * sizeof *array);
    BASE_ASSERT(array != NULL);
    return array;
}

static void set_or_drop(struct memory *s, const struct meta_store_change *c)
{
    uint32_t at = 0;
    int order = 1;
    for (; at < s->setting_count; at++) {
        order = strcmp(s->resources[at].kind, c->kind);
        order = order != 0 ? order : strcmp(s->resources[at].name, c->name);
        if (order >= 0)
            break;
    }
    bool found = at < s->setting_count && order == 0;
    if (found)
        free_change(&s->resources[at]);
    if (found && c->after == NULL) {
        s->setting_count--;
        memmove(&s->resources[at], &s->resources[at + 1],
                (s->setting_count - at) * sizeof s->resources[0]);
    }
    if (c->after == NULL)
        return;
    if (!found) {
        s->resources = grow_array(s->resources, s->setting_count);
        memmove(&s->resources[at + 1], &s->resources[at],
                (s->setting_count - at) * sizeof s->resources[0]);
        s->setting_count++;
    }
    s->resources[at] = copy_change(c);
}

uint64_t meta_memory_last(const struct memory *s)
{
    return s->trail_count == 0 ? 0 : s->trail[s->trail_count - 1].revision;
}

uint64_t meta_memory_change(struct memory *s, const struct meta_store_change *change)
{
    const uint64_t last = meta_memory_last(s);
    struct meta_store_change own = *change;
    uint32_t gone = 0;
    if (own.revision <= last)
        own.revision = last + 1;
    set_or_drop(s, &own);
    s->trail = grow_array(s->trail, s->trail_count);
    s->trail[s->trail_count++] = copy_change(&own);
    while (s->trail[gone].revision <= change->forget)
        free_change(&s->trail[gone++]);
    s->trail_count -= gone;
    memmove(s->trail, &s->trail[gone], s->trail_count * sizeof s->trail[0]);
    return own.revision;
}

void meta_memory_keep(struct memory *s, const struct meta_store_item *item)
{
    const struct meta_store_resource *own = &item->resource;
    if (item->kind == META_STORE_NAME) {
        meta_memory_put_name(s, &item->name);
        return;
    }
    if (item->kind == META_STORE_CHANGE) {
        s->trail = grow_array(s->trail, s->trail_count);
        s->trail[s->trail_count++] = copy_change(&item->change);
        return;
    }
    const struct meta_store_change c = {
        .revision = own->revision, .kind = own->kind, .name = own->name, .after = own->body};
    set_or_drop(s, &c);
}

int meta_memory_load_resources(struct meta_store *store, const struct meta_store_visitor *visitor,
                               struct base_errbuf *err)
{
    const struct memory *s = (const struct memory *)store;
    int status = 0;
    (void)err;
    for (uint32_t i = 0; i < s->setting_count && status == 0; i++) {
        const struct meta_store_change *c = &s->resources[i];
        struct meta_store_resource resource = {c->kind, c->name, c->revision,
                                               c->resource != NULL ? c->resource : c->after};
        status = visitor->resource(visitor->user, &resource);
    }
    if (status == 0)
        status = meta_memory_load_names(s, visitor);
    for (uint32_t i = 0; i < s->trail_count && status == 0; i++) {
        struct meta_store_change change = s->trail[i];
        change.forget = 0;
        change.resource = NULL;
        status = visitor->change(visitor->user, &change);
    }
    return status;
}

void meta_memory_free_resources(struct memory *s)
{
    for (uint32_t i = 0; i < s->setting_count; i++)
        free_change(&s->resources[i]);
    for (uint32_t i = 0; i < s->trail_count; i++)
        free_change(&s->trail[i]);
    free(s->resources);
    free(s->trail);
    free(s->names);
}
