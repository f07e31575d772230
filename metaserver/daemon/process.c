/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { HEAR_MS = 100 };

#define SAVE_NS   (BASE_NS_PER_S / 10) /* between writing what is known, at least */
#define ASK_NS    (10 * BASE_NS_PER_S)
#define SETTLE_NS (20 * BASE_NS_PER_S) /* that the end waits for the disk */

static void apply_heard(void *user, const struct meta_store_heard *heard)
{
    struct meta_process *p = user;
    if (heard->kind == META_STORE_HEARD_SNAPSHOT &&
        meta_service_is_own_store(&p->service, heard->snapshot))
        atomic_store(&p->service.store->relearn, true);
    meta_service_hear(&p->service, heard, p->service.at);
}

int meta_process_start_store(struct meta_process *p, struct meta_store_watch *watch,
                             struct base_errbuf *err)
{
    int status = meta_store_worker_new(p->service.store, &p->world.worker, err);
    if (watch == NULL)
        return status;
    if (status != 0) {
        meta_store_watch_close(watch);
        return status;
    }
    meta_store_order_init(&p->order, apply_heard, p);
    p->world.order = &p->order;
    return meta_store_listener_new(watch, &p->listener, err);
}

/* Everything that was heard so far, or that nothing was. */
static void take_heard(struct meta_process *p)
{
    struct meta_store_heard *heard;
    while ((heard = meta_store_listener_take(p->listener)) != NULL)
        meta_store_order_put(&p->order, heard);
}

static void note_state(struct meta_process *p, uint64_t now_ns)
{
    struct base_errbuf why;
    const int state = meta_store_listener_state(p->listener, &why);
    if (state < 0)
        meta_service_hear_nothing(&p->service, &why, now_ns);
    else if (state == 1 && meta_store_order_is_idle(&p->order))
        meta_service_hear_nothing(&p->service, NULL, now_ns);
}

/* Now and then, as long as one is wanted. */
static void ask_snapshot(struct meta_process *p, uint64_t now_ns)
{
    if (!p->service.hearing.wants_snapshot || now_ns < p->ask_ns)
        return;
    p->ask_ns = now_ns + ASK_NS;
    meta_store_listener_ask(p->listener);
}

int meta_process_remember(struct meta_process *p, const char *data_dir, struct base_errbuf *err)
{
    struct meta_known known;
    const int status = meta_known_file_read(data_dir, p->service.store_id, &known, err);
    if (status == 0) {
        meta_service_remember(&p->service, &known);
        meta_known_fini(&known);
    } else if (status != -ENOENT) {
        return status;
    }
    return meta_known_file_new(data_dir, &p->known, err);
}

uint64_t meta_process_due(const struct meta_process *p)
{
    const struct meta_resources *s = p->service.resources;
    if (p->known == NULL || (p->saved == s && p->saved_revision == meta_resources_revision(s)))
        return UINT64_MAX;
    return p->saved_ns + SAVE_NS;
}

static void save_known(struct meta_process *p, uint64_t now_ns)
{
    struct meta_known known;
    struct base_text text;
    if (now_ns < meta_process_due(p) || meta_service_known(&p->service, &known) != 0)
        return;
    base_text_init(&text, META_KNOWN_TEXT_MAX);
    meta_known_write(&text, &known);
    meta_known_fini(&known);
    p->saved_ns = now_ns;
    if (text.error == 0) {
        p->saved = p->service.resources;
        p->saved_revision = meta_resources_revision(p->saved);
        meta_known_file_write(p->known, text.data);
    } else {
        base_text_fini(&text);
    }
}

void meta_process_run_store(struct meta_process *p, uint64_t now_ns)
{
    struct meta_service *s = &p->service;
    if (p->world.worker != NULL)
        (void)meta_store_worker_run(p->world.worker);
    if (p->listener != NULL) {
        take_heard(p);
        while (meta_store_order_run(&p->order, now_ns))
            meta_service_advance(s, now_ns);
        note_state(p, now_ns);
        ask_snapshot(p, now_ns);
    }
    meta_service_advance(s, now_ns);
    if (p->known != NULL)
        save_known(p, now_ns);
}

/* For what is told in its place among what is heard. */
static void wait_to_hear(const struct meta_process *p)
{
    struct pollfd fd = {.fd = -1, .events = POLLIN};
    if (p->listener == NULL)
        return;
    fd.fd = meta_store_listener_fd(p->listener);
    (void)poll(&fd, 1, HEAR_MS);
}

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
        meta_process_run_store(p, base_clock_ns());
        if (status == 0 && !meta_service_is_stopped(s))
            wait_to_hear(p);
    }
    if (meta_service_is_stopped(s))
        return 0;
    meta_service_abandon(s, base_clock_ns());
    return base_err(err, -EINPROGRESS,
                    "the store (the disk of data_dir, or etcd) has not answered for %llu s: "
                    "whether the last change was "
                    "written is not known",
                    (unsigned long long)(SETTLE_NS / BASE_NS_PER_S));
}

/* Nothing is with the store. */
static void free_store(struct meta_process *p)
{
    if (p->known != NULL && p->service.resources != NULL)
        save_known(p, UINT64_MAX - 1);
    meta_known_file_free(p->known);
    p->known = NULL;
    meta_store_listener_free(p->listener);
    p->listener = NULL;
    if (p->world.order != NULL)
        meta_store_order_fini(&p->order);
    p->world.order = NULL;
    meta_store_worker_free(p->world.worker);
    p->world.worker = NULL;
    meta_store_close(p->service.store);
    p->service.store = NULL;
}

int meta_process_stop_store(struct meta_process *p, struct base_errbuf *err)
{
    const int status = p->world.worker != NULL ? settle_store(p, err) : 0;
    if (status != 0)
        return status;
    free_store(p);
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
    free_store(p);
    meta_process_stop_device(p, FAB_STOP_MS, EXIT_FAILURE);
    meta_process_stop_responders(p);
    meta_table_endpoint_give_back(&p->endpoint);
    base_deadline_end(&p->deadline);
    meta_responders_free(p->service.responders);
    meta_directory_free(p->service.directory);
    meta_names_free(p->service.names);
    meta_resources_free(p->service.resources);
    meta_liveness_free(p->service.liveness);
    meta_table_endpoint_fini(&p->endpoint);
}
