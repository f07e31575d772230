/* SPDX-License-Identifier: Apache-2.0 */
/* What a kedge-metad is made of, and how it ends: what is durable first, then the device, which may
 * hang. The main thread's. */
#ifndef METASERVER_PROCESS_H
#define METASERVER_PROCESS_H

#include "base/deadline.h"
#include "known_file.h"
#include "loop_world.h"
#include "metaserver/service.h"
#include "metaserver/store_listener.h"
#include "metaserver/table_endpoint.h"

struct meta_process {
    struct meta_loop_world world;         /* with the store's worker, owned here */
    struct meta_service service;          /* with its store and its parts, owned here as well */
    struct meta_store_order order;        /* of a store that is shared */
    struct meta_store_listener *listener; /* likewise; NULL: it is not */
    uint64_t ask_ns;                      /* for a snapshot of it, no earlier */
    struct meta_known_file *known;        /* what is known of it, on this disk; NULL likewise */
    const struct meta_resources *saved;   /* of what was written there last */
    uint64_t saved_revision, saved_ns;    /* likewise; and when */
    struct meta_table_endpoint endpoint;
    struct base_deadline deadline; /* of the device's end */
    bool ends_device;              /* that has begun */
    int code;
};

/* Begins the threads of the service's store, which has been opened and loaded. watch: how what
 * others do to it is heard, taken in any case; NULL: it is not shared. -errno and a sentence. */
int meta_process_start_store(struct meta_process *p, struct meta_store_watch *watch,
                             struct base_errbuf *err);
/* Goes on with what the store has done, and what was heard of it. Whenever one of its threads has
 * something, and at each tick. */
void meta_process_run_store(struct meta_process *p, uint64_t now_ns);
/* What was known of a store that is shared, from data_dir: before that is served, and remembered
 * from now on. After meta_service_load(). -errno and a sentence. */
int meta_process_remember(struct meta_process *p, const char *data_dir, struct base_errbuf *err);
/* When what has become known since is written, by meta_process_run_store(); UINT64_MAX: nothing. */
uint64_t meta_process_due(const struct meta_process *p);
/* Answers what is with the store when the store has it, and closes it: whatever becomes of the
 * device then, the next start finds a store that was closed. NULL worker, NULL store: there are
 * none. -EINPROGRESS and a sentence: the disk does not answer, whoever waits is told so, and the
 * store's thread keeps the store and what that borrows. */
int meta_process_stop_store(struct meta_process *p, struct base_errbuf *err);
/* From here on the device has so long to take back everything: then the process ends with this
 * code, and leaves that to the kernel. Once: later calls change nothing. */
void meta_process_stop_device(struct meta_process *p, uint32_t timeout_ms, int code);
/* Stops the responders, if there are any, and runs the fabric until it has nothing of them. */
void meta_process_stop_responders(struct meta_process *p);
/* All of that, as far as it has not been done, and frees the rest. */
void meta_process_fini(struct meta_process *p);

#endif
