/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "etcd_client_private.h"

/* Codes of gRPC. */
enum {
    INVALID_ARGUMENT = 3,
    NOT_FOUND = 5,
    PERMISSION_DENIED = 7,
    RESOURCE_EXHAUSTED = 8,
    FAILED_PRECONDITION = 9,
    OUT_OF_RANGE = 11,
    UNIMPLEMENTED = 12,
    UNAVAILABLE = 14,
    DATA_LOSS = 15,
    UNAUTHENTICATED = 16,
};

enum { LINE_BYTES = 160 }; /* of what is shown of a body */

static const char quorum_way_out[] =
    "most of its members have to run and reach each other (`etcdctl endpoint status --cluster`)";

/* What etcd says (etcd's api/v3rpc/rpctypes/error.go), by a part of its words that its versions
 * have in common. The first that fits. */
static const struct known_error {
    const char *words;
    enum meta_etcd_verdict verdict;
    int status;
    const char *way_out; /* NULL: none */
} known_errors[] = {
    {"invalid auth token", META_ETCD_TOKEN, -EACCES, NULL},
    {"revision of auth store is old", META_ETCD_TOKEN, -EACCES, NULL},
    {"revision in header is old", META_ETCD_TOKEN, -EACCES, NULL},
    {"user name is empty", META_ETCD_TOKEN, -EACCES,
     "it wants a user: set user and password_file in [store]"},
    {"invalid user ID or password", META_ETCD_REFUSED, -EACCES,
     "set user and password_file in [store], or `etcdctl user passwd USER`"},
    {"permission denied", META_ETCD_REFUSED, -EACCES,
     "`etcdctl role grant-permission ROLE --prefix=true readwrite PREFIX`, and `etcdctl user "
     "grant-role USER ROLE`"},
    {"space exceeded", META_ETCD_REFUSED, -ENOSPC,
     "etcd is full: `etcdctl compact REVISION`, `etcdctl defrag`, then `etcdctl alarm disarm`"},
    {"has been compacted", META_ETCD_REFUSED, -ERANGE, NULL},
    {"future revision", META_ETCD_NOT_DONE, -ERANGE, NULL},
    {"lease not found", META_ETCD_REFUSED, -ENOENT, NULL},
    {"request is too large", META_ETCD_REFUSED, -EMSGSIZE,
     "start etcd with a larger --max-request-bytes"},
    {"too many operations", META_ETCD_REFUSED, -EMSGSIZE,
     "start etcd with --max-txn-ops 128, which is its default"},
    {"received message larger than", META_ETCD_REFUSED, -EMSGSIZE, NULL}, /* 3.4.0 to 3.4.16 */
    {"too many requests", META_ETCD_NOT_DONE, -EBUSY, NULL},
    {"corrupt", META_ETCD_NOT_KNOWN, -EIO,
     "`etcdctl alarm list` says which member; replace that one"},
    {"CommonName of client", META_ETCD_REFUSED, -EACCES,
     "where etcd has users, cert_file in [store] has to be a certificate without a common name"},
    {"connection closed", META_ETCD_NOT_KNOWN, -EBUSY,
     "where etcd asks for certificates, its own has to be for clients too (clientAuth): with it "
     "its "
     "gateway for JSON asks it"},
    {"no leader", META_ETCD_NOT_KNOWN, -EBUSY, quorum_way_out},
    {"request timed out", META_ETCD_NOT_KNOWN, -EBUSY, quorum_way_out},
};

json_t *meta_etcd_get(json_t *object, const char *name)
{
    char other[32];
    size_t used = 0;
    json_t *value = json_object_get(object, name);
    if (value != NULL || strchr(name, '_') == NULL)
        return value;
    for (; *name != '\0' && used < sizeof other - 1; name++) {
        const bool turns = name[0] == '_' && name[1] >= 'a' && name[1] <= 'z';
        name += turns;
        other[used++] = turns ? (char)(*name - 'a' + 'A') : *name;
    }
    other[used] = '\0';
    return json_object_get(object, other);
}

