/* SPDX-License-Identifier: Apache-2.0 */
/* The fabric: the one interface through which Kedge reaches a network, with several providers.
 *
 * States, statuses, opcodes, flags and limits are verbs' own, and so are the enums and plain
 * structs (ibv_qp_attr, ibv_ah_attr, ibv_sge, ibv_wc): <infiniband/verbs.h> is our vocabulary
 * everywhere. Its functions are called in fabric/verbs alone.
 *
 * Two halves, because hardware has two:
 *   - control operations (create, modify, destroy, register, resolve) may block on hardware. They
 * are submitted from any thread, executed by the provider (in fab_run(), or on threads of its
 * own), and completed by a callback in fab_run(), on the control thread.
 *   - posting and polling never block, allocate or lock, and belong to the thread that owns the
 * queue (a lane). A queue pair with a control operation under way is not touched by its lane.
 *
 * Objects are created and freed by control operations alone; whoever created one frees it, in the
 * reverse order (a queue pair before its CQ, everything before the PD). Busy objects answer -EBUSY,
 * as verbs do. */
#ifndef FABRIC_FABRIC_H
#define FABRIC_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct base_errbuf;
struct fab_model;
struct fab_ops;

enum fab_transport {
    FAB_RC = 1 << 0,
    FAB_UD = 1 << 1,
    FAB_DC = 1 << 2, /* DCIs and DC targets */
};

/* How the fabric is to treat what we send: part of every address of ours, and of every queue pair
 * and DC target. The same on all nodes that reach each other, but for the flow label. */
struct fab_service {
    uint8_t service_level; /* 0..15; on Ethernet the priority, 0..7 */
    uint8_t traffic_class; /* 0..255; of RoCE v2 the DSCP << 2, and the two bits of ECN */
    uint32_t flow_label;   /* 20 bits. RoCE v2: the UDP source port follows from it
                            * (fab_flow_label). 0: chosen for each connection and handle, so
                            * that equal paths through the network share the load */
    uint16_t pkey_index;   /* of the port's table: the partition, on InfiniBand */
    enum ibv_mtu mtu;      /* the most, where the port has more; 0: what the port has */
};

/* The flow label from which drivers make that UDP source port, 49152..65535, on RoCE v2. */
uint32_t fab_flow_label(uint16_t udp_source_port);

/* What the open device can do. Fixed while it is open. */
struct fab_caps {
    uint32_t transports; /* of enum fab_transport */
    uint32_t max_qp;
    uint32_t max_qp_wr;  /* send or receive slots of one queue pair */
    uint32_t max_sge;    /* SGEs of one work request */
    uint32_t max_inline; /* bytes */
    uint32_t max_cqe;
    uint32_t max_srq_wr;
    uint32_t max_mr;
    uint64_t max_mr_size;  /* bytes */
    uint64_t max_msg_size; /* bytes of one READ, WRITE or RC/DC SEND */
    uint32_t ud_payload;   /* bytes of one UD SEND (the MTU); receives need 40 more for the GRH */
    uint32_t max_rd_atomic;
    uint8_t gid[16]; /* this endpoint's, network order */
    uint8_t sgid_index;
    uint8_t port_num;
    uint16_t lid;         /* 0 on Ethernet */
    enum ibv_mtu mtu;     /* when it was opened: FAB_QUERY_PORT says what it is now */
    bool is_ethernet;     /* address handles need a GRH */
    bool dci_streams;     /* one DCI serves several targets at a time, each in order. After an error
                           * to one of them others go on for a while, and completions of one target
                           * overtake those of another: each stands for itself alone, also with an
                           * error, and all must be signalled */
    bool atomics;         /* CAS and FAA: of its own queue pairs, and on its memory */
    bool dc_atomics;      /* the same of its DC initiators, and by its DC targets, which may lack
                           * them where connected queue pairs have them */
    bool fences;          /* IBV_SEND_FENCE may be posted: where not, a request may hang by it */
    bool names_culprit;   /* an error's completion names the request that failed. Where not, it may
                           * name the oldest of which nothing was said, one that was executed too */
    bool writes_in_order; /* of what stands behind a WRITE that the peer refused nothing was
                           * executed on RC, but for what may overtake it by IBTA. Where not, later
                           * WRITEs may be in memory already */
    bool deadlines;       /* not_after_ns is kept to */
    bool posts_in_time;   /* else, it is looked at last of all before the doorbell */
    bool huge_pages;      /* memory that workers lend had better be of huge pages, of which a device
                           * needs      fewer entries. Where not, a CPU would have to touch them */
    uint32_t timeout_stretch; /* a time-out may take so many times what its number says: IBTA lets a
                               * channel adapter take four */
    uint64_t timeout_least_ns; /* and so long whatever its number says, as far as that is known of
                                * the device: no driver tells it */
    uint64_t port_rate;        /* bytes in a millisecond, when it was opened; 0: not known */
    uint64_t time_wait_ns; /* for so long packets of a queue pair's former life may still come in,
                            * after it has left RTS or its responder RTR: twice the lifetime of a
                            * packet and the delay of an acknowledgement (IBTA 12.9.8.5.2,
                            * TimeWait). 0: nothing outlives a queue pair */
    uint64_t slack_ns;     /* longest pause between ringing a doorbell and the device seeing it */
    struct fab_service service; /* as it was opened with */
    int numa_node; /* of the host, at which the device is; -1: it has none, or nobody says */
    uint32_t comp_vectors; /* 1 or more: interrupts that completion queues are spread over */
    char dc_why[128];      /* why there is no FAB_DC, as a sentence; empty when there is, or when
                            * the provider has no such notion */
};

