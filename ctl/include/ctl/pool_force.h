/* SPDX-License-Identifier: Apache-2.0 */
/* Whether nodes have a pool as it was set: what a metaserver has stored is not what is in force. It
 * follows from what agents say of their configuration and from their endpoints. */
#ifndef CTL_POOL_FORCE_H
#define CTL_POOL_FORCE_H

#include "ctl/decode.h"
#include "ctl/options.h"
#include "ctl/resources.h"

/* Whether a node has all labels of a selector, "zone=a,rack=7" or "all". */
bool ctl_node_is_selected(const struct ctl_node *node, const char *selector);

enum ctl_pool_force {
    CTL_POOL_HELD,    /* it has that pool's endpoint, as it was set */
    CTL_POOL_APPLIED, /* its agent has the setting and no such endpoint: it tunes the agent's own
                       * pool, or is just being made */
    CTL_POOL_IN_PART, /* it has that pool's endpoint, and says what is not in force */
    CTL_POOL_REFUSED, /* its agent says what is not; without that endpoint this may be all of it */
    CTL_POOL_LATER,   /* its agent has not applied the setting yet */
    CTL_POOL_UNHEARD, /* nothing is heard of its agent */
};
/* Of a node that its labels select. why: the sentence behind it, "" if there is none. */
enum ctl_pool_force ctl_pool_force(const struct ctl_node *node, const struct ctl_resource *pool,
                                   char why[CTL_TEXT_BYTES]);

/* Prints on standard output how many of its nodes have it, and a table of those that do not, with
 * -o wide of all. 0 or -errno. */
int ctl_pool_print(const struct ctl_options *o, const struct ctl_resource *pool,
                   struct base_errbuf *err);
/* Waits 2 s at most until its nodes have done what they can, and says on standard error where it is
 * not in force, and why. Silent where the metaserver does not answer. */
void ctl_pool_settle(const struct ctl_options *o, const struct ctl_resource *pool);

#endif
