/* SPDX-License-Identifier: Apache-2.0 */
/* A test bed for the soft provider: a device directory of its own, and nodes on it with one of each
 * object. Every failure aborts the test where it happened. */
#ifndef TESTS_UNIT_FABRIC_BED_H
#define TESTS_UNIT_FABRIC_BED_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <dirent.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "fabric/fabric.h"

#define BED_ALL_ACCESS                                                                             \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |                   \
     IBV_ACCESS_REMOTE_ATOMIC)
enum { BED_KEY = 0x5eed, BED_QKEY = 0x1111, BED_MEM = 1 << 20 };

/* What a node tells another, in a pipe or in shared memory. */
struct bed_card {
    uint8_t gid[16];
    uint32_t dctn, qpn, rkey;
    uint64_t addr;
};

struct bed_node {
    struct fab *fab;
    struct fab_pd *pd;
    struct fab_chan *chan;
    struct fab_cq *cq;
    struct fab_srq *srq;
    struct fab_dct *dct;
    struct fab_mem mem;
    struct fab_mr *mr;
};

static inline void bed_dir_make(char dir[64])
{
    snprintf(dir, 64, "/dev/shm/kedge-test-XXXXXX");
    BASE_ASSERT(mkdtemp(dir) != NULL);
}

/* How many files of the device directory have names that begin so. */
static inline int bed_dir_count(const char *dir, const char *prefix)
{
    int n = 0;
    DIR *d = opendir(dir);
    BASE_ASSERT(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    closedir(d);
    return n;
}

static inline void bed_dir_remove(const char *dir)
{
    DIR *d = opendir(dir);
    if (d == NULL)
        return;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        (void)unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    (void)rmdir(dir);
}

/* Runs a control operation that must succeed. */
static inline void bed_do(struct fab *fab, struct fab_ctl *ctl)
{
    int status = fab_call(fab, ctl);
    if (status != 0)
        fprintf(stderr, "control operation %d: %s\n", ctl->kind, strerror(-status));
    BASE_ASSERT(status == 0);
}

static inline struct fab_mr *bed_reg(struct bed_node *n, const struct fab_mem *mem, uint64_t offset,
                                     uint64_t length, unsigned access)
{
    struct fab_ctl ctl = {
        .kind = FAB_REG_MR,
        .mr = {.pd = n->pd, .mem = mem, .offset = offset, .length = length, .access = access}};
    bed_do(n->fab, &ctl);
    return ctl.mr.x;
}

static inline int bed_dereg(struct bed_node *n, struct fab_mr *mr)
{
    struct fab_ctl ctl = {.kind = FAB_DEREG_MR, .mr = {.x = mr}};
    return fab_call(n->fab, &ctl);
}

/* A CQ of cqe entries on the node's channel. */
static inline struct fab_cq *bed_cq(struct bed_node *n, uint32_t cqe)
{
    struct fab_ctl ctl = {.kind = FAB_CREATE_CQ, .cq = {.cqe = cqe, .chan = n->chan}};
    bed_do(n->fab, &ctl);
    return ctl.cq.x;
}

/* The cost model of nodes that are opened from now on; NULL: none. */
static const char *bed_model;

/* Opens a node with a PD, a channel, a CQ, an SRQ, a DC target where the device has DC, and a
 * registered MiB. */
static inline void bed_open(struct bed_node *n, const char *dir)
{
    struct base_errbuf err = {.text = ""};
    int status =
        fab_soft.open(&(struct fab_open_attr){.device = dir, .model = bed_model}, &n->fab, &err);
    if (status != 0)
        fprintf(stderr, "%s\n", err.text);
    BASE_ASSERT(status == 0);
    struct fab_ctl pd = {.kind = FAB_ALLOC_PD};
    bed_do(n->fab, &pd);
    n->pd = pd.pd.x;
    struct fab_ctl chan = {.kind = FAB_CREATE_CHAN};
    bed_do(n->fab, &chan);
    n->chan = chan.chan.x;
    n->cq = bed_cq(n, 1024);
    struct fab_ctl srq = {.kind = FAB_CREATE_SRQ, .srq = {.pd = n->pd, .max_wr = 64, .max_sge = 4}};
    bed_do(n->fab, &srq);
    n->srq = srq.srq.x;
    struct fab_ctl dct = {
        .kind = FAB_CREATE_DCT,
        .dct = {
            .pd = n->pd, .cq = n->cq, .srq = n->srq, .dc_key = BED_KEY, .access = BED_ALL_ACCESS}};
    if (n->fab->caps.transports & FAB_DC)
        bed_do(n->fab, &dct);
    n->dct = dct.dct.x;
    BASE_ASSERT(fab_mem_alloc(BED_MEM, "bed", &n->mem) == 0);
    n->mr = bed_reg(n, &n->mem, 0, BED_MEM, BED_ALL_ACCESS);
}

static inline struct bed_card bed_card(const struct bed_node *n, const struct fab_qp *qp)
{
    struct bed_card card = {.dctn = n->dct != NULL ? n->dct->dctn : 0,
                            .qpn = qp != NULL ? qp->qpn : 0,
                            .rkey = n->mr->rkey,
                            .addr = n->mr->addr};
    memcpy(card.gid, n->fab->caps.gid, 16);
    return card;
}

static inline void bed_close(struct bed_node *n)
{
    BASE_ASSERT(bed_dereg(n, n->mr) == 0);
    struct fab_ctl ops[] = {{.kind = FAB_DESTROY_DCT, .dct = {.x = n->dct}},
                            {.kind = FAB_DESTROY_SRQ, .srq = {.x = n->srq}},
                            {.kind = FAB_DESTROY_CQ, .cq = {.x = n->cq}},
                            {.kind = FAB_DESTROY_CHAN, .chan = {.x = n->chan}},
                            {.kind = FAB_FREE_PD, .pd = {.x = n->pd}}};
    for (size_t i = n->dct == NULL; i < sizeof ops / sizeof ops[0]; i++)
        bed_do(n->fab, &ops[i]);
    BASE_ASSERT(fab_close(n->fab) == 0);
    fab_mem_free(&n->mem);
}

static inline void bed_read_full(int fd, void *buffer, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t r = read(fd, (char *)buffer + done, n - done);
        BASE_ASSERT(r > 0);
        done += (size_t)r;
    }
}

static inline void bed_write_full(int fd, const void *buffer, size_t n)
{
    BASE_ASSERT(write(fd, buffer, n) == (ssize_t)n);
}

#endif
