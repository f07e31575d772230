/* SPDX-License-Identifier: Apache-2.0 */
/* What agents hold for their workers: themselves and their leases, as rdmactl shows them. Plain
 * structs; decode_held.c alone knows that they are JSON. Any thread. */
#ifndef CTL_HELD_H
#define CTL_HELD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum {
    CTL_HELD_COLUMNS = 15,
    CTL_CELL_BYTES = 112, /* an id with its node's fits */
    CTL_CURSOR_BYTES = 256,
    CTL_GAP_BYTES = 512,
};

enum ctl_unit { CTL_PLAIN, CTL_BYTES, CTL_MS };

struct ctl_held_column {
    const char *field; /* of the agent's answer */
    const char *heading;
    enum ctl_unit unit;
    bool wide; /* of -o wide alone */
};

struct ctl_held_kind {
    const char *name;   /* "lease" */
    const char *plural; /* of its path and its lists */
    size_t columns;
    struct ctl_held_column column[CTL_HELD_COLUMNS];
};

/* "lease" or "worker"; NULL: there is no such kind. */
const struct ctl_held_kind *ctl_held_kind_find(const char *name);

struct ctl_held {
    char cell[CTL_HELD_COLUMNS][CTL_CELL_BYTES]; /* as it is shown; "-": none */
    char *json;                                  /* owned: what the agent said */
};

struct ctl_held_page {
    struct ctl_held *item; /* owned */
    size_t count;
    char next[CTL_CURSOR_BYTES]; /* the next page's cursor; "": there is none */
    struct ctl_held_gap {        /* of all nodes: one that could not be asked */
        char node[CTL_CELL_BYTES];
        char why[CTL_GAP_BYTES];
        char *json; /* owned */
    } * gap;        /* owned */
    size_t gaps;
};

/* 0, or -EBADMSG, -ENOMEM and nothing to fini. */
int ctl_decode_held(const struct ctl_held_kind *kind, const char *body, size_t bytes,
                    struct ctl_held_page *out, struct kedge_errbuf *err);
int ctl_decode_held_one(const struct ctl_held_kind *kind, const char *body, size_t bytes,
                        struct ctl_held *out, struct kedge_errbuf *err);
void ctl_held_page_fini(struct ctl_held_page *page);
void ctl_held_fini(struct ctl_held *held);

/* What revoking came to, beside the page of leases. */
struct ctl_revoked {
    struct ctl_held_page leases;
    bool forced, over;
    char breaks[600];
};
int ctl_decode_revoked(const char *body, size_t bytes, struct ctl_revoked *out,
                       struct kedge_errbuf *err);

#endif
