/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "metaserver/store.h"

struct items {
    struct meta_store_item *item; /* with strings of their own */
    size_t count, room, next;
};

static struct meta_store_item *add_item(struct items *items)
{
    if (items->count == items->room) {
        const size_t room = items->room == 0 ? 256 : 2 * items->room;
        struct meta_store_item *more = realloc(items->item, room * sizeof *more);
        if (more == NULL)
            return NULL;
        items->item = more;
        items->room = room;
    }
    struct meta_store_item *item = &items->item[items->count++];
    memset(item, 0, sizeof *item);
    return item;
}

/* False: no memory. NULL stays NULL. */
static bool copy_text(const char *text, const char **out)
{
    *out = text == NULL ? NULL : strdup(text);
    return text == NULL || *out != NULL;
}

static int add_node(void *user, const struct meta_store_node *node)
{
    struct meta_store_item *item = add_item(user);
    if (item == NULL)
        return -ENOMEM;
    item->kind = META_STORE_NODE;
    item->node = *node;
    return 0;
}

static int add_resource(void *user, const struct meta_store_resource *r)
{
    struct meta_store_item *item = add_item(user);
    if (item == NULL)
        return -ENOMEM;
    item->kind = META_STORE_RESOURCE;
    item->resource.revision = r->revision;
    return copy_text(r->kind, &item->resource.kind) && copy_text(r->name, &item->resource.name) &&
                   copy_text(r->body, &item->resource.body)
               ? 0
               : -ENOMEM;
}

static int add_change(void *user, const struct meta_store_change *c)
{
    struct meta_store_item *item = add_item(user);
    if (item == NULL)
        return -ENOMEM;
    item->kind = META_STORE_CHANGE;
    item->change.revision = c->revision;
    item->change.time_ms = c->time_ms;
    return copy_text(c->who, &item->change.who) && copy_text(c->kind, &item->change.kind) &&
                   copy_text(c->name, &item->change.name) &&
                   copy_text(c->before, &item->change.before) &&
                   copy_text(c->after, &item->change.after)
               ? 0
               : -ENOMEM;
}

static int add_name(void *user, const struct meta_store_name *name)
{
    struct meta_store_item *item = add_item(user);
    if (item == NULL)
        return -ENOMEM;
    item->kind = META_STORE_NAME;
    item->name = *name;
    return 0;
}

static int give_next(void *user, struct meta_store_item *item, struct base_errbuf *err)
{
    struct items *items = user;
    (void)err;
    if (items->next == items->count)
        return 0;
    *item = items->item[items->next++];
    return 1;
}

static void free_items(struct items *items)
{
    for (size_t i = 0; i < items->count; i++) {
        const struct meta_store_item *x = &items->item[i];
        const char *const texts[] = {x->resource.kind, x->resource.name, x->resource.body,
                                     x->change.who,    x->change.kind,   x->change.name,
                                     x->change.before, x->change.after};
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
            free((void *)(uintptr_t)texts[k]);
    }
    free(items->item);
}

int meta_store_copy(struct meta_store *from, struct meta_store *to, struct base_errbuf *err)
{
    struct items items = {.count = 0};
    const struct meta_store_visitor visitor = {add_resource, add_change, &items, add_name};
    err->text[0] = '\0';
    int status = meta_store_load(from, add_node, &items, err);
    if (status == 0)
        status = meta_store_load_resources(from, &visitor, err);
    if (status == 0)
        status = meta_store_replace(to, give_next, &items, err);
    free_items(&items);
    return status != 0 && err->text[0] == '\0' ? base_err(err, status, "%s", strerror(-status))
                                               : status;
}
