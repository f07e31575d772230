/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two that were read from one store at different times are one history. */
#include <string.h>

#include "metaserver/resources_json.h"

enum { TEXT_BYTES = 64 << 10 }; /* more than an entry takes */

/* Their texts are compared: what is between the members of a struct is nobody's to set. */
struct pair {
    struct base_text a, b;
};

static bool is_same_text(struct pair *p)
{
    const bool same = p->a.error == 0 && p->b.error == 0 &&
                      strcmp(base_text_str(&p->a), base_text_str(&p->b)) == 0;
    base_text_reset(&p->a);
    base_text_reset(&p->b);
    return same;
}

static bool is_same_entry(struct pair *p, const struct meta_resource_change *a,
                          const struct meta_resource_change *b)
{
    if (a->revision != b->revision || a->time_ms != b->time_ms)
        return false;
    meta_json_write_change(&p->a, a);
    meta_json_write_change(&p->b, b);
    return is_same_text(p);
}

/* Of the part that both have: a restore leaves out revisions, which the other one may have. */
static bool has_same_trail(struct pair *p, const struct meta_resources *was,
                           const struct meta_resources *is)
{
    const struct meta_resource_change *a = meta_resources_change_after(was, 0);
    const struct meta_resource_change *b = meta_resources_change_after(is, 0);
    const uint64_t last = meta_resources_revision(was);
    if (a == NULL || b == NULL)
        return true;
    const uint64_t first = a->revision > b->revision ? a->revision : b->revision;
    a = meta_resources_change_after(was, first - 1);
    b = meta_resources_change_after(is, first - 1);
    while (a != NULL && b != NULL && b->revision <= last) {
        if (!is_same_entry(p, a, b))
            return false;
        a = meta_resources_change_after(was, a->revision);
        b = meta_resources_change_after(is, b->revision);
    }
    return a == NULL;
}

static bool has_same_kind(struct pair *p, const struct meta_resources *a,
                          const struct meta_resources *b, enum meta_resource_kind kind)
{
    const struct meta_resource *x = meta_resources_after(a, kind, "");
    const struct meta_resource *y = meta_resources_after(b, kind, "");
    while (x != NULL && y != NULL) {
        if (x->revision != y->revision || strcmp(x->name, y->name) != 0)
            return false;
        meta_json_write_stored(&p->a, x);
        meta_json_write_stored(&p->b, y);
        if (!is_same_text(p))
            return false;
        x = meta_resources_after(a, kind, x->name);
        y = meta_resources_after(b, kind, y->name);
    }
    return x == NULL && y == NULL;
}

enum meta_resources_relation meta_resources_compare(const struct meta_resources *was,
                                                    const struct meta_resources *is)
{
    struct pair p;
    bool same = true;
    if (meta_resources_revision(is) < meta_resources_revision(was))
        return META_RESOURCES_FORKED;
    base_text_init(&p.a, TEXT_BYTES);
    base_text_init(&p.b, TEXT_BYTES);
    bool follows = has_same_trail(&p, was, is);
    if (follows && meta_resources_revision(is) == meta_resources_revision(was))
        for (int kind = 0; kind < META_RESOURCE_KINDS && same; kind++)
            same = has_same_kind(&p, was, is, (enum meta_resource_kind)kind);
    base_text_fini(&p.a);
    base_text_fini(&p.b);
    if (!follows || !same)
        return META_RESOURCES_FORKED;
    return meta_resources_revision(is) == meta_resources_revision(was) ? META_RESOURCES_SAME
                                                                       : META_RESOURCES_CONTINUES;
}
