/* SPDX-License-Identifier: Apache-2.0 */
/* What the linker puts in the place of a function of check's (check_marks.c). Any thread. */
#ifndef TESTS_UNIT_CHECK_MARKS_H
#define TESTS_UNIT_CHECK_MARKS_H

void __wrap__mark_point(const char *file, int line);

#endif
