/* SPDX-License-Identifier: Apache-2.0 */
/* What `doctor` looks at on this host. Each check changes nothing that stays. */
#ifndef CTL_CHECKS_H
#define CTL_CHECKS_H

#include <stddef.h>

enum ctl_level { CTL_OK, CTL_WARN, CTL_FAIL }; /* FAIL: the soft provider cannot run */

struct ctl_check {
    const char *name;
    enum ctl_level level;
    char found[256];
    char advice[512]; /* "" if nothing is to be done */
};

/* Fills out, at most max of them, with the checks that need no server. Returns how many. */
size_t ctl_checks_host(struct ctl_check *out, size_t max);

#endif
