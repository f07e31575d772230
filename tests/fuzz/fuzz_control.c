/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of the attach socket, and tokens: both come from whoever has a socket or a pen. What
 * passes the check must be safe to use as the struct that its type names. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "schema/control.h"
#include "schema/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t size_of(uint16_t type)
{
    switch (type) {
    case SCHEMA_CONTROL_ATTACH:
        return sizeof(struct schema_control_attach);
    case SCHEMA_CONTROL_ATTACHED:
        return sizeof(struct schema_control_attached);
    case SCHEMA_CONTROL_ARENA:
        return sizeof(struct schema_control_arena);
    case SCHEMA_CONTROL_ARENA_OK:
        return sizeof(struct schema_control_arena_ok);
    case SCHEMA_CONTROL_RESOLVE:
        return sizeof(struct schema_control_resolve);
    case SCHEMA_CONTROL_RESOLVED:
        return sizeof(struct schema_control_resolved);
    case SCHEMA_CONTROL_ERROR:
        return sizeof(struct schema_control_error);
    case SCHEMA_CONTROL_PUBLISH:
    case SCHEMA_CONTROL_UNPUBLISH:
        return sizeof(struct schema_control_publish);
    case SCHEMA_CONTROL_PUBLISHED:
        return sizeof(struct schema_control_published);
    default:
        return 0;
    }
}

static void fuzz_packet(const uint8_t *data, size_t size)
{
    union {
        struct schema_control_header h;
        struct schema_control_attach attach;
        struct schema_control_resolve resolve;
        struct schema_control_publish publish;
        struct schema_control_error error;
        uint8_t bytes[SCHEMA_CONTROL_MAX_BYTES];
    } m;
    if (schema_control_check(data, size) != 0)
        return;
    BASE_ASSERT(size <= sizeof m);
    memcpy(&m, data, size);
    BASE_ASSERT(m.h.magic == SCHEMA_CONTROL_MAGIC && m.h.version == SCHEMA_CONTROL_VERSION);
    BASE_ASSERT(size_of(m.h.type) == size && m.h.size == size);
    if (m.h.type == SCHEMA_CONTROL_ATTACH)
        BASE_ASSERT(memchr(m.attach.pool, 0, sizeof m.attach.pool) != NULL &&
                    memchr(m.attach.token, 0, sizeof m.attach.token) != NULL);
    else if (m.h.type == SCHEMA_CONTROL_RESOLVE)
        BASE_ASSERT(memchr(m.resolve.name, 0, sizeof m.resolve.name) != NULL);
    else if (m.h.type == SCHEMA_CONTROL_PUBLISH || m.h.type == SCHEMA_CONTROL_UNPUBLISH)
        BASE_ASSERT(memchr(m.publish.name, 0, sizeof m.publish.name) != NULL);
    else if (m.h.type == SCHEMA_CONTROL_ERROR)
        BASE_ASSERT(m.error.status < 0 && m.error.status >= -4095 &&
                    memchr(m.error.text, 0, sizeof m.error.text) != NULL);
}

/* The same packet with a header that fits its size, so that mutations reach the body. */
static void fuzz_body(const uint8_t *data, size_t size)
{
    struct schema_control_header h = {
        .magic = SCHEMA_CONTROL_MAGIC, .version = SCHEMA_CONTROL_VERSION, .size = (uint32_t)size};
    if (size < sizeof h)
        return;
    uint8_t *packet = malloc(size);
    BASE_ASSERT(packet != NULL);
    memcpy(packet, data, size);
    for (h.type = 0; h.type <= SCHEMA_CONTROL_PUBLISHED + 1; h.type++) {
        memcpy(packet, &h, sizeof h);
        fuzz_packet(packet, size);
    }
    free(packet);
}

/* There is one text for each token: two that differ must not be the same right. */
static void fuzz_token(const uint8_t *data, size_t size)
{
    struct schema_token t, back;
    char again[SCHEMA_TOKEN_TEXT];
    char *text = malloc(size + 1);
    BASE_ASSERT(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (schema_token_parse(text, &t) == 0) {
        schema_token_format(&t, again);
        BASE_ASSERT(strcmp(text, again) == 0);
    }
    free(text);
    if (size < sizeof t)
        return;
    memcpy(&t, data, sizeof t);
    schema_token_format(&t, again);
    BASE_ASSERT(memchr(again, 0, sizeof again) != NULL);
    BASE_ASSERT(schema_token_parse(again, &back) == 0);
    BASE_ASSERT(memcmp(&t, &back, sizeof t) == 0);
    /* A damaged character of it must be seen. */
    size_t at = data[size - 1] % strlen(again);
    again[at] = again[at] == 'A' ? 'B' : 'A';
    BASE_ASSERT(schema_token_parse(again, &back) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_packet(data, size);
    fuzz_body(data, size);
    fuzz_token(data, size);
    return 0;
}
