/* SPDX-License-Identifier: Apache-2.0 */
/* Private to fabric/verbs: the structs around those of libibverbs, and what the files call of each
 * other. The one home of libibverbs.
 *
 * Threads: lanes post and poll. The provider's own: workers, which carry out control operations
 * (executor.h), and one that hears the device, and keeps its asynchronous events. fab_run(), on
 * the caller's control thread, hands back what is over, and is where objects are freed. */
#ifndef VERBS_VERBS_H
#define VERBS_VERBS_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "fabric/events.h"
#include "fabric/provider.h"
#include "verbs/dc.h"
#include "verbs/executor.h"
#include "verbs/qpn.h"

struct base_errbuf;

enum {
    VERBS_QPN_PAGE = 4096, /* queue pair numbers have 24 bits: 4096 pages of 4096 */
    VERBS_CHUNK = 32,      /* requests of one doorbell */
    VERBS_RXE_VENDOR = 0xffffff,
    VERBS_MELLANOX_VENDOR = 0x2c9,
};

struct verbs_fab {
    struct fab base;
    struct ibv_context *context;
    struct verbs_dc dc;
    struct verbs_executor pool;
    pthread_t hears;
    _Atomic bool stop; /* the thread that hears has to end */
    int stop_efd;      /* and wakes up by this */
    ino_t node;        /* of the device in sysfs when it was opened; 0: it cannot be seen there */
    uint8_t wanted_gid[16]; /* that it was opened with; zero: choose */
    _Atomic bool removed;   /* the device is gone: all commands end with EIO */
    bool rxe;               /* the device is SoftRoCE's, which has ways of its own */
    uint8_t clock_bits;     /* of its free-running clock */
    uint64_t clock_hz;      /* the rate of that clock; 0: it has none */
    struct fab_events events;
    _Atomic(struct verbs_qpn *) qpn_page[VERBS_QPN_PAGE];
    _Atomic uint64_t epoch; /* the last one given to a number; 40 bits are enough */
};

/* `users` of every object: counted by the workers. Whoever frees one needs it for itself alone, so
 * that nobody begins to use it between the check and the end. */
struct verbs_pd {
    struct fab_pd base;
    struct ibv_pd *pd;
    _Atomic uint32_t users;
};

struct verbs_mr {
    struct fab_mr base;
    struct ibv_mr *mr;
};

struct verbs_chan {
    struct fab_chan base;
    struct ibv_comp_channel *chan;
    _Atomic uint32_t users;
};

struct verbs_cq {
    struct fab_cq base;
    struct ibv_cq *cq;
    struct verbs_fab *fab;
    struct verbs_chan *chan; /* or NULL */
    _Atomic bool dead;       /* it has overflowed */
    _Atomic uint32_t users;
    /* Of rxe_cq_filter.c, on rxe alone. */
    pthread_mutex_t lock;
    struct ibv_wc *kept; /* cqe of them, or NULL */
    uint32_t kept_first, kept_count;
};

struct verbs_srq {
    struct fab_srq base;
    struct ibv_srq *srq;
    _Atomic uint32_t users;
};

struct verbs_ah {
    struct fab_ah base;
    struct ibv_ah *ah;
    uint32_t hash; /* of the GID and LID that it leads to */
};

struct verbs_dct {
    struct fab_dct base;
    struct ibv_qp *qp;
    struct verbs_cq *cq;
    struct verbs_srq *srq;
};

/* The send queue is counted here, because devices differ: rxe gives a slot back when a request was
 * executed, mlx5 when its completion was polled, which is what fabric.h says. */
struct verbs_qp {
    struct fab_qp base;
    struct ibv_qp *qp;
    struct ibv_qp_ex *ex;    /* of a DCI, else NULL */
    struct mlx5dv_qp_ex *dv; /* likewise */
    uint8_t log_streams;     /* likewise; 0: none */
    struct verbs_qpn *qpn;
    struct verbs_ring *ring; /* of a DCI with streams; NULL: requests complete in their order */
    uint64_t life;           /* in the ring's ids */
    _Atomic uint32_t state;  /* of enum ibv_qp_state, as last set */
    pthread_mutex_t asked;   /* while it is asked for its state, or is about to go */
    bool going;              /* `asked`: it is being destroyed */
    /* The posting thread's. */
    uint32_t posted, freed; /* send slots taken and given back, running */
    uint32_t marked, seen;  /* signalled requests posted and known to be completed, running */
    uint32_t mask;          /* of mark: its size - 1 */
    uint32_t mark[];        /* `posted` after each signalled request */
};

