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
    case KEDGE_CONTROL_ATTACH:
        return sizeof(struct kedge_control_attach);
    case KEDGE_CONTROL_ATTACHED:
        return sizeof(struct kedge_control_attached);
    case KEDGE_CONTROL_ARENA:
        return sizeof(struct kedge_control_arena);
    case KEDGE_CONTROL_ARENA_OK:
        return sizeof(struct kedge_control_arena_ok);
    case KEDGE_CONTROL_RESOLVE:
        return sizeof(struct kedge_control_resolve);
    case KEDGE_CONTROL_RESOLVED:
        return sizeof(struct kedge_control_resolved);
    case KEDGE_CONTROL_ERROR:
        return sizeof(struct kedge_control_error);
    default:
        return 0;
    }
}

static void fuzz_packet(const uint8_t *data, size_t size)
{
    union {
        struct kedge_control_header h;
        struct kedge_control_attach attach;
        struct kedge_control_resolve resolve;
        struct kedge_control_error error;
        uint8_t bytes[KEDGE_CONTROL_MAX_BYTES];
    } m;
    if (kedge_control_check(data, size) != 0)
        return;
    KEDGE_ASSERT(size <= sizeof m);
    memcpy(&m, data, size);
    KEDGE_ASSERT(m.h.magic == KEDGE_CONTROL_MAGIC && m.h.version == KEDGE_CONTROL_VERSION);
    KEDGE_ASSERT(size_of(m.h.type) == size && m.h.size == size);
    if (m.h.type == KEDGE_CONTROL_ATTACH)
        KEDGE_ASSERT(memchr(m.attach.pool, 0, sizeof m.attach.pool) != NULL &&
                     memchr(m.attach.token, 0, sizeof m.attach.token) != NULL);
    else if (m.h.type == KEDGE_CONTROL_RESOLVE)
        KEDGE_ASSERT(memchr(m.resolve.name, 0, sizeof m.resolve.name) != NULL);
    else if (m.h.type == KEDGE_CONTROL_ERROR)
        KEDGE_ASSERT(m.error.status < 0 && m.error.status >= -4095 &&
                     memchr(m.error.text, 0, sizeof m.error.text) != NULL);
}

/* The same packet with a header that fits its size, so that mutations reach the body. */
static void fuzz_body(const uint8_t *data, size_t size)
{
    struct kedge_control_header h = {
        .magic = KEDGE_CONTROL_MAGIC, .version = KEDGE_CONTROL_VERSION, .size = (uint32_t)size};
    if (size < sizeof h)
        return;
    uint8_t *packet = malloc(size);
    KEDGE_ASSERT(packet != NULL);
    memcpy(packet, data, size);
    for (h.type = 0; h.type <= KEDGE_CONTROL_ERROR + 1; h.type++) {
        memcpy(packet, &h, sizeof h);
        fuzz_packet(packet, size);
    }
    free(packet);
}

/* There is one text for each token: two that differ must not be the same right. */
static void fuzz_token(const uint8_t *data, size_t size)
{
    struct kedge_token t, back;
    char again[KEDGE_TOKEN_TEXT];
    char *text = malloc(size + 1);
    KEDGE_ASSERT(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (kedge_token_parse(text, &t) == 0) {
        kedge_token_format(&t, again);
        KEDGE_ASSERT(strcmp(text, again) == 0);
    }
    free(text);
    if (size < sizeof t)
        return;
    memcpy(&t, data, sizeof t);
    kedge_token_format(&t, again);
    KEDGE_ASSERT(memchr(again, 0, sizeof again) != NULL);
    KEDGE_ASSERT(kedge_token_parse(again, &back) == 0);
    KEDGE_ASSERT(memcmp(&t, &back, sizeof t) == 0);
    /* A damaged character of it must be seen. */
    size_t at = data[size - 1] % strlen(again);
    again[at] = again[at] == 'A' ? 'B' : 'A';
    KEDGE_ASSERT(kedge_token_parse(again, &back) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_packet(data, size);
    fuzz_body(data, size);
    fuzz_token(data, size);
    return 0;
}
