/* SPDX-License-Identifier: Apache-2.0 */
/* The home of GnuTLS. */
#include "base/digest.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <string.h>

int base_digest(const char *text, uint8_t out[BASE_DIGEST_BYTES])
{
    return gnutls_hash_fast(GNUTLS_DIG_SHA256, text, strlen(text), out) == 0 ? 0 : -EIO;
}

bool base_digest_same(const uint8_t a[BASE_DIGEST_BYTES], const uint8_t b[BASE_DIGEST_BYTES])
{
    return gnutls_memcmp(a, b, BASE_DIGEST_BYTES) == 0;
}

int base_digest_name(const char *text, char out[BASE_DIGEST_NAME])
{
    uint8_t digest[BASE_DIGEST_BYTES];
    const int status = base_digest(text, digest);
    for (int i = 0; status == 0 && i < BASE_DIGEST_NAME / 2; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
    return status;
}