static enum meta_etcd_verdict verdict_of(int64_t code, int *status)
{
    switch (code) {
    case INVALID_ARGUMENT:
    case FAILED_PRECONDITION:
    case UNIMPLEMENTED:
        *status = -EIO;
        return META_ETCD_REFUSED;
    case NOT_FOUND:
        *status = -ENOENT;
        return META_ETCD_REFUSED;
    case PERMISSION_DENIED:
        *status = -EACCES;
        return META_ETCD_REFUSED;
    case UNAUTHENTICATED:
        *status = -EACCES;
        return META_ETCD_TOKEN;
    case OUT_OF_RANGE:
        *status = -ERANGE;
        return META_ETCD_REFUSED;
    case RESOURCE_EXHAUSTED:
        *status = -EBUSY;
        return META_ETCD_NOT_DONE;
    case UNAVAILABLE:
        *status = -EBUSY;
        return META_ETCD_NOT_KNOWN;
    default: /* DATA_LOSS, UNKNOWN, INTERNAL, DEADLINE_EXCEEDED and what is not known */
        *status = -EIO;
        return META_ETCD_NOT_KNOWN;
    }
}

static const struct known_error *find_known(const char *message)
{
    for (size_t i = 0; i < sizeof known_errors / sizeof known_errors[0]; i++)
        if (strstr(message, known_errors[i].words) != NULL)
            return &known_errors[i];
    return NULL;
}

enum meta_etcd_verdict meta_etcd_judge_error(const char *url, int64_t code, const char *message,
                                             int *status, struct base_errbuf *err)
{
    const struct known_error *k = find_known(message);
    if (k != NULL) {
        *status = k->status;
        base_err(err, 0, "etcd at %.200s: %.120s%s%s", url, message, k->way_out != NULL ? ": " : "",
                 k->way_out != NULL ? k->way_out : "");
        return k->verdict;
    }
    base_err(err, 0, "etcd at %.200s: %.200s", url, message);
    return verdict_of(code, status);
}

/* Of a body that is no JSON, as far as it can be shown. */
static void take_line(const char *body, char out[LINE_BYTES])
{
    size_t n = 0;
    while (n < LINE_BYTES - 1 && body[n] >= ' ' && body[n] <= '~') {
        out[n] = body[n];
        n++;
    }
    out[n] = '\0';
}

/* The answer's HTTP status is none of success. */
static enum meta_etcd_verdict judge_refusal(const char *url, long http, json_t *root,
                                            const char *body, int *status, struct base_errbuf *err)
{
    char line[LINE_BYTES];
    const char *message = json_string_value(json_object_get(root, "message"));
    if (message == NULL)
        message = json_string_value(json_object_get(root, "error"));
    if (message != NULL)
        return meta_etcd_judge_error(url, json_integer_value(json_object_get(root, "code")),
                                     message, status, err);
    take_line(root == NULL ? body : "", line);
    if (find_known(line) != NULL)
        return meta_etcd_judge_error(url, 0, line, status, err);
    *status = http == 404 ? -EIO : -EBUSY;
    if (http == 404)
        base_err(err, 0,
                 "%.200s has no JSON gateway of etcd's API v3: start etcd with "
                 "--enable-grpc-gateway, of version 3.4 or later",
                 url);
    else
        base_err(err, 0, "etcd at %.200s answers with HTTP status %ld%s%s", url, http,
                 line[0] != '\0' ? ": " : "", line);
    return META_ETCD_NOT_KNOWN;
}

/* What may be meant where etcd and the endpoint do not speak the same. NULL: nothing. */
static const char *guess_mistake(const char *url, CURLcode code)
{
    const bool tls = strncmp(url, "https://", 8) == 0;
    if (!tls)
        return code == CURLE_GOT_NOTHING || code == CURLE_UNSUPPORTED_PROTOCOL
                   ? "an etcd with TLS is https://"
                   : NULL;
    if (code == CURLE_SSL_CONNECT_ERROR)
        return "an etcd without TLS is http://, and one that asks for a certificate needs "
               "cert_file and key_file in [store]";
    return code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR
               ? "an etcd that asks for a certificate needs cert_file and key_file in [store], of "
                 "an authority that it trusts"
               : NULL;
}

