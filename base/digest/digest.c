/* SPDX-License-Identifier: Apache-2.0 */
/* The home of GnuTLS. */
#include "base/digest.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>

int base_digest(const char *text, uint8_t out[BASE_DIGEST_BYTES])
{
    return gnutls_hash_fast(GNUTLS_DIG_SHA256, text, strlen(text), out) == 0 ? 0 : -EIO;
}

bool base_digest_same(const uint8_t a[BASE_DIGEST_BYTES], const uint8_t b[BASE_DIGEST_BYTES])
{
    return gnutls_memcmp(a, b, BASE_DIGEST_BYTES) == 0;
}
