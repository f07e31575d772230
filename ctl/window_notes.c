/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/window_notes.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ctl/format.h"

enum { LINES_MAX = 8 }; /* what is set on a large cluster may be wider than much else */

/* ---- read */

static uint64_t number_of(const struct resource_table *kind, const struct ctl_resource *resource,
                          const char *name)
{
    uint64_t number;
    return base_parse_bytes(ctl_resource_value(kind, resource, name), &number) == 0 ? number : 0;
}

bool ctl_window_of(const struct resource_table *kind, const struct ctl_resource *resource,
                   struct ctl_window *out)
{
    struct ctl_window w = {.kind = kind->name};
    snprintf(w.name, sizeof w.name, "%s", resource->name);
    if (strcmp(kind->name, "tenant") == 0) {
        snprintf(w.scope, sizeof w.scope, "tenant");
        snprintf(w.tenant, sizeof w.tenant, "%s", resource->name);
        w.bytes = number_of(kind, resource, "window_bytes");
        w.ops = number_of(kind, resource, "window_ops");
        if (w.bytes == 0 && w.ops == 0)
            return false;
    } else if (strcmp(kind->name, "window") == 0) {
        snprintf(w.scope, sizeof w.scope, "%.63s", ctl_resource_value(kind, resource, "scope"));
        snprintf(w.tenant, sizeof w.tenant, "%.63s", ctl_resource_value(kind, resource, "tenant"));
        snprintf(w.node, sizeof w.node, "%.63s", ctl_resource_value(kind, resource, "node"));
        snprintf(w.gid, sizeof w.gid, "%.63s", ctl_resource_value(kind, resource, "gid"));
        snprintf(w.pool, sizeof w.pool, "%.63s", ctl_resource_value(kind, resource, "pool"));
        w.bytes = number_of(kind, resource, "bytes");
        w.ops = number_of(kind, resource, "ops");
    } else {
        return false;
    }
    *out = w;
    return true;
}

/* ---- compared */

static bool has_scope(const struct ctl_window *w, const char *scope)
{
    return strcmp(w->scope, scope) == 0;
}

/* Whether all that is in flight in the one is in flight in the other too. */
static bool is_within(const struct ctl_window *in, const struct ctl_window *out)
{
    if (has_scope(out, "device"))
        return true;
    if (has_scope(out, "tenant"))
        return has_scope(in, "tenant") && strcmp(in->tenant, out->tenant) == 0;
    if (!has_scope(out, "destination") || !has_scope(in, "destination"))
        return false;
    if (out->pool[0] != '\0' && strcmp(in->pool, out->pool) != 0)
        return false;
    return (out->node[0] == '\0' && out->gid[0] == '\0') ||
           (strcmp(in->node, out->node) == 0 && strcmp(in->gid, out->gid) == 0);
}

static uint64_t bound_of(const struct ctl_window *w, bool ops)
{
    return ops ? w->ops : w->bytes;
}

/* The narrowest of those that a window is within, if it is narrower; NULL: the window's own bound
 * is the one that holds. */
static const struct ctl_window *find_narrower(const struct ctl_window *windows, size_t count,
                                              const struct ctl_window *in, bool ops)
{
    const struct ctl_window *least = NULL;
    uint64_t bound = bound_of(in, ops);
    for (size_t i = 0; i < count; i++) {
        const uint64_t other = bound_of(&windows[i], ops);
        if (&windows[i] == in || other == 0 || other >= bound || !is_within(in, &windows[i]))
            continue;
        bound = other;
        least = &windows[i];
    }
    return least;
}

/* ---- said */

/* "bytes=1MiB", as it is set. */
static const char *bound_text(const struct ctl_window *w, bool ops, char out[64])
{
    char size[CTL_AMOUNT_BYTES];
    const char *key = strcmp(w->kind, "tenant") == 0 ? "window_" : "";
    if (ops)
        snprintf(out, 64, "%sops=%llu", key, (unsigned long long)w->ops);
    else
        snprintf(out, 64, "%sbytes=%s", key, ctl_format_size(w->bytes, size));
    return out;
}

static void note_line(struct base_text *out, size_t *lines, const char *text)
{
    if ((*lines)++ < LINES_MAX)
        base_text_printf(out, "%s\n", text);
}

static void note_bound(struct base_text *out, size_t *lines, const struct ctl_window *in,
                       const struct ctl_window *by, bool ops)
{
    char text[512], mine[64], its[64];
    snprintf(text, sizeof text,
             "note: %s %s: %s has no effect as long as %s %s (%s%s) has %s: the narrower one holds",
             in->kind, in->name, bound_text(in, ops, mine), by->kind, by->name,
             has_scope(by, "destination") && by->node[0] == '\0' && by->gid[0] == '\0' ? "each "
                                                                                       : "",
             by->scope, bound_text(by, ops, its));
    note_line(out, lines, text);
}

void ctl_window_notes(const struct ctl_window *windows, size_t count, struct base_text *out)
{
    size_t lines = 0;
    for (size_t i = 0; i < count; i++) {
        const struct ctl_window *w = &windows[i];
        char text[256];
        if (w->is_new && w->bytes == 0 && w->ops == 0) {
            snprintf(text, sizeof text,
                     "note: window %s bounds nothing: it has neither bytes nor "
                     "ops",
                     w->name);
            note_line(out, &lines, text);
        }
        for (int ops = 0; ops < 2; ops++) {
            const struct ctl_window *by = find_narrower(windows, count, w, ops != 0);
            if (by != NULL && (w->is_new || by->is_new))
                note_bound(out, &lines, w, by, ops != 0);
        }
    }
    if (lines > LINES_MAX)
        base_text_printf(out, "note: and %zu more of windows: see rdmactl window list -o wide\n",
                         lines - LINES_MAX);
}
