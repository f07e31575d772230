/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated network: any number of devices of one process, in virtual time, decided by one seed.
 *
 * It has no thread, no descriptor, no clock of the machine and no randomness but its seed's: the
 * same calls with the same seed lead to the same events, in the same order, at the same times.
 * Devices behave as hardware may, not as it usually does: packets are late, lost, repeated and
 * overtaken as their link says, responders take every order that IBTA lets them take, and bytes of
 * one request are moved at several times. In the library kedge_fabric_sim.
 *
 * One thread. Nothing happens but in sim_net_step(): posts, polls and control operations of devices
 * put down what is to come, and sim_net_step() carries out what is due first. Hooks are called from
 * within these calls: they note what they are told and call nothing of this header or of the
 * fabric's. */
#ifndef FABRIC_SIM_H
#define FABRIC_SIM_H

#include "fabric/fabric.h"
#include "fabric/model.h"
#include "fabric/sim_attr.h"

struct sim_net;

#define SIM_NEVER UINT64_MAX

/* Bytes that a device is about to read or to write. `remote`: for a request of somebody else, as
 * its responder; else for one of its own (a SGE, a receive, an answer). */
struct sim_access {
    enum sim_access_kind { SIM_READ, SIM_WRITE, SIM_ATOMIC } kind;
    bool remote;
    uint32_t node;      /* whose memory it is */
    uint32_t initiator; /* whose request, by its node; */
    uint32_t qpn;       /* and the queue pair that it was posted in; */
    uint64_t wr_id;     /* as it was named when it was posted */
    uint32_t key;
    uint64_t identity; /* of the registration: struct sim_region */
    uint64_t addr;     /* as peers and SGEs call it */
    void *at;          /* the same in this process */
    uint32_t bytes;
    const void *written; /* what SIM_WRITE puts there; NULL: see above */
};

/* Why a responder refuses a request of somebody else. */
enum sim_refusal {
    SIM_REFUSED_FORM,   /* an atomic that is not aligned */
    SIM_REFUSED_MANY,   /* more READs and atomics are out than the queue pair has room for */
    SIM_REFUSED_RIGHTS, /* the queue pair or target takes no such requests */
    SIM_REFUSED_ACCESS, /* there is no such registration, or not for that */
};

/* A registration, which has a number that none had before. */
struct sim_region {
    uint32_t node;
    uint32_t key;
    uint64_t identity;
    uint64_t addr, length;
    void *at;
    unsigned access; /* enum ibv_access_flags */
};

/* What a device is about to send for what was posted: a datagram, or a request or what is left of
 * it. */
struct sim_sent {
    uint32_t node;
    bool datagram;
    enum ibv_wr_opcode opcode;
    uint32_t copies; /* of it that went before */
    uint32_t *rkey;  /* of what names memory of its peer */
    uint8_t *data;   /* of a datagram, or a SEND from its beginning; else NULL */
    uint32_t bytes;
};

/* Any of them may be NULL. */
struct sim_hooks {
    void *user;
    /* A descriptor (fab_ctl_fd(), fab_event_fd(), a channel's) became readable. These are numbers
     * of the net's alone, SIM_FIRST_FD or more, unique for as long as it lives. */
    void (*ready)(void *user, uint32_t node, int fd);
    /* fab_wait() was called, so for that long its thread stood still. The time of the net did not
     * go on: whoever plays the thread lets it do nothing else for so long. */
    void (*waited)(void *user, uint32_t node, uint64_t ns);
    /* What clock the host of the node has at that time of the net, which not_after_ns and
     * QUERY_CLOCK are told in. NULL: the net's. */
    uint64_t (*host_ns)(void *user, uint32_t node, uint64_t now_ns);
    void (*accessed)(void *user, const struct sim_access *access);
    /* `at` and `identity` say nothing. */
    void (*refused)(void *user, const struct sim_access *access, enum sim_refusal why);
    void (*registered)(void *user, const struct sim_region *region);
    /* From now on nothing is accessed through it. */
    void (*deregistered)(void *user, const struct sim_region *region);
    /* A completion queue of so many places may have to take `owed` completions, if nobody polls
     * meanwhile: what is posted and may end, and receives of which it was not taken. Whether it
     * overflows then is left to chance. */
    void (*crowded)(void *user, uint32_t node, uint32_t places, uint32_t owed);
    /* A READ of so many bytes of that node's memory stands still in the middle (as
     * sim_net_stall_reads() says). */
    void (*stalled)(void *user, uint32_t node, uint32_t bytes);
    /* A connected queue pair of that node broke. NULL: nobody asks. */
    void (*broke)(void *user, uint32_t node);
    /* It goes as the hook leaves it; a datagram as many times more as that returns, each of which
     * it sees. */
    uint32_t (*sends)(void *user, const struct sim_sent *sent);
    /* A line of a story: "RC 0x1f33: sends again from packet 17". */
    void (*told)(void *user, uint32_t node, const char *line);
};

