/* SPDX-License-Identifier: Apache-2.0 */
/* What agents hold for their workers: themselves and their leases, as rdmactl shows them, and names
 * of regions, which agents have given to a metaserver. Plain structs; decode_agent_items.c alone
 * knows that they are JSON. Any thread. */
#ifndef CTL_AGENT_ITEMS_H
#define CTL_AGENT_ITEMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum {
    CTL_AGENT_ITEM_COLUMNS = 15,
    CTL_CELL_BYTES = 112, /* an id with its node's fits */
    CTL_CURSOR_BYTES = 512,
    CTL_GAP_BYTES = 512,
};

enum ctl_unit {
    CTL_PLAIN,
    CTL_BYTES,
    CTL_MS, /* a time that is set; the field's name ends with "_ms" */
    CTL_AGE /* how long ago, or from now; likewise */
};

struct ctl_agent_item_column {
    const char *field; /* of the agent's answer */
    const char *heading;
    enum ctl_unit unit;
    bool wide; /* of -o wide alone */
};

struct ctl_agent_item_kind {
    const char *name;   /* "lease" */
    const char *plural; /* of its path and its lists */
    size_t columns;
    struct ctl_agent_item_column column[CTL_AGENT_ITEM_COLUMNS];
    bool of_server; /* the metaserver has them, and no agent is asked */
};

/* "lease", "worker" or "region"; NULL: there is no such kind. */
const struct ctl_agent_item_kind *ctl_agent_item_kind_find(const char *name);

struct ctl_agent_item {
    char cell[CTL_AGENT_ITEM_COLUMNS][CTL_CELL_BYTES]; /* as it is shown; "-": none */
    char *json;                                        /* owned: what the agent said */
    char *sentences; /* owned: a line for each reason for which a worker's requests wait */
};

struct ctl_agent_item_page {
    struct ctl_agent_item *item; /* owned */
    size_t count;
    char next[CTL_CURSOR_BYTES]; /* the next page's cursor; "": there is none */
    struct ctl_agent_item_gap {  /* of all nodes: one that could not be asked */
        char node[CTL_CELL_BYTES];
        char why[CTL_GAP_BYTES];
        char *json; /* owned */
    } * gap;        /* owned */
    size_t gaps;
};

/* 0, or -EBADMSG, -ENOMEM and nothing to fini. */
int ctl_decode_agent_items(const struct ctl_agent_item_kind *kind, const char *body, size_t bytes,
                           struct ctl_agent_item_page *out, struct base_errbuf *err);
int ctl_decode_agent_item(const struct ctl_agent_item_kind *kind, const char *body, size_t bytes,
                          struct ctl_agent_item *out, struct base_errbuf *err);
void ctl_agent_item_page_fini(struct ctl_agent_item_page *page);
/* Whether that is its id, which may be longer than a cell. */
bool ctl_agent_item_is(const struct ctl_agent_item *item, const char *id);
void ctl_agent_item_fini(struct ctl_agent_item *item);

/* What revoking came to, beside the page of leases. */
struct ctl_revoked {
    struct ctl_agent_item_page leases;
    bool forced, over;
    char breaks[600];
};
int ctl_decode_revoked(const char *body, size_t bytes, struct ctl_revoked *out,
                       struct base_errbuf *err);

#endif
