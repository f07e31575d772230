/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the store still fails: agents and alerts go by that, and perhaps nobody else asks. */
#include <stdlib.h>

#include "base/clock.h"
#include "rest_private.h"

bool meta_service_is_read_only(const struct meta_service *s)
{
    return s->writes.why.text[0] != '\0';
}

struct probe_write {
    struct meta_write base;
    struct meta_service *s;
};

/* A shared store has to show first that it takes what this metaserver writes: a node that it has
 * already is registered here without a write. */
static bool is_untried(const struct meta_service *s)
{
    return s->hearing.shared && s->writes.did_ns == 0 && s->writes.failed_ns == 0;
}

/* A transaction in which there is nothing, unless another one has said it meanwhile. */
static bool begin_probing(struct call *c, struct meta_write *w)
{
    w->job.txn = (struct meta_store_txn){.compare = false};
    return meta_service_is_read_only(c->s) || is_untried(c->s);
}

static void end_probing(struct call *c, struct meta_write *w)
{
    (void)c;
    (void)w; /* that it has failed is noted of every transaction, and was said of the first */
}

static void free_probing(struct meta_write *w)
{
    ((struct probe_write *)w)->s->writes.probing = false;
    free(w);
}

uint64_t meta_service_probe_due(const struct meta_service *s)
{
    const struct meta_writes *q = &s->writes;
    if (q->probing || q->stopping)
        return UINT64_MAX;
    if (!meta_service_is_read_only(s))
        return is_untried(s) ? q->probe_ns : UINT64_MAX;
    const uint64_t due_ns = q->failed_ns + META_SERVICE_PAUSE_NS;
    return due_ns > q->probe_ns ? due_ns : q->probe_ns;
}

void meta_service_probe(struct meta_service *s, uint64_t now)
{
    static const struct meta_write_kind kind = {.what = "probing",
                                                .check = true,
                                                .begin = begin_probing,
                                                .end = end_probing,
                                                .free = free_probing};
    if (now < meta_service_probe_due(s))
        return;
    /* Also where it says neither that the store fails nor that it does not. */
    s->writes.probe_ns = now + META_SERVICE_PAUSE_NS;
    struct probe_write *p = calloc(1, sizeof *p);
    if (p == NULL)
        return; /* the next time */
    p->base.kind = &kind;
    p->s = s;
    s->writes.probing = true;
    meta_write_add(s, &p->base);
}
