/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulated worker does with names of regions: few of them, which all workers of its tenant
 * want, for themselves and for another tenant. What it comes to know is held against the store
 * (published.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ledger.h"
#include "operators.h"
#include "published.h"
#include "random.h"
#include "schema/name_record.h"
#include "trace.h"
#include "worker_state.h"

enum { NAME_BYTES = 16 };

/* One of them. reader: whom it is for, of all but its owner; "": for its owner's workers. */
struct wanted {
    uint32_t number;
    bool other;
    const char *owner, *reader;
    char name[NAME_BYTES], space[SCHEMA_NAME_SPACE_BYTES];
};

static void draw_name(struct play_worker *w, bool looks, struct wanted *out)
{
    const char *own = play_tenant_name(w->settings.tenant - 1),
               *next = play_tenant_name(w->settings.tenant % w->settings.tenants);
    *out = (struct wanted){.number = (uint32_t)base_prng_below(&w->random, NAMES),
                           .other = w->settings.tenants > 1 && base_prng_below(&w->random, 3) == 0,
                           .owner = own,
                           .reader = ""};
    if (out->other) {
        out->owner = looks ? next : own;
        out->reader = looks ? own : next;
    }
    (void)snprintf(out->name, sizeof out->name, "name/%u", out->number);
    (void)schema_name_space(out->owner, out->reader, out->space);
}

static struct play_published_region own_region(const struct play_worker *w, bool other)
{
    struct play_published_region r = {.key = other ? 0 : kedge_mr_rkey(w->mr)};
    memcpy(r.gid, w->region->gid, sizeof r.gid);
    return r;
}

static void trace_end(const struct play_worker *w, const char *what, const struct wanted *n,
                      int status)
{
    play_trace(w->process->name, "%s %s of %s: %s", what, n->name, n->space,
               status == 0 ? "done" : kedge_last_error());
}

static void publish(struct play_worker *w, const struct wanted *n)
{
    const struct play_published_region r = own_region(w, n->other);
    const uint64_t asked_ns = play_now_ns();
    const int status =
        n->other ? kedge_publish_for(w->mr, n->name, n->reader) : kedge_publish(w->mr, n->name);
    trace_end(w, "publishes", n, status);
    if (status != 0)
        return;
    play_published_given(w->process->name, n->space, n->name, &r, asked_ns);
    w->named[n->number][n->other] = true;
}

/* What is taken back for another tenant has waited for a lease of its own. */
static void unpublish(struct play_worker *w, const struct wanted *n)
{
    const struct play_published_region r = own_region(w, n->other);
    const uint64_t asked_ns = play_now_ns();
    const int status =
        n->other ? kedge_unpublish_for(w->mr, n->name, n->reader) : kedge_unpublish(w->mr, n->name);
    trace_end(w, "takes back", n, status);
    if (status == 0 && !n->other)
        play_published_taken_back(w->process->name, n->space, n->name, &r, asked_ns);
    w->named[n->number][n->other] = false;
}

static void look_up(struct play_worker *w, const struct wanted *n)
{
    struct kedge_remote remote;
    const uint64_t asked_ns = play_now_ns();
    const int status = n->other ? kedge_lookup_of(w->session, n->owner, n->name, &remote)
                                : kedge_lookup(w->session, n->name, &remote);
    trace_end(w, "looks up", n, status);
    if (status != 0 && status != -ENOENT)
        return;
    struct play_published_region r = {.key = remote.rkey};
    if (status == 0)
        memcpy(r.gid, remote.gid, sizeof r.gid);
    play_published_looked_up(w->process->name, w->process->host->number, n->space, n->name,
                             status == 0 ? &r : NULL, asked_ns);
}

void play_worker_do_name(struct play_worker *w)
{
    struct wanted n;
    const bool looks = w->region == NULL || base_prng_below(&w->random, 2) == 0;
    draw_name(w, looks, &n);
    if (looks)
        look_up(w, &n);
    else if (w->named[n.number][n.other])
        unpublish(w, &n);
    else
        publish(w, &n);
}

/* Those that it has for another tenant have keys that it does not know. */
void play_worker_forsake_names(struct play_worker *w)
{
    if (!w->settings.names || w->region->token[0] == '\0')
        return;
    const struct play_published_region r = own_region(w, false);
    if (r.key != 0)
        play_published_forsaken(&r);
    memset(w->named, 0, sizeof w->named);
}
