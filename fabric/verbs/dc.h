/* SPDX-License-Identifier: Apache-2.0 */
/* mlx5's dynamically connected transport: DCIs, which send, and DCTs, which are sent to.
 *
 * Never run on hardware: no ConnectX was there when this was written. It is checked against a
 * stand-in (tests/unit/fabric/dc_stand_in.h) for the functions of struct verbs_calls, which holds
 * the provider to what rdma-core's own tests and manual pages do. That is why they are called
 * through pointers.
 *
 * libmlx5 is looked for when a device is opened, not linked: without it, or on another device,
 * caps.transports lacks FAB_DC, and caps.dc_why says why. */
#ifndef VERBS_DC_H
#define VERBS_DC_H

#include <infiniband/mlx5dv.h>

#include "fabric/fabric.h"

struct verbs_fab;
struct verbs_qp;

enum {
    VERBS_DC_SGE = 64, /* SGEs of one request of a DCI, at most */
    /* Of a READ: mlx5 takes 512 bytes of such a request, 16 of which are its head, 48 its address
     * vector, 16 the remote address and each 16 an SGE. Of the address vector what the device says
     * (max_sge_rd: 30) knows nothing. */
    VERBS_DC_READ_SGE = (512 - 16 - 48 - 16) / 16,
    VERBS_DC_MIN_RNR_TIMER = 12, /* 0.64 ms: of a DCT without a receive */
};

/* What the provider calls of libibverbs and of libmlx5 for queue pairs that may be DC's, and for
 * what leads to peers. The names without their prefix; see their manual pages. */
struct verbs_calls {
    struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
    int (*dealloc_pd)(struct ibv_pd *pd);
    struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe, void *cq_context,
                                struct ibv_comp_channel *channel, int comp_vector);
    int (*destroy_cq)(struct ibv_cq *cq);
    struct ibv_srq *(*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
    int (*destroy_srq)(struct ibv_srq *srq);
    struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
    int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
    int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                    struct ibv_qp_init_attr *init);
    int (*destroy_qp)(struct ibv_qp *qp);
    struct ibv_ah *(*create_ah)(struct ibv_pd *pd, struct ibv_ah_attr *attr);
    int (*destroy_ah)(struct ibv_ah *ah);
    int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out);
    int (*query_pkey)(struct ibv_context *context, uint8_t port, int index, __be16 *out);
    struct ibv_qp_ex *(*qp_to_qp_ex)(struct ibv_qp *qp);
    /* libmlx5's: NULL until it is loaded. */
    bool (*dv_is_supported)(struct ibv_device *device);
    int (*dv_query_device)(struct ibv_context *context, struct mlx5dv_context *out);
    struct ibv_qp *(*dv_create_qp)(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                   struct mlx5dv_qp_init_attr *dv);
    struct mlx5dv_qp_ex *(*dv_qp_ex)(struct ibv_qp_ex *qp);
};

/* Of an open device. */
struct verbs_dc {
    struct verbs_calls calls;
    void *library;          /* of dlopen(), or NULL */
    bool is_mlx5;           /* libmlx5 is the device's */
    uint8_t wanted_streams; /* of a DCI, at most */
    uint8_t log_streams;    /* of every DCI; 0: none */
    bool dci_av; /* the kernel takes an address at a DCI's RTR, which says its service level */
};

/* dc_calls.c */
/* libibverbs' part. */
void verbs_calls_init(struct verbs_dc *dc);
/* libmlx5's part: 0, or -ENOENT with a sentence in why. Blocks. */
int verbs_dc_load(struct verbs_dc *dc, char *why, size_t size);
void verbs_dc_unload(struct verbs_dc *dc);

/* dc_probe.c */
/* With the functions loaded: makes a DCI and a DCT, brings them up and frees them. Enters into
 * f->base.caps that there is DC, and what DC cannot do as well as RC; or why there is none. */
void verbs_dc_probe(struct verbs_fab *f);

/* dc.c */
/* A queue pair that is not DC's, of at least attr's sizes, which become what it has; NULL and
 * errno. Blocks. */
struct ibv_qp *verbs_plain_qp_make(struct verbs_fab *f, struct ibv_pd *pd,
                                   struct ibv_qp_init_attr *attr);
/* A DCI of at least attr's sizes, which become what it has; NULL and errno. Blocks. */
struct ibv_qp *verbs_dci_make(struct verbs_fab *f, struct ibv_pd *pd,
                              struct ibv_qp_init_attr *attr);
/* A change of state of a DCI in that domain, at RTR with our own address in attr, whose service
 * level it is to have, as UCX does it: 0 or an errno. Blocks. */
int verbs_dci_modify(struct verbs_fab *f, const struct fab_pd *pd, struct ibv_qp *dci,
                     struct ibv_qp_attr *attr, int mask);
/* A DCT that can be sent to, with its number, at our own address, as a FAB_CREATE_DCT wants it of
 * these; NULL and errno. Blocks. */
struct ibv_qp *verbs_dct_make(struct verbs_fab *f, const struct fab_ctl *ctl, struct ibv_pd *pd,
                              struct ibv_cq *cq, struct ibv_srq *srq);
/* The control thread, when it submits FAB_CREATE_DCT or FAB_MODIFY_QP: our own address in it, and
 * the P_Key's place. */
void verbs_own_address(struct fab_ctl *ctl);
/* Control operations, on a worker. */
int verbs_dct_create(struct verbs_fab *f, struct fab_ctl *ctl);
int verbs_dct_destroy(struct verbs_fab *f, struct fab_ctl *ctl);
/* The posting thread: the first n requests of a list with one doorbell, or none of them and
 * -errno. */
int verbs_dci_post(struct verbs_qp *q, const struct fab_wr *wr, int n);

#endif
