/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes as a metaserver shows them, and what operators say of one. One thread. */
#ifndef CTL_NODES_H
#define CTL_NODES_H

#include "base/text.h"
#include "ctl/decode.h"
#include "ctl/options.h"

/* All pages. The caller's to fini. 0 or -errno. */
int ctl_nodes_fetch(const struct ctl_options *o, struct ctl_nodes *out, struct base_errbuf *err);
enum { CTL_REASON_BYTES = 128, CTL_NODE_PATH_BYTES = 3 * CTL_ID_BYTES + 32 };
/* "/v1/nodes/ID". 0, or -EINVAL: that is no id. */
int ctl_node_path(const char *id, char out[CTL_NODE_PATH_BYTES], struct base_errbuf *err);

/* What an operator wants to say of a node. */
struct ctl_node_edit {
    enum ctl_command what;    /* CTL_NODE_LABEL, _CORDON, _UNCORDON, _DRAIN */
    const char *const *words; /* of LABEL: KEY=VALUE sets one, KEY- takes it away */
    size_t word_count;
    const char *reason; /* of CORDON and DRAIN */
    bool reason_said;   /* else one that the node has already stays */
    bool grace_said;    /* of DRAIN; else that of a drain that goes on stays */
    uint64_t grace_ms;
};
/* What to PUT as a node's spec: that of `body` (NULL: nothing is set yet) with that changed.
 * *revision is that of body, 0 without; *drains: whether the node drains by it, which CORDON leaves
 * as it is. 0; -EINVAL: a word is no label; -EBADMSG; -ENOMEM. */
int ctl_edit_node(const char *body, size_t bytes, const struct ctl_node_edit *edit,
                  struct base_text *out, uint64_t *revision, bool *drains, struct base_errbuf *err);

/* Whether an agent has done what a revision of the resources says of its node. */
enum ctl_force {
    CTL_IN_FORCE,
    CTL_NOT_YET,
    CTL_REFUSED, /* it says why it cannot */
    CTL_UNHEARD, /* registered, but nothing is heard of it */
    CTL_ABSENT,  /* not registered */
};
/* Waits 2 s at most until it is in force, and says on standard error why it is not. path:
 * ctl_node_path()'s of o->id. 0 and *out, or -errno. */
int ctl_node_settle(const struct ctl_options *o, const char *path, uint64_t revision,
                    enum ctl_force *out, struct base_errbuf *err);
/* Until the agent says that it drains, and has no worker any more; says how many are left.
 * -ECONNRESET: it is heard of no more; -EREMCHG: it drains no more; -ECANCELED: it says that it
 * cannot. */
int ctl_node_wait_until_empty(const struct ctl_options *o, const char *path, uint64_t revision,
                              struct base_errbuf *err);

/* "failing towards 2 of 9", or "-"; all: also whom, and for how long. Returns out. */
enum { CTL_FABRIC_TEXT = 1600 };
const char *ctl_fabric_text(const struct ctl_fabric *fabric, bool all, char out[CTL_FABRIC_TEXT]);
/* Appends the member of a node's object, with a comma before; nothing where nothing is said. */
void ctl_fabric_json(struct base_text *t, const struct ctl_fabric *fabric);

/* A node as `node get` shows it, to standard output. 0 or -errno. */
int ctl_node_print(const struct ctl_node *node, struct base_errbuf *err);
/* Appends a node as a JSON object, with the REST interface's names. */
void ctl_node_json(struct base_text *t, const struct ctl_node *node);

#endif
