/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that ask for workers and leases, and agents that answer them, without sockets. One for
 * each test program. */
#ifndef TESTS_UNIT_METASERVER_HELD_WORLD_H
#define TESTS_UNIT_METASERVER_HELD_WORLD_H

#include "resources_world.h"

enum { MOST_REPLIES = 80 };

#define LEASE(id, worker)                                                                          \
    "{\"id\":\"" id "\",\"worker\":\"" worker "\",\"node\":\"another\",\"state\":\"live\"}"
#define WORKER(id) "{\"id\":\"" id "\",\"node\":\"another\",\"leases\":2}"
#define MS         (BASE_NS_PER_S / 1000)

/* What clients were told later, in that order. */
static struct {
    int status;
    char text[8192];
} reply[MOST_REPLIES];
static int replies;
static bool client_gone;

static inline void on_answer(const struct meta_service_answer *a, const struct base_text *text)
{
    ck_assert_int_lt(replies, MOST_REPLIES);
    reply[replies].status = a->status;
    ck_assert_uint_lt(text->length, sizeof reply[0].text);
    memcpy(reply[replies++].text, base_text_str(text), text->length + 1);
}

static inline bool is_gone(void *token)
{
    ck_assert(is_token(token));
    return client_gone;
}

static inline void register_node(int n)
{
    char path[32], json[256];
    snprintf(path, sizeof path, "/v1/nodes/n%d", n);
    snprintf(json, sizeof json,
             "{\"incarnation\":5,\"endpoints\":[{\"gid\":\"fd00::%x\",\"pool\":1,"
             "\"transports\":[\"dc\"],\"dct_number\":77,\"dc_key\":\"00000000000000aa\","
             "\"mtu\":4096}]}",
             n + 1);
    ck_assert_int_eq(ask("PUT", path, json), 201);
}

/* The stream of a node's agent, of which the configuration has been read. */
static inline struct meta_watch *follow(int n)
{
    char path[48];
    const char *bytes;
    size_t length;
    snprintf(path, sizeof path, "/v1/nodes/n%d/configuration", n);
    query(META_PARAMETER_WATCH, "1");
    query(META_PARAMETER_REVISION, "0");
    query(META_PARAMETER_ANSWERS, "1");
    ck_assert_int_eq(ask("GET", path, ""), 200);
    struct meta_watch *w = answer.watch;
    ck_assert_ptr_nonnull(w);
    do
        ck_assert_int_eq(meta_watch_next(w, now, &bytes, &length), 0);
    while (length > 0);
    return w;
}

static inline void begin(void)
{
    setup();
    answer_later = on_answer;
    s.gone = is_gone;
    s.max_watches = 20;
    replies = 0;
    client_gone = false;
    memset(reply, 0, sizeof reply);
}

/* A teardown that finds every question ended. */
static inline void end(void)
{
    ck_assert_uint_eq(s.queries.count, 0);
    ck_assert(LIST_EMPTY(&s.proxies) && LIST_EMPTY(&s.queries.open));
    teardown();
}

static char id[META_QUERY_ID_BYTES]; /* of the last question that was read */

/* Reads the next question; what is in it but its id. "": there is none. */
static inline const char *question(struct meta_watch *w)
{
    static char text[META_QUERY_BYTES + 100];
    static const char head[] = "{\"ask\":{\"id\":\"";
    const char *bytes;
    size_t length;
    ck_assert_int_eq(meta_watch_next(w, now, &bytes, &length), 0);
    if (length == 0)
        return "";
    ck_assert_uint_lt(length, sizeof text);
    memcpy(text, bytes, length);
    text[length] = '\0';
    ck_assert_msg(strncmp(text, head, sizeof head - 1) == 0, "%s", text);
    memcpy(id, text + sizeof head - 1, sizeof id - 1);
    ck_assert_str_eq(text + length - 3, "}}\n");
    text[length - 3] = '\0';
    return text + sizeof head - 1 + sizeof id - 1 + 2;
}

/* The agent of node n answers the last question that was read. What the metaserver says to it. */
static inline int answers(int n, int status, const char *json)
{
    char path[96], text[8192];
    snprintf(path, sizeof path, "/v1/nodes/n%d/answers/%s", n, id);
    snprintf(text, sizeof text, "{\"status\":%d,\"body\":%s}", status, json);
    const int told = ask("PUT", path, text);
    settle();
    return told;
}

#endif
