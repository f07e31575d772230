/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "ctl/top.h"
#include "decode_private.h"

/* False: it is no number that fits. */
static bool read_number(json_t *object, const char *name, uint64_t *out)
{
    json_t *value = json_object_get(object, name);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static int worker_from(json_t *object, struct ctl_top_worker *out, struct base_errbuf *err)
{
    struct ctl_top_worker w = {.counts = true};
    const char *id = json_string_value(json_object_get(object, "id"));
    const char *tenant = json_string_value(json_object_get(object, "tenant"));
    if (id == NULL || tenant == NULL)
        return base_err(err, -EBADMSG, "the answer holds a worker without id or tenant");
    (void)base_copy_printable(w.id, sizeof w.id, id);
    (void)base_copy_printable(w.tenant, sizeof w.tenant, tenant);
    (void)base_copy_printable(w.node, sizeof w.node,
                              json_string_value(json_object_get(object, "node")));
    w.counts = read_number(object, "operations", &w.operations) &&
               read_number(object, "operation_bytes", &w.bytes);
    (void)read_number(object, "arena_bytes", &w.arena_bytes);
    (void)read_number(object, "leases", &w.leases);
    *out = w;
    return 0;
}

int ctl_top_add(struct ctl_top_look *look, const char *json, struct base_errbuf *err)
{
    json_t *object;
    if (look->count == look->room) {
        const size_t room = look->room > 0 ? 2 * look->room : 64;
        struct ctl_top_worker *grown = realloc(look->worker, room * sizeof *grown);
        if (grown == NULL)
            return base_err(err, -ENOMEM, "out of memory");
        look->worker = grown;
        look->room = room;
    }
    int status = ctl_json_load(json, strlen(json), &object, err);
    if (status != 0)
        return status;
    status = worker_from(object, &look->worker[look->count], err);
    look->count += status == 0;
    json_decref(object);
    return status;
}

void ctl_top_look_fini(struct ctl_top_look *look)
{
    free(look->worker);
    *look = (struct ctl_top_look){.worker = NULL};
}

/* ---- sums */

static int compare_ids(const void *a, const void *b)
{
    return strcmp(((const struct ctl_top_worker *)a)->id, ((const struct ctl_top_worker *)b)->id);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct ctl_top_sum *)a)->name, ((const struct ctl_top_sum *)b)->name);
}

/* Counters never go back but for a worker that is another one. */
static uint64_t count_since(uint64_t before, uint64_t now)
{
    return now >= before ? now - before : now;
}

static void add_worker(struct ctl_top_sum *sum, const struct ctl_top_worker *before,
                       const struct ctl_top_worker *now)
{
    const bool known = before != NULL && before->counts;
    sum->sessions = 1;
    sum->uncounted = !now->counts;
    sum->operations =
        now->counts ? count_since(known ? before->operations : 0, now->operations) : 0;
    sum->bytes = now->counts ? count_since(known ? before->bytes : 0, now->bytes) : 0;
    sum->arena_bytes = now->arena_bytes;
    sum->leases = now->leases;
}

static void add_sum(struct ctl_top_sum *to, const struct ctl_top_sum *more)
{
    to->sessions += more->sessions;
    to->uncounted += more->uncounted;
    to->operations += more->operations;
    to->bytes += more->bytes;
    to->arena_bytes += more->arena_bytes;
    to->leases += more->leases;
}

struct ctl_top_sum *ctl_top_sums(const struct ctl_top_look *first,
                                 const struct ctl_top_look *second, bool by_node, size_t *count)
{
    struct ctl_top_sum *sums = calloc(second->count + 1, sizeof *sums);
    size_t kept = 0;
    *count = 0;
    if (sums == NULL)
        return NULL;
    if (first->count > 0)
        qsort(first->worker, first->count, sizeof first->worker[0], compare_ids);
    for (size_t i = 0; i < second->count; i++) {
        const struct ctl_top_worker *now = &second->worker[i];
        const struct ctl_top_worker *before =
            first->count == 0
                ? NULL
                : bsearch(now, first->worker, first->count, sizeof first->worker[0], compare_ids);
        add_worker(&sums[i], before, now);
        snprintf(sums[i].name, sizeof sums[i].name, "%s", by_node ? now->node : now->tenant);
    }
    qsort(sums, second->count, sizeof *sums, compare_names);
    for (size_t i = 0; i < second->count; i++)
        if (kept > 0 && strcmp(sums[kept - 1].name, sums[i].name) == 0)
            add_sum(&sums[kept - 1], &sums[i]);
        else
            sums[kept++] = sums[i];
    *count = kept;
    return sums;
}