/* Of control operations. */
enum fab_ctl_kind {
    FAB_ALLOC_PD = 1,
    FAB_FREE_PD,
    FAB_REG_MR,
    FAB_DEREG_MR,
    FAB_CREATE_CHAN,
    FAB_DESTROY_CHAN,
    FAB_CREATE_CQ,
    FAB_DESTROY_CQ,
    FAB_CREATE_SRQ,
    FAB_DESTROY_SRQ,
    FAB_CREATE_QP,
    FAB_MODIFY_QP,
    FAB_DESTROY_QP,
    FAB_CREATE_DCT,
    FAB_DESTROY_DCT,
    FAB_CREATE_AH,
    FAB_DESTROY_AH,
    FAB_QUIESCE_MR,
    FAB_QUERY_PORT,
    FAB_QUERY_ADDRESS,
    FAB_QUERY_CLOCK,
    FAB_QUERY_PKEY,
    FAB_QUERY_QP,
};
enum { FAB_CTL_KINDS = FAB_QUERY_QP + 1 /* all are below it */ };

/* An open device: one endpoint (port and GID). Base of every provider's own struct. */
struct fab {
    const struct fab_ops *ops;
    struct fab_caps caps;
    bool resets_are_final; /* as reuse.h has found: a queue pair has one life. Control thread */
    _Atomic uint32_t waits_for; /* enum fab_ctl_kind of what fab_call() waits for; 0: it does not */
    uint32_t retiring[FAB_CTL_KINDS]; /* retire.h: that are being destroyed. Control thread */
    uint32_t undestroyed; /* retire.h: that the device has refused to destroy. Control thread */
    void (*number_gone)(void *user); /* retire.h: a queue pair has gone. Or NULL. Control thread */
    void *number_user;
    const struct fab_model *model; /* model.h: what it takes is a model's; NULL: its own */
};

/* Objects. Public fields are set at creation and read-only. */
struct fab_pd {
    struct fab *fab;
    struct fab_service service; /* of what is made in it */
    uint16_t
        pkey; /* InfiniBand: the P_Key that was at service.pkey_index when it was made, by which
               * FAB_QUERY_PKEY finds it again; 0: the port has but one, or does not say */
};

struct fab_mr {
    struct fab_pd *pd;
    uint32_t lkey, rkey;
    uint64_t addr; /* what peers and SGEs call its first byte: the I/O virtual address */
    uint64_t length;
};

/* A completion channel: a file descriptor that becomes readable after an armed CQ got a completion.
 */
struct fab_chan {
    struct fab *fab;
    int fd; /* for epoll, borrowed, valid while the channel lives; never read it */
};

struct fab_cq {
    struct fab *fab;
    uint32_t cqe; /* room: every send slot and every receive slot that completes here */
    void *user;   /* the creator's */
};

struct fab_srq {
    struct fab_pd *pd;
    uint32_t max_wr;
};

enum fab_qp_type { FAB_QP_RC = 1, FAB_QP_UD, FAB_QP_DCI };

