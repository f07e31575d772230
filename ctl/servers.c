/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/servers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Commands say what is below it: /v1, its resources and queries. */
static int check_url(const char *of, const char *server, const char *host, struct base_errbuf *err)
{
    size_t length = strcspn(host, "?#");
    const bool query = host[length] != '\0';
    while (length > 0 && host[length - 1] == '/')
        length--;
    if (!query && length > 0 && (length < 3 || strncmp(host + length - 3, "/v1", 3) != 0))
        return 0;
    return base_err(err, -EINVAL,
                    "%s must end where the metaserver does, as in http://127.0.0.1:7480, without "
                    "/v1 or a query, not \"%.80s\"",
                    of, server);
}

static int check_server(const char *of, const char *server, struct base_errbuf *err)
{
    const char *host = strncmp(server, "http://", 7) == 0    ? server + 7
                       : strncmp(server, "https://", 8) == 0 ? server + 8
                                                             : NULL;
    if (host != NULL && strchr(host, ' ') != NULL)
        return base_err(err, -EINVAL,
                        "%s has a blank in \"%.80s\": several metaservers have commas between them",
                        of, server);
    if (host != NULL)
        return check_url(of, server, host, err);
    if (strncmp(server, "unix:/", 6) == 0)
        return 0;
    if (strncmp(server, "unix:", 5) == 0)
        return base_err(
            err, -EINVAL,
            "%s needs an absolute path, as in unix:/run/kedge/metad.sock, not \"%.80s\"", of,
            server);
    return base_err(err, -EINVAL,
                    "%s must be a URL such as http://127.0.0.1:7480, or unix:PATH, or several with "
                    "commas between them, not \"%.60s\"",
                    of, server);
}

/* The one that begins there, without blanks around. */
static int take_server(const char *of, const char *text, size_t length, struct ctl_servers *out,
                       struct base_errbuf *err)
{
    while (length > 0 && text[0] == ' ')
        text++, length--;
    while (length > 0 && text[length - 1] == ' ')
        length--;
    if (out->count == CTL_SERVERS_MAX)
        return base_err(err, -EINVAL, "%s has at most %d metaservers", of, CTL_SERVERS_MAX);
    if (length >= CTL_SERVER_BYTES)
        return base_err(err, -EINVAL, "%s has more than %d bytes in \"%.60s...\"", of,
                        CTL_SERVER_BYTES - 1, text);
    char *url = out->url[out->count++];
    memcpy(url, text, length);
    url[length] = '\0';
    return check_server(of, url, err);
}

int ctl_servers_parse(const char *of, const char *list, struct ctl_servers *out,
                      struct base_errbuf *err)
{
    int status = 0;
    out->count = out->at = 0;
    for (const char *at = list; status == 0;) {
        const size_t length = strcspn(at, ",");
        status = take_server(of, at, length, out, err);
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    return status;
}

int ctl_server_check(const char *of, const char *list, struct base_errbuf *err)
{
    struct ctl_servers servers;
    return ctl_servers_parse(of, list, &servers, err);
}
