/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "etcd_client_private.h"
#include "etcd_model.h"

static int copy_setting(const char *what, const char *value, char *out, size_t room,
                        struct base_errbuf *err)
{
    if (value != NULL && strlen(value) >= room)
        return base_err(err, -EINVAL, "%s is longer than %zu characters", what, room - 1);
    snprintf(out, room, "%s", value != NULL ? value : "");
    return 0;
}

/* scheme://host:port, without a path. */
static bool is_endpoint(const char *url)
{
    const char *host = strstr(url, "://");
    if (host == NULL || (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0))
        return false;
    return host[3] != '\0' && strpbrk(host + 3, "/@?# \t\"\\") == NULL;
}

static int read_endpoints(struct meta_etcd_client *c, const char *list, struct base_errbuf *err)
{
    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ","), end = length;
        char url[META_ETCD_URL_BYTES];
        if (length >= sizeof url)
            return base_err(err, -EINVAL, "an endpoint of etcd is longer than %zu characters",
                            sizeof url - 1);
        while (end > 0 && (list[end - 1] == '/' || list[end - 1] == ' '))
            end--;
        const size_t begin = strspn(list, " ");
        snprintf(url, sizeof url, "%.*s", begin < end ? (int)(end - begin) : 0, list + begin);
        if (!is_endpoint(url))
            return base_err(err, -EINVAL,
                            "\"%.200s\" is no endpoint of etcd: write http://HOST:PORT or "
                            "https://HOST:PORT, several with commas between them",
                            url);
        if (c->count == META_ETCD_ENDPOINTS_MAX)
            return base_err(err, -EINVAL, "more than %d endpoints of etcd",
                            META_ETCD_ENDPOINTS_MAX);
        memcpy(c->url[c->count++], url, sizeof url);
        list += length + (list[length] == ',');
    }
    return c->count > 0 ? 0 : base_err(err, -EINVAL, "no endpoint of etcd is named");
}

int meta_etcd_read_password(const struct meta_etcd_client *c, char out[META_ETCD_SECRET_BYTES],
                            struct base_errbuf *err)
{
    struct stat st;
    const int fd = open(c->password_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int error = fd < 0 || fstat(fd, &st) != 0 ? errno : S_ISREG(st.st_mode) ? 0 : EINVAL;
    const ssize_t length = error == 0 ? read(fd, out, META_ETCD_SECRET_BYTES) : 0;
    if (length < 0)
        error = errno;
    if (fd >= 0)
        close(fd);
    if (error != 0)
        return base_err(err, -error, "the password of etcd in %.200s cannot be read: %s",
                        c->password_file,
                        error == EINVAL ? "it is no regular file" : strerror(error));
    if ((st.st_mode & (S_IWGRP | S_IRWXO)) != 0)
        return base_err(err, -EACCES,
                        "others may read the password in %.200s, or write it: chmod 600 it, and "
                        "change the password if somebody may have seen it",
                        c->password_file);
    size_t used = (size_t)length;
    while (used > 0 && (out[used - 1] == '\n' || out[used - 1] == '\r'))
        used--;
    if (used == 0 || used == META_ETCD_SECRET_BYTES || memchr(out, '\0', used) != NULL ||
        memchr(out, '\n', used) != NULL)
        return base_err(err, -EINVAL, "%.200s holds no password of etcd: one line, and no more",
                        c->password_file);
    out[used] = '\0';
    return 0;
}

/* libcurl would find it with the first request, and etcd be said not to be reached. */
static int check_file(const char *setting, const char *file, struct base_errbuf *err)
{
    const int fd = file[0] != '\0' ? open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (file[0] != '\0' && fd < 0)
        return base_err(err, -errno, "%s in [store] cannot be read: %.200s: %s", setting, file,
                        strerror(errno));
    if (fd >= 0)
        close(fd);
    return 0;
}

int meta_etcd_read_settings(struct meta_etcd_client *c, const struct meta_store_etcd_config *config,
                            struct base_errbuf *err)
{
    char secret[META_ETCD_SECRET_BYTES];
    int status = read_endpoints(c, config->endpoints, err);
    if (status == 0)
        status = copy_setting("the user of etcd", config->user, c->user, sizeof c->user, err);
    if (status == 0)
        status = copy_setting("the name of the password file", config->password_file,
                              c->password_file, sizeof c->password_file, err);
    if (status == 0)
        status = copy_setting("the name of the CA file", config->ca_file, c->ca_file,
                              sizeof c->ca_file, err);
    if (status == 0)
        status = copy_setting("the name of the certificate file", config->cert_file, c->cert_file,
                              sizeof c->cert_file, err);
    if (status == 0)
        status = copy_setting("the name of the key file", config->key_file, c->key_file,
                              sizeof c->key_file, err);
    if (status == 0 && (c->user[0] == '\0') != (c->password_file[0] == '\0'))
        status = base_err(err, -EINVAL,
                          "the user of etcd and the file with the password are set together: user "
                          "and password_file in [store]");
    if (status == 0 && (c->cert_file[0] == '\0') != (c->key_file[0] == '\0'))
        status = base_err(err, -EINVAL,
                          "the certificate for etcd and the file with its key are set together: "
                          "cert_file and key_file in [store]");
    if (status == 0)
        status = check_file("trusted_ca_file", c->ca_file, err);
    if (status == 0)
        status = check_file("cert_file", c->cert_file, err);
    if (status == 0)
        status = check_file("key_file", c->key_file, err);
    if (status == 0 && c->user[0] != '\0') {
        status = meta_etcd_read_password(c, secret, err);
        explicit_bzero(secret, sizeof secret);
    }
    return status;
}

int meta_store_etcd_check(const struct meta_store_etcd_config *config, struct base_errbuf *err)
{
    struct meta_etcd_place place;
    struct meta_etcd_client *c = calloc(1, sizeof *c);
    if (c == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    int status = meta_etcd_read_place(config, &place, err);
    if (status == 0)
        status = meta_etcd_read_settings(c, config, err);
    free(c);
    return status;
}