struct fab_qp_cap {
    uint32_t send_wr, recv_wr; /* recv_wr 0 with an SRQ and on a DCI */
    uint32_t send_sge, recv_sge;
    uint32_t inline_bytes;
};

struct fab_qp {
    struct fab_pd *pd;
    enum fab_qp_type type;
    uint32_t qpn; /* 24 bits */
    struct fab_cq *send_cq, *recv_cq;
    struct fab_srq *srq; /* or NULL */
    struct fab_qp_cap cap;
    void *user;
    _Atomic bool leaves; /* its destruction was submitted: fab_get_event() says nothing of it any
                          * more */
};

/* A DC target: usable as soon as it is created (its number exists only then). */
struct fab_dct {
    struct fab_pd *pd;
    uint32_t dctn; /* 24 bits */
    uint64_t dc_key;
};

struct fab_ah {
    struct fab_pd *pd;
    uint8_t dgid[16];
};

/* Registered memory is a sealed memfd: workers may map it, and `soft` reaches it across processes.
 * A provider whose devices are all in one process may give other memory (fab_mem_alloc_for()). */
struct fab_mem {
    void *addr;  /* page-aligned, mapped shared and writable here */
    size_t size; /* multiple of the page size */
    int fd;      /* memfd, SHRINK|GROW|SEAL sealed; -1: none, and no other process maps it */
    bool huge;   /* of huge pages */
    bool whole;  /* no other process keeps who touches it waiting: nobody can punch holes in it
                  * (base_memfd_keep_whole()), nor make huge pages of it (base/hold.h) */
    int *hold;   /* what holds its pages, one after the other; NULL: nothing does */
    uint32_t holds;
    void (*give_back)(struct fab_mem *mem); /* the provider's that it is of; NULL: a memfd's */
};

/* Makes size bytes (rounded up to pages) of zeroed memory. -ENOMEM, -EMFILE. Any thread. Blocks. */
int fab_mem_alloc(size_t size, const char *name, struct fab_mem *out);
/* The same of huge pages (2 MiB), where size is a multiple of theirs and the host has some to
 * spare; else as above. A device needs fewer entries for them. Only for memory that no CPU of ours
 * touches once others map it: who punches holes in it and takes the pages makes touching it fatal.
 */
int fab_mem_alloc_huge(size_t size, const char *name, struct fab_mem *out);
/* Either of them, for a process that is not trusted, which gets the descriptor: whole, if that can
 * be had. Unless `unwanted` (NULL: never) is set before it is made, by any thread:
 * -ECANCELED, within some ms of that. */
int fab_mem_alloc_lent(size_t size, const char *name, bool huge, const _Atomic bool *unwanted,
                       struct fab_mem *out);
/* For a provider to which the kernel gives no pages that may not stay where they are (ZONE_MOVABLE,
 * CMA): it moves them before it pins them, and cannot while they are held. Lets them go: true, and
 * fab_mem_hold_again() is to follow, also when registering has failed again. False: none is held.
 * Of memory of which nothing is registered, nor anything else of it being so. Blocks. */
bool fab_mem_let_move(const struct fab_mem *mem);
/* Where they are now. 0 or -errno: none is held, though `held` and `whole` stay. */
int fab_mem_hold_again(const struct fab_mem *mem);
/* The same as fab_mem_alloc(), for memory that no other process needs: of the provider's own kind,
 * where it has one. To be freed before the device is closed. */
int fab_mem_alloc_for(struct fab *fab, size_t size, const char *name, struct fab_mem *out);
/* Zeroes all of it without touching it, when nothing is registered in it: whoever maps it too may
 * have punched holes. 0; or -ENOMEM or another -errno: it is of no more use than to be freed. Any
 * thread. Blocks, and yields now and then. */
int fab_mem_zero(const struct fab_mem *mem);
/* Unmaps it, and leaves its file to the caller, who empties it (base_memfd_empty()) and closes it:
 * so nobody who keeps it keeps pages. He finds zeros there; in huge pages, where the host
 * has none to spare, SIGBUS. -1: it had none, and is freed. Everything registered in it must have
 * been deregistered. Any thread. Yields now and then. */
