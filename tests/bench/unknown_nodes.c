/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/http/client.h"
#include "base/random.h"
#include "base/text.h"
#include "perf.h"

enum { PER_NODE = 16 /* what one registration may hold */, POOL = 1 };

void perf_unknown_gid(const struct perf_unknown_nodes *s, uint64_t number, uint8_t gid[16])
{
    memcpy(gid, s->prefix, 8);
    for (int i = 0; i < 8; i++)
        gid[8 + i] = (uint8_t)((number + 1) >> (56 - 8 * i));
}

/* "unix:PATH" is the metaserver's admin socket. */
static const char *socket_of(const struct perf_options *o)
{
    return strncmp(o->server, "unix:", 5) == 0 ? o->server + 5 : NULL;
}

static void node_url(const struct perf_options *o, const struct perf_unknown_nodes *s,
                     uint64_t node, char *url, size_t size)
{
    char hex[17];
    base_hex_encode(s->prefix + 1, 7, hex);
    snprintf(url, size, "%s/v1/nodes/perf-%s-%llu",
             socket_of(o) != NULL ? "http://localhost" : o->server, hex, (unsigned long long)node);
}

static int call(const struct perf_options *o, const char *method, const char *url, const char *body,
                struct base_errbuf *err)
{
    struct http_result result;
    struct http_call http = {
        .method = method,
        .url = url,
        .unix_path = socket_of(o),
        .token_file = getenv("KEDGE_TOKEN_FILE"), /* of the scope admin: it speaks for nodes */
        .body = body,
        .body_length = body != NULL ? strlen(body) : 0};
    int status = http_call(&http, &result, err);
    if (status != 0)
        return status;
    if (result.status >= 300)
        status = base_err(err, -base_error_of_http(result.status)->errnum, "%s %s: %d %.200s",
                          method, url, result.status, result.body);
    http_result_fini(&result);
    return status;
}

/* A metaserver without DC takes nobody without the queue pair that is to READ its table. There is
 * none: this one has the number of nobody's, and nothing is sent to it, since it would have to
 * begin. */
static void add_reader(struct base_text *body, const uint8_t gid[16])
{
    char text[BASE_GID_TEXT];
    base_text_printf(body, ",\"reader\":{\"gid\":\"%s\",\"qpn\":16777214,\"psn\":0,\"mtu\":256}",
                     base_gid_format(gid, text));
}

/* As it is; and where the metaserver wants a reader, with one. */
static int put_node(const struct perf_options *o, const char *url, struct base_text *body,
                    const uint8_t host[16], bool *reader, struct base_errbuf *err)
{
    const size_t length = body->length;
    int status = -EINVAL;
    if (!*reader) {
        base_text_printf(body, "}");
        status = call(o, "PUT", url, base_text_str(body), err);
        if (status == 0 || host == NULL || strstr(err->text, "wrong-reader") == NULL)
            return status;
        base_text_cut(body, length);
        *reader = true;
    }
    add_reader(body, host);
    base_text_printf(body, "}");
    return call(o, "PUT", url, base_text_str(body), err);
}

int perf_unknown_nodes_add(const struct perf_options *o, const uint8_t host[16],
                           struct perf_unknown_nodes *s, struct base_errbuf *err)
{
    bool reader = false;
    struct base_text body;
    char url[256], gid_text[BASE_GID_TEXT];
    uint8_t gid[16];
    *s = (struct perf_unknown_nodes){.registered = 0};
    int status = base_random_bytes(s->prefix, sizeof s->prefix);
    s->prefix[0] = 0xfd;
    base_text_init(&body, 65536);
    for (uint64_t first = 0; first < o->count && status == 0; first += PER_NODE) {
        base_text_reset(&body);
        base_text_printf(&body, "{\"incarnation\":%llu,\"endpoints\":[",
                         (unsigned long long)time(NULL));
        for (uint64_t i = first; i < first + PER_NODE && i < o->count; i++) {
            perf_unknown_gid(s, i, gid);
            base_text_printf(
                &body,
                "%s{\"gid\":\"%s\",\"pool\":%d,\"transports\":[\"dc\",\"rc\"],"
                "\"dct_number\":1,\"dc_key\":\"%016llx\",\"mtu\":4096,"
                "\"ud_qpn\":1,\"ud_qkey\":1,"
                "\"mr_table\":{\"addr\":\"0000000000100000\",\"rkey\":1,\"log2_slots\":8}}",
                i > first ? "," : "", base_gid_format(gid, gid_text), POOL,
                (unsigned long long)i + 1);
        }
        base_text_printf(&body, "]");
        node_url(o, s, first / PER_NODE, url, sizeof url);
        status = put_node(o, url, &body, host, &reader, err);
        if (status == 0)
            s->registered++;
    }
    base_text_fini(&body);
    if (status != 0)
        perf_unknown_nodes_remove(o, s);
    return status;
}

void perf_unknown_nodes_remove(const struct perf_options *o, struct perf_unknown_nodes *s)
{
    char url[256];
    for (uint64_t i = 0; i < s->registered; i++) {
        node_url(o, s, i, url, sizeof url);
        (void)call(o, "DELETE", url, NULL, NULL);
    }
    s->registered = 0;
}
