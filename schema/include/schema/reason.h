/* SPDX-License-Identifier: Apache-2.0 */
/* Names of enum schema_reason, for logs; what a worker is told is a sentence of libkedge's. */
#ifndef SCHEMA_REASON_H
#define SCHEMA_REASON_H

#include <stdint.h>

/* "too_many_wrong_keys", ...: a literal; "unknown" for a number that is none. */
const char *schema_reason_name(uint32_t reason);

#endif
