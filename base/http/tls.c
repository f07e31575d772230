/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <gnutls/x509.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tls_private.h"

enum {
    FILE_BYTES_MAX = 4 << 20, /* of one: a system's authorities have 0.2 MiB */
    SETTLED_S = 2,            /* a file system's time stamps may be as coarse as that */
    WARN_EVERY_S = 24 * 3600,
};

/* ---- reading */

static const char *const contents[HTTP_TLS_FILES] = {"the trusted authorities", "the certificate",
                                                     "the key", "the revocation list"};

static int read_bytes(int fd, size_t size, gnutls_datum_t *out)
{
    size_t used = 0;
    unsigned char *bytes = malloc(size + 1);
    if (bytes == NULL)
        return -ENOMEM;
    while (used < size) {
        ssize_t n = read(fd, bytes + used, size - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    bytes[used] = '\0';
    *out = (gnutls_datum_t){.data = bytes, .size = (unsigned)used};
    return 0;
}

/* A key that everybody may read is everybody's. A group may: of those who serve with it. */
static int read_file(enum http_tls_file file, const char *path, struct stat *seen,
                     gnutls_datum_t *out, struct base_errbuf *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), status = 0;
    if (fd < 0 || fstat(fd, seen) != 0)
        status = -errno;
    else if (!S_ISREG(seen->st_mode) || seen->st_size > FILE_BYTES_MAX)
        status = base_err(err, -EINVAL, "%s in %.160s cannot be: it is %s", contents[file], path,
                          S_ISREG(seen->st_mode) ? "larger than 4 MiB" : "no regular file");
    else if (file == HTTP_TLS_KEY && (seen->st_mode & (S_IRWXO | S_IWGRP)) != 0)
        status = base_err(err, -EACCES,
                          "others may read the key in %.160s, or write it: chmod 640 or 600 it, "
                          "and replace it if somebody may have seen it",
                          path);
    else
        status = read_bytes(fd, (size_t)seen->st_size, out);
    if (status != 0 && status != -EINVAL && status != -EACCES)
        base_err(err, status, "%s in %.160s cannot be read: %s", contents[file], path,
                 strerror(-status));
    else if (status == -EACCES && fd < 0)
        base_err(err, status,
                 "%s in %.160s cannot be read: permission denied (it must be readable by the user "
                 "that runs this)",
                 contents[file], path);
    if (fd >= 0)
        close(fd);
    return status;
}

void http_tls_release(struct http_tls_loaded *l)
{
    if (l == NULL || --l->users > 0)
        return;
    if (l->credentials != NULL)
        gnutls_certificate_free_credentials(l->credentials);
    for (int i = 0; i < HTTP_TLS_FILES; i++) {
        if (l->file[i].data != NULL)
            explicit_bzero(l->file[i].data, l->file[i].size);
        free(l->file[i].data);
    }
    free(l);
}

struct http_tls_loaded *http_tls_hold(const struct http_tls *tls)
{
    tls->now->users++;
    return tls->now;
}

/* ---- checking */

/* The first end of the certificates that are shown, and whether one of them is over. */
static int look_at_times(struct http_tls_loaded *l, const char *path, struct base_errbuf *err)
{
    gnutls_x509_crt_t *chain = NULL;
    unsigned count = 0;
    int code = gnutls_x509_crt_list_import2(&chain, &count, &l->file[HTTP_TLS_CERT],
                                            GNUTLS_X509_FMT_PEM, 0);
    if (code < 0)
        return base_err(err, -EINVAL, "there is no certificate in %.160s: %s", path,
                        gnutls_strerror(code));
    for (unsigned i = 0; i < count; i++) {
        const int64_t end = (int64_t)gnutls_x509_crt_get_expiration_time(chain[i]);
        if (l->expiry_s == 0 || end < l->expiry_s)
            l->expiry_s = end;
        gnutls_x509_crt_deinit(chain[i]);
    }
    gnutls_free(chain);
    return 0;
}

static int add_pair(struct http_tls_loaded *l, char *const *path, struct base_errbuf *err)
{
    int status = look_at_times(l, path[HTTP_TLS_CERT], err);
    if (status != 0)
        return status;
    const int code =
        gnutls_certificate_set_x509_key_mem2(l->credentials, &l->file[HTTP_TLS_CERT],
                                             &l->file[HTTP_TLS_KEY], GNUTLS_X509_FMT_PEM, NULL, 0);
    if (code == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
        return base_err(err, -EINVAL,
                        "the key in %.160s is not that of the certificate in %.160s: put both of "
                        "one pair there",
                        path[HTTP_TLS_KEY], path[HTTP_TLS_CERT]);
    if (code < 0)
        return base_err(err, -EINVAL, "the key in %.160s is of no use: %s", path[HTTP_TLS_KEY],
                        gnutls_strerror(code));
    return 0;
}

static int check_loaded(struct http_tls_loaded *l, char *const *path, struct base_errbuf *err)
{
    int code = gnutls_certificate_allocate_credentials(&l->credentials), status = 0;
    if (code < 0)
        return base_err(err, -ENOMEM, "TLS cannot begin: %s", gnutls_strerror(code));
    if (l->file[HTTP_TLS_CERT].data != NULL)
        status = add_pair(l, path, err);
    if (status == 0 && l->file[HTTP_TLS_CA].data != NULL &&
        (code = gnutls_certificate_set_x509_trust_mem(l->credentials, &l->file[HTTP_TLS_CA],
                                                      GNUTLS_X509_FMT_PEM)) <= 0)
        status = base_err(err, -EINVAL, "there is no authority's certificate in %.160s: %s",
                          path[HTTP_TLS_CA], code < 0 ? gnutls_strerror(code) : "it is empty");
    if (status == 0 && l->file[HTTP_TLS_CRL].data != NULL &&
        (code = gnutls_certificate_set_x509_crl_mem(l->credentials, &l->file[HTTP_TLS_CRL],
                                                    GNUTLS_X509_FMT_PEM)) <= 0)
        status = base_err(err, -EINVAL, "there is no revocation list in %.160s: %s",
                          path[HTTP_TLS_CRL], code < 0 ? gnutls_strerror(code) : "it is empty");
    return status;
}

static int load_files(struct http_tls *tls, struct http_tls_loaded **out, struct base_errbuf *err)
{
    struct http_tls_loaded *l = calloc(1, sizeof *l);
    const int64_t now_s = (int64_t)time(NULL);
    int status = 0;
    if (l == NULL)
        return base_err(err, -ENOMEM, "TLS cannot begin: out of memory");
    l->users = 1;
    l->number = tls->now != NULL ? tls->now->number + 1 : 1;
    tls->unsettled = false;
    for (int i = 0; i < HTTP_TLS_FILES; i++) {
        tls->seen[i] = (struct stat){.st_size = 0};
        if (tls->path[i] == NULL)
            continue;
        struct base_errbuf *why = status == 0 ? err : NULL; /* the first one says it */
        int one = read_file((enum http_tls_file)i, tls->path[i], &tls->seen[i], &l->file[i], why);
        status = status == 0 ? one : status;
        tls->unsettled |= tls->seen[i].st_mtime + SETTLED_S >= now_s;
    }
    if (status == 0)
        status = check_loaded(l, tls->path, err);
    if (status != 0) {
        http_tls_release(l);
        return status;
    }
    *out = l;
    return 0;
}

/* ---- what others call */

static int check_config(const struct http_tls *tls, struct base_errbuf *err)
{
    if ((tls->path[HTTP_TLS_CERT] == NULL) != (tls->path[HTTP_TLS_KEY] == NULL))
        return base_err(err, -EINVAL, "%.160s is set without %s: set both, or none",
                        tls->path[HTTP_TLS_CERT] != NULL ? tls->path[HTTP_TLS_CERT]
                                                         : tls->path[HTTP_TLS_KEY],
                        tls->path[HTTP_TLS_CERT] != NULL ? "its key" : "its certificate");
    if (tls->path[HTTP_TLS_CRL] != NULL && tls->path[HTTP_TLS_CA] == NULL)
        return base_err(err, -EINVAL,
                        "the revocation list %.160s is of no use without the authority that it is "
                        "of: set that too",
                        tls->path[HTTP_TLS_CRL]);
    return 0;
}

int http_tls_new(const struct http_tls_config *config, struct http_tls **out,
                 struct base_errbuf *err)
{
    const char *const path[HTTP_TLS_FILES] = {config->ca_file, config->cert_file, config->key_file,
                                              config->crl_file};
    struct http_tls *tls = calloc(1, sizeof *tls);
    int status = tls == NULL ? -ENOMEM : 0;
    for (int i = 0; status == 0 && i < HTTP_TLS_FILES; i++)
        if (path[i] != NULL && path[i][0] != '\0' && (tls->path[i] = strdup(path[i])) == NULL)
            status = -ENOMEM;
    if (status != 0)
        base_err(err, status, "TLS cannot begin: out of memory");
    else
        status = check_config(tls, err);
    if (status == 0)
        status = load_files(tls, &tls->now, err);
    if (status != 0) {
        http_tls_free(tls);
        return status;
    }
    *out = tls;
    return 0;
}

void http_tls_free(struct http_tls *tls)
{
    if (tls == NULL)
        return;
    http_tls_release(tls->now);
    for (int i = 0; i < HTTP_TLS_FILES; i++)
        free(tls->path[i]);
    free(tls);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mode == b->st_mode && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static bool have_changed(const struct http_tls *tls)
{
    bool changed = tls->unsettled;
    for (int i = 0; i < HTTP_TLS_FILES && !changed; i++) {
        struct stat st = {.st_size = 0};
        if (tls->path[i] != NULL && stat(tls->path[i], &st) != 0)
            st = (struct stat){.st_size = 0};
        changed = !is_same_file(&st, &tls->seen[i]);
    }
    return changed;
}

static bool says_the_same(const struct http_tls_loaded *a, const struct http_tls_loaded *b)
{
    for (int i = 0; i < HTTP_TLS_FILES; i++)
        if (a->file[i].size != b->file[i].size ||
            (a->file[i].size > 0 && memcmp(a->file[i].data, b->file[i].data, a->file[i].size) != 0))
            return false;
    return true;
}

/* Who puts an old pair there by mistake has not thought of the one that still holds. */
static int refuse_over(const struct http_tls *tls, const struct http_tls_loaded *newer,
                       struct base_errbuf *err)
{
    const int64_t now_s = (int64_t)time(NULL);
    if (newer->expiry_s == 0 || newer->expiry_s > now_s || tls->now->expiry_s <= now_s)
        return 0;
    return base_err(err, -EINVAL,
                    "the certificate in %.160s has expired already, which the one before it has "
                    "not: put a newer one there",
                    tls->path[HTTP_TLS_CERT]);
}

int http_tls_look(struct http_tls *tls, struct base_errbuf *err)
{
    struct base_errbuf why = {""};
    struct http_tls_loaded *newer = NULL;
    if (!have_changed(tls))
        return 0;
    int status = load_files(tls, &newer, &why);
    if (status == 0 && !says_the_same(newer, tls->now))
        status = refuse_over(tls, newer, &why);
    if (status != 0) {
        http_tls_release(newer);
        if (strcmp(why.text, tls->refused) == 0)
            return 0;
        snprintf(tls->refused, sizeof tls->refused, "%s", why.text);
        *err = why;
        return status;
    }
    tls->refused[0] = '\0';
    if (says_the_same(newer, tls->now)) {
        http_tls_release(newer);
        return 0;
    }
    http_tls_release(tls->now);
    tls->now = newer;
    tls->warned_s = 0;
    return 1;
}

int64_t http_tls_expiry(const struct http_tls *tls)
{
    return tls->now->expiry_s;
}

bool http_tls_warn(struct http_tls *tls, int64_t wall_s, struct base_errbuf *err)
{
    const int64_t end_s = tls->now->expiry_s, left_s = end_s - wall_s;
    char date[32];
    struct tm tm;
    const time_t end = (time_t)end_s;
    if (end_s == 0 || left_s > HTTP_TLS_SOON_S ||
        (tls->warned_s != 0 && wall_s - tls->warned_s < WARN_EVERY_S && wall_s >= tls->warned_s &&
         (tls->warned_s >= end_s || left_s > 0)))
        return false;
    tls->warned_s = wall_s;
    if (gmtime_r(&end, &tm) == NULL || strftime(date, sizeof date, "%FT%TZ", &tm) == 0)
        snprintf(date, sizeof date, "%" PRId64, end_s);
    base_err(err, 0,
             "the certificate in %.160s %s %s: put a newer one there, which is taken "
             "without a restart",
             tls->path[HTTP_TLS_CERT], left_s > 0 ? "expires at" : "has expired at", date);
    return true;
}
