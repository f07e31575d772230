/* SPDX-License-Identifier: Apache-2.0 */
/* Each assertion that holds tells check's runner where it stands (_mark_point), so that a test that
 * is killed can be said to have been killed behind that one. That takes a microsecond, and with a
 * sanitizer ten: of tests that assert a million times nearly all of the time. The runner is told of
 * the first thousand of each process, which is all of most, and of each hundredth after them. */
#include <stdatomic.h>

#include "check_marks.h"

enum { ALL = 1000, THEN = 100 };

void __real__mark_point(const char *file, int line);

void __wrap__mark_point(const char *file, int line)
{
    static _Atomic unsigned marks; /* some tests assert in several threads */
    const unsigned n = atomic_fetch_add_explicit(&marks, 1, memory_order_relaxed);
    if (n < ALL || n % THEN == 0)
        __real__mark_point(file, line);
}
