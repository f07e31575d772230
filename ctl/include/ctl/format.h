/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and times as tables show them, each in one way: JSON has numbers, with the unit in the
 * member's name. Any thread. */
#ifndef CTL_FORMAT_H
#define CTL_FORMAT_H

#include <stdint.h>

enum { CTL_AMOUNT_BYTES = 32 };

/* "4GiB": a whole number of the largest unit that has one, so that nothing is rounded and what is
 * shown can be set. Each returns out. */
const char *ctl_format_size(uint64_t bytes, char out[CTL_AMOUNT_BYTES]);
/* "117.7MiB": of what was measured, rounded down to a tenth. */
const char *ctl_format_rounded(uint64_t bytes, char out[CTL_AMOUNT_BYTES]);
/* "90s", "1500ms", "2h", "0": likewise, of a time that is set. */
const char *ctl_format_duration(uint64_t ms, char out[CTL_AMOUNT_BYTES]);
/* "850ms", "12s", "3m20s", "27h", "4d3h": how long ago, or how long from now, in two units at most,
 * rounded down. */
const char *ctl_format_age(uint64_t ms, char out[CTL_AMOUNT_BYTES]);

#endif
