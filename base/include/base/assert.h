/* SPDX-License-Identifier: Apache-2.0 */
/* BASE_ASSERT: our own mistakes only, never input. Stays on in release builds. Any thread. */
#ifndef BASE_ASSERT_H
#define BASE_ASSERT_H

/* Prints where and what, then aborts. */
_Noreturn void base_assert_failed(const char *expression, const char *file, int line);

#define BASE_ASSERT(cond)                                                                          \
    (__builtin_expect(!!(cond), 1) ? (void)0 : base_assert_failed(#cond, __FILE__, __LINE__))

#endif
