/* SPDX-License-Identifier: Apache-2.0 */
/* The file of `token create --secret-out`: there as a whole with its secret, for its owner alone,
 * or not there at all. One thread. */
#ifndef CTL_SECRET_OUT_H
#define CTL_SECRET_OUT_H

#include "base/error.h"

enum { CTL_SECRET_OUT_BYTES = 1024 };

struct ctl_secret_out {
    const char *path; /* borrowed */
    char temporary[CTL_SECRET_OUT_BYTES];
    int fd;
};

/* Makes the file under another name beside it, so that what would fail fails before there is a
 * token. 0, and *out is to be closed; -EEXIST: there is something at path; -EACCES, -EPERM;
 * -EINVAL: it cannot be made. Closing is harmless after an error too. */
int ctl_secret_out_open(struct ctl_secret_out *out, const char *path, struct base_errbuf *err);
/* Gives it the secret, and then its name. 0; -EEXIST: something has come there meanwhile; -errno.
 */
int ctl_secret_out_keep(struct ctl_secret_out *out, const char *secret, struct base_errbuf *err);
/* Takes the other name away. */
void ctl_secret_out_close(struct ctl_secret_out *out);

#endif