int fab_mem_leave(struct fab_mem *mem);
/* Unmaps and closes. Everything registered in it must have been deregistered. */
void fab_mem_free(struct fab_mem *mem);
/* A device may use it for as long as this process lives: it stays mapped and held, and nobody knows
 * of it any more. */
void fab_mem_lose(struct fab_mem *mem);

/* ---- opening */

/* KEDGE_SOFT_KEYS in the environment makes `soft` as unkind as a device may be: "return" or
 * "return:SEED", the keys of a region that is gone are those of the next one, the last one's first;
 * with a seed other than 0 now and then an earlier one's, or new ones.
 * KEDGE_SOFT_ORDER=late:SEED makes `soft` as unkind in its order as a responder may be: half of the
 * READs and atomics are overtaken by WRITEs, SENDs and atomics without a fence that come behind
 * them; late-writes:SEED: WRITEs by WRITEs too (caps.writes_in_order); unseen-writes:SEED: WRITEs
 * and SENDs are acknowledged before anybody sees them (docs/fabric.md). */
struct fab_open_attr {
    const char *device; /* soft: a directory on tmpfs (NULL: the default); verbs: a device name */
    uint8_t port;       /* 0: the first one that is up */
    uint8_t gid[16];    /* soft: the GID to take; verbs: which of the port's; zero: choose */
    struct fab_service service;
    uint8_t dci_streams; /* verbs: streams of a DCI, at most, where the device has them; 0: none */
    const char *model;   /* soft: the cost model's preset by which completions are held back
                          * (model.h); NULL: none */
};

struct fab_provider {
    const char *name;  /* "soft" */
    const char *about; /* for people: "one host, no RNIC" */
    const char *usual; /* what device NULL is, for people; NULL: the first that does */
    /* What is so of each of its devices, for those who have not opened one yet: */
    bool rdma_devices; /* they are those of devices.h */
    bool wire;         /* what is sent may be lost, and is late by as much as a network is */
    bool locks_memory; /* registered memory counts as locked (RLIMIT_MEMLOCK) */
    bool deadlines;    /* as in fab_caps */
    bool by_proc;      /* it reaches peers' memory through /proc: nodes share one host's */
    bool models;       /* it takes fab_open_attr.model */
    /* Opens the device. -errno with a sentence in err. */
    int (*open)(const struct fab_open_attr *attr, struct fab **out, struct base_errbuf *err);
    /* Whether looking at the device (NULL: the provider's own) tells already that it cannot be
     * opened; changes nothing. 0, or what open() would say. Or NULL: only opening it tells. */
    int (*check)(const char *device, struct base_errbuf *err);
    /* The path of a device (NULL: the provider's own) that is a directory: opening makes it when it
     * is not there. 0 or -ENAMETOOLONG. NULL: devices are none. */
    int (*directory)(const char *device, char *out, size_t bytes);
};

extern const struct fab_provider fab_soft;
/* libibverbs: RC, UD, and DC where mlx5 offers it. In a library of its own, kedge_fabric_verbs.
 * Asking for a queue pair's state is a system call there, and so is arming on some devices. */
extern const struct fab_provider fab_verbs;

/* Closes; every object must have been freed before (-EBUSY otherwise, and nothing happens). Pending
 * control operations complete with -ECANCELED first. -ETIMEDOUT: the device does not come back from
 * one within FAB_CLOSE_MS, and may use its memory until the process ends; nothing was closed. */
enum { FAB_CLOSE_MS = 10000 };
int fab_close(struct fab *fab);

/* Where to, as an address handle or a connected queue pair says it: the port and GID that we send
 * from, and the service, are the open device's. lid: the peer's, 0 on Ethernet. */
struct ibv_ah_attr fab_address(const struct fab *fab, const uint8_t gid[16], uint16_t lid);
/* The same with the service of that domain, in which the handle or queue pair is. */
struct ibv_ah_attr fab_pd_address(const struct fab_pd *pd, const uint8_t gid[16], uint16_t lid);
/* Whether packets take the same way to the same port, with the same service: a handle of the one
 * does for the other. On InfiniBand a port's LID may change while its GID stays. */
bool fab_address_is_same(const struct ibv_ah_attr *a, const struct ibv_ah_attr *b);
/* The largest MTU of what is made in it. */
enum ibv_mtu fab_pd_mtu(const struct fab_pd *pd);
/* What peers may be let do at most (enum ibv_access_flags), by a queue pair, a DC target or a
 * region: some devices take none of them with REMOTE_ATOMIC where they have no atomics. */
