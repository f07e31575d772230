/* SPDX-License-Identifier: Apache-2.0 */
/* JSON into a text, value by value: the commas are the writer's, which puts one wherever the text
 * does not end with an opening bracket, a colon or a line. Key: the member's name in an object,
 * which is printed as it stands; NULL in an array, and at the top. What fails shows in the text's
 * error. One thread for each text. */
#ifndef BASE_JSON_WRITER_H
#define BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

void base_json_object(struct base_text *t, const char *key);
void base_json_object_end(struct base_text *t);
void base_json_array(struct base_text *t, const char *key);
void base_json_array_end(struct base_text *t);

/* value NULL: null. Bytes that are not UTF-8 become U+FFFD. */
void base_json_string(struct base_text *t, const char *key, const char *value);
void base_json_u64(struct base_text *t, const char *key, uint64_t value);
void base_json_i64(struct base_text *t, const char *key, int64_t value);
void base_json_bool(struct base_text *t, const char *key, bool value);
void base_json_null(struct base_text *t, const char *key);
/* A string of 16 digits, of a value of which not all readers of numbers take all bits. */
void base_json_hex64(struct base_text *t, const char *key, uint64_t value);
/* null where value is `none`: a bound that there is not. */
void base_json_u64_or_null(struct base_text *t, const char *key, uint64_t value, uint64_t none);
/* json: a value that is JSON already. */
void base_json_raw(struct base_text *t, const char *key, const char *json);

#endif