static inline struct verbs_fab *verbs_of(const struct fab *fab)
{
    return (struct verbs_fab *)fab;
}

/* The number's entry, or NULL if no queue pair of ours ever had one near it. */
static inline struct verbs_qpn *verbs_qpn_find(struct verbs_fab *f, uint32_t qpn)
{
    struct verbs_qpn *page = atomic_load_explicit(
        &f->qpn_page[(qpn / VERBS_QPN_PAGE) % VERBS_QPN_PAGE], memory_order_acquire);
    return page != NULL ? &page[qpn % VERBS_QPN_PAGE] : NULL;
}

/* port_query.c */
/* The largest MTU of that port that the service allows. */
enum ibv_mtu verbs_port_mtu(const struct ibv_port_attr *port, const struct fab_service *service);
/* On a worker: FAB_QUERY_PORT. 0 or -errno. */
int verbs_port_query(struct verbs_fab *f, struct fab_ctl *ctl);
/* On a worker. The P_Key at that place of the port's table; 0: there is none, or it is Ethernet. */
uint16_t verbs_pkey_of(const struct verbs_fab *f, uint16_t index);
/* On a worker: FAB_QUERY_PKEY. 0 or -errno. */
int verbs_pkey_query(struct verbs_fab *f, struct fab_ctl *ctl);

/* raw_clock.c: once, when the device is opened. */
void verbs_clock_describe(struct verbs_fab *f);
/* On a worker. 0 or -errno; -EOPNOTSUPP: the device, or its driver, has none that can
 * be read. */
int verbs_clock_query(struct verbs_fab *f, struct fab_ctl *ctl);

/* select.c */
struct verbs_choice {
    struct ibv_context *context; /* open; the caller's to close */
    uint8_t port;
    struct ibv_port_attr port_attr;
    uint8_t gid[16];
    uint8_t sgid_index;
};
/* Finds the device, port and GID that attr names, or the first that can be used. -ENODEV, -ENOENT,
 * -ENETDOWN, -EACCES; the sentence names what there is. Blocks. */
int verbs_select(const struct fab_open_attr *attr, struct verbs_choice *out,
                 struct base_errbuf *err);
/* On a worker: FAB_QUERY_ADDRESS of the open device. */
int verbs_address_query(struct verbs_fab *f, struct fab_ctl *ctl);

/* control.c */
/* 0 or -errno; the pool is to be ended in either case. */
int verbs_control_init(struct verbs_fab *f);
/* Fills in what an operation needs; *out is zeroed before. */
void verbs_needs_of(const struct fab_ctl *ctl, struct verbs_needs *out);
/* Of the workers and the one that hears: all of them, or none and -errno. */
int verbs_threads_start(struct verbs_fab *f);
/* As verbs_executor_stop(). */
int verbs_threads_stop(struct verbs_fab *f);

/* rxe_cq_filter.c */
/* 0 or -ENOMEM. */
int verbs_filter_init(struct verbs_cq *c);
void verbs_filter_fini(struct verbs_cq *c);
/* The lane: as ibv_poll_cq(), with what was kept first. */
int verbs_filter_poll(struct verbs_cq *c, int n, struct ibv_wc *wc);
/* A worker: forgets the completions of a queue pair. Nothing on a device that does so itself. */
void verbs_filter_purge(struct fab_cq *cq, uint32_t qpn);

/* events.c */
/* On a worker: what the destruction of an object comes to whose device may be gone. The kernel has
 * destroyed all of a removed device's itself, and libibverbs keeps its part of them: so ours goes.
 */
int verbs_destroyed(const struct fab *fab, int status);
/* One event: for the CQ that it is about, and kept for the control thread. */
void verbs_events_handle(struct verbs_fab *f, const struct ibv_async_event *e);
/* The thread that hears: takes what the device has to say. False once it will say no more. */
bool verbs_events_take(struct verbs_fab *f);
/* The device's inode in sysfs, 0 if it is not there. */
ino_t verbs_events_node(const struct ibv_context *context);
/* The thread that hears: true, and the device is fatal, if it was removed without saying so. */
bool verbs_events_removed(struct verbs_fab *f);

#endif
