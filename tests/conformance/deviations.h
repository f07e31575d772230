/* SPDX-License-Identifier: Apache-2.0 */
/* Where a device is known to differ from what fabric.h promises. A test that cannot pass for such a
 * reason is left out on that device alone, and is named with the reason after the run. */
#ifndef CONFORMANCE_DEVIATIONS_H
#define CONFORMANCE_DEVIATIONS_H

#include <check.h>
#include <stdbool.h>

/* Leaves out what is known to fail on a provider ("verbs") and on a driver ("rxe", or NULL) under
 * it. With KEDGE_CONFORMANCE_ALL in the environment nothing is left out. */
void deviations_of(const char *provider, const char *driver);
/* Whether this test is left out, which is then counted. */
bool deviates(const char *test);
/* How many were left out; prints which and why. */
unsigned deviations_report(void);

#endif
