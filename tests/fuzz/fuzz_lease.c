/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of workers and leases and cursors, as they come to the admin socket, and what rdmactl makes
 * of an agent's answers. What is understood is written the same way again. */
#include <stdlib.h>
#include <string.h>

#include "control/lease_ids.h"
#include "base/assert.h"
#include "ctl/agent_items.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_ids(const char *text)
{
    struct agent_worker_id id, again;
    struct agent_cursor cursor, same;
    char out[AGENT_ID_BYTES], place[AGENT_CURSOR_BYTES];
    uint32_t number = 0;
    if (agent_worker_id_parse(text, &id, NULL)) {
        BASE_ASSERT(agent_worker_id_parse(agent_worker_id_format(&id, out), &again, NULL));
        BASE_ASSERT(again.session == id.session && again.serial == id.serial);
        BASE_ASSERT(!agent_worker_id_parse(text, &id, &number));
    } else if (agent_worker_id_parse(text, &id, &number)) {
        BASE_ASSERT(number != 0);
    }
    if (agent_cursor_parse(text, &cursor)) {
        BASE_ASSERT(agent_cursor_parse(agent_cursor_format(&cursor, place), &same));
        BASE_ASSERT(same.session == cursor.session && same.place == cursor.place);
    }
}

static void check_page(const struct ctl_agent_item_kind *kind,
                       const struct ctl_agent_item_page *page)
{
    for (size_t n = 0; n < page->count; n++) {
        BASE_ASSERT(page->item[n].json != NULL);
        for (size_t i = 0; i < kind->columns; i++) {
            const char *cell = page->item[n].cell[i];
            BASE_ASSERT(memchr(cell, '\0', CTL_CELL_BYTES) != NULL);
            for (const char *c = cell; *c != '\0'; c++) /* nothing that a terminal would obey */
                BASE_ASSERT((unsigned char)*c >= ' ' && *c != 127);
        }
    }
}

static void fuzz_answers(const char *name, const char *text, size_t size)
{
    const struct ctl_agent_item_kind *kind = ctl_agent_item_kind_find(name);
    struct base_errbuf err;
    struct ctl_agent_item_page page;
    struct ctl_agent_item one;
    struct ctl_revoked r;
    if (ctl_decode_agent_items(kind, text, size, &page, &err) == 0) {
        check_page(kind, &page);
        ctl_agent_item_page_fini(&page);
    }
    if (ctl_decode_agent_item(kind, text, size, &one, &err) == 0)
        ctl_agent_item_fini(&one);
    if (ctl_decode_revoked(text, size, &r, &err) == 0) {
        check_page(ctl_agent_item_kind_find("lease"), &r.leases);
        ctl_agent_item_page_fini(&r.leases);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    BASE_ASSERT(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    fuzz_ids(text);
    fuzz_answers("lease", text, size);
    fuzz_answers("worker", text, size);
    free(text);
    return 0;
}