unsigned fab_remote_access(const struct fab *fab);
/* The same by a DC target. */
unsigned fab_target_access(const struct fab *fab);
/* What every queue pair is given in INIT: state, port and P_Key index; add what its type needs. */
struct ibv_qp_attr fab_init_attr(const struct fab *fab);
struct ibv_qp_attr fab_pd_init_attr(const struct fab_pd *pd);

/* ---- control operations */

/* How peers would name and reach this device now, at the port that it was opened with: an address
 * that comes and goes, a cable or a subnet manager changes that under an open device. */
struct fab_own_address {
    bool active;        /* requests can leave it */
    bool has_gid;       /* the GID that was asked for is there, and can be used */
    uint8_t sgid_index; /* of that GID */
    uint16_t lid;       /* 0 on Ethernet */
    bool has_other;     /* it may choose, and would choose `other` now */
    uint8_t other[16];
    uint8_t other_index;
};

/* The device's free-running clock at one moment, which lies between two of the host's: far apart
 * when whoever read it stood still meanwhile. It counts from anywhere, begins anew when the device
 * does, and goes on while the host's clock is stopped or steered. */
struct fab_clock {
    uint64_t before_ns, after_ns; /* of base_clock_ns() */
    uint64_t ticks;               /* of it, modulo 2^bits */
    uint64_t hz;                  /* as the device says, which a crystal keeps to 1 in 10,000 */
    uint8_t bits;                 /* 1..64 */
};

/* One control operation: the caller's memory, untouched by it from submission until done() is
 * called. A creation fills the object's pointer (also named here: `x` goes in for a free, comes out
 * of a create). */
struct fab_ctl {
    enum fab_ctl_kind kind;
    int status;                        /* 0 or -errno, valid in done() */
    void (*done)(struct fab_ctl *ctl); /* on the thread in fab_run(); may submit, may free ctl */
    void *user;
    union {
        struct {
            struct fab_pd *x;
            const struct fab_service *service; /* ALLOC: NULL: the device's. Borrowed */
        } pd;
        struct {
            struct fab_mr *x;
            struct fab_pd *pd;
            const struct fab_mem *mem; /* borrowed until the region is deregistered */
            uint64_t offset, length;   /* inside mem; any alignment, length > 0 */
            unsigned access;           /* of enum ibv_access_flags */
            uint64_t iova; /* where peers and SGEs find its first byte; 0: its address in this
                            * process. One that does not fit that (fab_iova_fits()): -EINVAL */
        } mr; /* Its keys may be those of a region that is gone, as they may come back from it; with
               * an address that was never used nothing but this region is reached under them.
               * DEREG_MR is done when no remote operation can touch it */
        struct {
            uint32_t rkey; /* one that is gone by now is quiesced, too; one that is another region's
                            * by now is waited for like that region's */
            void *progress; /* the provider's */
        } quiesce; /* QUIESCE_MR is done when what had begun in the region before it was submitted
                    * is over, or goes no further since its not_after_ns is over; on a device
                    * without `deadlines`, where nobody can tell, at once */
        struct {
            enum ibv_mtu active; /* that the port takes now */
            enum ibv_mtu mtu;    /* that queue pairs can be connected with: no more than that of
                                  * the service */
        } port;                  /* QUERY_PORT fills it in: devices tell of a change by no event */
        struct {
            uint8_t gid[16];            /* the one to look for */
            struct fab_own_address now; /* filled in */
        } address;
        struct {
            uint16_t pkey;  /* the one to look for: by its number, a full membership first */
            bool there;     /* filled in: the port's table has it */
            uint16_t index; /* filled in: its place there */
        } pkey;             /* QUERY_PKEY */
        struct {
            struct fab_qp *x;
            enum ibv_qp_state state; /* filled in: as fab_qp_state() */
        } asked;                     /* QUERY_QP */
        struct fab_clock clock;      /* QUERY_CLOCK fills it in; -EOPNOTSUPP: the device has none */
        struct {
            struct fab_chan *x;
        } chan;
        struct {
            struct fab_cq *x;
            uint32_t cqe;
            struct fab_chan *chan; /* or NULL: never armed */
            uint32_t comp_vector;  /* below comp_vectors */
            void *user;
        } cq;
        struct {
            struct fab_srq *x;
            struct fab_pd *pd;
            uint32_t max_wr, max_sge;
        } srq;
        struct {
            struct fab_qp *x;
            struct fab_pd *pd;
            enum fab_qp_type type;
            struct fab_cq *send_cq, *recv_cq;
            struct fab_srq *srq;
            struct fab_qp_cap cap; /* the created queue pair has at least this */
            void *user;
        } qp; /* a new queue pair is in RESET */
        struct {
            struct fab_qp *x;
            struct ibv_qp_attr attr; /* ah_attr of fab_address(): on InfiniBand (not
                                      * is_ethernet) with a dlid that is never 0; INIT of
                                      * fab_init_attr(); masks as for verbs */
            int mask;                /* of enum ibv_qp_attr_mask; -EINVAL where verbs refuses it */
        } modify;                    /* to RESET: drops what is queued, without completions */
        struct {
            struct fab_dct *x;
            struct fab_pd *pd;
            struct fab_cq *cq;
            struct fab_srq *srq;
            uint64_t dc_key;
            unsigned access;
            struct ibv_ah_attr self; /* the provider's */
            uint16_t pkey_index;     /* the provider's */
        } dct;
        struct {
            struct fab_ah *x;
            struct fab_pd *pd;
            struct ibv_ah_attr attr; /* likewise */
        } ah;
    };
    struct fab_ctl *next; /* the provider's while submitted */
};

