/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of errors: errno, HTTP status, rdmactl's exit code and a sentence. Any thread.
 *
 * An errno is the error's name everywhere: functions return it negated, base_error_of() finds its
 * row. Where errno's own words are vague, this is what they mean here:
 *   EINVAL malformed, EACCES and EPERM not permitted, EKEYREJECTED no valid token, ENOENT unknown,
 *   ENOTSUP not that method, EEXIST conflict, ESTALE a lower incarnation than the known one,
 *   EIDRM no longer there, EREMCHG changed meanwhile (If-Match), EMSGSIZE too large,
 *   EMEDIUMTYPE not that content type, EDQUOT a quota, EAGAIN too much at once, ENOSPC full,
 *   EHOSTUNREACH no metaserver, EROFS the store takes no writes, ETIMEDOUT too late,
 *   EBADMSG an answer that makes no sense. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stddef.h>

/* A sentence for a person: what failed, why, and the way out. */
struct base_errbuf {
    char text[512];
};

/* Formats into err (NULL is allowed) and returns status, so that `return base_err(...)` reads
 * well. */
int base_err(struct base_errbuf *err, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct base_error {
    int errnum; /* positive */
    int http;
    int exit_code;     /* of rdmactl */
    const char *title; /* a short sentence */
};

/* The row of an errno (either sign); unknown ones get the row of EIO. Never NULL. */
const struct base_error *base_error_of(int errnum);
/* The row that an HTTP status (400..599) stands for; unknown ones get EIO's. Never NULL. */
const struct base_error *base_error_of_http(int status);

#endif
