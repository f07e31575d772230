/* SPDX-License-Identifier: Apache-2.0 */
/* The home of GnuTLS. */
#include "base/digest.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>

int kedge_digest(const char *text, uint8_t out[KEDGE_DIGEST_BYTES])
{
    return gnutls_hash_fast(GNUTLS_DIG_SHA256, text, strlen(text), out) == 0 ? 0 : -EIO;
}

bool kedge_digest_same(const uint8_t a[KEDGE_DIGEST_BYTES], const uint8_t b[KEDGE_DIGEST_BYTES])
{
    return gnutls_memcmp(a, b, KEDGE_DIGEST_BYTES) == 0;
}
