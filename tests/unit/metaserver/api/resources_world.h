/* SPDX-License-Identifier: Apache-2.0 */
/* A metaserver without sockets, of which tenants, windows and the trail are asked. One for each
 * test program: everything here is its own. */
#ifndef TESTS_UNIT_METASERVER_SETTINGS_WORLD_H
#define TESTS_UNIT_METASERVER_SETTINGS_WORLD_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "metaserver/json.h"
#include "metaserver/resources_json.h"
#include "metaserver/service.h"
#include "../test_world.h"

#define TRAIL 16

static struct test_world world;
static struct meta_service s;
static void *memory;
static uint64_t now;
static uint64_t wall_ms; /* 2025-11-21T15:43:28.123Z to begin */
static int fail;         /* the store's */
static int woken;
static struct base_text body;
static struct meta_service_answer answer;
static struct meta_service_request request; /* what ask() adds to: conditions, query */

/* Each request has its own. */
static char tokens[1 << 16];
static uint32_t asked_count;
static void *awaited; /* of the request whose answer ask() waits for */
/* What comes later than that; NULL: nothing does. */
static void (*answer_later)(const struct meta_service_answer *a, const struct base_text *text);

static inline bool is_token(const void *token)
{
    return (const char *)token >= tokens && (const char *)token < tokens + asked_count;
}

static inline void on_wake(void *token)
{
    ck_assert(is_token(token));
    woken++;
}

static inline void on_reply(void *token, const struct meta_service_answer *a,
                            const struct base_text *text)
{
    ck_assert(is_token(token));
    ck_assert_int_eq(text->error, 0);
    if (a->status >= 400 && strncmp(a->content_type, "text/plain", 10) != 0)
        ck_assert_str_eq(a->content_type, "application/problem+json");
    if (token != awaited) {
        ck_assert_ptr_nonnull(answer_later);
        answer_later(a, text);
        return;
    }
    awaited = NULL;
    answer = *a;
    base_text_reset(&body);
    base_text_append(&body, base_text_str(text), text->length);
}

static inline void settle(void)
{
    test_world_settle(&world, &s, now);
}

static inline void open_service(struct meta_store *store)
{
    struct meta_directory_limits limits = {16, 16, 1000 * BASE_NS_PER_S, 1000 * BASE_NS_PER_S};
    struct base_errbuf err;
    memset(memory, 0, schema_table_bytes(schema_table_log2_slots(16)));
    memset(&s, 0, sizeof s);
    test_world_init(&world, store);
    world.wall_ms = wall_ms;
    s.world = &world.base;
    s.directory = meta_directory_new(&limits, memory, 0x5eed, 0x77);
    s.resources = meta_resources_new(TRAIL);
    s.store = store;
    s.wake = on_wake;
    s.answer = on_reply;
    s.max_watches = 3;
    s.endpoint.dct_number = 9;
    ck_assert_msg(meta_service_load(&s, now, &err) == 0, "%s", err.text);
    settle();
}

static inline void setup(void)
{
    memory = aligned_alloc(64, schema_table_bytes(schema_table_log2_slots(16)));
    now = BASE_NS_PER_S;
    wall_ms = UINT64_C(1763739808123);
    fail = woken = 0;
    asked_count = 0;
    answer_later = NULL;
    base_text_init(&body, 4 << 20);
    open_service(meta_store_memory(&fail));
}

static inline void close_service(void)
{
    ck_assert_uint_eq(s.watch_count, 0);
    ck_assert_ptr_null(s.document);
    ck_assert_ptr_null(s.writes.first);
    meta_directory_free(s.directory);
    meta_resources_free(s.resources);
}

static inline void teardown(void)
{
    close_service();
    meta_store_close(s.store);
    base_text_fini(&body);
    free(memory);
}

/* Asks, and lets the store come to no end. */
static inline int begin_to_ask(const char *method, const char *path, const char *json)
{
    request.method = method;
    request.path = path;
    request.content_type = "application/json";
    request.body = json;
    request.body_bytes = strlen(json);
    ck_assert_uint_lt(asked_count, sizeof tokens);
    awaited = request.token = &tokens[asked_count++];
    request.who = "uid 7";
    request.wall_ms = wall_ms;
    base_text_reset(&body);
    meta_service_handle(&s, &request, now, &body, &answer);
    ck_assert_int_eq(body.error, 0);
    if (answer.status >= 400 && strncmp(answer.content_type, "text/plain", 10) != 0)
        ck_assert_str_eq(answer.content_type, "application/problem+json");
    memset(&request, 0, sizeof request);
    if (answer.status != META_SERVICE_LATER)
        awaited = NULL;
    return answer.status;
}

/* The answer's status; META_SERVICE_LATER: it waits for more than the store. What was put into
 * `request` counts once. */
static inline int ask(const char *method, const char *path, const char *json)
{
    if (begin_to_ask(method, path, json) == META_SERVICE_LATER && s.writes.first != NULL)
        settle();
    awaited = NULL;
    return answer.status;
}

static inline bool says(const char *text)
{
    return strstr(base_text_str(&body), text) != NULL;
}

static inline void query(enum meta_service_parameter which, const char *value)
{
    request.parameter[which] = value;
}

/* What the last make() has made. */
static char bearer[160];

/* As root on the admin socket. */
static inline int ask_local(const char *method, const char *path, const char *json)
{
    request.shown.local = true;
    return ask(method, path, json);
}

/* With the token of the last make(). */
static inline int ask_as(const char *method, const char *path, const char *json)
{
    request.shown.authorization = bearer;
    return ask(method, path, json);
}

/* Makes a token and keeps its secret. */
static inline void make(const char *name, const char *json)
{
    char path[96];
    snprintf(path, sizeof path, "/v1/tokens/%s", name);
    ck_assert_msg(ask_local("PUT", path, json) == 201, "%s", base_text_str(&body));
    const char *secret = strstr(base_text_str(&body), "\"secret\":\"");
    ck_assert_ptr_nonnull(secret);
    secret += 10;
    snprintf(bearer, sizeof bearer, "Bearer %.*s", (int)strcspn(secret, "\""), secret);
}

#endif
