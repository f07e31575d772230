/* SPDX-License-Identifier: Apache-2.0 */
/* What this host's device can do, as `kedge-agentd --probe` reports it: rdmactl itself links
 * neither the fabric nor verbs. One thread. */
#ifndef CTL_PROBE_H
#define CTL_PROBE_H

#include <stdbool.h>

#include "ctl/checks.h"
#include "ctl/options.h"

enum { CTL_PROBE_VERSION = 1, CTL_PROBE_CHECKS = 96, CTL_PROBE_CANDIDATES = 256 };

struct ctl_candidate {
    bool chosen;
    char device[40], driver[40], firmware[40], port[8], state[56], gid[64], kind[24], why[208];
};

struct ctl_probe {
    char provider[40], device[128], gid[64];
    struct ctl_check check[CTL_PROBE_CHECKS];
    size_t checks;
    struct ctl_candidate candidate[CTL_PROBE_CANDIDATES]; /* more are in `rest` alone */
    size_t candidates;
    bool by_proc; /* peers reach each other through /proc */
    bool usable, rc, dc;
    char sentence[1024];
    char *rest; /* the report without its checks and verdict: a JSON object, owned */
};

/* Runs the program that is found beside this one, in ../sbin, or in PATH; waits minutes at most.
 * 0 and *out (fini it), also when the device cannot be used; -ENOENT: there is no such program;
 * -EBADMSG, -ETIMEDOUT, -EINVAL (the program's own words in err). */
int ctl_probe_run(const struct ctl_options *o, struct ctl_probe *out, struct base_errbuf *err);
/* Becomes that program, for `doctor --serve`. -errno and a sentence, or does not return. */
int ctl_probe_serve(const struct ctl_options *o, struct base_errbuf *err);
/* The report's text to its struct. 0, or -EBADMSG and *out is empty. */
int ctl_probe_decode(const char *body, size_t bytes, struct ctl_probe *out,
                     struct base_errbuf *err);
void ctl_probe_fini(struct ctl_probe *probe);

#endif
