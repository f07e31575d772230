/* SPDX-License-Identifier: Apache-2.0 */
#include "harness_tls.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "harness.h"

#define DAY_S (24 * 3600)

static char directory[64];
static const char *known[64];
static unsigned files;

static void check(int code)
{
    ck_assert_msg(code >= 0, "%s", gnutls_strerror(code));
}

const char *harness_path(const char *name)
{
    static char path[4][HARNESS_PATH];
    static unsigned next;
    if (directory[0] == '\0') {
        snprintf(directory, sizeof directory, "/tmp/kedge-tls-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(directory));
    }
    char *out = path[next++ % 4];
    snprintf(out, HARNESS_PATH, "%s/%s", directory, name);
    return out;
}

void harness_forget_files(void)
{
    while (files > 0) {
        unlink(known[--files]);
        free((void *)known[files]);
    }
    if (directory[0] != '\0')
        rmdir(directory);
    directory[0] = '\0';
}

void harness_write(const char *path, const void *bytes, size_t length, unsigned mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, length), (ssize_t)length);
    ck_assert_int_eq(fchmod(fd, mode), 0);
    close(fd);
    for (unsigned i = 0; i < files; i++)
        if (strcmp(known[i], path) == 0)
            return;
    ck_assert_uint_lt(files, 64);
    known[files++] = strdup(path);
}

static void write_datum(const char *name, const char *suffix, gnutls_datum_t *bytes, unsigned mode)
{
    char file[64];
    snprintf(file, sizeof file, "%s%s.pem", name, suffix);
    harness_write(harness_path(file), bytes->data, bytes->size, mode);
    gnutls_free(bytes->data);
}

static gnutls_x509_privkey_t new_key(void)
{
    gnutls_x509_privkey_t key;
    check(gnutls_x509_privkey_init(&key));
    check(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                       GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
    return key;
}

static gnutls_x509_crt_t new_cert(const char *name, gnutls_x509_privkey_t key, unsigned serial,
                                  int64_t begins_s, int64_t ends_s)
{
    const int64_t now_s = (int64_t)time(NULL);
    const unsigned char number[1] = {(unsigned char)serial};
    gnutls_x509_crt_t crt;
    check(gnutls_x509_crt_init(&crt));
    check(gnutls_x509_crt_set_version(crt, 3));
    check(gnutls_x509_crt_set_key(crt, key));
    check(gnutls_x509_crt_set_serial(crt, number, sizeof number));
    check(gnutls_x509_crt_set_activation_time(crt, (time_t)(now_s + begins_s)));
    check(gnutls_x509_crt_set_expiration_time(crt, (time_t)(now_s + ends_s)));
    check(gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                        (unsigned)strlen(name)));
    return crt;
}

struct harness_ca harness_ca_new(const char *name)
{
    struct harness_ca ca = {.key = new_key()};
    gnutls_datum_t pem;
    ca.crt = new_cert(name, ca.key, 99, -2 * DAY_S, 3650 * (int64_t)DAY_S);
    check(gnutls_x509_crt_set_ca_status(ca.crt, 1));
    check(gnutls_x509_crt_set_key_usage(ca.crt, GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN));
    check(gnutls_x509_crt_sign2(ca.crt, ca.crt, ca.key, GNUTLS_DIG_SHA256, 0));
    check(gnutls_x509_crt_export2(ca.crt, GNUTLS_X509_FMT_PEM, &pem));
    write_datum(name, "", &pem, 0644);
    return ca;
}

void harness_ca_free(struct harness_ca *ca)
{
    gnutls_x509_crt_deinit(ca->crt);
    gnutls_x509_privkey_deinit(ca->key);
}

static void add_names(gnutls_x509_crt_t crt, struct harness_cert spec)
{
    const char *const uris[] = {spec.uri, spec.second_uri};
    uint8_t ip[16];
    const char *text = spec.ip != NULL ? spec.ip : "127.0.0.1";
    const bool v6 = inet_pton(AF_INET, text, ip) != 1;
    ck_assert(!v6 || inet_pton(AF_INET6, text, ip) == 1);
    check(gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, ip, v6 ? 16 : 4,
                                               GNUTLS_FSAN_APPEND));
    for (int i = 0; i < 2; i++)
        if (uris[i] != NULL)
            check(gnutls_x509_crt_set_subject_alt_name(
                crt, GNUTLS_SAN_URI, uris[i], (unsigned)strlen(uris[i]), GNUTLS_FSAN_APPEND));
}

void harness_issue(const struct harness_ca *ca, const char *name, struct harness_cert spec)
{
    gnutls_x509_privkey_t key = new_key();
    gnutls_datum_t pem;
    gnutls_x509_crt_t crt = new_cert(name, key, spec.serial != 0 ? spec.serial : 1,
                                     spec.begins_s != 0 ? spec.begins_s : -DAY_S,
                                     spec.ends_s != 0 ? spec.ends_s : DAY_S);
    add_names(crt, spec);
    check(gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_SERVER, 0));
    if (!spec.server_only)
        check(gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_CLIENT, 0));
    check(gnutls_x509_crt_set_key_usage(crt, GNUTLS_KEY_DIGITAL_SIGNATURE));
    check(gnutls_x509_crt_sign2(crt, ca->crt, ca->key, GNUTLS_DIG_SHA256, 0));
    check(gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &pem));
    write_datum(name, "", &pem, 0644);
    check(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &pem));
    write_datum(name, "-key", &pem, 0600);
    gnutls_x509_crt_deinit(crt);
    gnutls_x509_privkey_deinit(key);
}

void harness_revoke(const struct harness_ca *ca, const char *name, unsigned serial)
{
    const unsigned char number[1] = {(unsigned char)serial};
    const time_t now = time(NULL);
    gnutls_x509_crl_t crl;
    gnutls_datum_t pem;
    check(gnutls_x509_crl_init(&crl));
    check(gnutls_x509_crl_set_version(crl, 2));
    check(gnutls_x509_crl_set_this_update(crl, now - DAY_S));
    check(gnutls_x509_crl_set_next_update(crl, now + DAY_S));
    check(gnutls_x509_crl_set_number(crl, number, sizeof number));
    check(gnutls_x509_crl_set_crt_serial(crl, number, sizeof number, now - DAY_S));
    check(gnutls_x509_crl_sign2(crl, ca->crt, ca->key, GNUTLS_DIG_SHA256, 0));
    check(gnutls_x509_crl_export2(crl, GNUTLS_X509_FMT_PEM, &pem));
    write_datum(name, "", &pem, 0644);
    gnutls_x509_crl_deinit(crl);
}
