/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/store_watch.h"

#include <stdlib.h>

int meta_store_watch_next(struct meta_store_watch *watch, uint64_t timeout_ns,
                          struct meta_store_heard **out, struct base_errbuf *err)
{
    return watch->ops->next(watch, timeout_ns, out, err);
}

void meta_store_watch_ask(struct meta_store_watch *watch)
{
    watch->ops->ask(watch);
}

void meta_store_watch_stop(struct meta_store_watch *watch)
{
    watch->ops->stop(watch);
}

void meta_store_watch_close(struct meta_store_watch *watch)
{
    if (watch != NULL)
        watch->ops->close(watch);
}

static void free_change(struct meta_store_change *c)
{
    const char *const texts[] = {c->who, c->kind, c->name, c->before, c->after, c->resource};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free((void *)(uintptr_t)texts[i]);
}

void meta_store_heard_free(struct meta_store_heard *heard)
{
    if (heard == NULL)
        return;
    meta_store_close(heard->snapshot);
    free(heard->members);
    free(heard->nodes);
    free(heard->removed);
    free(heard->withdrawn);
    free(heard->published);
    if (heard->has_change)
        free_change(&heard->change);
    free(heard);
}
