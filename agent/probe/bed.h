/* SPDX-License-Identifier: Apache-2.0 */
/* Private to agent/probe: the objects that the checks share, and how they use the fabric. No call
 * here ends the process or waits without end; errors are -errno for the check to tell of. */
#ifndef PROBE_BED_H
#define PROBE_BED_H

#include "fabric/iova.h"
#include "probe/probe.h"

enum {
    BED_HALF = 1 << 19, /* bytes of near memory, then as many of far memory */
    BED_WR = 64,        /* slots of a queue of which nobody says what an agent asks for */
    BED_QKEY = 0x4b656467,
    BED_ROUNDS = 200, /* of what is timed */
};

struct bed {
    struct fab *fab;
    const struct probe_settings *settings;
    struct probe_report *report;
    uint64_t wait_ns;
    uint64_t
        next_id; /* of a request; never used twice, so that a late completion is known as such */
    struct fab_pd *pd;
    struct fab_chan *chan;
    struct fab_cq *cq, *far_cq; /* of sends, on chan; of receives */
    struct fab_srq *srq;
    struct fab_mem mem;
    struct fab_iova iova; /* all regions are registered as the agent's are */
    struct fab_mr *near_mr, *far_mr;
    uint8_t *near, *far;
    struct fab_qp *rc[2]; /* [0] sends to [1] */
    bool rc_connects;     /* they have been in RTS, so that it is worth trying again */
    struct fab_qp *rc_srq[2];
    struct fab_qp *lonely; /* its peer keeps silent */
    struct fab_qp *silent;
    struct fab_qp *ud[2];
    struct fab_ah *ah;
    struct fab_dct *dct;
    struct fab_qp *dci;
};

/* What of it cannot be made is a failed check. False: without it there is nothing to try. */
bool probe_bed_open(struct bed *b, struct fab *fab, const struct probe_settings *s,
                    struct probe_report *report);
/* Destroys all; a failed check if something cannot be. Nothing at all when the device is stuck. */
void probe_bed_close(struct bed *b);

/* All that the device lets be done to memory, or through a queue pair. */
unsigned probe_bed_access(const struct bed *b);
/* And a DC target. */
unsigned probe_bed_target_access(const struct bed *b);
/* As fab_call(), for at most the bed's wait: then -ETIMEDOUT, and the report is stuck. */
int probe_bed_call(struct bed *b, struct fab_ctl *ctl);
/* A region of memory, at an address that none had before: 0 or -errno. */
int probe_bed_register(struct bed *b, const struct fab_mem *mem, uint64_t offset, uint64_t length,
                       unsigned access, struct fab_mr **out);
int probe_bed_deregister(struct bed *b, struct fab_mr *mr);
/* The queue pairs that an agent makes. */
enum bed_role {
    BED_INITIATOR, /* RC: of requests to another node */
    BED_RESPONDER, /* RC: of another node's requests */
    BED_READER,    /* RC: of a metaserver's table */
    BED_DATAGRAMS, /* UD: of handshakes */
    BED_DCI,
};
/* With the agent's own requests for it, as the settings say, or as much of it as the device has. */
int probe_bed_qp_new(struct bed *b, enum bed_role role, struct fab_srq *srq, struct fab_qp **out);
int probe_bed_ah_new(struct bed *b, struct fab_ah **out);

/* The other end of a queue pair. */
struct bed_far {
    uint8_t gid[16];
    uint16_t lid;
    uint32_t qpn;
    enum ibv_mtu mtu;
    bool hasty; /* with the agent's time-outs */
};

struct bed_steps {
    uint64_t ns[3];        /* INIT, with what it takes before that; RTR; RTS */
    enum ibv_qp_state now; /* where it failed to go, when it did */
};
/* Through INIT to RTS, connected to peer (NULL: UD and DCI). One that was used before is reused, as
 * the agent does it: *qp may be another one then, or NULL. Hasty: with the agent's time-outs, else
 * with long ones, so that a slow machine is not taken for a broken device. */
int probe_bed_raise(struct bed *b, struct fab_qp **qp, const struct fab_qp *peer, bool hasty,
                    struct bed_steps *steps);
/* One whose number the other end was told: it stays this one, and where RESET is final it is raised
 * once. */
int probe_bed_raise_to(struct bed *b, struct fab_qp *qp, const struct bed_far *far,
                       struct bed_steps *steps);
