/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_NODES_H
#define CTL_NODES_H

#include "base/text.h"
#include "ctl/decode.h"
#include "ctl/options.h"

/* All pages. The caller's to fini. 0 or -errno. */
int ctl_nodes_fetch(const struct ctl_options *o, struct ctl_nodes *out, struct kedge_errbuf *err);
/* Appends a node as a JSON object, with the REST interface's names. */
void ctl_node_json(struct kedge_text *t, const struct ctl_node *node);

#endif
