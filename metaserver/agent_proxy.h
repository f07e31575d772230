/* SPDX-License-Identifier: Apache-2.0 */
/* What a client asks of agents, until it has its answer: between agent_proxy.c (one lease or
 * worker, revoking, and agents' answers) and agent_proxy_list.c (lists, of one node or of all). */
#ifndef METASERVER_AGENT_PROXY_H
#define METASERVER_AGENT_PROXY_H

#include "agent_proxy_json.h"
#include "rest_private.h"

enum {
    HELD_UNREACHABLE_MAX = 64, /* nodes that one answer names */
    HELD_TENANT_BYTES = 64,
    HELD_WHY_BYTES = HELD_DETAIL_BYTES + 160,
    HELD_PAGE_BYTES = 2 << 20, /* more than a list's 1000 items of HELD_ITEM_BYTES take */
};

struct kedge_held {
    LIST_ENTRY(kedge_held) link;
    struct kedge_service *s;
    void *token;
    struct kedge_ask ask; /* of one node, the present one */
    struct held_question q;
    char item[KEDGE_HELD_ID_BYTES];   /* of ONE and REVOKE; "": all of `worker` */
    char worker[KEDGE_HELD_ID_BYTES]; /* whose; "": all */
    bool force;
    struct kedge_text out; /* what the agents have said */
    struct held_answer answer;
    bool sensible; /* the last answer was */
    struct kedge_fault fault;
    struct {
        bool all; /* of all nodes */
        char tenant[HELD_TENANT_BYTES];
        uint64_t limit, count;
        char cursor[HELD_CURSOR_BYTES]; /* where the present node goes on; "": it has no more */
        char next[KEDGE_STORE_ID_BYTES + HELD_CURSOR_BYTES]; /* of the answer; "": none */
        uint64_t begun_ns;
        uint32_t asked, passed; /* questions, nodes that were not asked */
        uint32_t unreachable;
        struct kedge_text why; /* those, as JSON */
    } list;
};

/* A new one, of no node yet; NULL: no memory, and the answer has been given. */
struct kedge_held *held_new(struct call *c, bool leases);
void held_free(struct kedge_held *h);
/* The answer comes later. */
void held_wait(struct call *c, struct kedge_held *h);

/* "NODE:REST" apart; false: there is no node in it, or one of them does not fit. */
bool held_split(const char *text, char node[KEDGE_STORE_ID_BYTES], char *rest, size_t size);

/* Asks the present node. As kedge_ask(), or -EMSGSIZE: there is no room for the question. */
int held_ask(struct kedge_held *h, uint64_t now);
/* Whether there is such a node; else the answer has been given. */
bool held_node_is_known(struct call *c, const char *node);
/* Why the present node has not said what was asked (status: of held_ask(), or 0). */
enum rest_problem held_why(const struct kedge_held *h, int status, char out[HELD_WHY_BYTES]);
/* Answers with that. */
void held_refuse(struct call *c, const struct kedge_held *h, int status);

/* Of a list whose question has ended: goes on. 0: it is complete; -EINPROGRESS: there is another
 * question; else it is refused for what held_why() says of that. */
int held_list_step(struct kedge_held *h, uint64_t now);
/* Says it. */
void held_list_write(struct call *c, const struct kedge_held *h);

#endif
