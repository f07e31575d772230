/* SPDX-License-Identifier: Apache-2.0 */
#include "emptier.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "fd_watch.h"

static_assert((int)TENANT_QUEUE_OWNERS <= (int)EMPTIER_CHILDREN, "one of each at a time");

enum { AGAIN_MS = 50, SLOW_MS = 5000, LOGGED = 4, LOGGED_S = 60 };

struct emptying {
    struct world_left left;
    void (*done)(void *user);
    void *user;
    struct emptying *next;
};

static void close_files(struct emptying *x)
{
    for (uint32_t i = 0; i < x->left.count; i++)
        (void)close(x->left.file[i]);
    x->left.count = 0;
}

static void end_emptying(struct emptying *x)
{
    void (*done)(void *user) = x->done;
    void *user = x->user;
    free(x);
    if (done != NULL)
        done(user);
}

static void end_batch(struct emptier_owner *o)
{
    struct emptying *x = o->batch;
    o->batch = NULL;
    o->serial = 0;
    for (struct emptying *next; x != NULL; x = next) {
        next = x->next;
        end_emptying(x);
    }
}

/* What there is of its oldest, as much as one process can have. */
static struct emptying *take_batch(struct emptier_owner *o, int file[EMPTIER_BATCH],
                                   uint32_t *count)
{
    struct emptying *batch = o->first, **end = &batch;
    *count = 0;
    while (*end != NULL && *count + (*end)->left.count <= EMPTIER_BATCH) {
        memcpy(file + *count, (*end)->left.file, (*end)->left.count * sizeof *file);
        *count += (*end)->left.count;
        end = &(*end)->next;
    }
    o->first = *end;
    if (o->first == NULL)
        o->last = &o->first;
    *end = NULL;
    return batch;
}

static void put_back(struct emptier_owner *o, struct emptying *batch)
{
    struct emptying **end = &batch;
    while (*end != NULL)
        end = &(*end)->next;
    *end = o->first;
    if (o->first == NULL)
        o->last = end;
    o->first = batch;
}

/* Nobody empties anything any more: it is closed, and stays with whoever has it. */
static void close_all(struct emptier *e)
{
    e->gone = true;
    for (uint32_t i = 0; i < TENANT_QUEUE_OWNERS; i++) {
        struct emptier_owner *o = &e->of[i];
        end_batch(o);
        for (struct emptying *x; (x = o->first) != NULL;) {
            o->first = x->next;
            close_files(x);
            end_emptying(x);
        }
        o->last = &o->first;
    }
}

static void lose_process(struct emptier *e)
{
    base_log(BASE_LOG_ERROR,
             "memory of workers that leave is not taken back from them any more: the process that "
             "does it has ended",
             "advice=\"restart the agent\"");
    if (!uv_is_closing((uv_handle_t *)&e->reports))
        (void)uv_poll_stop(&e->reports);
    close_all(e);
}

static void say_slow(struct emptier *e, uint32_t tenant)
{
    if (base_log_allow(&e->slow_limit, base_clock_ns(), LOGGED_S * BASE_NS_PER_S, LOGGED, NULL))
        base_log(BASE_LOG_WARN,
                 "a worker that has left keeps its memory from being taken back: it counts to its "
                 "tenant until then",
                 "tenant=%s advice=\"find and end it: grep -l memfd:kedge- /proc/[0-9]*/maps\"",
                 e->tenants->at[tenant].config.name);
}

/* Said once of each batch; it is looked at again as long as there is one that may come to that. */
static void on_slow(uv_timer_t *timer)
{
    struct emptier *e = timer->data;
    const uint64_t now_ns = base_clock_ns();
    bool again = false;
    for (uint32_t i = 1; i < TENANT_QUEUE_OWNERS; i++) {
        struct emptier_owner *o = &e->of[i];
        if (o->serial == 0 || o->said)
            continue;
        o->said = now_ns - o->since_ns >= SLOW_MS * BASE_NS_PER_MS;
        again = again || !o->said;
        if (o->said)
            say_slow(e, i - 1);
    }
    if (again)
        (void)uv_timer_start(timer, on_slow, SLOW_MS, 0);
}

static void on_again(uv_timer_t *timer);

static void give_batch(struct emptier *e, struct emptier_owner *o)
{
    int file[EMPTIER_BATCH];
    uint32_t count, serial = 0;
    if (e->gone || o->serial != 0 || o->first == NULL)
        return;
    struct emptying *batch = take_batch(o, file, &count);
    const int status = agentd_emptier_process_give(e->process, file, count, &serial);
    if (status != 0) {
        put_back(o, batch);
        if (status == -EPIPE)
            lose_process(e);
        else
            (void)uv_timer_start(&e->again, on_again, AGAIN_MS, 0);
        return;
    }
    for (struct emptying *x = batch; x != NULL; x = x->next)
        close_files(x); /* the process has copies */
    o->batch = batch;
    o->serial = serial;
    o->since_ns = base_clock_ns();
    o->said = false;
    if (!uv_is_active((uv_handle_t *)&e->slow))
        (void)uv_timer_start(&e->slow, on_slow, SLOW_MS, 0);
}

static void on_again(uv_timer_t *timer)
{
    struct emptier *e = timer->data;
    for (uint32_t i = 0; i < TENANT_QUEUE_OWNERS; i++)
        give_batch(e, &e->of[i]);
}

static void hear_report(struct emptier *e, const struct emptier_report *r)
{
    if (r->status != 0 &&
        base_log_allow(&e->limit, base_clock_ns(), LOGGED_S * BASE_NS_PER_S, LOGGED, NULL))
        base_log(BASE_LOG_WARN, "memory of workers that left was not taken back from them",
                 "error=\"%s\"", strerror(-r->status));
    for (uint32_t i = 0; i < TENANT_QUEUE_OWNERS; i++)
        if (e->of[i].serial == r->serial) {
            end_batch(&e->of[i]);
            give_batch(e, &e->of[i]);
            return;
        }
}

static void on_report(uv_poll_t *poll, int status, int events)
{
    struct emptier *e = poll->data;
    struct emptier_report report;
    int heard;
    (void)status, (void)events;
    while ((heard = agentd_emptier_process_hear(e->process, &report)) == 0)
        hear_report(e, &report);
    if (heard == -EPIPE && !e->gone)
        lose_process(e);
}

int agentd_emptier_start(struct emptier *e, struct base_errbuf *err)
{
    for (uint32_t i = 0; i < TENANT_QUEUE_OWNERS; i++)
        e->of[i].last = &e->of[i].first;
    e->reports.data = e->again.data = e->slow.data = e;
    (void)uv_timer_init(e->loop, &e->again);
    (void)uv_timer_init(e->loop, &e->slow);
    return agentd_fd_watch(e->loop, &e->reports, e->process->fd, on_report, err);
}

void agentd_emptier_take(struct emptier *e, uint32_t tenant, const struct world_left *left,
                         void (*done)(void *user), void *user)
{
    struct emptying *x = malloc(sizeof *x);
    struct emptier_owner *o = &e->of[tenant];
    BASE_ASSERT(tenant < TENANT_QUEUE_OWNERS);
    if (x == NULL || e->gone) {
        for (uint32_t i = 0; i < left->count; i++)
            (void)close(left->file[i]);
        free(x);
        if (done != NULL)
            done(user);
        return;
    }
    *x = (struct emptying){.left = *left, .done = done, .user = user};
    *o->last = x;
    o->last = &x->next;
    give_batch(e, o);
}

void agentd_emptier_stop(struct emptier *e)
{
    if (e->process != NULL)
        close_all(e);
}
