/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/counter.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/text.h"

static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "tokens are little-endian and used as they are");

#define PREFIX       "kedge1c."
#define PREFIX_BYTES (sizeof PREFIX - 1)

/* What the text encodes. */
struct packed_counter {
    uint8_t gid[16];
    uint16_t pool;
    uint64_t name, secret;
    uint32_t crc; /* over all before it */
} __attribute__((packed));
static_assert(sizeof(struct packed_counter) == 38, "layout");
static_assert(PREFIX_BYTES + BASE_BASE64_TEXT(sizeof(struct packed_counter)) <=
                  SCHEMA_COUNTER_TOKEN_TEXT,
              "a token fits");

static uint32_t checksum_of(const struct packed_counter *p)
{
    return base_crc32c(0, p, sizeof *p - sizeof p->crc);
}

void schema_counter_token_format(const struct schema_counter_token *t,
                                 char text[SCHEMA_COUNTER_TOKEN_TEXT])
{
    struct packed_counter p = {.pool = t->pool, .name = t->name, .secret = t->secret};
    memcpy(p.gid, t->gid, sizeof p.gid);
    p.crc = checksum_of(&p);
    memcpy(text, PREFIX, PREFIX_BYTES);
    base_base64_encode(BASE_BASE64URL, &p, sizeof p, text + PREFIX_BYTES);
}

int schema_counter_token_parse(const char *text, struct schema_counter_token *out)
{
    struct packed_counter p;
    const size_t length = strnlen(text, SCHEMA_COUNTER_TOKEN_TEXT);
    size_t got;
    if (length >= SCHEMA_COUNTER_TOKEN_TEXT || length < PREFIX_BYTES ||
        memcmp(text, PREFIX, PREFIX_BYTES) != 0)
        return -EINVAL;
    if (base_base64_decode(BASE_BASE64URL, text + PREFIX_BYTES, length - PREFIX_BYTES, &p, sizeof p,
                           &got) != 0)
        return -EINVAL;
    if (got != sizeof p || p.crc != checksum_of(&p) || p.name == 0)
        return -EINVAL;
    *out = (struct schema_counter_token){.pool = p.pool, .name = p.name, .secret = p.secret};
    memcpy(out->gid, p.gid, sizeof out->gid);
    return 0;
}
