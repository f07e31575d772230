/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/token.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/text.h"

static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "tokens are little-endian and used as they are");

#define PREFIX       "kedge1."
#define PREFIX_BYTES (sizeof PREFIX - 1)

/* What the text encodes. */
struct packed_token {
    uint8_t gid[16];
    uint16_t pool;
    uint16_t access;
    uint32_t vkey;
    uint64_t addr, length;
    uint8_t secret[16];
    uint32_t crc; /* over all before it */
} __attribute__((packed));
static_assert(sizeof(struct packed_token) == 60, "layout");
static_assert(PREFIX_BYTES + BASE_BASE64_TEXT(sizeof(struct packed_token)) <= SCHEMA_TOKEN_TEXT,
              "a token fits");

static uint32_t checksum_of(const struct packed_token *p)
{
    return base_crc32c(0, p, sizeof *p - sizeof p->crc);
}

void schema_token_format(const struct schema_token *t, char text[SCHEMA_TOKEN_TEXT])
{
    struct packed_token p = {.pool = t->pool,
                             .access = t->access,
                             .vkey = t->vkey,
                             .addr = t->addr,
                             .length = t->length};
    memcpy(p.gid, t->gid, sizeof p.gid);
    memcpy(p.secret, t->secret, sizeof p.secret);
    p.crc = checksum_of(&p);
    memcpy(text, PREFIX, PREFIX_BYTES);
    base_base64_encode(BASE_BASE64URL, &p, sizeof p, text + PREFIX_BYTES);
}

int schema_token_parse(const char *text, struct schema_token *out)
{
    struct packed_token p;
    size_t length = strnlen(text, SCHEMA_TOKEN_TEXT), got;
    if (length >= SCHEMA_TOKEN_TEXT || length < PREFIX_BYTES ||
        memcmp(text, PREFIX, PREFIX_BYTES) != 0)
        return -EINVAL;
    if (base_base64_decode(BASE_BASE64URL, text + PREFIX_BYTES, length - PREFIX_BYTES, &p, sizeof p,
                           &got) != 0)
        return -EINVAL;
    if (got != sizeof p || p.crc != checksum_of(&p))
        return -EINVAL;
    *out = (struct schema_token){
        .pool = p.pool, .access = p.access, .vkey = p.vkey, .addr = p.addr, .length = p.length};
    memcpy(out->gid, p.gid, sizeof out->gid);
    memcpy(out->secret, p.secret, sizeof out->secret);
    return 0;
}
