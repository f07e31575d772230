/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256, as secrets are kept, and how it is compared. Any thread. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

enum { BASE_DIGEST_BYTES = 32, BASE_DIGEST_NAME = 33 };

/* SHA-256 of a text, without its NUL. 0 or -EIO: the library refuses to. */
int base_digest(const char *text, uint8_t out[BASE_DIGEST_BYTES]);
/* Takes as long whatever they are. */
bool base_digest_same(const uint8_t a[BASE_DIGEST_BYTES], const uint8_t b[BASE_DIGEST_BYTES]);
/* Half of it as hexadecimal digits, and NUL: names a secret without telling it. Errors likewise. */
int base_digest_name(const char *text, char out[BASE_DIGEST_NAME]);

#endif
