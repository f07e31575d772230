/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that come too late. The thread that posts. */
#ifndef VERBS_LATE_H
#define VERBS_LATE_H

#include "fabric/fabric.h"

/* Asked when all else is done before a doorbell, of all that is not posted yet: whether one of it
 * comes too late. What an RNIC was told nobody can take back. */
bool verbs_is_late(const struct fab_wr *list);

#endif
