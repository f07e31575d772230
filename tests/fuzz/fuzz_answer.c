/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent answers when it is asked for its workers and leases: what is passed on to a client
 * is an answer that rdmactl understands, and of the node that was asked. The first byte says what
 * was asked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "ctl/agent_items.h"
#include "metaserver/service.h"
#include "../unit/metaserver/test_world.h"

enum { NODE_COLUMN_LEASE = 14, NODE_COLUMN_WORKER = 10, WORKER_COLUMN = 13 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct test_world world;
static struct meta_service s;
static struct meta_watch *watch;
static struct base_text relayed;
static int status;

static void on_wake(void *token)
{
    BASE_ASSERT(token != NULL);
}

static void on_answer(void *token, const struct meta_service_answer *answer,
                      const struct base_text *body)
{
    BASE_ASSERT(token == &s && body->error == 0);
    status = answer->status;
    base_text_reset(&relayed);
    base_text_append(&relayed, base_text_str(body), body->length);
}

/* The status; META_SERVICE_LATER: it is yet to come. */
static int ask(const char *method, const char *path, const char *node, const void *body,
               size_t bytes, struct meta_service_answer *answer)
{
    struct meta_service_request request = {.method = method,
                                           .path = path,
                                           .shown.local = true,
                                           .content_type = "application/json",
                                           .body = body,
                                           .body_bytes = bytes,
                                           .who = "fuzz",
                                           .token = &s};
    struct base_text out;
    request.parameter[META_PARAMETER_NODE] = node;
    request.parameter[META_PARAMETER_WATCH] = request.parameter[META_PARAMETER_ANSWERS] =
        strstr(path, "/configuration") != NULL ? "1" : NULL;
    base_text_init(&out, 4 << 20);
    status = META_SERVICE_LATER;
    meta_service_handle(&s, &request, 1, &out, answer);
    base_text_fini(&out);
    if (answer->status == META_SERVICE_LATER)
        test_world_settle(&world, &s, 1);
    return answer->status != META_SERVICE_LATER ? answer->status : status;
}

static void drain(void)
{
    const char *bytes;
    size_t length;
    do
        BASE_ASSERT(meta_watch_next(watch, 0, &bytes, &length) == 0);
    while (length > 0);
}

static void begin(void)
{
    static const char node[] = "{\"incarnation\":5,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":1,"
                               "\"transports\":[\"dc\"],\"dct_number\":77,"
                               "\"dc_key\":\"00000000000000aa\",\"mtu\":4096}]}";
    const struct meta_directory_limits limits = {16, 16, BASE_NS_PER_S, BASE_NS_PER_S};
    size_t bytes = schema_table_bytes(schema_table_log2_slots(16));
    struct meta_service_answer answer;
    void *memory = aligned_alloc(64, bytes);
    BASE_ASSERT(memory != NULL);
    memset(memory, 0, bytes);
    base_log_init("fuzz", BASE_LOG_ERROR);
    base_text_init(&relayed, 4 << 20);
    s.directory = meta_directory_new(&limits, memory, 1, 2);
    s.resources = meta_resources_new(16);
    s.store = meta_store_memory(NULL);
    test_world_init(&world, s.store);
    s.world = &world.base;
    s.endpoint.dct_number = 1;
    s.max_watches = 2;
    s.wake = on_wake;
    s.answer = on_answer;
    BASE_ASSERT(s.directory != NULL && s.resources != NULL && s.store != NULL);
    BASE_ASSERT(ask("PUT", "/v1/nodes/n1", NULL, node, sizeof node - 1, &answer) == 201);
    BASE_ASSERT(ask("GET", "/v1/nodes/n1/configuration", NULL, "", 0, &answer) == 200);
    watch = answer.watch;
    drain();
}

static void check_page(const struct ctl_agent_item_page *page, bool leases)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct ctl_agent_item *item = &page->item[i];
        BASE_ASSERT(strncmp(item->cell[0], "n1:", 3) == 0);
        BASE_ASSERT(strcmp(item->cell[leases ? NODE_COLUMN_LEASE : NODE_COLUMN_WORKER], "n1") == 0);
        BASE_ASSERT(!leases || strncmp(item->cell[WORKER_COLUMN], "n1:", 3) == 0);
    }
}

static void check(int what)
{
    struct base_errbuf err;
    struct ctl_agent_item_page page;
    struct ctl_revoked r;
    struct ctl_agent_item one;
    const struct ctl_agent_item_kind *lease = ctl_agent_item_kind_find("lease");
    const struct ctl_agent_item_kind *worker = ctl_agent_item_kind_find("worker");
    if (what < 2) {
        BASE_ASSERT(ctl_decode_agent_items(what == 0 ? lease : worker, relayed.data, relayed.length,
                                           &page, &err) == 0);
        check_page(&page, what == 0);
        ctl_agent_item_page_fini(&page);
    } else if (what == 2) {
        BASE_ASSERT(ctl_decode_agent_item(lease, relayed.data, relayed.length, &one, &err) == 0);
        BASE_ASSERT(strcmp(one.cell[0], "n1:1-00000001-1") == 0);
        ctl_agent_item_fini(&one);
    } else {
        BASE_ASSERT(ctl_decode_revoked(relayed.data, relayed.length, &r, &err) == 0);
        check_page(&r.leases, true);
        ctl_agent_item_page_fini(&r.leases);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        const char *method, *path, *node;
    } questions[] = {{"GET", "/v1/leases", "n1"},
                     {"GET", "/v1/workers", "n1"},
                     {"GET", "/v1/leases/n1:1-00000001-1", NULL},
                     {"DELETE", "/v1/leases/n1:1-00000001-1", NULL}};
    struct meta_service_answer answer;
    char path[80];
    if (size == 0)
        return 0;
    if (s.directory == NULL)
        begin();
    const int what = data[0] % 4;
    BASE_ASSERT(ask(questions[what].method, questions[what].path, questions[what].node, "", 0,
                    &answer) == META_SERVICE_LATER);
    const struct meta_query *open = LIST_FIRST(&s.queries.open);
    snprintf(path, sizeof path, "/v1/nodes/n1/answers/%s", open->id);
    drain();
    status = META_SERVICE_LATER;
    const int told = ask("PUT", path, NULL, data + 1, size - 1, &answer);
    test_world_settle(&world, &s, 1);
    BASE_ASSERT(told == 204 || told == 400 || told == 413);
    if (told == 400)
        BASE_ASSERT(status == 502);
    if (told == 204 && (status == 200 || status == 202))
        check(what);
    /* What is too large is refused before it is looked at; a page may go on. */
    test_world_settle(&world, &s, 60 * BASE_NS_PER_S);
    drain();
    BASE_ASSERT(status >= 200 && s.queries.count == 0 && LIST_EMPTY(&s.proxies));
    return 0;
}