enum { SIM_FIRST_FD = 1 << 20 };

/* ---- the net */

/* packet_life_ns: the longest that a packet is on its way, whatever links say; 0: 50 ms. Hooks are
 * copied. NULL: no memory. */
struct sim_net *sim_net_new(uint64_t seed, const struct sim_hooks *hooks, uint64_t packet_life_ns);
/* Every device must have been closed or crashed. */
void sim_net_free(struct sim_net *net);
/* It begins at a second: a time of 0 is none to many. */
uint64_t sim_net_now(const struct sim_net *net);
/* When something is to happen next; SIM_NEVER: nothing is. */
uint64_t sim_net_next_due(const struct sim_net *net);
/* Goes to the first event and lets it happen. False: there is none. */
bool sim_net_step(struct sim_net *net);
/* Lets everything happen that is due until then, and makes it that time. */
void sim_net_run_until(struct sim_net *net, uint64_t until_ns);
/* Whether the number is one of a descriptor that could be read now. */
bool sim_fd_is_readable(const struct sim_net *net, int fd);
/* Of all that happened so far, without addresses of this process. */
uint64_t sim_net_hash(const struct sim_net *net);
uint64_t sim_net_events(const struct sim_net *net);
/* Each fab_poll() lets so much time go by first, and until something happens if it would be in
 * vain: for programs that poll in a loop and know nothing of the net. 0, which it is at first:
 * none. */
void sim_net_poll_takes(struct sim_net *net, uint64_t ns);
/* Of READs of up to 4 KiB so many in a million, from now on, are carried out in up to 16 pieces of
 * aligned words, in any order and over up to that time, as if the bus stood still in the middle: of
 * what is written meanwhile they bring some. 0, which it is at first: none. */
void sim_net_stall_reads(struct sim_net *net, uint32_t ppm, uint64_t ns);

/* Devices that are opened from now on take what that card takes (model.h), and links that nothing
 * was said of are as its wire is. It decides all times then, and not the seed; what links and
 * faults do besides they still do. */
void sim_net_set_model(struct sim_net *net, const struct model_preset *preset);
/* From now on such a card is charged a doorbell for each request of a list, as if each had been
 * posted alone: what it would be without chaining. */
void sim_net_ring_each(struct sim_net *net);

/* ---- links */

struct sim_link {
    uint64_t delay_ns, jitter_ns; /* a packet takes delay_ns and up to jitter_ns more, in order */
    uint32_t late_ppm;            /* of packets, which take up to late_ns more, out of order */
    uint64_t late_ns;
    uint32_t loss_ppm, repeat_ppm; /* of packets: these are lost, those come twice */
    uint64_t bytes_per_us;         /* of long messages; 0: no limit */
    bool cut;                      /* nothing gets through */
};

#define SIM_ANY_NODE UINT32_MAX

/* From now on packets of `from` to `to` are treated so: either may be SIM_ANY_NODE, and what names
 * more nodes prevails. At first all have 2 us and 1 us jitter. A node reaches itself by a link
 * too. -ENOMEM. */
int sim_link_set(struct sim_net *net, uint32_t from, uint32_t to, const struct sim_link *link);
/* What is in force between two. */
struct sim_link sim_link_get(const struct sim_net *net, uint32_t from, uint32_t to);

/* ---- devices */

/* Opens one; fab_close() closes it. -EADDRINUSE, -ENOMEM, -EINVAL, with a sentence. */
int sim_device_open(struct sim_net *net, const struct sim_device_attr *attr, struct fab **out,
                    struct base_errbuf *err);

/* From now on these go wrong, and no others. */
void sim_device_set_faults(struct fab *fab, const struct sim_faults *faults);

/* The process that has it open dies, or its host does: all that it made is gone at once, without a
 * done() of what is under way, and so is the struct fab. Packets that are on their way arrive. Its
 * memory (fab_mem_alloc_for()) is freed. */
void sim_device_crash(struct fab *fab);
/* The host sleeps or is stopped: nothing of it goes on, and what arrives is lost. (A process alone
 * that is stopped is nothing to its device.) */
void sim_device_suspend(struct fab *fab, bool suspended);
/* The port's cable: events of it, and nothing gets through while it is down. */
void sim_device_set_port(struct fab *fab, bool up);
/* One of its connected queue pairs breaks with an event: one on which most is out, by chance.
 * False: it has none. */
bool sim_device_break_qp(struct fab *fab);
/* One of its DC targets, by chance, takes no request from now on; what it has accepted it carries
 * out. Its device tells of it, or does not, as mlx5's. False: it has none that is not broken. */
bool sim_device_break_target(struct fab *fab, bool tells);
/* Whether that happened to this one. */
bool sim_target_is_silent(const struct fab_dct *dct);
/* One of its completion queues, by chance, overflows. False: it has none. */
bool sim_device_overflow_cq(struct fab *fab);
/* How many objects of all kinds it has, but for the device itself. */
uint32_t sim_device_objects(const struct fab *fab);

#endif
