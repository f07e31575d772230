/* SPDX-License-Identifier: Apache-2.0 */
/* What metaservers say of each other and of themselves (GET /v1/metaservers). Any thread. */
#ifndef CTL_METASERVERS_H
#define CTL_METASERVERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "ctl/decode.h"

enum { CTL_METASERVERS_MAX = 64, CTL_METASERVER_URL_BYTES = 512, CTL_STORE_PREFIX_BYTES = 128 };

/* One of those that share the store. */
struct ctl_metaserver {
    char name[CTL_ID_BYTES], version[CTL_WORD_BYTES];
    char url[CTL_METASERVER_URL_BYTES]; /* "": it has none */
    bool self;                          /* it is the one that was asked */
};

/* How one is, as it says itself. */
struct ctl_metaserver_state {
    bool shared, behind, says_heard;
    uint64_t revision, heard_ms_ago, waiting, errors;
    uint64_t slots, used, max_endpoints; /* max_endpoints 0: it does not say */
    uint64_t awaited;                    /* endpoints whose agents have not registered here yet */
    uint64_t live, agents, followers;
    char generation[CTL_WORD_BYTES];
    /* Of its store: sqlite or etcd, and where others may share it, under which keys and which one;
     * "": it does not say. */
    char kind[CTL_WORD_BYTES], prefix[CTL_STORE_PREFIX_BYTES], id[CTL_WORD_BYTES];
    char error[CTL_TEXT_BYTES];   /* ""; or why its store cannot be used or heard */
    char warning[CTL_TEXT_BYTES]; /* ""; or what somebody should do about its store some day */
};

/* Those of an answer, at most CTL_METASERVERS_MAX, and how the one that answers is. 0 or -EBADMSG.
 */
int ctl_decode_metaservers(const char *body, size_t bytes,
                           struct ctl_metaserver out[CTL_METASERVERS_MAX], size_t *count,
                           struct ctl_metaserver_state *self, struct base_errbuf *err);
/* Appends one as JSON: who it is, and with its own answer how it is; body NULL: why it gave none.
 * 0, -EBADMSG or -ENOMEM. */
int ctl_metaserver_json(const struct ctl_metaserver *m, const char *body, size_t bytes,
                        const char *why, struct base_text *out, struct base_errbuf *err);

#endif
