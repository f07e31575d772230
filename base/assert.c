/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void base_assert_failed(const char *expression, const char *file, int line)
{
    fprintf(stderr, "%s:%d: assertion failed: %s (a defect in Kedge; please report it)\n", file,
            line, expression);
    abort();
}
