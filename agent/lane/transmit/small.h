/* SPDX-License-Identifier: Apache-2.0 */
/* The lane's registered memory for small WRITEs that the device does not take inline. */
#ifndef LANE_SMALL_H
#define LANE_SMALL_H

#include <stdbool.h>

struct lane;
struct wr;

/* After the resources are set: as many places as they have. 0, -ENOMEM, or -EINVAL: the device
 * takes less than workers may send, and there is no memory for the rest. */
int lane_smalls_new(struct lane *l);
void lane_smalls_free(struct lane *l);
/* w's bytes, which the device does not take inline, are in registered memory from now on. False:
 * all of that is in use, until some is given back. */
bool lane_small_take(struct lane *l, struct wr *w);
/* w is not out any more, and as it was. */
void lane_small_give(struct lane *l, struct wr *w);

#endif
