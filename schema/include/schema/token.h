/* SPDX-License-Identifier: Apache-2.0 */
/* An exported memory region as a small printable token, to be handed to another worker by any
 * means. Text: "kedge1." and base64url of the fields with a CRC-32C. Whoever holds it may use the
 * region. */
#ifndef SCHEMA_TOKEN_H
#define SCHEMA_TOKEN_H

#include <stdint.h>

#define SCHEMA_TOKEN_TEXT 96 /* bytes, the NUL included */

struct schema_token {
    uint8_t gid[16]; /* the owner's endpoint */
    uint16_t pool;
    uint16_t access; /* enum schema_record_flag */
    uint32_t vkey;
    uint64_t addr, length;
    uint8_t secret[16];
};

void schema_token_format(const struct schema_token *t, char text[SCHEMA_TOKEN_TEXT]);
/* 0 or -EINVAL (not a token, damaged, too long). */
int schema_token_parse(const char *text, struct schema_token *out);

#endif
