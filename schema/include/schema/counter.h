/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of a session, which messages of others raise (docs/messages.md#counters): what names
 * one, in the ring and on the wire, and as a token, which is handed to other workers by any means.
 * Text: "kedge1c." and base64url of the fields with a CRC-32C. Whoever holds it may raise it. */
#ifndef SCHEMA_COUNTER_H
#define SCHEMA_COUNTER_H

#include <stdint.h>

#define SCHEMA_COUNTERS           32 /* of a session */
#define SCHEMA_COUNTER_TOKEN_TEXT 64 /* bytes, the NUL included */

/* Which one it is of its session's: the rest of its name is random, and so is its secret. */
static inline uint32_t schema_counter_number(uint64_t name)
{
    return name & 0xffff;
}

/* Of COUNTER_NEW, and COUNTER_FREE, which has a name. */
struct schema_sq_counter {
    uint32_t tag, zero;
    uint64_t name;
};

struct schema_counter_token {
    uint8_t gid[16]; /* the endpoint */
    uint16_t pool;
    uint64_t name, secret; /* name: never 0 */
};

void schema_counter_token_format(const struct schema_counter_token *t,
                                 char text[SCHEMA_COUNTER_TOKEN_TEXT]);
/* 0 or -EINVAL (not a token, damaged, too long). */
int schema_counter_token_parse(const char *text, struct schema_counter_token *out);

#endif
