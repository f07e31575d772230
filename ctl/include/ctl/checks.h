/* SPDX-License-Identifier: Apache-2.0 */
/* What `doctor` looks at on this host. Each check changes nothing that stays. */
#ifndef CTL_CHECKS_H
#define CTL_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

/* Open files that an agent with its default settings wants, of one with others its probe tells. */
enum { CTL_FILES_WANTED = 13440 };

enum ctl_level { CTL_OK, CTL_WARN, CTL_FAIL, CTL_SKIP }; /* FAIL: Kedge cannot run here */

struct ctl_check {
    char name[40];
    enum ctl_level level;
    char found[512];
    char advice[512]; /* "" if nothing is to be done */
    char *numbers;    /* a JSON object, owned by whoever owns the check; NULL: none */
};

/* Fills out, at most max of them, with the checks that need no server. Returns how many. */
size_t ctl_checks_host(struct ctl_check *out, size_t max);

/* Takes out those of the host that a probe of the device speaks of as well, and /proc,
 * if its provider does not reach peers by it. Returns how many are left. */
size_t ctl_checks_leave(struct ctl_check *check, size_t count, bool by_proc);

#endif
