/* SPDX-License-Identifier: Apache-2.0 */
/* What a client asks of agents, until it has its answer: between agent_proxy.c (one lease or
 * worker, revoking, and agents' answers) and agent_proxy_list.c (lists, of one node or of all). */
#ifndef METASERVER_AGENT_PROXY_H
#define METASERVER_AGENT_PROXY_H

#include "agent_proxy_json.h"
#include "rest_private.h"

enum {
    PROXY_UNREACHABLE_MAX = 64, /* nodes that one answer names */
    PROXY_TENANT_BYTES = 64,
    PROXY_WHY_BYTES = PROXY_DETAIL_BYTES + 160,
    PROXY_PAGE_BYTES = 2 << 20, /* more than a list's 1000 items of PROXY_ITEM_BYTES take */
};

struct meta_proxy {
    LIST_ENTRY(meta_proxy) link;
    struct meta_service *s;
    void *token;
    struct meta_query query; /* of one node, the present one */
    struct proxy_query q;
    char item[META_PROXY_ID_BYTES];   /* of ONE and REVOKE; "": all of `worker` */
    char worker[META_PROXY_ID_BYTES]; /* whose; "": all */
    bool force;
    char who[META_RESOURCE_WHO_BYTES]; /* of REVOKE, for the trail */
    uint64_t wall_ms, asked_ns;        /* when it was asked */
    enum proxy_trail {
        PROXY_TRAIL_NONE,
        PROXY_TRAIL_ASKS,   /* that it is to be revoked is being written; nobody is asked yet */
        PROXY_TRAIL_ASKED,  /* it is in the trail */
        PROXY_TRAIL_FAILS,  /* that it was not done is being written */
        PROXY_TRAIL_FAILED, /* it is in the trail, or the store has failed */
    } trail;
    struct base_text out; /* what the agents have said */
    struct proxy_answer answer;
    bool sensible; /* the last answer was */
    struct meta_violation violation;
    struct {
        bool all; /* of all nodes */
        char tenant[PROXY_TENANT_BYTES];
        uint64_t limit, count;
        char cursor[PROXY_CURSOR_BYTES]; /* where the present node goes on; "": it has no more */
        char next[META_STORE_ID_BYTES + PROXY_CURSOR_BYTES]; /* of the answer; "": none */
        uint64_t begun_ns;
        uint32_t asked, passed; /* queries, nodes that were not asked */
        uint32_t unreachable;
        struct base_text why; /* those, as JSON */
    } list;
};

/* A new one, of no node yet; NULL: no memory, and the answer has been given. */
struct meta_proxy *meta_proxy_new(struct call *c, bool leases);
void meta_proxy_free(struct meta_proxy *h);
/* The answer comes later. */
void meta_proxy_wait(struct call *c, struct meta_proxy *h);

/* "NODE:REST" apart; false: there is no node in it, or one of them does not fit. */
bool meta_proxy_split(const char *text, char node[META_STORE_ID_BYTES], char *rest, size_t size);

/* Asks the present node. As meta_query_open(), or -EMSGSIZE: there is no room for the query. */
int meta_proxy_send_query(struct meta_proxy *h, uint64_t now);
/* Whether there is such a node; else the answer has been given. */
bool meta_proxy_node_is_known(struct call *c, const char *node);
/* Why the present node has not said what was asked (status: of meta_proxy_send_query(), or 0). */
enum meta_rest_problem meta_proxy_why(const struct meta_proxy *h, int status,
                                      char out[PROXY_WHY_BYTES]);
/* Answers with that. */
void meta_proxy_refuse(struct call *c, const struct meta_proxy *h, int status);

/* Of a list whose query has ended: goes on. 0: it is complete; -EINPROGRESS: there is another
 * query; else it is refused for what meta_proxy_why() says of that. */
int meta_proxy_list_step(struct meta_proxy *h, uint64_t now);
/* Says it. */
void meta_proxy_list_write(struct call *c, const struct meta_proxy *h);

#endif
