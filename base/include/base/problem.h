/* SPDX-License-Identifier: Apache-2.0 */
/* Problems (RFC 9457): what a REST interface answers instead of what was asked for. Any thread. */
#ifndef BASE_PROBLEM_H
#define BASE_PROBLEM_H

#include "base/text.h"

#define BASE_PROBLEM_TYPE "application/problem+json"

/* Appends {"type", "title", "status", "detail"}; the type is the status's, and detail may be NULL.
 */
void base_problem_write(struct base_text *t, int status, const char *title, const char *detail);
/* The title of a status (400..599). Never NULL. */
const char *base_problem_title(int status);

#endif
