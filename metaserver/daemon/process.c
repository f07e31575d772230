/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define SETTLE_NS (20 * BASE_NS_PER_S) /* that the end waits for the disk */

/* What is with the store is answered when the store has it, if it takes no time without an end. */
static int settle_store(struct meta_process *p, struct base_errbuf *err)
{
    struct meta_service *s = &p->service;
    struct meta_store_worker *worker = p->world.worker;
    const uint64_t end_ns = base_clock_ns() + SETTLE_NS;
    int status = 0;
    meta_service_stop(s, base_clock_ns());
    while (status == 0 && !meta_service_is_stopped(s)) {
        const uint64_t now_ns = base_clock_ns();
        status = meta_store_worker_settle(worker, now_ns < end_ns ? end_ns - now_ns : 0);
        (void)meta_store_worker_run(worker);
        meta_service_advance(s, base_clock_ns());
    }
    if (meta_service_is_stopped(s))
        return 0;
    meta_service_abandon(s, base_clock_ns());
    return base_err(err, -EINPROGRESS,
                    "the disk of data_dir has not answered for %llu s: whether the last change was "
                    "written is not known",
                    (unsigned long long)(SETTLE_NS / BASE_NS_PER_S));
}

int meta_process_stop_store(struct meta_process *p, struct base_errbuf *err)
{
    const int status = p->world.worker != NULL ? settle_store(p, err) : 0;
    if (status != 0)
        return status;
    meta_store_worker_free(p->world.worker);
    p->world.worker = NULL;
    meta_store_close(p->service.store);
    p->service.store = NULL;
    return 0;
}

static void end_process(void *user)
{
    const struct meta_process *p = user;
    const struct fab *fab = p->endpoint.fab;
    const uint32_t kind = fab != NULL ? atomic_load(&fab->waits_for) : 0;
    base_log(BASE_LOG_ERROR,
             "the device does not answer: what this metaserver has of it is left to the kernel, "
             "and it ends",
             "for=\"%s\"", fab_ctl_name(kind));
    _exit(p->code);
}

void meta_process_stop_device(struct meta_process *p, uint32_t timeout_ms, int code)
{
    if (p->ends_device)
        return;
    p->ends_device = true;
    p->code = code;
    base_deadline_begin(&p->deadline, timeout_ms * BASE_NS_PER_MS, end_process, p);
}

void meta_process_stop_responders(struct meta_process *p)
{
    struct meta_responders *r = p->service.responders;
    struct fab *fab = p->endpoint.fab;
    if (r == NULL)
        return;
    meta_responders_stop(r);
    while (!meta_responders_stopped(r))
        if (fab_run(fab) == 0)
            fab_wait(fab);
}

void meta_process_fini(struct meta_process *p)
{
    meta_store_worker_free(p->world.worker);
    meta_store_close(p->service.store);
    meta_process_stop_device(p, FAB_STOP_MS, EXIT_FAILURE);
    meta_process_stop_responders(p);
    meta_table_endpoint_give_back(&p->endpoint);
    base_deadline_end(&p->deadline);
    meta_responders_free(p->service.responders);
    meta_directory_free(p->service.directory);
    meta_resources_free(p->service.resources);
    meta_liveness_free(p->service.liveness);
    meta_table_endpoint_fini(&p->endpoint);
}
