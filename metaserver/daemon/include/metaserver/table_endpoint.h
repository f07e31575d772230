/* SPDX-License-Identifier: Apache-2.0 */
/* The metaserver's place on the fabric: the endpoint table's memory, which agents READ through a DC
 * target, or, where the device has none, each through a queue pair of its own (table_responders.h).
 * Once it stands, no CPU of this process takes part in a lookup. One thread (the control loop's).
 */
#ifndef METASERVER_TABLE_ENDPOINT_H
#define METASERVER_TABLE_ENDPOINT_H

#include "fabric/fabric.h"
#include "metaserver/config_file.h"
#include "metaserver/service.h"

struct meta_table_endpoint {
    struct fab *fab;
    struct fab_pd *pd;
    struct fab_mem mem;  /* the table, and behind it the one of names */
    size_t names_offset; /* where that begins */
    struct fab_mr *mr;
    struct fab_chan *chan;
    struct fab_cq *cq; /* of the target and of responders: their ends alone complete in it */
    /* NULL without DC: */
    struct fab_srq *srq;
    struct fab_dct *dct;
};

/* Opens the device and registers zeroed memory for a table of bytes, for remote reading alone. out
 * is zeroed to begin. -errno and a sentence; meta_table_endpoint_fini() also after a failure. */
int meta_table_endpoint_init(struct meta_table_endpoint *out, const struct meta_config *config,
                             size_t bytes, struct base_errbuf *err);
/* What makes a DC target for the table, of e which has all else. */
struct fab_ctl meta_table_endpoint_target(const struct meta_table_endpoint *e, uint64_t dc_key);
/* Has the device take back all that it was made to have, which one that hangs never does: what is
 * left of e can only be finished. */
void meta_table_endpoint_give_back(struct meta_table_endpoint *e);
/* That, if it was not done, and closes the device. */
void meta_table_endpoint_fini(struct meta_table_endpoint *e);

/* What agents are told. */
struct meta_service_endpoint meta_table_endpoint_describe(const struct meta_table_endpoint *e);

#endif
