/* SPDX-License-Identifier: Apache-2.0 */
#include "retarget.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"

static const uint64_t AGAIN_NS = BASE_NS_PER_S;

static void begin_wanted(struct meta_retarget *r);

static void on_destroyed(struct fab_ctl *ctl)
{
    struct meta_retarget *r = ctl->user;
    r->busy = false;
    if (ctl->status != 0) /* the device's number is lost */
        base_log(BASE_LOG_ERROR, "the table's former DC target cannot be destroyed", "error=\"%s\"",
                 strerror(-ctl->status));
    begin_wanted(r);
}

static void note_failure(struct meta_retarget *r, int status)
{
    if (!r->failed)
        base_log(BASE_LOG_ERROR,
                 "the table's DC target cannot be made anew, and agents cannot read the table: it "
                 "is tried again",
                 "error=\"%s\"", strerror(-status));
    r->failed = r->wanted = true;
    r->retry_ns = base_clock_ns() + AGAIN_NS;
}

static void on_made(struct fab_ctl *ctl)
{
    struct meta_retarget *r = ctl->user;
    struct meta_table_endpoint *e = r->endpoint;
    r->busy = false;
    if (ctl->status != 0) {
        note_failure(r, ctl->status);
        return;
    }
    struct fab_dct *former = e->dct;
    e->dct = ctl->dct.x;
    r->failed = false;
    base_log(BASE_LOG_WARN,
             "the table has another DC target, which agents are told when they renew",
             "dct_number=%u before=%u", e->dct->dctn, former->dctn);
    r->busy = true;
    r->ctl =
        (struct fab_ctl){.kind = FAB_DESTROY_DCT, .done = on_destroyed, .user = r, .dct.x = former};
    fab_submit(e->fab, &r->ctl);
    if (!r->stopping)
        r->done(r->user);
}

static void begin_wanted(struct meta_retarget *r)
{
    const struct meta_table_endpoint *e = r->endpoint;
    if (!r->wanted || r->busy || r->stopping)
        return;
    r->wanted = false;
    r->busy = true;
    r->ctl = meta_table_endpoint_target(e, e->dct->dc_key);
    r->ctl.done = on_made;
    r->ctl.user = r;
    fab_submit(e->fab, &r->ctl);
}

void meta_retarget_want(struct meta_retarget *r)
{
    r->wanted = true;
    begin_wanted(r);
}

uint64_t meta_retarget_due_ns(const struct meta_retarget *r)
{
    return r->wanted && !r->busy && !r->stopping ? r->retry_ns : UINT64_MAX;
}

void meta_retarget_tick(struct meta_retarget *r, uint64_t now_ns)
{
    if (now_ns >= meta_retarget_due_ns(r))
        begin_wanted(r);
}

void meta_retarget_stop(struct meta_retarget *r)
{
    r->stopping = true;
    while (r->busy)
        if (fab_run(r->endpoint->fab) == 0)
            fab_wait(r->endpoint->fab);
}
