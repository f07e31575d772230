/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int base_err(struct base_errbuf *err, int status, const char *format, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
    }
    return status;
}

/* The first row with an HTTP status is the one that base_error_of_http() finds. */
static const struct base_error table[] = {
    {EIO, 500, 1, "internal error"},
    {EINVAL, 400, 2, "the request is malformed"},
    {EPROTO, 400, 2, "the peer does not speak this protocol"},
    {ERANGE, 400, 2, "a value is out of range"},
    {EKEYREJECTED, 401, 4, "no valid token"},
    {EACCES, 403, 4, "permission denied"},
    {EPERM, 403, 4, "operation not permitted"},
    {ENOENT, 404, 3, "no such thing"},
    {ENOTSUP, 405, 2, "method not allowed"},
    {EEXIST, 409, 5, "conflict"},
    {ESTALE, 409, 5, "stale incarnation"},
    {EBUSY, 409, 5, "busy"},
    {EIDRM, 410, 3, "it is there no longer"},
    {EREMCHG, 412, 5, "it was changed meanwhile"},
    {EMSGSIZE, 413, 2, "too large"},
    {EMEDIUMTYPE, 415, 2, "unsupported media type"},
    {EDQUOT, 429, 6, "quota used up"},
    {EAGAIN, 429, 6, "too much at once"},
    {EBADMSG, 502, 7, "the answer makes no sense"},
    {EHOSTUNREACH, 503, 7, "no metaserver answers"},
    {ENETUNREACH, 503, 7, "there is no route to it"},
    {ENOTCONN, 503, 7, "not connected"},
    {ECONNREFUSED, 503, 7, "nobody is listening there"},
    {ECONNRESET, 503, 7, "the connection was lost"},
    {EPIPE, 503, 7, "the agent is gone"},
    {EROFS, 503, 7, "the store cannot be written"},
    {ECANCELED, 503, 7, "it was given up"},
    {ETIMEDOUT, 504, 7, "timed out"},
    {ENOSPC, 507, 6, "full"},
    {ENOMEM, 507, 6, "out of memory"},
};

const struct base_error *base_error_of(int errnum)
{
    if (errnum < 0)
        errnum = -errnum;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].errnum == errnum)
            return &table[i];
    return &table[0];
}

const struct base_error *base_error_of_http(int status)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].http == status)
            return &table[i];
    return &table[0];
}
