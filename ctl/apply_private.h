/* SPDX-License-Identifier: Apache-2.0 */
/* Between apply.c and diff.c: the files of both. */
#ifndef CTL_APPLY_PRIVATE_H
#define CTL_APPLY_PRIVATE_H

#include "ctl/manifest.h"
#include "ctl/options.h"

/* All files of --file, to an empty manifest, which is the caller's to fini in any case. 0, -EINVAL
 * or -ENOMEM. */
int ctl_apply_read(const struct ctl_options *o, struct ctl_manifest *m, struct base_errbuf *err);
/* apply --dry-run. -EREMCHG: one of them has another revision by now. */
int ctl_apply_dry(const struct ctl_options *o, struct base_errbuf *err);

#endif
