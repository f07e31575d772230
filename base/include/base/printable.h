/* SPDX-License-Identifier: Apache-2.0 */
/* What may go to a terminal or into a line of a log: UTF-8 without controls.
 *
 * Controls are U+0000-001F, U+007F, U+0080-009F (of which terminals take U+009B for an ESC '['),
 * the ends of line U+2028 and U+2029, and what turns the order of writing round: U+061C, U+200E,
 * U+200F, U+202A-202E, U+2066-2069 (Bidi_Control of the Unicode Character Database). Any thread. */
#ifndef BASE_PRINTABLE_H
#define BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of bytes that are no UTF-8. */
#define BASE_NO_CHARACTER UINT32_MAX

/* The character that `length` bytes (1 or more) begin with: how many bytes it has, and *code; or 1
 * and BASE_NO_CHARACTER. */
size_t base_character_read(const char *text, size_t length, uint32_t *code);
/* Whether that is none of the above. */
bool base_character_is_printable(uint32_t code);

/* Whether all of text is. */
bool base_is_printable(const char *text);
/* In place: each that is not becomes one '?', as does each byte that is no UTF-8. Returns the
 * length, which is no greater; ends with no NUL of its own. */
size_t base_make_printable(char *text, size_t length);
/* As snprintf("%s"), and printable. What has no room is cut between characters. Returns the length.
 * size: 1 or more; text: NULL is "", and it may be out. */
size_t base_copy_printable(char *out, size_t size, const char *text);

#endif