/* Whether the agent would use DC here. */
bool probe_bed_uses_dc(const struct bed *b);
/* Both of a pair, if one of them is not in RTS or force is set. */
int probe_bed_raise_pair(struct bed *b, struct fab_qp *qp[2], bool force, struct bed_steps *steps);
const char *probe_bed_state_name(enum ibv_qp_state state);

/* One request of one SGE; near and far are offsets. */
struct bed_wr {
    struct fab_wr wr;
    struct ibv_sge sge;
};
void probe_bed_fill(struct bed *b, struct bed_wr *w, enum ibv_wr_opcode opcode, uint64_t near,
                    uint64_t far, uint32_t length);
int probe_bed_post(struct fab_qp *qp, struct bed_wr *w);
/* One receive of length bytes into far memory at an offset; its id, or -errno. */
int64_t probe_bed_post_recv(struct bed *b, struct fab_qp *qp, uint64_t far, uint32_t length);
/* The completion of a request, others being dropped. 0; -ETIMEDOUT; -EIO: the queue is dead. */
int probe_bed_wait(struct fab_cq *cq, uint64_t wr_id, uint64_t wait_ns, struct ibv_wc *out);
/* Posts and waits. */
int probe_bed_do(struct bed *b, struct fab_qp *qp, struct bed_wr *w, struct ibv_wc *out);

/* A completion's status in words: a literal. */
const char *probe_bed_wc_name(enum ibv_wc_status status);
/* Says in a check what kept a call (0 or -errno) or a completion from success, with a way out for
 * the errors that have one. Returns whether it did succeed. */
bool probe_bed_succeeded(struct probe_check *c, const char *what, int status,
                         const struct ibv_wc *wc);

/* Durations of one operation. */
struct bed_times {
    uint64_t ns[BED_ROUNDS];
    unsigned count;
};
void probe_bed_time(struct bed_times *t, uint64_t ns);
uint64_t probe_bed_median(struct bed_times *t);
/* Numbers and the sentence of a check that went well: "8 bytes: 2.1 us (median of 200)". */
void probe_bed_tell_times(struct probe_check *c, const char *what, struct bed_times *t);

/* Groups of checks. */
void probe_memory_limits(struct probe_report *r, const struct probe_settings *s, bool locks);
void probe_transport(struct bed *b);
void probe_limits(struct bed *b);
void probe_placement(struct bed *b);
void probe_lease(struct bed *b);
void probe_clocks(struct bed *b);
void probe_rc(struct bed *b);
/* Of group rc, and of an agent's start. */
void probe_bed_try_addresses(struct bed *b, struct probe_check *c);
void probe_ud(struct bed *b);
void probe_dc(struct bed *b);
void probe_shapes(struct bed *b);
void probe_coverage(struct bed *b);
void probe_registration(struct bed *b);
void probe_holes(struct bed *b);

/* A check of a group: skipped when the device no longer answers. */
struct bed_case {
    const char *name;
    enum probe_need need;
    void (*run)(struct bed *b, struct probe_check *c);
};
void probe_bed_run(struct bed *b, const struct bed_case *cases, unsigned count);

/* What RC and DC are tried with alike: the queue pair, and how a request is addressed there. */
struct bed_path {
    struct fab_qp **qp;  /* the bed's, where a repair may put another one */
    struct fab_dct *dct; /* NULL: RC */
};
void probe_bed_address(const struct bed *b, const struct bed_path *path, struct bed_wr *w);
void probe_bed_try_write(struct bed *b, const struct bed_path *p, struct probe_check *c,
                         bool inlined);
void probe_bed_try_read(struct bed *b, const struct bed_path *p, struct probe_check *c);
void probe_bed_try_add(struct bed *b, const struct bed_path *p, struct probe_check *c);
void probe_bed_try_swap(struct bed *b, const struct bed_path *p, struct probe_check *c);
/* Requests to a peer that keeps silent, one or a few, on a queue pair with the agent's time-outs,
 * which is raised anew with that peer between them: how long the device tries, against what leases
 * allow for. */
void probe_bed_try_silence(struct bed *b, struct probe_check *c, struct fab_qp **qp,
                           const struct fab_qp *peer, struct bed_wr *w);
void probe_bed_try_merged(struct bed *b, const struct bed_path *p, struct probe_check *c);
void probe_bed_try_chain(struct bed *b, const struct bed_path *p, struct probe_check *c);

#endif
