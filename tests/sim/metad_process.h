/* SPDX-License-Identifier: Apache-2.0 */
/* A metaserver as a simulated process: its directory, resources and REST interface, the table that
 * agents READ on a device of its own, and its store: SQLite's, on its host's disk, or the one that
 * all share (common_store.h). It begins and ends as metaserver/daemon/main.c, process.c and loop.c
 * do. One thread. */
#ifndef SIM_METAD_PROCESS_H
#define SIM_METAD_PROCESS_H

#include "calls.h"
#include "common_store.h"
#include "inbox.h"
#include "metaserver/service.h"
#include "metaserver/table_endpoint.h"
#include "metaserver/world.h"
#include "process.h"
#include "store_thread.h"

struct play_metad_settings {
    uint8_t gid[16];
    char authority[64]; /* "metad-a:7480" */
    uint32_t max_nodes;
    uint64_t node_lease_ns;
    bool shared;     /* its store is the one of all, */
    uint32_t number; /* where it has this number */
};

struct play_metad_question;

struct play_metad {
    struct meta_world world; /* the first member */
    struct play_process *process;
    struct play_host *host;
    struct play_inbox inbox;
    struct play_metad_settings settings;
    struct play_store_thread store; /* of a store of its own, */
    struct play_common_link common; /* or of the common one */
    uint64_t asked_ns;              /* when it last wanted a snapshot, by its host's clock */
    struct play_server server;
    struct meta_config config;
    struct meta_service service;
    struct meta_table_endpoint endpoint;
    struct base_text body;
    struct play_event tick;
    struct play_post tick_post, control_post, event_post, readers_post, stop_post;
    uint64_t ticked_ns;           /* last, by its host's clock */
    uint64_t tick_due_ns;         /* the next; UINT64_MAX: none is set */
    uint64_t effects;             /* how much it has had its world do, but for its device */
    struct play_event *at_commit; /* happens when the common store has next carried something out
                                   * for it, and it does not know that yet; NULL: nothing does */
    bool ready, told_to_stop, failed;
    struct base_errbuf why;
    uint64_t life;                         /* of all that there were, the how manieth it is */
    struct play_metad_question *questions; /* that are not answered (metad_judge.h) */
};

/* Begins one. NULL: no memory. */
struct play_metad *play_metad_start(struct play_host *host,
                                    const struct play_metad_settings *settings, uint64_t seed);
/* A SIGTERM. It has ended when process->ended. */
void play_metad_stop(struct play_metad *m);
/* A SIGKILL, or the end of one that has ended. Then *m is gone. */
void play_metad_kill(struct play_metad *m);
void play_metad_device_ready(struct play_metad *m, int fd);
/* Once a second: what has to be so while it waits. */
void play_metad_look_at_rest(struct play_metad *m);

/* metad_core.c. Its table's bytes for endpoints, behind which are those for names: none, unless
 * metaservers share a store. */
size_t play_metad_names_offset(const struct play_metad *m);
size_t play_metad_names_bytes(const struct play_metad *m);
/* All but what its world does for it. -errno and a sentence. */
int play_metad_make_core(struct play_metad *m, struct base_errbuf *err);

#endif