static enum meta_etcd_verdict judge_failure(const struct meta_etcd_transfer *t, const char *url,
                                            int *status, struct base_errbuf *err)
{
    *status = t->code == CURLE_OUT_OF_MEMORY ? -ENOMEM : -EBUSY;
    const char *mistake = guess_mistake(url, t->code);
    base_err(err, 0, "etcd at %.200s cannot be reached: %.200s%s%s%s", url,
             t->why[0] != '\0' ? t->why : curl_easy_strerror(t->code), mistake != NULL ? " (" : "",
             mistake != NULL ? mistake : "", mistake != NULL ? ")" : "");
    switch (t->code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        *status = -EPROTO;
        base_err(err, 0,
                 "etcd at %.200s cannot be reached: %.200s (look at trusted_ca_file, "
                 "cert_file and key_file in [store])",
                 url, t->why[0] != '\0' ? t->why : curl_easy_strerror(t->code));
        return META_ETCD_NOT_DONE;
    case CURLE_OPERATION_TIMEDOUT:
        base_err(err, 0, "etcd at %.200s does not answer in time: %s", url, quorum_way_out);
        return META_ETCD_NOT_KNOWN;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
        return META_ETCD_NOT_DONE;
    default:
        return META_ETCD_NOT_KNOWN;
    }
}

bool meta_etcd_check_cluster(struct meta_etcd_client *c, const char *url, json_t *root, int *status,
                             struct base_errbuf *err)
{
    json_t *header = json_object_get(root, "header");
    const char *id = json_string_value(meta_etcd_get(header, "cluster_id"));
    if (id == NULL || strlen(id) >= sizeof c->cluster)
        return true; /* authentication and errors have none */
    if (c->cluster[0] == '\0')
        snprintf(c->cluster, sizeof c->cluster, "%s", id);
    if (strcmp(c->cluster, id) == 0)
        return true;
    *status = -EXDEV;
    base_err(err, 0,
             "etcd at %.200s is of another cluster (%s) than before (%s): if it was restored from "
             "a snapshot, all endpoints have to be of the one that runs now",
             url, id, c->cluster);
    return false;
}

enum meta_etcd_verdict meta_etcd_judge(struct meta_etcd_client *c, struct meta_etcd_transfer *t,
                                       uint32_t endpoint, json_t **out, int *status,
                                       struct base_errbuf *err)
{
    const char *url = c->url[endpoint];
    json_error_t error;
    long http = 0;
    if (t->body.error != 0) {
        *status = t->body.error;
        base_err(err, 0, "an answer of etcd at %.200s is larger than %zu bytes", url, t->body.max);
        return META_ETCD_NOT_KNOWN;
    }
    if (t->code != CURLE_OK)
        return judge_failure(t, url, status, err);
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &http);
    json_t *root =
        json_loadb(base_text_str(&t->body), t->body.length, JSON_REJECT_DUPLICATES, &error);
    enum meta_etcd_verdict verdict = META_ETCD_DONE;
    if (http != 200) {
        verdict = judge_refusal(url, http, root, base_text_str(&t->body), status, err);
    } else if (!json_is_object(root)) {
        *status = -EBADMSG;
        base_err(err, 0, "what answers at %.200s is no etcd: is the endpoint right?", url);
        verdict = META_ETCD_NOT_KNOWN;
    } else if (!meta_etcd_check_cluster(c, url, root, status, err)) {
        verdict = META_ETCD_NOT_KNOWN;
    }
    if (verdict == META_ETCD_DONE)
        *out = root;
    else
        json_decref(root);
    return verdict;
}