/* Queues ctl. Any thread; never blocks. ctl->status and done() tell how it went. Operations that
 * need one object, one of them to change or free it, are executed in the order of submission;
 * others in any order, or at once. */
void fab_submit(struct fab *fab, struct fab_ctl *ctl);
/* Executes what was submitted and calls done() for what is over; one thread at a time, the control
 * thread. Returns how many completed. Some (a deregistration with a process inside the region) stay
 * pending without blocking the others. */
int fab_run(struct fab *fab);
/* Readable (EPOLLIN) when fab_run() has something to do. Borrowed; never read it. Of `sim` this and
 * the other descriptors are numbers that its net alone knows (sim.h). */
int fab_ctl_fd(const struct fab *fab);
/* Waits until fab_run() has something to do, for about a second at most. Control thread. */
void fab_wait(struct fab *fab);
/* "destroying a DC target", ...: a literal, for sentences; "an operation" for a number that is
 * none. */
const char *fab_ctl_name(uint32_t kind);
/* Submits, runs and waits until this one is done, which a device that hangs never does (waits_for
 * says what it is, to any thread): for start-up, tools and tests, on the control thread. */
int fab_call(struct fab *fab, struct fab_ctl *ctl);
/* A daemon that ends waits no longer for a device that is to take back what it has of it. */
enum { FAB_STOP_MS = 15000 };

/* What a port's query has told holds from now on: for the caps, and so for whatever is created or
 * connected later. What there is keeps the address that it was made with, and what was submitted
 * before has that too. On the control thread, which alone submits what has an address. */
void fab_set_address(struct fab *fab, const uint8_t gid[16], uint8_t sgid_index, uint16_t lid);

/* The P_Key of this domain is at another place of the port's table: so for what goes to INIT, or is
 * created as a DC target, from now on. What there is keeps the place, which is another partition's
 * or nobody's. On the control thread. */
void fab_set_pkey_index(struct fab_pd *pd, uint16_t index);

/* ---- data path: the thread that owns the queue */

/* What a request may reach, and until when: side by side, since who keeps both copies them as one.
 */
struct fab_key {
    uint64_t not_after_ns; /* of base_clock_ns(); 0: none. One-sided, on a device with `deadlines`:
                            * not begun later, also when our thread stands still between posting
                            * and that; it completes with IBV_WC_RESP_TIMEOUT_ERR, and neither it
                            * nor what is behind it was executed. With `posts_in_time`: not posted
                            * later */
    uint32_t rkey;
};

