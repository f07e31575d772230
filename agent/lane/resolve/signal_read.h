/* SPDX-License-Identifier: Apache-2.0 */
/* READs that end what would end without a completion: a device that refuses a request has taken
 * those before it in the list, the last of which may not be signalled, and nothing may come behind
 * them. Private to agent/lane, and the lane thread's. */
#ifndef LANE_SIGNAL_READ_H
#define LANE_SIGNAL_READ_H

#include "lane_state.h"
#include "transmit/wr.h"

/* One READ of its owner's table for each queue pair that is silent (physical_qp.h), to the endpoint
 * of the last request that is out there. A queue pair that takes none, or whose endpoint there is
 * no way to any more, is retired. */
void lane_signal_reads_post(struct lane *l);
/* One of them is back. */
void lane_signal_read_done(struct lane *l, const struct wr *w, enum ibv_wc_status status);

#endif
