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

static inline void on_wake(void *token)
{
    ck_assert_ptr_eq(token, &request);
    woken++;
}

static inline void open_service(struct meta_store *store)
{
    struct meta_directory_limits limits = {16, 16, 1000 * BASE_NS_PER_S, 1000 * BASE_NS_PER_S};
    struct base_errbuf err;
    memset(memory, 0, schema_table_bytes(schema_table_log2_slots(16)));
    memset(&s, 0, sizeof s);
    test_world_init(&world);
    world.wall_ms = wall_ms;
    s.world = &world.base;
    s.directory = meta_directory_new(&limits, memory, 0x5eed, 0x77);
    s.resources = meta_resources_new(TRAIL);
    s.store = store;
    s.wake = on_wake;
    s.max_watches = 3;
    s.endpoint.dct_number = 9;
    ck_assert_msg(meta_service_load(&s, now, &err) == 0, "%s", err.text);
}

static inline void setup(void)
{
    memory = aligned_alloc(64, schema_table_bytes(schema_table_log2_slots(16)));
    now = BASE_NS_PER_S;
    wall_ms = UINT64_C(1763739808123);
    fail = woken = 0;
    base_text_init(&body, 4 << 20);
    open_service(meta_store_memory(&fail));
}

static inline void close_service(void)
{
    ck_assert_uint_eq(s.watch_count, 0);
    ck_assert_ptr_null(s.document);
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

/* The answer's status. What was put into `request` counts once. */
static inline int ask(const char *method, const char *path, const char *json)
{
    request.method = method;
    request.path = path;
    request.content_type = "application/json";
    request.body = json;
    request.body_bytes = strlen(json);
    request.token = &request;
    request.who = "uid 7";
    request.wall_ms = wall_ms;
    base_text_reset(&body);
    meta_service_handle(&s, &request, now, &body, &answer);
    ck_assert_int_eq(body.error, 0);
    if (answer.status >= 400)
        ck_assert_str_eq(answer.content_type, "application/problem+json");
    memset(&request, 0, sizeof request);
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

#endif