struct fab_wr {
    uint64_t wr_id;
    struct fab_wr *next;
    const struct ibv_sge *sg_list; /* borrowed until posted; addr is in the region's own address
                                    * space, and with IBV_SEND_INLINE in this process's */
    int num_sge;
    enum ibv_wr_opcode opcode; /* SEND, SEND_WITH_IMM, RDMA_READ, RDMA_WRITE, RDMA_WRITE_WITH_IMM,
                                * ATOMIC_CMP_AND_SWP, ATOMIC_FETCH_AND_ADD */
    unsigned send_flags;       /* SIGNALED, INLINE, FENCE, SOLICITED */
    uint32_t imm_data;         /* network order */
    struct fab_key key;
    uint64_t remote_addr; /* atomics: 8-byte aligned. Where it overlaps the SGEs, the destination
                           * holds whatever the source held meanwhile; nothing else is touched */
    uint64_t compare_add, swap;
    /* UD and DCI: where to. */
    struct fab_ah *ah;
    uint32_t dest_qpn; /* UD queue pair or DC target */
    union {
        uint32_t qkey;
        uint64_t dc_key;
    };
};

/* Posts a list; one doorbell for all. 0, or -errno with *bad at the first that was not posted
 * (those before it were): -ENOMEM send queue full, -EINVAL malformed or wrong state, -ETIME that
 * one or one behind it comes too late (posts_in_time). In ERR, requests are accepted
 * and flushed. Unsignalled requests hold their slot until a later signalled one is polled, as with
 * verbs. */
int fab_post_send(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad);

struct fab_recv_wr {
    uint64_t wr_id;
    struct fab_recv_wr *next;
    const struct ibv_sge *sg_list;
    int num_sge;
};
int fab_post_recv(struct fab_qp *qp, struct fab_recv_wr *wr, struct fab_recv_wr **bad);
int fab_post_srq_recv(struct fab_srq *srq, struct fab_recv_wr *wr, struct fab_recv_wr **bad);

/* Up to n completions into wc. Returns how many, or -EIO once the CQ has overflowed (it is then
 * dead). Also what drives a software provider: call it while anything is outstanding. Of a
 * completion with an error only wr_id, status, vendor_err and qp_num are valid. */
int fab_poll(struct fab_cq *cq, int n, struct ibv_wc *wc);

/* Asks for the channel's fd to become readable at the next completion. After arming, poll once
 * more: what came before arming raises nothing. */
int fab_arm(struct fab_cq *cq, bool solicited_only);
/* Whether the next poll will go on with what an earlier one began (a software provider, with long
 * requests): whoever sleeps now is woken at once. */
bool fab_is_busy(const struct fab_cq *cq);
/* Consumes the channel's pending events, so that its fd is no longer readable. Never blocks. */
void fab_chan_drain(struct fab_chan *chan);

/* The state as the device sees it now (a peer's access error moves it to ERR). Any thread. Blocks,
 * as a system call or a command to the firmware may: who must not submits FAB_QUERY_QP. */
enum ibv_qp_state fab_qp_state(const struct fab_qp *qp);

/* ---- asynchronous events: the control thread */

/* Of a queue pair: after its RESET none of its former life is handed out, but one that the device
 * had sent and that was not taken yet may be: ask for its state. None is handed out once its
 * destruction was submitted, so that of whose event was got something may still be asked. */
struct fab_event {
    enum ibv_event_type type; /* QP_FATAL, QP_ACCESS_ERR, CQ_ERR, PORT_ERR, DEVICE_FATAL, ... */
    union {
        struct fab_qp *qp; /* NULL: it is a DC target's */
        struct fab_cq *cq;
        struct fab_srq *srq;
    };
};
/* Whether it is the queue pair that is named. */
bool fab_event_is_of_qp(enum ibv_event_type type);
int fab_event_fd(const struct fab *fab);
/* 1 and an event, or 0. Never blocks. */
int fab_get_event(struct fab *fab, struct fab_event *out);

/* ---- times */

/* The longest that a posted operation can still be executed or tried, in ns, from a queue pair's
 * attributes: 4.096 us x 2^timeout x (retry_cnt + 1) (IBTA 9.7.6.1.3) as far as the device
 * stretches it, or has longer ones at the least, plus the same for what may stand before it. The
 * `bound` of the lease rule. timeout 0 means for ever: UINT64_MAX. */
uint64_t fab_bound_ns(const struct fab_caps *caps, uint8_t timeout, uint8_t retry_cnt);
/* The longest until the device sends again what was not acknowledged: the same of one try. */
uint64_t fab_timeout_ns(const struct fab_caps *caps, uint8_t timeout);

#endif
