/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tls_private.h"
#include "tls_tunnel.h"

enum { CHAIN_MAX = 8 };

static int take_chain(gnutls_session_t session, gnutls_x509_crt_t chain[CHAIN_MAX])
{
    unsigned shown = 0, count = 0;
    const gnutls_datum_t *raw = gnutls_certificate_get_peers(session, &shown);
    if (raw == NULL || shown == 0)
        return 0;
    for (; count < shown && shown <= CHAIN_MAX; count++) {
        if (gnutls_x509_crt_init(&chain[count]) < 0)
            break;
        if (gnutls_x509_crt_import(chain[count], &raw[count], GNUTLS_X509_FMT_DER) < 0) {
            gnutls_x509_crt_deinit(chain[count]);
            break;
        }
    }
    if (count == shown)
        return (int)count;
    while (count > 0)
        gnutls_x509_crt_deinit(chain[--count]);
    return -1;
}

static const char *explain_status(unsigned status)
{
    static const struct {
        unsigned bits;
        const char *why;
    } rows[] = {
        {GNUTLS_CERT_REVOKED, "has been revoked: issue another one"},
        {GNUTLS_CERT_EXPIRED, "has expired: renew it"},
        {GNUTLS_CERT_NOT_ACTIVATED, "is not valid yet: set the clocks, or wait"},
        {GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNER_NOT_CA | GNUTLS_CERT_SIGNATURE_FAILURE |
             GNUTLS_CERT_SIGNER_CONSTRAINTS_FAILURE,
         "is of no authority in this server's trusted_ca_file"},
        {GNUTLS_CERT_PURPOSE_MISMATCH, "is not for clients: it lacks the purpose clientAuth"},
        {GNUTLS_CERT_INSECURE_ALGORITHM, "has a key or signature that is too weak"},
        {GNUTLS_CERT_REVOCATION_DATA_SUPERSEDED,
         "cannot be looked at: this server's client_crl_file is out of date"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if ((status & rows[i].bits) != 0)
            return rows[i].why;
    return status != 0 ? "does not hold" : NULL;
}

/* What is no name or address that Kedge knows is passed over. 0; or -1: there are two names, or
 * too many addresses. */
static int take_name(gnutls_x509_crt_t leaf, unsigned index, struct http_certificate *out,
                     bool *last)
{
    static const char scheme[] = "kedge:";
    char name[HTTP_CERTIFICATE_TEXT];
    size_t length = sizeof name - 1;
    const int type = gnutls_x509_crt_get_subject_alt_name(leaf, index, name, &length, NULL);
    *last = type == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE;
    if (type == GNUTLS_SAN_URI) {
        name[length] = '\0';
        if (strncmp(name, scheme, sizeof scheme - 1) != 0)
            return 0;
        if (out->uri[0] != '\0' || strlen(name) != length)
            return -1;
        memcpy(out->uri, name, length + 1);
    } else if (type == GNUTLS_SAN_IPADDRESS && (length == 4 || length == 16)) {
        if (out->ips == HTTP_CERTIFICATE_IPS)
            return -1;
        uint8_t *ip = out->ip[out->ips++];
        memset(ip, 0, 10);
        memset(ip + 10, 0xff, 2);
        memcpy(ip + (length == 4 ? 12 : 0), name, length);
    }
    return 0;
}

static int take_names(gnutls_x509_crt_t leaf, struct http_certificate *out)
{
    size_t length = sizeof out->name;
    bool last = false;
    int status = 0;
    if (gnutls_x509_crt_get_dn_by_oid(leaf, GNUTLS_OID_X520_COMMON_NAME, 0, 0, out->name, &length) <
        0)
        snprintf(out->name, sizeof out->name, "(no common name)");
    for (unsigned i = 0; status == 0 && !last; i++)
        status = take_name(leaf, i, out, &last);
    return status;
}

int http_tls_own(const struct http_tls *tls, struct http_certificate *out)
{
    struct http_certificate own = {.expires_s = tls->now->expiry_s};
    gnutls_x509_crt_t *chain = NULL;
    unsigned count = 0;
    int status = -ENOENT;
    if (tls->now->file[HTTP_TLS_CERT].data == NULL ||
        gnutls_x509_crt_list_import2(&chain, &count, &tls->now->file[HTTP_TLS_CERT],
                                     GNUTLS_X509_FMT_PEM, 0) < 0)
        return status;
    if (count > 0)
        status = take_names(chain[0], &own) == 0 ? 0 : -EINVAL;
    for (unsigned i = 0; i < count; i++)
        gnutls_x509_crt_deinit(chain[i]);
    gnutls_free(chain);
    if (status == 0)
        *out = own;
    return status;
}

static int64_t first_end(const gnutls_x509_crt_t *chain, int count)
{
    int64_t end_s = INT64_MAX;
    for (int i = 0; i < count; i++) {
        const int64_t one = (int64_t)gnutls_x509_crt_get_expiration_time(chain[i]);
        end_s = one < end_s ? one : end_s;
    }
    return end_s;
}

static void check_chain(struct http_tls_peer *p, const struct http_tls_loaded *now,
                        gnutls_x509_crt_t *chain, int count)
{
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                     .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT};
    gnutls_x509_trust_list_t trusted = NULL;
    unsigned status = 0;
    p->certificate = (struct http_certificate){.expires_s = first_end(chain, count)};
    const bool named = take_names(chain[0], &p->certificate) == 0;
    gnutls_certificate_get_trust_list(now->credentials, &trusted);
    const int code = gnutls_x509_trust_list_verify_crt2(trusted, chain, (unsigned)count, &purpose,
                                                        1, 0, &status, NULL);
    const char *why = code < 0 ? gnutls_strerror(code) : explain_status(status);
    if (why == NULL && !named)
        why = "names two nodes, or more than 16 addresses";
    if (why != NULL)
        snprintf(p->why, sizeof p->why, "the client's certificate \"%.40s\" %s",
                 p->certificate.name, why);
}

static void check_peer(struct http_connection *c, struct http_tls_peer *p)
{
    const struct http_server *s = c->server;
    const struct http_tls_loaded *now = s->config.tls->now;
    gnutls_x509_crt_t chain[CHAIN_MAX];
    const int count =
        now->file[HTTP_TLS_CA].data != NULL ? take_chain(http_tunnel_session(c->tunnel), chain) : 0;
    p->why[0] = '\0';
    p->shown = count > 0;
    if (count < 0)
        snprintf(p->why, sizeof p->why, "the client's certificate cannot be read");
    else if (count == 0 && s->config.client_cert_auth)
        snprintf(p->why, sizeof p->why,
                 "this server wants a certificate of each client: show one with its key (cert_file "
                 "and key_file in settings; --cert and --key of a command)");
    if (count > 0)
        check_chain(p, now, chain, count);
    for (int i = 0; i < count; i++)
        gnutls_x509_crt_deinit(chain[i]);
    p->checked = now->number;
}

const char *http_tls_check(struct http_connection *c)
{
    if (c->tunnel == NULL)
        return NULL;
    struct http_tls_peer *p = http_tunnel_peer(c->tunnel);
    if (p->checked != c->server->config.tls->now->number ||
        (p->shown && p->why[0] == '\0' && (int64_t)time(NULL) >= p->certificate.expires_s))
        check_peer(c, p);
    return p->why[0] != '\0' ? p->why : NULL;
}

const struct http_certificate *http_tls_certificate(const struct http_connection *c)
{
    const struct http_tls_peer *p = c->tunnel != NULL ? http_tunnel_peer(c->tunnel) : NULL;
    return p != NULL && p->shown && p->why[0] == '\0' ? &p->certificate : NULL;
}
