/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane allocates its thread writes in each pass, and in the heap another lane's may come to
 * lie beside it: then both would write one line of memory, and wait for each other. So behind
 * everything that lanes allocate there is a line that nobody writes. agent/CMakeLists.txt has this
 * included ahead of each of their sources, so that none can be left out. Any thread. */
#ifndef LANE_OWN_LINES_H
#define LANE_OWN_LINES_H

#include <stdlib.h>

enum { LANE_LINE_BYTES = 64 };

/* As calloc(). */
static inline void *lane_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) ||
        __builtin_add_overflow(bytes, (size_t)LANE_LINE_BYTES, &bytes))
        return NULL;
    return calloc(1, bytes);
}
#define calloc lane_calloc

#endif
