/* SPDX-License-Identifier: Apache-2.0 */
/* Authorities and certificates of a test, in files of a directory of its own. */
#ifndef TESTS_UNIT_BASE_HTTP_HARNESS_TLS_H
#define TESTS_UNIT_BASE_HTTP_HARNESS_TLS_H

#include <gnutls/x509.h>
#include <stdbool.h>
#include <stdint.h>

struct harness_ca {
    gnutls_x509_crt_t crt;
    gnutls_x509_privkey_t key;
};

/* Zero: what a certificate of 127.0.0.1 has, for servers and clients, that holds for a day. */
struct harness_cert {
    const char *uri, *second_uri, *ip;
    int64_t begins_s, ends_s; /* from now */
    bool server_only;
    unsigned serial; /* 1 */
};

enum { HARNESS_PATH = 256 };
/* A file in the test's directory, which is made at the first call. Valid until the fourth next one.
 */
const char *harness_path(const char *name);
void harness_write(const char *path, const void *bytes, size_t length, unsigned mode);

struct harness_ca harness_ca_new(const char *name); /* and its certificate in NAME.pem */
void harness_ca_free(struct harness_ca *ca);
/* NAME.pem and NAME-key.pem. */
void harness_issue(const struct harness_ca *ca, const char *name, struct harness_cert spec);
/* NAME.pem: that serial is revoked. */
void harness_revoke(const struct harness_ca *ca, const char *name, unsigned serial);
/* Takes the directory away. */
void harness_forget_files(void);

#endif
