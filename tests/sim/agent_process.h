/* SPDX-License-Identifier: Apache-2.0 */
/* An agent as a simulated process: the control core (agent/control), its lanes and its connector,
 * and this world of theirs (control/world.h), where the daemon has libuv, threads, curl and files.
 * It begins and ends as agent/daemon/main.c does. One thread. */
#ifndef SIM_AGENT_PROCESS_H
#define SIM_AGENT_PROCESS_H

#include "agent.h"
#include "device.h"
#include "fabric/sim.h"
#include "inbox.h"
#include "os.h"
#include "process.h"

struct play_agent_looks;
struct play_lane;
struct world_socket;

struct play_agent_settings {
    char node[PLAY_NAME];
    uint8_t gid[16];
    uint32_t metaservers;
    char metaserver[AGENT_METASERVERS][AGENT_TEXT];
    const char *transport;                                  /* a literal of [pool] */
    uint64_t connections, responders, connections_per_peer; /* 0: as usual */
    uint64_t receives; /* for messages, of all peers; 0: it carries none */
    bool by_device;    /* its own workers' messages to each other go so, too */
    uint32_t workers;  /* that there will be, about: how much is kept ready follows */
    uint64_t arena_bytes;
    struct agent_limits window; /* of its device */
    uint32_t queue_pairs_ahead;
    struct agent_tenant_config tenant[4];
    uint32_t tenants;
};

struct play_task;
struct play_channel;

struct play_agent {
    struct world world; /* the first member */
    struct play_process *process;
    struct play_host *host;
    struct play_inbox inbox;
    struct agent *agent;
    struct play_agent_settings settings;
    uint64_t seed;
    uint64_t effects; /* play_agent_effects(), but for its device */
    struct play_event alarm;
    struct play_post alarm_post, control_post, event_post, stop_post;
    struct play_lane *lanes;
    struct play_event *at_work; /* set when a lane has done something; NULL: nobody waits for it */
    uint64_t at_inflight;       /* and so many are out; */
    uint64_t at_work_ns;        /* so much later */
    bool at_read;               /* not before it has asked for a region's record */
    struct play_watch *watches;
    struct play_channel *channels; /* completion channels of its sessions */
    struct play_task *tasks;       /* that wait for their turn, or run */
    uint32_t tasks_out;
    struct world_socket *sockets;
    char path[AGENT_SOCKET_PATH]; /* where workers attach */
    struct os_listener listener;
    bool listens;
    bool takes_incarnation; /* waits for its disk, to begin its life */
    bool unknowing;         /* that disk says nothing of a former life */
    bool told_to_stop, ending, ready;
    struct play_agent_looks *looks; /* while it serves; NULL: it does not */
    bool failed;                    /* it could not begin: why */
    struct base_errbuf why;
    uint64_t moves_seen;     /* moves.h */
    struct base_prng random; /* how long things take */
};

static inline struct play_agent *play_agent_of(struct world *w)
{
    return (struct play_agent *)w;
}

/* Begins one on that host. NULL: no memory. */
struct play_agent *play_agent_start(struct play_host *host,
                                    const struct play_agent_settings *settings, uint64_t seed);
/* A SIGTERM. It has ended when process->ended. */
void play_agent_stop(struct play_agent *a);
/* A SIGKILL: nothing of it goes on; or the end of one that has ended. Then *a is gone. */
void play_agent_kill(struct play_agent *a);
/* Whether something of workers' is left in it when none has been there for long: in words, or NULL.
 * Borrowed until the next call. */
const char *play_agent_left(struct play_agent *a);
/* Once a second: what has to be so while it waits. */
void play_agent_look_at_rest(struct play_agent *a);
/* It does not run until then. Its lanes may be anywhere in a pass: one that runs has perhaps read
 * the clock, and goes on with that. */
void play_agent_stand_still(struct play_agent *a, uint64_t until_ns);
/* A descriptor of its device's has become readable. */
void play_agent_device_ready(struct play_agent *a, int fd);
/* Where its workers attach. */
void play_agent_path(const struct play_host *host, char *path, size_t size);

/* ---- between the files of this module */

extern const struct world_ops PLAY_WORLD_OPS; /* agent_world.c */
extern const struct world_log_ops PLAY_LOG_OPS;
extern const struct world_lane_ops PLAY_LANE_OPS;     /* agent_lanes.c */
extern const struct world_socket_ops PLAY_SOCKET_OPS; /* agent_sockets.c */
extern const struct world_admin_ops PLAY_ADMIN_OPS;   /* agent_process.c */
/* Begins its life, with an incarnation of at least @at_least: the daemon waits for its disk here,
 * before anything else. 0; or -errno and a sentence. */
int play_agent_take_incarnation(struct play_agent *a, uint32_t at_least, struct base_errbuf *err);
/* How much it has had its world do. */
uint64_t play_agent_effects(const struct play_agent *a);
/* Waits for all tasks that are out, and what they lead to. */
void play_agent_finish_tasks(struct play_agent *a);
void play_agent_forget_tasks(struct play_agent *a);
void play_agent_stop_watching(struct play_agent *a);
/* Whether a watch or a lane waits for that descriptor: it is told. */
bool play_agent_watch_ready(struct play_agent *a, int fd);
bool play_agent_lane_ready(struct play_agent *a, int fd);
void play_agent_forget_lanes(struct play_agent *a);
/* channels.c: as world_lane_channel() and the others of control/lanes.h; and all of them end. */
int play_channel_begin(struct world *w, struct world_lane *of, uint32_t session, uint32_t tenant,
                       int *fd, struct base_errbuf *err);
void play_channel_end(struct world *w, struct world_lane *of, uint32_t session);
void play_channel_tell(struct world *w, struct world_lane *of, uint32_t session);
void play_agent_forget_channels(struct play_agent *a);
void play_agent_listen(struct play_agent *a);
void play_agent_unlisten(struct play_agent *a);
/* Those that are left when it is killed: their workers see them closed. */
void play_agent_drop_sockets(struct play_agent *a);

#endif
