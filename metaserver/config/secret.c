/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/secret.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/digest.h"
#include "base/text.h"
#include "schema/control.h"

#define PREFIX "kedge_"
enum { SECRET_BYTES = 32, TAIL = BASE_BASE64_TEXT(SECRET_BYTES) - 2 }; /* 43: it is not padded */

_Static_assert((int)META_TOKEN_HASH_BYTES == (int)BASE_DIGEST_BYTES, "as settings keep it");
_Static_assert((size_t)SECRET_TEXT <= sizeof((struct schema_control_attach *)0)->token,
               "a worker shows it to its agent");

int meta_secret_make(struct meta_world *w, const char *name, char out[SECRET_TEXT],
                     uint8_t hash[META_TOKEN_HASH_BYTES])
{
    uint8_t random[SECRET_BYTES];
    char tail[BASE_BASE64_TEXT(SECRET_BYTES)];
    int status = meta_world_random(w, random, sizeof random);
    if (status != 0)
        return status;
    size_t length = base_base64_encode(BASE_BASE64URL, random, sizeof random, tail);
    BASE_ASSERT(length == TAIL);
    snprintf(out, SECRET_TEXT, PREFIX "%.63s_%.43s", name, tail);
    explicit_bzero(random, sizeof random);
    explicit_bzero(tail, sizeof tail);
    return base_digest(out, hash);
}

int meta_secret_hash(const char *secret, uint8_t hash[META_TOKEN_HASH_BYTES])
{
    return base_digest(secret, hash);
}

int meta_secret_name(const char *secret, char name[META_RESOURCE_NAME_BYTES])
{
    size_t prefix = sizeof PREFIX - 1, length = strlen(secret);
    if (length < prefix + 2 + TAIL || strncmp(secret, PREFIX, prefix) != 0)
        return -EINVAL;
    size_t n = length - prefix - 1 - TAIL;
    if (n >= META_RESOURCE_NAME_BYTES || secret[prefix + n] != '_')
        return -EINVAL;
    char found[META_RESOURCE_NAME_BYTES];
    snprintf(found, sizeof found, "%.*s", (int)n, secret + prefix);
    if (!meta_resource_is_name(found, sizeof found - 1))
        return -EINVAL;
    memcpy(name, found, sizeof found);
    return 0;
}

bool meta_secret_matches(const char *secret, const uint8_t hash[META_TOKEN_HASH_BYTES])
{
    uint8_t own[META_TOKEN_HASH_BYTES];
    return base_digest(secret, own) == 0 && base_digest_same(own, hash);
}
