/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the REST interface about tenants, windows, tokens, events and configurations, without
 * sockets: lines of method, path, If-Match, If-None-Match, Authorization, and each query parameter
 * ("-": absent), then the body. What one changes, the next one finds. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "metaserver/service.h"
#include "../unit/metaserver/test_world.h"

enum { LINES = 5 + META_PARAMETERS, LINE_BYTES = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct test_world world;
static struct meta_service s;
static int answered; /* later */
static struct meta_service_answer told;
static struct meta_watch *agent; /* the stream of n1's, that is asked */

static void on_answer(void *token, const struct meta_service_answer *answer,
                      const struct base_text *body)
{
    BASE_ASSERT(token == &s && answer->status >= 200 && body->error == 0);
    answered++;
    told = *answer;
}

static void on_wake(void *token)
{
    BASE_ASSERT(token != NULL);
}

static void begin(void)
{
    const struct meta_directory_limits limits = {16, 16, BASE_NS_PER_S, BASE_NS_PER_S};
    size_t bytes = schema_table_bytes(schema_table_log2_slots(16));
    void *memory = aligned_alloc(64, bytes);
    BASE_ASSERT(memory != NULL);
    memset(memory, 0, bytes);
    base_log_init("fuzz", BASE_LOG_ERROR);
    s.directory = meta_directory_new(&limits, memory, 1, 2);
    s.resources = meta_resources_new(16);
    s.store = meta_store_memory(NULL);
    test_world_init(&world, s.store);
    s.world = &world.base;
    s.node_lease_ns = BASE_NS_PER_S;
    s.endpoint.dct_number = 1;
    s.max_watches = 2;
    s.wake = on_wake;
    s.answer = on_answer;
    s.liveness = meta_liveness_new(16, 2);
    BASE_ASSERT(s.directory != NULL && s.resources != NULL && s.store != NULL &&
                s.liveness != NULL);
}

/* The next line as a string; NULL if it is "-" or there is none. */
static const char *take_line(const uint8_t **data, size_t *size, char out[LINE_BYTES])
{
    const uint8_t *end = memchr(*data, '\n', *size);
    size_t length = end == NULL ? *size : (size_t)(end - *data);
    size_t kept = length < LINE_BYTES - 1 ? length : LINE_BYTES - 1;
    memcpy(out, *data, kept);
    out[kept] = '\0';
    *data += end == NULL ? length : length + 1;
    *size -= end == NULL ? length : length + 1;
    return strcmp(out, "-") == 0 ? NULL : out;
}

/* From the store, or to a question, which ends sooner or later: then false. */
static bool wait_for_store(void)
{
    const int before = answered;
    test_world_settle(&world, &s, 1);
    if (answered > before)
        return true;
    BASE_ASSERT(s.queries.count == 1);
    for (int i = 0; i < 40 && answered == before; i++)
        test_world_settle(&world, &s, (uint64_t)i * 40 * BASE_NS_PER_S);
    BASE_ASSERT(answered == before + 1 && s.queries.count == 0);
    return false;
}

static void drain(struct meta_watch *watch)
{
    const char *bytes = NULL;
    size_t length = 0;
    bool whole = true; /* a document comes in two pieces */
    for (int i = 0; i < 4 && meta_watch_next(watch, 0, &bytes, &length) == 0 && length > 0; i++)
        whole = bytes[length - 1] == '\n';
    BASE_ASSERT(whole);
    if (agent == NULL && meta_watch_of_agent(&s, "n1") == watch)
        agent = watch; /* stays */
    else
        meta_watch_free(watch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char line[LINES][LINE_BYTES];
    const char *text[LINES];
    struct meta_service_answer answer;
    struct base_text body;
    if (s.directory == NULL)
        begin();
    for (int i = 0; i < LINES; i++)
        text[i] = take_line(&data, &size, line[i]);
    struct meta_service_request request = {.method = text[0] != NULL ? text[0] : "GET",
                                           .path = text[1] != NULL ? text[1] : "/",
                                           .if_match = text[2],
                                           .if_none_match = text[3],
                                           .shown.authorization = text[4],
                                           .shown.local = text[4] == NULL,
                                           .content_type = "application/json",
                                           .body = data,
                                           .body_bytes = size,
                                           .who = "fuzz",
                                           .token = &s};
    for (int i = 0; i < META_PARAMETERS; i++)
        request.parameter[i] = text[5 + i];
    uint64_t revision = meta_resources_revision(s.resources);
    base_text_init(&body, 4 << 20);
    meta_service_handle(&s, &request, 1, &body, &answer);
    if (answer.status == META_SERVICE_LATER) {
        const bool stored = wait_for_store();
        answer = told;
        if (!stored) {
            base_text_fini(&body);
            return 0;
        }
    }
    BASE_ASSERT(answer.status >= 200 && answer.status < 600 && body.error == 0);
    if (answer.status >= 400) {
        BASE_ASSERT(strcmp(answer.content_type, "application/problem+json") == 0);
        BASE_ASSERT(answer.watch == NULL && meta_resources_revision(s.resources) == revision);
    }
    BASE_ASSERT(meta_resources_revision(s.resources) - revision <= 1);
    if (answer.watch != NULL)
        drain(answer.watch);
    base_text_fini(&body);
    return 0;
}
